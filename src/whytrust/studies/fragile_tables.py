"""From runs of fragile explanations to numbers: how far explanations agree, by share of words swapped, and beside what.

Every level of a text counts, and intervals and tests go by text. A drop is held against random swaps of as many words (chance),
the explainer asked twice about the same text (its noise), and the model's own answers without each word (which may be others).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from whytrust import stats
from whytrust.store import Store
from whytrust.studies.fragile_findings import BUCKETS, GRAIN, Records, Row, clipped, rows
from whytrust.swapping.search import RANDOM

WHOLE = len(BUCKETS)
SPANS = (*(f"{end - 0.1:.1f}–{end:.1f}" for end in BUCKETS), "all")
"""Shares of words swapped, and last all of them together; a share on a border belongs to the lower one."""
OBJECTIVES = ("l2", "lom")
AGAINST = ("chance", "noise", "model")
MOST_CHANGED = 4
Level = Mapping[str, Any]
Number = float | None


def _number(value: Any) -> float:
    return math.nan if value is None else float(value)


MEASURES: dict[str, Callable[[Level], float]] = {
    "rank": lambda level: clipped(level["rank"]), "raw": lambda level: _number(level["rank"]),
    "top": lambda level: _number(level["top"]), "lom": lambda level: _number(level["lom"]),
    "l2": lambda level: _number(level["l2"])}
"""rank is the correlation clipped at 0, as the paper has it; raw is the same from -1 to 1."""
RANGES = {"rank": (0.0, 1.0), "raw": (-1.0, 1.0), "top": (0.0, 1.0)}


@dataclass(frozen=True)
class Run:
    """One run: what was found of a data set's texts for one model and one explainer."""

    dataset: str
    model: str
    explainer: str
    records: Records
    manifest: Mapping[str, Any]
    store: Store | None = None

    @classmethod
    def open(cls, store: Store) -> Run:
        """From its folder, DATASET/MODEL/EXPLAINER, and its manifest."""
        dataset, model, explainer = store.folder.resolve().parts[-3:]
        return cls(dataset, model, explainer, list(store.records()), store.manifest, store)

    @property
    def done(self) -> Records:
        """The texts of which at least one word could be swapped."""
        return [record for record in self.records if record["status"] == "ok"]

    @property
    def key(self) -> str:
        """Its place."""
        return f"{self.dataset}/{self.model}/{self.explainer}"


@dataclass(frozen=True)
class Point:
    """A text with m words swapped: what a measure says of it, of random swaps of as many words, and of no swap at all."""

    text: str
    m: int
    bucket: int | None
    value: float
    chance: float
    noise: float
    model: float


def points(records: Records, objective: str, measure: str, seen: bool = False) -> list[Point]:
    """Every level of an objective's paths; `seen` is as the attack saw it, under the masks that it chose by.

    Of random swaps a level is the mean over the draws that reached it.
    """
    read, found = MEASURES[measure], list[Point]()
    chance = {place: _mean(read(row.level) for row in some) for place, some in _levels(records, RANDOM).items()}
    texts = {record["case"]: record["text"] for record in records}
    for (case, m), some in _levels(records, objective).items():
        value = _mean(read(row.level["seen"] if seen else row.level) for row in some)
        if not math.isnan(value):
            model = _mean(clipped(row.level["model"]) for row in some)
            by_chance = chance.get((case, m), math.nan)
            found.append(Point(texts[case], m, some[0].bucket, value, by_chance, read(some[0].noise), model))
    return found


def single(records: Records, objective: str, measure: str) -> list[tuple[int, float]]:
    """(bucket, value) of every level of every path: of random swaps one for each draw, as one path would show it."""
    read = MEASURES[measure]
    found = [(row.bucket, read(row.level)) for row in rows(records, objective)]
    return [(bucket, value) for bucket, value in found if bucket is not None and not math.isnan(value)]


def _levels(records: Records, objective: str) -> dict[tuple[str, int], list[Row]]:
    """By text and number of words swapped, the levels of all of an objective's paths."""
    found: dict[tuple[str, int], list[Row]] = {}
    for row in rows(records, objective):
        found.setdefault((row.case, row.m), []).append(row)
    return found


def _mean(values: Iterable[float]) -> float:
    """The mean of those that are known; NaN where none is."""
    known = [value for value in values if math.isfinite(value)]
    return float(np.mean(known)) if known else math.nan


# --- one number and how sure it is --------------------------------------------------------------------------------------


