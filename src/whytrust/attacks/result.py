"""What an attack came to: the inputs before and after, and whether the model, asked afresh, was fooled."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whytrust import legible
from whytrust.attacks import figures
from whytrust.attacks.ball import Bounds, ends
from whytrust.core import Floats


@dataclass(frozen=True, eq=False)
class Outcome:
    """One attacked input. Whatever is said of the model here it said in a fresh forward pass, not in the search."""

    clean: Floats
    adversarial: Floats
    success: bool
    believed: bool  # did the search itself stop because the goal was reached?
    iterations: int
    flat: bool  # was the first gradient zero everywhere, so that there was nothing to follow?
    target: int | None
    clean_label: int
    label: int
    clean_scores: Floats
    scores: Floats
    margin: float  # how far the goal is reached, in the model's own scores; negative: how far it is missed
    linf: float
    l2: float
    relative_linf: float  # in parts of the range of the bounds, or of the input's own
    relative_l2: float  # in parts of the input's own length
    epsilon: float  # in the units of the input
    step: float
    within: bool  # did epsilon and the bounds hold?
    grey: bool = False  # are its two axes those of a picture, to which the model's axis of channels was added?


@dataclass(frozen=True, eq=False, repr=False)
class Attacked:
    """Adversarial inputs and what the model says of them; `attacked[i]` is input i, `attacked.outcomes[i]` all about it.

    The arrays (`success`, `labels`, `linf`, …) have one entry an input. Where an input failed, which `errors` explains, its
    outcome and arrays are None, its numbers NaN, its labels and iterations -1. Success is of this model, in batches of this
    size: nets round, and an adversary that barely crossed the border may not cross it elsewhere; `margin` guards against that.
    """

    method: Any
    outcomes: tuple[Outcome | None, ...]
    errors: dict[int, Exception] = field(default_factory=dict)
    passes: int = 0  # inputs × (forward and backward pass)
    model: str = "model"
    classes: tuple[str, ...] | None = None
    bounds: Bounds = None
    seed: int = 0
    search: tuple[dict[str, Any], ...] | None = None  # every trial of a grid search; this is the best of them
    logits: bool = False  # was the model attacked through its logits?

    def __len__(self) -> int:
        """How many inputs were given."""
        return len(self.outcomes)

    def __getitem__(self, index: int) -> Floats:
        """Adversarial input `index`, or the error that it came to."""
        outcome = self.outcomes[index]
        if outcome is None:
            raise self.errors[index % len(self)]
        return outcome.adversarial

    def __iter__(self) -> Iterator[Floats | None]:
        """The adversarial inputs; None for one that failed."""
        return (None if o is None else o.adversarial for o in self.outcomes)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        """All adversarial inputs as one array, where that is possible."""
        stacked = self.adversarial
        if not isinstance(stacked, np.ndarray):
            why = f"input {min(self.errors)} failed: {self.errors[min(self.errors)]}" if self.errors else "their shapes differ"
            raise ValueError(f"the adversarial inputs cannot be one array, for {why}; take them one by one, attacked[i]")
        return stacked if dtype is None else stacked.astype(dtype, copy=bool(copy) or stacked.dtype != np.dtype(dtype))

    @property
    def adversarial(self) -> Any:
        """The adversarial inputs: one array, or a list where shapes differ or an input failed (None)."""
        return _stacked(list(self))

    @property
    def clean(self) -> Any:
        """The inputs as they were, in the type they were attacked in."""
        return _stacked([None if o is None else o.clean for o in self.outcomes])

    @property
    def success(self) -> NDArray[np.bool_]:
        """Which inputs reached their goal, as a fresh forward pass of the model says."""
        return self._each(lambda o: o.success, False, bool)

    @property
    def success_rate(self) -> float:
        """Share of successes among the inputs that did not fail."""
        return float(np.mean([o.success for o in self.outcomes if o is not None]))

    @property
    def unconfirmed(self) -> NDArray[np.intp]:
        """Inputs that the search saw fooled and a fresh forward pass did not: a model that rounds, or answers at random."""
        return np.flatnonzero([o is not None and o.believed and not o.success for o in self.outcomes])

    @property
    def iterations(self) -> NDArray[np.intp]:
        """Steps taken."""
        return self._each(lambda o: o.iterations, -1, np.intp)

    @property
    def targets(self) -> NDArray[np.intp]:
        """The class each input was moved towards; -1 where it was moved away from its own."""
        return self._each(lambda o: -1 if o.target is None else o.target, -1, np.intp)

    @property
    def clean_labels(self) -> NDArray[np.intp]:
        """What the model says of the inputs as they were."""
        return self._each(lambda o: o.clean_label, -1, np.intp)

    @property
    def labels(self) -> NDArray[np.intp]:
        """What the model says of the adversarial inputs."""
        return self._each(lambda o: o.label, -1, np.intp)

    @property
    def clean_scores(self) -> Floats:
        """(n, classes) scores of the inputs as they were."""
        return self._rows(lambda o: o.clean_scores)

    @property
    def scores(self) -> Floats:
        """(n, classes) scores of the adversarial inputs."""
        return self._rows(lambda o: o.scores)

    @property
    def margins(self) -> Floats:
        """How far the goal is reached in the model's own scores: the target ahead, or the clean label behind."""
        return self._each(lambda o: o.margin, np.nan, np.float64)

    @property
    def at_floor(self) -> Floats | None:
        """Share of each input's numbers that were moved down to the least allowed one; None where there is none."""
        floor = ends(self.bounds)[0]
        shares = self._each(lambda o: float(np.mean((o.adversarial <= floor) & (o.clean > floor))), np.nan, np.float64)
        return shares if np.isfinite(floor) else None

    @property
    def linf(self) -> Floats:
        """Largest change of a number."""
        return self._each(lambda o: o.linf, np.nan, np.float64)

    @property
    def l2(self) -> Floats:
        """Length of the change."""
        return self._each(lambda o: o.l2, np.nan, np.float64)

    @property
    def relative_linf(self) -> Floats:
        """Largest change in parts of the range of the bounds, or of the input's own range where there are none."""
        return self._each(lambda o: o.relative_linf, np.nan, np.float64)

    @property
    def relative_l2(self) -> Floats:
        """Length of the change in parts of the input's own length."""
        return self._each(lambda o: o.relative_l2, np.nan, np.float64)

    @property
    def epsilon(self) -> Floats:
        """How far each input was allowed to move, in the units of the input."""
        return self._each(lambda o: o.epsilon, np.nan, np.float64)

    @property
    def within(self) -> NDArray[np.bool_]:
        """Where epsilon and the bounds held, computed from the returned arrays."""
        return self._each(lambda o: o.within, False, bool)

    def class_name(self, label: int | None) -> str | None:
        """What a class is called; None for none."""
        if label is None or label < 0:
            return None
        return f"class {label}" if self.classes is None else self.classes[label]

    def table(self) -> list[dict[str, Any]]:
        """One row of plain data an input, failed ones too."""
        return [self._row(i, o) for i, o in enumerate(self.outcomes)]

    def _row(self, index: int, o: Outcome | None) -> dict[str, Any]:
        if o is None:
            error = self.errors[index]
            return {"input": index, "success": False, "error": f"{type(error).__name__}: {error}"}
        numbers = {name: _plain(getattr(o, name)) for name in (
            "iterations", "margin", "linf", "l2", "relative_linf", "relative_l2", "epsilon", "within")}
        if self.at_floor is not None:
            numbers["at_floor"] = float(self.at_floor[index])
        return {"input": index, "success": o.success, "before": self.class_name(o.clean_label),
                "after": self.class_name(o.label), "target": self.class_name(o.target), "target_index": o.target,
                "clean_label": o.clean_label, "label": o.label, "score_before": float(o.clean_scores[o.clean_label]),
                "score_after": float(o.scores[o.label]), **numbers, "error": None}

    def to_json(self) -> dict[str, Any]:
        """Plain data: how it was done and what came of each input, without the arrays (`np.save` those)."""
        return {"attack": type(self.method).__name__, "settings": {k: _plain(v) for k, v in asdict(self.method).items()},
                "model": self.model, "seed": self.seed, "bounds": None if self.bounds is None else list(self.bounds),
                "inputs": len(self), "successes": int(self.success.sum()), "success_rate": self.success_rate,
                "passes": self.passes, "unconfirmed": self.unconfirmed.tolist(), "table": self.table(),
                "search": None if self.search is None else list(self.search)}

    def plot(self, n: int = 4) -> Any:
        """A matplotlib figure of the first n inputs: before, after, and the difference, made large enough to be seen."""
        shown = [(i, o) for i, o in enumerate(self.outcomes) if o is not None][:n]
        if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1:
            raise ValueError(f"n must be a whole number >= 1, got {n!r}")
        titles = [f"input {i}{'' if o.success else ', goal not reached'}\n{self.class_name(o.clean_label)} → "
                  f"{self.class_name(o.label)}" for i, o in shown]
        pairs = [(o.clean[None], o.adversarial[None]) if o.grey else (o.clean, o.adversarial) for _, o in shown]
        made = figures.figure([a for a, _ in pairs], [b for _, b in pairs], titles, self.bounds)
        if len(shown) < len(self.outcomes):
            made.suptitle(f"{len(shown)} of {len(self.outcomes)} inputs", fontsize=9)
        return made

    def __repr__(self) -> str:
        """One line: the arrays would fill the screen."""
        return f"<{str(self).splitlines()[0]}>"

    def __str__(self) -> str:
        """A few lines: how many were fooled, how soon, how far they were moved, and what the model says now."""
        done = [o for o in self.outcomes if o is not None]
        wins = [o for o in done if o.success]
        verb = "enhanced" if self.method.seeks_truth else "fooled"
        lines = [f"{type(self.method).__name__} on {self.model}: {len(wins)} of {len(done)} inputs {verb} "
                 f"({self.success_rate:.0%})" + (f", {len(self.errors)} failed" if self.errors else "")]
        steps = [o.iterations for o in wins or done]
        lines.append(f"  {'where it worked' if wins else 'in vain'}: {np.median(steps):g} steps (median, at most {max(steps)})"
                     f"; {self.passes:,} passes forward and back in all")
        lines.append(f"  change: {_spread([o.linf for o in done])} in any number, {_spread([o.l2 for o in done])} in all "
                     f"(L2{_share([o.relative_l2 for o in done])}); {self._limits(done)}")
        turns = Counter((self.class_name(o.clean_label), self.class_name(o.label)) for o in done)
        told = [f"{a} → {b}" + (f" ({count})" if count > 1 else "") for (a, b), count in turns.most_common(4)]
        lines.append(f"  the model says: {', '.join(told)}{', …' if len(turns) > 4 else ''}")
        return legible.lines(lines + [f"  {note}" for note in self.notes])

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader must know before believing the success rate."""
        flat = sum(o is not None and o.flat and not o.success for o in self.outcomes)
        notes = []
        if len(self.unconfirmed):
            notes.append(f"{len(self.unconfirmed)} inputs were fooled in the search and not in a fresh forward pass: the model "
                         "answers differently each time, or they barely crossed the border (pass margin=)")
        if flat:
            notes.append(f"{flat} inputs had a gradient of zero everywhere: nothing could be followed, which is no robustness; "
                         + ("the net saturates or rounds before its logits" if self.logits else
                            "if the model ends in a softmax or sigmoid, give its logits with output='logit'"))
        own = self.method.notes([o for o in self.outcomes if o is not None]) if hasattr(self.method, "notes") else []
        if not self.success.any() and not flat and not own and not self.method.seeks_truth:
            notes.append(self._in_vain())
        if self.bounds is None and getattr(self.method, "bounds", None) == "auto":
            spans = [float(o.clean.max()) - float(o.clean.min()) for o in self.outcomes if o is not None]
            notes.append("no bounds are known for such inputs, so values may have left the range that real ones have, and "
                         f"epsilon is in the input's own units, of which the inputs span {np.median(spans):.3g}; pass "
                         "bounds=(low, high), or bounds=None if there is none")
        notes += own
        if self.errors:
            notes.append(f"input {min(self.errors)} failed: {self.errors[min(self.errors)]}"
                         + (f" (and {len(self.errors) - 1} more: see .errors)" if len(self.errors) > 1 else ""))
        return tuple(notes)

    def _in_vain(self) -> str:
        """What to try where no input reached its goal."""
        done = [o for o in self.outcomes if o is not None]
        if self.method.margin > 0 and any(o.label == o.target or (o.target is None and o.label != o.clean_label) for o in done):
            return (f"labels turned, but none by the margin of {self.method.margin:g} that was asked for; a smaller margin, a "
                    "larger epsilon or more iterations may do it")
        given, used, units = getattr(self.method, "epsilon", None), done[0].epsilon, getattr(self.method, "units", "input")
        base, shares = used if given is None else given, units == "auto" and given is not None and self.bounds
        wider = [f"{factor * base:.3g}" for factor in (2, 5, 10) if not shares or factor * base < 1]
        unit = ", units='input'" if given is None and units == "auto" else ""
        tried = self.search is not None or not wider
        several = "" if tried else f", and several can be tried at once, as epsilon=[{', '.join(wider)}]{unit}"
        return (f"no input {'was fooled' if done[0].target is None else 'reached its target'} within epsilon and "
                f"{self.method.iterations} steps: a larger epsilon or more iterations may do it{several}; that this attack "
                "failed is no proof that another would")

    def _limits(self, done: list[Outcome]) -> str:
        allowed = sorted({f"{o.epsilon:.4g}" for o in done})
        bounds = "no bounds" if self.bounds is None else "bounds {:g} to {:g}".format(*ends(self.bounds))
        held = "held" if all(o.within for o in done) else f"broken by {sum(not o.within for o in done)}"
        low, high = ends(self.bounds)
        floor = "" if self.at_floor is None or np.isfinite(high) else (
            f"; {np.nanmedian(self.at_floor):.1%} of the values brought down to {low:g}")
        return f"epsilon {' / '.join(allowed)} and {bounds} {held}{floor}"

    def _each(self, of: Callable[[Outcome], Any], missing: Any, dtype: Any) -> NDArray[Any]:
        return np.array([missing if o is None else of(o) for o in self.outcomes], dtype=dtype)

    def _rows(self, of: Callable[[Outcome], Floats]) -> Floats:
        columns = max(of(o).size for o in self.outcomes if o is not None)
        return np.array([np.full(columns, np.nan) if o is None else of(o) for o in self.outcomes])


def _stacked(inputs: list[Any]) -> Any:
    """One array where every input is there and they are alike."""
    alike = all(a is not None for a in inputs) and len({(a.shape, a.dtype) for a in inputs}) == 1
    return np.stack(inputs) if alike else inputs


def _plain(value: Any) -> Any:
    """A value that JSON has: NaN, which it has not, becomes None."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, tuple | list):
        return [_plain(v) for v in value]
    return None if isinstance(value, float) and not np.isfinite(value) else value


def _share(parts: list[float]) -> str:
    """The median of what can be said; an input of zeros has no length to compare with."""
    known = [p for p in parts if np.isfinite(p)]
    return f", {np.median(known):.1%} of the input" if known else ""


def _spread(values: list[float]) -> str:
    """A median and the largest."""
    middle, most = float(np.median(values)), max(values)
    return f"{middle:.3g}" if f"{middle:.3g}" == f"{most:.3g}" else f"{middle:.3g} (at most {most:.3g})"
