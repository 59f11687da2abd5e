"""What a run of the faithfulness experiment has found: the recall of each explainer, beside random's and the best there can be.

Everything is worked out from the records of a run, finished or not.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from whytrust import stats, verdicts
from whytrust.core import Floats
from whytrust.store import Store, plain
from whytrust.studies.insight_findings import blind
from whytrust.studies.trust_findings import common, p_words

QUESTION = "Do explanations name the features that a model really uses, where it is known which these are?"
RANDOM = "random"
Record = Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class Found:
    """What is known of one readable model: its inputs with something to find, and how many had nothing."""

    model: str
    records: tuple[Record, ...]
    empty: int

    @property
    def sources(self) -> list[str]:
        """Which inputs are no news of each other."""
        return [r["source"] for r in self.records]

    @property
    def grain(self) -> float:
        """The least that one input can show."""
        return float(np.mean([1 / len(r["used"]) for r in self.records])) if self.records else 1.0

    def recall(self, explainer: str, first: int | None = None, of: str = "used") -> Floats:
        """For each input, the share of used parts (or of those that matter) among the (first) parts that are named.

        NaN where the explainer failed, or where there is nothing of the kind.
        """
        return np.array([math.nan if explainer not in r["named"] or not r[of] else
                         len(set(r["named"][explainer][:first]) & set(r[of])) / len(r[of]) for r in self.records])

    def expected(self, first: int | None = None) -> Floats:
        """Random's recall, exactly."""
        return np.array([min(r["most"], first or r["most"]) / r["d"] for r in self.records])

    @property
    def chance(self) -> Floats:
        """The variance of random's recall: so many draws without replacement of d parts, some of which matter."""
        rows = [(r["d"], max(len(r["matter"]), 1), r["most"]) for r in self.records]
        return np.array([k / u * (1 / d) * (d - u) / d * (d - k) / max(d - 1, 1) for d, u, k in rows])

    @property
    def ceiling(self) -> Floats:
        """The most that can be found by hiding parts: those that matter, as many as may be named."""
        return np.array([min(r["most"], len(r["matter"])) / len(r["used"]) for r in self.records])

    def rate(self, values: Floats) -> stats.Rate:
        """A mean over inputs with its interval."""
        return stats.rate(values, self.sources, grain=self.grain)

    def against_random(self, explainer: str) -> stats.Difference:
        """Input by input, of what matters: a part that changes nothing whatever is hidden can only be named by chance.

        An explainer that names only what it finds would else be worse than one that names as many parts as it may.
        """
        mattering = self.recall(explainer, of="matter")
        least = [1 / len(r["matter"]) for r in self.records if r["matter"]]
        return stats.paired(mattering, self.expected(), self.sources, grain=float(np.mean(least)) if least else 1.0,
                            chance=self.chance)


def found(store: Store) -> list[Found]:
    """What the records say of each readable model."""
    records = [r for r in store.records() if r["status"] == "ok"]
    return [Found(model, tuple(r for r in records if r["model"] == model and r["used"]),
                  sum(r["model"] == model and not r["used"] for r in records)) for model in store.manifest["spec"]["models"]]


def findings(store: Store) -> dict[str, Any]:
    """What the run has found so far, as plain data: answers, tables, charts, and what went wrong."""
    spec, about, records = store.manifest["spec"], store.manifest["about"], list(store.records())
    models, names = found(store), list(spec["explainers"])
    compared = {one.model: verdicts.Compared({name: test for name in names if name not in about["left_out"][one.model]
                                              and (test := one.against_random(name)).n}) for one in models}
    called, adjusted = verdicts.table(compared), verdicts.adjusted(compared)
    shared = common(store, records)
    data = {"experiment": "faithfulness", "question": QUESTION, "answer": answers(models, names, called, about), **shared,
            "tables": [*(_recalls(one, names, compared[one.model], adjusted[one.model], called[one.model], about)
                         for one in models), _models(models, about)],
            "charts": [chart for one in models if one.records for chart in (_bars(one, names), _curves(one, names))],
            "failures": [*shared["failures"], *about["unasked"]], "notes": [*_notes(models, about, spec), *store.problems],
            "settings": {"model": about["model"], "inputs": about["inputs"], "parts": spec["parts"] or "as usual",
                         "parts named, at most": spec["features"], "readable models": ", ".join(spec["models"]),
                         "seed": store.manifest["seed"]}}
    return dict(plain(data))