def mean(values: Sequence[float], texts: Sequence[str], within: tuple[float, float] | None = None) -> dict[str, Any] | None:
    """A mean with its 95 % interval by text, standard deviation, and how many levels of how many texts; None of nothing.

    Numbers that cannot leave a range get the interval of a rate, others Student's over what each text weighs, cut at 0 where
    none of them is below.
    """
    array = np.asarray(values, dtype=np.float64)
    kept = np.isfinite(array)
    if not kept.any():
        return None
    array, sources = array[kept], [text for text, keep in zip(texts, kept, strict=True) if keep]
    whole = float(array.mean())
    if within is not None:
        low, high = within
        rate = stats.rate((array - low) / (high - low), sources, grain=GRAIN)
        reach: tuple[Number, Number] = low + rate.low * (high - low), low + rate.high * (high - low)
    else:
        reach = _reach(array, sources, whole)
    return {"mean": whole, "sd": float(array.std(ddof=1)) if len(array) > 1 else None, "low": reach[0], "high": reach[1],
            "median": float(np.median(array)), "levels": len(array), "texts": len(set(sources))}


def _reach(values: Any, sources: Sequence[str], whole: float) -> tuple[Number, Number]:
    """Student's interval of a mean, leaving out one text at a time; not known of one text."""
    numbers = {text: i for i, text in enumerate(dict.fromkeys(sources))}
    codes = [numbers[text] for text in sources]
    totals, sizes = np.bincount(codes, weights=values), np.bincount(codes)
    if len(sizes) < 2:
        return None, None
    found = stats.jackknife(whole, (totals.sum() - totals) / (sizes.sum() - sizes))
    return max(found.low, 0.0) if values.min() >= 0 else found.low, found.high


def difference(first: Sequence[float], second: Sequence[float], texts: Sequence[str], width: float) -> stats.Difference:
    """By how much `first` is above `second`, pair by pair; numbers of a wider range are brought to [0, 1] and back."""
    found = stats.paired(np.asarray(first) / width, np.asarray(second) / width, list(texts), grain=GRAIN)
    return stats.Difference(found.value * width, found.low * width, found.high * width, found.p, found.n, found.sources,
                            found.error * width, found.freedom, found.grain)


def _in(span: int, found: Sequence[Point]) -> list[Point]:
    return [one for one in found if one.bucket == span or (span == WHOLE and one.bucket is not None)]


# --- Tables 1 to 4 and 8 to 13 --------------------------------------------------------------------------------------------


def cells(run: Run, measure: str, seen: bool = False) -> dict[str, list[dict[str, Any] | None]]:
    """For each objective and for random: mean, spread and interval by bucket, and over all.

    The standard deviation of random swaps is that of single draws.
    """
    found = {}
    for objective in (*OBJECTIVES, *(() if seen else (RANDOM,))):
        own = points(run.done, objective, measure, seen)
        row = [mean([p.value for p in some], [p.text for p in some], RANGES.get(measure))
               for span in range(len(SPANS)) for some in [_in(span, own)]]
        if objective == RANDOM:
            each = single(run.done, RANDOM, measure)
            for span, cell in enumerate(row):
                values = [value for bucket, value in each if span in (bucket, WHOLE)]
                if cell is not None:
                    cell["sd"] = float(np.std(values, ddof=1)) if len(values) > 1 else None
        found[objective] = row
    return found


def differences(run: Run, measure: str, against: str) -> dict[str, list[dict[str, Any] | None]]:
    """By how much explanations agree less than `against` (chance, noise, or the model's own answers), by bucket and over all.

    Paired by text and level; p after Holm's correction over all tests of the run and this measure. Above 0: the explanation
    changed more.
    """
    if against not in AGAINST:
        raise ValueError(f"against must be one of {', '.join(AGAINST)}, got {against!r}")
    width = RANGES[measure][1] - RANGES[measure][0]
    found: dict[str, list[dict[str, Any] | None]] = {}
    for objective in (*OBJECTIVES, *(() if against == "chance" else (RANDOM,))):
        own = points(run.done, objective, measure)
        rows = [difference([getattr(p, against) for p in some], [p.value for p in some], [p.text for p in some], width)
                for span in range(len(SPANS)) for some in [_in(span, own)]]
        found[objective] = [asdict(one) if one.n else None for one in rows]
    tests = [one for row in found.values() for one in row if one is not None]
    for one, p in zip(tests, stats.holm([t["p"] for t in tests]) if tests else (), strict=True):
        one["p"] = float(p)
    return found


