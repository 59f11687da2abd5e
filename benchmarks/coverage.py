"""Do the intervals cover, and does samples="auto" keep its error? On seeds that no test and no tuning has used."""

from __future__ import annotations

import os
import sys

for _library in ("OMP", "OPENBLAS", "MKL"):  # before numpy is imported
    os.environ[f"{_library}_NUM_THREADS"] = "1"

import numpy as np

sys.path.insert(0, "tests")  # the white-box models and the enumerated truth, shared with the tests
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier

import whytrust as wt
from whitebox import COSINE, Bits, Net, enumerated, question
from whytrust.core import generator
from whytrust.domains.tabular import TableStatistics
from whytrust.explainers.lime import Lime

FIRST_SEED = 1_000_000
WAYS = {"stratified": {"surrogate": False}, "with surrogate": {}, "plain": {"design": "plain"}}


def masks(repeats: int = 150) -> None:
    print("| masks, random nets | N | design | coverage | root mean square error |\n|---|---|---|---|---|")
    for d, samples in ((10, 200), (10, 800), (14, 400), (14, 800), (14, 2000)):
        nets = [Net(d, 100 + i) for i in range(5)]
        truths = [enumerated(net, d, "uniform_kept", COSINE, samples) for net in nets]
        for name, options in WAYS.items():
            inside, errors = [], []
            for r in range(repeats):
                lime = Lime(samples=samples, features="all", selection="none", distance="cosine", width=0.25, **options)
                found = lime(question(nets[r % 5], Bits(d)), generator(FIRST_SEED + r))
                errors.append(found.scores - truths[r % 5])
                inside.append(np.abs(errors[-1]) <= 1.96 * found.standard_errors)
            error = np.sqrt(np.mean(np.square(errors)))
            print(f"| d {d} | {samples} | {name} | {np.mean(inside):.3f} | {error:.5f} |", flush=True)


def tables(repeats: int = 300) -> None:
    rng = np.random.default_rng(101)
    background = np.column_stack([rng.integers(0, k, 400) for k in (3, 4, 2, 5, 4)]).astype(float)
    bend = lambda b: np.tanh(b[:, 0] * b[:, 1] - b[:, 2]) + 0.2 * b[:, 3] * (b[:, 4] > 1)  # noqa: E731
    options = {"background": background, "categorical": [0, 1, 2, 3, 4], "selection": "none"}
    truth = wt.explain(bend, background[0], samples=600, **options).scores
    print("\n| table, 5 columns, N | coverage |\n|---|---|")
    for samples in (100, 200, 300, 450):
        inside = []
        for r in range(repeats):
            found = wt.explain(bend, background[0], samples=samples, seed=FIRST_SEED + r, **options)
            inside.append(np.abs(found.scores - truth) <= 1.96 * found.standard_errors)
        print(f"| {samples} | {np.mean(inside):.3f} |", flush=True)


def wide_tables(repeats: int = 60) -> None:
    """Thirty columns, too many to enumerate: the truth is the mean of long runs of plain draws, on seeds of their own."""
    data = load_breast_cancer()
    forest = RandomForestClassifier(100, random_state=0).fit(data.data, data.target)
    options = {"background": TableStatistics.fit(data.data), "variant": "reference", "features": "all", "selection": "none",
               "ridge": 0.0, "target": 1}
    ask = lambda **more: wt.explain(forest, data.data[3], **options, **more)  # noqa: E731
    truth = np.mean([ask(samples=400_000, surrogate=False, seed=2 * FIRST_SEED + r).scores for r in range(6)], axis=0)
    print("\n| table, 30 columns, forest, N | controls | coverage | root mean square error |\n|---|---|---|---|")
    for samples in (1000, 2000, 5000):
        for surrogate in (False, True):
            found = [ask(samples=samples, surrogate=surrogate, seed=FIRST_SEED + r) for r in range(repeats)]
            errors = np.array([e.scores - truth for e in found])
            inside = np.abs(errors) <= 1.96 * np.array([e.standard_errors for e in found])
            used = "used" if found[0].settings["surrogate"] else "not used"
            print(f"| {samples} | {used} | {inside.mean():.3f} | {np.sqrt((errors**2).mean()):.5f} |", flush=True)


def looks(repeats: int = 1000) -> None:
    """How often two equal weights are called apart; 5 % is allowed."""
    column = np.tile(np.linspace(-1, 1, 40)[:, None], (1, 2))
    product = lambda b: b[:, 0] * b[:, 1] + b[:, 0] + b[:, 1]  # noqa: E731
    both = lambda b: b[:, 0] * b[:, 1] + 0.5 * b[:, 2] * b[:, 3] * b[:, 4]  # noqa: E731
    either = lambda b: np.maximum(b[:, 0], b[:, 1])  # noqa: E731
    lime = Lime(samples="auto", budget=1500, top=1, features="all")
    cases = {
        "table, two like columns": lambda seed: wt.explain(product, [0.3, 0.3], method=lime, background=column, seed=seed),
        "12 parts, two needed together": lambda seed: lime(question(both, Bits(12)), generator(seed)),
        "12 parts, either of two": lambda seed: lime(question(either, Bits(12)), generator(seed)),
    }
    print(f"\n| samples=\"auto\", equal weights | called apart in {repeats} runs |\n|---|---|")
    for name, run in cases.items():
        apart = [not any("budget" in note for note in run(FIRST_SEED + r).notes) for r in range(repeats)]
        print(f"| {name} | {np.mean(apart):.1%} ± {1.96 * np.std(apart) / np.sqrt(repeats):.1%} |", flush=True)


if __name__ == "__main__":
    masks()
    tables()
    wide_tables()
    looks()
