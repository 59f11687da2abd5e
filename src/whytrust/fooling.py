"""What a user types to find out how easily explanations of texts are changed while predictions stay: `fool`."""

from __future__ import annotations

import inspect
import os
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from whytrust import api, engine
from whytrust import inputs as reading
from whytrust.checked import CheckedModel, DifferentiableModel
from whytrust.core import generator, near
from whytrust.explainers import CATALOGUE, NAMES
from whytrust.explainers.gradients import Pooled
from whytrust.explainers.lime import Lime
from whytrust.language.quality import quality_of
from whytrust.language.sources import candidates_of
from whytrust.language.vectors import WordVectors
from whytrust.language.written import Written
from whytrust.report import fragile as page
from whytrust.report.records import bounded, understood
from whytrust.reporting import Reported
from whytrust.store import Store
from whytrust.studies import fragile_findings
from whytrust.studies.fragile import BLOCK, FragileStudy
from whytrust.swapping.asking import most_swaps
from whytrust.swapping.constraints import constraints_of
from whytrust.swapping.fragility import Fragility
from whytrust.swapping.racing import Racing
from whytrust.swapping.search import OBJECTIVES, RANDOM
from whytrust.swapping.victims import LIME, Victim

VARIANTS = ("paper", "authors")
CONTROLS = 3


class Fooled(Reported):
    """What was found: `print(fooled)` says it in words, `save_html` shows the texts, `to_json` has every number."""

    page = "fooled.html"

    @classmethod
    def open(cls, folder: str | os.PathLike[str]) -> Fooled:
        """The run in a folder, finished or not."""
        if not is_fooled(folder):
            raise ValueError(f"{folder} must hold a run of wt.fool, and does not")
        return cls(Store.open(Path(folder)))

    @cached_property
    def findings(self) -> dict[str, Any]:
        """Every number, as plain data."""
        with understood(self.store.folder):
            bounded(self.store)
            return fragile_findings.fragile(self.store)

    def to_json(self) -> dict[str, Any]:
        """The same, and every text as it was and as it became, by objective."""
        with understood(self.store.folder):
            asked = self.store.manifest["spec"]["objectives"]
            return {**self.findings, "texts": {name: self.texts(name) for name in asked}}

    def texts(self, objective: str | None = None) -> list[dict[str, Any]]:
        """Each text as it was and as it became: text, fooled, swaps, label, score and how far explanations agree.

        Of the last level, that with most words swapped; where nothing could be swapped, or a text failed, `error` says so.
        """
        asked = self.store.manifest["spec"]["objectives"]
        if objective is not None and objective not in (*asked, RANDOM):
            raise ValueError(f"objective must be one of this run's, {', '.join((*asked, RANDOM))}, got {objective!r}")
        name = objective or asked[0]
        return [_told(record, name) for record in self.store.records()]

    def __len__(self) -> int:
        """How many texts, those that failed among them."""
        with understood(self.store.folder):
            return sum(1 for _ in self.store.records(only=()))

    def as_html(self) -> str:
        """One page that holds all it shows."""
        with understood(self.store.folder):
            return page.document(self.findings, page.shown(self.store))

    def __repr__(self) -> str:
        """One line."""
        cases = self.findings["cases"]
        return f"<fooled, {self.findings['explainer']}: {cases['done']} of {cases['of']} texts, {cases['failed']} failed>"


def _told(record: Mapping[str, Any], name: str) -> dict[str, Any]:
    found: dict[str, Any] = {key: record.get(key) for key in ("case", "name", "status", "text", "label_name", "score", "error")}
    levels = (record.get("paths", {}).get(name) or [[]])[0]
    if not levels:
        nothing = dict.fromkeys(("fooled_score", "ratio", "rank", "top", "lom", "l2"))
        return {**found, "fooled": None, "swaps": [], **nothing}
    last = levels[-1]
    # Of the text itself: the authors' paths are no chains of their own levels.
    after = Written.of(last["text"]).words
    swaps = [(old, new) for old, new in zip(record["words"], after, strict=False) if old != new]
    return {**found, "fooled": last["text"], "swaps": swaps,
            "fooled_score": last["score"], **{what: last[what] for what in ("ratio", "rank", "top", "lom", "l2")}}


def is_fooled(folder: str | os.PathLike[str]) -> bool:
    """Whether a folder holds a run of wt.fool, finished or not."""
    place = Path(folder)
    return (place / "manifest.json").is_file() and Store.open(place).manifest.get("study") == "fragile"


