"""What runs of Figures 6 to 8 and Table 1 of Ribeiro et al. (2016) have found, with the published numbers beside ours."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from whytrust import stats
from whytrust.core import Floats
from whytrust.store import Store, plain
from whytrust.studies import trust_findings
from whytrust.studies.lime_faithful import SAMPLES, K
from whytrust.studies.lime_published import CITATION, FAITHFUL, TRUST, published
from whytrust.studies.mistrust import EVERYTHING, summary
from whytrust.studies.trust_findings import Records, common, p_words

FIGURE = {"books": "Figure 6", "dvd": "Figure 7"}
LABELS = {"random": "random", "parzen": "Parzen", "greedy": "greedy", "authors": "LIME, as the authors ran it",
          "authors, empty path": "… where an empty lasso path keeps every word", "lime": "LIME, fitted intercept",
          "ceiling": "ceiling: words that matter when words are hidden", EVERYTHING: "trust every prediction"}
PUBLISHED_AS = {"random": "random", "parzen": "parzen", "greedy": "greedy", "authors": "lime", "authors, empty path": "lime"}
NEAR = 2.0
"""Points within which a number counts as found again."""


# --- Figures 6 and 7 --------------------------------------------------------------------------------------------------


def faithful(store: Store) -> dict[str, Any]:
    """Recall of the words that a readable model uses."""
    spec, records = store.manifest["spec"], list(store.records())
    done = [r for r in records if r["status"] == "ok" and r["truth"]]
    cells = {(name, kind): _authors_split(done, name, kind) for name in spec["datasets"] for kind in ("sparse-LR", "tree")}
    cells = {key: cell for key, cell in cells.items() if cell}
    data = {"experiment": "faithfulness", "paper": CITATION, "question": "Are explanations faithful to the model? Recall of "
            "the words that a sparse logistic regression or a decision tree really uses, of the ten words that an explanation "
            "names.", "tables": [_faithful_table(name, kind, cell) for (name, kind), cell in cells.items()],
            "charts": [], "answer": [_faithful_words(name, kind, cell) for (name, kind), cell in cells.items()],
            "notes": _faithful_notes(spec, done), **common(store, records), "cells": {
                f"{name} {kind}": {row: asdict(rate) for row, rate in cell.items()} for (name, kind), cell in cells.items()},
            "settings": {**spec, "seed": store.manifest["seed"]}}
    splits = _over_splits(done, spec)
    if splits["rows"]:
        data["tables"].append(splits)
    return dict(plain(data))


@dataclass(frozen=True)
class Recall(stats.Rate):
    """A recall; of random words also by how much (one standard deviation) a single draw varies around it.

    Of a tree, also the least and the most that trees reach which differ from it only in how ties are broken.
    """

    one_draw: float = 0.0
    least: float | None = None
    most: float | None = None

    def is_near(self, theirs: float) -> bool:
        """Does a published number lie within 2 points, or within what ties or the draw of random words may move it by?"""
        points = abs(100 * self.value - theirs)
        if self.least is not None and self.most is not None and 100 * self.least <= theirs <= 100 * self.most:
            return True
        return points <= max(NEAR, 196 * self.one_draw)


def _authors_split(done: Records, name: str, kind: str) -> dict[str, Recall]:
    """Recalls on the authors' split; of the first tree, with the range over all trees."""
    own = [r for r in done if r["dataset"] == name and r["split"] == 1]
    if kind != "tree":
        return recalls([r for r in own if r["model"] == kind])
    each = [found for tree in sorted({r["model"] for r in own if r["model"].startswith("tree")})
            if (found := recalls([r for r in own if r["model"] == tree]))]
    return {row: replace(rate, least=min(one[row].value for one in each), most=max(one[row].value for one in each))
            for row, rate in each[0].items()} if each else {}


