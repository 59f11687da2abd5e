"""Blind controls of an audit: rankings of an input's parts by somebody who does not know why the model decided.

An explainer that always points at the middle of a picture beats parts drawn at random, because objects lie there. So every
audit asks the same of rankings that cannot know the cause: what each explainer says of *other* inputs, what all explainers say
on average, and what can be read off the input without its model.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.stats import rankdata

from whytrust.core import Floats, LayeredParts, pool_labels
from whytrust.domains.stems import StemParts
from whytrust.domains.tabular import TableParts
from whytrust.domains.text import TextParts
from whytrust.explainers.edges import strength
from whytrust.explanation import Explanation

DONORS = 3
"""Other inputs whose explanations are laid over an input one by one; the rates of these orders are averaged."""
RIDGE = 1e-3
"""The penalty of the linear model that imitates an explainer, as a share of the number of parts that it is fitted on."""
POOLINGS = ("mean", "mean_abs", "mean_pos", "sum", "signed_max")
Controls = dict[str, list[Floats]]
"""By name: one or several rows of scores, one score a part."""
Overlaps = tuple[NDArray[np.intp], NDArray[np.intp], Floats]
"""Which parts of one input overlap with which parts of another, and by how much; what is listed twice adds up."""


@dataclass(frozen=True, eq=False)
class Explained:
    """An input of the run, what can be read off it, and what the explainers say of it: a donor of scores for other inputs."""

    parts: LayeredParts
    shown: Mapping[str, Floats]
    answers: Mapping[str, Explanation]

    @cached_property
    def features(self) -> Floats:
        """(d, features): what can be read off each part, as values and as ranks."""
        return _features(self.shown)

    @cached_property
    def words(self) -> NDArray[np.str_]:
        """Of a text, its parts as words."""
        return np.array(_words(self.parts)) if isinstance(self.parts, TextParts) else np.array([], dtype=np.str_)

    @cached_property
    def ranks(self) -> dict[str, Floats]:
        """The standardised ranks of each explainer's scores."""
        return {name: _standard(rankdata(e.scores)) for name, e in self.answers.items()}


