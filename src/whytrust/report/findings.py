"""From a run's records to findings: every number with its interval, every comparison paired and corrected, plain data."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from whytrust import stats, verdicts
from whytrust.core import AllFailed
from whytrust.report.absences import absences_of
from whytrust.report.agreement import agreements
from whytrust.report.directions import directions_of
from whytrust.report.outcomes import BASELINES, FULL, Measured, Outcomes, Record, known_mean, laid_out, outcomes
from whytrust.report.records import records_of, with_names
from whytrust.report.strengths import strengths_of
from whytrust.report.words import termed
from whytrust.store import Store

ADMITTED = ("flip", "recovery")
"""The measures that a verdict may rest on."""
CAVEATS = (
    "An adversarial change is not what usually drives a prediction: an explainer that fails here may still describe clean "
    "inputs, and one that succeeds has been shown to find causes of this kind only.",
    "The trials ask what turned the label. In models whose reasons are known they find that; a true account of why the score "
    "is what it is wins them in some of these models, and in others no more often than chance.",
    "A flip shows that the chosen parts were enough, not that they were needed, and with many parts nearly any choice flips "
    "the label: read the curve against random and the oracle, never one number alone.",
    "The numbers hold for this model, these inputs, this way of cutting them into parts and this attack; another cut or a "
    "stronger attack can change the order of explainers.",
    "Several explainers were compared several times: the p-values are corrected for that, but the choice of inputs and "
    "settings that came before this run is not.",
)
OF_TEXTS = (
    "Words were swapped in the order in which leaving them out lowers the score of the first answer. occlusion, and explainers "
    "that hide words as it does, rank words in much the same way, so the attack may favour them.",
    "A swap can turn the answer by taking a word away. Then what was put in its place says nothing, and an explanation of the "
    "changed text cannot point at what is missing: its miss is no mistake. See “A new word, or a missing one?”.",
    "Few words were swapped, often one: magnitude, which is told which ones, is close to the oracle and no rival. What an "
    "explainer is measured against is words drawn at random and blind guesses.",
    "The attack stops at the first swap that turns the answer, so every verdict is about weak changes, of one strength.",
)
"""What misleads of texts, beyond that."""
WIDE = 0.4
"""An interval of an area under a curve that is wider than this says nothing."""
ABOUT = {"oracle": "the best set of parts that was found at all: the ceiling", "magnitude": "the parts that were changed most",
         "magnitude_mean": "the parts that were changed most, per value", "random": "parts drawn at random"}
ABOUT_TEXTS = {"oracle": "the best set of words that was found at all: the ceiling", "magnitude": "the swapped words",
               "magnitude_mean": "the swapped words, short ones first", "random": "words drawn at random"}
Plain = dict[str, Any]


def findings(store: Store) -> Plain:
    """All that can be said of a run, whether it is finished or not."""
    manifest, records = store.manifest, with_names(records_of(store), store)
    about: Mapping[str, Any] = manifest.get("about", {})
    tried = outcomes(records, FULL, about.get("explainers", ()))
    if not tried.cases and any(record["status"] == "not fooled" for record in records):
        return _none_fooled(store, records, tried)
    if not tried.cases:
        raise (AllFailed if _all_failed(records) else ValueError)(_nothing(records, store))
    silent = [name for name in about.get("explainers", ()) if name not in tried.explainers]
    ranked = sorted(tried.explainers, key=lambda name: -known_mean(tried.measures["flip"].values[name]))
    measures = {name: _measure(one, tried, ranked) for name, one in tried.measures.items()}
    trials = about.get("trials", ADMITTED)
    metrics = [dict(one) for one in about.get("metrics", ())]
    compared, by_measure = judged(tried, ranked, (*trials, *(one["metric"] for one in metrics if one["admitted"])))
    for measure, p_values in verdicts.adjusted(compared).items():
        for against in ("guess", "magnitude"):
            for name, p in getattr(p_values, against).items():
                measures[measure][f"against_{against}"][name]["p_holm"] = p
    pairs = _pairs(tried, ranked)
    strengths = strengths_of(records, about, ranked, pairs, compared)
    counts, kind = _counts(records, store), _kind(tried.cases[0])
    rows = _verdicts(ranked, by_measure, measures, strengths, tried)
    return {
        "format": 1, "study": manifest.get("study"), "title": _title(about),
        "model": {"name": about.get("model")}, "kind": kind,
        "data": {"what": about.get("data"), "inputs": about.get("inputs"), "sources": about.get("sources")},
        "counts": counts, "failures": [{key: r[key] for key in ("case", "name", "error")} for r in records
                                       if r["status"] == "failed"],
        "explainer_failures": _failures(records), "contenders": _contenders([*ranked, *silent], tried, kind),
        "admitted": list(by_measure), "metrics": metrics,
        "verdicts": rows + [_silent(name) for name in silent],
        "measures": measures,
        "curves": {judge: _curves(tried, ranked, judge) for judge in ("any", "target")},
        "recovery": _recovered(tried, ranked), "fidelity": _fidelities(tried, ranked) if "fidelity" in trials else [],
        "attack": _attack(manifest, records, tried), "strengths": strengths, "pairs": pairs,
        "agreements": agreements(tried), "directions": directions_of(records, ranked), "absences": absences_of(records, ranked),
        "calls": {"asked": sum(t["asked"] for t in tried.trials), "distinct": sum(t["distinct"] for t in tried.trials),
                  "all": sum(r.get("calls") or 0 for r in records)},
        "parts": {"least": min(c["d"] for c in tried.cases), "most": max(c["d"] for c in tried.cases)},
        "notes": [*about.get("notes", ()), *_cautions(tried, counts, about.get("named", ()), bool(store.problems)),
                  *_without_answers(tried, rows, kind)],
        "spec": manifest.get("spec", {}), "repeat": {"command": about.get("command", "")}, "seed": manifest.get("seed"),
        "versions": {name: value for session in store.sessions()[-1:] for name, value in session.items() if name != "time"},
        "sessions": len(store.sessions()),
        "problems": [*store.problems, *_journal(store)], "caveats": _caveats(kind)}


def _journal(store: Store) -> list[str]:
    """What is to be known of how the run went."""
    mixed = store.journal.mixed()
    return [*([f"The run was made in different surroundings ({mixed}): the last digits may differ."] if mixed else []),
            *store.journal.notes()]


def _kind(case: Record) -> str:
    return next((kind for key, kind in (("columns", "tabular"), ("sound", "sound"), ("text", "text")) if key in case), "image")


def _caveats(kind: str) -> list[str]:
    """How the numbers mislead."""
    return [termed({"kind": kind}, one) for one in CAVEATS] + (list(OF_TEXTS) if kind == "text" else [])


def _title(about: Mapping[str, Any]) -> str:
    return f"Can explanations of {about.get('model') or 'this model'} be believed?"


def _all_failed(records: Sequence[Record]) -> bool:
    return bool(records) and all(record["status"] == "failed" for record in records)


def _nothing(records: Sequence[Record], store: Store) -> str:
    failed = [r for r in records if r["status"] == "failed"]
    told = (f"{len(failed)} inputs failed, the first, {failed[0]['name']}, with {failed[0]['error']}; mend the inputs, or the "
            "model" if failed else "no input has been worked on so far; give the run's command again")
    return f"a report needs at least one adversary, and {store.folder} has none: {told}"


def none_fooled(records: Sequence[Record]) -> str:
    """What there is to say where the attack fooled the model on no input."""
    facts = [record.get("attack") or {} for record in records]
    stronger = ("pass other adversaries" if any("saved" in one for one in facts) else
                "try a stronger one: allow more swaps (most), fewer constraints or other candidates"
                if any("swapped" in one for one in facts) else
                "try a stronger one, such as a larger epsilon or more iterations")
    return f"no input could be fooled with this attack; {stronger}"


def _none_fooled(store: Store, records: Sequence[Record], tried: Outcomes) -> Plain:
    """The findings of an audit without an adversary: nothing is measured, and every verdict is open."""
    manifest, about, words = store.manifest, store.manifest.get("about", {}), none_fooled(records)
    kind = "text" if any("swapped" in (record.get("attack") or {}) for record in records) else "image"
    counts, names = _counts(records, store), list(about.get("explainers", ()))
    attacked = counts["not_fooled"]
    note = (f"{words[0].upper()}{words[1:]}. The model kept its answer on all {attacked} inputs that were attacked, so nothing "
            "is known of the explainers: this speaks neither for nor against them.")
    return {
        "format": 1, "study": manifest.get("study"), "title": _title(about),
        "model": {"name": about.get("model")}, "kind": kind,
        "data": {"what": about.get("data"), "inputs": about.get("inputs"), "sources": about.get("sources")},
        "counts": counts, "failures": [{key: r[key] for key in ("case", "name", "error")} for r in records
                                       if r["status"] == "failed"],
        "explainer_failures": {}, "contenders": [{"name": name, "role": "explainer", "about": ""} for name in names],
        "admitted": [], "metrics": [dict(one) for one in about.get("metrics", ())],
        "verdicts": [{**_silent(name), "words": f"undecided: {words}"} for name in names],
        "measures": {}, "curves": {}, "recovery": [], "fidelity": [], "attack": _attack(manifest, records, tried),
        "strengths": {"names": [], "adversaries": [], "rates": {}, "stable": None, "words": "", "unstable": [], "cases": 0},
        "pairs": [], "agreements": [], "directions": [], "absences": [],
        "calls": {"asked": 0, "distinct": 0, "all": sum(r.get("calls") or 0 for r in records)}, "parts": None,
        "notes": [note, *about.get("notes", ()), *_cautions(tried, counts, (), bool(store.problems))],
        "spec": manifest.get("spec", {}), "repeat": {"command": about.get("command", "")}, "seed": manifest.get("seed"),
        "versions": {name: value for session in store.sessions()[-1:] for name, value in session.items() if name != "time"},
        "sessions": len(store.sessions()), "problems": [*store.problems, *_journal(store)], "caveats": []}


def _counts(records: Sequence[Record], store: Store) -> dict[str, int]:
    states = [record["status"] for record in records]
    planned = sum(len(block.cases) for block in store.blocks)
    return {"inputs": len(records), "adversaries": states.count("ok"), "not_fooled": states.count("not fooled"),
            "failed": states.count("failed"), "left": planned - len(records)}


def _poolings(tried: Outcomes) -> dict[str, str]:
    """How each explainer's map became one number a part."""
    return {name: how for trial in tried.trials for name, how in trial.get("pooling", {}).items()}