def recalls(records: Records) -> dict[str, Recall]:
    """The mean recall of each explainer over reviews; several trees of one review are one source."""
    if not records:
        return {}
    sources = [f"{r['dataset']}.{r['split']}.{r['review']}" for r in records]
    columns: dict[str, list[float]] = {name: [] for name in LABELS if name != EVERYTHING}
    for r in records:
        truth = set(r["truth"])
        for name, named in r["named"].items():
            columns[name].append(len(truth & set(named)) / len(truth))
        columns["random"][-1] = 1 - (1 - 1 / r["d"]) ** K  # what random draws find on average, exactly
        columns["authors, empty path"].append(columns["authors"][-1] if r["named"]["authors"] else 1.0)
        columns["ceiling"].append(len(r["matter"]) / len(truth))
    rates = {name: Recall(**asdict(stats.rate(values, sources, grain=0.25))) for name, values in columns.items()}
    # A review's recall by random words is a mean over its true words, each of which is hit or not.
    spread = np.sqrt(np.mean([p * (1 - p) / len(r["truth"]) for p, r in zip(columns["random"], records, strict=True)]))
    return {**rates, "random": replace(rates["random"], one_draw=float(spread) / math.sqrt(rates["random"].sources))}


def _faithful_table(name: str, kind: str, cell: Mapping[str, Recall]) -> dict[str, Any]:
    rows = []
    for row, rate in cell.items():
        theirs = published(FAITHFUL, name, kind, PUBLISHED_AS.get(row, ""))
        shown = theirs is not None and not (row == "authors, empty path" and kind != "tree")
        ties = [] if rate.least is None or rate.most is None else [f"{100 * rate.least:.1f} to {100 * rate.most:.1f}"]
        rows.append([LABELS[row], {"value": rate.value, "low": rate.low, "high": rate.high, "n": rate.n}, *ties,
                     f"{theirs:.1f} %" if shown else "–", f"{100 * rate.value - theirs:+.1f}" if shown and theirs else "–"])
    trees = ". The range is over trees that differ only in how ties between splits are broken" if kind == "tree" else ""
    return {"title": f"{FIGURE[name]}, {name}: {kind.replace('-', ' ')}", "rows": rows,
            "columns": ["", "recall here (95 %)", *(["range over trees"] if kind == "tree" else []), "published", "difference"],
            "about": f"The authors' split, {cell['lime'].sources} reviews with something to find{trees}. Random: the exact "
                     "mean over draws, where the published number is one draw."}


def _faithful_words(name: str, kind: str, cell: Mapping[str, Recall]) -> str:
    ours, ceiling = cell["lime"].value, cell["ceiling"].value
    row = "authors, empty path" if kind == "tree" else "authors"
    theirs = {r: published(FAITHFUL, name, kind, PUBLISHED_AS[r]) for r in ("random", "parzen", "greedy", row)}
    off = [f"{LABELS[r].lstrip('… ')} ({100 * cell[r].value - value:+.1f})" for r, value in theirs.items()
           if value is not None and not cell[r].is_near(value)]
    told = (f"{len(theirs) - len(off)} of the paper's {len(theirs)} numbers come out within {NEAR:g} points, or within what "
            f"ties and the draw of random words move them by{'; not ' + ', '.join(off) if off else ''}")
    return (f"{name}, {kind.replace('-', ' ')}: LIME finds {ours:.1%} of the words that the model uses, where {ceiling:.1%} "
            f"can be found at all. {told}.")


def _over_splits(done: Records, spec: Mapping[str, Any]) -> dict[str, Any]:
    """LIME with a fitted intercept over splits of the data: mean and Student's interval over splits."""
    rows = []
    for name in spec["datasets"]:
        for kind in ("sparse-LR", "tree-1"):
            own = [recalls([r for r in done if (r["dataset"], r["split"], r["model"]) == (name, split, kind)])
                   for split in range(1, spec["splits"] + 1)]
            values = {row: np.array([one[row].value for one in own if one]) for row in ("lime", "ceiling", "authors")}
            if len(values["lime"]) > 1:
                rows.append([f"{name}, {kind.split('-1')[0].replace('-', ' ')}", *(_mean(values[row]) for row in values),
                             f"{len(values['lime'])}"])
    return {"title": "Over splits", "columns": ["", LABELS["lime"], "ceiling", LABELS["authors"], "splits"],
            "rows": rows, "about": "Mean and 95 % interval (Student's) over splits into training and test reviews. Splits "
                                   "share reviews, so that it is rather too narrow."}


def _mean(values: Floats) -> str:
    reach = stats.jackknife(float(values.mean()), (values.sum() - values) / (len(values) - 1))
    return f"{values.mean():.1%} ({max(100 * reach.low, 0):.1f} to {min(100 * reach.high, 100):.1f})"


