"""Explanations as one HTML page that needs nothing else: no network, no scripts, no other files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from whytrust.pictures import html, scenes
from whytrust.pictures.bars import chart
from whytrust.pictures.html import Markup, join, stylesheet, tag
from whytrust.pictures.shown import (
    SLOPE,
    TOP,
    Shown,
    check_style,
    doubt,
    figures,
    flat,
    groups,
    question,
    ranked,
    said_at_first,
    signed,
    slope,
)
from whytrust.pictures.styles import FRAGMENT, PAGE


def document(explanations: Sequence[Shown], title: str, style: str = "signed") -> str:
    """A whole page; style="positive" shows of an image only the parts that speak for the target."""
    header = tag("header", tag("h1", tag("bdi", title)))
    return html.document(title, PAGE + FRAGMENT, tag("main", header, *_groups(explanations, style), _foot(), class_="whytrust"))


def fragment(explanations: Sequence[Shown], style: str = "signed") -> str:
    """The same content for a notebook's cell: its styles reach nothing outside it."""
    return str(tag("div", stylesheet(FRAGMENT), *_groups(explanations, style), class_="whytrust", lang="en"))


def _groups(explanations: Sequence[Shown], style: str) -> list[Markup]:
    check_style(style)
    if not explanations:
        raise ValueError("a page needs at least one explanation")
    return [_alone(group[0], style) if len(group) == 1 else _side_by_side(group, style) for group in groups(explanations)]


def _alone(e: Shown, style: str) -> Markup:
    plain, scene = scenes.plain(e.view), join([scenes.scene(e, style), scenes.legend(e)])
    finest = None if style == "maps" else scenes.finest(e)
    pictures = [tag("div", plain, finest), tag("div", scene)] if e.view.kind == "image" else [tag("div", plain, scene, finest)]
    columns = tag("div", *pictures, tag("div", *_scores(e)), class_="columns")
    return tag("article", _head(e), columns, _rules(e), _facts(e, meanings=True), class_="card")


def _side_by_side(group: Sequence[Shown], style: str) -> Markup:
    plain = scenes.plain(group[0].view)
    cards = [tag("article", _head(e, group), scenes.scene(e, style), scenes.legend(e),
                 None if style == "maps" else scenes.finest(e), *_scores(e), _rules(e), _facts(e, meanings=False),
                 class_="card") for e in group]
    words = {label: meaning for e in group for label, _, meaning in _known(e)}
    glossary = [piece for label, meaning in words.items() for piece in (tag("dt", label), tag("dd", meaning))]
    scale = "Each explanation has its own scale: its strongest colour and its longest bar stand for its own largest score."
    return tag(
        "section", None if plain is None else tag("div", plain, class_="plain"), tag("div", *cards, class_="grid"),
        tag("p", scale, class_="aside"),
        tag("details", tag("summary", "What the numbers mean"), tag("dl", *glossary), open=True))


def _head(e: Shown, beside: Sequence[Shown] = ()) -> Markup:
    # A difference's notes say how to read it; those of values that were not fitted here, how they were laid over the parts.
    mark = "Note: " if e.method == "difference" else "⚠ Note: " if e.fidelity is None else "⚠ Warning: "
    warnings = [tag("li", tag("span", mark, class_="icon"), tag("bdi", note)) for note in e.notes if note != flat(e)]
    unit = "; its scores are of the logit, before a softmax or sigmoid" if e.settings.get("explains") == "logit" else None
    heading, below = said_at_first(e, beside)
    about = ("Method: ", tag("bdi", e.method), unit) if below is None else (tag("bdi", below), unit)
    return join([tag("h2", tag("bdi", heading)), tag("p", *about, class_="method"),
                 tag("ul", *warnings, class_="notes") if warnings else None])


def _scores(e: Shown) -> list[Markup]:
    if (note := flat(e)) is not None:
        return [tag("h3", question(e)), tag("p", tag("bdi", note), class_="doubt")]
    shown, every = len(ranked(e)), len(e.names)
    count = f"The {TOP} largest of {shown} scores" if shown > TOP else "The scores" if shown != 1 else "The score"
    if shown < every:
        count += f"; the explanation uses {shown} of {every} parts"
    sentences = [count + "."]
    if e.standard_errors is not None:
        sentences.append("A thin line is a score's 95% range (±): how far it could move with other samples.")
    if any(slope(e, part) is not None for part in ranked(e)):
        sentences.append(SLOPE)
    order = doubt(e)
    return [tag("h3", question(e)), chart(e), tag("p", " ".join(sentences), class_="aside"),
            *([tag("p", tag("span", "≈ ", class_="icon"), order, class_="doubt")] if order else [])]


def _rules(e: Shown) -> Markup | None:
    if e.rules is None:
        return None
    return tag("div", tag("h3", "The explanation as rules"), tag("pre", e.rules, tabindex=0))


def _facts(e: Shown, meanings: bool) -> Markup:
    rows = [tag("tr", tag("th", label, scope="row"), tag("td", value, class_="number"),
                tag("td", meaning, class_="meaning") if meanings else None) for label, value, meaning in _known(e)]
    caution = [f"{e.caution} The scores have no standard errors: that is not because they are certain."] if e.caution else []
    return tag("div", tag("h3", "How far to believe it"), *(tag("p", words) for words in caution),
               tag("table", tag("tbody", *rows), class_="facts"), _made(e))


def _known(e: Shown) -> list[tuple[str, str, str]]:
    """(label, value, meaning) of each number that this explanation has."""
    difference = e.method == "difference"
    if difference:
        rows = [("Difference of the predictions", signed(e.prediction), "The first prediction minus the second.")]
    else:
        asked = "Model's prediction" if e.predicted in (None, e.target_name) else f"Model's score of {e.target_name}"
        rows = [(asked, figures(e.prediction), "What the model itself returns for this input.")]
    if e.local_prediction is not None:
        local = "The same difference, by the local models." if difference else (
            "What the simple local model, from which the scores are taken, returns for the same input.")
        rows += [("Local prediction", figures(e.local_prediction), local),
                 ("Gap", signed(e.gap or 0.0), "Model's prediction minus local prediction: what the scores leave "
                                               "unexplained. Near 0 is good."),
                 ("Intercept", figures(e.intercept), "The local prediction before any part is counted.")]
    if e.fidelity is not None:
        rows.append(("Fidelity", figures(e.fidelity), "How well the local model follows the model around this input (R²): "
                                                      "1 is perfectly, 0 is no better than always answering the mean."))
    if e.fidelity_fresh is not None:
        rows.append(("Fidelity, unseen samples", figures(e.fidelity_fresh),
                     "The same on samples that were not used to fit the local model: the fairer of the two."))
    if isinstance(missing := e.settings.get("completeness_gap"), float):
        rows.append(("Completeness gap", signed(missing),
                     "How far the map is from adding up to the difference between the scores of input and baseline."))
    rows.append(("Model calls", f"{e.calls:,}", "How many inputs the model was asked about."))
    return rows


def _made(e: Shown) -> Markup | None:
    """What it takes to make this explanation again, in one line."""
    settings = {"method": e.method, **e.settings, "seed": e.seed}
    words = [f"{key.replace('_', ' ')} {_word(value)[:80]}" for key, value in settings.items() if value is not None]
    return tag("p", "How it was made: ", ", ".join(words), ".", class_="aside made") if e.settings else None


def _word(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return figures(value) if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)


def _foot() -> Markup:
    return tag("footer", "A score says how this model behaves near this input. It does not say that the model is right, "
                         "nor what would happen if the world changed. Made with whytrust.")
