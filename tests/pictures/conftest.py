"""Explanations of each kind of input made by hand, and a page as a browser would read it."""

from __future__ import annotations

from dataclasses import dataclass
from html.parser import HTMLParser
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from whytrust.core import View
from whytrust.explanation import Explanation
from whytrust.views import ImageView, SoundView, TableView, TextView


def explanation(view: View, scores: Any, names: Any = None, **values: Any) -> Explanation:
    scores = np.asarray(scores, dtype=np.float64)
    names = tuple(names) if names is not None else tuple(f"part {i}" for i in range(len(scores)))
    usual = {"target": 1, "target_name": "cat", "method": "lime", "prediction": 0.93, "model": "net", "calls": 1001}
    return Explanation(scores, names, view=view, **(usual | values))


def image(height: int = 40, width: int = 60, rows: int = 2, columns: int = 3) -> ImageView:
    rng = np.random.default_rng(0)
    labels = (np.arange(height)[:, None] * rows // height) * columns + np.arange(width) * columns // width
    return ImageView(rng.integers(0, 256, (height, width, 3), dtype=np.uint8), labels.astype(np.int32))


def text(words: list[str], between: str = " ") -> TextView:
    spans, start = [], 0
    for word in words:
        spans.append(((start, start + len(word)),))
        start += len(word) + len(between)
    return TextView(between.join(words), tuple(spans))


def sound(known: bool = True) -> SoundView:
    rng = np.random.default_rng(1)
    labels = np.repeat(np.arange(4), 10)[:, None] * 2 + np.repeat(np.arange(2), 8)
    wave = rng.uniform(-0.5, 0.5, 1600).astype(np.float32)
    return SoundView(rng.random((40, 16)).astype(np.float32), labels.astype(np.int32), 0.4 if known else None,
                     8000.0 if known else None, wave if known else None, 4000 if known else None, None)


def table(d: int = 3) -> TableView:
    return TableView(tuple(f"column {i}" for i in range(d)), tuple(str(i) for i in range(d)),
                     tuple(f"column {i} > {i}" for i in range(d)))


def kinds() -> dict[str, Explanation]:
    words = ["good", "film,\n  with", "bad", "end"]
    errors = np.full(8, 0.01)
    return {
        "image": explanation(image(), [0.5, -0.3, 0.1, 0.0, 0.2, -0.1]),
        "text": explanation(text(words), [0.4, 0.1, -0.2, 0.0], words),
        "sound": explanation(sound(), np.linspace(-0.2, 0.3, 8), standard_errors=errors),
        "bare sound": explanation(sound(known=False), np.linspace(-0.2, 0.3, 8)),
        "table": explanation(table(), [0.3, -0.2, 0.0], rules="a <= 1\n  yes: 0.2", undecided=(1,)),
    }


@dataclass
class Element:
    tag: str
    attributes: dict[str, str | None]
    text: str = ""

    def number(self, name: str) -> float:
        return float(self.attributes[name] or "nan")


class Page(HTMLParser):
    """Elements in order with the text inside them; `faults` lists what a well-formed page does not have."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[Element] = []
        self.open: list[Element] = []
        self.faults: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = Element(tag, dict(attrs))
        self.elements.append(element)
        if tag not in ("meta", "img"):
            self.open.append(element)

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open[-1].tag != tag:
            self.faults.append(f"</{tag}> closes nothing")
        else:
            self.open.pop()

    def handle_data(self, data: str) -> None:
        for element in self.open:
            element.text += data

    def handle_comment(self, data: str) -> None:
        self.faults.append(f"comment {data!r}")

    def all(self, tag: str, class_: str | None = None) -> list[Element]:
        return [e for e in self.elements
                if e.tag == tag and (class_ is None or class_ in (e.attributes.get("class") or "").split())]


def read(html: str) -> Page:
    page = Page()
    page.feed(html)
    page.close()
    page.faults += [f"<{e.tag}> stays open" for e in page.open]
    return page


@pytest.fixture(scope="session")
def make() -> SimpleNamespace:
    return SimpleNamespace(explanation=explanation, image=image, text=text, sound=sound, table=table, kinds=kinds, read=read)
