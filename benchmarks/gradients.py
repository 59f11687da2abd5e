"""What do a gradient method and an attack cost beside captum's, and beside the bare passes through the net?

A bare pass is the net forwards and torch.autograd.grad to its inputs, with nothing kept for the parameters, on the batches that
whytrust used. Methods take turns, so that a slow minute of the machine hits all of them; ratios are of one turn, and the median
counts. Before anything is timed, whytrust's scores are compared with captum's.
"""

from __future__ import annotations

import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from statistics import median
from typing import Any

import numpy as np
import torch
from captum.attr import GuidedBackprop, IntegratedGradients, NoiseTunnel, Saliency
from captum.robust import PGD
from sklearn.datasets import load_digits

import whytrust as wt
from benchmarks import memory, table
from benchmarks.speed import OURS, cheap_net
from whytrust.models import demos, nets

CELLS = 4
AT_ONCE = 2
"""Images of 224 × 224 pixels in one batch of whytrust's."""
STEPS = 50
SAMPLES = 25
SMOOTHED = ("smoothgrad", "smoothgrad2", "vargrad")
THEIR_SMOOTHED = ("smoothgrad", "smoothgrad_sq", "vargrad")
EPSILON, STEP, ITERATIONS = 0.15, 0.01, 40
FLAT = 1.05
"""How much memory 200 steps of integrated gradients may take, in units of what 20 take."""
Run = Callable[[], Any]


@dataclass(frozen=True)
class Job:
    """One question to both libraries. Of captum's ways (all at once, or in batches) the faster one counts."""

    name: str
    net: torch.nn.Module
    ours: Run
    captum: dict[str, Run]
    bare: Callable[[list[torch.Tensor]], Run]  # from the batches that whytrust pulled a gradient through
    goals: dict[str, float] = field(default_factory=dict)  # of the ratios "captum" and "bare"
    turns: int = 9
    near: float | None = 1e-3  # how far the two answers may lie apart, in parts of the largest number; None: not comparable


class Seen:
    """What goes through a net: how many inputs, and the batches that a gradient is pulled through."""

    def __init__(self) -> None:
        """Nothing yet."""
        self.inputs, self.batches = 0, []

    def __call__(self, net: torch.nn.Module, inputs: tuple[torch.Tensor, ...]) -> None:
        """A forward pass begins."""
        self.inputs += len(inputs[0])
        if inputs[0].requires_grad:
            self.batches.append(inputs[0].detach().clone())


@contextmanager
def _watched(net: torch.nn.Module) -> Iterator[Seen]:
    seen = Seen()
    handle = net.register_forward_pre_hook(seen)
    try:
        yield seen
    finally:
        handle.remove()


# --- photographs ------------------------------------------------------------------------------------------------------


