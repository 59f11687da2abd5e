"""lime's Explanation, filled from whytrust's."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from whytrust.compat.lime.asking import Answers
from whytrust.compat.lime.exceptions import LimeError
from whytrust.core import Floats, need
from whytrust.explanation import Explanation as Whytrust
from whytrust.pictures import page
from whytrust.pictures.html import Markup, tag
from whytrust.pictures.shown import figures

MOST_CLASSES = 10
"""Classes in the list of probabilities; the rest are counted."""


class DomainMapper:
    """What a feature's number stands for; here, for itself."""

    def map_exp_ids(self, exp: list[tuple[int, float]], **kwargs: Any) -> list[tuple[Any, float]]:
        """(feature, weight) -> (name, weight)."""
        return list(exp)

    def visualize_instance_html(self, exp: Any, label: int, div_name: str, exp_object_name: str, **kwargs: Any) -> str:
        """Nothing: pages are whytrust's own and hold no scripts."""
        return ""


class Explanation:
    """Why these labels? lime's attributes, and `whytrust`: the full explanation of each label.

    lime keeps one score and one local prediction, those of the last label it explained. Here every label keeps its own, in
    `scores` and `local_preds`; `score` and `local_pred` are those of the first label in available_labels(), which with
    top_labels is the most probable one.
    """

    def __init__(self, domain_mapper: DomainMapper, mode: str = "classification", class_names: Sequence[Any] | None = None,
                 random_state: Any = None) -> None:
        """Empty; `fill` puts the answers in."""
        if mode not in ("classification", "regression"):
            raise LimeError(f"mode must be 'classification' or 'regression', got {mode!r}")
        self.random_state, self.mode, self.domain_mapper = random_state, mode, domain_mapper
        self.class_names = list(class_names) if class_names is not None and mode == "classification" else None
        self.top_labels: list[int] | None = None
        self.predict_proba: Floats | None = None
        self.predicted_value: float | None = None
        self.min_value, self.max_value, self.dummy_label = 0.0, 1.0, 1
        if mode == "regression":
            self.class_names = ["negative", "positive"]
        self.local_exp: dict[int, list[tuple[int, float]]] = {}
        self.intercept: dict[int, float] = {}
        self.score: float | None = None
        self.local_pred: Floats | None = None
        self.scores: dict[int, float] = {}
        self.local_preds: dict[int, Floats] = {}
        self.whytrust: dict[int, Whytrust] = {}

    def fill(self, answers: Answers, ids: Sequence[int] | None = None) -> Explanation:
        """Take the answers in; `ids` are lime's numbers of the parts, where they are not 0, 1, 2, …"""
        fill(self, answers, ids)
        if self.mode == "classification":
            self.predict_proba = answers.scores
            self.class_names = self.class_names or [str(i) for i in range(len(answers.scores))]
            return self
        self.predicted_value, self.min_value, self.max_value = float(answers.scores[0]), answers.lowest, answers.highest
        every: tuple[dict[int, Any], ...] = (self.local_exp, self.intercept, self.scores, self.local_preds, self.whytrust)
        for by_label in every:
            by_label[1] = by_label.pop(0)
        self.intercept[0] = self.intercept[1]
        self.local_exp[0] = [(i, -weight) for i, weight in self.local_exp[1]]
        return self

    def available_labels(self) -> list[int]:
        """The labels that were explained; a regression has none."""
        if self.mode != "classification":
            raise NotImplementedError("a regression has no labels; as_list() needs none")
        return list(self.top_labels or self.local_exp)

    def as_list(self, label: int = 1, **kwargs: Any) -> list[tuple[Any, float]]:
        """[(feature in words, weight)], largest |weight| first; positions=True adds the places of words."""
        return self.domain_mapper.map_exp_ids(explained(self, self._label(label)), **kwargs)

    def as_map(self) -> dict[int, list[tuple[int, float]]]:
        """label -> [(feature number, weight)]."""
        return self.local_exp

    def as_pyplot_figure(self, label: int = 1, figsize: tuple[float, float] | None = None, **kwargs: Any) -> Any:
        """whytrust's figure, known to pyplot; it is as wide as `figsize` says and as tall as its content."""
        explained(self, self._label(label))
        return pyplot_figure(self.whytrust[self._label(label)], figsize)

    def as_html(self, labels: Sequence[int] | None = None, predict_proba: bool = True, show_predicted_value: bool = True,
                **kwargs: Any) -> str:
        """whytrust's page of these labels, without scripts; what else lime's pages could be told has no use here."""
        chosen = self._chosen(labels)
        text = page.document(chosen, title=chosen[0].title if len(chosen) == 1 else "Explanations")
        return _after(text, "</header>", self._prediction(predict_proba, show_predicted_value))

    def show_in_notebook(self, labels: Sequence[int] | None = None, predict_proba: bool = True,
                         show_predicted_value: bool = True, **kwargs: Any) -> None:
        """The same in a notebook's cell."""
        try:
            display = need("IPython.display", "all")
        except ImportError as error:
            raise ImportError("show_in_notebook needs IPython, which every notebook has (pip install ipython); "
                              "elsewhere use save_to_file('explanation.html')") from error
        text = _after(page.fragment(self._chosen(labels)), "</style>", self._prediction(predict_proba, show_predicted_value))
        display.display(display.HTML(text))

    def save_to_file(self, file_path: str | os.PathLike[str], labels: Sequence[int] | None = None, predict_proba: bool = True,
                     show_predicted_value: bool = True, **kwargs: Any) -> None:
        """Write the page."""
        Path(file_path).write_text(self.as_html(labels, predict_proba, show_predicted_value, **kwargs), encoding="utf-8")

    def _repr_html_(self) -> str:
        return _after(page.fragment(self._chosen(None)), "</style>", self._prediction(True, True))

    def _label(self, label: int) -> int:
        return label if self.mode == "classification" else self.dummy_label

    def _chosen(self, labels: Sequence[int] | None) -> list[Whytrust]:
        every = [self.dummy_label] if self.mode == "regression" else self.available_labels()
        wanted = every if labels is None or self.mode == "regression" else list(labels)
        for label in wanted:
            explained(self, label)
        return [self.whytrust[label] for label in wanted]

    def _prediction(self, predict_proba: bool, show_predicted_value: bool) -> str:
        """What the model itself says, as lime's pages begin."""
        if self.mode == "regression":
            if not show_predicted_value or self.predicted_value is None:
                return ""
            between = f"{figures(self.min_value)} to {figures(self.max_value)} over the sampled rows"
            return str(_facts("The model predicts", [("this row", figures(self.predicted_value)), ("range", between)]))
        if not predict_proba or self.predict_proba is None:
            return ""
        order = np.argsort(-self.predict_proba, kind="stable")
        rows = [(_name(self.class_names, int(i)), figures(float(self.predict_proba[i]))) for i in order[:MOST_CLASSES]]
        if len(order) > MOST_CLASSES:
            left = float(self.predict_proba[order[MOST_CLASSES:]].sum())
            rows.append((f"{len(order) - MOST_CLASSES} other classes together", figures(left)))
        return str(_facts("Probability of each class", rows))


