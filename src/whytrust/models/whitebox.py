"""Models whose reasons are known, to put explainers and trials on trial themselves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whytrust.core import Floats, generator


@dataclass(frozen=True, eq=False)
class PlantedCause:
    """Two classes, and one part of the image that decides between them: class 1 where that part is bright.

    The part's mean square drives the logit, so it is curved: a gradient at one point is not the whole story. Every other pixel
    has a slope `whisper` times its own, drawn from `seed`: an attack that follows signs changes all of them as much as the
    cause, so the size of a change says nothing, while no number of other parts can turn the label.
    """

    where: NDArray[np.bool_]  # (H, W), true in the part that decides
    threshold: float = 0.1  # of the mean square
    gain: float = 60.0
    whisper: float = 1e-4
    seed: int = 0

    kind = "a white box"

    def __call__(self, batch: Any) -> Floats:
        """(n, 2) logits."""
        return self._logits(np.asarray(batch, dtype=np.float64))

    def pullback(self, batch: Any, preprocess: Any = None) -> tuple[Floats, Callable[[Floats], Floats]]:
        """(logits, weights of the logits -> gradient of their weighted sum), in closed form."""
        values = np.asarray(batch, dtype=np.float64)
        slope = 2 * self.gain * values * self._share + self._slopes

        def pull(weights: Floats) -> Floats:
            return np.asarray((weights[:, 1] - weights[:, 0])[:, None, None] * slope / 2)

        return self._logits(values), pull

    def _logits(self, values: Floats) -> Floats:
        decided = self.gain * ((values**2 * self._share).sum(axis=(1, 2)) - self.threshold)
        logit = decided + (values * self._slopes).sum(axis=(1, 2))
        return np.column_stack([-logit / 2, logit / 2])

    @property
    def _share(self) -> Floats:
        return np.asarray(self.where / self.where.sum(), dtype=np.float64)

    @property
    def _slopes(self) -> Floats:
        signs = generator(self.seed, "whisper").choice([-1.0, 1.0], self.where.shape)
        return np.asarray(np.where(self.where, 0.0, signs * self.whisper), dtype=np.float64)

    def inputs(self, n: int, seed: int = 0) -> NDArray[np.float64]:
        """Dark images of class 0, which a change of 0.5 a pixel turns into class 1."""
        return generator(seed, "planted").uniform(0.05, 0.25, (n, *self.where.shape))
