"""`whytrust reproduce metrics`: the demonstrations of Wang & Wang (2022), on our nets, with the published numbers beside them.

Three runs, in OUT/linear, OUT/flipping and OUT/enhanced; each experiment needs one of them. Everything is made from records,
finished or not.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from whytrust import engine
from whytrust.core import near, need
from whytrust.store import Store, plain
from whytrust.studies import markdown, pitfalls_figures, pitfalls_linear, pitfalls_told
from whytrust.studies import pitfalls_published as published
from whytrust.studies.pitfalls_enhanced import EnhancedStudy
from whytrust.studies.pitfalls_flipping import FlippingStudy
from whytrust.studies.pitfalls_linear import LinearStudy
from whytrust.studies.pitfalls_nets import Pictures

PARTS = {"linear": ("table3", "fig3", "indicator"), "flipping": ("fig1", "fig4", "fig5", "fig6"),
         "enhanced": ("table2", "fig2", "appendix")}
"""Which experiments each run is for."""
EXPERIMENTS = ("all", "fig1", "table2", "fig2", "fig3", "table3", "fig4", "fig5", "fig6", "appendix", "indicator")
USUAL = {"flipping": 40, "enhanced": 60}
"""Images where nobody says a scale and digits are taken."""


@dataclass(frozen=True)
class Asked:
    """What a user wants."""

    experiment: str = "all"
    data: str | None = None
    scale: float | None = None
    out: str | None = None
    jobs: engine.Jobs = 1
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse at once what could only fail later."""
        if self.experiment not in EXPERIMENTS:
            raise ValueError(f"experiment must be one of {', '.join(EXPERIMENTS)}, got {self.experiment!r}"
                             f"{near(self.experiment, EXPERIMENTS)}")
        if self.scale is not None and not 0 < self.scale <= 1:
            raise ValueError(f"scale must lie in (0, 1], got {self.scale!r}; it is the share of the images")

    @property
    def folder(self) -> Path:
        """The folder of all runs."""
        return Path("runs/metrics" if self.out is None else self.out)

    @property
    def parts(self) -> list[str]:
        """The runs that it needs."""
        return [part for part, names in PARTS.items() if self.experiment in ("all", *names)]


def reproduce(asked: Asked) -> Path:
    """Do what is left of the runs that an experiment needs, and write tables and figures; the folder comes back."""
    need("matplotlib.figure", "report")  # before the work, not after
    pictures = Pictures(asked.data, 1.0 if asked.scale is None else asked.scale)
    if asked.data is not None and not Path(asked.data).exists():
        raise ValueError(f"--data must name a folder with mnist.npz, or one of ImageNet images, and there is no {asked.data!r}")
    for part in asked.parts:
        if part == "linear" and not pictures.digits:
            if asked.experiment != "all":
                raise ValueError(f"{asked.experiment} is about digits: --data must name a folder with mnist.npz, or be left "
                                 f"out for scikit-learn's, got {asked.data!r}")
            continue
        if part != "linear":
            importlib.import_module("whytrust.models.small_nets")  # says at once where torch is missing
        engine.run(_study(part, asked, pictures), asked.folder / part, asked.jobs, label=f"reproducing, {part}")
    stores = opened(asked.folder)
    pitfalls_figures.draw(stores, asked.folder / "figures", asked.experiment)
    (asked.folder / "tables.md").write_text(report(asked.folder), encoding="utf-8")  # of all that the folder holds
    return asked.folder


def _study(part: str, asked: Asked, pictures: Pictures) -> Any:
    if part == "linear":
        return LinearStudy(pitfalls_linear.read(asked.data, pictures.scale), asked.seed)
    if asked.scale is None and pictures.digits:
        whole = len(Pictures(asked.data).items)
        pictures = Pictures(asked.data, min(USUAL[part] / whole, 1.0))
    study: Callable[..., Any] = FlippingStudy if part == "flipping" else EnhancedStudy
    return study(pictures, seed=asked.seed)


def opened(folder: str | Path) -> dict[str, Store]:
    """The runs that a folder holds."""
    return {part: Store.open(Path(folder) / part) for part in PARTS if (Path(folder) / part / "manifest.json").is_file()}


def is_reproduction(folder: str | Path) -> bool:
    """Whether a folder holds runs of these demonstrations."""
    return any(store.manifest.get("study") == "pitfalls" for store in opened(folder).values())


def report(folder: str | Path, as_json: bool = False, experiment: str = "all") -> str:
    """What the runs have found so far beside what was published, as Markdown or JSON."""
    found = findings(opened(folder), experiment)
    pictures = sorted(path.relative_to(folder).as_posix() for path in Path(folder).glob("figures/*.png"))
    return json.dumps(found) if as_json else markdown.told(found, pictures if experiment == "all" else [])


def findings(stores: Mapping[str, Store], experiment: str = "all") -> dict[str, Any]:
    """Every table and sentence, as plain data."""
    answers: list[str] = []
    tables: list[dict[str, Any]] = []
    done, of, failures, notes = 0, 0, [], []
    for part, store in stores.items():
        if experiment != "all" and experiment not in PARTS[part]:
            continue
        records = list(store.records())
        done, of = done + len(records), of + sum(len(block.cases) for block in store.blocks)
        failures += [{"case": f"{part} {r['case']}", "error": r["error"]} for r in records if r["status"] == "failed"]
        notes += [*store.problems, f"{part}: {store.manifest['about']['data']}."]
        for said, some in _told(part, records, experiment):
            answers += said
            tables += some
    return dict(plain({"paper": published.CITATION, "question": "Do metrics of explanations say what they seem to say?",
                       "answer": answers, "tables": tables, "notes": notes, "failures": failures, "experiment": experiment,
                       "cases": {"done": done, "of": of, "failed": len(failures)}}))


def _told(part: str, records: Sequence[Mapping[str, Any]], experiment: str) -> Any:
    if part == "flipping":
        yield pitfalls_told.flipping(records)
    elif part == "enhanced":
        yield pitfalls_told.enhanced(records)
    else:
        by_case = {r["case"]: r for r in records if r["status"] == "ok"}
        if "pointing" in by_case and experiment in ("all", "table3", "fig3"):
            yield pitfalls_told.pointing(by_case["pointing"])
        if "indicator" in by_case and experiment in ("all", "indicator"):
            yield pitfalls_told.indicator(by_case["indicator"])
