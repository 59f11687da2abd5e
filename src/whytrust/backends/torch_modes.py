"""How torch is while it is asked or trained, and as it was afterwards: modules in eval mode, a number of threads."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from whytrust.core import need

_MODES = threading.Lock()
_ASKED: dict[int, int] = {}  # submodules that were in training mode, by id, and how many threads ask them now


@contextmanager
def evaluating(*modules: Any) -> Iterator[None]:
    """Eval mode inside, every submodule's own mode after; set flag by flag, since eval() may do more than set it.

    Several threads may ask one module: it goes back to training when the last of them is done.
    """
    with _MODES:
        held = {id(m): m for module in modules for m in module.modules() if id(m) in _ASKED or getattr(m, "training", False)}
        for key, module in held.items():
            _ASKED[key] = _ASKED.get(key, 0) + 1
            module.training = False
    try:
        yield
    finally:
        with _MODES:
            for key, module in held.items():
                _ASKED[key] -= 1
                if not _ASKED[key]:
                    del _ASKED[key]
                    module.training = True


def uncompiled() -> AbstractContextManager[None]:
    """Inside, what torch.compile made of a module, of a part of it or of a function that it calls runs as the Python code that
    it was made from.

    Hooks and backward passes of our own see nothing of what a compiler made. Nothing is compiled where torch's compiler was
    never loaded.
    """
    if "torch._dynamo" not in sys.modules:
        return nullcontext()
    stance: AbstractContextManager[None] = need("torch.compiler", "torch").set_stance("force_eager")
    return stance


@contextmanager
def threads(number: int) -> Iterator[None]:
    """Sums that are split among another number of threads round differently, and training makes another net of that."""
    torch = need("torch", "torch")
    before = torch.get_num_threads()
    torch.set_num_threads(number)
    try:
        yield
    finally:
        torch.set_num_threads(before)