class Photo:
    """A photograph to a net, cut into 4 × 4 cells: asked of whytrust, of captum, and as bare passes.

    captum gets the photograph preprocessed, and its map is pooled onto the same cells, in units of pixels as ours is; both are
    in its time. It prepares the photograph once, whytrust every batch, because its gradients go back to the pixels.
    """

    def __init__(self, name: str) -> None:
        """The net of that name, and the class that it predicts."""
        demo = demos.load("photos")
        self.name, self.net = name, demo.model if name == "EfficientNet-Lite0" else cheap_net()
        self.image = np.asarray(demo.inputs[0])
        self.model = wt.model(self.net, preprocess=nets.photo_batch, output="logit")
        self.target = int(self.model(self.image[None])[0].argmax())
        self.relu = any(isinstance(module, torch.nn.ReLU) for module in self.net.modules())

    def ours(self, *methods: str, **options: Any) -> Any:
        """Scores of the cells, one row a method."""
        found = wt.explain(self.model, self.image, list(methods), target=self.target, parts=f"grid:{CELLS}x{CELLS}", **options)
        return np.array([one.scores for one in found])

    def prepared(self, image: Any = None) -> torch.Tensor:
        """As the net takes it."""
        return torch.from_numpy(nets.photo_batch((self.image if image is None else image)[None]))

    def pooled(self, map: torch.Tensor, how: str) -> Any:
        """captum's map as one number a cell: the mean of absolute values or of values as they are, or the sum."""
        by_place = (map.abs() if how == "mean_abs" else map).mean(1)
        cells = torch.nn.functional.adaptive_avg_pool2d(by_place, CELLS)
        return (cells * (map[0].numel() / CELLS**2 if how == "sum" else 1)).detach().numpy().reshape(1, -1)

    def bare(self, batches: list[torch.Tensor]) -> Run:
        """Forwards and back to pixels, through the preprocessing."""
        pixels = [(batch * 128 + 127).permute(0, 2, 3, 1).contiguous() for batch in batches]
        return lambda: [_passes(lambda leaf: self.net(nets.photo_batch(leaf))[:, self.target].sum(), batch) for batch in pixels]

    # --- what is asked

    def saliency(self) -> Job:
        """The gradient itself."""
        method = Saliency(self.net)

        def theirs() -> Any:
            return self.pooled(method.attribute(self.prepared(), target=self.target, abs=False) / 128, "mean_abs")

        return Job(f"saliency, {self.name}", self.net, lambda: self.ours("saliency"), {"": theirs}, self.bare,
                   {"captum": 1.10}, turns=15)

    def guided_backprop(self) -> Job:
        """captum changes modules of the class ReLU alone: with ReLU6 it finds, in the same time, a plain gradient."""
        method = GuidedBackprop(self.net)

        def theirs() -> Any:
            return self.pooled(method.attribute(self.prepared(), target=self.target) / 128, "mean_abs")

        return Job(f"guided_backprop, {self.name}", self.net, lambda: self.ours("guided_backprop"), {"": theirs}, self.bare,
                   {"captum": 1.10}, turns=15, near=1e-3 if self.relu else None)

    def integrated_gradients(self) -> Job:
        """From a black image, by Gauss-Legendre quadrature; whytrust also asks for the two scores of the completeness gap."""
        method = IntegratedGradients(self.net)

        def theirs(size: int | None) -> Any:
            map = method.attribute(self.prepared(), self.prepared(np.zeros_like(self.image)), target=self.target,
                                   n_steps=STEPS, method="gausslegendre", internal_batch_size=size)
            return self.pooled(map, "sum")

        return Job(f"integrated_gradients, {STEPS} steps, {self.name}", self.net,
                   lambda: self.ours("integrated_gradients", steps=STEPS),
                   {f"batches of {AT_ONCE}": lambda: theirs(AT_ONCE), "all at once": lambda: theirs(None)}, self.bare,
                   {"captum": 1.10})

    def smoothed(self) -> Job:
        """Three summaries of one stream of noisy gradients; captum has a call for each. The bare passes are one stream."""
        method = NoiseTunnel(Saliency(self.net))
        sigma = 0.15 * (float(self.image.max()) - float(self.image.min())) / 128

        def theirs(size: int) -> Any:
            return np.vstack([self.pooled(
                method.attribute(self.prepared(), nt_type=how, nt_samples=SAMPLES, nt_samples_batch_size=size, stdevs=sigma,
                                 target=self.target, abs=False) / 128 ** (1 if how == "smoothgrad" else 2),
                "mean_abs" if how == "smoothgrad" else "mean") for how in THEIR_SMOOTHED])

        return Job(f"SmoothGrad, SmoothGrad² and VarGrad of saliency, {SAMPLES} samples, {self.name}", self.net,
                   lambda: self.ours(*(f"saliency/{how}" for how in SMOOTHED), samples=SAMPLES),
                   {f"batches of {AT_ONCE}": lambda: theirs(AT_ONCE), "all at once": lambda: theirs(SAMPLES)}, self.bare,
                   {"bare": 1.10}, near=None)  # the noise differs


