"""A text before and after words of it were swapped, and the changed one with each explainer's scores over its words."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whytrust.pictures import colours
from whytrust.pictures.html import Markup, tag
from whytrust.pictures.shown import FAINT, signed

Span = tuple[int, int]
LONG = 400
"""Words: of a longer text only what lies around the swapped words is shown."""
WIDE, NARROW = 30, 3
"""How many words around one that matters are shown with it: of the text before and after, and of an explainer's."""
SHORT = 60
"""Words: shorter texts are shown whole for every explainer."""
FIRST = 10
"""So many of an explainer's best words are shown with their neighbours."""
LEFT_OUT = " … "


@dataclass(frozen=True)
class Text:
    """Two texts with as many words, and where those are; `unread` characters behind them the model does not read."""

    before: str
    after: str
    before_spans: tuple[Span, ...]
    after_spans: tuple[Span, ...]
    unread: int = 0

    def __len__(self) -> int:
        """How many words there are."""
        return len(self.after_spans)

    @cached_property
    def swapped(self) -> frozenset[int]:
        """The places of the words that differ."""
        pairs = zip(self.before_spans, self.after_spans, strict=True)
        return frozenset(i for i, ((a, b), (c, d)) in enumerate(pairs) if self.before[a:b] != self.after[c:d])


def text(record: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Text:
    """A stored case as texts; what does not fit together is one clear error, for a run's folder may come from anyone."""
    texts, spans = [], []
    for name in ("clean", "adversarial"):
        found = bytes(np.asarray(arrays[name], dtype=np.uint8)).decode("utf-8", "surrogatepass")
        places = np.asarray(arrays.get(f"{name}_spans", np.empty((0, 2))), dtype=np.int64)
        inside = places.ndim == 2 and places.shape[1:] == (2,) and (np.diff(places.ravel()) >= 0).all()
        if not inside or (len(places) and not (places[0, 0] >= 0 and places[-1, 1] <= len(found))):
            raise ValueError(f"{name}_spans must say where each word begins and ends, in order and inside the text, got an "
                             f"array of shape {places.shape} in case {record.get('case')!r}")
        texts.append(found)
        spans.append(tuple((int(start), int(end)) for start, end in places))
    if len(spans[0]) != len(spans[1]):
        raise ValueError(f"both texts must have as many words, got {len(spans[0])} and {len(spans[1])} in case "
                         f"{record.get('case')!r}")
    unread = (record.get("text") or {}).get("unread")
    return Text(texts[0], texts[1], spans[0], spans[1], unread if isinstance(unread, int) else 0)


def before_and_after(case: Text) -> tuple[Markup, Markup]:
    """The clean text, and the changed one with each swapped word behind the one it stands for, which is struck out."""
    shown = None if len(case) <= LONG else around(len(case), case.swapped, WIDE)
    before = _written(case.before, case.before_spans, shown, lambda i, word: word)
    return before, _written(case.after, case.after_spans, shown, lambda i, word: _swap(case, i, word))


def _swap(case: Text, place: int, word: str) -> str:
    if place not in case.swapped:
        return word
    start, end = case.before_spans[place]
    return tag("span", tag("s", case.before[start:end]), "\u00a0→\u00a0", tag("b", word), class_="swap")


def scored(case: Text, order: Sequence[int], scores: Sequence[float] | None, with_sign: bool, deepest: int, k: int) -> Markup:
    """The changed text with a contender's best words numbered, and coloured by their scores where it has any."""
    ranks = {part: rank for rank, part in enumerate(order[:deepest], start=1)}
    strengths = None if scores is None else colours.strength(np.asarray(scores, dtype=np.float64))
    shown = None if len(case) <= SHORT else ({*ranks} | around(len(case), case.swapped | {*order[:FIRST]}, NARROW))

    def drawn(place: int, word: str) -> str:
        strength = 0.0 if strengths is None else float(strengths[place])
        pieces: list[str] = [word]
        if scores is not None and abs(strength) >= FAINT:
            kind = "much" if not with_sign else "for" if strength > 0 else "against"
            ink = f"background:{colours.css(strength)};color:{colours.text_css(strength)}"
            pieces = [tag("mark", word, class_=kind, style=ink, title=f"{word}: {signed(float(scores[place]))}")]
        rank, swapped = ranks.get(place), place in case.swapped
        if rank is None and not swapped:
            return pieces[0]
        names = [*(["part"] if rank else []), *(["on"] if rank and rank <= k else []), *(["swapped"] if swapped else [])]
        number = [tag("span", rank, class_="rank")] if rank else []
        return tag("span", *number, *pieces, class_=" ".join(names), data_rank=rank)

    return _written(case.after, case.after_spans, shown, drawn)


def around(words: int, places: Collection[int], width: int) -> set[int]:
    """The places within so many words of one of these."""
    return {near for place in places for near in range(max(place - width, 0), min(place + width + 1, words))}


def _written(text: str, spans: Sequence[Span], shown: Collection[int] | None, drawn: Any) -> Markup:
    """A text word by word, with what stands between; … for words that are left out."""
    pieces: list[str] = []
    done = 0
    for i, (start, end) in enumerate(spans):
        if shown is not None and i not in shown:
            continue
        left_out = shown is not None and i > 0 and i - 1 not in shown
        pieces += [LEFT_OUT if left_out else text[done:start], drawn(i, text[start:end])]
        done = end
    ended = shown is None or len(spans) - 1 in shown
    pieces.append(text[done:] if ended else LEFT_OUT)
    return tag("div", *pieces, class_="text", dir="auto", tabindex=0)
