"""Classifiers of texts, and their twins trained against word swaps: does a more robust model have more robust explanations?

Adversarial training as Sinha et al. (2021, § 4.4) had it done, by TextFooler's attack (Jin et al. 2020): a model is trained,
words of training texts are swapped until it decides otherwise, and another one is trained from the start on the texts and on
those that flipped it, under their true labels. How far the twin is more robust is measured on texts that neither has seen.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline

from whytrust import api, stats
from whytrust.checked import CheckedModel
from whytrust.core import Floats, near
from whytrust.engine import Jobs
from whytrust.language.sources import candidates_of
from whytrust.language.written import Candidates
from whytrust.models import minilm
from whytrust.studies.markdown import table
from whytrust.swapping.augmenting import FLIPPED, HELD, SKIPPED, Attacks, Attempt, attempts, counted, flipped_texts
from whytrust.swapping.constraints import Constraint, constraints_of

PLAIN = ("tfidf", "minilm")
TWIN = "-adv"
KINDS = (*PLAIN, *(kind + TWIN for kind in PLAIN))
ATTACKED = 2000
"""Training texts that are attacked; the paper's models took 10,000, or all of SST-2."""
PROBED = 100
"""Held-out texts that are attacked to see how robust a model is."""
WORDS, LONG_TEXTS = 40, 128
"""Texts whose median has more words than the first are read up to so many tokens, and not up to 64."""
MEASURES = {"accuracy": "accuracy", "flip_rate": "labels that flip", "under_attack": "accuracy under attack"}
USUAL = "thesaurus"
Train = Callable[[list[str], list[Any]], Any]
"""(texts, labels) -> whatever wt.model takes."""
Labelled = tuple[Sequence[str], Sequence[Any]]


@dataclass(frozen=True, eq=False)
class Hardened:
    """A model, its twin that was trained against word swaps as well, and what is known of both."""

    plain: Any
    twin: Any
    examples: tuple[tuple[str, Any], ...]  # what the twin alone was trained on
    facts: dict[str, Any]

    def __str__(self) -> str:
        """How much more robust the twin is, in a table."""
        return told(self.facts)


# --- training ---------------------------------------------------------------------------------------------------------


def classifier(kind: str, texts: Sequence[str], labels: Sequence[Any], *, seed: int = 0, cache: Path | None = None,
               adversarial: int | None = ATTACKED, candidates: Any = USUAL, constraints: Any = None,
               recipe: minilm.Recipe | None = None) -> Any:
    """A classifier for wt.model: tfidf (a scikit-learn pipeline) or minilm (fine-tuned), or the adversarial twin of either.

    The classes are the labels as text. MiniLM's weights, and the texts that a twin is trained on, are kept in a cache, under
    all that makes them. A twin is trained on what came of attacking `adversarial` of the texts (None: all).
    """
    if kind in PLAIN:
        return trainer(kind, texts, seed=seed, cache=cache, recipe=recipe)(list(texts), [str(label) for label in labels])
    if kind not in KINDS:
        raise ValueError(f"kind must be one of {', '.join(KINDS)}, got {kind!r}{near(str(kind), KINDS)}")
    return hardened(kind.removesuffix(TWIN), texts, labels, seed=seed, cache=cache, attacked=adversarial, candidates=candidates,
                    constraints=constraints, recipe=recipe).twin


def trainer(kind: str, texts: Sequence[str], *, seed: int = 0, cache: Path | None = None,
            recipe: minilm.Recipe | None = None) -> Train:
    """What trains such a model on these texts, or on these and more."""
    if kind not in PLAIN:
        raise ValueError(f"kind must be one of {', '.join(PLAIN)}, got {kind!r}{near(str(kind), PLAIN)}")
    if kind == "tfidf":
        return _fitting(tfidf())
    made = recipe or recipe_for(texts, seed)
    return lambda some, labels: minilm.fine_tuned(some, labels, replace(made, texts=len(some)), cache)


def recipe_for(texts: Sequence[str], seed: int = 0) -> minilm.Recipe:
    """How MiniLM is fine-tuned on such texts: the usual way, with room for more tokens where they are long."""
    words = float(np.median([len(text.split()) for text in texts])) if len(texts) else 0.0
    return replace(minilm.RECIPE, seed=seed, max_length=LONG_TEXTS if words > WORDS else minilm.RECIPE.max_length)


