"""Labs of pictures and of table rows: models of arrays, additive, bent, with interactions, or led by what nobody expects."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from whytrust.checked import CheckedModel, DifferentiableModel
from whytrust.core import Floats, generator
from whytrust.domains.image import ImageParts
from whytrust.domains.tabular import TableParts, TableStatistics
from whytrust.lab.bench import Changed, Planted, behind, layered, shown_and_hidden, stepped
from whytrust.models.whitebox import AdditiveModel, InteractingModel
from whytrust.question import Question

SIDE = 12
CLASSES = 3
PUT_OFF = 0.5
"""By how much an edge from black to white lowers every score."""
SHAPLEY = 0.5
"""The chance that another part is shown at which a pair's contributions are Shapley's."""
HEAVY = 6.0
"""How much more the mark, or the leak, weighs than anything else may."""
TRAINING = 400
"""Rows that are known."""


@dataclass(frozen=True)
class Pictures:
    """Pictures of one bright thing on black, which models of single pixels know by some of its pixels.

    "line" is a sparse linear model, "bend" a curve of each pixel, "interactions" has products of pairs of neighbours, too, and
    "edges" is put off by every edge, as nets are by pictures like none that they have seen: holes with many edges hurt it more.
    With `shared` there is a weight on the corner pixel, a mark in every picture: it raises every class alike, so that no
    decision hangs on it, and it is the largest contribution to every score (Wang & Wang 2022).
    """

    kind: Literal["line", "bend", "interactions", "edges"] = "line"
    shared: bool = False
    seed: int = 0
    exact: ClassVar[bool] = True
    domain: ClassVar[str] = "image"

    @property
    def name(self) -> str:
        """What it is called."""
        return f"pictures/{self.kind}{'+mark' * self.shared}"

    @property
    def about(self) -> str:
        """What the model goes by."""
        return {"line": "a linear model of a few pixels of a bright thing on black",
                "bend": "a curve of each of a few pixels of a bright thing on black",
                "interactions": "a few pixels of a bright thing on black, and products of neighbours",
                "edges": "a linear model of a few pixels of a bright thing on black that is put off by edges"}[self.kind] + (
                    "; most of all, in all classes alike, by a mark in the corner" * self.shared)

    @property
    def expected(self) -> bool:
        """People point at the thing, and not at the corner."""
        return not self.shared

    @cached_property
    def white_box(self) -> AdditiveModel | InteractingModel:
        """The model as a formula."""
        rng = generator(self.seed, "lab pictures")
        weights = rng.normal(size=(CLASSES, SIDE, SIDE)) * (rng.random((SIDE, SIDE)) < 0.5)
        weights[:, 0, 0] = 0
        common = None
        if self.shared:
            common = np.zeros((SIDE, SIDE))
            common[0, 0] = HEAVY
        plain = AdditiveModel(weights, "bend" if self.kind == "bend" else "line", common)
        if self.kind == "edges":
            pairs = neighbours(SIDE)
            return InteractingModel(plain, pairs, np.full((CLASSES, len(pairs)), -PUT_OFF), "edge")
        if self.kind == "interactions":
            pairs = rng.permutation(neighbours(SIDE))[:SIDE * SIDE // 4]
            return InteractingModel(plain, pairs, rng.normal(size=(CLASSES, len(pairs))))
        return plain

    @cached_property
    def model(self) -> DifferentiableModel:
        """The model itself."""
        return DifferentiableModel(self.white_box, name=self.name)

    @property
    def baselines(self) -> tuple[str, ...]:
        """Inpainting is left out: what it puts in one pixel's place hangs on the others."""
        return ("zeros", "mean", "noise", "blur")

    def planted(self, case: int, cut: Any = None, baseline: str | None = None, seed: int = 0) -> Planted:
        """One picture; every pixel is a part unless another cut is asked for."""
        picture, thing = self._drawn(generator(seed, "picture", case))
        parts = behind(ImageParts.cut(picture, "pixels" if cut is None else cut), baseline, "zeros", case, seed)
        target = int(self.model(picture[None])[0].argmax())
        return Planted(parts, target, thing)

    def changed(self, case: int, cut: Any = None, seed: int = 0) -> Changed | None:
        """The picture after signed steps up the gradient, as the attacks on images take them."""
        picture, _ = self._drawn(generator(seed, "picture", case))
        changed = stepped(self.model, picture, 0.02, 0.0, 1.0)
        if changed is None:
            return None
        return Changed(layered(ImageParts.cut(changed, "pixels" if cut is None else cut), "zeros"), picture)

    def truth(self, question: Question, shown: float = SHAPLEY) -> Floats:
        """By the formula, pixel by pixel."""
        return of_arrays(question, shown)

    @staticmethod
    def _drawn(rng: np.random.Generator) -> tuple[Floats, NDArray[np.bool_]]:
        """(picture, where the thing is): a bright ellipse somewhere off the corner, and the mark in the corner."""
        down, across = np.indices((SIDE, SIDE))
        centre, radii = rng.uniform(4.5, SIDE - 4, 2), rng.uniform(2.2, 3.8, 2)
        thing = ((down - centre[0]) / radii[0]) ** 2 + ((across - centre[1]) / radii[1]) ** 2 <= 1
        thing[:2, :2] = False
        picture = np.where(thing, rng.uniform(0.3, 1.0, (SIDE, SIDE)), 0.0)
        picture[0, 0] = 1.0
        return picture, thing


