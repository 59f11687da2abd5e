"""The audit as a study: adversaries of a model's own inputs, every explainer tried on each."""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import islice
from typing import Any

import numpy as np

import whytrust.inputs as reading
from whytrust import api
from whytrust.checked import CheckedModel
from whytrust.core import Floats, LayeredParts, generator
from whytrust.domains.audio import AudioParts, as_heard
from whytrust.domains.image import laid_out
from whytrust.domains.text import TextParts
from whytrust.engine import Block, Result
from whytrust.explainers import NAMES
from whytrust.explanation import Explanation
from whytrust.measures import Case, Flips, Recovery
from whytrust.measures.case import Answers, Blind, no_controls
from whytrust.question import Question
from whytrust.studies import judged_cases, sounds, text_cases
from whytrust.studies.adversaries import FULL, Adversary
from whytrust.studies.blind import DONORS, BlindControls, Controls, Explained, read_off, word_counts
from whytrust.studies.data import Data, Item, by_source, check_classes, sources, spread
from whytrust.studies.described import code_of, saved_told

BLOCK = 16
"""Inputs that are worked on together: nets round differently in batches of other sizes, so this is fixed by the study."""
FORMAT = 1
COUNTED = 1000
"""Texts whose words are counted to say which words are rare."""
ASKED = 4
"""Inputs whose scores stand for the model in a run's manifest."""
SOUGHT = 16
"""Inputs that are looked at for blind controls where a block has too few."""
OnCalls = Callable[[int], None]