def tfidf() -> Pipeline:
    """Weighed words and a logistic regression: trained in a moment, the same every time."""
    return make_pipeline(TfidfVectorizer(sublinear_tf=True, min_df=2), LogisticRegression(C=10, max_iter=1000))


def hardened(kind: str, texts: Sequence[str], labels: Sequence[Any], *, seed: int = 0, cache: Path | None = None,
             attacked: int | None = ATTACKED, candidates: Any = USUAL, constraints: Any = None,
             recipe: minilm.Recipe | None = None, held_out: Labelled | None = None, probed: int = PROBED,
             jobs: Jobs = 1) -> Hardened:
    """A classifier of that kind with its twin, whose attack is kept where it can be told by names what made it."""
    place = minilm.cache_folder() if cache is None else cache
    source = _source(candidates)
    by_name = bool(source) and all(isinstance(one, str) for one in _several(constraints))
    return adversarial(trainer(kind, texts, seed=seed, cache=cache, recipe=recipe), texts, [str(label) for label in labels],
                       candidates, constraints, attacked=attacked, seed=seed, held_out=held_out, probed=probed,
                       source=source, kept=place if by_name and _writable(place) else None, jobs=jobs)


def adversarial(train: Any, texts: Sequence[str], labels: Sequence[Any], candidates: Any = USUAL, constraints: Any = None,
                *, attacked: int | None = ATTACKED, most: float = 0.5, seed: int = 0, held_out: Labelled | None = None,
                probed: int | None = PROBED, source: str = "", kept: Path | None = None, jobs: Jobs = 1) -> Hardened:
    """Train, attack, and train again from the start on the texts and on those that flipped the label.

    `train` is a function (texts, labels) -> model, or a scikit-learn pipeline, of which copies are fitted. `attacked` of the
    texts are drawn (None: all), and attacked where the model has them right. With held-out (texts, labels), the accuracy of
    both models on them is told, and how often the label of `probed` of them can be flipped.
    """
    fit = train if not hasattr(train, "fit") else _fitting(train)
    texts, labels = list(texts), list(labels)
    if len(set(map(str, labels))) < 2:
        raise ValueError(f"labels must be of two classes or more for a model to learn, got {sorted(set(map(str, labels)))}")
    words = candidates_of(candidates)
    rules = constraints_of(constraints, getattr(words, "vectors", None))
    plain, found = fit(texts, labels), list[Attempt]()
    examples = flipped_texts(api.model(plain), texts, labels, words, rules, most, attacked, found.append, seed=seed,
                             source=source, kept=kept, jobs=jobs)
    twin = fit([*texts, *(text for text, _ in examples)], [*labels, *(label for _, label in examples)])
    facts: dict[str, Any] = {
        "texts": len(texts), "classes": sorted(set(map(str, labels))), "training": counted(found), "examples": len(examples),
        "candidates": source or words.name, "constraints": [one.name for one in rules], "most": most, "seed": seed}
    if held_out is not None:
        judge = _Judge(held_out, words, rules, most, probed, seed, source, kept, jobs)
        facts |= compared(judge(api.model(plain)), judge(api.model(twin)))
    return Hardened(plain, twin, tuple(examples), facts)


def _fitting(pipeline: Any) -> Train:
    return lambda texts, labels: clone(pipeline).fit(texts, labels)


def _source(given: Any) -> str:
    """What candidates are called where that says all of them; files by when they were written and how long they are."""
    several = _several(given) or (USUAL,)
    if not all(isinstance(one, str) for one in several):
        return ""
    names = []
    for one in several:
        kind, sign, place = one.partition(":")
        there = os.stat(place) if sign and os.path.exists(place) else None
        names.append(one if there is None else f"{kind}:{Path(place).resolve()} {there.st_size} {there.st_mtime_ns}")
    return ", ".join(names)


def _several(given: Any) -> Sequence[Any]:
    return () if given is None else given if isinstance(given, list | tuple) else (given,)


