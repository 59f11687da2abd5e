"""`whytrust reproduce lime fig11 | table2`: the husky and the wolf of Ribeiro, Singh and Guestrin (2016, § 6.4), with pets.

There a model learned that wolves stand on snow. Here a small black square with a word in it, which somebody has planted into
copies of the Oxford pets, plays the snow; dogs with long coats play the wolves and dogs with short ones the huskies; and
simulated readers replace the people. The question is the same, and the paper's numbers are no target.
"""

from __future__ import annotations

import csv
import hashlib
import importlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from whytrust import api, engine, files, stats
from whytrust.core import Parts, near, need
from whytrust.planting import Which, holding
from whytrust.store import Store
from whytrust.studies import markdown
from whytrust.studies.data import square
from whytrust.studies.insight_findings import findings, outcome, rates
from whytrust.studies.trust_insight import InsightStudy, explainers

LONG, SHORT = "long coat", "short coat"
COATS = {
    **dict.fromkeys(("english_cocker_spaniel", "english_setter", "great_pyrenees", "havanese", "japanese_chin", "keeshond",
                     "leonberger", "newfoundland", "pomeranian", "saint_bernard", "samoyed", "scottish_terrier",
                     "wheaten_terrier", "yorkshire_terrier"), LONG),
    **dict.fromkeys(("american_bulldog", "american_pit_bull_terrier", "basset_hound", "beagle", "boxer", "chihuahua",
                     "german_shorthaired", "miniature_pinscher", "pug", "shiba_inu", "staffordshire_bull_terrier"), SHORT)}
"""The dogs among the Oxford pets. Cats are left out: their artefact is another one, and a reader would have two to name."""
SIZE, BOXED = 224, 512
SIDES = ("bbox_xmin", "bbox_ymin", "bbox_xmax", "bbox_ymax")
TRAINED = 10
"""Pictures of each class that are trained on, as in the paper."""
SAMPLES, PARTS, READERS = 300, "slic:40", 27
PUBLISHED = {"before": {"trusted": 10, "named": 12}, "after": {"trusted": 3, "named": 25}, "n": 27}
"""Table 2 of the paper: of 27 people, how many trusted the bad model, and how many named snow."""
CITATION = ("M. T. Ribeiro, S. Singh, C. Guestrin: “Why Should I Trust You?” Explaining the Predictions of Any Classifier. "
            "KDD 2016, § 6.4")
STANDS_IN = ("Simulated readers replace the paper's people, and a planted square replaces its snow: read the counts beside "
             "each other, not as one measured again.")
EXPERIMENTS = ("fig11", "table2")
Box = tuple[int, int, int, int]


@dataclass(frozen=True, eq=False)
class Copies:
    """An artefact that somebody else has planted: each picture has a copy with it, and a box says where it is.

    Pictures are known by what is in them. A picture that has no copy cannot get the artefact.
    """

    copies: Mapping[str, NDArray[Any]] = field(repr=False)  # by the digest of the picture without the artefact
    boxes: Mapping[str, Box] = field(repr=False)  # by the digest of the copy: left, top, right and bottom pixel
    domain: ClassVar[str] = "image"
    name: ClassVar[str] = "a small black square with a word in it"

    def into(self, item: Any, rng: np.random.Generator) -> NDArray[Any]:
        """The picture's copy with the artefact."""
        key = _digest(item)
        if key not in self.copies:
            raise ValueError("a picture must have a copy with the artefact, and this one has none; take one of the data's own")
        return self.copies[key].copy()

    def without(self, item: Any) -> NDArray[Any]:
        """The picture itself."""
        return np.asarray(item)

    def parts_of(self, parts: Parts) -> Which:
        """Parts that have a good share of the box, or mostly lie in it."""
        picture, labels = parts.image, parts.labels  # type: ignore[attr-defined]
        where = np.zeros(labels.shape, dtype=bool)
        left, top, right, bottom = self.boxes.get(_digest(picture), (0, 0, -1, -1))
        where[top:bottom + 1, left:right + 1] = True
        return holding(where, labels, len(parts.names))


