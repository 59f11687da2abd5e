"""What a run of `RepairStudy` has found so far: accuracy by round, what was deleted, and who is ahead beyond chance.

Paths that begin with one reader share what that reader deleted, so first readers are what is counted. The intervals are about
other readers of the same explanations, trained and measured on the same data; other data would add to them.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from whytrust import stats
from whytrust.store import Store, plain

SHORT = {"submodular": "SP", "random": "RP"}
PICK_WORDS = {"submodular": "submodular pick", "random": "random pick"}
WORDS = {"lime": "LIME", "random": "random explanations"}
Record = Mapping[str, Any]
Path = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Arm:
    """One explainer with one way to pick: every model that its readers made."""

    explainer: str
    pick: str
    nodes: tuple[Record, ...]

    @property
    def name(self) -> str:
        """For a reader."""
        return arm_name(self.explainer, self.pick)

    def after(self, round: int) -> list[Record]:
        """The models after so many rounds."""
        return [node for node in self.nodes if len(node["path"]) == round]

    def accuracies(self, round: int) -> dict[Path, float]:
        """Accuracy in the real world by path."""
        return {tuple(node["path"]): node["accuracy"] for node in self.after(round)}

    def words(self, round: int) -> list[frozenset[str]]:
        """What each path has deleted by then."""
        new = {tuple(node["path"]): node["words"] for node in self.nodes}
        return [frozenset(word for depth in range(1, round + 1) for word in new[tuple(node["path"])[:depth]])
                for node in self.after(round)]

    def agreement(self, round: int) -> dict[str, Any]:
        """Of the features that a path deletes, how many do at least half of all paths delete, and how many all of them?"""
        paths = self.words(round)
        counts = Counter(word for one in paths for word in one)
        nodes = [node for node in self.nodes if len(node["path"]) <= round]
        deleted = sum(len(node["words"]) for node in nodes)
        return {"paths": len(paths), "deleted": _mean([len(one) for one in paths]),
                "half": _mean([sum(2 * counts[word] >= len(paths) for word in one) for one in paths]),
                "all": _mean([sum(counts[word] == len(paths) for word in one) for one in paths]),
                "wrongly": sum(node["wrongly"] for node in nodes) / deleted if deleted else math.nan,
                "empty": sum(node["empty"] for node in nodes)}


def arm_name(explainer: str, pick: str) -> str:
    """An explainer and a way to pick, in words."""
    return f"{WORDS.get(explainer, explainer)}, {PICK_WORDS[pick]}"


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values)) if len(values) else math.nan


def arms_of(store: Store) -> list[Arm]:
    """Every arm of a run with what is done of it."""
    spec, nodes = store.manifest["spec"], dict[tuple[str, str], list[Record]]()
    for record in store.records():
        if record["status"] == "ok" and "nodes" in record:
            nodes.setdefault((record["explainer"], record["pick"]), []).extend(record["nodes"])
    return [Arm(name, how, tuple(nodes.get((name, how), ()))) for name in spec["explainers"] for how in spec["picks"]]


def reference_of(store: Store) -> dict[str, Any] | None:
    """The model before any reader, and the one without everything that does not generalise; None while it is not done."""
    return next((record for record in store.records() if record["case"] == "reference" and record["status"] == "ok"), None)


def findings(store: Store) -> dict[str, Any]:
    """Everything there is to tell, in the form that all experiments on trust have."""
    spec, about, records = store.manifest["spec"], store.manifest["about"], list(store.records())
    arms, reference, rounds = arms_of(store), reference_of(store), len(spec["readers"])
    grain = 1 / about["world"]
    tests = differences(arms, reference, rounds, grain)
    failed = [record for record in records if record["status"] == "failed"]
    found = {
        "experiment": "repair",
        "question": "Is a model right more often in the real world once readers have deleted what does not generalise?",
        "answer": answers(arms, reference, tests, rounds, failed),
        "tables": [_accuracies(arms, reference, rounds, grain), _deletions(arms, rounds), _tests(tests)],
        "charts": [_chart(arms, reference, rounds, grain)],
        "cases": {"done": len(records), "of": sum(len(block.cases) for block in store.blocks), "failed": len(failed)},
        "failures": [{"case": record["case"], "error": record["error"]} for record in failed],
        "notes": _notes(spec, about, arms, reference), "settings": {**spec, "seed": store.manifest["seed"], "about": about}}
    return dict(plain(found))


def _notes(spec: Record, about: Record, arms: Sequence[Arm], reference: Record | None) -> list[str]:
    empty = sum(node["empty"] for arm in arms for node in arm.nodes)
    shown = spec["instances"] * sum(len(arm.nodes) for arm in arms)
    left_out = 0 if reference is None else reference.get("left_out", 0)
    return ["Readers are simulated: each knows which features generalise, overlooks one that does not with chance "
            f"{spec['overlooks']:g}, and deletes one that does with chance {spec['misjudges']:g}.",
            f"Each reader sees {spec['instances']} explanations of at most {spec['features']} features; "
            f"{' × '.join(map(str, spec['readers']))} readers, round by round.",
            f"Accuracy in the real world is measured on {about['world']} inputs{_unseen(about)}. Intervals "
            "and tests count first readers and hold for these inputs: which of them a model gets right by chance is left out.",
            *([f"{left_out} validation inputs have nothing in them to explain and were left out."] if left_out else []),
            *([f"{empty} of {shown} explanations that readers were given were empty."] if empty else [])]


def _unseen(about: Record) -> str:
    some = about.get("known", 0)
    return " that no reader and no training saw" if not some else (
        f", of which {some} {'is' if some == 1 else 'are'} among those that models are trained on or readers see: it says less "
        "of the real world than it should")


# --- tests ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Test:
    """One comparison after the last round, and what may be said of it after Holm."""

    first: str
    second: str
    difference: stats.Difference
    p_holm: float

    @property
    def call(self) -> str:
        """above, below or undecided."""
        return "undecided" if self.p_holm > stats.LEVEL else "above" if self.difference.value > 0 else "below"

    @property
    def unsure(self) -> bool:
        """Can nothing be said of how sure it is? One first reader has no spread, and an interval that holds everything."""
        return self.difference.low <= -1 and self.difference.high >= 1


def differences(arms: Sequence[Arm], reference: Record | None, rounds: int, grain: float) -> list[Test]:
    """Every arm against no repair, submodular against random picks, and explainers against each other; all share the 5 %."""
    last = {(arm.explainer, arm.pick): arm.accuracies(rounds) for arm in arms}
    pairs: dict[tuple[str, str], stats.Difference] = {}
    for arm in arms:
        own = last[arm.explainer, arm.pick]
        if reference is not None and own:
            pairs[arm.name, "no repair"] = _paired(own, {path: float(reference["accuracy"]) for path in own}, grain)
        for other in arms[:arms.index(arm)]:
            same = (arm.explainer == other.explainer) + (arm.pick == other.pick)
            if same == 1:
                pairs[other.name, arm.name] = _paired(last[other.explainer, other.pick], own, grain)
    tried = {key: pair for key, pair in pairs.items() if pair.n}
    adjusted = stats.holm([pair.p for pair in tried.values()])
    return [Test(*key, pair, float(p)) for (key, pair), p in zip(tried.items(), adjusted, strict=True)]


def _paired(first: Mapping[Path, float], second: Mapping[Path, float], grain: float) -> stats.Difference:
    both = [path for path in first if path in second]
    one, other = ([side[path] for path in both] for side in (first, second))
    return stats.paired(one, other, [path[0] for path in both], grain=grain)


def answers(arms: Sequence[Arm], reference: Record | None, tests: Sequence[Test], rounds: int,
            failed: Sequence[Record] = ()) -> list[str]:
    """Verdicts in plain words; what is not decided is said to be."""
    if reference is None or not tests:
        return [f"Nothing can be said: {len(failed)} cases failed. The first: {failed[0]['error']}"] if failed else [
            "Nothing is finished yet."]
    said = []
    by_name = {arm.name: arm for arm in arms}
    for test in tests:
        points = f"{100 * test.difference.value:+.1f} points, " + (
            "and too few first readers to say how sure that is" if test.unsure else
            f"95 % interval {100 * test.difference.low:+.1f} to {100 * test.difference.high:+.1f}")
        if test.second == "no repair":
            now = _mean(list(by_name[test.first].accuracies(rounds).values()))
            verb = {"above": "helps", "below": "harms", "undecided": "may help or not"}[test.call]
            said.append(f"Repair by {test.first} {verb} on these inputs of the world: {_percent(reference['accuracy'])} right "
                        f"before, {_percent(now)} after {rounds} round{'s' if rounds > 1 else ''} ({points}).")
        else:
            verb = {"above": "is better than", "below": "is worse than", "undecided": "is not shown to differ from"}[test.call]
            said.append(f"{test.first} {verb} {test.second} ({points}).")
    said.append(f"Without every feature that does not generalise ({reference['bad']} of them) the model would be right in "
                f"{_percent(reference['oracle']['accuracy'])}.")
    return said


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


# --- tables and charts ------------------------------------------------------------------------------------------------


def cell(values: Mapping[Path, float], start: float, grain: float) -> dict[str, Any]:
    """A mean over paths, with an interval that counts first readers.

    Of the change since the start, which all readers share: an interval for a rate would count each reader as one yes or no,
    and a reader's accuracy is a mean over many inputs.
    """
    change = _paired(values, dict.fromkeys(values, start), grain)
    return {"value": start + change.value, "low": max(start + change.low, 0.0), "high": min(start + change.high, 1.0),
            "n": change.n}


def _accuracies(arms: Sequence[Arm], reference: Record | None, rounds: int, grain: float) -> dict[str, Any]:
    rows: list[list[Any]] = []
    if reference is not None:
        start, oracle = float(reference["accuracy"]), _percent(reference["oracle"]["accuracy"])
        rows = [[arm.name, _percent(start), *(cell(arm.accuracies(r), start, grain) if arm.after(r) else "–"
                                              for r in range(1, rounds + 1))] for arm in arms]
        rows += [["no repair", *[_percent(start)] * (rounds + 1)],
                 ["all that does not generalise deleted", *["–"] * rounds, oracle]]
    return {"title": "Accuracy in the real world", "columns": ["", "before", *(f"round {r}" for r in range(1, rounds + 1))],
            "rows": rows, "about": "Means over all models of a round; 95 % intervals, first readers counted."}


def _deletions(arms: Sequence[Arm], rounds: int) -> dict[str, Any]:
    rows = []
    for arm in arms:
        if arm.after(rounds):
            told = arm.agreement(rounds)
            wrongly = "–" if math.isnan(told["wrongly"]) else _percent(told["wrongly"])
            rows.append([arm.name, *(round(told[what], 1) for what in ("deleted", "half", "all")), wrongly, told["paths"]])
    return {"title": "What readers deleted", "rows": rows,
            "columns": ["", "features a path", "by at least half of the paths", "by all", "wrongly", "paths"],
            "about": "Means over paths; “wrongly” is the share of deleted features that do generalise."}


def _tests(tests: Sequence[Test]) -> dict[str, Any]:
    rows = [[test.first, test.second, f"{100 * test.difference.value:+.1f}", *("–" if test.unsure else f"{100 * value:+.1f}"
             for value in (test.difference.low, test.difference.high)), f"{test.p_holm:.3g}", test.call] for test in tests]
    return {"title": "Differences after the last round, in points", "rows": rows,
            "columns": ["", "against", "difference", "low", "high", "p (Holm)", "so it is"],
            "about": "Paired by path: the same readers in both; paths that begin with one reader count as one source."}


def _chart(arms: Sequence[Arm], reference: Record | None, rounds: int, grain: float) -> dict[str, Any]:
    series: list[dict[str, Any]] = []
    if reference is not None:
        start = float(reference["accuracy"])
        for arm in arms:
            done = [r for r in range(1, rounds + 1) if arm.after(r)]
            cells = [cell(arm.accuracies(r), start, grain) for r in done]
            short = f"{SHORT[arm.pick]}-{arm.explainer}"
            series.append({"name": short, "x": [0, *done], **{what: [start, *(one[key] for one in cells)] for what, key in
                                                                 (("y", "value"), ("low", "low"), ("high", "high"))}})
        ends = {"no repair": reference["accuracy"], "all deleted": reference["oracle"]["accuracy"]}
        for name, value in ends.items():
            flat = dict.fromkeys(("y", "low", "high"), [value] * (rounds + 1))
            series.append({"name": name, "x": list(range(rounds + 1)), **flat})
    return {"title": "Accuracy in the real world by round", "x_label": "rounds of reading and deleting",
            "y_label": "accuracy in the real world", "series": series,
            "about": "Means over all paths, with 95 % intervals that count first readers. SP: picked for coverage; RP: picked "
                     "at random; all deleted: without everything that does not generalise."}
