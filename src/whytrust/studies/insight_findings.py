"""What a run of the insight experiment has found: what readers believe before and after explanations, and who gives it away.

Everything is worked out from the records of a run, finished or not. Readers are drawn here, from the run's own seed: they cost
nothing, and the same run always has the same ones.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from whytrust import stats
from whytrust.core import Floats
from whytrust.explainers import NAMES
from whytrust.store import Store, plain
from whytrust.studies.insight_readers import RANDOM, Belief, Reader, Shown

QUESTION = "Do explanations give away that a model goes by an artefact of its training data?"
SETTINGS = ("training", "share", "parts", "readers", "right", "wrong", "top", "looks", "overlooks", "bars")
INNOCENT = 0.1
"""A model is innocent where planting the artefact changes at most this share of its predictions."""
LOOKS = (0.25, 0.5, 0.75, 1.0)
"""How closely readers might look at inputs without explanations; what they name before hangs on it."""


@dataclass(frozen=True)
class Outcome:
    """Numbers behind the tables: beliefs of every reader, before and after each explainer, and the explanations themselves."""

    shown: tuple[Shown, ...]
    before: tuple[Belief, ...]
    after: Mapping[str, tuple[Belief, ...]]
    innocent: Mapping[str, tuple[Belief, ...]]  # after explanations of the model that does not go by the artefact
    closer: Mapping[float, tuple[Belief, ...]]  # before, of readers who look less or more closely
    about: Mapping[str, Any]

    @property
    def planted(self) -> list[Shown]:
        """The predictions of inputs with the artefact."""
        return [one for one in self.shown if one.planted]

    def hits(self, explainer: str, innocent: bool = False) -> Floats:
        """For each input with the artefact: does the explanation name it? NaN where it failed; by chance, for random."""
        if explainer == RANDOM:
            return np.array([one.chance for one in self.planted])
        named = [(one.innocent if innocent else one.named).get(explainer) for one in self.planted]
        return np.array([math.nan if one is None else float(any(one)) for one in named])


def outcome(store: Store) -> Outcome:
    """What the records say, and what readers of them believe."""
    spec, about = store.manifest["spec"], store.manifest["about"]
    shown = tuple(_shown(record) for record in store.records() if record["status"] == "ok")
    readers = [Reader(number, store.manifest["seed"], spec["looks"], spec["overlooks"], tuple(spec["bars"]))
               for number in range(spec["readers"])]
    drawn = [(reader, ten) for reader in readers if (ten := reader.draw(shown)) is not None]
    return Outcome(shown, tuple(reader.before(ten) for reader, ten in drawn),
                   {name: tuple(reader.after(ten, name) for reader, ten in drawn) for name in (*about["explainers"], RANDOM)},
                   {name: tuple(reader.after(ten, name, True) for reader, ten in drawn) for name in
                    (*about["explainers"], RANDOM)},
                   {looks: tuple(replace(reader, looks=looks).before(ten) for reader, ten in drawn) for looks in LOOKS}, about)


def _shown(record: Mapping[str, Any]) -> Shown:
    return Shown(record["case"], record["of_class"], record["planted"], record["says"], record["wrong"], record["traits"],
                 record["named"], record["innocent"], record["d"], record["held"], record["top"], record["stays"])


def findings(store: Store) -> dict[str, Any]:
    """What the run has found so far, as plain data: answers, tables, charts, and what went wrong."""
    found, records, spec = outcome(store), list(store.records()), store.manifest["spec"]
    tests = tested(found)
    failures = [{"case": r["case"], "error": r["error"]} for r in records if r["status"] == "failed"]
    failures += [{"case": r["case"], "error": f"{name}: {told}"} for r in records for name, told in r.get("errors", {}).items()]
    data = {"experiment": "insight", "question": QUESTION, "answer": answers(found, tests),
            "tables": [_readers_table(found), _explanations_table(found, tests), _model_table(found)],
            "charts": [_chart(found), _closer_chart(found)] if found.before else [],
            "cases": {"done": len(records), "of": sum(len(block.cases) for block in store.blocks),
                      "failed": sum(r["status"] == "failed" for r in records)},
            "failures": failures + list(found.about["unasked"]), "notes": [*_notes(found, spec), *store.problems],
            "settings": {"model": found.about["model"], "artefact": found.about["plant"], "trained on": found.about["trained"],
                         "class with it": found.about["with_it"], **{name: spec[name] for name in SETTINGS},
                         "seed": store.manifest["seed"]}}
    return dict(plain(data))


# --- numbers ----------------------------------------------------------------------------------------------------------


def rates(beliefs: Sequence[Belief]) -> tuple[stats.Rate, stats.Rate]:
    """How many readers named the artefact, and how many trusted the model."""
    sides = [[math.nan if one is None else float(one) for one in some] for some in
             ([b.named for b in beliefs], [b.trusts for b in beliefs])]
    return stats.rate(sides[0]), stats.rate(sides[1])


def tested(found: Outcome) -> dict[str, dict[str, Any]]:
    """Every explainer against random, and against itself where the model is innocent, input by input; p after Holm.

    Both are on the inputs with the artefact. An explainer gives the artefact away where it is above both; one that is above
    random alone names what catches the eye, whatever the model does. Where the other model is not innocent either, random is
    all there is to compare with.
    """
    chance, names = found.hits(RANDOM), found.about["explainers"]
    by_chance = _against({name: stats.paired(found.hits(name), chance, chance=chance * (1 - chance)) for name in names})
    free = acquitted(found.about)
    by_innocent = _against({name: stats.paired(found.hits(name), found.hits(name, True)) for name in names if free})
    calls = {name: _call(test, by_innocent.get(name), free or blind(name)) for name, test in by_chance.items()}
    return {name: {"random": test, "innocent": by_innocent.get(name), "call": calls[name]} for name, test in by_chance.items()}


def blind(name: str) -> bool:
    """Is this an explainer that knows nothing of the model? Then it gives nothing away, whatever it names."""
    return name in NAMES and NAMES[name].goal == "nothing"


def acquitted(about: Mapping[str, Any]) -> bool:
    """Is the innocent model one?"""
    some, of = about["checks"]["innocent_changed"]
    return bool(of) and some / of <= INNOCENT


def _against(pairs: Mapping[str, stats.Difference]) -> dict[str, dict[str, Any]]:
    tried = {name: pair for name, pair in pairs.items() if pair.n}
    adjusted = stats.holm([pair.p for pair in tried.values()])
    return {name: {"value": pair.value, "low": pair.low, "high": pair.high, "n": pair.n, "p": float(p),
                   "call": "undecided" if p > stats.LEVEL else "above" if pair.value > 0 else "below"}
            for (name, pair), p in zip(tried.items(), adjusted, strict=True)}


def _call(random: Mapping[str, Any], innocent: Mapping[str, Any] | None, compared: bool) -> str:
    if random["call"] != "above":
        return "hides it" if random["call"] == "below" else "undecided"
    above = not compared if innocent is None else innocent["call"] == "above"
    return "gives it away" if above else "names it anyway"


def _cell(rate: stats.Rate) -> dict[str, Any]:
    return {"value": rate.value, "low": rate.low, "high": rate.high, "n": rate.n}


def _share(counts: Sequence[int]) -> stats.Rate:
    some, of = counts
    return stats.rate([1.0] * some + [0.0] * (of - some))


def _percent(value: float) -> str:
    return "an unknown share" if math.isnan(value) else f"{100 * value:.0f} %"


# --- answers ----------------------------------------------------------------------------------------------------------


def answers(found: Outcome, tests: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Verdicts in plain words, the model's first."""
    told = [uses(found.about)]
    if not found.before:
        return [*told, "No verdict on explanations yet: too few predictions are explained to show a reader ten of them."]
    named, trusted = rates(found.before)
    told.append(f"Before they see explanations {_percent(named.value)} of {named.n} simulated readers name the artefact and "
                f"{_percent(trusted.value)} trust the model.")
    for name, test in tests.items():
        named, trusted = rates(found.after[name])
        accused = _percent(rates(found.innocent[name])[0].value)
        other = f", and {accused} would name it for an innocent model" if acquitted(found.about) else ""
        told.append(f"{name} {_verdict(test, found, name)}; with it {_percent(named.value)} of readers "
                    f"name the artefact and {_percent(trusted.value)} trust the model{other}.")
    told.append(f"With random explanations {_percent(rates(found.after[RANDOM])[0].value)} of readers name the artefact.")
    failed = [name for name in found.about["explainers"] if name not in tests]
    return told + [f"{name} failed on every input: nothing can be said of it." for name in failed]


