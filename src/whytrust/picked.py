"""A few explanations picked out of many: what they show, in words, as a table, as a page, as a file."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from whytrust import files, legible
from whytrust.core import Floats, generator
from whytrust.coverage import Pick, alternating, given, random_coverage
from whytrust.explanation import Explanation
from whytrust.features import SharedFeatures, features_of
from whytrust.pictures.shown import figures, one_line
from whytrust.report import picks as page
from whytrust.report.words import count, percent

METHODS = ("submodular", "random")
FORMAT = 1
REPEATS = 100
"""Random picks that a pick is compared with."""
NAMED = 6
"""Newly covered features that are named in a line; the others are counted."""
LISTED = 3
"""Inputs without an explanation that are named in a line; the others are counted."""
NEARLY_ALL = 0.95
"""A first pick that covers more than this leaves nothing to pick."""


@dataclass(frozen=True, eq=False)
class Side:
    """One model's explanations of all inputs (None where one failed) and the features that they share."""

    model: str
    explanations: tuple[Explanation | None, ...]
    shared: SharedFeatures

    @property
    def places(self) -> list[int]:
        """The number of each input that was explained."""
        return [i for i, e in enumerate(self.explanations) if e is not None]

    @cached_property
    def weights(self) -> Any:
        """(inputs that were explained, features), sparse."""
        return self.shared.matrix(e for e in self.explanations if e is not None)


def check_method(method: Any) -> None:
    """Refuse a way to pick that does not exist."""
    if method not in METHODS:
        raise ValueError(f"method must be one of {', '.join(METHODS)} (how to pick), got {method!r}; the explainer is given as "
                         "explainer=")


def settled(sides: tuple[Side, ...], budget: int, method: str, seed: int, failed: dict[int, str] | None = None,
            names: dict[int, str] | None = None) -> Picked:
    """Pick from what was explained."""
    weights = [side.weights for side in sides]
    picks = alternating(weights, budget, None if method == "submodular" else generator(seed, "pick"))
    return Picked(sides, picks, method, int(seed), dict(failed or {}), int(budget), dict(names or {}))