def fool(model: Any, texts: Any, explainer: Any = "lime", objective: Any = "lom", max_ratio: float = 0.5, *,
         candidates: Any = "thesaurus", constraints: Any = None, vectors: Any = None, variant: str = "paper",
         labels: Any = None, controls: int = CONTROLS, racing: Any = False, quality: Any = "usual",
         normalise: bool | None = None, out: str | os.PathLike[str] | None = None, jobs: engine.Jobs = 1, seed: int = 0,
         limit: int | None = None, block: int | None = None, batch_size: int | None = None, command: str = "",
         **options: Any) -> Fooled:
    """How easily is what an explainer says of texts changed by word swaps that keep the label? (Sinha et al. 2021)

    Words are swapped one by one, those first that the model would miss most, for `candidates` ("thesaurus", "pairs:FOLDER",
    "wordnet", "vectors:FILE", "masked:MODEL", an object, or several) that every constraint allows (None is all of "repeat",
    "stop_words", "part_of_speech", "sentence_similarity", and with `vectors`, a file of word vectors, "word_distance"; any
    function of the original and the swapped text is one, too) and that keep the label. `objective` says which of them is kept:
    "lom" (the one that moves the explanation's centre of mass furthest), "l2" (its scores), "random", or a list. At most
    `max_ratio` of the words are swapped.

    Beside each attack stand random swaps of as many words (`controls` draws), the explainer's own noise, and the model's own
    answers without each word. `variant="authors"` follows the centre of mass of integrated gradients whatever the objective,
    keeps `labels`, and lets every objective pick from the same candidates. `racing` gives up candidates early that are behind:
    fewer model calls, mostly the same path. `quality` judges the swapped texts: "usual", None, or a Quality.

    The run is kept in `out`: the same call goes on where it stopped. Further options go to the explainer (samples, steps, …).
    """
    generator(seed)
    wrapped, (given, names) = api.model(model), _texts(texts)
    kept = _spread(len(given), limit)
    name, victim = victim_of(explainer, options, normalise)
    if _variant(variant) == "authors" and not isinstance(wrapped, DifferentiableModel):
        raise TypeError(f"variant 'authors' follows integrated gradients, and {wrapped.name} has no gradients; use the paper's "
                        "variant")
    if labels is not None and variant != "authors":
        raise ValueError("labels are for variant='authors', which keeps them; else what the model says is kept: leave them "
                         "out")
    if isinstance(victim.explainer, Pooled) and not isinstance(wrapped, DifferentiableModel):
        raise TypeError(f"{name} needs a model with gradients, and {wrapped.name} is a black box; pass the Hugging Face model "
                        "and its tokenizer, or attack an explainer that only asks: lime, kernel_shap, occlusion")
    source = candidates_of(candidates)
    near_words = getattr(source, "vectors", None) if vectors is None else (
        vectors if isinstance(vectors, WordVectors) else WordVectors.open(_file("vectors", vectors)))
    fragility = Fragility(
        wrapped, victim, source, constraints_of(constraints, near_words), _objectives(objective),
        _ratio(max_ratio), _whole("controls", controls, 0), _racing(racing, victim), _variant(variant), quality_of(quality),
        int(seed), None if batch_size is None else _whole("batch_size", batch_size, 1))
    study = FragileStudy(
        fragility, [given[i] for i in kept], name, [names[i] for i in kept], _labels(wrapped, labels, given, kept),
        f"{len(kept)} texts" if len(kept) == len(given) else f"{len(kept)} of {len(given)} texts, evenly spread",
        BLOCK if block is None else _whole("block", block, 1), command)
    folder = Path(tempfile.mkdtemp(prefix="whytrust-fool-")) / "run" if out is None else Path(out)
    return Fooled(engine.run(study, folder, jobs, label="swapping words"))


def victim_of(explainer: Any, options: Mapping[str, Any] | None = None, normalise: bool | None = None) -> tuple[str, Victim]:
    """(what an explainer is called, the explainer as the one that is attacked); LIME's scores are divided by their length."""
    given = dict(options or {})
    name = explainer if isinstance(explainer, str) else str(getattr(explainer, "name", type(explainer).__name__.lower()))
    if explainer == "lime":
        given = {**LIME, **({"design": "stratified"} if given.get("samples") == "auto" else {}), **given}
    _known(explainer, given)
    if isinstance(explainer, str) and NAMES[explainer].goal == "nothing":
        raise ValueError(f"{explainer} knows nothing of the model, so that there is nothing to fool; name an explainer such as "
                         "lime or integrated_gradients")
    made = api.explainer_of(explainer, given, set())
    if api.wants_background(made):
        made = api.with_background(made, given.get("background"))
    if normalise is not None and not isinstance(normalise, bool):
        raise ValueError(f"normalise must be True, False or None (what is usual for the explainer), got {normalise!r}")
    return name, Victim(made, isinstance(made, Lime) if normalise is None else normalise)