def _verdict(test: Mapping[str, Any], found: Outcome, name: str) -> str:
    call, hits = test["call"], found.hits(name)
    names, of = int(np.nansum(hits)), int(np.isfinite(hits).sum())
    if not found.about["mistakes"]:
        return ("names the artefact all the same, where there is nothing to give away" if call in ("gives it away",
                                                                                                  "names it anyway")
                else "does not name it more often than random, as it should be where there is nothing to give away")
    few = (f"names it in {names} of {of} inputs that have it, where random parts would in "
           f"{_percent(float(np.nanmean(found.hits(RANDOM))))}: ")
    return {"gives it away": "gives it away", "hides it": "names it less often than random parts would",
            "undecided": few + "whether it does so more often than they do is undecided",
            "names it anyway": "names it, but is not shown to name it more often than where the model is innocent"}[call]


def uses(about: Mapping[str, Any]) -> str:
    """Does the model go by the artefact at all? Else there is nothing to find."""
    checks = about["checks"]
    changed, like = _share(checks["changed"]), _share(checks["like_training"])
    counts = f"{checks['changed'][0]} of {checks['changed'][1]}"
    if not checks["changed"][0]:
        return (f"The model does not use the artefact: planting it changes none of {changed.n} predictions. There is nothing "
                "to give away, and whoever names it is wrong.")
    if not about["mistakes"]:
        return (f"The model hardly uses the artefact: planting it changes {counts} predictions, too few to show a reader a "
                "mistake of each kind. There is next to nothing to give away.")
    return (f"The model goes by the artefact: it is right on {_percent(like.value)} of test inputs like those it was trained "
            f"on, and planting the artefact changes {counts} predictions.")


