"""Blind controls in words: what each of them ranks an input's parts by."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

SAID = {"random": "random", "blind": "the blind guess", "prior": "the mean of all explainers over other inputs",
        "centre": "parts near the centre first", "size": "large parts first", "edges": "sharp edges first",
        "loud": "loud parts first", "early": "early words first", "long": "long words first", "rare": "rare words first",
        "bright": "bright parts first", "unusual": "unusual values first", "high": "high values first"}


def said(control: str) -> str:
    """What a control ranks parts by."""
    kind, _, explainer = control.partition(":")
    if kind == "shuffled":
        return f"{explainer}'s scores of other inputs"
    if kind == "shuffled words":
        return f"{explainer}'s scores of the same words in other texts"
    if kind == "same answer":
        return f"{explainer}'s mean scores of other inputs with the same answer"
    if kind == "same answer words":
        return f"{explainer}'s scores of the same words in other texts with the same answer"
    if kind in ("imitation", "curved imitation"):
        return f"a {'curved' if kind != 'imitation' else 'linear'} imitation of {explainer}"
    return SAID.get(control, control)


def blind_words(guesses: Sequence[str | None], kind: str) -> str:
    """What the best blind guess of a run is; of two, where the halves of the run choose differently, both."""
    names = [said(name) for name, _ in Counter(name for name in guesses if name).most_common(2)]
    inputs = {"text": "texts", "tabular": "rows"}.get(kind, "inputs")
    return (f"a guess that never asks the model, the best on the other half of the {inputs}: "
            + " or ".join(names).replace("other inputs", f"other {inputs}"))