def _cautions(tried: Outcomes, counts: Mapping[str, int], named: Sequence[str], damaged: bool) -> list[str]:
    """What a reader must know before believing the table.

    That the catalogue's methods are pooled each in its own way is how they are known; of others' it may go unnoticed.
    """
    notes = []
    if counts["left"]:
        whole = counts["inputs"] + counts["left"]
        state = "not done, or damaged (see the problems below)" if damaged else "not done yet: this is a run in progress"
        notes.append(f"{counts['left']} of {whole} inputs are {state}.")
    by_how = _poolings(tried)
    if len(set(by_how.values())) > 1 and set(by_how) - set(named):
        told = ", ".join(f"{name} by {how}" for name, how in by_how.items())
        notes.append(f"Maps were pooled onto parts in different ways ({told}): a difference between such explainers may be "
                     "one of pooling alone.")
    return notes


def _without_answers(tried: Outcomes, rows: Sequence[Plain], kind: str) -> list[str]:
    """A note where an explainer is called better that was not compared with its scores of inputs with the same answer."""
    blind, cases = tried.measures["flip"].blind, len(tried.cases)
    alone = [row["name"] for row in rows if row["kind"] in ("better_than_blind", "better_than_magnitude")
             and 2 * int((~np.isnan(blind.get(f"same answer:{row['name']}", np.full(cases, np.nan)))).sum()) < cases]
    who = ", ".join(alone)
    return [termed({"kind": kind}, f"Most adversaries share their answer with no other one in their block. So {who} could not "
                   "be compared with scores of other inputs with the same answer: an explainer with a fixed map for "
                   "each answer, which looks at no input, might pass here. Larger blocks (block = …) tell.")] if alone else []


