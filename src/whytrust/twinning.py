"""What a user types to see whether explainers follow the net or its answer: `twins`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from whytrust import api, legible
from whytrust import inputs as reading
from whytrust.attacking import attack
from whytrust.core import Floats, generator
from whytrust.measuring import RANDOM, labelled
from whytrust.stats import Rate
from whytrust.store import plain
from whytrust.studies.twins import SETTINGS, Followed, alike, as_correlation, as_share, followed

USUAL = ("saliency", "integrated_gradients", "guided_backprop", "grad_cam", "occlusion")


@dataclass(frozen=True)
class Twins:
    """Each explainer, tried on a net and its untrained twin: `print(twins)` says who follows the net.

    `found` has one entry an explainer, of the inputs that both nets are right about. `right` is the share of inputs on which
    the untrained net is right as they are ("raw") and enhanced, and the trained one ("trained").
    """

    found: Mapping[str, Followed]
    right: Mapping[str, float]
    n: int  # inputs that both are right about
    of: int
    errors: Mapping[int, str] = field(default_factory=dict)
    failed: Mapping[str, str] = field(default_factory=dict)  # explainers, and why

    def table(self) -> list[dict[str, Any]]:
        """A row an explainer."""
        return [{"explainer": name, "like_trained": _value(one.like_trained), "like_untrained": _value(one.like_untrained),
                 "more_like_untrained": 0.5 + one.nearer.value, "low": max(0.5 + one.nearer.low, 0.0),
                 "high": min(0.5 + one.nearer.high, 1.0), "verdict": one.words} for name, one in self.found.items()]

    def to_json(self) -> dict[str, Any]:
        """Every number, as plain data."""
        return dict(plain({"rows": self.table(), "right": dict(self.right), "n": self.n, "of": self.of,
                           "errors": {str(i): error for i, error in self.errors.items()}, "failed": dict(self.failed)}))

    def __str__(self) -> str:
        """Who follows the net."""
        shares = {which: f"{100 * right:.0f} %" for which, right in self.right.items()}
        lines = [f"The untrained net is right on {shares['raw']} of {self.of} inputs as they are and on {shares['enhanced']} "
                 f"of them enhanced, the trained one on {shares['trained']}."]
        if not self.n:
            return legible.lines([*lines, "There is no input that both are right about, and so nothing to compare: enhance "
                                  "with a larger epsilon or more iterations."])
        lines.append(f"On the {self.n} that both are right about, rank correlations of the enhanced untrained net's "
                     "explanations with those of")
        width = legible.width(self.found)
        for name, one in self.found.items():
            lines.append(f"  {name:<{width}}  the trained net {as_correlation(one.like_trained)}, the same net unenhanced "
                         f"{as_correlation(one.like_untrained)}; nearer to the latter on {as_share(one.nearer)}: {one.words}")
        lines += [f"  {name:<{width}}  failed on {error}" for name, error in self.failed.items()]
        lines += [f"input {i} failed: {error}" for i, error in self.errors.items()]
        return legible.lines(lines)


def twins(model: Any, untrained: Any, x: Any, labels: Any, method: Any = USUAL, *, parts: Any = None, epsilon: float = 0.3,
          step: float = 0.03, iterations: int = 30, units: str = "input", seed: int = 0, **options: Any) -> Twins:
    """Do explanations follow the net, or its answer? A net beside the same net untrained, which enhanced inputs make right.

    `model` and `untrained` are two nets of one kind, after its training and before; `x` several inputs (eight at least, to
    decide anything) with their true `labels`. Each input is enhanced for the untrained net (`iterations` signed steps within
    `epsilon`; see wt.attack, "enhance"), and explained three times for its true label: by the untrained net as it is and
    enhanced, by the trained net as it is. On inputs that both are right about, the second explanation should be like the
    first, which is of the same net, and unlike the third, which gives the same answer by other means. Explanations that cannot
    be told apart there do not see the net. `method`, `parts` and further options are those of wt.explain; random scores stand
    beside.
    """
    trained, before = api.model(model), api.model(untrained)
    known = {name for names in reading.OPTIONS.values() for name in names}
    of_parts = reading.prepare({name: value for name, value in options.items() if name in known})
    items = reading.several(x, of_parts)
    if items is None or len(items) < 2:
        raise ValueError("twins are compared on several inputs, in a list or a batch, got one")
    trained, before = (reading.for_sounds(one, items, parts, of_parts) for one in (trained, before))
    truths = list(labels) if np.ndim(labels) == 1 else []
    if len(truths) != len(items):
        raise ValueError(f"labels must have the true class of each of {len(items)} inputs, got {np.shape(labels)}")
    called = labelled(method)
    made = attack(before, items, "enhance", targets=truths, seed=seed, epsilon=epsilon, step=step, iterations=iterations,
                  units=units, bounds=None)
    cases, errors = [], {i: f"{type(e).__name__}: {e}" for i, e in made.errors.items()}
    failed: dict[str, list[str]] = {}
    for i, item in enumerate(items):
        if i in errors:
            continue
        case = _Case(trained, before, item, made[i], truths[i], parts, seed, options, of_parts)
        scores = {}
        for name, one in called.items():
            try:
                scores[name] = case.scores(one)
            except Exception as error:  # of this explainer and input; the others go on
                failed.setdefault(name, []).append(f"{type(error).__name__}: {error}")
        rngs = generator(seed, RANDOM, i)
        count = len(next(iter(scores.values()))["raw"]) if scores else 0
        scores[RANDOM] = {which: rngs.standard_normal(count) for which in SETTINGS}
        cases.append((case.right(), {name: alike(some) for name, some in scores.items() if count > 1}))
    if not cases:
        raise ValueError(f"no input could be enhanced; the first: {next(iter(errors.values()))}")
    both = [found for right, found in cases if right["enhanced"] and right["trained"]]
    names = [*called, RANDOM]
    told = {name: f"{len(some)} of {len(cases)} inputs, the first: {some[0]}" for name, some in failed.items()}
    return Twins({name: followed([one[name] for one in both if name in one]) for name in names if any(name in o for o in both)},
                 {which: float(np.mean([right[which] for right, _ in cases])) for which in SETTINGS},
                 len(both), len(cases), errors, told)


@dataclass(frozen=True)
class _Case:
    """One input in its three settings."""

    trained: Any
    before: Any
    raw: Any
    enhanced: Any
    label: Any
    parts: Any
    seed: int
    options: Mapping[str, Any]
    of_parts: Mapping[str, Any]

    def _settings(self) -> dict[str, tuple[Any, Any]]:
        return {"raw": (self.before, self.raw), "enhanced": (self.before, self.enhanced), "trained": (self.trained, self.raw)}

    def scores(self, method: Any) -> dict[str, Floats]:
        """By setting, one score a part."""
        found = {which: api.explain(model, item, method, target=self.label, parts=self.parts, seed=self.seed, **self.options)
                 for which, (model, item) in self._settings().items()}
        return {which: np.asarray(e.scores) for which, e in found.items()}

    def right(self) -> dict[str, bool]:
        """By setting, whether the model's answer is the true label."""
        found = {}
        for which, (model, item) in self._settings().items():
            cut = reading.cut(item, self.parts, model.layout, dict(self.of_parts), model.reads)
            scores = model(cut.compose(np.ones((1, len(cut.names)), dtype=bool), generator(self.seed)))
            found[which] = int(model.labels(scores)[0]) == model.class_index(self.label, scores.shape[1])
        return found


def _value(mean: Rate | None) -> float | None:
    return None if mean is None else mean.value