def noise(run: Run, measure: str) -> dict[str, Any] | None:
    """How far the explainer agrees with itself about the same text."""
    read = MEASURES[measure]
    return mean([read(r["noise"]) for r in run.done], [r["text"] for r in run.done], RANGES.get(measure))


def model_agreement(run: Run) -> dict[str, list[dict[str, Any] | None]]:
    """How far the model's own answers without each word keep their order, clipped at 0 as explanations are."""
    found = {}
    for objective in (*OBJECTIVES, RANDOM):
        own = points(run.done, objective, "rank")
        found[objective] = [mean([p.model for p in some], [p.text for p in some], (0.0, 1.0))
                            for span in range(len(SPANS)) for some in [_in(span, own)]]
    return found


# --- Tables 5 to 7 --------------------------------------------------------------------------------------------------------


def quality(run: Run, what: str) -> dict[str, dict[str, Any] | None]:
    """A measure of texts as texts (perplexity, error_difference, new_errors, similarity): of the originals, of all
    candidates (each level the mean of a few that stand for all), and of those that each objective, or chance, chose.
    """
    texts = {record["case"]: record["text"] for record in run.done}
    within = (-1.0, 1.0) if what == "similarity" else None
    found = {"original": mean([_judged(r, what) for r in run.done], list(texts.values()), within)}
    pool: list[tuple[str, float]] = []
    for objective in (*OBJECTIVES, RANDOM):
        some = [row for row in rows(run.done, objective) if row.bucket is not None]
        found[objective] = mean([_judged(row.level, what) for row in some], [texts[row.case] for row in some], within)
        pool += [(texts[row.case], _mean(_number(one.get(what)) for one in row.level.get("pool_quality") or ()))
                 for row in some]
    found["candidates"] = mean([value for _, value in pool], [text for text, _ in pool], within)
    return found


def _judged(one: Mapping[str, Any], what: str) -> float:
    return _number((one.get("quality") or {}).get(what))


def confidence(run: Run) -> dict[str, list[dict[str, Any] | None]]:
    """The mean score of the label with 0 to 4 words changed: of the texts that get so far, and of those that get to 4.

    Under attack a text counts once, with the mean of its objectives' paths. The longer the texts, the further they get: only
    those that get to 4 are the same throughout.
    """
    texts, found = [record["text"] for record in run.done], dict[str, list[dict[str, Any] | None]]()
    for who, objectives in (("attack", OBJECTIVES), (RANDOM, (RANDOM,))):
        each = [{0: [float(record["score"])]} for record in run.done]
        for by_m, record in zip(each, run.done, strict=True):
            for row in (row for objective in objectives for row in rows([record], objective)):
                by_m.setdefault(row.m, []).append(float(row.level["score"]))
        shares = all(0 <= score <= 1 for by_m in each for scores in by_m.values() for score in scores)
        within = (0.0, 1.0) if shares else None
        for far in (False, True):
            kept = [(text, by_m) for text, by_m in zip(texts, each, strict=True) if not far or MOST_CHANGED in by_m]
            found[f"{who}, far" if far else who] = [
                mean([_mean(by_m[m]) for _, by_m in kept if m in by_m], [text for text, by_m in kept if m in by_m], within)
                for m in range(MOST_CHANGED + 1)]
    return found


def summary(run: Run) -> dict[str, Any]:
    """All of the above, of one run, as plain data."""
    judged = any(record.get("quality") for record in run.done)
    return {
        "dataset": run.dataset, "model": run.model, "explainer": run.explainer,
        "texts": {"of": sum(len(block["cases"]) for block in run.manifest["blocks"]), "tried": len(run.records),
                  **{status: sum(r["status"] == status for r in run.records)
                     for status in ("ok", "nothing to swap", "wrong", "failed")}},
        "deterministic": all(record.get("deterministic", False) for record in run.done) if run.done else None,
        "outside": float(np.mean([bool(record["outside"]) for record in run.done])) if run.done else None,
        "cells": {measure: cells(run, measure) for measure in MEASURES},
        "seen": {measure: cells(run, measure, seen=True) for measure in ("rank", "raw", "top")},
        "noise": {measure: noise(run, measure) for measure in MEASURES},
        "model_agreement": model_agreement(run),
        "below": {measure: {against: differences(run, measure, against) for against in ("chance", "noise")}
                  for measure in ("rank", "raw", "top")},
        "below_model": differences(run, "rank", "model"),
        "quality": {what: quality(run, what) for what in ("perplexity", "error_difference", "new_errors", "similarity")}
        if judged else None,
        "confidence": confidence(run)}