def _contenders(ranked: Sequence[str], tried: Outcomes, kind: str) -> list[Plain]:
    pooled, guesses = _poolings(tried), tried.guesses.get("any", ())
    about = dict(ABOUT_TEXTS if kind == "text" else ABOUT)
    if any(guesses):
        about["blind"] = blind_words(guesses, kind)
    return [{"name": name, "role": "explainer", "about": f"pooled by {pooled[name]}" if name in pooled else ""}
            for name in ranked] + [
        {"name": name, "role": "baseline", "about": about[name]} for name in BASELINES if name in about]


def blind_words(guesses: Sequence[str | None], kind: str) -> str:
    """What the best blind guess of a run is; of two, where the halves of the run choose differently, both."""
    names = [verdicts.said(name) for name, _ in Counter(name for name in guesses if name).most_common(2)]
    inputs = {"text": "texts", "tabular": "rows"}.get(kind, "inputs")
    return (f"a guess that never asks the model, the best on the other half of the {inputs}: "
            + " or ".join(names).replace("other inputs", f"other {inputs}"))


def _failures(records: Sequence[Record]) -> dict[str, Plain]:
    """On how many cases each explainer failed, in any trial at any strength."""
    found: dict[str, Plain] = {}
    for record in records:
        errors: dict[str, str] = {}
        for trial in record.get("trials", ()):
            for some in (trial, *trial.get("recovery", {}).values()):
                errors = {**some.get("failed", {}), **errors}
        for name, error in errors.items():
            found.setdefault(name, {"count": 0, "first": error})["count"] += 1
    return found


