"""The metrics on trial, told: which may crown a winner and why, one table of all tests, and what each failed on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from whytrust.measures.judged import About
from whytrust.store import Store
from whytrust.studies.metrics_findings import TESTS, Found, Outcome, findings
from whytrust.studies.trust_findings import common

DOMAINS = {"image": "Images", "text": "Texts", "audio": "Sounds", "tabular": "Table rows"}
SIGNS: Mapping[Outcome, str] = {"passed": "+ passed", "failed": "✗ failed", "undecided": "? undecided"}
NEEDED = ("truth", "shared")
"""Tests that a metric must have passed, and not only not failed, before it may crown a winner."""
TOLD = ("asked",)
"""Tests that say what a trial is no judge of, and bar nobody: an audit's verdict is about what turned the label."""


@dataclass(frozen=True)
class Admission:
    """May a metric crown a winner among explainers of this domain, and why (not)?"""

    metric: str
    domain: str
    admitted: bool
    why: str


def admissions(found: Sequence[Found], domain: str, labs: Mapping[str, Mapping[str, Any]],
               abouts: Mapping[str, About]) -> list[Admission]:
    """One for each metric that was tried in a lab of this domain; a metric that failed anything there is not admitted."""
    here = [one for one in found if labs[one.lab]["domain"] == domain]
    return [_admission(abouts[name], domain, [one for one in here if one.metric == name])
            for name in dict.fromkeys(one.metric for one in here)]


def _admission(about: About, domain: str, mine: Sequence[Found]) -> Admission:
    metric, needed = about.name, NEEDED[:1] if about.of_change else NEEDED
    failed = sorted((one for one in mine if one.outcome == "failed" and one.test not in TOLD),
                    key=lambda one: one.test not in NEEDED)
    if failed:
        first = failed[0]
        more = f", and {len(failed) - 1} more" if len(failed) > 1 else ""
        return Admission(metric, domain, False, f"failed “{TESTS[first.test]}” ({first.lab}: {first.words}{more})")
    open_ones = [one for one in mine if one.outcome == "undecided" and one.test in needed]
    if open_ones:
        return Admission(metric, domain, False, f"undecided on “{TESTS[open_ones[0].test]}” ({open_ones[0].lab}: "
                                                f"{open_ones[0].words}); more inputs may decide")
    missing = [test for test in needed if not any(one.test == test for one in mine)]
    if missing:
        return Admission(metric, domain, False, f"was not put to “{TESTS[missing[0]]}”")
    unsure = sorted({one.test for one in mine if one.outcome == "undecided" and one.test not in TOLD}, key=list(TESTS).index)
    why = "failed no test" + (f"; undecided: {', '.join(unsure)}" if unsure else "")
    if about.of_change and outcome_of([one for one in mine if one.test in TOLD]) != "passed":
        why += "; it tells who finds what turned the label, and not who explains the score"
    return Admission(metric, domain, True, why)


def outcome_of(some: Sequence[Found]) -> Outcome | None:
    """Of several labs and numbers: one failure fails, and all must pass."""
    outcomes = {one.outcome for one in some}
    return None if not outcomes else "failed" if "failed" in outcomes else "passed" if outcomes == {"passed"} else "undecided"


def told(store: Store, abouts: Mapping[str, About] | None = None) -> dict[str, Any]:
    """Every number and sentence of a run, as plain data."""
    records = list(store.records())
    labs = store.manifest["about"]["labs"]
    asked = abouts or {name: _read(one) for name, one in store.manifest["about"]["metrics"].items()}
    found = findings(records, asked)
    domains = [domain for domain in DOMAINS if any(lab["domain"] == domain for lab in labs.values())]
    admitted = [one for domain in domains for one in admissions(found, domain, labs, asked)]
    return {"experiment": "metrics", "question": "Before a metric judges explainers: does it find the truth where the truth is "
            "known, and is it led by nothing else?", "answer": list(_answers(admitted, asked, domains)), "charts": [],
            "tables": [*(_overview(domain, found, admitted, asked, labs) for domain in domains), *_details(found, labs, asked)],
            "matrices": [_matrix(domain, found, admitted, labs) for domain in domains], "asked": TESTS,
            "details": _details(found, labs, asked),
            "notes": [*store.problems, *_notes()], **common(store, records),
            "settings": {"inputs a lab": store.manifest["spec"]["cases"], "labs": ", ".join(labs),
                         "seed": store.manifest["seed"]},
            "admitted": [one.__dict__ for one in admitted], "tests": [one.to_json() for one in found]}


def _read(written: Mapping[str, Any]) -> About:
    """What a metric said of itself when the run was made."""
    plain: dict[str, Any] = {key: tuple(value) if isinstance(value, list) else value for key, value in written.items()}
    return About(**plain)


