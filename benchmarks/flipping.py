"""What does pixel flipping cost beside the bare forward passes of the inputs it asks about, and beside Quantus?

Pixel by pixel in a fixed order, a fixed number of steps, black behind. Bare is the net on exactly the batches that whytrust
asked. Quantus is asked for as many steps; it hides the channels of a pixel one by one, and goes through an image's steps one
after the other. Methods take turns; the median of the turns' ratios counts. Memory: peaks of processes of their own, for a few
steps and for many.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import warnings
from collections.abc import Callable
from typing import Any

for _library in ("OMP", "OPENBLAS", "MKL"):  # before numpy is imported
    os.environ[f"{_library}_NUM_THREADS"] = "1"

import numpy as np  # noqa: E402

GOAL, TURNS, FLAT = 1.20, 7, 1.10
STEPS, FEW, MANY = {"photos": 42, "digits": 56}, 64, 1024
"""Of the steps that Quantus allows, which must divide the number of pixels."""


def measure(quick: bool = False) -> dict[str, Any]:
    """Time of two nets, and memory of few and of many steps."""
    times = [_timed("EfficientNet-Lite0, 224 × 224", "photos", STEPS["photos"], 1 if quick else TURNS, GOAL),
             _timed("a small CNN, 28 × 28", "digits", STEPS["digits"], 3 if quick else 3 * TURNS, None)]
    return {"times": times, "memory": _memory(FEW, FEW * 2 if quick else MANY)}


def _net(name: str) -> tuple[Any, Any]:
    """(torch net, one input as it takes it)."""
    from whytrust.models import demos, small_nets

    if name == "photos":
        demo = demos.load("photos")
        return demo.model, demo.model_options["preprocess"](np.asarray(demo.inputs[0])[None])[0]
    return small_nets.untrained("deep"), np.random.default_rng(0).random((1, 28, 28)).astype(np.float32)


def _timed(name: str, which: str, steps: int, turns: int, goal: float | None) -> dict[str, Any]:
    import torch

    import whytrust as wt
    from benchmarks.turns import beside_bare
    from whytrust.core import generator
    from whytrust.domains.image import ImageParts
    from whytrust.measures.flipping import PixelFlipping
    from whytrust.measures.judged import Judged
    from whytrust.question import Question

    net, picture = _net(which)
    picture = np.ascontiguousarray(picture, dtype=np.float32)
    d = picture.shape[1] * picture.shape[2]
    order = generator(0, "order").random(d)
    model = wt.model(net, layout="NCHW")
    parts = ImageParts.cut(picture, "pixels", fill=float(picture.min()), layout="NCHW")
    seen: list[Any] = []
    handle = net.register_forward_pre_hook(lambda module, given: seen.append(given[0].detach().clone()))

    def ours() -> Any:
        return PixelFlipping(steps=steps).curve(Judged(Question(model, parts, 0), order), generator(0))

    first = ours()
    handle.remove()

    def bare() -> None:
        with torch.inference_mode():
            for batch in seen:
                net(batch)

    ways: dict[str, Callable[[], Any]] = {"bare": bare, "whytrust": ours}
    quantus = _quantus()
    if quantus is not None:
        metric = quantus.PixelFlipping(features_in_step=picture.size // steps, perturb_baseline="black", normalise=False,
                                       return_aggregate=False, disable_warnings=True, display_progressbar=False)
        map = np.broadcast_to(order.reshape(1, 1, *picture.shape[1:]), (1, *picture.shape))
        ways["quantus"] = lambda: metric(model=net, x_batch=picture[None], y_batch=np.array([0]), a_batch=map, device="cpu",
                                         softmax=False, channel_first=True)
        theirs = np.asarray(ways["quantus"]())[0]
        assert len(theirs) == steps
        assert np.isclose(theirs[-1], first.scores[-1], atol=1e-3)  # both end with nothing shown
    with model.asking(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        seconds, ratios = beside_bare(ways, turns)
    return {"job": f"{name}, {steps} steps", "bare_seconds": seconds, "ratios": ratios, "goal": goal,
            "reached": goal is None or round(ratios["whytrust"], 2) <= goal}


def _quantus() -> Any:
    """Quantus without zennit, whose import wants a torchvision that may not be there."""
    real = importlib.util.find_spec
    if real("quantus") is None:
        return None
    importlib.util.find_spec = lambda name, *more: None if name == "zennit" else real(name, *more)  # type: ignore[assignment]
    try:
        return importlib.import_module("quantus")
    finally:
        importlib.util.find_spec = real


def _memory(few: int, many: int) -> dict[str, Any]:
    """Peaks in megabytes of a walk over 224 × 224 pixels, of few and of many steps."""
    peaks = {}
    for steps in (few, many):
        found = subprocess.run([sys.executable, "-m", "benchmarks.flipping", str(steps)], capture_output=True, text=True,
                               check=True)
        peaks[str(steps)] = float(found.stdout.split()[-1])
    return {"megabytes": peaks, "target": FLAT, "reached": peaks[str(many)] <= FLAT * peaks[str(few)]}


def _peak(steps: int) -> float:
    import torch

    import whytrust as wt
    from benchmarks.memory import peak_of
    from whytrust.core import generator
    from whytrust.domains.image import ImageParts
    from whytrust.measures.flipping import PixelFlipping
    from whytrust.measures.judged import Judged
    from whytrust.question import Question

    torch.set_num_threads(1)
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3, stride=4), torch.nn.ReLU(), torch.nn.AdaptiveAvgPool2d(1),
                              torch.nn.Flatten(), torch.nn.Linear(4, 10)).eval()
    picture = np.random.default_rng(0).random((3, 224, 224)).astype(np.float32)
    parts = ImageParts.cut(picture, "pixels", fill=0.0, layout="NCHW")
    judged = Judged(Question(wt.model(net, layout="NCHW"), parts, 0), np.random.default_rng(1).random(224 * 224))
    return peak_of(lambda: PixelFlipping(steps=steps).curve(judged, generator(0)))


def main() -> None:
    """`python -m benchmarks.flipping` for this part alone; with a number of steps, the peak of one walk."""
    if sys.argv[1:] and sys.argv[1].isdigit():
        print(_peak(int(sys.argv[1])))
        return
    import torch

    from benchmarks import kept, table

    torch.set_num_threads(1)
    code, found = kept.fingerprint(), measure("--quick" in sys.argv)
    print(table.flipping_table(found))
    if "--quick" not in sys.argv:
        kept.keep_part("flipping", found, code)


if __name__ == "__main__":
    main()