def _plain(one: Any) -> Plain:
    return {key: None if isinstance(value, float) and not math.isfinite(value) else value for key, value in asdict(one).items()}


# --- measures and verdicts --------------------------------------------------------------------------------------------


def _against(measured: Measured, tried: Outcomes, name: str, rival: str) -> stats.Difference:
    other = measured.blind[rival] if rival in measured.blind else measured.values[rival]
    return stats.paired(measured.values[name], other, tried.shared, grain=measured.grain,
                        chance=measured.chance if rival == "random" else None)


def compared(measured: Measured, tried: Outcomes, names: Sequence[str]) -> verdicts.Compared:
    """Every difference that the verdict by one measure rests on; a metric refuses what it cannot judge."""
    there = [name for name in names if name in measured.values]
    rivals = there if measured.rival and "magnitude" in measured.values else []
    controls = {n: controls for n in there if (controls := measured.controls_of(n))}
    left = {n: measured.values["oracle"] - measured.values["blind"] + 0 * measured.values[n]
            for n in controls if "oracle" in measured.values}
    return verdicts.Compared(
        {n: _against(measured, tried, n, "random") for n in there},
        {n: _against(measured, tried, n, "magnitude") for n in rivals},
        {n: {c: _against(measured, tried, n, c) for c in some} for n, some in controls.items()},
        {n: float(np.nanmean(values)) for n, values in left.items() if not np.isnan(values).all()}, len(tried.cases))


def _measure(measured: Measured, tried: Outcomes, ranked: Sequence[str]) -> Plain:
    values = measured.values
    rates = {name: stats.rate(values[name], tried.shared, grain=measured.grain)
             for name in (*ranked, *BASELINES) if name in values}
    blind = {name: stats.rate(column, tried.shared, grain=measured.grain) for name, column in measured.blind.items()}
    found = compared(measured, tried, ranked)
    return {"about": _worded(tried, measured.about), "rates": {name: _plain(rate) for name, rate in rates.items()},
            "blind": {name: _plain(rate) for name, rate in blind.items()},
            "against_random": {n: _plain(one) for n, one in found.random.items()},
            "against_guess": {n: _guess(*found.closest(n)) for n in found.random},
            "against_magnitude": {n: _plain(one) for n, one in found.magnitude.items()},
            "normalised": {n: _normalised(values, n) for n in found.random}}


