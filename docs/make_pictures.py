"""Make the pictures that take too long for the tests: `make demo`, then `python docs/make_pictures.py`, a few minutes."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from scipy.stats import spearmanr

import whytrust as wt
from whytrust.models import demos

PICTURES = Path(__file__).parent / "pictures"
BASES = ("integrated_gradients", "saliency", "guided_backprop")
THIRTEEN = ["lime", *BASES, *(f"{base}/{how}" for base in BASES for how in ("smoothgrad", "smoothgrad2", "vargrad"))]
ESPRESSO, CAT = 0, 1


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


def alike(method: str) -> float:
    """How much two maps of one photograph agree, for the classes cat and espresso: the rank correlation of pixels."""
    model, inputs = photos()
    cat, coffee = wt.explain(model, inputs[CAT], method, target=["Egyptian cat", "espresso"], parts="grid:4x4")
    return float(spearmanr(cat.map.ravel(), coffee.map.ravel()).statistic)


def kept(figure: Any, name: str, **options: Any) -> None:
    """Write a figure with its photographs as a JPEG: a PNG of so many noisy pixels is several times as large."""
    figure.savefig(PICTURES / name, facecolor="white", pil_kwargs={"quality": 88, "optimize": True}, **options)
    print(f"{name}: {(PICTURES / name).stat().st_size // 1000} kB")


def audited() -> None:
    """The top of the page that `make demo` wrote last, as a browser shows it."""
    whole = PICTURES.parent.parent / "build" / "audit.png"
    whole.parent.mkdir(exist_ok=True)
    latest = max(Path("runs").glob("demo-*"), key=lambda folder: folder.stat().st_mtime)
    page = wt.Audit.open(latest).save_html(whole.with_suffix(".html"))
    subprocess.run(["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--window-size=1100,1700",
                    f"--screenshot={whole}", page.resolve().as_uri()], check=True, capture_output=True)
    top = Image.open(whole).convert("RGB").crop((0, 0, 1100, 1630))
    top.quantize(128).save(PICTURES / "audit.png", optimize=True)
    print(f"audit.png: {(PICTURES / 'audit.png').stat().st_size // 1000} kB")


if __name__ == "__main__":
    audited()
    for method in ("guided_backprop", "saliency"):
        print(f"{method} for two classes: ranks correlate by {alike(method):.3f}")
    thirteen = explained()
    square, variance = (e.map.ravel() for e in thirteen if e.method in ("saliency/smoothgrad2", "saliency/vargrad"))
    print(f"mean square and variance of saliency: the maps correlate by {np.corrcoef(square, variance)[0, 1]:.3f}")
    result = attacked()
    print(result)
    kept(result.plot(), "attack.jpg", dpi=100)
    kept(wt.Gallery(tuple(thirteen)).plot(style="maps"), "thirteen.jpg")
