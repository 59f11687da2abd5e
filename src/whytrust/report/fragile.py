"""The page of a fragility run: the answer, and texts whose words were swapped, with what the explainer said at each level."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain, zip_longest
from typing import Any

import numpy as np

from whytrust.core import Floats
from whytrust.pictures import colours, html
from whytrust.pictures.html import Child, Markup, join, tag
from whytrust.pictures.shown import FAINT, scored
from whytrust.report import trust
from whytrust.report.fragile_styles import FOOLED, shade
from whytrust.report.fragile_texts import MOST as MOST
from whytrust.report.fragile_texts import RANDOM, Level, Trail, excerpt, milestones, spread
from whytrust.report.fragile_texts import FooledText as FooledText
from whytrust.report.fragile_texts import fooled as fooled
from whytrust.report.fragile_texts import shown as shown
from whytrust.report.trust import decimal
from whytrust.report.words import count, known, percent, section

WHOLE, AROUND = 100, 5
"""Words of a text that are shown; of a longer one those around what was swapped or matters most, with so many neighbours."""
NARROW, NEAR = 36, 9
"""The same in a level that is folded: what is news there is one swap."""
LEVELS, FOLDED = 6, 12
"""Levels of a path that are shown, and that are folded below them."""
LONGEST, WIDEST, NAMED = 40, 16, 90
"""Characters of a word, of what stands between words, and of a name, before it is cut."""
TITLED = 0.25
"""Words with less of the largest score do not tell theirs when pointed at; their colour says enough."""
TITLE = "Do a few swapped words change the explanation?"
HINT = "Words are swapped one after the other, and only where the model keeps its label."
ATTACKS = {"lom": "Swaps chosen to move the explanation’s centre of mass", "l2": "Swaps chosen to move its scores furthest",
           RANDOM: "For comparison: swaps picked by chance"}
TERMS = (
    ("Colours", "Blue with + speaks for the label, orange with − against it, as the explainer sees it; where an explainer "
     "knows no “against”, blue is all that matters. The fullest colour of a row is its own largest score."),
    ("Swapped words", "The word that stood there before is struck out and small, the new one underlined. The swap that a level "
     "adds has a dashed frame."),
    ("Order, judged anew", "Are the words still in the same order, from the one that speaks most for the label to the one that "
     "speaks most against it? 1 is the same order, 0 has nothing to do with it, below 0 it is turned round (Spearman’s rank "
     "correlation). The swapped text is explained with new random draws, which the attack has not seen: believe this number."),
    ("Order, as the attack saw it", "The same with the draws by which the attack chose its words. The explainer’s noise is the "
     "same on both sides there and drops out, but whoever picks the furthest moved of many texts picks luck, too."),
    ("Top half", "Of the half of the words that mattered most, so many are in the new half. Chance leaves about 50%."),
    ("The same text again", "How far the explainer agrees with itself when asked twice about the untouched text. What is lost "
     "there is noise, and no fault of the swaps."),
    ("Swaps by chance", "As many words, from the same candidates, drawn at random. What is lost there, any edit loses."),
    ("The model’s own answers", "The order of the words by how much the model’s score falls without each. Where this moves, "
     "the model reasons otherwise, and the explanation may be right to follow."),
    ("Perplexity", "How much the text surprises a language model; a text that reads worse has more."),
    ("New errors, similarity", "Grammar errors that the text did not have before; and how near its meaning is to the "
     "original’s, by a sentence encoder: 1 is the same."),
)
UNFOLDED = 4
"""Terms that nobody can do without."""


def document(found: Mapping[str, Any], texts: Sequence[FooledText] = ()) -> str:
    """A whole page that needs nothing else; the same findings give the same bytes.

    It misleads where the texts shown are taken for the run: a third of them are its most, a third its least moved ones.
    """
    return trust.whole(TITLE, content(found, texts), FOOLED)


def content(found: Mapping[str, Any], texts: Sequence[FooledText] = ()) -> list[Markup | None]:
    """The sections of the page."""
    tables = trust.tables(found)
    places = {"reading": "How to read this", "texts": "The texts" if texts else None,
              "table-1": "The numbers" if tables else None, "settings": "How it was done"}
    links = [tag("a", words, href=f"#{place}") for place, words in places.items() if words]
    nothing = known(found.get("nothing to swap"))
    idle = f" In {count(nothing, 'text')} there was nothing to swap." if nothing else ""
    head = trust.header(TITLE, found, "text", HINT + idle, tag("nav", *links, class_="steps", aria_label="Sections"))
    return [head, trust.answer(found), _reading(), *trust.charts(found), _texts(texts), *tables, *trust.remarks(found)]


def _reading() -> Markup:
    about = ("An explainer says which words of a text speak for the model’s label. Here words are swapped for others that "
             "should mean much the same, and the label stays. If the explanation then tells another story, ask why: whether "
             "any swap does that, whether it does so without a swap, or whether this one was found by looking for it.")
    first, rest = (tag("dl", *(piece for name, words in terms for piece in (tag("dt", name), tag("dd", words))))
                   for terms in (TERMS[:UNFOLDED], TERMS[UNFOLDED:]))
    more = tag("details", tag("summary", "What the other numbers mean"), rest)
    return section("reading", "How to read this", tag("p", about), tag("div", first, more, class_="reading"))


def _texts(texts: Sequence[FooledText]) -> Markup | None:
    """The texts one under another; None where there are none."""
    if not texts:
        return None
    about = ("Texts from both ends and from the middle: how far an explanation can move, what is usual, and where it holds. "
             "They are chosen by what is left at the last level of the first attack.")
    steps = tag("nav", *(tag("a", tag("bdi", cut(text.name, LONGEST)), href=f"#text-{i}") for i, text in enumerate(texts, 1)),
                class_="steps", aria_label="Texts") if len(texts) > 1 else None
    return section("texts", "Text by text", tag("p", about), _legend(), steps,
                   *(_text(text, i) for i, text in enumerate(texts, 1)))


def _legend() -> Markup:
    """What the marks in the texts mean, once more and short."""
    return tag("p", tag("span", tag("mark", "word", class_="p8"), " speaks for the label", class_="key"),
               tag("span", tag("mark", "word", class_="n8"), " against it", class_="key"),
               tag("span", _swap("before", "after", False), " a swapped word", class_="key"),
               tag("span", _swap("before", "after", True), " swapped at this level", class_="key"),
               class_="legend")


def _text(text: FooledText, number: int) -> Markup:
    record = text.record
    title = tag("h3", tag("bdi", cut(text.name, NAMED)), ": ", tag("bdi", _label(text), class_="answer"), " ",
                decimal(record.get("score")))
    left = int(known(record.get("left_out")) or 0)
    unread = tag("p", f"The model does not read the last {count(left, 'character')} of this text; they were left out.",
                 class_="aside") if left else None
    base = tuple(_interest(text))
    trails = text.trails or ((text.control,) if text.control else ())
    control = text.control if text.trails else None
    return tag("article", title, tag("p", text.why, class_="aside why") if text.why else None, unread,
               *(_path(text, trail, base, open=True) for trail in trails),
               _path(text, control, base, open=False) if control else None, class_="case fooled", id=f"text-{number}")


def _interest(text: FooledText) -> Iterator[int]:
    """Places in the order in which they are worth showing: the words swapped first, and those that mattered most, in turns."""
    top = np.argsort(-np.abs(np.nan_to_num(text.original)), kind="stable")[:WHOLE].tolist()
    swapped = [[int(level["place"]) for level in trail.levels[:WHOLE]] for trail in text.trails]
    return (place for place in dict.fromkeys(chain.from_iterable(zip_longest(*swapped, top))) if place is not None)


# --- one path ---------------------------------------------------------------------------------------------------------


def _path(text: FooledText, trail: Trail, base: Sequence[int], open: bool) -> Markup:
    """The levels at which each tenth of the words begins, and the last; the others are folded."""
    main = milestones(trail.levels, LEVELS)
    others = [i for i in range(len(trail.levels)) if i not in set(main)]
    places = excerpt(len(text.words), base, WHOLE, AROUND)
    first = _row(text, trail, -1, places)
    pieces = [_sentence(text, trail), _beside(text, trail),
              _table(trail, [first, *(_row(text, trail, i, places) for i in main)])]
    if others and trail.name != RANDOM:
        some = [others[i] for i in spread(len(others), FOLDED)]
        rows = [_row(text, trail, i, excerpt(len(text.words), [int(trail.levels[i]["place"])], NARROW, NEAR)) for i in some]
        rest = f" ({len(others) - len(some):,} more are in the run’s records)" if len(some) < len(others) else ""
        pieces.append(tag("details", tag("summary", f"{count(len(some), 'more level')}{rest}"), _table(trail, rows)))
    name = ATTACKS.get(trail.name, f"Swaps chosen by {trail.name}")
    return tag("details", tag("summary", name), *pieces, class_="path", open=open)


def _sentence(text: FooledText, trail: Trail) -> Markup:
    last, n = trail.levels[-1], len(text.words)
    return tag("p", f"{last['m']:,} of {count(n, 'word')} ({percent(last['ratio'])}) are swapped, and the model still says ",
               tag("bdi", _label(text), class_="answer"),
               f": {decimal(text.record.get('score'))} before, {decimal(last.get('score'))} after.")


def _beside(text: FooledText, trail: Trail) -> Markup:
    """What is left of the order of the words, beside all that it must be held against."""
    last = trail.levels[-1]
    drawn = text.record.get("deterministic")
    rows = [("swaps by chance, this draw" if trail.name == RANDOM else "after this attack, judged anew", last.get("rank")),
            (None if trail.name == RANDOM else "after as many swaps by chance", text.by_chance(int(last["m"]))),
            ("the same text again" + (", which draws nothing" if drawn else ""), (text.record.get("noise") or {}).get("rank")),
            ("the model’s own answers", last.get("model"))]
    lines = [tag("li", tag("span", name), _meter(value), tag("b", decimal(value))) for name, given in rows
             if name and (value := known(given)) is not None]
    return join([tag("p", f"What is left of the order of the words, with {last['m']:,} swapped:", class_="aside"),
                 tag("ul", *lines, class_="left")])


def _meter(value: float) -> Markup:
    return tag("span", tag("span", style=f"width:{html.number(round(100 * min(max(value, 0.0), 1.0)))}%"), class_="meter",
               aria_hidden="true")


Column = tuple[str, str, Callable[[Level], str]]
COLUMNS: tuple[Column, ...] = (
    ("sure", "Confidence", lambda level: decimal(level.get("score"))),
    ("judged", "Order, judged anew", lambda level: decimal(level.get("rank"))),
    ("seen", "Order, as the attack saw it", lambda level: decimal((level.get("seen") or {}).get("rank"))),
    ("top", "Top half", lambda level: percent(level["top"]) if known(level.get("top")) is not None else "–"),
    ("perplexity", "Perplexity", lambda level: decimal((level.get("quality") or {}).get("perplexity"))),
    ("errors", "New errors", lambda level: _whole((level.get("quality") or {}).get("new_errors"))),
    ("similarity", "Similarity", lambda level: decimal((level.get("quality") or {}).get("similarity"))),
)
"""(class, heading, what stands in it) of the numbers of a level."""


def _columns(trail: Trail) -> list[Column]:
    """What was measured: random swaps were seen by no attack, and texts may not have been judged as texts."""
    there = {"seen"} if any(level.get("seen") for level in trail.levels) else set()
    for name, key in (("perplexity", "perplexity"), ("errors", "new_errors"), ("similarity", "similarity")):
        if any(known((level.get("quality") or {}).get(key)) is not None for level in trail.levels):
            there.add(name)
    return [column for column in COLUMNS if column[0] in there or column[0] in ("sure", "judged", "top")]


def _table(trail: Trail, rows: Sequence[Markup]) -> Markup:
    heads = [tag("th", "Words swapped, and the text", scope="col", class_="level"),
             *(tag("th", words, scope="col", class_=f"number {name}") for name, words, _ in _columns(trail))]
    return tag("table", tag("thead", tag("tr", *heads)), *rows, class_="levels")


def _row(text: FooledText, trail: Trail, i: int, places: Sequence[int]) -> Markup:
    """A level; -1 is the text as it was, whose explanation is held against the same anew."""
    level: Level = trail.levels[i] if i >= 0 else {
        **(text.record.get("noise") or {}), "score": text.record.get("score"), "quality": text.record.get("quality")}
    if i < 0:
        what: list[Child] = [tag("b", "None"), ": the text as it was, explained again"]
    else:
        what = [tag("b", f"{level['m']:,} ({percent(level['ratio'])})"), ": ", tag("bdi", cut(str(level["before"]), LONGEST)),
                " → ", tag("bdi", cut(str(level["after"]), LONGEST))]
    newest = int(level["place"]) if i >= 0 else None
    near = [] if newest is None or newest in places else range(max(newest - 3, 0), min(newest + 4, len(text.words)))
    words = _words(text, trail.scores[i] if i >= 0 else text.original, text.swaps(trail, i), newest, sorted({*places, *near}))
    columns = _columns(trail)
    numbers = tag("tr", tag("th", *what, scope="rowgroup", class_="level"),
                  *(tag("td", value(level), class_=f"number {name}") for name, _, value in columns))
    return tag("tbody", numbers, tag("tr", tag("td", words, colspan=len(columns) + 1, class_="wording")),
               class_=None if i >= 0 else "asitwas")


# --- words ------------------------------------------------------------------------------------------------------------


def _words(text: FooledText, scores: Floats, swaps: Mapping[int, tuple[str, str]], newest: int | None,
           places: Sequence[int]) -> Markup:
    """The words at these places in the colours of their scores; how many lie between is said."""
    strengths, largest = colours.strength(scores), float(np.abs(np.nan_to_num(scores)).max(initial=0.0))
    words, gaps = text.words, text.gaps
    pieces: list[Child] = []
    done = 0
    for place in places:
        if place > done:
            pieces.append(_hole(done, place, swaps))
        pieces.append(_between(gaps[place], place > done))
        new = swaps[place][1] if place in swaps else words[place]
        drawn = _word(cut(new, LONGEST), float(strengths[place]), float(scores[place]), largest)
        pieces.append(_swap(swaps[place][0], drawn, place == newest) if place in swaps else drawn)
        done = place + 1
    pieces.append(_between(gaps[done], False) if done == len(words) else _hole(done, len(words), swaps))
    return tag("div", *pieces, class_="sentence", dir="auto")


def _word(word: str, strength: float, score: float, largest: float) -> Markup:
    kind = shade(strength)
    if kind is None or abs(strength) < FAINT:
        return join([word])
    told = ("−" if score < 0 else "+") + scored(score, largest) if abs(strength) >= TITLED else None
    return tag("mark", word, class_=kind, title=told)


def _swap(before: str, drawn: Child, latest: bool) -> Markup:
    """The word that stood there, struck out, and the one that stands there now; in the order of their own script."""
    return tag("bdi", tag("s", cut(before, LONGEST)), tag("b", drawn), class_="traded latest" if latest else "traded")


def _hole(start: int, end: int, swaps: Mapping[int, tuple[str, str]]) -> Markup:
    inside = sum(start <= place < end for place in swaps)
    told = f"… {count(end - start, 'word')}{f', {inside:,} swapped' if inside else ''} …"
    return tag("span", told, class_="hole", dir="ltr")


def _between(gap: str, behind_hole: bool) -> str:
    """What stands between two words, its white space as one space; behind a hole nothing that belongs to what was left out."""
    return " " if behind_hole else cut(re.sub(r"\s+", " ", gap), WIDEST)


def cut(words: str, most: int) -> str:
    """Words of at most so many characters."""
    return words if len(words) <= most else f"{words[:most - 1]}…"


def _label(text: FooledText) -> str:
    return cut(str(text.record.get("label_name", text.record.get("label", "?"))), LONGEST)


def _whole(value: Any) -> str:
    number = known(value)
    return "–" if number is None else f"{number:,.0f}"
