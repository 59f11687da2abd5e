"""What the folder of a Hugging Face model asks for, looked at before anything of it is made.

A config.json may come from anyone. Its numbers are counts, which a model is built by one after the other, and sizes, which cost
weights: counts are held small wherever they stand, and weights to what the files of the folder could hold.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from whytrust import files, limits
from whytrust.core import need

_SIZE = re.compile(r"""(?x)(
    base | bin | bucket | channel | chunksize | ctx | dff | dim | distance | embd | embedding | embed | expert | extent |
    feature | ff | feedforward | ffn | height | id | index | latent | len | length | offset | patche | period | pos | position |
    querie | rank | rate | resolution | sample | scale | seed | seq | size | temperature | theta | timescale | token | topk |
    unit | vocab | width | window | word)s?""")
"""Words of keys that tell how large something is, or which: what a model is not built by one after the other."""
_LABELS = frozenset(("labels", "classes"))
_COUNTS = frozenset(("layers", "layer", "heads", "head", "depth", "depths", "groups", "group", "blocks", "block", "stages"))
_WHOLE = frozenset(("d_model", "d_inner", "n_inner"))
_NAMES = ("id2label", "label2id")
_WORDS = re.compile(r"[a-z]+|\d+")


def check(folder: Path) -> None:
    """Refuse a folder that asks for layers by the million, or for weights from anywhere."""
    for path in folder.iterdir():
        if not path.is_dir():
            files.checked(path, "a file of a model")  # a pipe would be waited for
    for listing in folder.glob("*.index.json"):
        named = files.plain(listing, "a list of weights")
        places = named.get("weight_map") if isinstance(named, dict) else None
        if not isinstance(places, dict) or not all(isinstance(one, str) and Path(one).name == one for one in places.values()):
            raise ValueError(f"{listing} must name files of weights that lie beside it, {{weight_map: {{weight: file}}}}")
    config = folder / "config.json"
    if config.exists():
        check_config(config, files.plain(config, "the configuration of a model"))


def check_config(path: Path, told: Any) -> None:
    """Refuse large numbers, and long lists, but for sizes; also in lists and in configurations within this one."""
    for key, value in _entries(told):
        held = len(value) if isinstance(value, list | dict) else value
        most = limits.LABELS if isinstance(value, dict) else _most(key, isinstance(value, list))
        if most is not None and held > most:
            raise ValueError(f"{path} must ask for at most {most:,} of what it calls {key!r:.60}, got {held:,}; if you know "
                             "where it comes from, load it with transformers and pass (model, tokenizer)")


def _entries(told: Any) -> Iterator[tuple[str, Any]]:
    """Every whole number, list and dictionary, and the key that it stands under; without recursion, for files may be deep."""
    waiting = [("", told)]
    while waiting:
        key, value = waiting.pop()
        if isinstance(value, dict):
            waiting += [(key if key in _NAMES else name, one) for name, one in value.items()]
        elif isinstance(value, list):
            waiting += [(key, one) for one in value]
        if isinstance(value, int | list | dict) and not isinstance(value, bool):
            yield key, value


def _most(key: str, several: bool) -> int | None:
    """What a number, or the length of a list, may be; None for sizes."""
    words = _WORDS.findall(key.lower())
    if key in _NAMES or _LABELS & set(words[-1:]):
        return limits.LABELS
    if several:  # as many layers as it has entries, unless it lists words
        return limits.LABELS if {"ids", "tokens"} & set(words[-1:]) else limits.LAYERS
    size = key in _WHOLE or (any(map(_SIZE.fullmatch, words)) and not _COUNTS & set(words[-1:]))
    return None if size else limits.LAYERS


def architecture(name: str, config: Any) -> str:
    """What a configuration says the model is."""
    told = getattr(config, "architectures", None) or [type(config).__name__]
    if not isinstance(told, list) or not all(isinstance(one, str) for one in told):
        raise ValueError(f"the config.json of {name} must name its architectures in a list of texts, got {told!r:.60}; save it "
                         "again with save_pretrained")
    return str(told[0])


# --- weights ----------------------------------------------------------------------------------------------------------


class _Beyond(Exception):
    """A model is more than its folder could hold."""


def check_asked(name: str, config: Any, kind: Any) -> None:
    """Refuse a folder that asks for far more weights than it brings: they would be made up, until there is no memory left."""
    folder = Path(name)
    if not folder.is_dir():
        return
    brought = [files.checked(path, "a file of weights") for path in (*folder.glob("*.safetensors"), *folder.glob("*.bin"))]
    held = sum(path.stat().st_size for path in brought)
    try:
        with _counted(limits.WEIGHTS * max(held, limits.MIB)), need("torch", "torch").device("meta"):  # sizes, and no memory
            kind.from_config(config)
    except _Beyond as beyond:
        raise ValueError(f"{name} must bring the weights that its config.json asks for, {beyond}, and has files of "
                         f"{files.size(held)}; check that it is whole") from None
    except Exception:  # what is wrong with it is told by whoever loads it
        return


@contextmanager
def _counted(most: int) -> Iterator[None]:
    """Inside, a net of this thread's that gets more weights, or more layers and pieces of such, is not made to its end."""
    modules, here = need("torch.nn.modules.module", "torch"), threading.get_ident()
    pieces = weights = 0

    def count_piece(*_: Any) -> None:
        nonlocal pieces
        pieces += threading.get_ident() == here
        if pieces > limits.MODULES:
            raise _Beyond(f"those of more than {limits.MODULES:,} layers and pieces of layers")

    def count_weights(_: Any, __: str, values: Any) -> None:
        nonlocal weights
        weights += values.numel() if values is not None and threading.get_ident() == here else 0
        if weights > most:
            raise _Beyond(f"{weights:,} or more")

    with ExitStack() as hooks:
        for register, hook in ((modules.register_module_module_registration_hook, count_piece),
                               (modules.register_module_parameter_registration_hook, count_weights),
                               (modules.register_module_buffer_registration_hook, count_weights)):
            hooks.callback(register(hook).remove)
        yield
