"""Any function of a batch as a torch net, for libraries that take nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from whytrust.core import Floats, need


def net_of(function: Callable[[Any], Floats], shape: tuple[int, ...]) -> Any:
    """A module that asks the function about inputs of this shape, whatever shape they come in; it has no gradients."""
    torch = need("torch", "torch")

    class Asked(torch.nn.Module):  # type: ignore[misc,name-defined]
        def forward(self, batch: Any) -> Any:
            values = batch.detach().cpu().numpy().astype(np.float64)
            return torch.from_numpy(np.asarray(function(values.reshape(len(values), *shape))))

    return Asked().eval()
