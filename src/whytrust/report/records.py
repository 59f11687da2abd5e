"""What the records of an audit must hold. A run's folder may come from anyone, and its checksums only say that it is whole."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from whytrust.legible import in_line
from whytrust.report.outcomes import BASELINES, FULL, Record
from whytrust.report.slim import slim
from whytrust.store import Store

Check = Callable[[Any, str], None]
PARTS, KEPT, LONGEST, LARGEST = 100_000, 1000, 100_000, 1e100
"""Parts of an input, those that recovery keeps, characters of a name, and the largest number that anybody computes with."""
STATES = ("ok", "not fooled", "failed")
FORGED = (KeyError, IndexError, AttributeError, TypeError, ArithmeticError, RecursionError, UnicodeError)
"""What a reader stumbles over in a run that no study wrote."""


@contextmanager
def understood(folder: str | os.PathLike[str]) -> Iterator[None]:
    """Inside, a run is read; where it does not hold what a run holds, that is one clear error."""
    try:
        yield
    except FORGED as error:
        told = in_line(f"{type(error).__name__}: {error}")[:200]
        raise ValueError(f"the run in {folder} does not hold what its study writes ({told}); it was made by another version, "
                         "or changed since: take it from a copy, or do it again") from error


def bounded(store: Store) -> None:
    """Refuse a run whose texts fill memory rather than say anything, or whose numbers nobody can compute with."""
    _bounded({key: value for key, value in store.manifest.items() if key != "blocks"}, "manifest", LONGEST)
    for record in store.records():
        _bounded(record, f"case {str(record.get('case'))[:60]}", 10 * LONGEST)


def _bounded(value: Any, where: str, longest: int) -> None:
    if isinstance(value, str) and len(value) > longest:
        raise ValueError(f"a text in a run must have at most {longest:,} characters, got {len(value):,} in {where}")
    if isinstance(value, int | float) and abs(value) > LARGEST:
        raise ValueError(f"a number in a run must be at most {LARGEST:g} in size, got {value!r:.20} in {where}")
    if isinstance(value, Mapping | list):
        for inner in [*value.keys(), *value.values()] if isinstance(value, Mapping) else value:
            _bounded(inner, where, longest)


def records_of(store: Store) -> list[Record]:
    """The records of an audit as they are told in numbers, each looked through."""
    if store.manifest.get("study", "audit") != "audit":
        raise ValueError(f"{store.folder} must hold the run of an audit, and holds one of "
                         f"{in_line(str(store.manifest['study'])[:60])!r}; open it with what made it")
    _bounded({key: value for key, value in store.manifest.items() if key != "blocks"}, "manifest", LONGEST)
    _about(store.manifest)
    return list(slim(_looked_through(store)))


def with_names(records: Sequence[Record], store: Store) -> list[Record]:
    """The same, those that failed always with a name: of a case that was lost with its worker the record says none."""
    known = _names(store)
    return [record if record["status"] != "failed" or record.get("name") is not None else
            {**record, "name": known.get(record["case"], f"case {record['case']}")} for record in records]


def _names(store: Store) -> dict[str, str]:
    """What each case's input is called: the manifest has the names of the inputs in the order of the cases."""
    inputs = (store.manifest.get("hashes") or {}).get("inputs")
    cases = [case for block in store.blocks for case in block.cases]
    if not isinstance(inputs, Mapping) or len(inputs) != len(cases):
        return {}
    return dict(zip(cases, map(str, inputs), strict=True))


def _looked_through(store: Store) -> Iterator[Record]:
    for record in store.records():
        where = f"case {str(record.get('case'))[:60]}"
        _bounded(record, where, 10 * LONGEST)
        try:
            _record(record, "the record")
        except ValueError as error:
            raise ValueError(f"{error}, in {where} of {store.folder}: the run was made by another version, or changed since; "
                             "take it from a copy, or do it again") from None
        yield record


# --- what may stand somewhere -----------------------------------------------------------------------------------------


def _is(must: str, test: Callable[[Any], bool]) -> Check:
    def check(value: Any, where: str) -> None:
        if not test(value):
            shown = in_line(f"{value!r:.60}" if not isinstance(value, Mapping | list) else type(value).__name__)
            raise ValueError(f"{where} must be {must}, got {shown}")

    return check


