"""Praher, Prinz, Flexer, Widmer (2021), and the sound half of Hoedt et al. (2022): does LIME find what fools a detector?

One study in five kinds of blocks: how right the detector is, excerpts of attacked songs, shapes drawn onto spectrograms, how
explanations settle as samples grow, and a grid of settings of the attack. A block is a song (or a setting), so a run can be had
in pieces.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whytrust import api
from whytrust.attacks.carlini_wagner import CarliniWagner
from whytrust.attacks.song import AttackedSong
from whytrust.checked import CheckedModel
from whytrust.core import generator
from whytrust.domains.audio import AudioParts
from whytrust.engine import Block, Result, single_threaded
from whytrust.explainers.lime import Lime
from whytrust.measures import Case, Flips, Recovery
from whytrust.measures.case import Answers
from whytrust.models.detection import smoothed
from whytrust.models.songs import CLASSES, FRAME_RATE, REACH, Song, Songs, SongSet
from whytrust.question import Question
from whytrust.studies.adversaries import FULL
from whytrust.studies.contents import Refilled
from whytrust.studies.described import code_of
from whytrust.studies.drawing import SHAPES, drawn_until
from whytrust.studies.excerpts import SIGNALS, OfSongs, excerpts_of, stretch
from whytrust.studies.settling import settled

DIRECTIONS = CLASSES
"""By what the detector said before: "no sing" → "sing", and "sing" → "no sing"."""
CONTENTS = ("zero", "min")
"""What hidden segments may hold, beside the mean."""
SAMPLES, EACH, ITERATIONS = 8192, 10, 1000
BATCH = 8
"""Excerpts that the net is asked about together: larger batches fall out of a processor's cache."""
KINDS = ("detector", "excerpts", "drawings", "settling", "tuning")
OnCalls = Callable[[int], None]


def paper_lime(samples: int = SAMPLES) -> Lime:
    """LIME as the paper has it: plain coin flips, the excerpt itself first, cosine kernel of width .25, ridge of 1."""
    return Lime(samples=samples, variant="reference", design="plain", surrogate=False)


def segments(detector: Any, log_mel: NDArray[Any], fill: str = "mean") -> AudioParts:
    """An excerpt in 5 × 4 segments; a hidden one takes the mean of the excerpt."""
    units = {name: value for name, value in detector.explain_options.items() if name != "parts"}
    return AudioParts.cut(log_mel, "tf:5x4", fill=fill, **units)


