"""Blind controls of an audit: rankings of an input's parts by somebody who does not know why the model decided.

An explainer that always points at the middle of a picture beats parts drawn at random, because objects lie there. So every
audit asks the same of rankings that cannot know the cause: what each explainer says of *other* inputs, what all explainers say
on average, and what can be read off the input without its model.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from whytrust.core import Floats, LayeredParts, pool_labels
from whytrust.domains.stems import StemParts
from whytrust.domains.tabular import TableParts
from whytrust.domains.text import TextParts
from whytrust.explainers.edges import strength
from whytrust.explanation import Explanation

DONORS = 3
"""Other inputs whose explanations are laid over an input one by one; the rates of these orders are averaged."""
POOLINGS = ("mean", "mean_abs", "mean_pos", "sum", "signed_max")
Controls = dict[str, list[Floats]]
"""By name: one or several rows of scores, one score a part."""


@dataclass(frozen=True, eq=False)
class Explained:
    """An input of the run and what the explainers say of it: a donor of scores for other inputs."""

    parts: LayeredParts
    answers: Mapping[str, Explanation]


def controls(parts: LayeredParts, others: Sequence[Explained], rng: np.random.Generator,
             counts: Mapping[str, int] = MappingProxyType({})) -> Controls:
    """Every blind control of one input; `counts` says how often each word occurs in the texts of a run.

    "shuffled:NAME" is what the explainer NAME says of up to three other inputs, "shuffled words:NAME" what it says of the same
    words in other texts. "prior" is the mean of all explainers over all other inputs. "together" is the mean rank of the prior
    and of what can be read off the input. A control that ranks no part above another is left out.
    """
    found: Controls = {}
    laid = [{name: laid_over(e, one.parts, parts) for name, e in one.answers.items()} for one in others]
    for name in dict.fromkeys(name for one in laid for name in one):
        found[f"shuffled:{name}"] = [one[name] for one in laid if name in one][:DONORS]
        if isinstance(parts, TextParts):
            found[f"shuffled words:{name}"] = [_by_word(parts, [one for one in others if name in one.answers], name)]
    single = read_off(parts, rng, counts)
    rows = [_standard(scores) for one in laid for scores in one.values()]
    if rows:
        single = {"prior": np.mean(rows, axis=0), **single}
    single = {name: scores for name, scores in single.items() if np.ptp(scores) > 0}
    if len(single) > 1:
        single["together"] = np.mean([rankdata(scores) for scores in single.values()], axis=0)
    return found | {name: [scores] for name, scores in single.items()}


def laid_over(explanation: Explanation, of: LayeredParts, parts: LayeredParts) -> Floats:
    """The scores of another input, one for each part of this one: by place, by column, or by the name of the stem."""
    if isinstance(parts, TextParts):
        assert isinstance(of, TextParts)
        return np.interp(_places(parts), _places(of), explanation.scores)
    if parts.domain == "tabular":
        return np.asarray(explanation.scores, dtype=np.float64)
    if isinstance(parts, StemParts):
        by_name = dict(zip(of.names, explanation.scores, strict=True))
        return np.array([by_name.get(name, float(np.mean(explanation.scores))) for name in parts.names])
    labels, theirs = _labels(parts), _labels(of)
    how = str(explanation.settings.get("pooling") or "mean")
    own_map = (explanation.map is not None and explanation.map.shape == theirs.shape and how in POOLINGS
               and np.allclose(pool_labels(np.asarray(explanation.map, dtype=np.float64), theirs, len(of.names), how),
                               explanation.scores, rtol=1e-3, atol=1e-9))  # a map that its scores were pooled from
    values = np.asarray(explanation.map if own_map else explanation.scores[theirs], dtype=np.float64)
    how = how if own_map else "mean"
    return pool_labels(_stretched(values, labels.shape), labels, len(parts.names), how)


def read_off(parts: LayeredParts, rng: np.random.Generator,
             counts: Mapping[str, int] = MappingProxyType({})) -> dict[str, Floats]:
    """What can be said of each part without the model: where it lies, how large, sharp, loud, long, rare or unusual it is."""
    if isinstance(parts, TextParts):
        words = _words(parts)
        return {"early": -_places(parts), "long": np.array([float(len(word)) for word in words]),
                "rare": np.array([-float(counts.get(word, 0)) for word in words])}
    if isinstance(parts, TableParts):
        return {"unusual": _unusual(parts)}
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
    return found


def _labels(parts: Any) -> NDArray[np.intp]:
    """The part of each pixel, sample or cell."""
    return np.asarray(parts.labels, dtype=np.intp)


def _stretched(values: Floats, shape: tuple[int, ...]) -> Floats:
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


def _loudness(parts: Any, labels: NDArray[np.intp]) -> Floats:
    """Of a waveform the size of each sample, of a spectrogram its values, of a waveform cut in frequency its transform's."""
    sound = np.asarray(parts.sound, dtype=np.float64)
    if sound.shape == labels.shape:
        return np.abs(sound) if sound.ndim == 1 else sound
    return np.asarray(np.abs(parts.dials.own))


def _unusual(parts: TableParts) -> Floats:
    """How far each value lies from the column's mean, in deviations; of a category, how rare it is."""
    found = []
    for column, value in zip(parts.statistics.columns, parts.row, strict=True):
        if column.numeric and value is not None:
            found.append(abs(float(value) - column.mean) / (column.sd or 1.0))
        else:
            chances = dict(zip(column.atoms, column.chances, strict=True))
            found.append(1.0 - chances.get(value, 0.0))
    return np.array(found)


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


def _by_word(parts: TextParts, others: Sequence[Explained], name: str) -> Floats:
    """What an explainer says of the same words in other texts, on average; of words that are in none, what it says of any."""
    scores: dict[str, list[float]] = {}
    for one in others:
        assert isinstance(one.parts, TextParts)
        for word, score in zip(_words(one.parts), _standard(one.answers[name].scores), strict=True):
            scores.setdefault(word, []).append(float(score))
    return np.array([float(np.mean(scores[word])) if word in scores else 0.0 for word in _words(parts)])
