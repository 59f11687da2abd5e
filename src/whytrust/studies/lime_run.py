"""`whytrust reproduce lime`: the simulated users of Ribeiro, Singh and Guestrin (2016), and simulated readers for their people.

Everything is made from the records of a run, finished or not, so a report can be had at any time.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from whytrust import engine
from whytrust.core import near, need
from whytrust.store import Store
from whytrust.studies import lime_choice, lime_figures, lime_findings, lime_pets, lime_religion, markdown
from whytrust.studies.lime_faithful import FaithfulStudy
from whytrust.studies.lime_reviews import DATASETS
from whytrust.studies.lime_trust import TrustStudy

REVIEWS = ("fig6", "fig7", "table1", "fig8")
RELIGION = ("fig9", "fig10")
PETS = ("fig11", "table2")
EXPERIMENTS = (*REVIEWS, *RELIGION, *PETS)
DATA = {**dict.fromkeys(REVIEWS, "the reviews (a folder with books and dvd of the multi-domain sentiment set, processed)"),
        **dict.fromkeys(RELIGION, "20 newsgroups (20news-bydate-train and -test, atheism and christianity)"),
        **dict.fromkeys(PETS, "pets (images, with_artifact and artifact_boxes.csv)")}


@dataclass(frozen=True)
class Asked:
    """What a user wants."""

    experiment: str
    data: str | None = None
    scale: float = 1.0
    out: str | None = None
    jobs: engine.Jobs = 1
    seed: int = 0
    samples: int | None = None

    def __post_init__(self) -> None:
        """Refuse at once what could only fail later."""
        if self.experiment not in EXPERIMENTS:
            raise ValueError(f"experiment must be one of {', '.join(EXPERIMENTS)}, which have data of their own, got "
                             f"{self.experiment!r}{near(self.experiment, EXPERIMENTS)}")
        if not 0 < self.scale <= 1:
            raise ValueError(f"scale must lie in (0, 1], got {self.scale!r}; it is the share of reviews, pairs or readers")
        if self.samples is not None and (isinstance(self.samples, bool) or self.samples < 50):
            raise ValueError(f"samples must be a whole number >= 50, got {self.samples!r}")

    @property
    def folder(self) -> Path:
        """The run's folder; both pictures of the pets are of one run."""
        return Path(f"runs/lime-{'table2' if self.experiment in PETS else self.experiment}" if self.out is None else self.out)


def lime(asked: Asked) -> Path:
    """Run an experiment, or go on with it, and write its tables (tables.md) and figures beside it; the run's folder comes back.

    Without data nothing is run: the report is made from what the folder holds.
    """
    need("matplotlib.figure", "report")  # before hours of work, not after
    if asked.data is None and not any((asked.folder / place / "manifest.json").is_file() for place in ("", *DATASETS)):
        raise ValueError(f"--data must name {DATA[asked.experiment]}, for {asked.folder} holds no run to report on")
    if asked.experiment in RELIGION:
        return lime_religion.run(asked.experiment, asked.data, asked.scale, asked.folder, asked.jobs, asked.seed, asked.samples)
    if asked.experiment in PETS:
        return lime_pets.run(asked.data, asked.scale, asked.folder, asked.jobs, asked.seed, asked.samples)
    there = asked.folder / "manifest.json"
    if asked.data is None and there.is_file() and _held(Store.open(asked.folder)) != asked.experiment:
        raise ValueError(f"{asked.folder} holds a run of {_held(Store.open(asked.folder))}, not of {asked.experiment}; name "
                         "the folder of that one (--out)")
    if asked.data is not None:
        for place, study in _studies(asked).items():
            engine.run(study, asked.folder / place, asked.jobs, label=f"reproducing {asked.experiment} {place}".rstrip())
    lime_figures.draw(findings(asked.folder), asked.experiment, asked.folder / "figures")
    (asked.folder / "tables.md").write_text(report(asked.folder), encoding="utf-8")
    return asked.folder


def _held(store: Store) -> str:
    """Which experiment a run is of."""
    spec = store.manifest["spec"]
    data = (spec.get("datasets") or [""])[0]
    return "table1" if spec.get("kind") == "trust" else {"books": "fig6", "dvd": "fig7"}.get(data, "")


def _studies(asked: Asked) -> dict[str, Any]:
    """What is to be run, and where in the folder."""
    data = str(asked.data)
    samples: dict[str, Any] = {} if asked.samples is None else {"samples": asked.samples}
    if asked.experiment == "table1":
        return {"": TrustStudy(data, scale=asked.scale, seed=asked.seed, **samples)}
    if asked.experiment == "fig8":
        pairs = max(round(asked.scale * lime_choice.PAIRS), 2)
        return {name: lime_choice.study(data, name, pairs, seed=asked.seed, **samples) for name in DATASETS}
    return {"": FaithfulStudy(data, (DATASETS[asked.experiment == "fig7"],), scale=asked.scale, seed=asked.seed, **samples)}


def is_reproduction(folder: str | Path) -> bool:
    """Whether a folder holds a run of one of these, finished or not."""
    place = Path(folder)
    if any((place / name / "manifest.json").is_file() for name in DATASETS):
        return True
    kind = Store.open(place).manifest.get("study") if (place / "manifest.json").is_file() else None
    return kind == "lime" or lime_religion.is_reproduction(place) or lime_pets.is_reproduction(place)


def findings(folder: str | Path) -> dict[str, Any]:
    """What a run of Figures 6 to 8 or Table 1 has found so far."""
    place = Path(folder)
    if not (place / "manifest.json").is_file():
        return lime_findings.choice({name: Store.open(place / name) for name in DATASETS
                                     if (place / name / "manifest.json").is_file()})
    store = Store.open(place)
    return lime_findings.trust(store) if store.manifest["spec"]["kind"] == "trust" else lime_findings.faithful(store)


def report(folder: str | Path, as_json: bool = False, experiment: str = "all") -> str:
    """What a run has found so far beside what was published, as Markdown or JSON."""
    if lime_religion.is_reproduction(folder):
        return lime_religion.report(folder, as_json, experiment)
    if lime_pets.is_reproduction(folder):
        return lime_pets.report(folder, as_json, experiment)
    found = findings(folder)
    pictures = sorted(path.relative_to(folder).as_posix() for path in Path(folder).glob("figures/*.png"))
    return json.dumps(found) if as_json else markdown.told(found, pictures)
