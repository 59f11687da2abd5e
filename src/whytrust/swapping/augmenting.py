"""Training texts attacked by word swaps: those that flip the label are what adversarial training learns from."""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from whytrust import engine
from whytrust.checked import CheckedModel
from whytrust.core import generator
from whytrust.language.written import Candidates
from whytrust.store import Block, Result
from whytrust.swapping.asking import OnCalls
from whytrust.swapping.constraints import Constraint
from whytrust.swapping.flipping import flip

FORMAT = 1
"""Raise it when the attack changes, so that texts found before are not taken for new ones."""
FLIPPED, HELD, WRONG, SKIPPED = "flipped", "held", "wrong", "skipped"
OUTCOMES = (FLIPPED, HELD, WRONG, SKIPPED)
BLOCK, ASKED = 16, 16


@dataclass(frozen=True)
class Attempt:
    """One labelled text, and what came of swapping its words: flipped, held, wrong from the start, or skipped (see `error`)."""

    place: int  # among the texts
    outcome: str
    label: Any  # the true one
    text: str  # with its words swapped, where the model was right
    swaps: int = 0
    words: int = 0
    calls: int = 0
    error: str = ""


OnAttempt = Callable[[Attempt], None]


@dataclass(frozen=True, eq=False)
class Attacks:
    """Labelled texts under attack, as a study: each one that the model has right, until the label flips.

    Of more than `limit` texts so many are drawn. `source` is what the candidates are called; with the constraints' names it
    says which attack this is, so that one whose code was tidied is still the same.
    """

    model: CheckedModel
    texts: Sequence[str]
    labels: Sequence[Any]
    candidates: Candidates
    constraints: tuple[Constraint, ...]
    most: float = 0.5
    limit: int | None = None
    seed: int = 0
    source: str = ""

    def __post_init__(self) -> None:
        """Refuse what could only fail later."""
        if len(self.labels) != len(self.texts) or not len(self.texts):
            raise ValueError(f"there must be texts, and one label for each, got {len(self.labels)} labels for "
                             f"{len(self.texts)} texts")
        if self.limit is not None and (isinstance(self.limit, bool) or not isinstance(self.limit, int) or self.limit < 1):
            raise ValueError("the number of texts to attack must be a whole number of at least 1, got "
                             f"{self.limit!r}; leave it out to attack them all")

    @property
    def places(self) -> list[int]:
        """Which of the texts are attacked, in their order."""
        if self.limit is None or self.limit >= len(self.texts):
            return list(range(len(self.texts)))
        return sorted(generator(self.seed, "attacked").permutation(len(self.texts))[:self.limit].tolist())

    def manifest(self) -> dict[str, Any]:
        """What makes this attack this attack."""
        told = json.dumps([[text, str(label)] for text, label in zip(self.texts, self.labels, strict=True)])
        return {"study": "flips", "seed": self.seed,
                "hashes": {"texts": _hash(told), "model": self._fingerprint()},
                "spec": {"attack": FORMAT, "candidates": self.source or self.candidates.name, "most": self.most,
                         "constraints": [one.name for one in self.constraints], "limit": self.limit, "block": BLOCK}}

    def blocks(self) -> list[Block]:
        """A few texts at a time."""
        cases = [str(place) for place in self.places]
        return [Block(f"texts-{start}", tuple(cases[start:start + BLOCK])) for start in range(0, len(cases), BLOCK)]

    def work(self, block: Block, on_calls: OnCalls) -> Iterator[Result]:
        """What came of each text."""
        places = [int(case) for case in block.cases]
        with self.model.asking():
            scores = self.model([self.texts[place] for place in places])
            on_calls(len(places))
            for place, row in zip(places, scores, strict=True):
                truth = self.model.class_index(str(self.labels[place]), scores.shape[1])
                right = int(self.model.labels(row[None])[0]) == truth
                found = self._attacked(self.texts[place], on_calls) if right else {"outcome": WRONG, "text": self.texts[place]}
                yield Result({"case": str(place), "status": "ok", **found})

    def _attacked(self, text: str, on_calls: OnCalls) -> dict[str, Any]:
        try:
            found = flip(self.model, text, self.candidates, self.constraints, self.most, on_calls)
        except ValueError as error:  # a text of one word, or one that the model does not take
            return {"outcome": SKIPPED, "text": text, "error": str(error)}
        return {"outcome": FLIPPED if found.flipped else HELD, "text": found.text.text, "swaps": len(found.swaps),
                "words": len(found.original), "calls": found.calls}

    def _fingerprint(self) -> str:
        """What the model says of a few texts, to three digits: another model rarely says the same."""
        with engine.single_threaded():  # the last digits hang on the threads
            scores = self.model([self.texts[place] for place in self.places[:ASKED]])
        self.model.labels(scores)  # a regressor has none, and says so
        return _hash("\n".join(" ".join(f"{score:.2e}" for score in row[:64]) for row in scores))