def _finite(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= LARGEST


def _maybe(check: Check) -> Check:
    return lambda value, where: None if value is None else check(value, where)


def _listed(check: Check, most: int = PARTS) -> Check:
    whole = _is(f"a list of at most {most:,}", lambda value: isinstance(value, list) and len(value) <= most)

    def each(value: Any, where: str) -> None:
        whole(value, where)
        for i, one in enumerate(value):
            check(one, f"{where}.{i}")

    return each


def _named(check: Check) -> Check:
    """Something for each of several names."""
    def each(value: Any, where: str) -> None:
        MAPPING(value, where)
        for name, one in value.items():
            NAME(name, f"a name in {where}")
            check(one, f"{where}.{name[:60]}")

    return each


def _held(needed: Mapping[str, Check], others: Mapping[str, Check] | None = None) -> Check:
    """Known keys, of which some must be there; what else is there nobody reads."""
    def each(value: Any, where: str) -> None:
        MAPPING(value, where)
        for key, check in {**needed, **(others or {})}.items():
            if key in value:
                check(value[key], f"{where}.{key}")
            elif key in needed:
                raise ValueError(f"{where} must have {key!r}")

    return each


MAPPING = _is("an object of named values", lambda value: isinstance(value, Mapping))
NAME = _is(f"a text of at most {LONGEST:,} characters", lambda value: isinstance(value, str) and len(value) <= LONGEST)
TOLD = _is("a text", lambda value: isinstance(value, str) and len(value) <= 10 * LONGEST)
NUMBER = _is("a finite number", _finite)
SHARE = _is("a number from 0 to 1", lambda value: _finite(value) and 0 <= value <= 1)
WHOLE = _is("a whole number from 0", lambda value: type(value) is int and 0 <= value <= LARGEST)
SIZE = _is(f"a whole number from 1 to {PARTS:,}", lambda value: type(value) is int and 1 <= value <= PARTS)
BITS = _is("a text of 0 and 1", lambda value: isinstance(value, str) and len(value) <= PARTS and set(value) <= {"0", "1"})
FLAG = _is("true or false", lambda value: isinstance(value, bool))
LABEL = _is("a class's number or name", lambda value: _finite(value) or isinstance(value, bool)
            or (isinstance(value, str) and len(value) <= LONGEST))


def _judged(check: Check) -> Check:
    return _held({"any": check, "target": check})


_TRIALLED = _held({"flip": SHARE, "magnitude": SHARE, "random": SHARE})
_FACTS = _held({}, dict.fromkeys(("swapped", "share", "linf", "l2", "relative_l2", "signal_to_noise", "at_floor", "iterations",
                                  "margin"), _maybe(NUMBER)) | {"absence": _maybe(FLAG), "swaps": _maybe(TOLD)})
_COUNT = _is("a number from 0", lambda value: _finite(value) and value >= 0)
_FIT = _held({}, {"fidelity": _maybe(NUMBER), "fresh": _maybe(NUMBER)})
_KEPT = _held({}, {"flipped": FLAG, "found": _named(WHOLE), "blind": _named(_COUNT),
                   "overlap": _named(NUMBER), "overlap_random": NUMBER,
                   "fidelity": _named(_FIT), "failed": _named(TOLD)})
_METRIC = _held({}, {"wins": _named(_maybe(NUMBER)), "values": _named(_maybe(NUMBER)), "higher": FLAG})
_TRIAL = _held(
    {"strength": NAME, "k": _listed(SIZE), "flip": _judged(_named(BITS)), "random": _judged(_listed(SHARE)),
     "random_variance": _judged(_maybe(NUMBER)), "scores": _named(_listed(_maybe(NUMBER))), "attack": _FACTS, "asked": WHOLE,
     "distinct": WHOLE},
    {"blind": _judged(_named(_listed(SHARE))), "order": _named(_listed(WHOLE)),
     "positive": _named(_maybe(_held({"any": _TRIALLED}))), "fidelity": _named(_maybe(_FIT)),
     "failed": _named(TOLD), "pooling": _named(NAME), "recovery": _named(_KEPT), "metrics": _named(_METRIC)})
_LENGTH = _is("a length above 0", lambda value: _finite(value) and value > 0)
_RATE = _is("a whole number of samples a second", lambda value: type(value) is int and 1 <= value <= 10**7)
_SOUND = _held({}, {"hertz": _maybe(_listed(NUMBER)), "seconds": _maybe(_LENGTH), "rate": _maybe(_RATE),
                    "moment": _maybe(LABEL), "played": _maybe(LABEL)})
_STATE = _is(f"one of {', '.join(STATES)}", lambda value: value in STATES)
_ANY = _held({"case": NAME, "status": _STATE},
             {"name": _maybe(NAME), "source": _maybe(LABEL), "error": _maybe(TOLD), "truth": _maybe(LABEL),
              "clean_label": LABEL, "clean_name": NAME, "label": LABEL, "label_name": NAME, "calls": _maybe(WHOLE), "d": SIZE,
              "attack": _FACTS, "parts": _listed(NAME), "columns": _listed(NAME), "text": _maybe(MAPPING),
              "sound": _maybe(_SOUND), "channels_first": FLAG, "trials": _listed(_TRIAL, KEPT), "digest": _maybe(LABEL)})
_NEEDED = {"ok": ("d", "trials", "attack", "clean_label", "label"), "not fooled": ("attack", "clean_label"),
           "failed": ("error",)}
_STRENGTH = _is(f"{FULL!r} or a margin", lambda value: value == FULL or (isinstance(value, str) and _margin(value)))
_METRICS = _listed(_held({"metric": NAME, "admitted": FLAG}), KEPT)
_ABOUT = _held({}, {"model": _maybe(NAME), "data": _maybe(NAME), "inputs": _maybe(WHOLE), "sources": _maybe(WHOLE),
                    "explainers": _listed(NAME, KEPT), "strengths": _listed(_STRENGTH, KEPT), "trials": _listed(NAME, KEPT),
                    "command": TOLD, "notes": _listed(TOLD, KEPT), "named": _listed(NAME, KEPT), "metrics": _METRICS})


def _margin(strength: str) -> bool:
    try:
        return _finite(float(strength.removeprefix("margin ")))
    except ValueError:
        return False


def _about(manifest: Mapping[str, Any]) -> None:
    """What the run says of itself."""
    _held({}, {"spec": MAPPING, "about": _ABOUT, "hashes": _maybe(MAPPING)})(manifest, "manifest")
    names: Sequence[str] = manifest.get("about", {}).get("explainers", ())
    odd = [name for name in names if name in BASELINES or names.count(name) > 1]
    if odd:
        raise ValueError(f"manifest.about.explainers must have a name of its own for each, and none of {', '.join(BASELINES)}, "
                         f"got {in_line(odd[0][:60])!r}")


def _record(record: Record, where: str) -> None:
    _ANY(record, where)
    missing = [key for key in _NEEDED[record["status"]] if record.get(key) is None]
    if missing:
        raise ValueError(f"{where} of an input that is {record['status']!r} must have {missing[0]!r}")
    for i, trial in enumerate(record.get("trials", ())):
        _fits(trial, record.get("d", 0), f"{where}.trials.{i}")


def _fits(trial: Mapping[str, Any], parts: int, where: str) -> None:
    """Whether the numbers of a trial go together."""
    ks: Sequence[int] = trial["k"]
    if not ks or list(ks) != sorted(set(ks)) or ks[-1] != parts:
        raise ValueError(f"{where}.k must rise to the number of parts, {parts}, got {str(ks)[:60]}")
    for judge in ("any", "target"):
        rows = {**trial["flip"][judge], **trial.get("blind", {}).get(judge, {}), "random": trial["random"][judge]}
        short = [name for name, row in rows.items() if len(row) != len(ks)]
        if short:
            raise ValueError(f"{where}.flip.{judge} must say of each of {len(ks)} k whether the label flips, got "
                             f"{len(rows[short[0]])} of {in_line(short[0][:60])}")
    for what in ("scores", "order"):
        rows = trial.get(what, {})
        odd = [name for name, row in rows.items() if len(row) != parts or (what == "order" and sorted(row) != [*range(parts)])]
        if odd:
            raise ValueError(f"{where}.{what} must have each of {parts} parts once, and has not for {in_line(odd[0][:60])}")
    for k, kept in trial.get("recovery", {}).items():
        if not (k.isdecimal() and k.isascii() and len(k) < 9 and 1 <= int(k) <= min(parts, KEPT)):
            raise ValueError(f"{where}.recovery must be of 1 to {min(parts, KEPT)} parts, got {in_line(k[:60])!r}")
        counts = [*kept.get("found", {}).values(), *kept.get("blind", {}).values()]
        if kept.get("flipped") and not ("found" in kept and all(hits <= int(k) for hits in counts)):
            raise ValueError(f"{where}.recovery.{k} must say how many of {k} parts each explainer found")
