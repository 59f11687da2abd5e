"""Figure 8 of Ribeiro et al. (2016): choosing between two forests, one of which goes by planted words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.pipeline import make_pipeline

from whytrust.explainers.baselines import Random
from whytrust.explainers.greedy import Greedy
from whytrust.explanation import Explanation
from whytrust.planting import Tokens
from whytrust.question import Question
from whytrust.studies.lime_faithful import K, paper_lime
from whytrust.studies.lime_reviews import AUTHORS_SPLIT, WORD, bag, read
from whytrust.studies.trust_model import ChoiceStudy

SAMPLES, PAIRS, PLANTED = 2000, 100, 10
SPLIT_WORDS = r"\S+"


def study(data: str, name: str, pairs: int = PAIRS, samples: int = SAMPLES, seed: int = 0) -> ChoiceStudy:
    """Forests of 30 trees of depth 5 on the reviews, with ten planted words."""
    reviews = read(data, name, AUTHORS_SPLIT)
    forest = make_pipeline(bag(), RandomForestClassifier(30, max_depth=5))
    plants = tuple(Tokens((f"planted{number}",)) for number in range(PLANTED))
    explainers = {"lime": paper_lime(samples, surrogate=False), "greedy": Greedy(features=K),
                  "random": RandomWords(K)}
    return ChoiceStudy(forest, _bags(reviews.train), reviews.train_labels, _bags(reviews.test), reviews.test_labels, plants,
                       explainers, pairs=pairs, features=K, parts="bag", of_parts={"split": SPLIT_WORDS}, seed=seed,
                       spec={"paper": "lime", "dataset": name, "samples": samples, "kind": "choice"})


def _bags(texts: Sequence[str]) -> list[str]:
    """Each word once, in order: which words are there is all that the models see."""
    return [" ".join(sorted(set(re.findall(WORD, text)))) for text in texts]


class RandomWords:
    """Ten words drawn at random, as an explanation that names ten: the floor."""

    def __init__(self, most: int) -> None:
        """How many."""
        self.most = most

    def __call__(self, question: Question, rng: np.random.Generator) -> Explanation:
        """Random scores, of which the largest count."""
        e = Random()(question, rng)
        kept = np.zeros(question.d, dtype=bool)
        kept[e.order[:self.most]] = True
        more: dict[str, Any] = {"selected": kept, "sense": "nothing", "notes": e.notes}
        return Explanation.of(question, "random", e.scores, **more)
