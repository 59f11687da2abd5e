"""HTML in which escaping cannot be forgotten: a plain str is always text, only `tag` and `join` make markup."""

from __future__ import annotations

import base64
import hashlib
import math
import re
from collections.abc import Iterable

from whytrust.legible import seen

TAGS = frozenset({
    "html", "head", "meta", "title", "style", "body", "main", "header", "footer", "section", "article", "figure",
    "figcaption", "div", "span", "p", "h1", "h2", "h3", "h4", "ul", "ol", "li", "dl", "dt", "dd", "table", "thead", "tbody",
    "tr", "th", "td", "mark", "s", "b", "bdi", "code", "pre", "details", "summary", "img", "audio", "a", "nav", "fieldset",
    "legend", "label", "input", "output", "svg", "g", "defs", "symbol", "use", "image", "path", "rect", "circle", "line",
    "text", "wbr"})
"""Every element a page may hold; no frames, no forms that send anything, no links but to places on the page itself.

A script is no element that data could name: `script` alone makes one, from a constant of this package."""
VOID = frozenset({"meta", "img", "input", "wbr"})
_UNFIT = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9-]*")
_WITHIN = re.compile(r"#[A-Za-z][A-Za-z0-9_-]*")
_LOOK = re.compile(r"(?:[a-z-]+:[#a-z0-9.,%() -]+(?:;|$))+", re.IGNORECASE)
_STYLED = re.compile(r' style="([^"]*)"')
_SENDS = ("action", "formaction", "srcdoc", "ping", "background", "poster", "srcset")


class Markup(str):
    """Text that is HTML already; anything done to it (+, format, slicing) gives a plain str, which is escaped again."""

    __slots__ = ()


Child = str | int | float | None
Value = str | int | float | bool | None


def clean(text: str) -> str:
    """Characters that HTML or UTF-8 cannot hold (NUL, lone surrogates …) become the replacement character.

    Those that would turn or hide the words around them are written out.
    """
    return _UNFIT.sub("\ufffd", seen(text))


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


def script(code: str) -> Markup:
    """A script element; the code comes from this package alone, can hold neither markup nor an outside address.

    Nothing of the data may be written into it: a script that needs data reads the page's attributes.
    """
    if "<" in code or "://" in code or "import(" in code or "eval(" in code:
        raise ValueError("a page's script must hold neither markup nor an outside address")
    return Markup(f"<script>{code}</script>")


def document(title: str, css: str, *body: Child, code: str = "") -> str:
    """A whole page that needs nothing else, under a policy that lets it do no more than it does."""
    held, looks = _by_look(join(body))
    rules = css + looks
    if code:
        held = join([held, script(code)])
    head = tag("head", tag("meta", charset="utf-8"), tag("meta", http_equiv="Content-Security-Policy",
                                                         content=policy(held, rules, code)),
               tag("meta", name="referrer", content="no-referrer"), tag("title", title),
               tag("meta", name="viewport", content="width=device-width, initial-scale=1"), stylesheet(rules))
    return "<!DOCTYPE html>\n" + tag("html", head, tag("body", held), lang="en") + "\n"


def policy(held: Markup, css: str, code: str) -> str:
    """What a browser is to refuse, should anything slip through: all but this style, this script, and what the page holds."""
    pictures, sounds = "<img" in held or "<image" in held, "<audio" in held  # text of the data has no bare <
    rules = ["default-src 'none'", f"style-src {_digest(css)}"]
    rules += [f"script-src {_digest(code)}"] if code else ["script-src 'none'"]
    rules += ["img-src data:"] if pictures else []
    rules += ["media-src data: blob:" if code else "media-src data:"] if sounds else []  # the script cuts parts out of sounds
    return "; ".join([*rules, "base-uri 'none'", "form-action 'none'"])


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode('utf-8')).digest()).decode('ascii')}'"


def _by_look(held: Markup) -> tuple[Markup, str]:
    """Style attributes as rules of the style sheet, for the policy allows none of them: it could not tell ours from others'."""
    looks: dict[str, int] = {}

    def named(found: re.Match[str]) -> str:
        return f' data-look="{looks.setdefault(found[1], len(looks))}"'

    text = Markup(_STYLED.sub(named, held))  # quotes of the data are escaped: what stands in quotes is an attribute
    return text, "".join(f'[data-look="{number}"] {{ {_weighty(look)} }}\n' for look, number in looks.items())


def _weighty(look: str) -> str:
    return " ".join(f"{rule} !important;" for rule in look.split(";") if rule)


def number(value: float) -> str:
    """A coordinate or a length: short, finite, without an exponent."""
    if not math.isfinite(value):
        raise ValueError(f"a coordinate must be finite, got {value}")
    text = f"{value:.3f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def _attribute(key: str, value: Value) -> str:
    name = key.rstrip("_").replace("_", "-")
    if not _NAME.fullmatch(name) or name.lower().startswith("on") or name.lower() in _SENDS:
        raise ValueError(f"a page's elements have no attribute {name!r}")
    if value is True:
        return f" {name}"
    text = number(value) if isinstance(value, int | float) else str(value)
    inside = text.startswith(("data:image/png;", "data:audio/wav;")) or (name == "href" and _WITHIN.fullmatch(text))
    if name in ("src", "href") and not inside:
        raise ValueError(f"a page holds what it shows: {name} must be a data URI or a place on the page, got {text[:40]!r}")
    if "url(" in text.lower() and name in ("style", "fill", "stroke", "filter", "mask", "clip-path", "cursor"):
        raise ValueError("a page's style must not hold an address")
    if name == "style" and not _LOOK.fullmatch(text):
        raise ValueError(f"a style must be plain, such as width:5%;color:#333, got {text[:40]!r}")
    return f' {name}="{escape(text)}"'