# --- words ----------------------------------------------------------------------------------------------------------------


def answers(models: Sequence[Found], names: Sequence[str], called: Mapping[str, Mapping[str, verdicts.Verdict]],
            about: Mapping[str, Any]) -> list[str]:
    """One sentence an explainer: what it finds in each model, and what may be said of it."""
    if not any(one.records for one in models):
        return ["Nothing can be said: no explained input had a feature that its model uses." if any(one.empty for one in models)
                else "Nothing can be said yet: no input is explained."]
    told = []
    for name in names:
        finds, words = [], {}
        for one in models:
            if name in called[one.model]:
                value, mattering = (float(np.nanmean(one.recall(name, of=of))) for of in ("used", "matter"))
                words[one.model] = called[one.model][name]
                only = "" if _whole(one) else f", {_percent(mattering)} of what can matter there"
                finds.append(f"{_percent(value)} of what {_the(one.model)} uses{only} (random parts "
                             f"{_percent(float(one.expected().mean()))})")
        if finds:
            called_ = verdicts.overall(words)
            never = " though it never asks the model, so that it takes little here" if blind(name) and called_.kind.startswith(
                "better") else ""
            told.append(f"{name} names {' and '.join(finds)}: {called_.words}{never}.")
        elif all(name in about["left_out"][one.model] for one in models):
            told.append(f"{name} was left out: {next(iter(about['left_out'].values()))[name]}.")
        else:
            told.append(f"{name} failed on every input: nothing can be said of it.")
    return told


def _the(model: str) -> str:
    return model if model.startswith("the ") else f"the {model}"


def _whole(one: Found) -> bool:
    """Can everything be found?"""
    return float(one.ceiling.mean()) >= 1 - 1e-9


def _percent(value: float) -> str:
    return f"{100 * value:.0f} %"


def _notes(models: Sequence[Found], about: Mapping[str, Any], spec: Mapping[str, Any]) -> list[str]:
    notes = list(about["notes"])
    for one in models:
        if one.empty:
            notes.append(f"{one.empty} inputs were left out for {_the(one.model)}: it uses nothing that stands in them.")
        if one.records and not _whole(one):
            notes.append(f"Of what {_the(one.model)} uses, {_percent(float(one.ceiling.mean()))} can be found at best: the "
                         "rest changes no score whatever is hidden, or is more than an explanation may name. No method that "
                         "hides parts can be blamed for that, so verdicts rest on what matters; a recall above this names "
                         "parts that matter to nobody, by chance.")
        if one.records and one.expected().mean() > 0.3:
            notes.append(f"Random parts name {_percent(float(one.expected().mean()))} of what {_the(one.model)} uses: inputs "
                         "of so few parts hardly tell explainers apart; cut finer.")
        if len(one.records) > 1 and len({tuple(r["used"]) for r in one.records}) == 1 and one.records[0]["d"] > 1:
            notes.append(f"For every input {_the(one.model)} uses the same {len(one.records[0]['used'])} of "
                         f"{one.records[0]['d']} parts: an explainer that always names these would look faithful, and many "
                         "inputs say little more than a few.")
        told = {why: [n for n, w in about["left_out"][one.model].items() if w == why]
                for why in about["left_out"][one.model].values()}
        notes += [f"Left out for {_the(one.model)}: {', '.join(some)}; {why}." for why, some in told.items()]
    if about["unasked"]:
        notes.append(f"{len(about['unasked'])} inputs were left out: they could not be read, cut or asked about.")
    return [*notes, f"An explanation names its {spec['features']} largest parts at most, and no more than a quarter of the "
            "parts there are. Intervals and p-values are for other inputs like these; p-values share their 5 % (Holm)."]


# --- tables and charts ----------------------------------------------------------------------------------------------------


def _cell(rate: stats.Rate) -> dict[str, Any]:
    return {"value": rate.value, "low": rate.low, "high": rate.high, "n": rate.n}


def _exactly(values: Floats) -> dict[str, Any]:
    mean = float(values.mean()) if len(values) else math.nan
    return {"value": mean, "low": mean, "high": mean, "n": len(values)}


