"""Which arguments does a function take?"""

import inspect
from collections.abc import Callable
from typing import Any


def has_arg(fn: Callable[..., Any], arg_name: str | None) -> bool:
    """Can `arg_name` be passed to `fn` by keyword? (What only disappears in **kwargs does not count.)"""
    found = inspect.signature(fn).parameters.get(arg_name or "")
    return found is not None and found.kind in (found.POSITIONAL_OR_KEYWORD, found.KEYWORD_ONLY)
