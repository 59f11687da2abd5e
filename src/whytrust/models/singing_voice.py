"""The singing-voice detector of Schlüter & Lehner (2018), as Praher et al. (2021) explained it: a CNN on log-mel excerpts.

One set of weights runs in three ways: on single excerpts, on every ninth excerpt of a longer stretch (which is what its pooling
gives for nothing, and makes training cheap), and on every excerpt of a song, by dilating what pooling would have thinned out.
"""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any

from whytrust import files
from whytrust.core import need
from whytrust.models.songs import BANDS, FRAME_RATE, FRAMES
from whytrust.models.songs import REACH as REACH

torch = need("torch", "torch")
nn = torch.nn
F = torch.nn.functional

POOL = 3
FORMAT = "whytrust singing-voice 1"
REMADE = "make one with: whytrust train singing-voice"
_SLOPE, _EPS = 0.01, 1e-4


class ZeroMeanConv2d(nn.Conv2d):  # type: ignore[misc, name-defined]
    """A convolution whose kernels sum to zero, whatever their weights: it does not hear how loud a recording is.

    The logarithm turns a gain into a constant, and a kernel that sums to zero does not see constants.
    """

    @property
    def kernels(self) -> Any:
        """Each kernel less its own mean."""
        return self.weight - self.weight.mean(dim=(1, 2, 3), keepdim=True)

    def forward(self, inputs: Any) -> Any:
        """As of any convolution."""
        return self._conv_forward(inputs, self.kernels, self.bias)


class SingingVoiceNet(nn.Module):  # type: ignore[misc, name-defined]
    """(n, 115, 80) log-mel excerpts -> (n, 1) logits: is somebody singing in the middle frame?

    1,408,833 parameters. It learns what sets the voices of its training songs apart from their instruments, and no more: on
    other music it may answer to a violin.
    """

    def __init__(self) -> None:
        """Orthogonal weights, drawn from torch's generator."""
        super().__init__()
        self.bands = nn.BatchNorm1d(BANDS, eps=_EPS, affine=False)  # each band's own mean and spread, learnt in training
        sizes = [(1, 64, 3), (64, 32, 3), (32, 128, 3), (128, 64, 3), (64, 256, (11, 7)), (256, 64, 1)]
        kinds = [ZeroMeanConv2d, *[nn.Conv2d] * 5]
        self.layers = nn.ModuleList(make(*size, bias=False) for make, size in zip(kinds, sizes, strict=True))
        self.norms = nn.ModuleList(nn.BatchNorm2d(size[1], eps=_EPS) for size in sizes)
        self.bends = nn.ModuleList(nn.LeakyReLU(_SLOPE) for _ in sizes)
        self.drops = nn.ModuleList(nn.Dropout(0.5) for _ in range(3))
        self.last = nn.Conv2d(64, 1, 1)
        for layer in (*self.layers, self.last):
            nn.init.orthogonal_(layer.weight)
        nn.init.zeros_(self.last.bias)
        self.to(memory_format=torch.channels_last)  # convolutions take half the time so

    def forward(self, log_mel: Any) -> Any:
        """One logit an excerpt."""
        if log_mel.ndim != 3 or tuple(log_mel.shape[1:]) != (FRAMES, BANDS):
            raise ValueError(f"excerpts must be (n, {FRAMES}, {BANDS}), frames × mel bands, got {tuple(log_mel.shape)}; of a "
                             "whole song ask .song(log_mel)")
        return self._run(log_mel, every=False)

    def strided(self, log_mel: Any) -> Any:
        """(n, frames, 80) -> (n, 1 + (frames − 115) // 9): logit j is of the excerpt that begins at frame 9 j."""
        _check(log_mel)
        return self._run(log_mel, every=False)

    def song(self, log_mel: Any) -> Any:
        """(n, frames, 80) -> (n, frames − 114): logit j is of the excerpt that begins at frame j."""
        _check(log_mel)
        return self._run(log_mel, every=True)

    def _run(self, log_mel: Any, every: bool) -> Any:
        """`every` excerpt, or those that lie apart by the two poolings."""
        x = self.bands(log_mel.transpose(1, 2)).transpose(1, 2)[:, None]
        apart = 1  # frames between neighbours that belong to one excerpt
        for i, layer in enumerate(self.layers):
            if i >= 4:
                x = self.drops[i - 4](x)
            convolved = layer(x) if apart == 1 or i == 5 else F.conv2d(x, layer.weight, dilation=(apart, 1))
            x = self.bends[i](self.norms[i](convolved))
            if i in (1, 3):
                x = F.max_pool2d(x, POOL, stride=(1, POOL), dilation=(apart, 1)) if every else F.max_pool2d(x, POOL)
                apart *= POOL if every else 1
        return self.last(self.drops[2](x))[:, 0, :, 0]

    @property
    def kernels(self) -> Any:
        """The first layer's kernels as they are applied."""
        return self.layers[0].kernels


def _check(log_mel: Any) -> None:
    if log_mel.ndim != 3 or log_mel.shape[2] != BANDS or log_mel.shape[1] < FRAMES:
        raise ValueError(f"a song must be (n, frames, {BANDS}) with at least {FRAMES} frames ({FRAMES / FRAME_RATE:.2f} s), "
                         f"got {tuple(log_mel.shape)}; pass a longer one")


# --- on disk ----------------------------------------------------------------------------------------------------------


def save(net: SingingVoiceNet, path: str | os.PathLike[str], facts: dict[str, Any]) -> None:
    """Weights and what is known of them (threshold, data, errors) as one safetensors file; never half of one."""
    write = need("safetensors.torch", "torch").save_file
    place = Path(path)
    place.parent.mkdir(parents=True, exist_ok=True)
    tensors = {name: value.contiguous() for name, value in net.state_dict().items()}
    handle, beside = tempfile.mkstemp(prefix=f".{place.name}.", dir=place.parent)
    os.close(handle)
    try:
        write(tensors, beside, metadata={"format": FORMAT, "facts": json.dumps(facts)})
        os.replace(beside, place)
    finally:
        Path(beside).unlink(missing_ok=True)


def load(path: str | os.PathLike[str]) -> tuple[SingingVoiceNet, dict[str, Any]]:
    """(net, facts) as they were saved; a file of anything else is one clear error."""
    library = need("safetensors", "torch")
    if not Path(path).is_file():
        raise ValueError(f"{os.fspath(path)} must be the weights of a singing-voice detector, and does not exist; "
                         f"{REMADE}")
    with files.telling(path, "a safetensors file", REMADE), library.safe_open(os.fspath(path), framework="pt") as file:
        about = file.metadata() or {}
        names = file.keys()
        tensors = {name: file.get_tensor(name) for name in names}
    if about.get("format") != FORMAT:
        raise ValueError(f"{os.fspath(path)} must hold a singing-voice detector ({FORMAT}), got {about.get('format')!r}; "
                         f"{REMADE}")
    net = SingingVoiceNet()
    with files.telling(path, "a singing-voice detector", REMADE):
        net.load_state_dict(tensors)
        facts: dict[str, Any] = dict(json.loads(about["facts"]))
    return net.eval(), facts