@dataclass
class BlindControls:
    """The blind controls of inputs that are explained together; what lies where from one input to another is kept."""

    explained: Mapping[str, Explained]
    _kept: dict[tuple[Any, ...], Any] = field(default_factory=dict)

    def of(self, case: str, parts: LayeredParts, shown: Mapping[str, Floats], others: Sequence[str]) -> Controls:
        """Every blind control of one input, whose parts may show something else by now, but are cut as they were.

        "shuffled:NAME" is what the explainer NAME says of up to three other inputs, "same answer:NAME" the mean of what it says
        of those with the same answer, "shuffled words:NAME" and "same answer words:NAME" what it says of the same words there.
        "imitation:NAME" and "curved imitation:NAME" are what a linear model says that predicts NAME's scores from all that is
        blind, or from that and its squares and products, fitted on the other inputs. "prior" is the mean of all explainers over
        all other inputs. The rest is read off the input. A control that ranks no part above another is left out.
        """
        found: Controls = {}
        means, this = [], Explained(parts, shown, {})
        for name in dict.fromkeys(name for other in others for name in self.explained[other].answers):
            donors = [other for other in others if name in self.explained[other].answers]
            laid = [self._laid(other, case, parts, name) for other in donors]
            answer = self._answer(case, name)
            alike = [i for i, other in enumerate(donors) if answer is not None and self._answer(other, name) == answer]
            found[f"shuffled:{name}"] = laid[:DONORS]
            if alike:
                found[f"same answer:{name}"] = [np.mean([_standard(laid[i]) for i in alike], axis=0)]
            if isinstance(parts, TextParts):
                scores = {other: _standard(self.explained[other].answers[name].scores) for other in donors}
                found[f"shuffled words:{name}"] = [self._mean(_same_word, scores, case, this)]
                scores = {donors[i]: scores[donors[i]] for i in alike}
                found[f"same answer words:{name}"] = [self._mean(_same_word, scores, case, this)]
            if len(donors) > 1:
                linear, curved = self._imitations(case, this, donors, name)
                found |= {f"imitation:{name}": [linear], f"curved imitation:{name}": [curved]}
            means.append(np.mean([_standard(scores) for scores in laid], axis=0))
        if means:
            found["prior"] = [np.mean(means, axis=0)]
        found |= {name: [scores] for name, scores in shown.items()}
        return {name: rows for name, rows in found.items() if any(np.ptp(scores) > 0 for scores in rows)}

    def _laid(self, other: str, case: str, parts: LayeredParts, name: str) -> Floats:
        """What an explainer says of another input, one score for each part of this one."""
        donor = self.explained[other]
        if isinstance(parts, TextParts):  # swapped words move the places of the others
            return laid_over(donor.answers[name], donor.parts, parts)
        if ("scores", other, case, name) not in self._kept:
            self._kept["scores", other, case, name] = laid_over(donor.answers[name], donor.parts, parts)
        return np.asarray(self._kept["scores", other, case, name])

    def _answer(self, case: str, name: str) -> int | None:
        """The class that an explainer was asked about, where it answered."""
        one = self.explained.get(case)
        return None if one is None or name not in one.answers else one.answers[name].target

    def _imitations(self, case: str, this: Explained, donors: Sequence[str], name: str) -> tuple[Floats, Floats]:
        """What the explainer would say if it knew no more than place, words and what can be read off an input.

        Ridge regression, on the other inputs, of the ranks of its scores: on what can be read off a part, and on the mean of
        what that leaves unexplained at the same place, and of the same word, in the inputs that are left. So a sum of blind
        rankings imitates itself. The second one has squares and products too.
        """
        ranks = {donor: self.explained[donor].ranks[name] for donor in donors}
        weights = _ridge([self.explained[donor].features for donor in donors], [ranks[donor] for donor in donors])
        left = {donor: ranks[donor] - self.explained[donor].features @ weights for donor in donors}
        known = [self._known(donor, self.explained[donor], {other: left[other] for other in donors if other != donor}, name)
                 for donor in donors]
        own, wanted, straight = self._known(case, this, left, name), [ranks[donor] for donor in donors], -self._bent(this)
        bent = _ridge([_curved(one, straight) for one in known], wanted)
        return np.asarray(own @ _ridge(known, wanted)), np.asarray(_curved(own, straight) @ bent)

    def _known(self, case: str, this: Explained, left: Mapping[str, Floats], name: str) -> Floats:
        """(d, features): all that is known of each part of an input without its explanation, the most telling last.

        What the others leave unexplained at the same place, and of the same word; before that the values and ranks that can be
        read off a part; before those, each of these ranks times what one unit of it adds at the same place in the others, and
        in those with the same answer: a fixed map times what an input shows is blind too.
        """
        answer = self._answer(case, name)
        alike = {other: values for other, values in left.items() if self._answer(other, name) == answer}
        columns = [*self._slopes(left, case, this), *self._slopes(alike, case, this), *this.features.T,
                   self._mean(_same_place, left, case, this)]
        if isinstance(this.parts, TextParts):
            columns.append(self._mean(_same_word, left, case, this))
        return np.column_stack(columns)

    def _bent(self, this: Explained) -> int:
        """How many columns of `_known`, the last ones, have squares and products in the curved imitation."""
        return len(this.shown) + 1 + isinstance(this.parts, TextParts)

    def _slopes(self, values: Mapping[str, Floats], case: str, this: Explained) -> Floats:
        """(what can be read off, d): each rank times what one unit of it adds to the values at the same place."""
        overlap, shown = self._overlap(_same_place, case, this), len(this.shown)
        every = [(values.get(other), one.features[:, shown:]) for other, one in self.explained.items()]
        both = np.vstack([features * (0 if own is None else own[:, None]) for own, features in every])
        squares = np.vstack([features**2 * (own is not None) for own, features in every])
        return np.asarray((this.features[:, shown:] * (overlap @ both) / (overlap @ squares + 0.5)).T)

    def _mean(self, how: Callable[[Explained, Explained], Overlaps], values: Mapping[str, Floats], case: str,
              this: Explained) -> Floats:
        """The mean of other inputs' values for each part of this one, weighted by how much they overlap; 0 where none do."""
        overlap = self._overlap(how, case, this)
        row = [values.get(other, np.zeros(len(one.parts.names))) for other, one in self.explained.items()]
        there = [np.full(len(one.parts.names), float(other in values)) for other, one in self.explained.items()]
        return np.asarray(overlap @ np.concatenate(row) / np.maximum(overlap @ np.concatenate(there), 1e-12))

    def _overlap(self, how: Callable[[Explained, Explained], Overlaps], case: str, this: Explained) -> sparse.csr_array:
        """(d, parts of all explained inputs): how much each part of this input overlaps with each of theirs."""
        key = ("overlap", how.__name__, this if isinstance(this.parts, TextParts) else case)  # swaps move the places of words
        if key not in self._kept:
            sizes = [len(one.parts.names) for one in self.explained.values()]
            starts = np.cumsum([0, *sizes])
            every = [how(one, this) for one in self.explained.values()]
            rows, values = (np.concatenate([overlaps[i] for overlaps in every]) for i in (0, 2))
            columns = np.concatenate([start + found for start, (_, found, _) in zip(starts, every, strict=False)])
            self._kept[key] = sparse.csr_array(sparse.coo_array((values, (rows, columns)),
                                                                shape=(len(this.parts.names), starts[-1])))
        return self._kept[key]


