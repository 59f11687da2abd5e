"""An explanation: one score a part, how sure each is, and how far the whole may be believed."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whytrust import files, legible, neighbours, saved, views
from whytrust.checked import CheckedModel
from whytrust.core import Floats, Sense, View
from whytrust.pictures import page, plots, shown
from whytrust.question import Question

FORMAT = 2
WORDS: dict[Sense, str] = {"signed": "signed scores", "size": "sizes without a sign", "for": "what speaks for the target alone",
                           "nothing": "scores without the model"}


@dataclass(frozen=True, repr=False)
class Explanation:
    """Why a model scores a target as it does: one score a part, larger = speaks more for the target.

    `intercept + scores.sum()` is the local model's prediction for the input itself. Where columns of a table are continuous, a
    score is a contribution: the local model's slope for one standard deviation of the column (`slopes`) times the distance of
    the row's value from the column's mean (`origin`, in standard deviations). `fidelity` is the local model's weighted R² on
    the samples it was fitted to, `fidelity_fresh` on samples it had not seen. A standard error says how much a score would move
    with other samples; it says nothing about whether a linear reading of the model is right: that is what fidelity is for.
    `sense` is what a score says (see core.Sense): an `unsigned` one says how much, not for or against. `map` is what the scores
    were pooled from, one number a pixel or cell, where a method has that. `predicted` is the class that the model decides for,
    which need not be the target; None where there is only one output. `caution` says how the method misleads, where no number
    does. `source` is the file that was explained, and the moment in it, where it was one.
    """

    scores: Floats
    names: tuple[str, ...]
    target: int
    target_name: str
    method: str
    prediction: float
    view: View
    intercept: float = 0.0
    local_prediction: float | None = None
    fidelity: float | None = None
    fidelity_fresh: float | None = None
    standard_errors: Floats | None = None
    origin: Floats | None = None
    selected: NDArray[np.bool_] | None = None
    undecided: tuple[int, ...] = ()
    rules: str | None = None
    notes: tuple[str, ...] = ()
    model: str = "model"
    seed: int | None = None
    calls: int = 0
    settings: dict[str, Any] = field(default_factory=dict)
    sense: Sense = "signed"
    map: NDArray[np.float32] | None = None
    predicted: str | None = None
    caution: str = ""
    source: str = ""
    slopes: Floats | None = None

    @classmethod
    def of(cls, question: Question, method: str, scores: Floats, conditions: bool = False, **more: Any) -> Explanation:
        """An explanation of a question by its scores; what every explainer must say is filled in from the question.

        With `conditions` the scores of a table row speak of its bins, as LIME's do; else of its values. With `origin`, `scores`
        and `standard_errors` are those of slopes, and the explanation has the contributions.
        """
        original, model = question.original, question.model
        names, view = tuple(question.parts.names), question.parts.view
        if isinstance(view, views.TableView) and not conditions:
            names = tuple(f"{column} = {value}" for column, value in zip(view.columns, view.values, strict=True))
            view = replace(view, conditions=view.columns)
        label = int(model.labels(original[None])[0]) if len(original) > 1 else None
        scores = np.asarray(scores, dtype=np.float64)
        in_logits = more.get("settings", {}).get("explains") == "logit"
        asked = question.of_log_odds() if in_logits else question
        unit = (("logit" if model.output == "logit" else "log-odds") if in_logits else
                "probability" if model.gives_probabilities(original) else "score")
        if more.get("sense") != "nothing" and asked.only_rounding(scores):  # values that a user gives are left alone
            scores, own = np.zeros(len(scores)), float(asked.original[asked.target])
            more |= {name: own for name in ("intercept", "local_prediction") if more.get(name) is not None}
            more |= {"standard_errors": None, "fidelity": None, "fidelity_fresh": None, "undecided": (), "rules": None,
                     "origin": None, "notes": (shown.independent(own, more.get("calls", question.memory.calls), unit,
                                                          asked.memory.seen.rounding(asked.target)),)}
        more["notes"] = (*views.caveats(question.parts.view), *getattr(question.parts, "notes", ()), *more.get("notes", ()),
                         *_by_threshold(model, original))
        if more.get("origin") is not None:
            more.update(saved.contributions(scores, more["origin"], more.get("standard_errors")))
            scores = more.pop("scores")
        return cls(scores=scores, target=question.target, method=method, model=model.name,
                   target_name=model.class_name(question.target, len(original)), view=view, names=names,
                   prediction=float(original[question.target]),
                   predicted=None if label is None else model.class_name(label, len(original)),
                   **{"calls": question.memory.calls, **more})

    @property
    def unsigned(self) -> bool:
        """Whether a score's sign says nothing, since there is only one."""
        return self.sense in ("size", "for") or (self.sense == "nothing" and not (self.scores < 0).any())

    @property
    def gap(self) -> float | None:
        """The model's prediction minus the local model's: what the explanation leaves unexplained at the input itself."""
        return None if self.local_prediction is None else self.prediction - self.local_prediction

    @property
    def order(self) -> NDArray[np.intp]:
        """Parts by |score|, largest first; equal scores in the order of the parts."""
        return np.argsort(-np.abs(self.scores), kind="stable")

    def as_list(self, top: int | None = None) -> list[tuple[str, float]]:
        """(name, score) of the parts in the explanation, largest |score| first."""
        chosen = [i for i in self.order if self.selected is None or self.selected[i]]
        return [(self.names[i], float(self.scores[i])) for i in chosen[:top]]

    def as_map(self) -> Floats:
        """The scores laid over the input: (H, W) of an image, (characters,) of a text, cells or samples of a sound."""
        return self.view.spread(self.scores)

    @property
    def title(self) -> str:
        """The question this answers."""
        return "Why this prediction?" if self.target_name == "output" else f"Why {self.target_name}?"

    def as_html(self) -> str:
        """One self-contained page: the picture, the bars, the numbers and what they mean."""
        return page.document([self], title=self.title)

    def plot(self, **options: Any) -> Any:
        """A matplotlib figure; style="positive" greys out all but the parts that speak for the target."""
        return plots.figure([self], **options)

    def save(self, path: str | os.PathLike[str], **options: Any) -> Path:
        """Write e.html, e.png (or .svg, .pdf) or e.json, by the file's ending."""
        return save([self], path, title=self.title, **options)

    def to_shap(self) -> Any:
        """A shap.Explanation for shap's plots: base value and values add up to the local prediction.

        One value a part; of an image (H, W, 3), where a part's score is shared by its pixels. LIME's scores are no Shapley
        values: they are the terms of a local linear model, and differ from them where parts interact.
        """
        return neighbours.to_shap([self], single=True)

    def to_captum(self, like: Any = None) -> Any:
        """Attributions as captum has them: (1, 1, H, W) of an image, every pixel with its part's score; else (1, d).

        With `like`, the net's input, in its shape, channels first or last; as a tensor where it is one.
        """
        return neighbours.to_captum(self, self.as_map(), like)

    def minus(self, other: Explanation) -> Explanation:
        """What changed from `other` to this one, part by part; both must explain the same parts."""
        if self.names != other.names and not _same_row(self.view, other.view):
            raise ValueError(f"explanations can be subtracted when they have the same parts: got {len(self.names)} parts "
                             f"({', '.join(self.names[:3])}…) and {len(other.names)} ({', '.join(other.names[:3])}…)")
        units = [(e.sense, e.settings.get("explains") == "logit") for e in (self, other)]
        if units[0] != units[1]:
            told = [f"{e.method}: {WORDS[u[0]]}{', of the logit' if u[1] else ''}"
                    for e, u in zip((self, other), units, strict=True)]
            raise ValueError(f"explanations can be subtracted when their scores mean the same, got {told[0]}, and {told[1]}; "
                             "choose pooling= and explains= alike")
        errors, notes = None, []
        if self.method != other.method:
            notes.append(f"The two come from different methods, {self.method} and {other.method}, whose scores are meant to "
                         "say different things: read the signs, not the sizes.")
        if any(e.selected is not None and not e.selected.all() for e in (self, other)):
            notes.append("Parts that one of the two left out count as 0 there, with no standard error; explain both with "
                         "features='all' to compare every part.")
        elif self.standard_errors is not None and other.standard_errors is not None:
            if self.seed is not None and self.seed == other.seed:
                errors = self.standard_errors + other.standard_errors
                notes.append("Both rest on the same draws (one seed), so their standard errors are added: an upper bound.")
            else:
                errors = np.hypot(self.standard_errors, other.standard_errors)
                notes.append("Standard errors take the two as independent.")
        local = None
        if self.local_prediction is not None and other.local_prediction is not None:
            local = self.local_prediction - other.local_prediction
        slopes = None
        if self.slopes is not None and other.slopes is not None and np.array_equal(self.origin, other.origin):  # type: ignore[arg-type]
            slopes = self.slopes - other.slopes
        by = ["", ""] if self.method == other.method else [f" by {self.method}", f" by {other.method}"]
        both = (f"{self.target_name} ({self.model}){by[0]}", f"{other.target_name} ({other.model}){by[1]}")
        return replace(
            self, scores=self.scores - other.scores, target_name=f"{both[0]} minus {both[1]}", method="difference",
            prediction=self.prediction - other.prediction, intercept=self.intercept - other.intercept, local_prediction=local,
            fidelity=None, fidelity_fresh=None, standard_errors=errors, selected=None, undecided=(), rules=None, seed=None,
            predicted=None, caution="", calls=self.calls + other.calls, settings={}, sense="signed", slopes=slopes,
            origin=None if slopes is None else self.origin,
            map=None if self.map is None or other.map is None or self.map.shape != other.map.shape else self.map - other.map,
            notes=(f"Positive: speaks more for {both[0]} than for {both[1]}.", *notes))

    def to_json(self) -> dict[str, Any]:
        """Plain data; `from_json` gives the same explanation back."""
        data: dict[str, Any] = {"format": FORMAT}
        for name in self.__dataclass_fields__:
            value = getattr(self, name)
            if isinstance(value, np.ndarray):
                value = views.encode(value) if name == "map" else value.tolist()
            data[name] = value.to_json() if name == "view" else value
        return data

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Explanation:
        """The explanation `to_json` wrote."""
        if not isinstance(data, dict) or "scores" not in data or "view" not in data:
            raise ValueError("an explanation's JSON must be an object with scores and view, as e.save('e.json') writes it")
        if not isinstance(data.get("format", 0), int):
            raise ValueError(f"an explanation's format must be a whole number, got {data['format']!r}")
        if data.get("format", 0) > FORMAT:
            raise ValueError(f"this explanation has format {data['format']}, newer than {FORMAT}: update whytrust to read it")
        try:
            return cls(**saved.fields(data, cls.__dataclass_fields__))
        except ValueError:
            raise
        except Exception as error:  # it may come from anyone, and hold anything in any place
            raise ValueError(f"this is no explanation as e.save('e.json') writes it: {type(error).__name__} {error}") from error

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Explanation:
        """Read what e.save("e.json") wrote."""
        data = files.plain(path, "an explanation")
        if isinstance(data, dict) and isinstance(data.get("explanations"), list):
            raise ValueError(f"{path} holds {len(data['explanations'])} explanations: read it with whytrust.Gallery.load")
        with files.telling(path, "an explanation"):
            return cls.from_json(data)

    def _repr_html_(self) -> str:
        return page.fragment([self])

    def __str__(self) -> str:
        """The explanation in a few lines of text."""
        kind = "" if self.rules is None else ", a tree"
        kind += ", of the logit" if self.settings.get("explains") == "logit" else ""
        other = f"; the model says {self.predicted}" if self.predicted not in (None, self.target_name) else ""
        of = f"{self.model}, {self.source}" if self.source else self.model
        rows = [f"{of}: {self.target_name} = {self.prediction:.4g} ({self.method}{kind}){other}"]
        width = legible.width(n for n, _ in self.as_list(10))
        largest = np.abs(self.scores).max()
        digits = int(np.clip(3 - np.floor(np.log10(largest)), 0, 12)) if largest > 0 else 4  # four figures of the largest score
        form = f".{digits}f" if largest == 0 or 1e-5 < largest < 1e7 else ".3e"
        sign = "" if self.unsigned else "+"
        errors = dict(zip(self.names, self.standard_errors, strict=True)) if self.standard_errors is not None else {}
        beside = [shown.slope(self, part) for part in range(len(self.names))]
        slopes = {name: f"  (slope {slope:+.4g})" for name, slope in zip(self.names, beside, strict=True) if slope is not None}
        flat = shown.flat(self)
        rows += [f"  {note}" for note in self.notes if note == flat]
        for name, score in self.as_list(10) if flat is None else ():
            # As on the page: ± is the 95 % range, not the standard error.
            spread = f" ± {1.96 * errors[name]:{form}}" if name in errors else ""
            rows.append(f"  {name:<{width}}  {score:{sign}{form}}{spread}{slopes.get(name, '')}")
        left = len(self.as_list()) - 10 if flat is None else 0
        if left > 0:
            rows.append(f"  … {left} more, of smaller size")
        if self.fidelity is not None:
            fresh = "" if self.fidelity_fresh is None else f", {self.fidelity_fresh:.2f} on unseen samples"
            rows.append(f"  fidelity {self.fidelity:.2f}{fresh}; {self.calls} model calls")
        else:
            rows.append(f"  {self.calls} model calls")
        if errors:
            rows[-1] += "; ± is the 95 % range"
        if slopes:
            rows.append(f"  {shown.SLOPE}")
        rows += [f"  {line}" for line in (self.rules or "").splitlines()]
        return legible.lines(rows + [f"  ! {note}" for note in self.notes if note != flat])

    def __repr__(self) -> str:
        """One line: the arrays of an image would fill the screen."""
        sign = "" if self.unsigned else "+"
        best = ", ".join(f"{name} {score:{sign}.3g}" for name, score in self.as_list(2))
        more = ", …" if len(self.names) > 2 else ""
        return legible.in_line(f"<Explanation of {self.target_name} by {self.method}: {len(self.names)} parts, {best}{more}>")

    def __eq__(self, other: object) -> bool:
        """Equal when every number is (NaN equals NaN), whatever file it was of."""
        return isinstance(other, Explanation) and {**self.to_json(), "source": ""} == {**other.to_json(), "source": ""}

    __hash__ = None  # type: ignore[assignment]