def fill(into: Any, answers: Answers, ids: Sequence[int] | None = None) -> None:
    """Put what texts, tables and images share into an explanation."""
    into.top_labels = answers.top
    for label, e in answers.explanations.items():
        weights = e.scores if e.slopes is None else e.slopes  # lime's weights are slopes
        order = np.argsort(-np.abs(weights), kind="stable")
        chosen = [int(i) for i in order if e.selected is None or e.selected[i]]
        into.local_exp[label] = [(i if ids is None else int(ids[i]), float(weights[i])) for i in chosen]
        into.intercept[label], into.whytrust[label] = e.intercept, e
        into.scores[label] = float(e.fidelity or 0.0)
        into.local_preds[label] = np.array([e.local_prediction])
    first = next(iter(answers.explanations))
    into.score, into.local_pred = into.scores[first], into.local_preds[first]


def explained(of: Any, label: int) -> list[tuple[int, float]]:
    """The weights of one label, or one clear error."""
    if label not in of.local_exp:
        raise KeyError(f"label {label} was not explained, only {', '.join(map(str, of.local_exp))}; pass labels=[{label}] or "
                       "top_labels to explain_instance, and one of exp.available_labels() here")
    found: list[tuple[int, float]] = of.local_exp[label]
    return found


def pyplot_figure(e: Whytrust, figsize: tuple[float, float] | None) -> Any:
    """A figure that plt.show() shows."""
    drawn = e.plot(top=max(len(e.as_list()), 1), width=None if figsize is None else float(figsize[0]))
    return need("matplotlib.pyplot", "report").figure(FigureClass=lambda *_, **__: drawn)


def _name(names: Sequence[Any] | None, index: int) -> str:
    return str(names[index]) if names is not None and index < len(names) else str(index)


def _facts(title: str, rows: list[tuple[str, str]]) -> Markup:
    lines = [tag("tr", tag("th", tag("bdi", name), scope="row"), tag("td", value, class_="number")) for name, value in rows]
    return tag("section", tag("h2", title), tag("table", tag("tbody", *lines), class_="facts"), class_="card")


def _after(text: str, mark: str, piece: str) -> str:
    before, _, after = text.partition(mark)
    return before + mark + piece + after
