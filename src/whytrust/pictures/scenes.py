"""The input with the scores over it, as HTML: one function a kind of input."""

from __future__ import annotations

from whytrust.core import View
from whytrust.pictures import colours, html, overlays, raster
from whytrust.pictures.bars import bars
from whytrust.pictures.html import Markup, join, tag
from whytrust.pictures.overlays import Canvas
from whytrust.pictures.shown import (
    FAINT,
    TOP,
    Shown,
    flat,
    label,
    mark,
    meanings,
    one_line,
    painted,
    ranked,
    scored,
    signed,
    slope,
)
from whytrust.views import ImageView, SoundView, TableView, TextView

LONGEST_SOUND = 60
"""Seconds of sound a page holds; a longer one would make it too large to send."""


def plain(view: View) -> Markup | None:
    """The input itself, where seeing or hearing it without the scores helps."""
    if isinstance(view, ImageView):
        return _figure(_picture(overlays.image_canvas(view).pixels, "The image as the model received it"), "The image")
    if isinstance(view, SoundView):
        return _player(view)
    return None


def scene(e: Shown, style: str) -> Markup | None:
    """The input with the scores over it; with style="maps" the map alone that they were pooled from, where there is one."""
    if style == "maps" and e.map is not None:
        return finest(e)
    if isinstance(e.view, ImageView):
        return _image(e, overlays.image_canvas(e.view), style)
    if isinstance(e.view, SoundView):
        return _sound(e, e.view)
    if isinstance(e.view, TextView):
        return _text(e, e.view)
    if isinstance(e.view, TableView):
        return _table(e, e.view)
    return None


def legend(e: Shown) -> Markup:
    """What blue and orange mean here, and how large a score the strongest colour stands for."""
    scores = abs(painted(e))
    largest = float(scores.max(initial=0.0))
    if largest == 0 and flat(e) is not None:
        return tag("p", "Every score is 0.", class_="legend")
    if largest == 0:
        return tag("p", "Every score is 0: the explanation finds no part that matters to this prediction.", class_="legend")
    raises, lowers = meanings(e)
    entries = ((colours.PLUS, raises, 1.0), (colours.MINUS, lowers, -1.0)) if lowers else (("\u00a0", raises, 1.0),)
    keys = [tag("span", tag("span", mark, class_="swatch", style=_paint(strength)), tag("bdi", words), class_="key")
            for mark, words, strength in entries]
    end = scored(largest, largest)
    ramp = tag("span", class_="ramp" if lowers else "ramp upward")
    ends = (f"−{end} ", f" +{end}") if lowers else ("0 ", f" {end}")
    return tag("p", *keys, tag("span", ends[0], ramp, ends[1], class_="key"), class_="legend")


def _image(e: Shown, canvas: Canvas, style: str) -> Markup:
    scores = painted(e)
    if style == "positive":
        alt = f"The parts of the image that have a positive score; the rest is grey. {_spoken(e)}"
        caption = f"Shown: only the parts with a positive score ({meanings(e)[0]})"
        return _figure(_picture(canvas.positive(scores), alt), caption)
    picture = _picture(canvas.coloured(scores), f"The image in grey, its parts tinted by their scores. {_spoken(e)}")
    return _figure(tag("div", picture, _marks(e, canvas), class_="stack"),
                   "The same image in grey; the colour of a part is its score, the numbers are the ranks in the chart")


def finest(e: Shown) -> Markup | None:
    """The map that the scores were pooled from, where there is one."""
    if e.map is None or not isinstance(e.view, ImageView | SoundView):
        return None
    words = "pixel by pixel" if isinstance(e.view, ImageView) else "cell by cell"
    alt = f"The map {words}: where it is blue or orange, values are large."
    return _figure(tag("div", _picture(overlays.map_pixels(e.view, e.map), alt), class_="map"),
                   f"The map that the scores were pooled from, {words}: the fuller the colour, the larger the value")


def _sound(e: Shown, view: SoundView) -> Markup:
    canvas = overlays.sound_canvas(view)
    time, pitch = overlays.axis_ends(view)
    picture = _picture(canvas.coloured(painted(e)), f"A spectrogram in grey, its parts tinted by their scores. {_spoken(e)}")
    return _figure(
        tag("div", tag("div", tag("span", pitch[1]), tag("span", pitch[0]), class_="pitch"),
            tag("div", picture, _marks(e, canvas), class_="stack"),
            tag("div", tag("span", time[0]), tag("span", "time"), tag("span", time[1]), class_="time"),
            class_="spectrogram"),
        "The sound as a spectrogram: time runs to the right, higher notes stand higher, darker is louder; "
        "the colour of a part is its score, the numbers are the ranks in the chart")


def _player(view: SoundView) -> Markup | None:
    if view.wave is None or view.rate is None:
        return None
    held = view.wave[: LONGEST_SOUND * view.rate]
    words = "The sound" if len(held) == len(view.wave) else f"The first {LONGEST_SOUND} seconds of the sound"
    source = raster.data_uri(raster.wav(held, view.rate), "audio/wav")
    return _figure(tag("audio", controls=True, preload="metadata", src=source, aria_label=words), words)


