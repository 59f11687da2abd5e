"""Everything the tables and figures of `whytrust reproduce veracity` hold, as plain data from a run's records."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from whytrust import stats
from whytrust.core import Floats
from whytrust.store import Store, plain
from whytrust.studies import veracity_published as published
from whytrust.studies.plausible_claims import tested
from whytrust.studies.veracity_claims import AGREED, FINE, claims
from whytrust.studies.veracity_outcomes import BASELINES, DRAWS, KS, PARTS, Excerpts, K, Record, Run, chance, joined, told_apart
from whytrust.studies.veracity_published import SIGNALS

CONTENTS = {"mean": "lime", "zero": "lime:zero", "min": "lime:min"}
"""What hidden segments hold, and what LIME is called in the records then."""
FLIPPED = 0.95
"""The share of labels that counts as nearly all."""
BOUNDS = ("value", "low", "high")
Made = Callable[[Run, Mapping[str, Any]], dict[str, Any]]


def findings(store: Store, experiment: str = "all") -> dict[str, Any]:
    """What a run has found so far; of one experiment only its own part."""
    run, manifest = Run(tuple(store.records())), store.manifest
    spec, about = manifest["spec"], manifest["about"]
    found: dict[str, Any] = {
        "format": 1, "study": "veracity", "papers": published.CITATIONS, "data": about["data"],
        "synthesised": bool(about.get("synthesised")), "seed": manifest["seed"], "songs": len(spec["test"]),
        "settings": {name: spec.get(name) for name in ("each", "samples", "iterations", "variant", "threshold", "contents")},
        "cases": {"done": len(run.records), "of": sum(len(block.cases) for block in store.blocks),
                  "failed": sum(r["status"] == "failed" for r in run.records)},
        "failures": [{"case": r["case"], "error": r["error"]} for r in run.records if r["status"] == "failed"],
        "problems": store.problems,
        "claims": [one for one in claims(run, spec.get("samples"))
                   if experiment in ("all", one["experiment"]) and KIND[one["experiment"]] in spec["kinds"]]}
    made = {name: make(run, manifest) for name, make in SECTIONS.items()
            if experiment in ("all", name) and KIND[name] in spec["kinds"]}
    return dict(plain({**found, **made}))


def _rate(values: Floats, songs: Sequence[str], grain: float = 1.0) -> dict[str, Any]:
    return asdict(stats.rate(values, songs, grain=grain))


def _rates(some: Excerpts, names: Sequence[str], k: int = K) -> dict[str, Any]:
    return {name: _rate(some.at(name, k), some.songs, DRAWS if name == "random" else 1.0) for name in names}


# --- the detector and the attack --------------------------------------------------------------------------------------


def _detector(run: Run, manifest: Mapping[str, Any]) -> dict[str, Any]:
    """§ 4.2; frames of one song are no news of each other, so the intervals count songs."""
    songs = run.of("detector")
    shares = {"error": [(r["sung"] - r["hits"] + r["false_alarms"], r["frames"]) for r in songs],
              "recall": [(r["hits"], r["sung"]) for r in songs],
              "specificity": [(r["frames"] - r["sung"] - r["false_alarms"], r["frames"] - r["sung"]) for r in songs]}
    facts = manifest["about"].get("detector") or {}
    return {"rates": {name: _pooled(each, [r["song"] for r in songs]) for name, each in shares.items()},
            "threshold": manifest["spec"]["threshold"], "trained_on": facts.get("data"), "own_test": facts.get("test"),
            "published": {**published.DETECTOR, "threshold": published.THRESHOLD}}


def _pooled(shares: Sequence[tuple[int, int]], songs: Sequence[str]) -> dict[str, Any]:
    """Frames of all songs together, a source a song."""
    values = [np.repeat([1.0, 0.0], [some, of - some]) for some, of in shares]
    sources = [song for song, each in zip(songs, values, strict=True) for _ in each]
    return _rate(np.concatenate(values) if values else np.array([]), sources)


def _attack(run: Run, manifest: Mapping[str, Any]) -> dict[str, Any]:
    """§ 4.3: of all frames, how many does one perturbation of the whole song turn, and how loud is it?"""
    found = {}
    for signal in SIGNALS:
        songs = run.attacks(signal)
        names = [one["song"] for one in songs]
        noise = np.array([one["signal_to_noise"] for one in songs if one["signal_to_noise"] is not None], dtype=np.float64)
        found[signal] = {
            "songs": len(songs), "success": _pooled([(s["flipped"], s["frames"]) for s in songs], names),
            "no sing": _pooled([(s["flipped"] - s["sung_flipped"], s["frames"] - s["sung"]) for s in songs], names),
            "sing": _pooled([(s["sung_flipped"], s["sung"]) for s in songs], names),
            "signal_to_noise": _summary(noise), "linf": _summary(np.array([s["linf"] for s in songs], dtype=np.float64)),
            "at_floor": _summary(np.array([s["at_floor"] for s in songs if s.get("at_floor") is not None], dtype=np.float64)),
            "played": _pooled([(s["played_flipped"], s["frames"]) for s in songs if "played_flipped" in s],
                              [s["song"] for s in songs if "played_flipped" in s]),
            "iterations": max((s["iterations"] for s in songs), default=0), **published.SETTINGS[signal],
            **manifest["spec"].get("attack", {}).get(signal, {})}
    return {"signals": found, "published": {"success": published.SUCCESS, "settings": published.SETTINGS}}


def _summary(values: Floats) -> dict[str, Any]:
    values = values[~np.isnan(values)]
    if not len(values):
        return {"n": 0}
    return {"n": len(values), "median": float(np.median(values)), "least": float(values.min()), "most": float(values.max())}


# --- flips ------------------------------------------------------------------------------------------------------------


def _flips(run: Run, manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Table 1 and Figure 2, with what stands around LIME."""
    names = ("lime", *BASELINES)
    cells = []
    for (signal, direction), some in run.cells.items():
        lines = {}
        for name in names:
            points = [_rate(column, some.songs, DRAWS if name == "random" else 1.0) for column in some.curve(name).T]
            lines[name] = {"n": points[0]["n"], **{what: [point[what] for point in points] for what in BOUNDS}}
        cells.append({"signal": signal, "direction": direction, "excerpts": len(some.rows), "songs": len(set(some.songs)),
                      "rates": _rates(some, names), "curves": lines, "published": published.FLIPS[signal][direction],
                      **_compared(lines["magnitude"]["value"], lines["lime"]["value"]),
                      "enough": {name: _enough(lines[name]["value"]) for name in ("lime", "magnitude", "oracle")}})
    return {"k": K, "ks": list(range(1, PARTS + 1)), "cells": cells, "tests": _against(run)}