def _passes(score: Callable[[torch.Tensor], torch.Tensor], batch: torch.Tensor) -> torch.Tensor:
    leaf = batch.clone().requires_grad_()
    return torch.autograd.grad(score(leaf), leaf)[0]


# --- an attack --------------------------------------------------------------------------------------------------------


def enlarged_digits() -> tuple[torch.Tensor, torch.Tensor]:
    """scikit-learn's digits between 0 and 1, enlarged from 8 × 8 to 28 × 28 pixels, and their labels."""
    data = load_digits()
    images = torch.from_numpy(data.images.astype(np.float32) / 16)[:, None]
    return torch.nn.functional.interpolate(images, (28, 28), mode="bilinear").clamp(0, 1), torch.from_numpy(data.target)


def digits_net(images: torch.Tensor, labels: torch.Tensor, epochs: int = 4) -> torch.nn.Module:
    """Two convolutions and a linear layer, trained on the spot, the same every time."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        net = torch.nn.Sequential(
            torch.nn.Conv2d(1, 16, 3, padding=1), torch.nn.ReLU(), torch.nn.MaxPool2d(2),
            torch.nn.Conv2d(16, 32, 3, padding=1), torch.nn.ReLU(), torch.nn.MaxPool2d(2),
            torch.nn.Flatten(), torch.nn.Linear(32 * 49, 10))
        optimiser = torch.optim.Adam(net.parameters(), lr=3e-3)
        for _ in range(epochs):
            for part in torch.randperm(len(images)).split(64):
                optimiser.zero_grad()
                torch.nn.functional.cross_entropy(net(images[part]), labels[part]).backward()
                optimiser.step()
    return net.eval()


def pgd(count: int = 200) -> Job:
    """Away from what the net says, within ±epsilon; captum cannot stop at a success, and is given the labels for nothing."""
    images, labels = enlarged_digits()
    net = digits_net(images[count:], labels[count:])
    attacked = images[:count]
    model, arrays = wt.model(net, output="logit"), attacked.numpy()
    with torch.no_grad():
        said = net(attacked).argmax(1)
    theirs = PGD(net, torch.nn.CrossEntropyLoss(reduction="none"), lower_bound=0.0, upper_bound=1.0)

    def ask_captum(size: int) -> Any:
        moved = [theirs.perturb(some, EPSILON, STEP, ITERATIONS, those)
                 for some, those in zip(attacked.split(size), said.split(size), strict=True)]
        with torch.no_grad():
            return float((net(torch.cat(moved)).argmax(1) != said).float().mean())

    def ask_us() -> Any:
        return wt.attack(model, arrays, "pgd", epsilon=EPSILON, step=STEP, iterations=ITERATIONS).success_rate

    def bare(batches: list[torch.Tensor]) -> Run:
        return lambda: [_passes(lambda leaf: net(leaf)[:, 0].sum(), batch) for batch in batches]

    return Job(f"PGD on {count} digits of 28 × 28, at most {ITERATIONS} steps, a small CNN", net, ask_us,
               {"batches of 128": lambda: ask_captum(128), "all at once": lambda: ask_captum(count)}, bare,
               {"captum": 0.5, "bare": 1.30}, near=0.02)  # a few fooled on the way are not in the end


# --- all of them ------------------------------------------------------------------------------------------------------


def jobs(quick: bool) -> Iterator[Job]:
    """Made one after the other."""
    for name in ("a net of five layers",) if quick else ("EfficientNet-Lite0", "a net of five layers"):
        photo = Photo(name)
        yield from (photo.saliency(), photo.integrated_gradients(), photo.guided_backprop(), photo.smoothed())
    yield pgd(40 if quick else 200)


def measure(quick: bool) -> list[dict[str, Any]]:
    """A row a job: the ratios of ours to captum's, of both to the bare passes, and how many inputs went through the net."""
    for about in (".*backward hooks.*", ".*require gradients.*"):  # captum's, of what it does to modules and inputs
        warnings.filterwarnings("ignore", message=about)
    rows = []
    for job in jobs(quick):
        turns = 3 if quick else job.turns
        print(f"  {job.name}: {turns} turns", file=sys.stderr, flush=True)
        rows.append(_timed(job, turns, {} if quick else job.goals))
    return rows


