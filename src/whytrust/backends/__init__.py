"""Frameworks whose models can be asked. A backend is a module with three names; to add one, write a file and add a line here.

`OPTIONS`: what may be said to wt.model for its models alone. `accepts(obj)`: is this one of them? (The framework is not
imported to find out.) `adapt(obj, **options)`: a function from a batch to scores, and defaults for CheckedModel (name, classes,
output, layout). That function may also have `kind` (a few words), `source` (the user's object), `prepare(batch, preprocess)`
(where its preprocessing is called in a way of its own), `pullback(batch, preprocess)` (gradients), `open(parts)` (a shortcut
from masks to scores), `reads(text)` (how many characters of it count), `tokens(text)` (their spans) and `asking()` (a context
in which one explanation asks its batches, and the model does not change).
"""

from typing import Any

from whytrust.backends import boosters, huggingface, onnx, sklearn, torch

BACKENDS: tuple[Any, ...] = (huggingface, torch, onnx, boosters, sklearn)
"""The first that accepts a model has it."""