@dataclass(frozen=True, repr=False)
class Gallery(Sequence[Explanation]):
    """Several explanations on one page: two models on one input, one model's top classes, or anything else side by side."""

    explanations: tuple[Explanation, ...]
    title: str = "Explanations"

    def __post_init__(self) -> None:
        """Accept any sequence, refuse an empty one."""
        given = (self.explanations,) if isinstance(self.explanations, Explanation) else tuple(self.explanations)
        items = tuple(e for one in given for e in (one if isinstance(one, list | tuple) else (one,)))
        if not items or not all(isinstance(e, Explanation) for e in items):
            raise ValueError("a gallery needs at least one Explanation, as whytrust.explain returns them")
        object.__setattr__(self, "explanations", items)

    def __getitem__(self, index: Any) -> Any:
        """The explanation at an index."""
        return self.explanations[index]

    def __len__(self) -> int:
        """How many."""
        return len(self.explanations)

    def __iter__(self) -> Iterator[Explanation]:
        """In order."""
        return iter(self.explanations)

    def __repr__(self) -> str:
        """One line."""
        return f"<Gallery {self.title!r} of {len(self)} explanations>"

    def as_html(self) -> str:
        """One self-contained page."""
        return page.document(self.explanations, title=self.title)

    def plot(self, **options: Any) -> Any:
        """A matplotlib figure with one column an explanation."""
        return plots.figure(self.explanations, **options)

    def to_shap(self) -> Any:
        """One shap.Explanation of all, for beeswarm and its like: rows of one table, images of one size, or texts."""
        return neighbours.to_shap(self.explanations, single=False)

    def save(self, path: str | os.PathLike[str], **options: Any) -> Path:
        """Write .html, .png (.svg, .pdf) or .json, by the file's ending."""
        return save(self.explanations, path, title=self.title, **options)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Gallery:
        """Read what save("gallery.json") wrote; one explanation's file is a gallery of one."""
        data = files.plain(path, "explanations")
        with files.telling(path, "explanations"):
            items = data["explanations"] if isinstance(data, dict) and "explanations" in data else [data]
            return cls(tuple(Explanation.from_json(item) for item in items))

    def _repr_html_(self) -> str:
        return page.fragment(self.explanations)