@dataclass(frozen=True, eq=False, repr=False)
class Picked(Sequence[Any]):
    """Few explanations that show as much as possible of what matters to a model over all inputs, in the order of picking.

    A sequence of explanations; of tuples of them, one a model, where several models were explained (then `gains` and
    `coverage` have a row a model, and `features` and `bound` an entry a model). `indices` are the numbers of the picked inputs.
    Gains and coverage are shares of all importance; `bound` is the share of the best coverage possible, with as many picks,
    that these reach at least; `failed` says why some inputs could not be explained.
    """

    sides: tuple[Side, ...]
    picks: tuple[Pick, ...] = field(repr=False)
    method: str = "submodular"
    seed: int = 0
    failed: dict[int, str] = field(default_factory=dict)
    budget: int | None = None  # how many were asked for
    names: dict[int, str] = field(default_factory=dict)  # of inputs that failed, where they have one

    @classmethod
    def of(cls, explanations: Any, budget: int = 10, method: str = "submodular", components: int | None = None, seed: int = 0,
           describe: Sequence[str] | None = None) -> Picked:
        """Pick from explanations that are there already: a list of them, or one list a model.

        Images and sounds are then compared by how they look or sound alone, for there is no model to ask.
        """
        check_method(method)
        came = list(explanations)
        several = bool(came) and all(isinstance(one, Sequence) and not isinstance(one, Explanation) for one in came)
        lists = [list(one) for one in came] if several else [came]
        if not all(lists) or not all(isinstance(e, Explanation) for one in lists for e in one):
            raise ValueError("there must be at least one Explanation to pick from, as wt.explain returns them, or one list of "
                             "them a model")
        if len({len(one) for one in lists}) > 1:
            raise ValueError(f"all models must be explained on the same inputs, got {', '.join(str(len(o)) for o in lists)} "
                             "explanations")
        sides = tuple(Side(one[0].model, tuple(one), features_of(one, components, seed, describe)) for one in lists)
        return settled(sides, budget, method, seed)

    # --- what was picked ------------------------------------------------------------------------------------------

    @property
    def indices(self) -> tuple[int, ...]:
        """The numbers of the picked inputs, in order."""
        places = self.sides[0].places
        return tuple(places[i] for i in self.picks[0].indices)

    @property
    def explanations(self) -> Any:
        """The explanations of all inputs, None where one failed; of several models a tuple for each."""
        return self._each([side.explanations for side in self.sides])

    @property
    def gains(self) -> Floats:
        """What each pick adds to those before it, as a share of all importance."""
        return np.asarray(self._each([p.gains for p in self.picks]))

    @property
    def coverage(self) -> Floats:
        """The share of all importance that is covered after each pick."""
        return np.asarray(self._each([p.coverage for p in self.picks]))

    @property
    def features(self) -> Any:
        """Names of the features that each pick is the first to show, the most important first."""
        return self._each([tuple(tuple(side.shared.names[f] for f in new) for new in p.new)
                           for side, p in zip(self.sides, self.picks, strict=True)])

    @property
    def bound(self) -> Any:
        """The share of the best possible coverage that is reached at least."""
        return self._each([p.bound for p in self.picks])

    @property
    def notes(self) -> tuple[str, ...]:
        """What to know before believing it."""
        told = dict.fromkeys(note for p in self.picks for note in p.notes)
        fewer = max(min([3, *(int(np.count_nonzero(p.importance)) // 2 for p in self.picks)]), 1)
        if len(self.indices) > 1 and self.method == "submodular" and all(
                p.coverage[0] > NEARLY_ALL and len(p.new[0]) > fewer for p in self.picks):
            told["The first explanation names nearly all that matters, so that the others add nothing: keep fewer parts in "
                 f"each with features=, such as features={fewer}."] = None
        if self.failed:
            told[f"{count(len(self.failed), 'input')} of {len(self.sides[0].explanations)} could not be explained and "
                 f"{'is' if len(self.failed) == 1 else 'are'} left out: {self._unexplained()}"] = None
        return tuple(told)

    def _unexplained(self) -> str:
        """The first inputs that failed, by place and name, and why the first did."""
        some = sorted(self.failed)
        told = [f"input {i}" + (f" ({self.names[i]})" if self.names.get(i) else "") for i in some[:LISTED]]
        more = f" and {len(some) - LISTED} more" if len(some) > LISTED else ""
        return f"{', '.join(told)}{more}; {'the first: ' * (len(some) > 1)}{self.failed[some[0]]}"

    def _each(self, values: Sequence[Any]) -> Any:
        return values[0] if len(values) == 1 else tuple(values)

    def __len__(self) -> int:
        """How many were picked."""
        return len(self.indices)

    def __getitem__(self, index: Any) -> Any:
        """The explanation that was picked at this place, or of several models a tuple of theirs."""
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        place = self.indices[index]
        return self._each([side.explanations[place] for side in self.sides])

    def __iter__(self) -> Iterator[Any]:
        """In the order of picking."""
        return (self[i] for i in range(len(self)))

    def renamed(self, sources: Sequence[str]) -> Picked:
        """The same, every input that came without a file's name called by one of these."""
        def called(e: Explanation | None, source: str) -> Explanation | None:
            return None if e is None else replace(e, source=e.source or source)

        sides = tuple(replace(side, explanations=tuple(called(e, source) for e, source in
                                                       zip(side.explanations, sources, strict=True))) for side in self.sides)
        names = {i: self.names.get(i) or sources[i] for i in self.failed}
        return replace(self, sides=sides, names={i: name for i, name in names.items() if name})

    @cached_property
    def random(self) -> tuple[Floats, ...]:
        """(REPEATS, picks) a model: coverage after each of as many random picks, for comparison."""
        return tuple(random_coverage(side.weights, len(self), generator(self.seed, "random picks"), REPEATS)
                     for side in self.sides)

    # --- in words -------------------------------------------------------------------------------------------------

    def table(self) -> list[dict[str, Any]]:
        """One row of plain data a pick and model: which input, what it adds, which features it is the first to show."""
        rows = []
        for place, index in enumerate(self.indices):
            for side, chosen in zip(self.sides, self.picks, strict=True):
                e = side.explanations[index]
                assert e is not None
                rows.append({"pick": place + 1, "input": index, "source": e.source, "model": side.model, "target":
                             e.target_name, "prediction": e.prediction, "gain": float(chosen.gains[place]),
                             "coverage": float(chosen.coverage[place]),
                             "features": [side.shared.names[f] for f in chosen.new[place]]})
                if len(self.sides) > 1:
                    rows[-1]["chosen_for"] = self.sides[chosen.by[place]].model if self.method == "submodular" else None
        return rows

    def summary(self) -> dict[str, Any]:
        """What was found, as plain data without the explanations themselves."""
        models = [{"model": side.model, "features": int((p.importance > 0).sum()), "about": side.shared.about,
                   "coverage": float(p.coverage[-1]), "bound": p.bound, "promised": p.promised,
                   "random": float(r[:, -1].mean())}
                  for side, p, r in zip(self.sides, self.picks, self.random, strict=True)]
        return {"method": self.method, "seed": self.seed, "inputs": len(self.sides[0].explanations),
                "indices": list(self.indices), "models": models, "picks": self.table(),
                "failed": {str(i): why for i, why in self.failed.items()},
                "names": {str(i): name for i, name in self.names.items()}, "notes": list(self.notes)}

    def __str__(self) -> str:
        """The picks in a few lines, what each adds, and how far from the best possible they can be."""
        total, rows = len(self.sides[0].places), self.table()
        called = " and ".join(dict.fromkeys(side.model for side in self.sides))
        lines = [f"{len(self)} of {count(total, 'explanation')} of {called} ({self.method} pick)"]
        for row in rows:
            who = f", {row['model']}" if len(self.sides) > 1 else ""
            source = f" ({row['source']})" if row["source"] else ""
            adds = f"adds {percent(row['gain'])}: {named(row['features'])}" if row["features"] else "adds nothing new"
            first = f"{row['pick']:>3}." if row["model"] == self.sides[0].model else "    "
            lines.append(f"{first} input {row['input']}{source}{who}: {row['target']} = {figures(row['prediction'])}; {adds}")
        lines += [f"  {page.verdict(side, len(self.sides) > 1)}" for side in self.shown.sides]
        return legible.lines(lines + [f"  ! {note}" for note in self.notes])

    def __repr__(self) -> str:
        """One line."""
        return f"<Picked {len(self)} of {len(self.sides[0].places)} explanations, {self.method}: {list(self.indices)}>"

    # --- pages and files ------------------------------------------------------------------------------------------

    @property
    def shown(self) -> page.Shown:
        """What the page is made from."""
        sides = []
        for side, chosen, drawn in zip(self.sides, self.picks, self.random, strict=True):
            explained = [(e, parts) for i, parts in zip(side.places, side.shared.of_parts, strict=True)
                         if (e := side.explanations[i]) is not None]
            picked = [explained[i] for i in chosen.indices]
            sides.append(page.Side(side.model, tuple(e for e, _ in picked), chosen, side.shared.names,
                                   tuple(parts for _, parts in picked), side.shared.about, drawn, explained))
        return page.Shown(tuple(sides), self.indices, len(self.sides[0].places), self.method, self.notes, self.failed,
                          self.names)

    def as_html(self) -> str:
        """One self-contained page."""
        return page.document(self.shown)

    def plot(self, **options: Any) -> Any:
        """A matplotlib figure: how coverage grows, then the picked explanations."""
        return page.figure(self.shown, **options)

    def save(self, path: str | os.PathLike[str], **options: Any) -> Path:
        """Write pick.html, pick.png (.svg, .pdf) or pick.json, by the file's ending; it appears whole or not at all."""
        target = Path(path)
        kind = target.suffix.lower()
        if kind not in (".html", ".htm", ".json", ".png", ".svg", ".pdf"):
            raise ValueError(f"the file must end in .html, .png, .svg, .pdf or .json, got {target.name!r}")
        if options and kind in (".html", ".htm", ".json"):
            raise TypeError(f"a {kind} file takes no options, got {', '.join(options)}")
        if not target.parent.is_dir():
            raise FileNotFoundError(f"the folder {target.parent} must exist before {target.name} can be written into it")
        writing = target.with_name(f".{target.name}.{os.getpid()}{kind}")
        try:
            if kind == ".json":
                writing.write_text(json.dumps(self.to_json()), encoding="utf-8")
            elif kind in (".html", ".htm"):
                writing.write_text(self.as_html(), encoding="utf-8", newline="\n")
            else:
                page.save_figure(self.shown, writing, **options)
            os.replace(writing, target)
        finally:
            writing.unlink(missing_ok=True)
        return target

    def _repr_html_(self) -> str:
        return page.fragment(self.shown)

    def to_json(self) -> dict[str, Any]:
        """Plain data with every explanation; `from_json` gives the same back."""
        sides = [{"model": side.model, "explanations": [None if e is None else e.to_json() for e in side.explanations],
                  "features": {"names": list(side.shared.names), "of_parts": [p.tolist() for p in side.shared.of_parts],
                               "about": side.shared.about}} for side in self.sides]
        return {"format": FORMAT, "kind": "pick", **self.summary(), "budget": self.budget,
                "picked": list(self.picks[0].indices), "turns": list(self.picks[0].by), "sides": sides}

    @classmethod
    def from_json(cls, data: Any) -> Picked:
        """What `to_json` wrote."""
        if not isinstance(data, dict) or data.get("kind") != "pick":
            raise ValueError("this must be a pick as picked.save('pick.json') writes it; explanations are read with "
                             "whytrust.Explanation.load or whytrust.Gallery.load")
        if not isinstance(data.get("format"), int):
            raise ValueError("this is no pick as picked.save('pick.json') wrote: its format is not said")
        if data["format"] > FORMAT:
            raise ValueError(f"this pick has format {data['format']}, newer than {FORMAT}: update whytrust to read it")
        try:
            sides = tuple(_side(one) for one in data["sides"])
            picks = given([side.weights for side in sides], data["picked"], data["turns"],
                          greedy=data["method"] == "submodular", budget=data.get("budget"))
            check_method(data["method"])
            failed = {int(i): str(w) for i, w in data["failed"].items()}
            names = {int(i): str(name) for i, name in data.get("names", {}).items()}
            return cls(sides, picks, data["method"], int(data["seed"]), failed, data.get("budget"), names)
        except ValueError:
            raise
        except Exception as error:  # it may come from anyone
            raise ValueError(f"this is no pick as picked.save('pick.json') wrote: {type(error).__name__} {error}") from error

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Picked:
        """Read what picked.save("pick.json") wrote."""
        data = files.plain(path, "a pick")
        with files.telling(path, "a pick"):
            return cls.from_json(data)


def _side(data: dict[str, Any]) -> Side:
    names, about = tuple(map(str, data["features"]["names"])), str(data["features"]["about"])
    of_parts = tuple(np.array(one, dtype=np.intp) for one in data["features"]["of_parts"])
    if any(one.ndim != 1 or (one.size and not 0 <= one.min() <= one.max() < len(names)) for one in of_parts):
        raise ValueError(f"each part must be one of the {len(names)} features of this file")
    explanations = tuple(None if e is None else Explanation.from_json(e) for e in data["explanations"])
    return Side(str(data["model"]), explanations, SharedFeatures(names, of_parts, about))


def named(features: Sequence[str], most: int = NAMED) -> str:
    """Some names, and how many there are besides."""
    more = f" and {len(features) - most} more" if len(features) > most else ""
    between = "; " if any("," in name for name in features) else ", "
    return between.join(map(one_line, features[:most])) + more