def attempts(attacks: Attacks, kept: Path | None = None, jobs: engine.Jobs = 1,
             label: str = "attacking texts") -> list[Attempt]:
    """What came of every text, in their order.

    With a folder to be `kept` in, an attack that was interrupted goes on, and one that is done is not done again.
    """
    with tempfile.TemporaryDirectory() if kept is None else nullcontext(kept) as place:
        folder = Path(place) / f"flips-{_hash(json.dumps(attacks.manifest()))}"
        records = list(engine.run(attacks, folder, jobs, label=label).records())
        problem = _problem(records)
        if problem is not None:
            shutil.rmtree(folder, ignore_errors=True)  # it may be mended, and must not be remembered for ever
            raise ValueError(problem)
    return [_attempt(record, attacks.labels[int(record["case"])]) for record in records]


def _problem(records: Sequence[Mapping[str, Any]]) -> str | None:
    """Why this was no attack at all, where it was none."""
    broken = next((record["error"] for record in records if record["status"] != "ok"), None)
    if broken is not None:
        return f"an attack by word swaps must be able to ask for candidates, constraints and the model: {broken}"
    tried = [record for record in records if record["outcome"] != WRONG]
    if tried and all(record["outcome"] == SKIPPED for record in tried):
        return f"at least one text must be such that words can be swapped, and none of {len(tried)} is: {tried[0]['error']}"
    return None


def _attempt(record: Mapping[str, Any], label: Any) -> Attempt:
    more = {name: record[name] for name in ("swaps", "words", "calls", "error") if name in record}
    return Attempt(int(record["case"]), record["outcome"], label, record["text"], **more)


def flipped_texts(model: CheckedModel, texts: Sequence[str], labels: Sequence[Any], candidates: Candidates,
                  constraints: Sequence[Constraint], most: float = 0.5, limit: int | None = None,
                  on_progress: OnAttempt | None = None, *, seed: int = 0, source: str = "", kept: Path | None = None,
                  jobs: engine.Jobs = 1) -> list[tuple[str, Any]]:
    """(text, true label) of texts that the model had right until a few of their words were swapped.

    `on_progress` is told of every text, also of those that held, were wrong from the start or had nothing to swap.
    """
    attacks = Attacks(model, texts, labels, candidates, tuple(constraints), most, limit, seed, source)
    found = attempts(attacks, kept, jobs)
    if on_progress is not None:
        for one in found:
            on_progress(one)
    return [(one.text, one.label) for one in found if one.outcome == FLIPPED]


def counted(found: Sequence[Attempt]) -> dict[str, int]:
    """How many texts were tried, how many of them attacked, and what came of it."""
    times = Counter(one.outcome for one in found)
    return {"tried": len(found), "attacked": times[FLIPPED] + times[HELD], **{name: times[name] for name in OUTCOMES},
            "calls": int(np.sum([one.calls for one in found], dtype=int))}


def _hash(told: str) -> str:
    return hashlib.blake2b(told.encode("utf-8", "replace"), digest_size=8).hexdigest()
