"""How many model calls until the weights are as near to the truth as a peer's are after N?

The error is the root mean square, over a domain's inputs, their parts and repeats, of weight − truth. The truth is that of the
peer's N: the input itself is one of lime's N samples, so it has mass 1 / N. whytrust with fewer samples gives it more, and that
counts as whytrust's error.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.cases import Case, Floats
from benchmarks.peers import Method, methods_of

OURS = "whytrust"
PEERS = ("lime", "captum")
TARGET_RATIO = 0.5
BOOTSTRAPS = 400


class Curve:
    """One method on the inputs of one domain: weights by number of samples, and the calls that they cost."""

    def __init__(self, methods: Sequence[Method], samples: Sequence[int], repeats: int) -> None:
        """Ask about every input with seeds 0 … repeats - 1."""
        runs = [[[method(n, seed) for seed in range(repeats)] for method in methods] for n in samples]
        self.samples = tuple(samples)
        self.weights = np.array([[[weights for weights, _ in one] for one in of_n] for of_n in runs])
        self.calls = np.array([np.mean([calls for one in of_n for _, calls in one]) for of_n in runs])

    def squared_errors(self, truths: Floats) -> Floats:
        """(samples, inputs, repeats), the mean over parts; `truths` has a row an input."""
        return ((self.weights - truths[None, :, None, :]) ** 2).mean(axis=3)


def measure(cases: Sequence[Case], peer_samples: Sequence[int], our_samples: Sequence[int], repeats: int) -> dict[str, Any]:
    """The curves of whytrust and its peers on the inputs of one domain, and where ours meets theirs."""
    domain = cases[0].kind
    curves = {}
    for name in (OURS, *PEERS):
        print(f"  {domain}: {name}, {len(cases)} inputs × {repeats} repeats", file=sys.stderr, flush=True)
        curves[name] = Curve([methods_of(case)[name] for case in cases], our_samples if name == OURS else peer_samples, repeats)
    truths = {n: np.array([case.truth(n) for case in cases]) for n in peer_samples}
    return {
        "domain": domain, "inputs": [case.about for case in cases], "parts": cases[0].d, "repeats": repeats,
        "seeds": list(range(repeats)), "truth": {str(n): truth.tolist() for n, truth in truths.items()},
        "curves": {OURS: _points(curves[OURS], [truths[max(peer_samples)]] * len(our_samples)),
                   **{peer: _points(curves[peer], list(truths.values())) for peer in PEERS}},
        "rows": [_meeting(domain, peer, curves[peer], i, curves[OURS], truths[n])
                 for peer in PEERS for i, n in enumerate(peer_samples)],
    }


def _points(curve: Curve, truths: Sequence[Floats]) -> list[dict[str, float]]:
    """Calls and error at each number of samples, each against its own truth."""
    return [{"samples": n, "calls": float(curve.calls[i]), "error": float(np.sqrt(curve.squared_errors(truth)[i].mean()))}
            for i, (n, truth) in enumerate(zip(curve.samples, truths, strict=True))]


def _meeting(domain: str, peer: str, theirs: Curve, i: int, ours: Curve, truths: Floats) -> dict[str, Any]:
    """Where our curve falls to the error that the peer has at its i-th number of samples."""
    calls = float(theirs.calls[i])
    their_squares, our_squares = theirs.squared_errors(truths)[i], ours.squared_errors(truths)
    errors = np.sqrt(our_squares.mean(axis=(1, 2)))
    error = float(np.sqrt(their_squares.mean()))
    needed = calls_to_reach(error, ours.calls, errors)
    at_same = float(np.exp(np.interp(np.log(calls), np.log(ours.calls), np.log(np.maximum(errors, 1e-15)))))
    low, high = np.quantile(_bootstrap(their_squares, our_squares, ours.calls), (0.025, 0.975), method="nearest") / calls
    by_input = [calls_to_reach(float(np.sqrt(square.mean())), ours.calls, np.sqrt(our_squares[:, k].mean(axis=1))) / calls
                for k, square in enumerate(their_squares)]
    return {"domain": domain, "peer": peer, "samples": theirs.samples[i], "calls": calls, "error": error,
            "ours_at_same_calls": at_same, "calls_we_need": needed, "ratio": needed / calls, "ratio_low": float(low),
            "ratio_high": float(high), "ratio_of_each_input": by_input, "reached": needed / calls <= TARGET_RATIO}


def _bootstrap(their_squares: Floats, our_squares: Floats, calls: Floats) -> list[float]:
    """The calls we need, with repeats drawn anew."""
    random = np.random.default_rng(0)
    inputs, repeats = their_squares.shape
    found = []
    for _ in range(BOOTSTRAPS):
        first, second = random.integers(repeats, size=(2, inputs, repeats))
        error = np.sqrt(np.take_along_axis(their_squares, first, axis=1).mean())
        errors = np.sqrt(np.take_along_axis(our_squares, second[None], axis=2).mean(axis=(1, 2)))
        found.append(calls_to_reach(float(error), calls, errors))
    return found


def calls_to_reach(error: float, calls: Floats, errors: Floats) -> float:
    """Where the curve, straight between its points in logarithms, falls below `error` for good; infinite where it does not.

    Where the first point is below already, its calls are the answer: an upper bound.
    """
    above = np.flatnonzero(errors > error)
    if not len(above):
        return float(calls[0])
    last = int(above[-1])
    if last == len(calls) - 1:
        return float("inf")
    high, low = np.log(np.maximum(errors[last:last + 2], 1e-15))
    share = (high - np.log(error)) / (high - low)
    return float(np.exp((1 - share) * np.log(calls[last]) + share * np.log(calls[last + 1])))