def _same_place(of: Explained, this: Explained) -> Overlaps:
    return placement(of.parts, this.parts)


def _same_word(of: Explained, this: Explained) -> Overlaps:
    rows, columns = np.nonzero(this.words[:, None] == of.words[None])
    return rows, columns, np.ones(len(rows))


def _features(shown: Mapping[str, Floats]) -> Floats:
    return np.column_stack([_standard(column) for column in (*shown.values(), *map(rankdata, shown.values()))])


def _curved(known: Floats, start: int) -> Floats:
    """The columns, a constant, and the squares and products of those from `start` on."""
    bent = known[:, start:]
    first, second = np.triu_indices(bent.shape[1])
    return np.column_stack([known, np.ones(len(known)), bent[:, first] * bent[:, second]])


def _ridge(rows: Sequence[Floats], wanted: Sequence[Floats]) -> Floats:
    """The weights that predict `wanted` from the columns of `rows`."""
    known = np.vstack(rows)
    gram = known.T @ known + RIDGE * len(known) * np.eye(known.shape[1])
    return np.asarray(np.linalg.solve(gram, known.T @ np.concatenate(wanted)))


def laid_over(explanation: Explanation, of: LayeredParts, parts: LayeredParts) -> Floats:
    """The scores of another input, one for each part of this one; a map that they were pooled from is pooled again."""
    how = str(explanation.settings.get("pooling") or "mean")
    if explanation.map is not None and how in POOLINGS and hasattr(of, "labels"):
        labels, theirs, values = _labels(parts), _labels(of), np.asarray(explanation.map, dtype=np.float64)
        if values.shape == theirs.shape and np.allclose(pool_labels(values, theirs, len(of.names), how), explanation.scores,
                                                        rtol=1e-3, atol=1e-9):
            return pool_labels(_stretched(values, labels.shape), labels, len(parts.names), how)
    rows, columns, shares = placement(of, parts)
    found = np.bincount(rows, weights=shares * explanation.scores[columns], minlength=len(parts.names))
    return np.asarray(found, dtype=np.float64)


def placement(of: LayeredParts, parts: LayeredParts) -> Overlaps:
    """How much of each part lies where each part of another input lies; the shares of a part add up to 1.

    By place, in texts by position between neighbours, in rows by column, in stems by name.
    """
    d, theirs = len(parts.names), len(of.names)
    every = np.arange(d)
    if isinstance(parts, TextParts):
        assert isinstance(of, TextParts)
        at = np.interp(_places(parts), _places(of), np.arange(theirs))
        below = np.minimum(at.astype(np.intp), max(theirs - 2, 0))
        columns = np.concatenate([below, np.minimum(below + 1, theirs - 1)])
        return np.tile(every, 2), columns, np.concatenate([1 - (at - below), at - below])
    if parts.domain == "tabular":
        return every, every, np.ones(d)
    if isinstance(parts, StemParts):
        same = np.array([[mine == other for other in of.names] for mine in parts.names], dtype=np.float64)
        shares = np.where(same.any(axis=1, keepdims=True), same, 1 / theirs)
        return np.repeat(every, theirs), np.tile(np.arange(theirs), d), shares.ravel()
    labels = _labels(parts).ravel()
    return labels, _stretched(_labels(of), _labels(parts).shape).ravel(), (1 / np.bincount(labels, minlength=d))[labels]