@dataclass(frozen=True, eq=False)
class Pets:
    """Pictures of dogs with and without an artefact, from a folder with images/, with_artifact/ and artifact_boxes.csv."""

    folder: Path
    size: int = SIZE

    @cached_property
    def names(self) -> list[str]:
        """The dogs that have a copy with the artefact and a box for it."""
        root = self.folder
        for what in ("images", "with_artifact", "artifact_boxes.csv"):
            if not (root / what).exists():
                raise ValueError("--data must name a folder with images/, with_artifact/ and artifact_boxes.csv, "
                                 f"{root} has no {what}")
        found = [path.name for path in sorted((root / "images").iterdir())
                 if _breed(path.name) in COATS and (root / "with_artifact" / path.name).is_file() and path.name in self._rows]
        few = [coat for coat in (LONG, SHORT) if sum(COATS[_breed(name)] == coat for name in found) < TRAINED + 5]
        if few:
            raise ValueError(f"there must be at least {TRAINED + 5} pictures of dogs with a {few[0]}, and of their copies with "
                             f"the artefact, in {root}; got {sum(COATS[_breed(n)] == few[0] for n in found)}")
        return found

    @cached_property
    def _rows(self) -> dict[str, dict[str, str]]:
        place, what = self.folder / "artifact_boxes.csv", f"a table with the columns image, {', '.join(SIDES)}"
        rows = files.text(place, what).splitlines()
        with files.telling(place, what):
            found = {row["image"]: row for row in csv.DictReader(rows)}
            boxes = [float(row[side]) for row in found.values() for side in SIDES]
            if not boxes or not np.isfinite(boxes).all():
                raise ValueError("it must have rows, and boxes of finite numbers")
        return found

    @property
    def labels(self) -> list[str]:
        """Long or short coat."""
        return [COATS[_breed(name)] for name in self.names]

    @cached_property
    def pictures(self) -> NDArray[np.uint8]:
        """All of them without the artefact, (n, size, size, 3)."""
        return np.stack([square(self.folder / "images" / name, self.size, self.size) for name in self.names])

    @cached_property
    def plant(self) -> Copies:
        """Their copies with it."""
        copies, boxes = dict[str, NDArray[Any]](), dict[str, Box]()
        for name, picture in zip(self.names, self.pictures, strict=True):
            copy = square(self.folder / "with_artifact" / name, self.size, self.size)
            copies[_digest(picture)] = copy
            left, top, right, bottom = (float(self._rows[name][side]) * self.size / BOXED for side in SIDES)
            boxes[_digest(copy)] = round(left), round(top), round(right), round(bottom)
        return Copies(copies, boxes)


def _breed(name: str) -> str:
    return name.rpartition(".")[0].rpartition("_")[0]


def _digest(picture: Any) -> str:
    return hashlib.blake2b(np.ascontiguousarray(picture).tobytes(), digest_size=8).hexdigest()


def early_layers() -> Any:
    """The first layers of EfficientNet-Lite0, which the bad model sees pictures through."""
    probe = importlib.import_module("whytrust.models.probe")
    return probe.layers(probe.EARLY)


def all_layers() -> Any:
    """Those of the innocent model, which can tell coats without the artefact."""
    probe = importlib.import_module("whytrust.models.probe")
    return probe.layers(probe.ALL)


def train(layers: Callable[[], Any], images: Any, labels: Any, seed: int) -> Any:
    """A logistic regression on those layers, as one net of pictures in bytes."""
    probe, nets = (importlib.import_module(f"whytrust.models.{name}") for name in ("probe", "nets"))
    net = probe.fit(layers(), np.asarray(images), labels, nets.photo_batch)
    return api.model(net, preprocess=nets.photo_batch, output="logit", classes=(LONG, SHORT), name="coats of dogs")


def study(pets: Pets, scale: float = 1.0, seed: int = 0, samples: int | None = None,
          layers: Callable[[], Any] = early_layers, innocent: Callable[[], Any] = all_layers) -> InsightStudy:
    """The insight experiment on these pictures; at a scale below 1, fewer readers draw from fewer pictures."""
    if not 0 < scale <= 1:
        raise ValueError(f"scale must be a share of the readers and pictures, above 0 and at most 1, got {scale!r}")
    count = SAMPLES if samples is None else samples
    made = explainers((*explainers(), "edges"), {"lime": {"samples": count}})  # edges: does it take a model to name a square?
    return InsightStudy(partial(train, layers), pets.pictures, pets.labels, pets.plant, made, with_it=LONG, training=TRAINED,
                        innocent=partial(train, innocent), parts=PARTS, readers=max(round(scale * READERS), 1),
                        right=max(round(scale * 8), 4), wrong=max(round(scale * 6), 1), seed=seed, keep_arrays=True,
                        spec={"paper": "lime", "reproduces": "fig11, table2", "samples": count, "size": pets.size})


