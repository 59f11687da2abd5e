"""Frameworks whose models can be asked. A backend is a module with four names; to add one, write a file and add a line here.

`OPTIONS`: what may be said to wt.model for its models alone. `accepts(obj)`: is this one of them? (The framework is not
imported to find out.) `adapt(obj, **options)`: a function from a batch to scores, and defaults for CheckedModel (name, classes,
output, layout). That function may also have `kind` (a few words), `source` (the user's object), `pullback(batch, preprocess)`
(gradients), `open(parts)` (a shortcut from masks to scores), `reads(text)` (how many characters count), `tokens(text)` (spans).
"""

from typing import Any

from whytrust.backends import sklearn, torch

BACKENDS: tuple[Any, ...] = (torch, sklearn)
"""The first that accepts a model has it."""