def _text(e: Shown, view: TextView) -> Markup:
    scores = painted(e)
    strengths = colours.strength(scores)
    spans = sorted((start, end, part) for part, where in enumerate(view.spans) for start, end in where)
    pieces: list[str] = []
    done = 0
    for start, end, part in spans:
        if start < done or end <= start:  # a part inside another is named in the chart
            continue
        pieces.append(view.text[done:start])
        word = view.text[start:end]
        strength = float(strengths[part])
        faint = abs(strength) < FAINT
        kind = "much" if e.unsigned else "for" if strength > 0 else "against"
        pieces.append(word if scores[part] == 0 else tag("span", word, title=_named(e, part)) if faint else tag(
            "mark", word, class_=kind, style=_paint(strength), title=_named(e, part)))
        done = end
    caption = "The text; the colour and the sign of a word are its score; words that hardly matter stay plain"
    limit = len(view.text) if view.seen is None else max(view.seen, done)
    pieces.append(view.text[done:limit])
    if view.text[limit:].strip():
        pieces.append(tag("s", view.text[limit:], class_="unseen", title="the model does not read this"))
        caption += "; what is struck out lies beyond what the model reads"
    return _figure(tag("div", *pieces, class_="text", dir="auto", tabindex=0), caption)


def _table(e: Shown, view: TableView) -> Markup:
    shown = ranked(e)
    first, rest = shown[:TOP], shown[TOP:]
    out = [part for part in range(len(view.columns)) if part not in set(shown)]
    pieces = [_rows(e, view, first)]
    if rest:
        pieces.append(tag("details", tag("summary", f"{len(rest)} more columns with smaller scores"), _rows(e, view, rest)))
    if out:
        words = f"{len(out)} columns that the explanation leaves out"
        pieces.append(tag("details", tag("summary", words), _rows(e, view, out)))
    return _figure(join(pieces), "The row, its most important columns first")


def _rows(e: Shown, view: TableView, parts: list[int]) -> Markup:
    scores = painted(e)
    strengths = colours.strength(scores)
    lines = []
    said = {part: view.conditions[part] for part in parts}
    says = [tag("bdi", words) if words not in ("", view.columns[part]) else None  # a column's own name is no condition
            for part, words in said.items()]
    slopes = {part: slope(e, part) for part in parts}
    sloped = any(one is not None for one in slopes.values())
    for part, condition in zip(parts, says, strict=True):
        strength = float(strengths[part])
        bar = tag("span", class_="half", style=f"width:{html.number(50 * abs(strength))}%;"
                  f"{'left' if strength > 0 else 'right'}:50%;background:{colours.css(1.0 if strength > 0 else -1.0)}")
        track, words = tag("span", bar, class_="track"), label(e, part).split(" ± ")[0]
        score = tag("td", track, words, class_="number", title=_named(e, part))
        steep = slopes[part]
        lines.append(tag("tr", tag("th", tag("bdi", view.columns[part]), scope="row"),
                         tag("td", tag("bdi", view.values[part]), class_="value"),
                         tag("td", condition, class_="condition") if any(says) else None, score,
                         tag("td", "" if steep is None else signed(steep), class_="number") if sloped else None))
    titles = ("Column", "Value", *(["Condition"] if any(says) else []), "Score", *(["Slope"] if sloped else []))
    heads = [tag("th", words, scope="col") for words in titles]
    return tag("div", tag("table", tag("thead", tag("tr", *heads)), tag("tbody", *lines)), class_="wide", tabindex=0)


def _marks(e: Shown, canvas: Canvas) -> Markup:
    """Rank and sign of each part in the chart, written on the part."""
    height, width = canvas.labels.shape
    size = max(height, width) / 26
    texts = [tag("text", tag("title", f"{bar.name}: {bar.label}"), f"{bar.rank}{mark(e, bar.score)}",
                 x=x * width, y=y * height, font_size=size, stroke_width=size / 5)
             for bar, x, y in canvas.places(bars(e) if flat(e) is None else [], 1.0 / 26)]
    return tag("svg", *texts, viewBox=f"0 0 {width} {height}", class_="marks", aria_hidden="true")


def _named(e: Shown, part: int) -> str:
    return f"{one_line(e.names[part])}: {label(e, part)}"


def _spoken(e: Shown) -> str:
    rows = [bar for bar in bars(e, 3) if bar.score != 0]
    return f"Largest scores: {'; '.join(f'{bar.name} {bar.label}' for bar in rows)}." if rows else "Every score is 0."


def _picture(pixels: raster.Pixels, alt: str) -> Markup:
    height, width = pixels.shape[:2]
    return tag("img", src=raster.png_uri(pixels), alt=alt, width=width, height=height)


def _figure(content: Markup, caption: str) -> Markup:
    return tag("figure", content, tag("figcaption", caption))


def _paint(strength: float) -> str:
    return f"background:{colours.css(strength)};color:{colours.text_css(strength)}"