def _writable(folder: Path) -> bool:
    """A cache that cannot be written is no failure: what would be kept there is made again."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(folder, os.W_OK)


# --- measuring --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Judged:
    """A model on held-out texts: which it has right, and which of those attacked flip (NaN: it was wrong, or skipped)."""

    right: Floats
    flips: Floats
    under_attack: Floats
    swapped: Floats  # shares of the words that it took, where a label flipped


@dataclass(frozen=True, eq=False)
class _Judge:
    """The texts and the attack that two models are compared by."""

    held_out: Labelled
    candidates: Candidates
    constraints: tuple[Constraint, ...]
    most: float
    probed: int | None
    seed: int
    source: str
    kept: Path | None
    jobs: Jobs

    def __call__(self, model: CheckedModel) -> Judged:
        """Every text asked, some attacked."""
        texts, labels = self.held_out
        scores = model(list(texts))
        truths = [model.class_index(str(label), scores.shape[1]) for label in labels]
        attacks = Attacks(model, texts, labels, self.candidates, self.constraints, self.most, self.probed, self.seed,
                          self.source)
        found = attempts(attacks, self.kept, self.jobs, label="attacking held-out texts")
        flips = [float(one.outcome == FLIPPED) if one.outcome in (FLIPPED, HELD) else np.nan for one in found]
        # A text in which nothing can be swapped is right, and stays so.
        stays = [float(one.outcome in (HELD, SKIPPED)) for one in found]
        taken = [one.swaps / one.words for one in found if one.outcome == FLIPPED]
        return Judged(np.asarray(model.labels(scores) == truths, dtype=np.float64), np.array(flips), np.array(stays),
                      np.array(taken))


def compared(plain: Judged, twin: Judged) -> dict[str, Any]:
    """The rates of both models with their intervals, and the twin's less the plain one's, text by text.

    Flips are compared on the texts that both have right; accuracy under attack is of all that were probed.
    """
    def rates(one: Judged) -> dict[str, Any]:
        values = {"accuracy": one.right, "flip_rate": one.flips, "under_attack": one.under_attack}
        return {**{name: asdict(stats.rate(value)) for name, value in values.items()},
                "swapped": float(one.swapped.mean()) if len(one.swapped) else None}

    pairs = {"accuracy": (twin.right, plain.right), "flip_rate": (twin.flips, plain.flips),
             "under_attack": (twin.under_attack, plain.under_attack)}
    return {"plain": rates(plain), "twin": rates(twin),
            "difference": {name: asdict(stats.paired(*pair)) for name, pair in pairs.items()}}


def told(facts: dict[str, Any]) -> str:
    """The facts in words and, where both models were measured, in a table."""
    count = facts["training"]
    lines = [f"{count['tried']:,} of {facts['texts']:,} training texts were tried by word swaps ({facts['candidates']}; "
             f"{', '.join(facts['constraints'])}; at most {100 * facts['most']:g} % of the words): {count['attacked']:,} "
             f"attacked, {count['flipped']:,} flipped, {count['wrong']:,} wrong from the start, {count['skipped']:,} skipped. "
             f"The twin is trained on those that flipped as well."]
    if not count["flipped"]:
        lines.append("No label flipped, so the twin has learnt nothing that the plain model has not: attack more texts, or "
                     "take other candidates.")
    if "difference" in facts:
        rows = [[name, rate_words(facts["plain"][key]), rate_words(facts["twin"][key]), _points(facts["difference"][key])]
                for key, name in MEASURES.items()]
        lines += ["", *table(["on held-out texts, %", "plain", "twin", "twin − plain, points"], rows), "",
                  "95 % intervals; differences are text by text, flips on the texts that both have right."]
    return "\n".join(lines)


def rate_words(rate: dict[str, Any]) -> str:
    """A rate in per cent with its interval."""
    if not rate["n"]:
        return "–"
    return f"{100 * rate['value']:.1f} [{100 * rate['low']:.0f}, {100 * rate['high']:.0f}] n {rate['n']}"


def _points(test: dict[str, Any]) -> str:
    if not test["n"]:
        return "–"
    value, low, high = (f"{100 * test[what]:+.1f}".replace("-", "−") for what in ("value", "low", "high"))
    return f"{value} [{low}, {high}], p {test['p']:.2g}, n {test['n']}"