def _timed(job: Job, turns: int, goals: dict[str, float]) -> dict[str, Any]:
    with _watched(job.net) as seen:
        found = job.ours()  # warms up, too
    calls = {OURS: seen.inputs, "bare": sum(map(len, seen.batches))}
    way, calls["captum"] = _faster(job, found)
    runs = {OURS: job.ours, "captum": job.captum[way], "bare": job.bare(seen.batches)}
    runs["bare"]()
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(turns):
        for name, run in runs.items():
            seconds[name].append(_seconds(run))
    ratios = {f"{one}/{other}": [a / b for a, b in zip(seconds[one], seconds[other], strict=True)]
              for one, other in ((OURS, "captum"), (OURS, "bare"), ("captum", "bare"))}
    told = {name: {"median": median(each), "low": min(each), "high": max(each)} for name, each in ratios.items()}
    return {"job": job.name, "captum": way, "turns": turns, "calls": calls, "ratios": told,
            "seconds": {name: median(each) for name, each in seconds.items()}, "goals": goals,
            "reached": all(told[f"{OURS}/{other}"]["median"] <= most for other, most in goals.items())}


def _faster(job: Job, found: Any) -> tuple[str, int]:
    """Which of captum's ways is the fastest of one try each, and its model calls; its answer must be ours."""
    tried: dict[str, tuple[float, int]] = {}
    for way, run in job.captum.items():
        with _watched(job.net) as seen:
            start = time.perf_counter()
            theirs = run()
            tried[way] = time.perf_counter() - start, seen.inputs
        if job.near is not None and not np.allclose(found, theirs, rtol=0, atol=job.near * np.abs(theirs).max()):
            raise ValueError(f"{job.name}: whytrust must find what captum finds, {theirs}, got {found}")
    way = min(tried, key=lambda way: tried[way][0])
    return way, tried[way][1]


def _seconds(run: Run) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


# --- memory -----------------------------------------------------------------------------------------------------------


def weigh(quick: bool) -> list[dict[str, Any]]:
    """Peak memory of integrated gradients with few steps and with many, each in a process of its own."""
    rows, (few, many) = [], (2, 20) if quick else (20, 200)
    for method in (OURS, f"captum, batches of {AT_ONCE}", "captum, all at once")[:1 if quick else 3]:
        peaks = []
        for steps in (few, many):
            print(f"  integrated_gradients, {steps} steps: {method}", file=sys.stderr, flush=True)
            found = subprocess.run([sys.executable, "-m", "benchmarks.gradients", method, str(steps)], capture_output=True,
                                   text=True, check=True)
            peaks.append(float(found.stdout.split()[-1]))
        goal = FLAT if method == OURS else None
        rows.append({"method": method, "steps": [few, many], "megabytes": peaks, "goal": goal,
                     "reached": goal is None or peaks[1] <= goal * peaks[0]})
    return rows


def peak(method: str, steps: int) -> float:
    """Integrated gradients of the net of five layers, once; megabytes at the peak."""
    photo = Photo("a net of five layers")

    def run() -> None:
        if method == OURS:
            photo.ours("integrated_gradients", steps=steps)
            return
        IntegratedGradients(photo.net).attribute(
            photo.prepared(), photo.prepared(np.zeros_like(photo.image)), target=photo.target, n_steps=steps,
            internal_batch_size=None if method.endswith("all at once") else AT_ONCE)

    return memory.peak_of(run)


def main() -> None:
    """This table alone, or (a method, a number of steps) its peak memory."""
    torch.set_num_threads(1)
    if len(sys.argv) == 3:
        print(peak(sys.argv[1], int(sys.argv[2])))
        return
    quick = "--quick" in sys.argv
    print(table.gradients_table(measure(quick)), table.steps_table(weigh(quick)), sep="\n\n")


if __name__ == "__main__":
    main()