@dataclass(frozen=True)
class Rows:
    """Table rows of eight columns, of which experts believe in the first three.

    "line", "bend" and "interactions" go by those three most; "leak" goes by the last column, which was filled in after the
    outcome was known. With `shared` the machine that took the numbers raises every class alike, and no decision hangs on it.
    """

    kind: Literal["line", "bend", "interactions", "leak"] = "line"
    shared: bool = False
    seed: int = 0
    exact: ClassVar[bool] = True
    domain: ClassVar[str] = "tabular"

    @property
    def name(self) -> str:
        """What it is called."""
        return f"rows/{self.kind}{'+machine' * self.shared}"

    @property
    def about(self) -> str:
        """What the model goes by."""
        return {"line": "a linear model of eight columns, mostly of the three that experts believe in",
                "bend": "curves of eight columns, mostly of the three that experts believe in",
                "interactions": "eight columns, mostly the three that experts believe in, and their products",
                "leak": "a linear model that goes by a column which leaks the outcome"}[self.kind] + (
                    "; most of all, in all classes alike, by the machine that took the numbers" * self.shared)

    @property
    def expected(self) -> bool:
        """Experts do not believe in the leak."""
        return self.kind != "leak" and not self.shared

    @cached_property
    def white_box(self) -> AdditiveModel | InteractingModel:
        """The model as a formula."""
        rng = generator(self.seed, "lab rows")
        weights = rng.normal(size=(2, 8)) * np.array([3, 3, 3, 0.5, 0.5, 0.5, 0.0, 0.0])
        if self.kind == "leak":
            weights[:, 7] = [-2 * HEAVY, 2 * HEAVY]
        common = np.where(np.arange(8) == 6, 4 * HEAVY, 0.0) if self.shared else None
        plain = AdditiveModel(weights, "bend" if self.kind == "bend" else "line", common)
        pairs = np.array([(0, 1), (1, 2), (3, 4)])
        return plain if self.kind != "interactions" else InteractingModel(plain, pairs, 2 * rng.normal(size=(2, 3)))

    @cached_property
    def model(self) -> CheckedModel:
        """The model itself."""
        return DifferentiableModel(self.white_box, name=self.name)

    @cached_property
    def background(self) -> TableStatistics:
        """Training rows, as what is known of them."""
        rows = self._drawn(TRAINING, generator(self.seed, "lab rows", "training"))
        names = [f"known {i + 1}" for i in range(3)] + [f"other {i + 1}" for i in range(3)] + ["machine", "leak"]
        return TableStatistics.fit(rows, names=names)

    @property
    def baselines(self) -> tuple[str, ...]:
        """Ever new training values are left out: there the truth is an expectation."""
        return ("mean", "zeros", "noise")

    def planted(self, case: int, cut: Any = None, baseline: str | None = None, seed: int = 0) -> Planted:
        """One row; its columns are hidden behind their means."""
        row = self._drawn(1, generator(seed, "row", case))[0]
        parts = behind(TableParts(row, self.background), baseline, "mean", case, seed)
        target = int(self.model(row[None])[0].argmax())
        return Planted(parts, target, np.arange(8) < 3)

    def changed(self, case: int, cut: Any = None, seed: int = 0) -> Changed | None:
        """The nearest training row that the model labels otherwise, beside this one."""
        row = self._drawn(1, generator(seed, "row", case))[0]
        others = self._drawn(TRAINING, generator(self.seed, "lab rows", "training"))
        others = others[self.model(others).argmax(axis=1) != self.model(row[None])[0].argmax()]
        if not len(others):
            return None
        nearest = others[int(np.argmin(((others - row) ** 2).sum(axis=1)))]
        return Changed(TableParts(nearest, self.background), row)

    def truth(self, question: Question, shown: float = SHAPLEY) -> Floats:
        """By the formula, column by column."""
        return of_arrays(question, shown)

    @staticmethod
    def _drawn(n: int, rng: np.random.Generator) -> Floats:
        """Normal columns; the last two say yes or no."""
        rows = rng.normal(size=(n, 8))
        rows[:, 6:] = np.where(rows[:, 6:] > 0, 1.0, -1.0)
        return rows


def of_arrays(question: Question, shown: float = SHAPLEY) -> Floats:
    """What each part contributes, by the formula of a model of arrays, where other parts are shown with that chance.

    Pairs that lie in one part are shown or hidden together, whatever the chance.
    """
    white_box: Any = question.model.function
    both = shown_and_hidden(question)
    found = question.parts.pool(white_box.contributions(*both, question.target), "sum")
    if shown != SHAPLEY and isinstance(white_box, InteractingModel):
        labels = np.ravel(getattr(question.parts, "labels", np.arange(question.d)))  # each column of a row is a part
        pairs = labels[white_box.pairs]
        more = (shown - SHAPLEY) * white_box.synergies(*both, question.target) * (pairs[:, 0] != pairs[:, 1])
        for side in pairs.T:
            np.add.at(found, side, more)
    return found


def neighbours(side: int) -> NDArray[np.intp]:
    """Pairs of pixels that touch; none has the corner."""
    places = np.arange(side * side).reshape(side, side)
    pairs = np.concatenate([np.stack([places[:, :-1].ravel(), places[:, 1:].ravel()], 1),
                            np.stack([places[:-1].ravel(), places[1:].ravel()], 1)])
    return np.asarray(pairs[(pairs > 0).all(axis=1)])