@dataclass(frozen=True, eq=False)
class AuditStudy:
    """Which explainers find what made the model change its mind?

    Every input is attacked; those that the model is fooled on are cases. `strengths` are further attacks, which stop at a
    margin: a ranking of explainers that depends on them is no finding. Parts are cut once, on the clean input, unless
    `cut_on` says "adversarial" as in Hoedt et al. (2022). Where `attacked` is given, inputs are those of that model, and what
    its preprocessing makes of them is explained: a waveform is attacked, and its spectrogram tried.
    """

    model: CheckedModel
    data: Data
    explainers: Mapping[str, Any]
    adversaries: Any  # (model, inputs, ids, strength, seed, on_calls) -> one Adversary or error each
    parts: Any = None
    of_parts: Mapping[str, Any] | None = None
    strengths: tuple[str, ...] = ()
    trials: tuple[str, ...] = ("flip", "all_positive", "recovery", "fidelity")
    flips: Flips = field(default_factory=Flips)
    recovery: Recovery = field(default_factory=Recovery)
    cut_on: str = "clean"
    batch_size: int | None = None
    seed: int = 0
    block: int = BLOCK
    spec: Mapping[str, Any] | None = None
    keep: str = "maps"
    command: str = ""  # how to do the same again
    domain: str = "image"
    attacked: CheckedModel | None = None
    by_source: bool = False  # a block is all inputs of some sources: those of one source are attacked as one
    shift: int = 0  # which inputs the model is asked about to say which one it is
    metrics: tuple[Any, ...] = ()  # of explanations, judged beside the trials
    admissions: tuple[Mapping[str, Any], ...] = ()  # whether each of them may crown a winner, and why
    rehearsed: bool = False  # only to see how many calls it takes

    def shifted(self, by: int) -> AuditStudy:
        """The same study, that asks the model about other inputs to say which model it is."""
        return replace(self, shift=by)

    # --- what a run is --------------------------------------------------------------------------------------------

    def manifest(self) -> dict[str, Any]:
        """What makes this run this run: a change of any of it is another run."""
        _ = self._truths  # classes that are not the model's are told before anything is done
        judged = {"judged": judged_cases.RECORDS} if self.metrics else {}
        return {"format": FORMAT, "study": "audit", "spec": {**(self.spec or {}), **judged}, "seed": self.seed,
                "hashes": {"inputs": self._digests(), "model": self.fingerprint(), "background": self._background(),
                           **code_of(self.model), **saved_told(self.adversaries)},
                "shares": list(self.explainers),
                "about": {"model": self.model.name, "data": self.data.what, "inputs": len(self.data.items),
                          "sources": sources(self.data.items), "explainers": list(self.explainers),
                          "strengths": [FULL, *self.strengths], "trials": list(self.trials), "command": self.command,
                          "notes": self._notes(), "named": [name for name in self.explainers if name in NAMES],
                          "metrics": [dict(one) for one in self.admissions]}}

    def _notes(self) -> list[str]:
        """What a reader must know of how the model was asked."""
        return list(api.bytes_note(self.model, next(self._readable())[1] if self.domain == "image" else None))

    def blocks(self) -> list[Block]:
        """Inputs in blocks of nearly the same size, or by where they come from."""
        ids = [item.id for item in self.data.items]
        if self.by_source:
            return [Block(f"{i:05d}", tuple(cases)) for i, cases in enumerate(by_source(self.data.items, self.block // 2))]
        count = -(-len(ids) // self.block)
        if any(item.source is not None for item in self.data.items):  # inputs of one source are no controls of each other
            return [Block(f"{i:05d}", tuple(ids[i::count])) for i in range(count)]
        ends = [len(ids) * i // count for i in range(count + 1)]  # equally large: inputs of a block are each other's controls
        return [Block(f"{i:05d}", tuple(ids[ends[i]:ends[i + 1]])) for i in range(count)]

    def _digests(self) -> dict[str, str]:
        """What each input is, by its name, so that one that was changed or renamed since can be named."""
        times = Counter(item.name for item in self.data.items)
        return {item.name if times[item.name] == 1 else f"{item.name} ({item.id})":
                hashlib.blake2b(f"{item.id}{item.source}{item.truth}{item.digest()}".encode(), digest_size=8).hexdigest()
                for item in self.data.items}

    def fingerprint(self) -> str:
        """What the model says of a few inputs that can be read, to three digits: another model rarely says the same."""
        said = []
        for _, _, scores in islice(self._readable(), 1 if self.shift else ASKED):
            label = int(self.model.labels(scores[None])[0])  # a regressor has none, and says so
            said.append(f"{label}: {' '.join(f'{score:.2e}' for score in scores[:64])}")
        return hashlib.blake2b("\n".join(said).encode(), digest_size=8).hexdigest()

    def _readable(self) -> Iterator[tuple[Item, Any, Any]]:
        """(item, input, scores) of the inputs that can be read and that the model takes; the first error where there are none.

        The others are told as their own failures, when their turn comes.
        """
        errors: list[Exception] = []
        for item in spread(self.data.items, ASKED, self.shift):
            try:
                value = self._prepared(item)
                found = item, value, self.model(self._whole(value, item))[0]
            except (ValueError, TypeError, OSError) as error:
                errors.append(error)
            else:
                yield found
        if len(errors) == len(self.data.items):
            raise errors[0]

    def some_parts(self) -> int:
        """How many parts the first input is cut into that can be read."""
        item, value, _ = next(self._readable())
        return len(self._cut(value, item).names)

    def _background(self) -> str | None:
        background = (self.of_parts or {}).get("background")
        return None if background is None else hashlib.blake2b(repr(background).encode(), digest_size=8).hexdigest()

    @cached_property
    def _truths(self) -> dict[str, int]:
        """The number of each input's true class, where it has one."""
        if all(item.truth is None for item in self.data.items):
            return {}
        columns = len(self.model.classes) if self.model.classes is not None else self._columns
        return check_classes(self.model, self.data, columns)

    @cached_property
    def _columns(self) -> int:
        """How many classes the model has."""
        return len(next(self._readable())[2])

    # --- one block ------------------------------------------------------------------------------------------------

    def work(self, block: Block, on_calls: OnCalls) -> Iterator[Result]:
        """Attack the inputs of a block together, explain those that were fooled, and then put the explanations on trial.

        What is said of one input is a blind control of the others in its block.
        """
        items, calls = [self._item(case) for case in block.cases], _Calls(on_calls)
        with self.model.asking():
            given, errors = self._read(items)
            fooled = self._attacked(given, FULL, calls)
            others = {s: self._attacked({c: given[c] for c in given if _reached(fooled.get(c))}, s, calls)
                      for s in self.strengths}
            shared = calls.taken() / max(len(given), 1)  # inputs are attacked together
            opened, spent = {}, {}
            for item in items:
                if _reached(one := fooled.get(item.id)):
                    opened[item.id] = self._opened(item, one, calls)
                    spent[item.id] = calls.taken()
            blind = self._blind(block, opened, calls)
            for item in items:
                found = self._result(item, errors.get(item.id) or fooled[item.id], {s: others[s].get(item.id) for s in others},
                                     opened.pop(item.id, None), blind.get(item.id, no_controls), calls)
                own = round(calls.taken() + spent.get(item.id, 0) + (shared if item.id in given else 0))
                yield Result({**found.record, "calls": own}, found.arrays)

    def _item(self, case: str) -> Item:
        return self._by_id[case]

    @cached_property
    def _by_id(self) -> dict[str, Item]:
        return {item.id: item for item in self.data.items}

    def _read(self, items: Sequence[Item]) -> tuple[dict[str, Any], dict[str, Exception]]:
        given: dict[str, Any] = {}
        errors: dict[str, Exception] = {}
        for item in items:
            try:
                given[item.id] = self._prepared(item)
            except (ValueError, TypeError, OSError) as error:
                errors[item.id] = error
        return given, errors

    def _prepared(self, item: Item) -> Any:
        """The input as the attack takes it: a picture with its channels where the model wants them, of a text what is read."""
        value = self.data.read(item)
        if self.domain == "text":
            return text_cases.taken_in(self.model, value)
        if self.domain == "audio":
            return as_heard(value, (self.attacked or self.model).layout)
        return laid_out(value, self.model.layout) if self.domain == "image" else value

    def _whole(self, value: Any, item: Item) -> Any:
        cut = self._cut(value if self.attacked is None else sounds.preprocessed(self.attacked, value), item)
        return cut.compose(np.ones((1, len(cut.names)), dtype=bool), generator(self.seed))

    def _cut(self, value: Any, item: Item) -> LayeredParts:
        parts: Any
        if isinstance(self.parts, list | tuple):
            parts = self.parts[int(item.id)]  # cut by the user, input by input
            if self.cut_on == "clean":
                reading.check_own(value, parts)
            parts = parts.like(value)
        elif self.domain == "audio":
            parts = AudioParts.cut(value, self.parts, **(self.of_parts or {}))
        elif self.domain == "text":
            parts = TextParts.cut(value, "words", **(self.of_parts or {}))
        else:
            parts = reading.cut(value, self.parts, self.model.layout, dict(self.of_parts or {}))
        if not isinstance(parts, LayeredParts):
            raise TypeError(f"an audit lays one input over another, which {parts.domain} parts cannot be; it takes images, "
                            "sounds, texts and table rows")
        return parts

    def _attacked(self, given: Mapping[str, Any], strength: str, on_calls: OnCalls) -> dict[str, Adversary | Exception]:
        if not given:
            return {}
        model = self.model if self.attacked is None else self.attacked
        found = self.adversaries(model, list(given.values()), list(given), strength, self.seed, on_calls)
        if self.attacked is not None:
            found = {i: sounds.behind(self.attacked, one, self.data.rate) for i, one in found.items()}
        return {case: found[i] for i, case in enumerate(given)}

    def _opened(self, item: Item, found: Any, on_calls: OnCalls) -> _Opened | Exception:
        """The adversary as a case, with what each explainer says of it."""
        try:
            cut = self._cut(found.clean if self.cut_on == "clean" else found.changed, item)
            case = self._case(found, cut, on_calls)
            return _Opened(cut, case, self._answers(case.question, item.id, FULL))
        except (ValueError, TypeError, OSError) as error:
            return error

    def _case(self, found: Any, cut: LayeredParts, on_calls: OnCalls) -> Case:
        return Case(self.model, cut.like(found.changed), found.clean, found.clean_label, found.label, self.batch_size, on_calls)

    def _result(self, item: Item, found: Adversary | Exception, others: Mapping[str, Adversary | Exception | None],
                own: _Opened | Exception | None, blind: Blind, on_calls: OnCalls) -> Result:
        """The record of one input: failed, not fooled, or tried."""
        record: dict[str, Any] = {"case": item.id, "name": item.name, "source": item.source, "status": "failed", "error": None,
                                  "truth": None, "digest": item.digest()}
        if isinstance(found, Exception):
            return Result({**record, "error": f"{type(found).__name__}: {found}{self._advice(item, found)}"}, {})
        record |= {"clean_label": found.clean_label, "clean_name": self.model.class_name(found.clean_label, self._columns),
                   "label": found.label, "status": "ok" if found.reached else "not fooled", "attack": found.facts}
        record["truth"] = self._truths.get(item.id)
        if own is None:
            return Result(record, {})
        try:
            if isinstance(own, Exception):
                raise own
            return self._tried(record, item, found, others, own, blind, on_calls)
        except (ValueError, TypeError, OSError) as error:
            return Result({**record, "status": "failed", "error": f"{type(error).__name__}: {error}"}, {})

    @cached_property
    def _word_counts(self) -> Counter[str]:
        """How often each word occurs in the texts of the run, or in a thousand of them; empty for other inputs."""
        counts: Counter[str] = Counter()
        for item in spread(self.data.items, COUNTED)[:COUNTED] if self.domain == "text" else ():
            with suppress(ValueError, TypeError, OSError):  # an input that cannot be read fails when its turn comes
                counts.update(word_counts(self.data.read(item)))
        return counts

    def _blind(self, block: Block, opened: Mapping[str, _Opened | Exception], on_calls: OnCalls) -> dict[str, Blind]:
        """The blind controls of each adversary of a block: what explainers say of the other ones, and what inputs show.

        Other inputs are those of other sources in the block, in a circle that begins after this one. Where they are too few,
        other inputs of the run are attacked and explained as well.
        """
        explained = {case: self._explained(self._item(case), one) for case, one in opened.items() if isinstance(one, _Opened)}
        cases, others = list(explained), {}
        tried: dict[str, Explained | None] = {**explained, **{case: None for case in block.cases if case not in explained}}
        for place, case in enumerate(cases):
            around = [*cases[place + 1:], *cases[:place]]
            others[case] = [other for other in around if not self._same_source(case, other)]
            if len(others[case]) < DONORS and not block.alone:
                others[case] += (self._stand_ins(case, tried) if self.rehearsed else
                                 self._spare(case, others[case], tried, on_calls))
        made = BlindControls({case: one for case, one in tried.items() if one is not None})
        return {case: partial(self._controls, made, case, others[case]) for case in cases}

    def _controls(self, made: BlindControls, case: str, others: Sequence[str], parts: LayeredParts) -> Controls:
        return made.of(case, parts, self._shown(self._item(case), parts), others)

    def _same_source(self, case: str, other: str) -> bool:
        source = self._item(case).source
        return source is not None and source == self._item(other).source

    def _explained(self, item: Item, one: _Opened) -> Explained:
        parts = one.case.parts
        return Explained(parts, self._shown(item, parts), {n: e for n, e in one.answers.items() if isinstance(e, Explanation)})

    def _shown(self, item: Item, parts: LayeredParts) -> dict[str, Floats]:
        """What can be read off an input's parts; in texts, words are rare that are rare in the other texts."""
        counts = self._word_counts - word_counts(self.data.read(item)) if self.domain == "text" else {}
        return read_off(parts, generator(self.seed, "blind", item.id), counts)

    def _stand_ins(self, case: str, tried: dict[str, Explained | None]) -> list[str]:
        """Random scores in place of other inputs' explanations: they take as many calls."""
        own, rng = tried[case], generator(self.seed, "stand-ins", case)
        assert own is not None
        names = [f"{case}, stand-in {i}" for i in range(DONORS)]
        for name in names:
            answers = {n: replace(e, scores=rng.normal(size=len(e.scores)), map=None) for n, e in own.answers.items()}
            tried[name] = replace(own, answers=answers)
        return names

    def _spare(self, case: str, known: Sequence[str], tried: dict[str, Explained | None], on_calls: OnCalls) -> list[str]:
        """Inputs of other sources that follow this one in the run and can be fooled, until there are enough.

        What came of each input that was tried is kept in `tried`; an input's failure is told as its own, in its own block.
        """
        ids = [item.id for item in self.data.items]
        place = ids.index(case)
        strangers = [other for other in (*ids[place + 1:], *ids[:place])
                     if other not in known and not self._same_source(case, other)][:SOUGHT]
        given, _ = self._read([self._item(other) for other in strangers if other not in tried])
        fooled = self._attacked(given, FULL, on_calls)
        found: list[str] = []
        for other in strangers:
            if len(known) + len(found) == DONORS:
                break
            if other not in tried:
                own = self._opened(self._item(other), fooled[other], on_calls) if _reached(fooled.get(other)) else None
                tried[other] = self._explained(self._item(other), own) if isinstance(own, _Opened) else None
            found += [other] if tried[other] is not None else []
        return found

    def _advice(self, item: Item, error: Exception) -> str:
        """Images of a folder have sizes of their own; the model's message cannot know the audit's word for that."""
        of_a_file = isinstance(item.value, str | os.PathLike) and self.data.size is None
        if of_a_file and self.domain == "audio" and "each input came with shape" in str(error):
            return "; for sounds of several lengths say seconds=, which cuts out their middle and pads what is shorter"
        return ("; for images of several sizes say size=, the pixels of the middle square, which makes all of one size and RGB"
                if of_a_file and self.domain == "image" and "each input came with shape" in str(error) else "")

    def _tried(self, record: dict[str, Any], item: Item, found: Adversary,
               others: Mapping[str, Adversary | Exception | None], own: _Opened, blind: Blind,
               on_calls: OnCalls) -> Result:
        cut = own.cut
        record |= {"d": len(cut.names), "label_name": self.model.class_name(found.label, self._columns),
                   "parts": list(cut.names)}
        if self.domain == "tabular":
            record["columns"] = list(cut.over(found.clean).names)
        elif self.domain == "audio":
            record["sound"] = sounds.facts(cut, found, self.of_parts or {})
            if found.played is not None and found.played.label is not None:
                record["sound"]["played"] = self.model.class_name(found.played.label, self._columns)
        elif self.domain == "text":
            record["text"] = text_cases.facts(found, self.data.read(item))
        else:
            record["channels_first"] = self.model.layout == "NCHW"
        trials = [self._trial(item, found, FULL, own, blind)]
        for strength, one in others.items():
            if _reached(one):
                case = self._case(one, cut, on_calls)
                again = _Opened(cut, case, self._answers(case.question, item.id, strength))
                trials.append(self._trial(item, one, strength, again, blind))
        return Result({**record, "trials": trials}, self._arrays(cut, found))

    def _trial(self, item: Item, found: Any, strength: str, own: _Opened, blind: Blind) -> dict[str, Any]:
        case, main = own.case, strength == FULL
        rng = generator(self.seed, "trial", item.id, strength)
        seen = {name: e for name, e in own.answers.items() if isinstance(e, Explanation)}
        trial: dict[str, Any] = {"strength": strength, "label": found.label, "attack": found.facts}
        trial |= self.flips(case, lambda question: own.answers, rng, blind)
        trial["pooling"] = self._poolings(seen)
        if main and self.metrics:
            def again(name: str, question: Question) -> Any:
                return self.explainers[name](question, generator(self.seed, "explain", item.id, strength))

            trial["metrics"] = judged_cases.judged(case.question, seen, again, self.metrics, self.seed, item.id)
        if main and {"recovery", "fidelity"} & set(self.trials):
            trial["recovery"] = self.recovery(case, lambda question: self._answers(question, item.id, strength), rng, blind)
        return trial

    def _answers(self, question: Question, case: str, strength: str) -> dict[str, Explanation | Exception]:
        return {name: self._answer(one, question, case, strength) for name, one in self.explainers.items()}

    @staticmethod
    def _poolings(seen: Mapping[str, Explanation]) -> dict[str, str]:
        """How each map became one number a part: explainers that differ in that alone can get different verdicts."""
        return {name: str(e.settings["pooling"]) for name, e in seen.items() if e.settings.get("pooling")}

    def _answer(self, explainer: Any, question: Question, case: str, strength: str) -> Explanation | Exception:
        try:
            answer = explainer(question, generator(self.seed, "explain", case, strength))
            if not isinstance(answer, Explanation) or np.shape(answer.scores) != (question.d,):
                shape = np.shape(getattr(answer, "scores", ()))
                raise TypeError(f"an explainer must return an Explanation with one score a part, ({question.d},), got "
                                f"{type(answer).__name__} with scores {shape}")
            if not np.isfinite(answer.scores).all():
                raise ValueError(f"scores must be finite, got {int((~np.isfinite(answer.scores)).sum())} that are not")
            return answer
        except Exception as error:  # an explainer that fails on an input is recorded, and the others go on
            return error

    def _arrays(self, cut: LayeredParts, found: Adversary) -> dict[str, Any]:
        if self.keep == "scores":
            return {}
        if self.domain == "audio":
            return sounds.arrays(cut, found)
        if isinstance(cut, TextParts):
            return text_cases.arrays(cut, found)
        if self.domain == "tabular":
            return {name: np.array(cut.like(row).view.values) for name, row in  # type: ignore[attr-defined]
                    (("clean", found.clean), ("adversarial", found.changed))}
        return {"clean": found.clean, "adversarial": found.changed, "labels": cut.labels}  # type: ignore[attr-defined]


@dataclass(frozen=True, eq=False)
class _Opened:
    """An adversary as a case, how it was cut, and what each explainer says of it."""

    cut: LayeredParts
    case: Case
    answers: Answers


@dataclass
class _Calls:
    """Counts model calls on their way to whoever shows progress."""

    on_calls: OnCalls
    count: int = 0

    def __call__(self, calls: int) -> None:
        self.count += calls
        self.on_calls(calls)

    def taken(self) -> int:
        """How many since it was last asked."""
        count, self.count = self.count, 0
        return count


def _reached(found: Adversary | Exception | None) -> bool:
    return isinstance(found, Adversary) and found.reached