def _guess(control: str, difference: stats.Difference) -> Plain:
    """The guess, random or blind, that the verdict speaks of."""
    return {"guess": control, **_plain(difference)}


def _normalised(values: Mapping[str, Any], name: str) -> float | None:
    """How far from random to the oracle, on the cases that this contender answered."""
    if "oracle" not in values:
        return None
    own, low, high = (known_mean(one) for one in _answered(values, name, "random", "oracle"))
    return (own - low) / (high - low) if high - low > 1e-9 else None


def _answered(values: Mapping[str, Any], *names: str) -> list[Any]:
    """The numbers of several contenders, on the cases that the first one answered."""
    there = ~np.isnan(values[names[0]])
    return [values[name][there] for name in names]


def judged(tried: Outcomes, ranked: Sequence[str],
            trials: Sequence[str]) -> tuple[dict[str, verdicts.Compared], dict[str, dict[str, Any]]]:
    """The admitted measures' comparisons, and the verdicts by each."""
    judged = {}
    for name in (*ADMITTED, *(name for name in tried.measures if name in trials and name not in ADMITTED and ":" not in name)):
        measured = tried.measures.get(name)
        if measured is None or name not in trials or np.isnan(measured.values["random"]).all():
            continue
        judged[name] = compared(measured, tried, ranked)
    return judged, verdicts.table(judged)


def _verdicts(ranked: Sequence[str], by_measure: Mapping[str, Mapping[str, verdicts.Verdict]], measures: Plain,
              strengths: Plain, tried: Outcomes) -> list[Plain]:
    rows = []
    for name in ranked:
        own = {measure: found[name] for measure, found in by_measure.items() if name in found}
        verdict = verdicts.overall(own)
        unstable = name in strengths["unstable"]
        words = verdict.words + ("; unstable: it changes with the attack's strength" if unstable else "")
        flip = measures["flip"]
        by = {m: {"kind": v.kind, "words": v.words} for m, v in own.items()}
        why = _worded(tried, f"{_why(name, flip, tried)}{_found(name, measures, own)}{_preferred(name, measures, own)}")
        rows.append({"name": name, "kind": verdict.kind, "words": words, "why": why,
                     "n": flip["rates"][name]["n"], "needed": verdict.needed, "unstable": unstable, "by_measure": by})
    return rows


def _silent(name: str) -> Plain:
    """The row of an explainer that failed everywhere."""
    return {"name": name, "kind": "undecided", "words": "undecided: it explained none of the cases", "why": "", "n": 0,
            "needed": None, "unstable": False, "by_measure": {}}


def _why(name: str, flip: Plain, tried: Outcomes) -> str:
    values = tried.measures["flip"].values
    own, random, magnitude = (known_mean(one) for one in _answered(values, name, "random", "magnitude"))
    found, some = flip["against_guess"][name], int((~np.isnan(values[name])).sum())
    of_several = int((~np.isnan(values["random"])).sum())  # an input of one part has nothing to choose from
    if not some:
        return "An input that is one part has nothing to choose from."
    where = "" if some == of_several else f" (on the {some} of {of_several} cases that it explained)"
    changed = "the swapped ones" if _kind(tried.cases[0]) == "text" else "the most changed"
    guessed = known_mean(_answered(values, name, "blind")[1]) if "blind" in values else math.nan
    guess = f", a blind guess in {guessed:.0%}" if "blind" in values else ""
    return (f"Its parts flip the label in {own:.0%} of tries, random ones in {random:.0%}{guess}, {changed} in "
            f"{magnitude:.0%}{where}; against {verdicts.said(found['guess'])} {found['value']:+.3f} ({found['low']:+.3f} to "
            f"{found['high']:+.3f}).")


