"""The nouns everything else is written in: an input's parts, and what is drawn from them.

Imports numpy and the checked model alone; every other module imports this one.
"""

from __future__ import annotations

import difflib
import importlib
import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, get_args, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from whytrust import limits
from whytrust.checked import Batch as Batch
from whytrust.checked import Floats as Floats

Masks = NDArray[np.bool_]
"""(n, d): row i says which of the d parts input i shows."""


class MissingExtra(ImportError):
    """An optional library is needed and not installed; the message names the pip command."""


class AllFailed(ValueError):
    """Every case of a run failed, so that it has no finding; the message says why the first did."""


def need(module: str, extra: str) -> Any:
    """Import an optional library, or say in one line how to get it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingExtra(
            f"this needs {module.split('.')[0]}, which could not be imported ({error}); "
            f"install it with: pip install 'whytrust[{extra}]'"
        ) from error


ALIASES = {
    "alpha": ("step",), "baselines": ("baseline",), "eps": ("epsilon",), "hide_color": ("fill",),
    "internal_batch_size": ("batch_size",), "iters": ("iterations",), "max_iter": ("iterations",), "n_samples": ("samples",),
    "n_steps": ("steps", "iterations"), "nsamples": ("samples",), "nt_samples": ("samples",), "num_features": ("features",),
    "num_samples": ("samples",), "perturbations_per_eval": ("batch_size",), "radius": ("epsilon",), "stdevs": ("sigma",),
    "step_num": ("iterations",), "step_size": ("step",), "steps": ("iterations",), "target": ("targets",),
}
"""What other libraries, or other methods here, call an option."""


def near(name: str, known: Iterable[str]) -> str:
    """For the error about a name that nobody knows: what others call it, or the nearest that somebody does."""
    names = sorted(known)
    close = [one for one in ALIASES.get(name, ()) if one in names] or difflib.get_close_matches(name.lower(), names, 1)
    return f" (did you mean {close[0]!r}?)" if close else ""


def generator(seed: int, *case: str | int) -> np.random.Generator:
    """The one source of randomness: the same (seed, case) gives the same stream, in any order of cases."""
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise ValueError(f"seed must be a whole number >= 0, got {seed!r}")
    words = [int(seed)] + [c if isinstance(c, int) else zlib.crc32(c.encode()) for c in case]
    return np.random.default_rng(words)


def check_weighable(d: int) -> None:
    """Refuse so many parts that comparing them would take all memory, and no reader would look at them."""
    if d > limits.WEIGHED:
        raise ValueError(f"at most {limits.WEIGHED:,} parts can be hidden and compared, got {d:,}; cut coarser parts (such as "
                         "sentences), give a smaller input, or ask a method with gradients")


Sense = Literal["signed", "size", "for", "nothing"]
"""What a score says: for (+) or against (−) the target, how much a part matters and no more, what speaks for the target alone,
or nothing of the model."""
SENSES: tuple[Sense, ...] = get_args(Sense)


# --- parts ------------------------------------------------------------------------------------------------------------


class View(Protocol):
    """What a reader is shown of one input: enough to draw scores over it, and no more."""

    @property
    def kind(self) -> str:
        """image, text, sound or table."""
        ...

    def spread(self, scores: Floats) -> Floats:
        """One number a part -> an array shaped like the input as a reader knows it."""
        ...

    def to_json(self) -> dict[str, Any]:
        """Plain data from which `views.from_json` makes the same view."""
        ...


@runtime_checkable
class Parts(Protocol):
    """One input, cut into d parts that can each be kept or hidden.

    A mask of ones composes the input itself. A fill that draws at random takes its numbers from `rng` row by row, so that
    the inputs do not depend on how the masks are split into batches.
    """

    @property
    def domain(self) -> str:
        """image, text, audio or tabular: which of a method's defaults apply."""
        ...

    @property
    def names(self) -> Sequence[str]:
        """What each part is called; as many as there are parts."""
        ...

    @property
    def deterministic(self) -> bool:
        """May a mask be asked once and remembered? Not where the fill draws at random."""
        ...

    @property
    def view(self) -> View:
        """What a reader is shown."""
        ...

    def compose(self, masks: Masks, rng: np.random.Generator) -> Batch:
        """(n, d) masks -> a batch of n inputs; input i shows exactly the parts of masks[i]."""
        ...

    def pool(self, map: Floats, how: str) -> Floats:
        """A map shaped like the input -> one number a part; `how` is mean, mean_abs or mean_pos."""
        ...


@dataclass(frozen=True)
class Draws:
    """Inputs drawn at random around one input, and how an interpretable model sees them.

    `controls` are columns whose mean given the design row is known to be zero, each made from the part `control_of` names:
    taking off what they explain leaves the weights' meaning alone and takes noise away. `chances`, where given, says that the
    rows are all there is, each with its probability.
    """

    design: Floats
    rows: Callable[[slice], Batch]
    origin: Floats
    controls: Floats | None = None
    control_of: NDArray[np.intp] | None = None
    many: bool = False  # controls: each is to be weighed by itself
    chances: Floats | None = None

    def __len__(self) -> int:
        """How many inputs were drawn."""
        return len(self.design)


@runtime_checkable
class DrawnParts(Parts, Protocol):
    """Parts whose values are drawn from training data rather than hidden: what LIME on a table needs."""

    def draw(self, n: int, rng: np.random.Generator) -> Draws:
        """n inputs drawn independently."""
        ...

    def support(self, limit: int) -> Draws | None:
        """Every input that could be drawn, with its probability; None where there are more than `limit`."""
        ...


