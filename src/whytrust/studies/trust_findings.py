"""What runs of two experiments have found: trust in predictions, and the choice of a model. Plain data, made from records."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from whytrust import stats
from whytrust.store import Store, plain
from whytrust.studies.choosing import correct
from whytrust.studies.mistrust import EVERYTHING, summary

Records = Sequence[Mapping[str, Any]]
HOW = {"submodular": "SP", "random": "RP"}
GRAINS = {"submodular": 0.5, "random": 0.05}
"""The least that a pair can show: right, wrong or a tie, or a mean over ten picks; no finer over B, for picks grow by one."""
UNTOLD = ("plants", "budgets", "experiment", "kind", "explainers", "train", "of_parts")
"""What a run is told apart by, and no reader wants to read."""
SHOWN = (1, 5, 10, 20, 30)
"""Numbers of explanations that tables have; charts have all."""


def common(store: Store, records: Records) -> dict[str, Any]:
    """What the findings of every experiment have: how many cases, what failed."""
    failures = [{"case": r["case"], "error": r["error"]} for r in records if r["status"] == "failed"]
    failures += [{"case": r["case"], "error": f"{name}: {told}"} for r in records
                 for name, told in (r.get("failures") or {}).items()]
    return {"cases": {"done": len(records), "of": sum(len(block.cases) for block in store.blocks),
                      "failed": sum(r["status"] == "failed" for r in records)}, "failures": failures}


def prediction(store: Store) -> dict[str, Any]:
    """Does the reader of an explanation mistrust the right predictions?"""
    spec, about = store.manifest["spec"], store.manifest["about"]
    records = list(store.records())
    fine = [r for r in records if r["status"] == "ok"]
    useless = [name for name in spec["explainers"] if fine and not any(name in r["trusts"] for r in fine)]
    asked = [name for name in spec["explainers"] if name not in useless]
    done = [r for r in records if r["status"] == "ok" and all(name in r["trusts"] for name in asked)]
    partly = len(fine) - len(done)
    done = [{**r, "trusts": {name: r["trusts"][name] for name in asked}} for r in done]
    data = {"experiment": "prediction", "question": f"A quarter of the features of {about['model']} is declared untrustworthy. "
            "Does somebody who reads only the explanation mistrust the right predictions?" if spec["share"] == 0.25 else
            f"{spec['share']:.0%} of the features of {about['model']} are declared untrustworthy. Does somebody who reads only "
            "the explanation mistrust the right predictions?",
            "tables": [], "charts": [], "notes": list(store.problems), "answer": [], **common(store, records),
            "settings": {"model": about["model"], "inputs": about["inputs"], "a feature is": about["feature"],
                         "features": about["shared"], "untrustworthy": spec["share"], "rounds": spec["rounds"],
                         "parts read": spec["features"], "seed": store.manifest["seed"]}}
    if useless:
        data["notes"].append(f"{', '.join(useless)} explained none of the inputs, and is left out: see what failed.")
    if not about.get("deterministic", True):
        data["notes"].append("Hidden values are drawn at random, and what the model says without them is a mean over draws: "
                             "near the border of a decision the truth itself is unsure, and no reader can reach an F1 of 1.")
    if partly:
        data["notes"].append(f"{partly} inputs are left out, for an explainer failed on them: all are compared on the same.")
    if len({store.manifest["hashes"][r["case"]] for r in done}) < 2:
        data["answer"] = [f"Nothing can be said: {len(done)} predictions were explained by every explainer, and at least 2 of "
                          "different inputs are needed."]
        return dict(plain(data))
    hashes = store.manifest["hashes"]
    sources = [hashes[r["case"]] for r in done]
    found = summary(done, spec["rounds"], ("random",), sources)
    if len(set(sources)) < len(sources):
        data["notes"].append(f"Of {len(sources)} inputs {len(set(sources))} differ; the same input again is no new evidence.")
    weighs = {name: all(r["weighs"][name] for r in done) for name in asked}
    data["answer"] = _said(found, asked)
    data["tables"] = [_f1_table(found, weighs)]
    data["charts"] = [{"title": "F1 of “trustworthy”", "kind": "bars", "x_label": "", "y_label": "F1, the mean over all rounds",
                       "about": "1 is a reader who trusts exactly what the model would still say without the untrustworthy "
                                "features.",
                       "series": [{"name": name, "x": [0], "y": [row["value"]], "low": [row["low"]], "high": [row["high"]]}
                                  for name, row in _best_first(found)]}]
    data["notes"] += _cautions(found)
    return dict(plain(data))


def _best_first(found: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    return sorted(found["rows"].items(), key=lambda pair: -pair[1]["value"])


def _f1_table(found: Mapping[str, Any], weighs: Mapping[str, bool]) -> dict[str, Any]:
    rows = []
    for name, row in _best_first(found):
        tests = {t["rival"]: t for t in found["tests"] if t["name"] == name}
        reader = "–" if name == EVERYTHING else "weighs" if weighs.get(name) else "names"
        rows.append([name, {**{k: row[k] for k in ("value", "low", "high")}, "n": found["n"]}, row["precision"], row["recall"],
                     reader, _difference(tests.get(EVERYTHING))])
    return {"title": "Readers beside the truth", "columns": ["explainer", "F1", "precision", "recall", "its reader",
            "above trusting everything (points)"], "rows": rows,
            "about": f"{found['n']:,} predictions, {found['rounds']} draws of untrustworthy features; "
                     f"{found['trustworthy']:.0%} of predictions are truly trustworthy. A reader who weighs takes off what "
                     "marked features contribute; one who can only see names mistrusts as soon as one is named."}


def _difference(test: Mapping[str, Any] | None) -> str:
    if test is None:
        return "–"
    points = f"{100 * test['value']:+.1f} ({100 * test['low']:+.1f} to {100 * test['high']:+.1f})"
    return f"{points}, {'undecided' if test['p'] > stats.LEVEL else p_words(test['p'])}"


def p_words(p: float) -> str:
    """A p-value as it is told."""
    return "p < .001" if p < 0.001 else f"p = {p:.3f}".replace("0.", ".")


def _said(found: Mapping[str, Any], asked: Sequence[str]) -> list[str]:
    """One sentence an explainer, best first, and what trusting everything would have given."""
    line = found["rows"][EVERYTHING]["value"]
    words = []
    for name, row in _best_first(found):
        if name not in asked or name == "random":
            continue
        test = next(t for t in found["tests"] if t["name"] == name and t["rival"] == EVERYTHING)
        side = "above" if test["value"] > 0 else "below"
        points = ("exactly that of trusting everything, " if test["value"] == 0 else
                  f"{100 * abs(test['value']):.1f} points {side} trusting everything, ")
        points += f"{100 * test['low']:+.1f} to {100 * test['high']:+.1f}"
        call = ("whether that helps is undecided" if test["p"] > stats.LEVEL else
                "better than trusting everything" if test["value"] > 0 else "worse than trusting everything")
        words.append(f"Readers of {name} reach an F1 of {row['value']:.3f}: {call} ({points}).")
    words.append(f"Trusting every prediction, without any explanation, gives {line:.3f}.")
    return words


def _cautions(found: Mapping[str, Any]) -> list[str]:
    notes = ["Intervals and p-values are for other inputs like these, with each left out in turn (jackknife), and never "
             "narrower than a quarter of a prediction makes them; p-values share their 5 % (Holm), so that an interval may "
             "leave out 0 where the verdict is still undecided."]
    if found["trustworthy"] > 0.99:
        notes.append("Hardly any prediction changes without the untrustworthy features: there was next to nothing to mistrust. "
                     "A model that never changes its mind cannot tell explainers apart here.")
    if found["trustworthy"] < 0.05:
        notes.append("Hardly any prediction survives without the untrustworthy features: the parts are so few, or so needed, "
                     "that hiding a quarter of the features leaves no input. Cut finer, or declare fewer untrustworthy.")
    return notes


# --- the choice of a model ------------------------------------------------------------------------------------------------


def model(store: Store) -> dict[str, Any]:
    """How often is the better of two models chosen?"""
    spec, records = store.manifest["spec"], list(store.records())
    done, names, left = complete(records, spec["explainers"])
    data: dict[str, Any] = {
        "experiment": "model", "question": "Two models are equal on validation data and unequal in the world. How often does "
        "somebody who reads B explanations of each choose the better one?", "answer": [], "tables": [], "charts": [],
        "notes": [*left, *store.problems], **common(store, records),
        "settings": {**{k: v for k, v in spec.items() if k not in UNTOLD},
                     "artefacts": len(spec["plants"]), "seed": store.manifest["seed"]}}
    if len(done) < 2 or not names:
        data["answer"] = [f"Nothing can be said: {len(done)} pairs of models were found and explained, at least 2 are needed."]
        return dict(plain(data))
    budgets = budgets_of(spec, done)
    tests = comparisons(done, names, budgets)
    data["answer"] = _chosen_words(done, names, budgets, tests)
    data["charts"] = [_choice_chart(done, names, budgets)]
    data["tables"] = [_choice_table(done, names, budgets), difference_table(tests), _pairs_table(done, names)]
    data["notes"].append("A reader who chooses by a coin is right half of the time. Intervals are over pairs of models.")
    if len(budgets) < len(spec["budgets"]):
        data["notes"].append(f"No more than {min(r['inputs'] for r in done)} inputs are explained of each pair, so that larger "
                             f"B ({', '.join(str(b) for b in spec['budgets'] if b not in budgets)}) cannot be read.")
    return dict(plain(data))


def complete(records: Records, explainers: Iterable[str]) -> tuple[list[Mapping[str, Any]], list[str], list[str]]:
    """The pairs that every explainer explained which explained any, these explainers, and what is left out, in words."""
    fine = [r for r in records if r["status"] == "ok"]
    names = [name for name in explainers if any(name in r["right"] for r in fine)]
    done = [r for r in fine if all(name in r["right"] for name in names)]
    left = [f"{name} failed on every pair and is left out." for name in explainers if fine and name not in names]
    if len(done) < len(fine):
        left.append(f"{len(fine) - len(done)} of {len(fine)} pairs are left out, for an explainer failed there that worked on "
                    "others: all are compared on the same pairs.")
    return done, names, left


def budgets_of(spec: Mapping[str, Any], records: Records) -> list[int]:
    """How many explanations are read: no more than there are."""
    return [b for b in spec["budgets"] if b <= min(r["inputs"] for r in records)] or spec["budgets"][:1]


def rate_at(records: Records, name: str, how: str, place: int) -> dict[str, Any]:
    """The share of right choices with so many explanations."""
    return asdict(stats.rate(correct(records, name, how)[:, place], grain=GRAINS[how]))


def comparisons(records: Records, names: Sequence[str], budgets: Sequence[int]) -> list[dict[str, Any]]:
    """SP − RP of each explainer, and the first explainer − each other: paired by pair of models, over few and over all B."""
    up_to = {most: [i for i, b in enumerate(budgets) if b <= most] for most in (10, max(budgets))}
    spans = {f"B ≤ {most}": places for most, places in up_to.items() if places and (most <= max(budgets))}
    pairs: dict[tuple[str, str, str], stats.Difference] = {}
    for span, places in spans.items():
        mean = {(name, how): correct(records, name, how)[:, places].mean(axis=1) for name in names for how in HOW}
        for name in names:
            if name != "random":
                pairs[f"SP − RP, {name}", span, name] = stats.paired(mean[name, "submodular"], mean[name, "random"],
                                                                      grain=GRAINS["submodular"])
        for other in names[1:]:
            for how, short in HOW.items():
                pairs[f"{names[0]} − {other}, {short}", span, names[0]] = stats.paired(mean[names[0], how], mean[other, how],
                                                                                         grain=GRAINS[how])
    adjusted = stats.holm([one.p for one in pairs.values()])
    return [{"what": what, "span": span, "value": one.value, "low": one.low, "high": one.high, "p": float(p), "n": one.n,
             "call": "undecided" if p > stats.LEVEL else "above" if one.value > 0 else "below"}
            for ((what, span, _), one), p in zip(pairs.items(), adjusted, strict=True)]


def _chosen_words(records: Records, names: Sequence[str], budgets: Sequence[int], tests: Sequence[Any]) -> list[str]:
    place = min(range(len(budgets)), key=lambda i: abs(budgets[i] - 10))
    words = []
    for name in names:
        sp, rp = (rate_at(records, name, how, place)["value"] for how in HOW)
        read = f"{budgets[place]} explanation{'s' * (budgets[place] > 1)}"
        words.append(f"Readers of {read} by {name} choose the better model in {sp:.0%} of {len(records)} pairs when "
                     f"explanations are picked for coverage (SP), in {rp:.0%} when at random (RP); a tie counts half.")
    oracle = stats.rate([r["oracle"] for r in records], grain=0.5)
    words.append(f"A reader who knew how many decisions rest on the artefacts would choose rightly in {oracle.value:.0%} "
                 f"({oracle.low:.0%} to {oracle.high:.0%}): what else the two models differ in is chance, and no explanation "
                 "of artefacts can show it.")
    return words + difference_words([t for t in tests if t["span"] == f"B ≤ {max(budgets)}"])


def difference_words(tests: Sequence[Mapping[str, Any]]) -> list[str]:
    """What may be said of each difference."""
    said = {"undecided": "undecided", "above": "above zero beyond chance", "below": "below zero beyond chance"}
    return [f"{t['what']} ({t['span']}): {100 * t['value']:+.1f} points, {said[t['call']]}." for t in tests]


def _choice_chart(records: Records, names: Sequence[str], budgets: Sequence[int]) -> dict[str, Any]:
    series = []
    for name in names:
        for how, short in HOW.items():
            points = [rate_at(records, name, how, i) for i in range(len(budgets))]
            series.append({"name": f"{short}-{name}", "x": list(budgets), **{
                key: [p[of] for p in points] for key, of in (("y", "value"), ("low", "low"), ("high", "high"))}})
    oracle = asdict(stats.rate([r["oracle"] for r in records], grain=0.5))
    series.append({"name": "knows all", "x": list(budgets), **{key: [oracle[of]] * len(budgets) for key, of in (
        ("y", "value"), ("low", "low"), ("high", "high"))}})
    return {"title": "Right choices, by how many explanations are read", "x_label": "explanations read (B)",
            "y_label": "right choices", "series": series, "about": "SP: picked for coverage; RP: picked at random. Knows "
            "all: a reader who goes by how many decisions change when all artefacts are hidden."}


def _choice_table(records: Records, names: Sequence[str], budgets: Sequence[int]) -> dict[str, Any]:
    few = budgets if len(budgets) <= len(SHOWN) else sorted({*(b for b in budgets if b in SHOWN), budgets[0], budgets[-1]})
    places = [budgets.index(b) for b in few]
    rows = [[f"{short}-{name}", *(rate_at(records, name, how, i) for i in places)]
            for name in names for how, short in HOW.items()]
    rows.append(["knows all", *([asdict(stats.rate([r["oracle"] for r in records], grain=0.5))] * len(places))])
    return {"title": "Right choices", "columns": ["readers of", *(f"B = {budgets[i]}" for i in places)], "rows": rows,
            "about": f"{len(records)} pairs of models."}


def difference_table(tests: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Every difference with its interval."""
    rows = [[t["what"], t["span"], f"{100 * t['value']:+.1f} ({100 * t['low']:+.1f} to {100 * t['high']:+.1f})",
             p_words(t["p"]), t["call"]] for t in tests]
    return {"title": "Differences, in points", "columns": ["difference", "mean over", "points", "p (Holm)", ""], "rows": rows,
            "about": "Paired by pair of models: both readers saw the same two models."}


def _pairs_table(records: Records, names: Sequence[str]) -> dict[str, Any]:
    sides = {what: np.array([r[what] for r in records]).mean(axis=0) for what in ("validation", "world")}
    rows = [[f"{which} model", f"{sides['validation'][i]:.1%}", f"{sides['world'][i]:.1%}",
             f"{np.mean([r['changed'][i] / r['inputs'] for r in records]):.1%}",
             *(f"{np.mean([r['named'][name][i] for r in records]):.1%}" for name in names)]
            for i, which in enumerate(("the better", "the worse"))]
    return {"title": "The pairs", "columns": ["", "right on validation", "right in the world", "decisions on artefacts",
                                              *(f"artefacts named by {name}" for name in names)], "rows": rows,
            "about": f"Means over {len(records)} pairs; {np.mean([r['trained'] for r in records]):.0f} models were trained for "
                     "a pair, on average."}