def _worded(tried: Outcomes, words: str) -> str:
    return termed({"kind": _kind(tried.cases[0])}, words)


def _found(name: str, measures: Plain, own: Mapping[str, Any]) -> str:
    """What recovery adds, where it has a say."""
    rate = measures.get("recovery", {}).get("rates", {}).get(name)
    if "recovery" not in own or not rate or not rate["n"]:
        return ""
    chance, verdict = measures["recovery"]["rates"]["random"]["value"], own["recovery"]
    told = verdict.words if verdict.kind == "undecided" else f"n = {rate['n']}: {verdict.words}"  # "undecided" says its n
    return f" It recovers {rate['value']:.0%} of the only changed parts, chance {chance:.0%} ({told})."


def _preferred(name: str, measures: Plain, own: Mapping[str, Any]) -> str:
    """What the admitted metrics add."""
    told = [f"{metric} on {measures[metric]['rates'][name]['value']:.0%}" for metric in own if metric not in ADMITTED]
    return f" Metrics put it before random scores: {', '.join(told)} of comparisons." if told else ""


def _pairs(tried: Outcomes, ranked: Sequence[str]) -> list[Plain]:
    flip = tried.measures["flip"]
    named = list(itertools.combinations(ranked, 2))
    found = [stats.paired(flip.values[a], flip.values[b], tried.shared, grain=flip.grain) for a, b in named]
    corrected = stats.holm([one.p for one in found]).tolist()
    rows = []
    for (a, b), one, p in zip(named, found, corrected, strict=True):
        above = f"{a} above {b}" if one.value > 0 else f"{b} above {a}"
        words = above if p <= stats.LEVEL else "not told apart"
        rows.append({"first": a, "second": b, **_plain(one), "p_holm": float(p), "words": words})
    return rows


# --- curves, recovery, fidelity ---------------------------------------------------------------------------------------


def _curves(tried: Outcomes, ranked: Sequence[str], judge: str) -> Plain:
    """Flip rates over k, or over the share of parts where inputs have different numbers of them."""
    same = len({tuple(trial["k"]) for trial in tried.trials}) == 1
    axis = tried.trials[0]["k"] if same else list(range(10, 101, 10))
    lines: dict[str, Plain] = {}
    guesses = tried.guesses.get(judge, ())
    for name in (name for name in (*ranked, *BASELINES) if name != "blind" or any(guesses)):
        columns = np.full((len(axis), len(tried.trials)), math.nan)
        for control in dict.fromkeys(guesses) if name == "blind" else (name,):
            for places, ks, curves in laid_out(tried.trials, control or "", judge, name == "blind"):
                there = [i for i, place in enumerate(places) if name != "blind" or guesses[place] == control]
                rows = curves[there]
                if there:
                    columns[:, places[there]] = rows.T if same else np.array([_on_axis(one, ks, axis) for one in rows]).T
        rates = [stats.rate(column, tried.shared) for column in columns]
        plain = [_plain(rate) for rate in rates]
        lines[name] = {key: [p[key] for p in plain] for key in ("value", "low", "high", "n")}
    return {"unit": "parts" if same else "percent", "x": axis, "lines": lines}


