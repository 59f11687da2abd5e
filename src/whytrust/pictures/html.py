"""HTML in which escaping cannot be forgotten: a plain str is always text, only `tag` and `join` make markup."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable

TAGS = frozenset({
    "html", "head", "meta", "title", "style", "body", "main", "header", "footer", "section", "article", "figure",
    "figcaption", "div", "span", "p", "h1", "h2", "h3", "ul", "li", "dl", "dt", "dd", "table", "thead", "tbody", "tr", "th",
    "td", "mark", "s", "bdi", "pre", "details", "summary", "img", "audio", "svg", "g", "rect", "line", "text"})
"""Every element a page may hold; no scripts, links, frames or forms."""
VOID = frozenset({"meta", "img"})
_UNFIT = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9-]*")


class Markup(str):
    """Text that is HTML already; anything done to it (+, format, slicing) gives a plain str, which is escaped again."""

    __slots__ = ()


Child = str | int | float | None
Value = str | int | float | bool | None


def clean(text: str) -> str:
    """Characters that HTML or UTF-8 cannot hold (NUL, lone surrogates …) become the replacement character."""
    return _UNFIT.sub("\ufffd", text)


def escape(text: object) -> Markup:
    """Any text as HTML that shows exactly this text, in content and in attributes alike."""
    safe = clean(str(text)).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return Markup(safe.replace('"', "&quot;").replace("'", "&#39;"))


def join(children: Iterable[Child], between: str = "") -> Markup:
    """Children one after the other; Markup as it is, everything else escaped, None left out."""
    parts = [child if isinstance(child, Markup) else escape(child) for child in children if child is not None]
    return Markup(escape(between).join(parts))


def tag(name: str, /, *children: Child, **attributes: Value) -> Markup:
    """One element; `class_` is class, `aria_label` is aria-label, an attribute that is None or False is left out."""
    if name not in TAGS:
        raise ValueError(f"a page has no <{name}>; it may hold {', '.join(sorted(TAGS))}")
    given = {key: value for key, value in attributes.items() if value is not None and value is not False}
    head = name + "".join(_attribute(key, value) for key, value in given.items())
    if name in VOID:
        return Markup(f"<{head}>")
    return Markup(f"<{head}>{join(children)}</{name}>")


def stylesheet(css: str) -> Markup:
    """A style element; the rules come from this package alone and can hold neither markup nor an outside address."""
    if "<" in css or "url(" in css or "@import" in css:
        raise ValueError("a page's style must hold neither markup nor an outside address")
    return Markup(f"<style>{css}</style>")


def number(value: float) -> str:
    """A coordinate or a length: short, finite, without an exponent."""
    if not math.isfinite(value):
        raise ValueError(f"a coordinate must be finite, got {value}")
    text = f"{value:.3f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def _attribute(key: str, value: Value) -> str:
    name = key.rstrip("_").replace("_", "-")
    if not _NAME.fullmatch(name) or name.lower().startswith("on"):
        raise ValueError(f"a page's elements have no attribute {name!r}")
    if value is True:
        return f" {name}"
    text = number(value) if isinstance(value, int | float) else str(value)
    if name in ("src", "href") and not text.startswith("data:"):
        raise ValueError(f"a page holds what it shows: {name} must be a data URI, got {text[:40]!r}")
    return f' {name}="{escape(text)}"'
