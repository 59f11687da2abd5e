"""Make the pictures of the pages that take too long for the tests: `python docs/make_pictures.py`, a few minutes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from PIL import Image

import whytrust as wt
from whytrust.models import demos

PICTURES = Path(__file__).parent / "pictures"
BASES = ("integrated_gradients", "saliency", "guided_backprop")
THIRTEEN = ["lime", *BASES, *(f"{base}/{how}" for base in BASES for how in ("smoothgrad", "smoothgrad2", "vargrad"))]
ESPRESSO, CAT = 0, 1
LARGEST = 900_000
"""Bytes of a picture."""


def photos() -> tuple[Any, list[Any]]:
    """The embedded net and its photographs."""
    demo = demos.load("photos")
    return wt.model(demo.model, **demo.model_options), demo.inputs


def explained() -> list[wt.Explanation]:
    """One photograph, thirteen explainers; the three smoothings of a method share their noisy maps."""
    model, inputs = photos()
    return list(wt.explain(model, inputs[CAT], method=THIRTEEN, parts="slic:40"))


def attacked() -> wt.Attacked:
    """An espresso on its way to a cat, and a cat on its way to an espresso."""
    model, inputs = photos()
    return wt.attack(model, [inputs[ESPRESSO], inputs[CAT]], targets=["Egyptian cat", "espresso"], epsilon=4 / 255,
                     step=1 / 255, margin=1)


def small(path: Path) -> None:
    """The same picture in 256 colours, if it is too large for a repository."""
    if path.stat().st_size > LARGEST:
        Image.open(path).convert("RGB").quantize(256, kmeans=2).save(path, optimize=True)
    print(f"{path.name}: {path.stat().st_size // 1000} kB")


if __name__ == "__main__":
    result = attacked()
    print(result)
    result.plot().savefig(PICTURES / "attack.png", dpi=100)
    small(PICTURES / "attack.png")
    wt.Gallery(tuple(explained())).save(PICTURES / "thirteen.png", style="maps")
    small(PICTURES / "thirteen.png")