def _on_axis(values: Any, ks: Sequence[int], axis: Sequence[int]) -> list[float]:
    places = [max(ks[-1] * percent // 100, 1) for percent in axis]
    return [float(values[ks.index(k)]) if k in ks else float(np.interp(k, ks, values)) for k in places]


def _recovered(tried: Outcomes, ranked: Sequence[str]) -> list[Plain]:
    """For each k: how often 0, 1, … k of the changed parts were found, and how often chance would."""
    found = []
    for k in sorted({int(k) for t in tried.trials for k in t.get("recovery", {})}):
        rows = [(t["recovery"][str(k)], case["d"]) for t, case in zip(tried.trials, tried.cases, strict=True)
                if t.get("recovery", {}).get(str(k), {}).get("flipped")]
        counts = {name: [sum(row["found"].get(name) == hits for row, _ in rows) for hits in range(k + 1)]
                  for name in (*ranked, "magnitude")}
        chance = [[math.comb(k, hits) * math.comb(d - k, k - hits) / math.comb(d, k) for hits in range(k + 1)] for _, d in rows]
        found.append({"k": k, "n": len(rows), "of": len(tried.cases), "counts": counts,
                      "random": np.mean(chance, axis=0).tolist() if rows else None})
    return found


def _fidelities(tried: Outcomes, ranked: Sequence[str]) -> list[Plain]:
    """Does a local model's fidelity tell hits from misses?"""
    found = []
    for name in ranked:
        hits: dict[str, list[tuple[float, bool]]] = {}
        for trial in tried.trials:
            own = trial.get("fidelity", {}).get(name)
            if own and 3 in trial["k"] and trial["k"][-1] > 3:
                hits.setdefault("flip@3", []).append((_fit(own), trial["flip"]["any"][name][trial["k"].index(3)] == "1"))
            alone = trial.get("recovery", {}).get("1", {})
            if alone.get("flipped") and name in alone["fidelity"]:
                hits.setdefault("recovery@1", []).append((_fit(alone["fidelity"][name]), alone["found"][name] == 1))
        found += [_fidelity(name, trial_name, hits[trial_name]) for trial_name in sorted(hits, reverse=True)]
    return found


def _fit(fidelity: Mapping[str, Any]) -> float:
    """On samples that were not fitted to, where there are such."""
    fresh, own = fidelity.get("fresh"), fidelity.get("fidelity")
    return float(fresh if fresh is not None else own if own is not None else math.nan)


def _fidelity(name: str, trial: str, rows: Sequence[tuple[float, bool]]) -> Plain:
    hits, misses = ([fit for fit, hit in rows if hit is wanted and math.isfinite(fit)] for wanted in (True, False))
    area = stats.auc(hits, misses)
    if area is None:
        words = f"all {len(hits) + len(misses)} are {'hits' if hits else 'misses'}: nothing to tell apart"
    elif area.low > 0.5:
        words = "a higher fidelity does go with being right"
    elif area.high < 0.5:
        words = "a higher fidelity goes with being wrong"
    elif area.high - area.low > WIDE:
        words = f"{len(hits)} hits and {len(misses)} misses are too few to say whether fidelity tells right from wrong"
    else:
        words = "fidelity does not tell right from wrong here, beyond chance"
    return {"name": name, "trial": trial, "hits": hits, "misses": misses, "auc": None if area is None else _plain(area),
            "words": words}


# --- the attack -------------------------------------------------------------------------------------------------------


def _attack(manifest: Mapping[str, Any], records: Sequence[Record], tried: Outcomes) -> Plain:
    done = [r for r in records if r["status"] in ("ok", "not fooled")]
    known = [r for r in done if r.get("truth") is not None]
    facts = [t["attack"] for t in tried.trials]
    spread = {}
    for name in ("swapped", "share", "linf", "l2", "relative_l2", "signal_to_noise", "at_floor", "iterations", "margin"):
        values = [f[name] for f in facts if f.get(name) is not None]
        spread[name] = {"median": float(np.median(values)), "max": float(max(values))} if values else None
    settings = manifest.get("spec", {}).get("attack")
    settings = settings if isinstance(settings, Mapping) else {"method": settings}
    return {"method": settings.get("method"), "settings": dict(settings), **spread,
            "idle": sum(r["attack"].get("swapped") == 0 for r in done),
            "success": _plain(stats.rate([float(r["status"] == "ok") for r in done], _sources(done))),
            "accuracy_before": float(np.mean([r["clean_label"] == r["truth"] for r in known])) if known else None,
            "accuracy_after": float(np.mean([r["label"] == r["truth"] for r in known])) if known else None}


def _sources(records: Sequence[Record]) -> list[Any] | None:
    named = [r.get("source") for r in records]
    return named if any(s is not None for s in named) else None