def _compared(norm: Sequence[float], lime: Sequence[float]) -> dict[str, int]:
    """At how many k below 20 the norm is above LIME, and at how many below: a description, not a test."""
    pairs = list(zip(norm, lime, strict=True))[:-1]
    return {"above": sum(one > other for one, other in pairs), "below": sum(one < other for one, other in pairs)}


def _enough(values: Sequence[float]) -> int | None:
    """The least k from which on 95 % of the labels flip."""
    short = [k for k, value in enumerate(values, 1) if not value >= FLIPPED]
    return None if not values or math.isnan(values[0]) else max(short, default=0) + 1


def _against(run: Run) -> list[dict[str, Any]]:
    """LIME against the norm and random at k = 3; the tests of the table share the 5 %."""
    pairs = {}
    for cell, some in run.cells.items():
        for rival in ("magnitude", "random"):
            other = some.at(rival)
            expected = other * (1 - other) if rival == "random" else None
            pairs[(*cell, rival)] = stats.paired(some.at("lime"), other, some.songs, chance=expected)
    return [{"signal": key[0], "direction": key[1], "rival": key[2], **test} for key, test in tested(pairs).items()]


def _positive(run: Run, manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Table 2."""
    return {"cells": [{"signal": signal, "direction": direction, "k": _summary(some.counted()),
                       "rates": {"lime": _rate(some.positive("flip"), some.songs),
                                 "magnitude": _rate(some.positive("magnitude"), some.songs),
                                 "random": _rate(some.positive("random"), some.songs, DRAWS)},
                       "published": published.POSITIVE[signal][direction]}
                      for (signal, direction), some in run.cells.items()]}


def _contents(run: Run, manifest: Mapping[str, Any]) -> dict[str, Any]:
    """§ 4.4: other contents of hidden segments, on the excerpts that were explained with each of them."""
    whole = joined(list(run.cells.values())).having("lime:zero").having("lime:min")
    found = {}
    for fill, name in CONTENTS.items():
        same = [len(set(row["trial"]["order"][name][:K]) & set(row["trial"]["order"]["lime"][:K])) / K for row in whole.rows]
        found[fill] = {"flip": _rate(whole.at(name), whole.songs), "area": _rate(whole.area(name), whole.songs, FINE),
                       "fidelity": _summary(whole.fidelity(name=name)), "shared": _rate(np.array(same), whole.songs, 1 / K)}
    return {"k": K, "excerpts": len(whole.rows), "fills": found}


# --- localised perturbations ------------------------------------------------------------------------------------------


def _recovery(run: Run, manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Figure 3: how often 0 … k of the only k changed segments were found, beside what chance finds."""
    cells = [{"signal": signal, "direction": direction, "excerpts": len(some.rows),
              "k": {str(k): _recovered(some, k) for k in KS}} for (signal, direction), some in run.cells.items()]
    both = joined([run.cells["magnitude", direction] for direction in published.DIRECTIONS])
    return {"cells": cells, "published": {"still": published.LOCALISED},
            "spectrogram": {str(k): {"still": both.still(k), "excerpts": len(both.rows)} for k in KS}}


def _recovered(some: Excerpts, k: int) -> dict[str, Any]:
    found = some.recovered(k)
    whole = np.rint(found[~np.isnan(found)]).astype(int)
    expected = [chance(PARTS, k, j) for j in range(k + 1)]
    return {"n": some.still(k), "counts": np.bincount(whole, minlength=k + 1).tolist(), "random": expected,
            "all": _rate(np.where(np.isnan(found), math.nan, found == k), some.songs),
            "share": _rate(found / k, some.songs, 1 / k), "random_share": k / PARTS}


def _fidelity(run: Run, manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Figure 4: R² where the one changed segment was found, and where it was not."""
    groups = {f"{signal}.{direction}": some for (signal, direction), some in run.cells.items()}
    return {"cells": [_fidelity_of(name, some) for name, some in {**groups, "all": joined(list(groups.values()))}.items()]}


def _fidelity_of(name: str, some: Excerpts) -> dict[str, Any]:
    signal, _, direction = name.partition(".")
    values, hits = some.fidelity(1), some.recovered(1)
    there = ~(np.isnan(values) | np.isnan(hits))
    apart = told_apart(values, hits, some.songs)
    return {"signal": signal, "direction": direction, "hit": values[there & (hits == 1)].tolist(),
            "miss": values[there & (hits == 0)].tolist(), "auc": None if apart is None else asdict(apart)}


# --- drawings, settling, tuning ---------------------------------------------------------------------------------------


def _drawings(run: Run, manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Figure 1: does LIME point at what was drawn?"""
    tried = [r for r in run.records if r.get("kind") == "drawings" and r["status"] in ("ok", "not found")]
    made = run.of("drawings")
    songs = [r["song"] for r in made]
    adversaries = joined(list(run.cells.values()))
    kept = ("case", "song", "frame", "shape", "size", "thickness", "loudness", "tries", "prediction_before", "prediction",
            "fidelity", "hits", "hits_before", "expected", "order", "touched")
    sung = [r for r in tried if r["status"] != "ok"
            and (r.get("frame") is None or (r.get("prediction_before") or 0) > manifest["spec"]["threshold"])]
    return {"top": K, "tried": len(tried) - len(sung), "sung": len(sung), "turned": len(made),
            "found": _rate(np.array([r["hits"] / K for r in made]), songs, 1 / K),
            "before": _rate(np.array([r["hits_before"] / K for r in made]), songs, 1 / K),
            "expected": _rate(np.array([r["expected"] / K for r in made]), songs, 1 / K),
            "covered": _rate(np.array([sum(r["share"][part] for part in r["order"][:K]) for r in made]), songs, DRAWS),
            "fidelity": _summary(_numbers(r["fidelity"] for r in made)), "adversaries": _summary(adversaries.fidelity()),
            "made": [{name: r.get(name) for name in kept} for r in made]}


def _numbers(values: Any) -> Floats:
    return np.array([math.nan if value is None else value for value in values], dtype=np.float64)


def _settling(run: Run, manifest: Mapping[str, Any]) -> dict[str, Any]:
    """§ 4.4: how explanations settle as samples grow, and the least number that is enough."""
    made = run.of("settling")
    sizes = made[0]["sizes"] if made else []
    lines = {what: np.array([_numbers(r[what]) for r in made]).reshape(len(made), len(sizes))
             for what in ("top", "order", "spread")}
    middle = {what: line.mean(axis=0).tolist() for what, line in lines.items()} if made else {}
    return {"excerpts": len(made), "sizes": sizes, "agreed": AGREED, "mean": middle,
            "each": [{what: line[i].tolist() for what, line in lines.items()} for i in range(len(made))],
            "enough": _least(sizes, middle.get("top", [])), "published": published.SAMPLES}


def _least(sizes: Sequence[int], agreement: Sequence[float]) -> int | None:
    """The least number of samples from which on two explanations name the same three segments, nearly always."""
    short = [i for i, value in enumerate(agreement) if value < AGREED]
    first = max(short, default=-1) + 1
    return sizes[first] if first < len(sizes) else None


def _tuning(run: Run, manifest: Mapping[str, Any]) -> dict[str, Any]:
    """§ 4.3 and Table 5: which settings of the attack turn the most frames of the validation songs?"""
    found = {}
    for signal in SIGNALS:
        made: list[Record] = run.of("tuning", signal=signal)
        rows = [{**r["settings"], "frames": r["frames"], "flipped": r["flipped"], "share": r["flipped"] / r["frames"],
                 "signal_to_noise": r["signal_to_noise"], "at_floor": r.get("at_floor")} for r in made]
        found[signal] = {"rows": rows, "songs": made[0]["songs"] if made else 0,
                         "best": max(rows, key=lambda row: row["flipped"], default=None),
                         "published": published.SETTINGS[signal]}
    return {"signals": found, "iterations": manifest["spec"].get("tuned_iterations")}


SECTIONS: dict[str, Made] = {
    "detector": _detector, "attack": _attack, "flips": _flips, "positive": _positive, "recovery": _recovery,
    "fidelity": _fidelity, "drawings": _drawings, "contents": _contents, "settling": _settling, "tuning": _tuning}
KIND = {name: name if name in ("detector", "drawings", "settling", "tuning") else "excerpts" for name in SECTIONS}
"""The kind of blocks that each section is made from; a run may have some of them alone."""
