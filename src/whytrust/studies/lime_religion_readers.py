"""Readers of Figure 9 of Ribeiro et al. (2016), simulated: which of two models does each choose, and by what?

A reader sees explanations of two models on the same few posts, judges each word shown, and chooses the model with less of its
evidence on words that do not generalise; a coin decides between equals. Every reader picks from an own half of the posts: all
readers would else see the same submodular pick, and a hundred of them would be no more than one. Between explainers and ways to
pick, readers are the same, with the same posts and opinions, so that cells differ by what was shown alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from whytrust.core import generator
from whytrust.coverage import alternating

NOISE = {"careful": (0.1, 0.05), "careless": (0.3, 0.2), "very careless": (0.45, 0.35)}
"""Chances to overlook a word that does not generalise, and to take one that does for one that does not."""
PICKS = ("random", "submodular")
MODELS = ("original", "cleaned")
FLOOR = "random"
Shown = Sequence[Sequence[Any]]
"""[word, weight, is it foreign?] of each word that an explanation shows."""
Cell = tuple[str, str]


@dataclass(frozen=True, eq=False)
class Explained:
    """What an explainer shows of every post for both models; random explanations are others for every reader.

    Fixed ones would favour a model by chance, the same for all readers: `by_post` has all words of a post then.
    """

    name: str
    by_post: Mapping[int, Mapping[str, Shown]]

    def shown(self, post: int, model: str, reader: int, readers: Readers) -> Shown:
        """The explanation that this reader sees."""
        found = self.by_post[post][model]
        if self.name != FLOOR:
            return found
        rng = generator(readers.seed, "shown at random", reader, post, model)
        scores = rng.standard_normal(len(found))
        return [[found[i][0], float(scores[i]), found[i][2]] for i in np.argsort(-np.abs(scores))[:readers.words]]


@dataclass(frozen=True, eq=False)
class Answers:
    """Of one explainer and pick: who chose the cleaned model, by carelessness; and how much evidence is truly foreign."""

    right: dict[str, NDArray[np.float64]]
    foreign: dict[str, float]


@dataclass(frozen=True, eq=False)
class Readers:
    """Simulated readers: what each thinks of a word, and which posts each looks at."""

    count: int
    seed: int
    documents: int
    words: int
    drawn: dict[tuple[int, str], float] = field(default_factory=dict)

    def __call__(self, explained: Explained, how: str) -> Answers:
        """Every reader's choice."""
        right = {level: np.zeros(self.count) for level in NOISE}
        truth = {model: list[float]() for model in MODELS}
        order, fixed = sorted(explained.by_post), None
        for reader in range(self.count):
            tables = fixed
            if how == "submodular" and tables is None:
                tables = [_matrix([explained.shown(post, model, reader, self) for post in order]) for model in MODELS]
                fixed = None if explained.name == FLOOR else tables
            posts = [order[i] for i in self.posts(reader, len(order), tables)]
            seen = {model: [explained.shown(post, model, reader, self) for post in posts] for model in MODELS}
            coin = generator(self.seed, "coin", reader, explained.name, how).random() < 0.5
            for level, noise in NOISE.items():
                original, cleaned = (self.evidence(reader, seen[model], noise) for model in MODELS)
                right[level][reader] = cleaned < original or (cleaned == original and coin)
            for model in MODELS:
                truth[model].append(self.evidence(reader, seen[model], (0.0, 0.0)))
        return Answers(right, {model: float(np.mean(shares)) for model, shares in truth.items()})

    def posts(self, reader: int, n: int, tables: Sequence[Any] | None) -> list[int]:
        """Which of n posts a reader looks at: some of an own half by chance, or the pick from that half."""
        half = generator(self.seed, "posts", reader).permutation(n)[:max((n + 1) // 2, 1)]
        if tables is None:
            return [int(i) for i in half[:self.documents]]
        half.sort()
        return [int(half[i]) for i in alternating([table[half] for table in tables], self.documents)[0].indices]

    def mistrusts(self, reader: int, word: str, foreign: bool, noise: tuple[float, float]) -> bool:
        """Does this reader think that a word does not generalise? Careless readers err wherever careful ones do, and more."""
        if (reader, word) not in self.drawn:
            self.drawn[reader, word] = float(generator(self.seed, "opinion", reader, word).random())
        return self.drawn[reader, word] < (1 - noise[0] if foreign else noise[1])

    def evidence(self, reader: int, shown: Sequence[Shown], noise: tuple[float, float]) -> float:
        """The share of a model's evidence that lies on words which the reader mistrusts, averaged over posts that show any."""
        shares = []
        for one in shown:
            total = sum(abs(weight) for _, weight, _ in one)
            if total > 0:
                bad = sum(abs(weight) for word, weight, foreign in one if self.mistrusts(reader, word, foreign, noise))
                shares.append(bad / total)
        return float(np.mean(shares)) if shares else 0.0


def _matrix(explanations: Sequence[Shown]) -> Any:
    """(posts, words): the sizes of the weights shown."""
    names = {word: i for i, word in enumerate(dict.fromkeys(word for one in explanations for word, _, _ in one))}
    cells = [(row, names[word], abs(weight)) for row, one in enumerate(explanations) for word, weight, _ in one]
    rows, columns, values = zip(*cells, strict=True) if cells else ((), (), ())
    return sparse.csr_matrix((values, (rows, columns)), shape=(len(explanations), max(len(names), 1)), dtype=np.float64)