def _faithful_notes(spec: Mapping[str, Any], done: Records) -> list[str]:
    whole = [] if spec["scale"] == 1 and spec["samples"] == SAMPLES else [
        f"Scale {spec['scale']:g} and N = {spec['samples']:,}: not the paper's size, and not to be compared with it."]
    return [
        *whole, f"N = {spec['samples']:,} samples, K = {K} words; reviews in which the model uses no word are left out, as "
        "there is nothing to find.",
        "As the authors ran it: masks drawn one by one, scores centred by their plain mean, no intercept. Where the score "
        "never varies the lasso's path is empty, and the authors' loop then keeps every word: an explanation that names "
        "everything finds everything, and it is that which makes 97 % of trees. Scored honestly it finds nothing.",
        "Ceiling: on a tree's way stand words whose presence leads to the same answer as their absence, whatever else is "
        "hidden. No method that hides words can see them. Where fewer than ten words matter, an explanation fills up with "
        "others, and may name such a word by luck.",
        "Published random recall is one draw of ten words a review, which varies by some points around the exact mean that "
        "stands here.",
        *([] if done else ["Nothing is done yet."])]


# --- Table 1 ------------------------------------------------------------------------------------------------------------


def trust(store: Store) -> dict[str, Any]:
    """F1 of trustworthiness."""
    spec, records = store.manifest["spec"], list(store.records())
    rivals = ("random", "parzen", "greedy")
    found = {}
    for name in spec["datasets"]:
        for kind in spec["models"]:
            own = [r for r in records if r["status"] == "ok" and (r["dataset"], r["model"]) == (name, kind)]
            if len(own) > 1:
                found[name, kind] = {**summary(own, spec["rounds"], rivals), "accuracy": float(np.mean(
                    [r["label"] == r["truth"] for r in own]))}
    data = {"experiment": "prediction", "paper": CITATION, "question": "Should I trust this prediction? A quarter of the words "
            "is not to be trusted; does the reader of an explanation mistrust the right predictions?",
            "tables": [_trust_table(name, found, spec) for name in spec["datasets"] if any(n == name for n, _ in found)]
            + [_tests_table(found)], "charts": [], "answer": [_trust_words(*key, one) for key, one in found.items()],
            "notes": _trust_notes(spec), **common(store, records),
            "cells": {f"{name} {kind}": one for (name, kind), one in found.items()},
            "settings": {**spec, "seed": store.manifest["seed"]}}
    return dict(plain(data))


def _trust_table(name: str, found: Mapping[tuple[str, str], Any], spec: Mapping[str, Any]) -> dict[str, Any]:
    kinds = [kind for kind in spec["models"] if (name, kind) in found]
    rows: list[list[Any]] = []
    for row in ("random", "parzen", "greedy", "authors", "lime", EVERYTHING):
        cells = []
        for kind in kinds:
            one, theirs = found[name, kind]["rows"][row], published(TRUST, name, kind, PUBLISHED_AS.get(row, ""))
            beside = "" if theirs is None else f"; published {theirs:.1f}"
            cells.append(f"{100 * one['value']:.1f} ({100 * one['low']:.1f} to {100 * one['high']:.1f}){beside}")
        rows.append([LABELS[row], *cells])
    rows.append(["the model itself is right", *(f"{found[name, kind]['accuracy']:.1%}" for kind in kinds)])
    return {"title": f"Table 1, {name}: F1 of “trustworthy”, in per cent", "columns": ["", *kinds], "rows": rows,
            "about": f"{max(found[name, kind]['n'] for kind in kinds)} test reviews, {spec['rounds']} draws of untrustworthy "
                     "words; intervals leave out one review at a time."}


def _tests_table(found: Mapping[tuple[str, str], Any]) -> dict[str, Any]:
    rows = []
    for (name, kind), one in found.items():
        for row in ("authors", "lime"):
            tests = {t["rival"]: t for t in one["tests"] if t["name"] == row}
            against = [tests[rival] for rival in (EVERYTHING, "parzen", "greedy", "random")]
            rows.append([f"{name} {kind}, {LABELS[row]}", *(f"{100 * t['value']:+.1f}, {p_words(t['p'])}" for t in against)])
    return {"title": "LIME above …, in points", "columns": ["", "trusting every prediction", "Parzen", "greedy", "random"],
            "rows": rows, "about": "Paired on the same reviews and rounds; p after Holm's correction within each model."}


