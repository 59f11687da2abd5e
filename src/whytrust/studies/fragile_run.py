"""`whytrust reproduce fragile`: word swaps that keep the label and move the explanation, as Sinha et al. (2021) did.

One run for each data set, model and explainer, in OUT/DATASET/MODEL/EXPLAINER; each has all objectives and the random swaps, so
that every table and figure is made from the same runs. Everything is made from records, finished or not, and needs no data.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from whytrust import api, engine, loading
from whytrust.checked import CheckedModel, DifferentiableModel
from whytrust.core import near, need
from whytrust.explainers import NAMES
from whytrust.language.quality import quality_of
from whytrust.language.sources import candidates_of
from whytrust.store import Store
from whytrust.studies import fragile_data, fragile_figures, fragile_merging, fragile_told, markdown, text_training
from whytrust.studies import fragile_published as published
from whytrust.studies.fragile import FragileStudy
from whytrust.studies.fragile_data import TextSet
from whytrust.studies.fragile_tables import OBJECTIVES, Run
from whytrust.swapping.constraints import constraints_of
from whytrust.swapping.fragility import Fragility
from whytrust.swapping.racing import Racing
from whytrust.swapping.victims import LIME, Victim

MODELS = ("minilm", "minilm-adv", "tfidf")
EXPLAINERS = tuple(fragile_told.EXPLAINERS)
VARIANTS = ("paper", "authors")
LEAST_SAMPLES = 50
HUB = "hf:"
NO_GRADIENTS = ("tfidf", "tfidf-adv")


@dataclass(frozen=True)
class Part:
    """What of the paper an experiment is: kinds of tables and figures, and of which data sets and explainers."""

    kinds: tuple[str, ...]
    datasets: tuple[str, ...] = ()  # none is all there are
    explainers: tuple[str, ...] = EXPLAINERS

    def holds(self, dataset: str) -> bool:
        """Is this data set part of it?"""
        return not self.datasets or dataset in self.datasets


def _parts() -> dict[str, Part]:
    """Every table and figure by its number."""
    sentences = Part((fragile_figures.SENTENCES,), ("sst2",), ("integrated_gradients",))
    violins = replace(sentences, kinds=(fragile_figures.VIOLINS,))
    of_lime = replace(violins, explainers=("lime",))
    tables = {one.number: Part((one.measure,), (one.dataset,), (one.explainer,)) for one in published.TABLES}
    tables |= {5: Part(("perplexity",)), 6: Part(("confidence",)), 7: Part(("grammar",), ("sst2",))}
    figures = {**dict.fromkeys((1, 3, 4, 11, 12), sentences), **dict.fromkeys((7, 9), violins),
               **dict.fromkeys((8, 10), of_lime), 5: Part(violins.kinds, ("sst2",)), 6: Part(violins.kinds, ("ag_news",))}
    return {"all": Part((*fragile_told.KINDS, *fragile_figures.KINDS)), **{f"table{n}": tables[n] for n in sorted(tables)},
            **{f"fig{n}": figures[n] for n in sorted(figures)}}


EXPERIMENTS = _parts()


@dataclass(frozen=True)
class Asked:
    """What a user wants."""

    experiment: str = "all"
    data: str | None = None
    scale: float = 1.0
    models: tuple[str, ...] = MODELS
    out: str | None = None
    jobs: engine.Jobs = 1
    seed: int = 0
    samples: int = LIME["samples"]
    candidates: str = "thesaurus"
    quality: str = "usual"
    variant: str = "paper"
    racing: bool = False

    def __post_init__(self) -> None:
        """Refuse at once what could only fail later."""
        check(self.experiment)
        if not 0 < self.scale <= 1:
            raise ValueError(f"scale must lie in (0, 1], got {self.scale!r}; it is the share of the paper's 500 texts")
        if isinstance(self.samples, bool) or not isinstance(self.samples, int) or self.samples < LEAST_SAMPLES:
            raise ValueError(f"samples must be a whole number >= {LEAST_SAMPLES}, got {self.samples!r}")
        if self.variant not in VARIANTS:
            raise ValueError(f"variant must be paper (its Algorithm 1, by default) or authors (as their code does it), got "
                             f"{self.variant!r}")
        if not self.models:
            raise ValueError(f"models must name at least one of {', '.join(text_training.KINDS)} or {HUB}FOLDER_OR_NAME, got "
                             "none")
        for name in self.models:
            if name not in text_training.KINDS and not (name.startswith(HUB) and name != HUB):
                raise ValueError(f"models must be among {', '.join(text_training.KINDS)} or {HUB}FOLDER_OR_NAME of a BERT, "
                                 f"DistilBERT or RoBERTa classifier, got {name!r}{near(name, text_training.KINDS)}")
            if name in NO_GRADIENTS and self.variant == "authors":
                raise ValueError(f"variant 'authors' follows integrated gradients, and {name} has no gradients; name nets "
                                 "alone, such as --models minilm,minilm-adv")
        places = [place_of(name) for name in self.models]
        if len(set(places)) < len(places):
            raise ValueError(f"models must be told apart by their names, and two of {', '.join(self.models)} are not")

    @property
    def folder(self) -> Path:
        """The folder of all runs."""
        return Path("runs/fragile" if self.out is None else self.out)

    @property
    def part(self) -> Part:
        """What of the paper it is."""
        return EXPERIMENTS[self.experiment]

    @property
    def command(self) -> str:
        """How to do the same again."""
        usual = Asked()
        given = {name: getattr(self, name) for name in ("data", "scale", "out", "seed", "samples", "candidates", "quality",
                                                      "variant")}
        words = [word for name, value in given.items() if value != getattr(usual, name) for word in (f"--{name}", str(value))]
        models = [] if self.models == MODELS else ["--models", ",".join(self.models)]
        raced = ["--racing"] if self.racing else []
        return shlex.join(["whytrust", "reproduce", "fragile", self.experiment, *words, *models, *raced])


def check(experiment: str) -> None:
    """Refuse an experiment that the paper does not have."""
    if experiment not in EXPERIMENTS:
        raise ValueError(f"experiment must be one of {', '.join(EXPERIMENTS)}, got {experiment!r}"
                         f"{near(experiment, EXPERIMENTS)}")


def place_of(model: str) -> str:
    """A model's name as the name of a folder."""
    return re.sub(r"[^A-Za-z0-9_.-]+", "-", model).strip("-.") or "model"


