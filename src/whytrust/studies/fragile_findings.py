"""What a run of word swaps has found: agreement by share of words swapped, beside chance, noise and the model. Plain data."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from whytrust import stats
from whytrust.store import Store, plain
from whytrust.studies.trust_findings import common, p_words
from whytrust.swapping.fragility import NOTHING
from whytrust.swapping.search import RANDOM

Records = Sequence[Mapping[str, Any]]
BUCKETS = (0.1, 0.2, 0.3, 0.4, 0.5)
"""Upper ends of the shares of words swapped; each begins behind the one before."""
GRAIN = 0.05
"""The least that one text can show: correlations of a few dozen words are fine, but not endlessly."""
NEXT_TO_NOTHING = 0.005
OBJECTIVES = {"lom": "centre of mass (ΔLOM)", "l2": "distance (L2)", RANDOM: "random swaps"}
MEASURES = {"rank": "rank correlation", "top": "overlap of the top halves"}


@dataclass(frozen=True)
class Row:
    """One level of one text: what the attack left of the explanation, and what stands beside it.

    Texts are told apart by what they say: the same text again is no new evidence.
    """

    case: str
    text: str
    m: int
    ratio: float
    level: Mapping[str, Any]
    noise: Mapping[str, Any]
    chance: Mapping[str, float]  # of random swaps of as many words, the mean over draws; empty where none came so far

    @property
    def bucket(self) -> int | None:
        """Which tenth of the words; None beyond the last."""
        return next((i for i, end in enumerate(BUCKETS) if self.ratio <= end + 1e-9), None)


def rows(records: Records, objective: str) -> Iterator[Row]:
    """Every level of every text; of random swaps, every draw."""
    for record in records:
        if record["status"] != "ok":
            continue
        by_chance = _by_chance(record)
        for levels in record["paths"].get(objective, []):
            for level in levels:
                yield Row(record["case"], record["text"], level["m"], level["ratio"], level, record["noise"],
                          by_chance.get(level["m"], {}))


def _by_chance(record: Mapping[str, Any]) -> dict[int, dict[str, float]]:
    drawn: dict[int, list[Mapping[str, Any]]] = {}
    for levels in record["paths"].get(RANDOM, []):
        for level in levels:
            drawn.setdefault(level["m"], []).append(level)
    return {m: {what: float(np.mean([clipped(one[what]) for one in some])) for what in MEASURES} for m, some in drawn.items()}


def clipped(value: float) -> float:
    """A correlation below 0 as 0: the order is lost either way."""
    return max(float(value), 0.0)


def _seen(row: Row, what: str) -> float:
    """As the attack saw it; chance sees nothing."""
    return math.nan if row.level["seen"] is None else clipped(row.level["seen"][what])


def mean_of(some: Sequence[Row], value: Callable[[Row], float]) -> dict[str, Any]:
    """The mean over levels with its interval; levels of one text are no news of each other."""
    values = [value(row) for row in some]
    if all(map(math.isnan, values)):
        return {"value": None, "low": None, "high": None, "n": 0, "sources": 0}
    return asdict(stats.rate(values, [row.text for row in some], grain=GRAIN))


def fragile(store: Store) -> dict[str, Any]:
    """All of it, for a page, a table or a program."""
    spec, about, records = store.manifest["spec"], store.manifest["about"], list(store.records())
    asked = [name for name in spec["objectives"] if name != RANDOM] or [RANDOM]
    counts = {NOTHING: sum(r["status"] == NOTHING for r in records), "wrong": sum(r["status"] == "wrong" for r in records)}
    found: dict[str, Any] = {
        "experiment": "fragile", "question": f"Words of texts are swapped for others that mean much the same, and "
        f"{about['model']} decides as before. Is what {spec['explainer']} says of its reasons still the same?",
        "answer": [], "tables": [], "charts": [], "notes": list(store.problems), **common(store, records), **counts,
        "explainer": spec["explainer"], "settings": _settings(store)}
    fine = [r for r in records if r["status"] == "ok"]
    cases = found["cases"]
    if cases["done"] < cases["of"]:
        found["notes"].insert(0, f"The run is not finished: {cases['done']} of {cases['of']} texts so far.")
    if len({r["text"] for r in fine}) < 2:
        found["answer"] = [f"Nothing can be said: words could be swapped in {len(fine)} of {len(records)} texts, and at least "
                           "2 different ones are needed."]
        return dict(plain({**found, "notes": found["notes"] + _left_out(counts)}))
    attacked = {name: some for name in asked if (some := list(rows(fine, name)))}
    if not attacked:
        found["answer"] = [_nothing_chosen(name) for name in asked]
        return dict(plain({**found, "notes": found["notes"] + _left_out(counts)}))
    tests = comparisons(attacked)
    found["tests"] = tests
    found["curves"] = {what: curves(fine, attacked, what) for what in MEASURES}
    found["answer"] = [words for name in asked for words in (
        _said(name, attacked[name], tests, spec["explainer"]) if name in attacked else
        [_nothing_chosen(name)])]
    found["charts"] = [_chart(found["curves"]["rank"], attacked, "rank")]
    names = [name for name in attacked if name != RANDOM]
    found["tables"] = [*(_table(name, attacked[name], what) for name in attacked for what in MEASURES), _test_table(tests),
                       _confidence(fine, names), *_quality(fine, names)]
    found["notes"] += _left_out(counts) + _cautions(spec, fine, attacked) + list(about.get("not_judged") or ())
    return dict(plain(found))


# --- numbers ----------------------------------------------------------------------------------------------------------


def curves(records: Records, attacked: Mapping[str, Sequence[Row]], what: str) -> dict[str, list[dict[str, Any]]]:
    """A mean a bucket, of each attack as judged and as it saw it, of random swaps, of the explainer's noise and the model."""
    chosen: dict[str, tuple[Sequence[Row], Callable[[Row], float]]] = {}
    for name, some in attacked.items():
        chosen[name] = some, lambda row: clipped(row.level[what])
        chosen[f"{name}, as it saw it"] = some, lambda row: _seen(row, what)
    by_chance = list(rows(records, RANDOM))
    chosen[RANDOM] = by_chance, lambda row: clipped(row.level[what])
    first = next(iter(attacked.values()))
    chosen["noise"] = first, lambda row: clipped(row.noise[what])
    if what == "rank":
        chosen["model"] = first, lambda row: clipped(row.level["model"])
    return {name: [mean_of([row for row in some if row.bucket == i], value) for i in range(len(BUCKETS))]
            for name, (some, value) in chosen.items()}