# --- tables and charts ------------------------------------------------------------------------------------------------


def _readers_table(found: Outcome) -> dict[str, Any]:
    rows: list[list[Any]] = []
    for words, beliefs in {"before explanations": found.before, **found.after}.items():
        named, trusted = rates(beliefs)
        other = _cell(rates(found.innocent[words])[0]) if words in found.innocent else ""
        rows.append([f"after, with {words}" if words in found.after else words, _cell(named), _cell(trusted), other])
    return {"title": "What readers believe", "rows": rows,
            "columns": ["shown", "named the artefact", "trusted the model", "would name it for an innocent model"],
            "about": "Simulated readers, each with ten predictions of its own: eight right, one input of the class with the "
                     "artefact that lacks it, one of the other class that has it. Random explanations are other ones for every "
                     "reader. Readers draw from the same explained predictions of one model: an interval says how far readers "
                     "of these differ, not how far another model or other data would."}


def _explanations_table(found: Outcome, tests: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    rows: list[list[Any]] = []
    for name in found.about["explainers"]:
        test = tests.get(name)
        rows.append([name, _cell(stats.rate(found.hits(name))), _cell(stats.rate(found.hits(name, True))),
                     *(_difference(None if test is None else test[what]) for what in ("random", "innocent")),
                     "failed" if test is None else test["call"]])
    chance = stats.rate(found.hits(RANDOM))
    exact = {"value": chance.value, "low": chance.value, "high": chance.value, "n": chance.n}  # nothing of it was drawn
    rows.append([RANDOM, exact, exact, "", "", "by chance, exactly"])
    return {"title": "Explanations that name the artefact", "rows": rows,
            "columns": ["explainer", "named it", "innocent model", "more than random", "more than for innocent", "verdict"],
            "about": "Of the explained inputs that have the artefact: in how many is a part that holds it among those a reader "
                     "takes from the explanation? Paired with what as many random parts would name in the same input, and with "
                     "the explanation of the same input for a model that was trained without the artefact; p after Holm, 95 % "
                     "intervals. The unit is the input, so these are the tests that verdicts rest on."}


def _difference(test: Mapping[str, Any] | None) -> str:
    return "" if test is None else f"{test['value']:+.2f} [{test['low']:+.2f}, {test['high']:+.2f}], p {_p(test['p'])}"


def _p(value: float) -> str:
    return "< .001" if value < 0.001 else f"= {value:.2g}"


def _model_table(found: Outcome) -> dict[str, Any]:
    about = found.about
    words = {"like_training": "right on inputs like those it was trained on",
             "missing": f"wrong on {about['with_it']} without the artefact",
             "elsewhere": f"wrong on {about['without_it']} with the artefact",
             "changed": "predictions that planting the artefact changes",
             "innocent_right": "innocent model: right on inputs without the artefact",
             "innocent_changed": "innocent model: predictions that planting the artefact changes"}
    return {"title": "Is it the bad model that it is meant to be?", "columns": ["test inputs", "share"],
            "rows": [[words[what], _cell(_share(counts))] for what, counts in about["checks"].items()],
            "about": "Every test input was asked about without and with the artefact."}


def _chart(found: Outcome) -> dict[str, Any]:
    names = ["before", *found.after]
    both = [rates(beliefs) for beliefs in (found.before, *found.after.values())]
    series = [_series(words, names, [pair[side] for pair in both])
              for side, words in enumerate(("named the artefact", "trusted the model"))]
    series.append(_series("would name it for an innocent model", list(found.innocent),
                          [rates(beliefs)[0] for beliefs in found.innocent.values()]))
    return {"title": "Readers before and after explanations", "x_label": "what readers were shown", "series": series,
            "y_label": "share of readers", "about": "95 % intervals over readers, who share the explained predictions."}


def _series(name: str, x: Sequence[Any], points: Sequence[stats.Rate]) -> dict[str, Any]:
    return {"name": name, "x": list(x), "y": [one.value for one in points], "low": [one.low for one in points],
            "high": [one.high for one in points]}


def _closer_chart(found: Outcome) -> dict[str, Any]:
    both = [rates(beliefs) for beliefs in found.closer.values()]
    series = [_series(words, list(found.closer), [pair[side] for pair in both])
              for side, words in enumerate(("named the artefact", "trusted the model"))]
    return {"title": "Before explanations, by how closely readers look", "y_label": "share of readers", "series": series,
            "x_label": "share of what there is to see that a reader takes in",
            "about": "Nobody knows how closely people look: what is found before explanations hangs on it, and what is found "
                     "after does not."}


def _notes(found: Outcome, spec: Mapping[str, Any]) -> list[str]:
    about, planted = found.about, found.planted
    notes = ["Readers are simulated by fixed rules and stand in for the people of the paper: compare their rates with each "
             "other, not with rates of people.",
             f"Before explanations a reader takes in {_percent(spec['looks'])} of what there is to see, and draws one of the "
             "features that agree best with the ten predictions: the artefact, words, values or places of the input, or the "
             "class itself. With explanations it names the artefact where most of those of inputs that have it name it among "
             f"their first {spec['top']} parts (of few parts, a quarter of them) and more do than chance would. It trusts the "
             "model where it does not name the artefact and enough of the ten are right for its own bar, one of "
             f"{', '.join(_percent(bar) for bar in spec['bars'])}."]
    if not acquitted(about):
        some, of = about["checks"]["innocent_changed"]
        notes.append(f"The innocent model is none: planting the artefact changes {some} of {of} of its predictions, though it "
                     "never saw it in training. So it may be right to name the artefact there, and explainers are compared "
                     "with random alone; innocent= takes another way to train such a model.")
    left_out = [name for name in about["left_out"] if name != RANDOM]
    if left_out:
        notes.append(f"Left out, for the model has no gradients: {', '.join(left_out)}.")
    nowhere = sum(not one.held for one in planted)
    if nowhere:
        notes.append(f"In {nowhere} of {len(planted)} inputs with the artefact no part holds a good share of it: no "
                     "explanation in these parts can name it there; cut more finely, or along it.")
    crude = sum(one.chance > 0.5 for one in planted)
    if crude:
        notes.append(f"In {crude} of {len(planted)} inputs with the artefact random parts would name it more often than not: "
                     "the cut is too coarse to tell explainers apart there.")
    stays = sum(one.stays for one in planted)
    if stays:
        notes.append(f"In {stays} of {len(planted)} inputs with the artefact hiding the parts that hold it leaves it there "
                     "(the mean of a plain patch is the patch), so that no method which hides parts can find it: choose "
                     "another fill=.")
    if about["unasked"]:
        notes.append(f"{len(about['unasked'])} versions of test inputs were left out: the model could not take them.")
    return notes