def fragile(asked: Asked) -> Path:
    """Run what is left, and write tables (tables.md) and figures beside it; the folder of all runs comes back.

    Without data nothing is run: the report is made from what the folder holds.
    """
    need("matplotlib.figure", "report")  # before hours of work, not after
    if asked.data is None and not is_reproduction(asked.folder):
        raise ValueError(f"--data must name a folder of texts, for {asked.folder} holds no run to report on; it may hold "
                         f"{fragile_data.LAYOUTS}")
    if asked.data is not None:
        _run(asked, _sets(asked))
    part = asked.part
    fragile_figures.draw(runs_in(asked.folder, part), asked.folder / "figures", part.kinds)
    (asked.folder / "tables.md").write_text(report(asked.folder), encoding="utf-8")
    return asked.folder


# --- what is run ------------------------------------------------------------------------------------------------------


def _sets(asked: Asked) -> list[TextSet]:
    """The data sets of the folder that the experiment is of."""
    found = [fragile_data.read(place) for place in fragile_data.found_in(str(asked.data))]
    wanted = [one for one in found if asked.part.holds(one.name)]
    if not wanted:
        theirs = " and ".join(published.TITLES[name] for name in asked.part.datasets)
        raise ValueError(f"{asked.experiment} is of {theirs}, and {asked.data} holds {', '.join(one.title for one in found)}; "
                         "name another folder, or ask for all")
    return wanted


def _run(asked: Asked, sets: Sequence[TextSet]) -> None:
    candidates = candidates_of(asked.candidates)
    constraints = constraints_of(None, getattr(candidates, "vectors", None))
    quality = quality_of(asked.quality)
    done = 0
    for texts in sets:
        for name in asked.models:
            model = _model(name, texts, asked)
            for explainer, victim in _victims(model, asked):
                racing = Racing() if asked.racing and victim.races else None
                fragility = Fragility(model, victim, candidates, constraints, OBJECTIVES, racing=racing,
                                      variant=asked.variant, quality=quality, seed=asked.seed)
                study = _study(fragility, texts, explainer, asked, "" if name.startswith(HUB) else texts.learnt)
                place = asked.folder / texts.name / place_of(name)
                engine.run(study, place / explainer, asked.jobs, label=f"swapping words: {texts.title}, {name}, {explainer}")
                _keep_merging(model, victim, study.texts, place)
                done += 1
    if not done:
        raise ValueError(f"{asked.experiment} is of integrated gradients, and {', '.join(asked.models)} has no gradients; name "
                         f"a net, such as minilm or {HUB}FOLDER")


def _model(name: str, texts: TextSet, asked: Asked) -> CheckedModel:
    """A classifier trained on the data set, or one that was trained elsewhere."""
    if name.startswith(HUB):
        return loading.load(name, name=name.removeprefix(HUB)).model
    made = text_training.classifier(name, texts.train, texts.train_labels, seed=asked.seed, candidates=asked.candidates)
    return api.model(made, name=f"{name} on {texts.title}")