def read_off(parts: LayeredParts, rng: np.random.Generator,
             counts: Mapping[str, int] = MappingProxyType({})) -> dict[str, Floats]:
    """What can be said of each part without the model: where it lies, how large, sharp, loud, long, rare or unusual it is."""
    if isinstance(parts, TextParts):
        words = _words(parts)
        return {"early": -_places(parts), "long": np.array([float(len(word)) for word in words]),
                "rare": np.array([-float(counts.get(word, 0)) for word in words])}
    if isinstance(parts, TableParts):
        high = _deviations(parts)
        return {"unusual": _unusual(parts, high), "high": np.nan_to_num(high)}
    if isinstance(parts, StemParts):
        return {"loud": np.mean(np.square(parts.stems, dtype=np.float64), axis=1)}
    labels, d = _labels(parts), len(parts.names)
    edges = strength(parts, rng)
    found = {"centre": -pool_labels(_from_the_centre(labels.shape), labels, d, "mean"),
             "size": np.bincount(labels.ravel(), minlength=d).astype(np.float64)}
    if edges.shape == labels.shape:
        found["edges"] = pool_labels(edges, labels, d, "mean")
    if parts.domain == "audio":
        found["loud"] = pool_labels(_loudness(parts, labels), labels, d, "mean")
    else:
        found["bright"] = pool_labels(_brightness(parts, rng), labels, d, "mean")
    return found


def _labels(parts: Any) -> NDArray[np.intp]:
    """The part of each pixel, sample or cell."""
    return np.asarray(parts.labels, dtype=np.intp)


def _stretched(values: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    """A map in another shape: each place takes the value at the same share of the way along each axis."""
    if values.shape == shape:
        return values
    return values[np.ix_(*(np.arange(new) * old // new for old, new in zip(values.shape, shape, strict=True)))]


def _standard(scores: Floats) -> Floats:
    """Scores with mean 0 and deviation 1, so that no explainer's units outweigh another's."""
    spread = float(np.std(scores))
    return (scores - np.mean(scores)) / spread if spread > 0 else np.zeros(len(scores))


def _from_the_centre(shape: tuple[int, ...]) -> Floats:
    """How far each place is from the middle; half the input's length along an axis counts for 1."""
    axes = np.meshgrid(*((np.arange(n) + 0.5) / n * 2 - 1 for n in shape), indexing="ij")
    return np.asarray(np.sqrt(sum(axis**2 for axis in axes)))


def _brightness(parts: Any, rng: np.random.Generator) -> Floats:
    """The mean of each pixel's channels."""
    whole = np.asarray(parts.compose(np.ones((1, len(parts.names)), bool), rng)[0], dtype=np.float64)
    return whole if whole.ndim == 2 else whole.mean(axis=0 if getattr(parts, "channels_first", False) else -1)


def _loudness(parts: Any, labels: NDArray[np.intp]) -> Floats:
    """Of a waveform the size of each sample, of a spectrogram its values, of a waveform cut in frequency its transform's."""
    sound = np.asarray(parts.sound, dtype=np.float64)
    if sound.shape == labels.shape:
        return np.abs(sound) if sound.ndim == 1 else sound
    return np.asarray(np.abs(parts.dials.own))


def _deviations(parts: TableParts) -> Floats:
    """How far each number lies above its column's mean, in standard deviations; NaN of a category or a missing value."""
    return np.array([(float(value) - column.mean) / (column.sd or 1.0) if column.numeric and value is not None else np.nan
                     for column, value in zip(parts.statistics.columns, parts.row, strict=True)])


def _unusual(parts: TableParts, deviations: Floats) -> Floats:
    """The size of each number's deviation; of a category, how rare it is."""
    rare = [1.0 - dict(zip(column.atoms, column.chances, strict=True)).get(value, 0.0)
            for column, value in zip(parts.statistics.columns, parts.row, strict=True)]
    return np.where(np.isnan(deviations), rare, np.abs(deviations))


# --- words of texts ---------------------------------------------------------------------------------------------------


def word_counts(text: str) -> Counter[str]:
    """How often each word occurs in a text."""
    return Counter(_words(TextParts.cut(text, "words")))


def _words(parts: TextParts) -> list[str]:
    """The parts as words: without the number that tells occurrences apart, in lower case."""
    return [re.sub(r" \[\d+\]$", "", name).lower() for name in parts.names]


def _places(parts: TextParts) -> Floats:
    """Where each part begins, as a share of the text; these rise."""
    return np.array([spans[0][0] for spans in parts.spans], dtype=np.float64) / max(len(parts.text), 1)