@runtime_checkable
class LayeredParts(Parts, Protocol):
    """Parts that are places which another input of the same shape has too, so that one input can be laid over another."""

    def like(self, other: Any) -> LayeredParts:
        """The same cut of another input, hidden in the same way."""
        ...

    def over(self, below: Any) -> Parts:
        """This input where a mask shows a part, and `below` where it hides one; nothing is drawn at random."""
        ...

    def squared_change(self, since: Any) -> Floats:
        """How far each value is from that of another input, squared: a map to pool, 0 where nothing changed."""
        ...


@runtime_checkable
class NearParts(Parts, Protocol):
    """Parts of an input that has others nearby, which hardly differ from it."""

    def near(self, radius: float, rng: np.random.Generator) -> Parts:
        """The same parts of another input nearby: values move by up to `radius` of their range.

        In a text two neighbouring words trade places, and each is still the part that it was.
        """
        ...


@runtime_checkable
class CoveredParts(Parts, Protocol):
    """Parts that can be hidden behind one thing or another: a metric that hides parts must not hang on which."""

    @property
    def baselines(self) -> tuple[str, ...]:
        """What they can be hidden behind, by name."""
        ...

    def behind(self, baseline: str, rng: np.random.Generator) -> Parts:
        """The same parts, hidden behind that; noise is drawn once, so that a mask always shows the same."""
        ...


class Dials(Protocol):
    """Values that an input is made of by adding up, and that speak of its parts where the input's own values do not.

    How loud each frequency is at each moment, or the gain of each stem: a gradient with respect to the input, pulled through
    the sum, is one with respect to these.
    """

    @property
    def own(self) -> Floats:
        """The values that make the input itself; zeros make what is left when everything is turned down."""
        ...

    @property
    def called(self) -> str:
        """What they are, in a few words."""
        ...

    @property
    def told(self) -> str:
        """What to know of them, for whoever reads an explanation in their terms."""
        ...

    @property
    def spread(self) -> float:
        """The range that a share of noise is of."""
        ...

    def inputs(self, values: Floats) -> Floats:
        """(n, *own.shape) -> n inputs; `own` gives the input to the bit."""
        ...

    def pulled(self, gradients: Floats) -> Floats:
        """Gradients with respect to n inputs -> with respect to the values, (n, *own.shape)."""
        ...

    def pool(self, map: Floats, how: str) -> Floats:
        """A map over the values -> one number a part."""
        ...


def check_masks(masks: Any, d: int) -> Masks:
    """Masks as an (n, d) array of booleans, or one clear error."""
    array = np.asarray(masks)
    if array.ndim != 2 or array.shape[1] != d:
        hint = "; pass masks[None] to ask about a single mask" if array.ndim == 1 else ""
        raise ValueError(f"masks must have one column per part: expected (n, {d}), got {array.shape}{hint}")
    return np.ascontiguousarray(array, dtype=bool)


def check_baseline(name: str, known: Sequence[str]) -> None:
    """Refuse what parts cannot be hidden behind."""
    if name not in known:
        hint = near(name, known) if isinstance(name, str) else ""
        raise ValueError(f"a baseline must be one of {', '.join(known)} here, got {name!r}{hint}")


def over_channels(values: Floats) -> Floats:
    """The sum over the last axis; numpy's own takes ten times as long where that has three entries."""
    if values.shape[-1] != 3:
        return np.asarray(values.sum(axis=-1))
    return np.asarray(values[..., 0] + values[..., 1] + values[..., 2])  # in numpy's order, to the bit


def runs(labels: NDArray[Any]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Where stretches of equal labels begin, and how long they are."""
    starts = np.flatnonzero(np.concatenate([labels[:1] == labels[:1], labels[1:] != labels[:-1]]))
    return starts, np.diff(starts, append=len(labels))


def pool_labels(map: Floats, labels: NDArray[Any], d: int, how: str) -> Floats:
    """One number for each label 0 … d-1 of a map: its mean (of values, sizes, or 0 for negative ones), sum or signed maximum.

    The sum is right for values that add up, channels included; the signed maximum is the value of largest magnitude (the first
    of equals), as sub-words are merged onto words.
    """
    change: dict[str, Callable[[Floats], Floats]] = {
        "mean": lambda m: m, "mean_abs": np.abs, "mean_pos": lambda m: np.maximum(m, 0), "sum": lambda m: m,
        "signed_max": lambda m: m}
    if how not in change:
        raise ValueError(f"pooling must be one of {', '.join(change)}, got {how!r}")
    values = np.asarray(map, dtype=np.float64)
    if values.shape[: labels.ndim] != labels.shape:
        raise ValueError(f"the map must be shaped like the input: expected {labels.shape}, got {values.shape}")
    flat, by_place = labels.ravel(), change[how](values).reshape(labels.size, -1)
    totals = over_channels(by_place)
    if how == "signed_max":
        values = totals / by_place.shape[1]
        rising = np.argsort(np.abs(values[::-1]), kind="stable")
        largest = np.zeros(d)
        largest[flat[::-1][rising]] = values[::-1][rising]  # of several for one label, numpy keeps the last
        return largest
    # Run by run: neighbours mostly have one label, and sums that wait for each other are slow.
    starts, lengths = runs(flat)
    sums = np.bincount(flat[starts], weights=np.add.reduceat(totals, starts), minlength=d)
    if how == "sum":
        return np.asarray(sums)
    counts = np.bincount(flat[starts], weights=lengths, minlength=d)
    return np.asarray(sums / np.maximum(counts * by_place.shape[1], 1))