def comparisons(attacked: Mapping[str, Sequence[Row]]) -> list[dict[str, Any]]:
    """Each attack against chance, the explainer's own noise and the model's own answers, pair by pair; p-values by Holm.

    A positive difference says that the attack left less agreement than the other.
    """
    pairs: dict[tuple[str, str], stats.Difference] = {}
    for name, some in attacked.items():
        beside: dict[str, Callable[[Row], float]] = {
            "chance": lambda row: row.chance.get("rank", math.nan), "noise": lambda row: clipped(row.noise["rank"]),
            "model": lambda row: clipped(row.level["model"])}
        for other, value in beside.items():
            if (name, other) == (RANDOM, "chance"):
                continue
            pairs[name, other] = stats.paired([value(row) for row in some], [clipped(row.level["rank"]) for row in some],
                                              [row.text for row in some], grain=GRAIN)
    adjusted = stats.holm([one.p for one in pairs.values()])
    same = stats.holm([stats.equivalent(one) for one in pairs.values()])
    return [{"objective": name, "beside": other, **{k: getattr(one, k) for k in ("value", "low", "high", "n", "sources")},
             "p": float(p), "call": _call(one, float(p), float(q))}
            for ((name, other), one), p, q in zip(pairs.items(), adjusted, same, strict=True)]


def _call(one: stats.Difference, p: float, equivalent: float) -> str:
    if one.n and p <= stats.LEVEL:
        return "more" if one.value > 0 else "less"
    return "none" if equivalent <= stats.LEVEL else "undecided"


# --- words ------------------------------------------------------------------------------------------------------------