def _same_row(one: View, other: View) -> bool:
    """Are both views of one table row? LIME calls its columns by their bins, other methods by their values."""
    rows = isinstance(one, views.TableView) and isinstance(other, views.TableView)
    return rows and (one.columns, one.values) == (other.columns, other.values)  # type: ignore[attr-defined]


DRAWN = ("style", "top", "width")
OPTIONS: dict[str, tuple[str, ...]] = {
    ".json": (), ".html": ("style",), ".htm": ("style",), ".png": DRAWN, ".svg": DRAWN, ".pdf": DRAWN}


def save(explanations: Sequence[Explanation], path: str | os.PathLike[str], title: str, **options: Any) -> Path:
    """Write explanations to a file whose ending says how; the file appears whole or not at all."""
    target = Path(path)
    kind = target.suffix.lower()
    if kind not in OPTIONS:
        raise ValueError(f"the file must end in .html, .png, .svg, .pdf or .json, got {target.name!r}")
    wrong = [name for name in options if name not in OPTIONS[kind]]
    if wrong:
        raise TypeError(f"a {kind} file takes {', '.join(OPTIONS[kind]) or 'no options'}, got {', '.join(wrong)}")
    if not target.parent.is_dir():
        raise FileNotFoundError(f"the folder {target.parent} must exist before {target.name} can be written into it")
    writing = target.with_name(f".{target.name}.{os.getpid()}{kind}")
    try:
        if kind == ".json":
            items = [e.to_json() for e in explanations]
            data = items[0] if len(items) == 1 else {"format": FORMAT, "explanations": items}
            writing.write_text(json.dumps(data), encoding="utf-8")
        elif kind in (".html", ".htm"):
            writing.write_text(page.document(explanations, title=title, **options), encoding="utf-8")
        else:
            plots.save(explanations, writing, **options)
        os.replace(writing, target)
    finally:
        writing.unlink(missing_ok=True)
    return target


def _by_threshold(model: CheckedModel, scores: Floats) -> tuple[str, ...]:
    """A reader takes one half for the border: where another one decides otherwise, it must be said."""
    if model.threshold is None or len(scores) != 2 or (scores[1] > model.threshold) == (scores[1] > 0.5):
        return ()
    return (f"The model says {model.class_name(1, 2)} above a score of {model.threshold:g}, not above one half.",)