@dataclass(frozen=True, eq=False)
class VeracityStudy:
    """Songs of a test set attacked as waveforms and as magnitudes, and LIME tried on the excerpts that turned.

    `each` is how many excerpts of a song and direction are tried at most, `contents` for how many of those hidden segments are
    also zero or the least value, `settling` how many excerpts are explained again and again with growing samples, `grid` the
    settings of the attack that are compared on the validation songs. Of the kinds of blocks some may be left out.
    """

    detector: Any
    songs: SongSet
    each: int = EACH
    samples: int = SAMPLES
    iterations: int = ITERATIONS
    variant: str = "authors"
    contents: int = 1
    drawings: int = 16
    settling: int = 4
    grid: Mapping[str, tuple[Mapping[str, float], ...]] = field(default_factory=dict)  # by signal
    tuned_iterations: int = 200
    kinds: tuple[str, ...] = KINDS
    seed: int = 0
    facts: Mapping[str, Any] = field(default_factory=dict)  # told in the manifest's "about"

    # --- what a run is --------------------------------------------------------------------------------------------

    def manifest(self) -> dict[str, Any]:
        """What makes this run this run."""
        names = ("each", "samples", "iterations", "variant", "contents", "drawings", "settling", "tuned_iterations",
                 "kinds")
        spec = {"paper": "veracity", **{name: getattr(self, name) for name in names}, "threshold": self.detector.threshold,
                "attack": {signal: dict(options) for signal, options in SIGNALS.items()},
                "grid": {signal: [dict(one) for one in some] for signal, some in self.grid.items()},
                "test": list(self.songs.test.names), "valid": list(self.songs.valid.names)}
        return {"format": 1, "study": "veracity", "spec": spec, "seed": self.seed, "hashes": {
                    "model": self._fingerprint(), **code_of(self.model)},
                "about": {"data": self.songs.what, "detector": self.detector.facts, "songs": len(self.songs.test),
                          **self.facts}}

    def _fingerprint(self) -> str:
        """What the detector says of the first song that can be read, to three digits; the others are told in their turn."""
        with single_threaded():  # another number of threads rounds otherwise
            said = self.detector.hearing.logits(next(self._readable(self.songs.test)).wave)[:: FRAME_RATE]
        return hashlib.blake2b(" ".join(f"{logit:.2e}" for logit in said).encode(), digest_size=8).hexdigest()

    @staticmethod
    def _readable(songs: Songs) -> Iterator[Song]:
        """The songs that can be read; the first error where there are none."""
        first: Exception | None = None
        there = False
        for number in range(len(songs)):
            try:
                song = songs[number]
            except (ValueError, TypeError, OSError) as error:
                first = first or error
                continue
            there = True
            yield song
        if first is not None and not there:
            raise first

    def blocks(self) -> list[Block]:
        """Both attacks on the first song, a drawing on it, then the second song, …: early tables have all of it."""
        found: list[Block] = []
        for number in range(len(self.songs.test)):
            found.append(Block(f"detector-{number:03d}", (f"detector.{number:03d}",)))
            found += [Block(f"excerpts-{number:03d}-{signal}",
                            tuple(f"{signal}.{number:03d}.{direction.replace(' ', '-')}.{slot}" for direction in DIRECTIONS
                                  for slot in range(self.each))) for signal in SIGNALS]
            if number < self.drawings:
                found.append(Block(f"drawings-{number:03d}", (f"drawing.{number:03d}",)))
            if number < self.settling:
                found.append(Block(f"settling-{number:03d}", (f"settling.{number:03d}",)))
        found += [Block(f"tuning-{signal}-{i:03d}", (f"tuning.{signal}.{i:03d}",))
                  for signal, settings in self.grid.items() for i in range(len(settings))]
        return [block for block in found if block.id.partition("-")[0] in self.kinds]

    def work(self, block: Block, on_calls: OnCalls) -> Iterator[Result]:
        """One block, of whichever kind."""
        kind, _, rest = block.id.partition("-")
        with self.model.asking():
            if kind == "detector":
                yield self._judged(block.cases[0], int(rest))
            elif kind == "excerpts":
                number, signal = rest.split("-")
                yield from self._excerpts(block, int(number), signal, on_calls)
            elif kind == "drawings":
                yield self._drawing(block.cases[0], int(rest), on_calls)
            elif kind == "settling":
                yield self._settling(block.cases[0], int(rest), on_calls)
            else:
                signal, number = rest.split("-")
                yield self._tuning(block.cases[0], signal, int(number), on_calls)

    @cached_property
    def model(self) -> CheckedModel:
        """The detector on excerpts."""
        return api.model(self.detector.net, **self.detector.model_options)

    def cut(self, log_mel: NDArray[Any], fill: str = "mean") -> AudioParts:
        """The segments that are explained."""
        return segments(self.detector, log_mel, fill)

    # --- excerpts -------------------------------------------------------------------------------------------------

    def attack(self, signal: str, **changes: Any) -> OfSongs:
        """The attack of the paper on this signal."""
        settings: dict[str, Any] = {**SIGNALS[signal], "iterations": self.iterations, "variant": self.variant, **changes}
        return OfSongs(self.songs.test, self.detector.hearing, self.detector.threshold, CarliniWagner(**settings), signal)

    def _excerpts(self, block: Block, number: int, signal: str, on_calls: OnCalls) -> Iterator[Result]:
        song, made = self.songs.test[number], self.attack(signal)
        attacked = made.attacked(song, FULL, on_calls)
        before = excerpts_of(self.detector.hearing.log_mel(song.wave))
        after = excerpts_of(made.heard.log_mel(attacked.adversarial))
        waves = made.waves(song, attacked)
        facts = made.facts(attacked, waves)
        found = {direction: self._turned(attacked, before, after, CLASSES.index(direction), (signal, number))
                 for direction in DIRECTIONS}
        for case in block.cases:
            direction, slot = case.split(".")[2].replace("-", " "), int(case.split(".")[3])
            record: dict[str, Any] = {"case": case, "kind": "excerpts", "signal": signal, "song": song.name, "error": None,
                                      "direction": direction, "status": "not found", "attack": facts}
            if slot >= len(found[direction]):
                yield Result(record, {})
                continue
            frame = found[direction][slot]
            try:
                record |= {"status": "ok", "frame": frame,
                           **self._tried(case, before(frame), after(frame), CLASSES.index(direction), slot, on_calls)}
            except (ValueError, TypeError) as error:
                yield Result({**record, "status": "failed", "error": f"{type(error).__name__}: {error}"}, {})
                continue
            yield Result(record, self._kept(song, waves, before, after, frame) if slot == 0 else {})

    def _turned(self, attacked: AttackedSong, before: Callable[[int], Any], after: Callable[[int], Any], label: int,
                case: tuple[str, int]) -> list[int]:
        """Frames whose answer was `label` and is the other one now, drawn at random and looked at again as excerpts."""
        inside = np.zeros(len(attacked.before), dtype=bool)
        inside[REACH:-REACH] = True
        turned = np.flatnonzero(inside & attacked.flipped & (attacked.sung == bool(label)))
        order = generator(self.seed, "turned", *case, label).permutation(turned)
        found: list[int] = []
        for frame in order.tolist():
            if len(found) == self.each:
                break
            labels = self.model.labels(self.model(np.stack([before(frame), after(frame)])))
            if labels[0] == label != labels[1]:
                found.append(int(frame))
        return found

    def _tried(self, case: str, clean: Any, changed: Any, label: int, slot: int, on_calls: OnCalls) -> dict[str, Any]:
        """The flips, with all that scored positively, and recovery; `lime:zero` is LIME with other contents."""
        trial = Case(self.model, self.cut(changed), clean, label, 1 - label, BATCH, on_calls)
        first = slot < self.contents

        def explain(question: Question) -> Answers:
            main = question.original is not None and np.array_equal(question.input[0], changed)
            lime = paper_lime(self.samples)
            asked: dict[str, Any] = {"lime": lime}
            if first and main:
                asked |= {f"lime:{fill}": Refilled(lime, fill) for fill in CONTENTS}
            return {name: one(question, generator(self.seed, "lime", case)) for name, one in asked.items()}

        rng = generator(self.seed, "trial", case)
        found = Flips(draws=10)(trial, explain, rng)
        return {"trial": found | {"recovery": Recovery((1, 3, 5))(trial, explain, rng)},
                "prediction": [float(s) for s in trial.laid.original]}

    @staticmethod
    def _kept(song: Song, waves: NDArray[np.float32], before: Callable[[int], Any], after: Callable[[int], Any],
              frame: int) -> dict[str, Any]:
        return {"clean": before(frame), "adversarial": after(frame), "clean_wave": stretch(song.wave, frame),
                "adversarial_wave": stretch(waves, frame)}

    # --- the detector, drawings, settling, tuning -----------------------------------------------------------------

    def _judged(self, case: str, number: int) -> Result:
        """How many frames of a song the detector answers rightly, smoothed as in the paper; nothing where it has no labels."""
        song = self.songs.test[number]
        record: dict[str, Any] = {"case": case, "kind": "detector", "song": song.name, "status": "not found", "error": None}
        if song.sung is None:
            return Result(record, {})
        answers, truth = smoothed(self.detector.hearing.probabilities(song.wave)) > self.detector.threshold, song.labels
        return Result({**record, "status": "ok", "frames": len(truth), "sung": int(truth.sum()),
                       "hits": int((answers & truth).sum()), "false_alarms": int((answers & ~truth).sum())}, {})

    def _quiet_frame(self, number: int, what: str) -> tuple[Song, int | None]:
        """A random frame of a song in which nobody sings, as the detector hears it."""
        song = self.songs.test[number]
        answers = self.detector.hearing.probabilities(song.wave) > self.detector.threshold
        there = np.flatnonzero(~answers[REACH:-REACH]) + REACH
        return song, int(generator(self.seed, what, number).choice(there)) if len(there) else None

    def _drawing(self, case: str, number: int, on_calls: OnCalls) -> Result:
        song, frame = self._quiet_frame(number, "drawing")
        record: dict[str, Any] = {"case": case, "kind": "drawings", "song": song.name, "status": "not found", "error": None,
                                  "frame": frame}
        if frame is None:
            return Result(record, {})
        excerpt = excerpts_of(self.detector.hearing.log_mel(song.wave))(frame)
        shape = SHAPES[number % len(SHAPES)]
        found = drawn_until(self.model, self.cut, excerpt, shape, paper_lime(self.samples),
                            generator(self.seed, "drawing", case), on_calls)
        if found is None:
            return Result({**record, "shape": shape.name}, {})
        return Result({**record, "status": "ok", **found.record}, {"clean": excerpt, "drawn": found.drawn})

    def _settling(self, case: str, number: int, on_calls: OnCalls) -> Result:
        song, frame = self._quiet_frame(number, "settling")
        record = {"case": case, "kind": "settling", "song": song.name, "status": "not found", "error": None, "frame": frame}
        if frame is None:
            return Result(record, {})
        excerpt = excerpts_of(self.detector.hearing.log_mel(song.wave))(frame)
        question = Question(self.model, self.cut(excerpt), 1, BATCH, on_calls=on_calls)
        return Result({**record, "status": "ok", **settled(question, self.samples, generator(self.seed, "settling", case))}, {})

    def _tuning(self, case: str, signal: str, number: int, on_calls: OnCalls) -> Result:
        """How many frames of the validation songs turn with these settings."""
        settings = dict(self.grid[signal][number])
        made = replace(self.attack(signal, **settings, iterations=self.tuned_iterations), songs=self.songs.valid)
        facts = [made.attacked(song, FULL, on_calls).facts() for song in self._readable(self.songs.valid)]
        totals = {name: int(sum(one[name] for one in facts)) for name in ("frames", "flipped", "sung", "sung_flipped")}
        noise = [one["signal_to_noise"] for one in facts if np.isfinite(one["signal_to_noise"])]
        return Result({"case": case, "kind": "tuning", "status": "ok", "error": None, "signal": signal, "settings": settings,
                       "variant": made.attack.variant, "songs": len(facts), **totals,
                       "signal_to_noise": float(np.mean(noise)) if noise else None,
                       "at_floor": _mean_known(facts, "at_floor")}, {})


def _mean_known(facts: Sequence[Mapping[str, Any]], name: str) -> float | None:
    known = [one[name] for one in facts if one[name] is not None]
    return float(np.mean(known)) if known else None
