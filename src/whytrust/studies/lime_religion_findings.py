"""What was found of Figures 9 and 10 of Ribeiro et al. (2016) beside what they published, as tables, charts and sentences."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whytrust import stats
from whytrust.store import Store, plain
from whytrust.studies.lime_religion_readers import FLOOR, MODELS, NOISE, PICKS, Answers, Cell, Explained, Readers
from whytrust.studies.trust_repair_findings import PICK_WORDS, WORDS, arm_name, arms_of, findings, reference_of

PAPER = "Ribeiro, Singh and Guestrin (2016), “Why Should I Trust You?”: Explaining the Predictions of Any Classifier"
ACCURACY = {"original": {"test": 0.940, "world": 0.573}, "cleaned": {"test": 0.886, "world": 0.690}}
"""§ 6.2; the world is web pages there."""
CHOICES = {("greedy", "random"): 0.68, ("greedy", "submodular"): 0.75, ("lime", "random"): 0.80, ("lime", "submodular"): 0.89}
"""Figure 9: how often people chose the model that generalises."""
DELETED = {"submodular": {"deleted": 200, "half": 174, "all": 68}, "random": {"deleted": 157}}
"""§ 6.3: words that a path deletes, and those of them that at least half and all of the people chose."""
MORE = 4
"""Times as many readers where the levels of carelessness are compared: they cost nothing."""
Right = dict[Cell, NDArray[np.float64]]
Tests = dict[tuple[str, str], tuple[stats.Difference, float]]
"""Two cells, their difference and its p after Holm."""


# --- Figure 9 ---------------------------------------------------------------------------------------------------------


def choice(store: Store) -> dict[str, Any]:
    """Figure 9 from a run, in the form that all experiments on trust have."""
    spec, about, records = store.manifest["spec"], store.manifest["about"], list(store.records())
    models = next((r for r in records if r["case"] == "models" and r["status"] == "ok"), None)
    failed = [record for record in records if record["status"] == "failed"]
    found: dict[str, Any] = {
        "experiment": "fig9", "paper": PAPER,
        "question": "Do explanations tell readers which of two models generalises, where test accuracy would mislead them?",
        "answer": ["Nothing is finished yet."], "tables": [], "charts": [],
        "cases": {"done": len(records), "of": sum(len(block.cases) for block in store.blocks), "failed": len(failed)},
        "failures": [{"case": record["case"], "error": record["error"]} for record in failed],
        "notes": _choice_notes(spec, about), "settings": {**spec, "seed": store.manifest["seed"], "about": about}}
    shown = {name: Explained(name, {record["index"]: {model: record[model] for model in MODELS} for record in records if
                                    record["status"] == "ok" and record.get("explainer") == name})
             for name in (*spec["explainers"], FLOOR)}
    if models is not None and all(one.by_post for one in shown.values()):
        readers = Readers(MORE * spec["readers"], store.manifest["seed"], spec["documents"], spec["features"])
        each = {(name, how): readers(one, how) for name, one in shown.items() for how in PICKS}
        right = {cell: answers.right["careful"][:spec["readers"]] for cell, answers in each.items()}
        tests = _choice_tests(right)
        careless = _choice_tests({cell: answers.right["very careless"] for cell, answers in each.items()})
        found |= {"answer": _choice_answers(models, right, tests, careless), "charts": [_carelessness(each)],
                  "tables": [_accuracies(models), _choices(right), _careless(each), _on_foreign(each),
                             _tested(tests, "Differences between cells"),
                             _tested(careless, "The same for very careless readers")]}
    return dict(plain(found))


def _choice_notes(spec: Mapping[str, Any], about: Mapping[str, Any]) -> list[str]:
    return ["Simulated readers take the place of the people of the paper. They know which words stand mostly in headers, "
            "signatures, addresses and names of training posts; a careful one overlooks such a word with chance "
            f"{NOISE['careful'][0]:g} and mistrusts another with chance {NOISE['careful'][1]:g}.",
            f"{about['training']} posts to train on, {about['validation']} held out to explain ({about['unreadable']} more are "
            f"too short or too long to read), {about['test']} test posts; as the real world {about['world']} of them without "
            f"header, quotations, signature and names ({about['empty']} are empty then), for the paper's web pages are not to "
            "be had.",
            f"The cleaned model does not know the {about['cleaned']} words that stand mostly in the frame of posts and in ten "
            f"or more training posts; readers know all {about['foreign']}. That rule, and the bag of words, were chosen with "
            "these accuracies in view: that they come near the published ones is no evidence.",
            f"Each reader sees {spec['documents']} posts with {spec['features']} words each, for both models, picked from an "
            "own half of the held-out posts; the explained score is the machine's margin. Random explanations are others for "
            "every reader. Intervals are about other such readers of the same two models."]


def _choice_tests(right: Right) -> Tests:
    """Submodular over random picks, LIME over greedy, both over the floor; all share the 5 %."""
    pairs: dict[tuple[str, str], stats.Difference] = {}
    for name in dict.fromkeys(explainer for explainer, _ in right):
        pairs[arm_name(name, "submodular"), arm_name(name, "random")] = stats.paired(
            right[name, "submodular"], right[name, "random"])
    for first, second in (("lime", "greedy"), ("lime", FLOOR), ("greedy", FLOOR)):
        for how in PICKS:
            pairs[arm_name(first, how), arm_name(second, how)] = stats.paired(right[first, how], right[second, how])
    adjusted = stats.holm([pair.p for pair in pairs.values()])
    return {key: (pair, float(p)) for (key, pair), p in zip(pairs.items(), adjusted, strict=True)}


def _choice_answers(models: Mapping[str, Any], right: Right, tests: Tests, careless: Tests) -> list[str]:
    original, cleaned = (models[name] for name in MODELS)
    said = ["Test accuracy and accuracy in the real world do not disagree here as they do in the paper."]
    if original["test"] > cleaned["test"] and cleaned["world"] > original["world"]:
        said = [f"Test accuracy is higher for the original model ({_percent(original['test'])} against "
                f"{_percent(cleaned['test'])}), accuracy in the real world for the cleaned one ({_percent(cleaned['world'])} "
                f"against {_percent(original['world'])}): whoever goes by test accuracy chooses wrongly."]
    said += [f"With {arm_name(name, how)}, {_percent(values.mean())} of the readers choose the cleaned model"
             + (f" (people in the paper: {_percent(CHOICES[name, how])})." if (name, how) in CHOICES else ".")
             for (name, how), values in right.items()]
    for words, some in (("careful", tests), ("very careless", careless)):
        for (first, second), (pair, p) in some.items():
            if WORDS[FLOOR] not in f"{first} {second}":
                verb = ("is not shown to differ from" if p > stats.LEVEL else "is better than" if pair.value > 0 else
                        "is worse than")
                said.append(f"Among {words} readers, {first} {verb} {second} ({_points(pair)}).")
        floor = [pair.value > 0 and p <= stats.LEVEL for (first, second), (pair, p) in some.items()
                 if WORDS[FLOOR] in second and WORDS[FLOOR] not in first]
        said.append(f"Among {words} readers, {sum(floor)} of {len(floor)} cells are better than random explanations.")
    return said


def _points(pair: stats.Difference) -> str:
    return f"{100 * pair.value:+.0f} points, 95 % interval {100 * pair.low:+.0f} to {100 * pair.high:+.0f}"


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _cell(values: Any) -> dict[str, Any]:
    found = stats.rate(values)
    return {"value": found.value, "low": found.low, "high": found.high, "n": found.n}


def _accuracies(models: Mapping[str, Any]) -> dict[str, Any]:
    rows = [[model, *(text for what in ("test", "world") for text in (
        _percent(models[model][what]), _percent(ACCURACY[model][what])))] for model in MODELS]
    return {"title": "§ 6.2: accuracy of both models", "rows": rows,
            "columns": ["model", "test posts", "published", "real world", "published (web pages)"],
            "about": "; ".join(f"{model}: C = {models[model]['C']:g}, γ = {models[model]['gamma']:g}" for model in MODELS)}


def _choices(right: Right) -> dict[str, Any]:
    rows = [[WORDS.get(name, name), PICK_WORDS[how], _cell(values),
             _percent(CHOICES[name, how]) if (name, how) in CHOICES else "–"] for (name, how), values in right.items()]
    return {"title": "Figure 9: readers who choose the model that generalises", "rows": rows,
            "columns": ["explainer", "pick", "simulated readers", "people (published)"], "about": "Chance is 50 %."}


def _careless(each: Mapping[Cell, Answers]) -> dict[str, Any]:
    rows = [[WORDS.get(name, name), PICK_WORDS[how], *(_cell(answers.right[level]) for level in NOISE)]
            for (name, how), answers in each.items()]
    told = [f"{level} (overlook {a:g}, mistrust {b:g})" for level, (a, b) in NOISE.items()]
    return {"title": "The same with careless readers", "columns": ["explainer", "pick", *told], "rows": rows,
            "about": "What readers know is assumed; this is how much hangs on it."}


def _on_foreign(each: Mapping[Cell, Answers]) -> dict[str, Any]:
    rows = [[WORDS.get(name, name), PICK_WORDS[how], *(_percent(answers.foreign[model]) for model in MODELS)]
            for (name, how), answers in each.items()]
    return {"title": "Evidence on words that do not generalise", "columns": ["explainer", "pick", *MODELS], "rows": rows,
            "about": "The share of the weight shown, as a reader without mistakes would see it; mean over readers."}


def _tested(tests: Tests, title: str) -> dict[str, Any]:
    rows = [[first, second, *(f"{100 * value:+.0f}" for value in (pair.value, pair.low, pair.high)), f"{p:.3g}",
             "undecided" if p > stats.LEVEL else "above" if pair.value > 0 else "below"]
            for (first, second), (pair, p) in tests.items()]
    return {"title": f"{title}, in points", "rows": rows, "about": "Reader by reader; the tests of a table share the 5 %.",
            "columns": ["", "against", "difference", "low", "high", "p (Holm)", "so it is"]}


def _carelessness(each: Mapping[Cell, Answers]) -> dict[str, Any]:
    series = []
    for (name, how), answers in each.items():
        cells = [_cell(answers.right[level]) for level in NOISE]
        series.append({"name": arm_name(name, how), "x": [overlook for overlook, _ in NOISE.values()],
                       **{what: [one[key] for one in cells] for what, key in
                          (("y", "value"), ("low", "low"), ("high", "high"))}})
    return {"title": "Right choices by how careless readers are", "series": series, "about": "Chance is 0.5.",
            "x_label": "chance to overlook a word that does not generalise",
            "y_label": "readers who choose the model that generalises"}


# --- Figure 10 --------------------------------------------------------------------------------------------------------


def repaired(store: Store) -> dict[str, Any]:
    """Figure 10 from a run: the findings of the repair, with what was published beside them."""
    found, about, rounds = findings(store), store.manifest["about"], len(store.manifest["spec"]["readers"])
    reference, rows = reference_of(store), list[list[Any]]()
    if reference is not None:
        rows.append(["accuracy before, real world", _percent(reference["accuracy"]), _percent(ACCURACY["original"]["world"])])
    for arm in arms_of(store):
        if arm.explainer == "lime" and arm.after(rounds):
            told = arm.agreement(rounds)
            last = _percent(float(np.mean(list(arm.accuracies(rounds).values()))))
            rows.append([f"accuracy after {rounds} rounds, {PICK_WORDS[arm.pick]}", last, "about 70 to 75 % (off the figure)"])
            words = {"deleted": "words deleted a path", "half": "… by at least half", "all": "… by all"}
            rows += [[f"{words[what]}, {PICK_WORDS[arm.pick]}", f"{told[what]:.0f}", str(DELETED[arm.pick].get(what, "–"))]
                     for what in words]
    beside = {"title": "§ 6.3 beside the paper", "columns": ["", "here", "published"], "rows": rows,
              "about": "There, 10 people began, and 5 more looked at each model in each further round."}
    notes = ["Simulated readers take the place of the people of the paper; they know which words stand mostly in headers, "
             "signatures, addresses and names of training posts.",
             f"{about['training']} posts to train on, {about['validation']} held out to explain; the real world is "
             f"{about['world']} test posts without header, quotations, signature and names ({about.get('empty', 0)} are empty "
             "then), for the paper's web pages are not to be had."]
    return {**found, "experiment": "fig10", "paper": PAPER, "tables": [beside, *found["tables"]],
            "notes": [*notes, *found["notes"]]}
