"""Drawings on one piece that is at hand as a log-mel spectrogram alone, without its sound (Praher et al. 2021, Figure 1)."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property, partial
from typing import Any

import numpy as np

from whytrust import api
from whytrust.checked import CheckedModel
from whytrust.core import generator
from whytrust.engine import Block, Result
from whytrust.studies.described import code_of
from whytrust.studies.drawing import SHAPES, Cells, drawn_until, named, spread
from whytrust.studies.veracity import SAMPLES, paper_lime, segments


@dataclass(frozen=True, eq=False)
class PieceStudy:
    """Every shape on every excerpt of a piece in which the detector hears no singing, and LIME asked what made it sing.

    All of it is one piece: what holds here may hold for this piece alone, and the intervals say so.
    """

    detector: Any
    name: str
    piece: Cells = field(repr=False)
    shapes: int = len(SHAPES)
    samples: int = SAMPLES
    seed: int = 0
    facts: Mapping[str, Any] = field(default_factory=dict)  # told in the manifest's "about"

    def manifest(self) -> dict[str, Any]:
        """What makes this run this run."""
        held = hashlib.blake2b(np.ascontiguousarray(self.piece).tobytes(), digest_size=8).hexdigest()
        answers = self.model(np.stack([excerpt for _, excerpt in spread(self.piece)]))[:, 1]
        said = hashlib.blake2b(" ".join(f"{answer:.2e}" for answer in answers).encode(), digest_size=8).hexdigest()
        spec = {"paper": "veracity", "kinds": ["drawings"], "samples": self.samples, "threshold": self.detector.threshold,
                "shapes": [shape.name for shape in SHAPES[:self.shapes]], "test": [self.name], "valid": []}
        return {"format": 1, "study": "veracity", "spec": spec, "seed": self.seed, "hashes": {
                    "model": said, "piece": held, **code_of(self.model)},
                "about": {"data": f"{self.name}, a log-mel spectrogram of {len(self.piece)} frames",
                          "detector": self.detector.facts, "songs": 1, **self.facts}}

    def blocks(self) -> list[Block]:
        """An excerpt each."""
        return [Block(f"drawings-{number:03d}", tuple(f"drawing.{number:03d}.{shape.name}" for shape in SHAPES[:self.shapes]))
                for number, _ in enumerate(spread(self.piece))]

    def work(self, block: Block, on_calls: Callable[[int], None]) -> Iterator[Result]:
        """The shapes on one excerpt, which is explained as it was only once."""
        cut = partial(segments, self.detector)
        frame, excerpt = list(spread(self.piece))[int(block.id.partition("-")[2])]
        with self.model.asking():
            before = float(self.model(excerpt[None])[0, 1])
            lime = paper_lime(self.samples)
            usual = cache(lambda: named(self.model, cut(excerpt), lime, generator(self.seed, "before", block.id), on_calls))
            for case, shape in zip(block.cases, SHAPES, strict=False):
                found = drawn_until(self.model, cut, excerpt, shape, lime, generator(self.seed, "drawing", case), on_calls,
                                    others=False, usual=usual)
                record = {"case": case, "kind": "drawings", "song": self.name, "frame": frame, "shape": shape.name,
                          "error": None, "prediction_before": before}
                if found is None:
                    yield Result({**record, "status": "not found"}, {})
                else:
                    yield Result({**record, "status": "ok", **found.record}, {"clean": excerpt, "drawn": found.drawn})

    @cached_property
    def model(self) -> CheckedModel:
        """The detector on excerpts."""
        return api.model(self.detector.net, **self.detector.model_options)