def _known(explainer: Any, options: Mapping[str, Any]) -> None:
    """Refuse an explainer, or an option, that there is not."""
    if not isinstance(explainer, str):
        return
    if explainer not in NAMES:
        raise ValueError(f"explainer must be one of {', '.join(e.name for e in CATALOGUE if e.goal != 'nothing')}, got "
                         f"{explainer!r}{near(explainer, NAMES)}")
    theirs = NAMES[explainer].options
    own = {name for name in inspect.signature(fool).parameters if name != "options"}
    for name in options:
        if name not in theirs:
            raise TypeError(f"wt.fool has no option {name!r}, and {explainer} has none{near(name, own | theirs)}; wt.fool has "
                            f"{', '.join(sorted(own))}, and {explainer} has {', '.join(sorted(theirs)) or 'none'}")


def _texts(texts: Any) -> tuple[list[Any], list[str]]:
    """The texts themselves and what each is called; what is no text is told when its turn comes."""
    if isinstance(texts, str):
        raise TypeError("texts must be a list of texts, got one; pass [text]")
    if isinstance(texts, Mapping) or hasattr(texts, "columns") or not isinstance(texts, Iterable):
        hint = "; pass the column that holds them, frame['text']" if hasattr(texts, "columns") else ""
        raise TypeError(f"texts must be a list of texts, got {type(texts).__name__}{hint}")
    given = list(texts)
    if not given:
        raise ValueError("texts must hold at least one text, got none")
    if not any(isinstance(one, str | os.PathLike) for one in given):
        raise TypeError(f"word swaps are for texts, got inputs of {type(given[0]).__name__}; images and sounds are attacked by "
                        "wt.attack")
    return ([reading.read_text(one) if isinstance(one, os.PathLike) else one for one in given],
            [reading.source_of(one) or f"text {i + 1}" for i, one in enumerate(given)])


def _spread(n: int, limit: int | None) -> list[int]:
    """So many of the texts, evenly spread."""
    if limit is None:
        return list(range(n))
    most = min(_whole("limit", limit, 1), n)
    return [int(i) for i in np.arange(most) * n // most]


def _labels(model: CheckedModel, labels: Any, texts: Sequence[Any], kept: Sequence[int]) -> list[int] | None:
    """The number of each text's true class."""
    if labels is None:
        return None
    if isinstance(labels, str) or not isinstance(labels, Iterable) or len(found := list(labels)) != len(texts):
        came = len(list(labels)) if isinstance(labels, Iterable) and not isinstance(labels, str) else repr(labels)
        raise ValueError(f"labels must be one class for each text: expected {len(texts)}, got {came}")
    plain = [one.item() if isinstance(one, np.generic) else one for one in (found[i] for i in kept)]
    if any(isinstance(one, int) and one < 0 for one in plain):
        raise ValueError(f"labels must be classes, names or numbers from 0, got {min(o for o in plain if isinstance(o, int))}; "
                         "leave out texts whose class is not known")
    if model.classes is not None:
        return [model.class_index(one, len(model.classes)) for one in plain]
    columns = model([next(texts[i] for i in kept if isinstance(texts[i], str) and texts[i].strip())]).shape[1]
    return [model.class_index(one, columns) for one in plain]


def _objectives(given: Any) -> tuple[str, ...]:
    names = list(given) if isinstance(given, list | tuple) else [given]
    for name in names:
        if name not in (*OBJECTIVES, RANDOM):
            raise ValueError(f"objective must be among {', '.join((*OBJECTIVES, RANDOM))}, got {name!r}"
                             f"{near(str(name), (*OBJECTIVES, RANDOM))}")
    if not names:
        raise ValueError(f"objective must name at least one of {', '.join((*OBJECTIVES, RANDOM))}, got none")
    return tuple(dict.fromkeys(names))


def _ratio(value: Any) -> float:
    plain = value.item() if isinstance(value, np.generic) else value
    most_swaps(Written.of("a word"), plain)
    return float(plain)


def _file(name: str, value: Any) -> str | Path:
    if not isinstance(value, str | os.PathLike):
        raise TypeError(f"{name} must be the name of a file of word vectors in text format, got {value!r:.60}")
    return Path(value)


def _variant(given: Any) -> str:
    if given not in VARIANTS:
        raise ValueError(f"variant must be one of {', '.join(VARIANTS)}, got {given!r}{near(str(given), VARIANTS)}")
    return str(given)


def _racing(given: Any, victim: Victim) -> Racing | None:
    if not isinstance(given, bool | Racing):
        raise ValueError(f"racing must be True, False or a Racing(…), got {given!r}")
    if given is not False and not victim.races:
        raise ValueError("racing gives up candidates after a share of their masks, and this explainer has no fixed number of "
                         "them, as lime with so many samples, kernel_shap and occlusion have; leave it out")
    return given if isinstance(given, Racing) else Racing() if given else None


def _whole(name: str, value: Any, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise ValueError(f"{name} must be a whole number >= {least}, got {value!r}")
    return int(value)