def number(value: Any, signed: bool = False) -> str:
    """A correlation as it is printed: .65."""
    if value is None or not math.isfinite(value):
        return "–"
    text = f"{value:{'+' if signed else ''}.2f}"
    return (text.replace("0.", ".", 1) if abs(value) < 1 else text).replace("-", "−")


def _range(one: Mapping[str, Any], signed: bool = False) -> str:
    return f"{number(one['value'], signed)} ({number(one['low'], signed)} to {number(one['high'], signed)})"


def _said(name: str, some: Sequence[Row], tests: Sequence[Mapping[str, Any]], explainer: str) -> list[str]:
    """What may be said of one attack."""
    of = {t["beside"]: t for t in tests if t["objective"] == name}
    left, first = mean_of(some, lambda row: clipped(row.level["rank"])), [row for row in some if row.bucket == 0]
    texts = len({row.text for row in some})
    chosen = "Random swaps" if name == RANDOM else f"Swaps chosen by {OBJECTIVES[name]}"
    words = [f"{chosen} keep the label, and of the order of words by {explainer} a rank correlation "
             f"of {_range(left)} is left, over {texts} texts and all shares of words"
             + (f"; with up to 10 % of the words {_range(mean_of(first, lambda row: clipped(row.level['rank'])))}." if first
                else ".")]
    words += [_beyond_chance(of["chance"])] if "chance" in of else []
    noise = mean_of(some, lambda row: clipped(row.noise["rank"]))
    if all(row.noise["rank"] > 1 - 1e-9 and row.noise["l2"] <= 1e-9 for row in some):
        words.append(f"{explainer} draws nothing here: asked twice about the same text it says the same.")
    else:
        told = {"more": "the swaps do more than that", "none": "its noise explains all of the drop",
                "less": "the swaps do less than that"}.get(of["noise"]["call"], "whether the swaps do more is undecided")
        words.append(f"Asked twice about the same text, {explainer} agrees with itself to {_range(noise)}: {told} "
                     f"({_range(of['noise'], True)}).")
    words.append(_blame(some, of["model"], explainer))
    return words


def _nothing_chosen(name: str) -> str:
    return f"No swap could be chosen by {OBJECTIVES[name]}: the scores of every candidate cancel out, or are all 0."


def _beyond_chance(chance: Mapping[str, Any]) -> str:
    """Does the attack do more than random swaps of as many words?"""
    return {
        "more": f"That is fragility above chance: random swaps of as many words leave {number(chance['value'], True)} more "
                f"({number(chance['low'], True)} to {number(chance['high'], True)}).",
        "less": f"That is less than chance does: random swaps of as many words leave {number(-chance['value'])} less.",
        "none": f"No fragility above chance: random swaps of as many words do as much, to within .05 ({_range(chance, True)}).",
        "undecided": "Whether that is more than random swaps of as many words do is undecided: the difference is "
                     f"{_range(chance, True)}." if chance["n"] else "There were no random swaps to hold it against.",
        }[chance["call"]]


def _blame(some: Sequence[Row], test: Mapping[str, Any], explainer: str) -> str:
    own = mean_of(some, lambda row: clipped(row.level["model"]))
    drop, model = 1 - float(np.mean([clipped(row.level["rank"]) for row in some])), 1 - own["value"]
    head = (f"Whose fault? The model's own answers without each word keep a rank correlation of {_range(own)}. Of a drop of "
            f"{number(drop)}, ")
    if test["call"] == "more":
        noise = 1 - float(np.mean([clipped(row.noise["rank"]) for row in some]))
        own_noise = f" ({number(noise)} is what it varies by about the same text)" if noise > NEXT_TO_NOTHING else ""
        return (f"{head}{number(model)} is the model's, which reasons otherwise, and {number(drop - model)} the "
                f"explainer's{own_noise}.")
    if test["call"] in ("none", "less") or drop <= model + NEXT_TO_NOTHING:
        return f"{head}all may be the model's: its answers moved as far as what {explainer} says of them."
    return f"{head}{number(model)} is the model's; whether the rest is the explainer's is undecided."


def _texts(n: int) -> str:
    return f"{n} text{'' if n == 1 else 's'}"