def _trust_words(name: str, kind: str, one: Mapping[str, Any]) -> str:
    rows, line = one["rows"], one["rows"][EVERYTHING]["value"]
    ours, theirs = 100 * rows["authors"]["value"], published(TRUST, name, kind, "lime") or math.nan
    below = [t["rival"] for t in one["tests"] if t["name"] == "authors" and not (t["p"] < 0.01 and t["value"] > 0)]
    told = ("above it and above Parzen, greedy and random (p < .01 each)" if not below else
            f"not above {', '.join(LABELS[b] for b in below)} at p < .01")
    return (f"{name}, {kind}: readers of LIME as the authors ran it reach {ours:.1f} (published {theirs:.1f}, "
            f"{ours - theirs:+.1f}), with a fitted intercept {100 * rows['lime']['value']:.1f}; trusting everything gives "
            f"{100 * line:.1f}: {told}.")


def _trust_notes(spec: Mapping[str, Any]) -> list[str]:
    return [f"N = {spec['samples']:,} samples, K = {K} words, a quarter of the training vocabulary untrustworthy.",
            "Trusting every prediction is a line that the paper does not have; most of each F1 is already there.",
            "NN: five nearest neighbours; of equally near ones those count that a partial sort of the distances leaves in "
            "front, as in scikit-learn when the paper was written. Distances between bags of words are whole numbers under a "
            "root, so that ties are the rule, and what breaks them moves this column by several points.",
            "Greedy: words whose removal changed nothing are named like the others, as the authors did, and a reader mistrusts "
            "them all the same. Where a score stays as it is for many removals (NN), most of the ten are such words.",
            "RF: 1000 trees on the mean of word vectors: MiniLM's input embeddings, averaged, in place of word2vec.",
            "SVM: Platt's probabilities from five folds. Parzen: σ as the authors chose it, windows fitted to labels predicted "
            "by five-fold cross-validation; its reader takes the gradients of untrusted words off the windows' own "
            "probability and asks whether the windows would decide otherwise, whatever the model says."]


# --- Figure 8 -----------------------------------------------------------------------------------------------------------


def choice(stores: Mapping[str, Store]) -> dict[str, Any]:
    """Right choices between two forests, for each data set."""
    each = {name: trust_findings.model(store) for name, store in stores.items()}
    data: dict[str, Any] = {
        "experiment": "model", "paper": CITATION, "question": "Can I trust this model? Two forests are equal on validation and "
        "unequal in truth; how often does the reader of B explanations choose the better one?", "answer": [], "tables": [],
        "charts": [], "notes": [
            "The paper prints no numbers for Figure 8, only curves: SP-LIME on top, LIME above greedy throughout.",
            "A reader who has met a planted word in an explanation of either model marks it in both. Ties are a coin.",
            "The paper's pairs come from 800 runs with N = 15,000; a smaller N is told in the settings."],
        "failures": [], "cases": {"done": 0, "of": 0, "failed": 0}, "settings": {}}
    for name, found in each.items():
        data["answer"] += [f"{name}: {words}" for words in found["answer"]]
        data["tables"] += [{**table, "title": f"{name}: {table['title']}"} for table in found["tables"]]
        data["charts"] += [{**chart, "title": f"Figure 8, {name}"} for chart in found["charts"]]
        data["failures"] += [{**one, "case": f"{name} {one['case']}"} for one in found["failures"]]
        data["cases"] = {key: data["cases"][key] + found["cases"][key] for key in data["cases"]}
        data["settings"][name] = found["settings"]
    together = _together(list(stores.values()))
    if together:
        said = trust_findings.difference_words([t for t in together if t["span"] == together[-1]["span"]])
        data["answer"] = [f"Both data sets together, {together[0]['n']} pairs: {words}" for words in said] + data["answer"]
        table = trust_findings.difference_table(together)
        data["tables"].insert(0, {**table, "title": f"Both data sets: {table['title']}"})
    return data


def _together(stores: Sequence[Store]) -> list[dict[str, Any]]:
    """The differences over the pairs of all data sets; nothing where there is one data set, or too few pairs."""
    each = [list(store.records()) for store in stores]
    spec = stores[0].manifest["spec"] if stores else {}
    if len(each) < 2 or not all(any(r["status"] == "ok" for r in records) for records in each):
        return []
    done, names, _ = trust_findings.complete([r for records in each for r in records], spec["explainers"])
    return trust_findings.comparisons(done, names, trust_findings.budgets_of(spec, done)) if names else []
