"""Two runs side by side: what differs in their settings, and whether that changed what was found."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from whytrust import legible, stats
from whytrust.report.findings import findings
from whytrust.report.outcomes import FULL, Outcomes, outcomes
from whytrust.report.records import records_of, understood
from whytrust.store import Store

NAMED = 3
"""Inputs that are named in a line; the others are counted."""


def compared(first: Store, second: Store) -> dict[str, Any]:
    """The second run minus the first, contender by contender: on the cases that both have, where there are any."""
    tried = [_by_case(store) for store in (first, second)]
    one, other = (_found(store) for store in (first, second))
    same_inputs = bool(set(tried[0][1]) & set(tried[1][1]))
    rows, unanswered = [], []
    for contender in one["contenders"]:
        name = contender["name"]
        pair = [found["measures"].get("flip", {"rates": {}})["rates"].get(name) for found in (one, other)]
        verdicts = [next((v["words"] for v in found["verdicts"] if v["name"] == name), None) for found in (one, other)]
        if any(rate is None or rate["value"] is None for rate in pair):
            unanswered += [{"name": name, "verdicts": verdicts}] if verdicts[0] != verdicts[1] and None not in verdicts else []
            continue
        change = _paired(tried[0], tried[1], name) if same_inputs else _unpaired(pair[0], pair[1])
        rows.append({"name": name, "first": pair[0], "second": pair[1], "verdicts": verdicts, **change,
                     "words": _words(change)})
    names = [{c["name"] for c in found["contenders"]} for found in (one, other)]
    return {"format": 1, "first": str(first.folder), "second": str(second.folder), "paired": same_inputs, "rows": rows,
            "unanswered": unanswered,
            "only_first": sorted(names[0] - names[1]), "only_second": sorted(names[1] - names[0]),
            "settings": _settings(first.manifest, second.manifest),
            "inputs": _inputs(first.manifest, second.manifest), "counts": [one["counts"], other["counts"]]}


def _found(store: Store) -> dict[str, Any]:
    with understood(store.folder):
        return findings(store)


def _by_case(store: Store) -> tuple[Outcomes, dict[str, int]]:
    with understood(store.folder):
        tried = outcomes(records_of(store), FULL, store.manifest.get("about", {}).get("explainers", ()))
    return tried, {f"{case['case']} {case.get('digest')}": i for i, case in enumerate(tried.cases)}


def _paired(first: tuple[Outcomes, dict[str, int]], second: tuple[Outcomes, dict[str, int]], name: str) -> dict[str, Any]:
    """On the cases that both runs have."""
    shared = [case for case in first[1] if case in second[1]]
    values = [[float(tried.measures["flip"].values[name][places[case]]) for case in shared]
              for tried, places in (first, second)]
    sources = [first[0].sources[first[1][case]] for case in shared]
    found = stats.paired(values[1], values[0], sources if any(s is not None for s in sources) else None,
                         grain=first[0].measures["flip"].grain)
    return {"value": found.value if found.n else None, "low": found.low, "high": found.high, "n": found.n}


def _unpaired(first: Mapping[str, float], second: Mapping[str, float]) -> dict[str, Any]:
    """Newcombe's interval for the difference of two independent rates, from the interval of each."""
    value = second["value"] - first["value"]
    low = value - math.hypot(second["value"] - second["low"], first["high"] - first["value"])
    high = value + math.hypot(second["high"] - second["value"], first["value"] - first["low"])
    return {"value": value, "low": max(low, -1.0), "high": min(high, 1.0), "n": min(first["n"], second["n"])}


def _words(change: Mapping[str, Any]) -> str:
    if change["n"] == 0:
        return "no case in common"
    if change["low"] > 0:
        return "higher in the second"
    return "lower in the second" if change["high"] < 0 else "no difference beyond chance"


def _settings(first: Mapping[str, Any], second: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What the two specs say differently; of a spec and a call in Python, which states every default, what both say."""
    stated = isinstance(first.get("spec", {}).get("model"), str) == isinstance(second.get("spec", {}).get("model"), str)
    flat = [dict(_leaves({**m.get("spec", {}), "seed": m.get("seed"), "content": _content(m)}, "")) for m in (first, second)]
    if _digests(first) != _digests(second):  # the model's answers are to the first inputs, which may be other ones
        for one in flat:
            one.pop("content.model", None)
    return [{"key": key, "first": flat[0].get(key), "second": flat[1].get(key)}
            for key in sorted(flat[0].keys() | flat[1].keys()) if flat[0].get(key) != flat[1].get(key)
            and (stated or (key in flat[0] and key in flat[1]))]


def _content(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """What stands for the model and the background; the inputs are compared one by one."""
    return {name: value for name, value in (manifest.get("hashes") or {}).items() if name != "inputs"}


def _digests(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """What stands for each input, by its name; runs of the first versions have one for all."""
    found = (manifest.get("hashes") or {}).get("inputs")
    return dict(found) if isinstance(found, Mapping) else {} if found is None else {"all": found}


def _inputs(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, list[str]]:
    """The names of the inputs that only one of the two has, and of those that are not the same in both."""
    one, other = _digests(first), _digests(second)
    return {"only_first": [name for name in one if name not in other],
            "only_second": [name for name in other if name not in one],
            "changed": [name for name in one if name in other and one[name] != other[name]]}


def _of_inputs(inputs: Mapping[str, list[str]]) -> list[str]:
    """One line, however many they are."""
    said = {"only_first": ("is only in the first", "are only in the first"),
            "only_second": ("is only in the second", "are only in the second"),
            "changed": ("has another content, class or place", "have another content, class or place")}
    told = [f"{len(names)} {said[which][len(names) > 1]} ({', '.join(legible.cut(name, 60) for name in names[:NAMED])}"
            f"{', …' * (len(names) > NAMED)})" for which, names in inputs.items() if names]
    return [f"  inputs: {'; '.join(told)}"] if told else []


def _leaves(value: Any, path: str) -> list[tuple[str, Any]]:
    if isinstance(value, Mapping) and value:
        return [leaf for key, inner in value.items() for leaf in _leaves(inner, f"{path}.{key}" if path else str(key))]
    return [(path, value)]


def told(result: Mapping[str, Any]) -> str:
    """The comparison as plain text."""
    shared = max((row["n"] for row in result["rows"]), default=0)
    how = (f"case by case on {shared} inputs that both have" if result["paired"] else
           "no inputs in common, so only the rates are compared")
    lines = [f"{result['second']} minus {result['first']} ({how}); flips, all k"]
    wide = legible.width(row["name"] for row in result["rows"]) + 2
    lines += [f"  {row['name']:{wide}}{row['first']['value']:.3f} → {row['second']['value']:.3f}   "
              + (f"{row['value']:+.3f} ({row['low']:+.3f} to {row['high']:+.3f}), " if row["n"] else "") + row["words"]
              + (f"; verdict: {row['verdicts'][0]} → {row['verdicts'][1]}" if row["verdicts"][0] != row["verdicts"][1] else "")
              for row in result["rows"]]
    lines += [f"  {one['name']}: no rate in one of the two; verdict: {one['verdicts'][0]} → {one['verdicts'][1]}"
              for one in result["unanswered"]]
    for which, label in (("only_first", "first"), ("only_second", "second")):
        if result[which]:
            lines.append(f"  only in the {label}: {', '.join(result[which])}")
    lines += _of_inputs(result["inputs"])
    lines += [f"  settings: {s['key']} was {s['first']!r}, is {s['second']!r}" for s in result["settings"]]
    return legible.lines(lines)