def _left_out(counts: Mapping[str, int]) -> list[str]:
    notes = []
    if counts[NOTHING]:
        notes.append(f"In {_texts(counts[NOTHING])} there was nothing to swap: no word had a candidate that kept the label "
                     "and every constraint, or whose explanation could be told apart. They say nothing for or against the "
                     "explainer, and are left out.")
    if counts["wrong"]:
        verb = "is" if counts["wrong"] == 1 else "are"
        notes.append(f"{_texts(counts['wrong'])} {verb} left out, for the model does not give the true label, which this "
                     "variant keeps.")
    return notes


def _cautions(spec: Mapping[str, Any], fine: Records, attacked: Mapping[str, Sequence[Row]]) -> list[str]:
    notes = ["Texts are chosen under one draw of an explainer's samples and judged under another: what a draw happens to say "
             "is no fragility. Intervals and tests count texts, not levels, and p-values share their 5 % (Holm).",
             "Words count alike in a rank correlation: where most words hardly matter, their order is mostly noise."]
    if "lom" in attacked:
        outside = np.mean([bool(row.level["outside"]) for row in attacked["lom"]]) if attacked["lom"] else 0.0
        if outside > 0.05:
            notes.append("Scores have signs, and where they nearly cancel out their centre of mass lies outside of the text: "
                         f"in {100 * outside:.0f} % of the levels chosen by it. There it measures cancellation, not place.")
    ways = [[[level["text"] for level in (r["paths"].get(name) or [[]])[0]] for r in fine] for name in set(attacked) - {RANDOM}]
    paths = list(zip(*ways, strict=True)) if len(ways) > 1 else []
    alike = sum(bool(path[0]) and all(one == path[0] for one in path) for path in paths)
    if alike:
        notes.append(f"In {alike} of {len(fine)} texts every objective chose the same swaps: there they are one attack, not "
                     "several.")
    different = len({r["text"] for r in fine})
    if different < len(fine):
        notes.append(f"Of {len(fine)} texts {different} differ; the same text again is no new evidence.")
    cut = sum(r["left_out"] > 0 for r in fine)
    if cut:
        notes.append(f"Of {_texts(cut)}, longer than what the model reads, the rest was left out.")
    if "sentence_similarity" in str(spec["constraints"]) or "SentenceSimilarity" in str(spec["constraints"]):
        notes.append("Swapped words mean the same by a thesaurus and a sentence encoder, which both take some opposites for "
                     "alike: read the texts before believing that their meaning was kept.")
    return notes


# --- tables and charts ------------------------------------------------------------------------------------------------


def bucket_names() -> list[str]:
    """The shares of words as they are told."""
    return [f"{100 * (end - 0.1):.0f}–{100 * end:.0f} %" for end in BUCKETS]


def _table(name: str, some: Sequence[Row], what: str) -> dict[str, Any]:
    columns: dict[str, Callable[[Row], float]] = {
        "as judged": lambda row: clipped(row.level[what]), "as the attack saw it": lambda row: _seen(row, what),
        "random swaps": lambda row: row.chance.get(what, math.nan), "the same text again": lambda row: clipped(row.noise[what])}
    if what == "rank":
        columns["the model's own answers"] = lambda row: clipped(row.level["model"])
    table = []
    for i, called in enumerate(bucket_names()):
        if not (here := [row for row in some if row.bucket == i]):
            continue
        table.append([called, len({row.text for row in here}), *(mean_of(here, value) for value in columns.values())])
    return {"title": f"{MEASURES[what].capitalize()} by share of words swapped, chosen by {OBJECTIVES[name]}", "as": "number",
            "columns": ["words swapped", "texts", *columns], "rows": table,
            "about": "Of the explanation before and after. Random swaps are the same candidates under the same constraints, "
                     "as many words; the same text again is the explainer's own noise."}