def _victims(model: CheckedModel, asked: Asked) -> Iterator[tuple[str, Victim]]:
    """The explainers to be attacked; integrated gradients where there are gradients."""
    if "integrated_gradients" in asked.part.explainers and isinstance(model, DifferentiableModel):
        yield "integrated_gradients", Victim(NAMES["integrated_gradients"].make())
    if "lime" in asked.part.explainers:
        yield "lime", Victim(NAMES["lime"].make(**{**LIME, "samples": asked.samples}), unit_length=True)


def _study(fragility: Fragility, texts: TextSet, explainer: str, asked: Asked, learnt: str) -> FragileStudy:
    some, labels = texts.first(explainer, asked.scale)
    truths = _truths(fragility.model, labels)
    if truths is None and asked.variant == "authors":
        raise ValueError(f"variant 'authors' keeps the true labels, and the classes of {fragility.model.name} ("
                         f"{', '.join(fragility.model.classes or ())}) are not those of {texts.title} ("
                         f"{', '.join(texts.classes)})")
    right = "" if truths is None else f"; the model is right on {_right(fragility.model, some, truths):.1%} of them"
    what = " ".join(filter(None, (f"{texts.title}: the first {len(some)} of {len(texts.test)} test texts{right}.", texts.how,
                                  learnt)))
    return FragileStudy(fragility, some, explainer, truths=truths if asked.variant == "authors" else None, what=what,
                        command=asked.command)


def _truths(model: CheckedModel, labels: Sequence[str]) -> list[int] | None:
    """The number of each text's class to the model, whatever case it writes names in; None where it has other classes."""
    known = {name.lower(): i for i, name in enumerate(model.classes or ())}
    found = [known.get(label.lower()) for label in labels]
    return None if None in found else [int(one) for one in found if one is not None]


def _right(model: CheckedModel, texts: Sequence[str], truths: Sequence[int]) -> float:
    return float(np.mean(model.labels(model(list(texts))) == np.array(truths)))


def _keep_merging(model: CheckedModel, victim: Victim, texts: Sequence[str], place: Path) -> None:
    """Figure 4 takes the pieces of words, which runs do not keep."""
    if hasattr(victim.explainer, "of_tokens") and not (place / fragile_merging.FILE).is_file():
        fragile_merging.write(fragile_merging.examples(model, victim.explainer, texts), place)


# --- what is reported ---------------------------------------------------------------------------------------------------


def runs_in(folder: str | Path, part: Part = EXPERIMENTS["all"]) -> list[Run]:
    """The runs in a folder, finished or not, that are part of an experiment: in the paper's order, then by name."""
    def order(run: Run) -> tuple[Any, ...]:
        lists = ((list(published.TITLES), run.dataset), (EXPLAINERS, run.explainer),
                 ((*MODELS, *text_training.KINDS), run.model))
        return tuple((names.index(name) if name in names else len(names), name) for names, name in lists)

    found = [Run.open(Store.open(path.parent)) for path in Path(folder).glob("*/*/*/manifest.json") if _is_fragile(path.parent)]
    return sorted((run for run in found if part.holds(run.dataset) and run.explainer in part.explainers), key=order)


def _is_fragile(folder: Path) -> bool:
    return Store.open(folder).manifest.get("study") == "fragile"


def is_reproduction(folder: str | Path) -> bool:
    """Whether a folder holds runs of this paper, finished or not."""
    return any(_is_fragile(path.parent) for path in Path(folder).glob("*/*/*/manifest.json"))


def kept(folder: str | Path) -> str:
    """What is left of runs that were interrupted."""
    stores = [Store.open(path.parent) for path in sorted(Path(folder).glob("*/*/*/manifest.json"))]
    if not stores:
        return "nothing had been done yet"
    told = "; ".join(f"{'/'.join(store.folder.parts[-3:])}: {store.kept()}" for store in stores)
    return f"{told}. They are in {folder}, and the same command goes on from there"


def findings(folder: str | Path, experiment: str = "all") -> dict[str, Any]:
    """What the runs in a folder have found so far."""
    check(experiment)
    part = EXPERIMENTS[experiment]
    return fragile_told.findings(runs_in(folder, part), part.kinds)


def report(folder: str | Path, as_json: bool = False, experiment: str = "all") -> str:
    """What the runs have found so far beside what was published, as Markdown or JSON."""
    found = findings(folder, experiment)
    if as_json:
        return json.dumps(found)
    part = EXPERIMENTS[experiment]
    pictures = fragile_figures.drawn(Path(folder) / "figures", runs_in(folder, part), part.kinds)
    shown = [f"{fragile_figures.caption(path.stem)}:\n\n![]({path.relative_to(folder).as_posix()})\n" for path in pictures]
    return "\n".join([markdown.told(found), *(["## Figures\n", *shown] if shown else [])])