def _answers(admitted: Sequence[Admission], abouts: Mapping[str, About], domains: Sequence[str]) -> Any:
    for domain in domains:
        here = [one for one in admitted if one.domain == domain]
        may = [one.metric for one in here if one.admitted]
        yield (f"{DOMAINS[domain]}: {len(may)} of {len(here)} metrics may crown a winner"
               + (f" ({', '.join(may)})." if may else "."))
    caught = [one for one in admitted if not one.admitted and abouts[one.metric].kind == "alignment"]
    if caught:
        names = ", ".join(dict.fromkeys(one.metric for one in caught))
        yield (f"Metrics that hold explanations against annotations or expectations ({names}) tell how plausible an "
               "explanation is; where a model has reasons that nobody expects they prefer the explanation that hides them.")
    trials = [one.name for one in abouts.values() if one.of_change]
    if trials:
        yield (f"The adversarial trials ({', '.join(trials)}) are held against a truth of their own, what turned the label; "
               "“asked” says whether they tell as well who explains the score.")


def _overview(domain: str, found: Sequence[Found], admitted: Sequence[Admission], abouts: Mapping[str, About],
              labs: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    here = [one for one in found if labs[one.lab]["domain"] == domain]
    rows = []
    for name in dict.fromkeys(one.metric for one in here):
        cells = []
        for test in TESTS:
            some = [one for one in here if one.metric == name and one.test == test]
            outcome = outcome_of(some)
            cells.append("–" if outcome is None else _cell(outcome, some))
        verdict = next(one for one in admitted if one.metric == name and one.domain == domain)
        rows.append([name, "yes" if verdict.admitted else "no", *cells])
    return {"title": f"{DOMAINS[domain]}: which metrics pass which tests", "columns": ["metric", "may crown a winner", *TESTS],
            "rows": rows, "about": "A metric passes where it passes in every lab of the domain, and fails where it fails in "
            f"one; a dash is a test that it cannot be put to. {'; '.join(f'{name}: {what}' for name, what in TESTS.items())}."}


def _matrix(domain: str, found: Sequence[Found], admitted: Sequence[Admission],
            labs: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """The same as plain data for a page: every cell with what was found there."""
    here = [one for one in found if labs[one.lab]["domain"] == domain]
    rows = []
    for verdict in (one for one in admitted if one.domain == domain):
        cells: list[dict[str, Any] | None] = []
        for test in TESTS:
            some = [one for one in here if one.metric == verdict.metric and one.test == test]
            outcome = outcome_of(some)
            same = [one for one in some if one.outcome == outcome]
            cells.append(None if outcome is None else {"outcome": outcome, "labs": len({one.lab for one in same}), "of": len({
                one.lab for one in some}), "words": "; ".join(f"{one.lab}: {one.words}" for one in same[:4])})
        rows.append({"metric": verdict.metric, "admitted": verdict.admitted, "why": verdict.why, "cells": cells})
    return {"domain": domain, "title": f"{DOMAINS[domain]}: which metrics pass which tests", "tests": list(TESTS), "rows": rows}


def _details(found: Sequence[Found], labs: Mapping[str, Mapping[str, Any]],
             abouts: Mapping[str, About]) -> list[dict[str, Any]]:
    """Tables that go with every domain."""
    return [_failures(found), _kinds(abouts), _labs(labs)]


def _labs(labs: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    rows = [[name, DOMAINS[lab["domain"]].lower(), lab["about"], "what people expect" if lab["expected"] else "something else"]
            for name, lab in labs.items()]
    return {"title": "The labs", "columns": ["lab", "inputs", "what the model goes by", "which is"], "rows": rows, "about": ""}


def _cell(outcome: Outcome, some: Sequence[Found]) -> str:
    if outcome == "passed":
        return SIGNS[outcome]
    labs = list(dict.fromkeys(one.lab.partition("/")[2] for one in some if one.outcome == outcome))
    of = len({one.lab for one in some})
    return f"{SIGNS[outcome]} in {len(labs)} of {of}" if of > 1 else SIGNS[outcome]


def _failures(found: Sequence[Found]) -> dict[str, Any]:
    failed = sorted((one for one in found if one.outcome == "failed"), key=lambda one: one.metric)
    rows = [[one.metric, one.test, one.lab, one.words] for one in failed]
    return {"title": "What each failure was", "columns": ["metric", "test", "lab", "what was found"], "rows": rows, "about": ""}


def _kinds(abouts: Mapping[str, About]) -> dict[str, Any]:
    rows = [[one.name, one.words, "larger" if one.higher else "smaller", one.kind, one.aspect, ", ".join(one.goals), one.paper]
            for one in abouts.values()]
    return {"title": "What each metric is", "columns": ["metric", "what it says", "better is", "kind", "speaks of", "judges",
                                                        "from"],
            "rows": rows, "about": "Performance metrics hold an explanation against the model, alignment metrics against "
            "something that knows nothing of the model (after Wang & Wang 2022)."}


def _notes() -> list[str]:
    return ["A metric that failed nothing here has not been caught, and no more: the lab's models are small, and known.",
            "Metrics that hide parts are right about additive models by construction. How they fare with nets, where parts are "
            "seen together, is another question: isolation is put to nets, too, where torch is installed."]
