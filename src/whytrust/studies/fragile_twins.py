"""Does a more robust model have more robust explanations? A model and its adversarially trained twin, text by text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from whytrust import stats
from whytrust.studies.fragile_findings import GRAIN, number
from whytrust.studies.fragile_tables import OBJECTIVES, Run, difference, points
from whytrust.studies.trust_findings import p_words
from whytrust.swapping.search import RANDOM

TWIN = "-adv"
CALLS = {"same": "no difference within .05", "undecided": "undecided"}
ANSWERS = {"more": "yes", "less": "no, less", "same": "no, alike", "undecided": "undecided"}
Levels = dict[tuple[str, int], tuple[float, float]]


@dataclass(frozen=True)
class Twins:
    """Two runs of one data set and explainer: a model's and its twin's."""

    plain: Run
    twin: Run

    def compared(self) -> list[dict[str, Any]]:
        """A row for each way of choosing: how far explanations of both agree, and what is left of the difference above chance.

        Only texts with so many words swapped count that both have. Positive differences speak for the twin.
        """
        found = []
        for name in (*OBJECTIVES, RANDOM):
            ours, theirs = (_levels(run, name) for run in (self.plain, self.twin))
            both = [key for key in ours if key in theirs]
            pair = [[levels[key] for key in both] for levels in (ours, theirs)]
            texts = [text for text, _ in both]
            row: dict[str, Any] = {"objective": name, "texts": len(set(texts)), "levels": len(both)}
            for who, some in zip(("plain", "twin"), pair, strict=True):
                row[who] = asdict(stats.rate([value for value, _ in some], texts, grain=GRAIN))
            plain, twin = ([value for value, _ in some] for some in pair)
            row["difference"] = _tested(difference(twin, plain, texts, 1))
            plain, twin = ([value - chance for value, chance in some] for some in pair)
            row["above_chance"] = None if name == RANDOM else _tested(difference(twin, plain, texts, 2))
            found.append(row)
        tests = [row[what] for row in found for what in ("difference", "above_chance") if row[what] is not None]
        for test, p, q in zip(tests, stats.holm([one["p"] for one in tests]), stats.holm([one.pop("same") for one in tests]),
                              strict=True):
            test |= {"p": float(p), "call": _call(test, float(p), float(q))}
        return found


def twins(runs: Sequence[Run]) -> Iterator[Twins]:
    """Every run whose model has a twin that was run as well, with the same explainer and the same settings."""
    by_place = {(run.dataset, run.model, run.explainer): run for run in runs}
    for run in runs:
        twin = by_place.get((run.dataset, f"{run.model}{TWIN}", run.explainer))
        if twin is not None and run.done and twin.done and run.manifest["spec"] == twin.manifest["spec"]:
            yield Twins(run, twin)


def _levels(run: Run, name: str) -> Levels:
    """By text and number of words swapped: agreement, and that of random swaps; the same text again counts in the mean."""
    found: dict[tuple[str, int], list[tuple[float, float]]] = {}
    for one in points(run.done, name, "rank"):
        found.setdefault((one.text, one.m), []).append((one.value, one.chance))
    return {key: (float(np.mean([v for v, _ in some])), float(np.mean([c for _, c in some]))) for key, some in found.items()}


def _tested(one: stats.Difference) -> dict[str, Any]:
    kept = {what: getattr(one, what) for what in ("value", "low", "high", "n", "sources", "p")}
    return {**kept, "same": stats.equivalent(one)}


def _call(test: dict[str, Any], p: float, same: float) -> str:
    if test["n"] and p <= stats.LEVEL:
        return "more" if test["value"] > 0 else "less"
    return "same" if test["n"] and same <= stats.LEVEL else "undecided"


# --- words --------------------------------------------------------------------------------------------------------------


def reach(one: dict[str, Any] | None) -> str:
    """A difference with its interval and what it is called."""
    if one is None or not one["n"]:
        return "–"
    return f"{_reach(one)}, {p_words(one['p']) if one['call'] in ('more', 'less') else CALLS[one['call']]}"


def table(pair: Twins, where: str, chosen: dict[str, str]) -> dict[str, Any]:
    """Both models side by side."""
    rows = [[chosen[row["objective"]], row["texts"], *(number(row[who]["value"]) for who in ("plain", "twin")),
             reach(row["difference"]), reach(row["above_chance"])] for row in pair.compared()]
    return {"title": f"{where}: does the more robust model have more robust explanations?",
            "columns": ["chosen by", "texts", pair.plain.model, pair.twin.model, "twin − plain", "… above chance"],
            "rows": rows,
            "about": "Rank correlation, clipped at 0, of texts and numbers of words swapped that both have, paired; above 0 "
                     "the twin's explanations change less. Each model is attacked for itself, so their swaps differ. Above "
                     "chance is what is left when each is held against random swaps of its own. p after Holm's correction."}


def said(pair: Twins, where: str, chosen: dict[str, str]) -> str:
    """The answer in a sentence: what each objective says, and what is left of it above chance."""
    rows = [row for row in pair.compared() if row["objective"] != RANDOM and row["difference"]["n"]]
    if not rows:
        return f"{where}: {pair.plain.model} and its twin have no levels in common."
    told = "; ".join(f"by {chosen[row['objective']]} {ANSWERS[row['difference']['call']]}, {_reach(row['difference'])}, above "
                     f"chance {ANSWERS[row['above_chance']['call']]}, {_reach(row['above_chance'])}" for row in rows)
    return (f"{where}: does {pair.twin.model}, {pair.plain.model} trained against swaps that flip the label, have more robust "
            f"explanations? On {max(row['texts'] for row in rows)} texts, by the rank correlation that is left: {told}.")


def _reach(one: dict[str, Any]) -> str:
    return f"{number(one['value'], True)} ({number(one['low'], True)} to {number(one['high'], True)})"