def _recalls(one: Found, names: Sequence[str], compared: verdicts.Compared, adjusted: verdicts.Adjusted,
             called: Mapping[str, verdicts.Verdict], about: Mapping[str, Any]) -> dict[str, Any]:
    rows: list[list[Any]] = []
    for name in sorted(compared.random, key=lambda n: -compared.random[n].value):
        test, cells = compared.random[name], [_cell(one.rate(one.recall(name, of=of))) for of in ("used", "matter")]
        points = f"{100 * test.value:+.1f} ({100 * test.low:+.1f} to {100 * test.high:+.1f})"
        rows.append([name, *cells, points, p_words(adjusted.guess[name]), called[name].words])
    left_out = about["left_out"][one.model]
    rows += [[name, "–", "–", "–", "–", "left out" if name in left_out else "failed"] for name in names
             if name not in compared.random]
    if one.records:
        drawn = [_cell(one.rate(one.recall(RANDOM, of=of))) for of in ("used", "matter")]
        rows += [[f"{RANDOM}, as drawn", *drawn, "–", "–", "a check on the next line"],
                 [f"{RANDOM}, exactly", _exactly(one.expected()), _exactly(one.expected()), "–", "–", "the floor"],
                 ["at best", _exactly(one.ceiling), "–", "–", "–", "the ceiling"]]
    return {"title": f"Recall on {_the(one.model)}", "rows": rows,
            "columns": ["explainer", "recall", "of what matters", "more than random, in points", "p (Holm)", "verdict"],
            "about": "The share of the parts that the model uses which are among those that an explanation names; the mean "
                     f"over {len(one.records)} inputs. What matters can change the score when parts are hidden; at best, all "
                     "of that is named and nothing else by chance. Tests against random are of what matters."}


def _models(models: Sequence[Found], about: Mapping[str, Any]) -> dict[str, Any]:
    rows: list[list[Any]] = []
    for one in models:
        agrees, right = about["agrees"].get(one.model), about["right"].get(one.model, about["right"].get("the model"))
        means = [float(np.mean([count(r) for r in one.records])) if one.records else math.nan for count in (
            lambda r: r["d"], lambda r: len(r["used"]), lambda r: len(r["matter"]))]
        rows.append([one.model, len(one.records), one.empty, *(f"{mean:.1f}" for mean in means),
                     "–" if agrees is None else _percent(agrees), "–" if right is None else _percent(right)])
    return {"title": "The readable models", "rows": rows,
            "columns": ["model", "inputs explained", "with nothing to find", "parts", "used", "of these matter",
                        "agrees with the model", "right, by the labels"],
            "about": "Means over the explained inputs. A part is used where it decides a feature with a coefficient, or one on "
                     "the input's way through the tree; it matters where hiding it can change the score. Agreement is on the "
                     "inputs that a stand-in was trained on."}


def _bars(one: Found, names: Sequence[str]) -> dict[str, Any]:
    rates = {name: one.rate(one.recall(name)) for name in names}
    known = sorted(((name, rate) for name, rate in rates.items() if rate.n), key=lambda pair: -pair[1].value)
    series = [{"name": name, "x": [0], "y": [rate.value], "low": [rate.low], "high": [rate.high]} for name, rate in known]
    for name, values in ((RANDOM, one.expected()), ("at best", one.ceiling)):
        mean = float(values.mean())
        series.append({"name": name, "x": [0], "y": [mean], "low": [mean], "high": [mean]})
    return {"title": f"Recall on {_the(one.model)}", "kind": "bars", "x_label": "", "y_label": "recall", "series": series,
            "about": "95 % intervals over inputs; random and the best there can be are exact."}


def _curves(one: Found, names: Sequence[str]) -> dict[str, Any]:
    most = max(r["most"] for r in one.records)
    firsts = list(range(1, most + 1))
    series = []
    for name in names:
        rates = [one.rate(one.recall(name, first)) for first in firsts]
        if rates[0].n:
            series.append({"name": name, "x": firsts, "y": [rate.value for rate in rates], "low": [rate.low for rate in rates],
                           "high": [rate.high for rate in rates]})
    flat = [float(one.expected(first).mean()) for first in firsts]
    series.append({"name": RANDOM, "x": firsts, "y": flat, "low": flat, "high": flat})
    return {"title": f"Recall on {_the(one.model)}, by how many parts are named", "x_label": "parts named", "y_label": "recall",
            "series": series, "about": "Inputs that have fewer parts to name stay where they are. 95 % intervals over inputs."}
