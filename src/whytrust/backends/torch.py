"""torch modules as models: evaluated without gradients, in eval mode, and left as they were found."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

import numpy as np

from whytrust.core import Batch, need

OPTIONS = ("device",)

def accepts(obj: Any) -> bool:
    """Is this a torch module? (torch is not imported to find out.)"""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(obj, torch.nn.Module)


@dataclass(frozen=True, eq=False)
class TorchScores:
    """A module called on arrays; its mode and the arrays' layout are left alone."""

    module: Any
    device: str = "cpu"

    def __call__(self, batch: Batch) -> Any:
        """The module's outputs as an array."""
        torch = need("torch", "torch")
        training = [m for m in self.module.modules() if m.training]
        self.module.eval()
        try:
            with torch.no_grad():
                inputs = torch.from_numpy(np.ascontiguousarray(batch, dtype=np.float32)).to(self.device)
                return self.module(inputs).detach().cpu().double().numpy()
        finally:
            for module in training:
                module.training = True


def adapt(obj: Any, device: str = "cpu") -> tuple[TorchScores, dict[str, Any]]:
    """The module as a function of arrays; without preprocessing its images have channels first, as torch has them."""
    return TorchScores(obj, device), {"name": type(obj).__name__, "layout": "NCHW"}