def _test_table(tests: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    beside = {"chance": "random swaps of as many words", "noise": "the same text explained again",
              "model": "the model's own answers"}
    call = {"more": "the attack leaves less", "less": "the attack leaves more", "none": "no difference within .05",
            "undecided": "undecided"}
    return {"title": "How much less agreement than…", "as": "number",
            "columns": ["chosen by", "than", "difference", "p", "call"],
            "rows": [[OBJECTIVES[t["objective"]], beside[t["beside"]], _range(t, True) if t["n"] else "–", p_words(t["p"]),
                      call[t["call"]]] for t in tests],
            "about": "Rank correlation, text by text and level by level."}


def _confidence(fine: Records, asked: Sequence[str]) -> dict[str, Any]:
    """The model's score of the label by number of words swapped."""
    table = []
    for name in (*asked, RANDOM):
        by_m: dict[int, list[tuple[str, float]]] = {0: [(r["text"], r["score"]) for r in fine]}
        for row in rows(fine, name):
            by_m.setdefault(row.m, []).append((row.text, row.level["score"]))
        cells = [asdict(stats.rate([v for _, v in some], [c for c, _ in some], grain=GRAIN))
                 if (some := by_m.get(m)) and all(0 <= v <= 1 for _, v in some) else None for m in range(5)]
        table.append([OBJECTIVES[name], *cells])
    return {"title": "How sure the model is of the label, by words swapped", "as": "number",
            "columns": ["chosen by", "0", "1", "2", "3", "4"], "rows": table,
            "about": "Of texts with so many swaps: the more swaps, the fewer texts."}


def _quality(fine: Records, asked: Sequence[str]) -> list[dict[str, Any]]:
    """Perplexity, new grammar errors and similarity of the chosen texts, of candidates in general, and of the original."""
    if not any("quality" in r for r in fine):
        return []
    kinds = {"the original": [r["quality"] for r in fine if "quality" in r]}
    for name in (*asked, RANDOM):
        kinds[OBJECTIVES[name]] = [row.level["quality"] for row in rows(fine, name) if "quality" in row.level]
    kinds["all candidates"] = [one for name in asked for row in rows(fine, name) for one in row.level.get("pool_quality", ())]
    table = []
    for called, some in kinds.items():
        values = [[one[what] for one in some if one.get(what) is not None] for what in
                  ("perplexity", "new_errors", "error_difference", "similarity")]
        table.append([called, len(some), *(_median(values[0]), *(_mean(v) for v in values[1:]))])
    return [{"title": "How good the swapped texts are as texts", "as": "number", "columns": [
        "texts", "levels", "perplexity (median)", "new grammar errors", "difference in errors", "similarity"], "rows": table,
        "about": "All levels together. Of all candidates, a few of each level stand for the rest."}]


def _median(values: Sequence[float]) -> float | None:
    return float(np.median(values)) if values else None


def _mean(values: Sequence[float]) -> float | None:
    return float(np.mean(values)) if values else None


def _chart(found: Mapping[str, Any], attacked: Mapping[str, Any], what: str) -> dict[str, Any]:
    names = {**{name: OBJECTIVES[name] for name in attacked}, RANDOM: "random", "noise": "the same text again",
             "model": "the model itself"}
    series = []
    for name, called in names.items():
        points = [(round(100 * end), one) for end, one in zip(BUCKETS, found[name], strict=True) if one["value"] is not None]
        series.append({"name": called, "x": [x for x, _ in points], "y": [one["value"] for _, one in points],
                       **{side: [one[side] for _, one in points] for side in ("low", "high")}})
    return {"title": "What is left of the explanation", "kind": "lines", "as": "number",
            "x_label": "up to so many % of the words",
            "y_label": MEASURES[what], "about": "1 is the same order of words as before. Bands are 95 % intervals over texts.",
            "series": [one for one in series if one["x"]]}


def _settings(store: Store) -> dict[str, Any]:
    spec, about = store.manifest["spec"], store.manifest["about"]
    return {"model": about["model"], "texts": about["inputs"], "explainer": spec["explainer"], "with": spec["victim"],
            "objectives": spec["objectives"], "at most so many words": spec["max_ratio"], "candidates": about["candidates"],
            "constraints": about["constraints"], "variant": spec["variant"], "random draws": spec["controls"],
            "racing": spec["racing"] or "no", "quality by": about["quality"], "seed": store.manifest["seed"],
            "command": about["command"] or None}