def run(data: str | None, scale: float, out: str | Path, jobs: engine.Jobs, seed: int, samples: int | None = None,
        layers: Callable[[], Any] = early_layers, innocent: Callable[[], Any] = all_layers) -> Path:
    """Run the study, or go on with it, and write its tables (tables.md) and figures beside it; the run's folder comes back.

    Without data nothing is run: tables and figures are made from what the folder holds. `layers` and `innocent` are what the
    bad and the innocent model see pictures through.
    """
    need("matplotlib.figure", "report")  # before minutes of work, not after
    folder = Path(out)
    if data is not None:
        made = study(Pets(Path(data)), scale, seed, samples, layers, innocent)
        engine.run(made, folder, jobs, label="reproducing")
    elif not is_reproduction(folder):
        raise ValueError(f"--data must name a folder of pets, for {folder} holds no run of this study to report on")
    figures = importlib.import_module("whytrust.studies.lime_pets_figures")
    store = Store.open(folder)
    figures.draw(store, folder / "figures")
    (folder / "tables.md").write_text(report(folder), encoding="utf-8")
    return folder


def is_reproduction(folder: str | Path) -> bool:
    """Whether a folder holds a run of this study, finished or not."""
    if not (Path(folder) / "manifest.json").is_file():
        return False
    manifest = Store.open(folder).manifest
    return bool(manifest.get("study") == "insight" and manifest["spec"].get("reproduces"))


# --- what came out ----------------------------------------------------------------------------------------------------


def table2(store: Store) -> dict[str, Any]:
    """The paper's Table 2 with ours beside: how many trusted the bad model, and how many named its reason."""
    found = outcome(store)
    rows: dict[str, Any] = {}
    for words, beliefs in {"before": found.before, **found.after}.items():
        named, trusted = rates(beliefs)
        rows[words] = {"n": named.n, "named": _count(named), "trusted": _count(trusted), "innocent": None}
        if words in found.innocent:
            rows[words]["innocent"] = _count(rates(found.innocent[words])[0])
    return {"ours": rows, "published": PUBLISHED}


def _count(rate: stats.Rate) -> int:
    return round(rate.value * rate.n) if rate.n else 0


def _told(table: Mapping[str, Any]) -> dict[str, Any]:
    """Table 2 in the form that all tables of findings have."""
    theirs = table["published"]
    rows = [[f"paper, {when} (people, snow)", *(f"{theirs[when][side]} of {theirs['n']}" for side in ("trusted", "named")), ""]
            for when in ("before", "after")]
    rows += [[f"ours, {'' if name == 'before' else 'after '}{name} (simulated, square)",
              *("" if row[side] is None else f"{row[side]} of {row['n']}" for side in ("trusted", "named", "innocent"))]
             for name, row in table["ours"].items()]
    return {"title": "Table 2", "rows": rows, "about": STANDS_IN,
            "columns": ["", "trusted the bad model", "named its reason", "would name it for an innocent model"]}


def report(folder: str | Path, as_json: bool = False, experiment: str = "all") -> str:
    """What a run has found so far beside what was published, as Markdown or JSON."""
    if experiment not in ("all", *EXPERIMENTS):
        raise ValueError(f"experiment must be one of all, {', '.join(EXPERIMENTS)}, got {experiment!r}"
                         f"{near(experiment, EXPERIMENTS)}")
    store = Store.open(folder)
    found, table = findings(store), table2(store)
    found |= {"paper": CITATION, "table2": table, "tables": [_told(table), *found["tables"]]}
    if as_json:
        return json.dumps(found)
    return markdown.told(found, sorted(path.relative_to(folder).as_posix() for path in Path(folder).glob("figures/*.png")))
