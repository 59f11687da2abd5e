"""A pick as one HTML page that needs nothing else: what it shows, what each explanation adds, and what is not shown."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whytrust.core import Floats, need
from whytrust.coverage import GREEDY, Pick
from whytrust.pictures import bars, html, lettering, plots, raster, scenes
from whytrust.pictures import shown as pictures
from whytrust.pictures.html import Markup, clean, join, number, stylesheet, tag
from whytrust.pictures.styles import FRAGMENT, PAGE
from whytrust.report.chart import Line, drawing
from whytrust.report.picks_styles import PICKS
from whytrust.report.styles import AUDIT
from whytrust.report.words import BLUE, DARK_ORANGE, Contender, Kind, count, percent, section

LISTED = 12
"""Features of the overview, the most important of all; and failed inputs that are listed."""
MANY = 20
"""Explanations that nobody reads all of."""
CHIPS = 18
"""Newly covered features that are named beside an explanation; the others are counted."""
EXAMPLE = 96
"""Pixels of an example's longer side, at most."""
_COLOURS = (BLUE, DARK_ORANGE)


@dataclass(frozen=True, eq=False)
class Side:
    """What is shown of one model: the picked explanations, and what they cover."""

    model: str
    explanations: tuple[Any, ...]  # picked, in order
    pick: Pick
    features: tuple[str, ...]
    of_parts: tuple[NDArray[np.intp], ...]  # of the picked
    about: str  # what a feature is
    random: Floats  # (repeats, picks): coverage of random picks
    explained: Sequence[tuple[Any, NDArray[np.intp]]] = ()  # every explanation, with the features of its parts

    @property
    def unit(self) -> str:
        """What features are called in a sentence."""
        kinds = {"text": "words", "table": "columns"}
        return "places" if self.about == "a place" else kinds.get(self.explanations[0].view.kind, "components")


@dataclass(frozen=True, eq=False)
class Shown:
    """All that the page says."""

    sides: tuple[Side, ...]
    indices: tuple[int, ...]  # of the picked inputs
    explained: int  # inputs that could be
    method: str
    notes: tuple[str, ...]
    failed: Mapping[int, str]
    names: Mapping[int, str] = field(default_factory=dict)  # of inputs that failed, where they have one


def document(found: Shown) -> str:
    """A whole page. It misleads where it is read as all that the model does: it shows what explanations of these inputs say."""
    main = tag("main", *_content(found), class_="whytrust audit picks", id="main")
    skip = tag("a", "Skip to the explanations", href="#pick-1", class_="skip")
    return html.document(_title(found), PAGE + FRAGMENT + AUDIT + PICKS, skip, main)


def fragment(found: Shown) -> str:
    """The same content for a notebook's cell."""
    return str(tag("div", stylesheet(FRAGMENT + AUDIT + PICKS), *_content(found), class_="whytrust audit picks", lang="en"))


def _content(found: Shown) -> list[Markup | None]:
    cards = [_card(found, place) for place in range(len(found.indices))]
    return [tag("header", tag("h1", tag("bdi", _title(found))), *_lead(found)), _overview(found), *cards, _failures(found),
            _caveats(found), tag("footer", "A pick shows what explanations of these inputs say of the model. It does not say "
                                           "that the model, or an explanation, is right. Made with whytrust.")]


def _title(found: Shown) -> str:
    models = " and ".join(side.model for side in found.sides)
    return f"What matters to {models}, in {count(len(found.indices), 'explanation')}"


# --- in words ---------------------------------------------------------------------------------------------------------


def verdict(side: Side, several: bool = False) -> str:
    """What a pick is worth, in two or three sentences; of several models, to which."""
    chosen, random, of = side.pick, side.random, f" to {side.model}" if several else ""
    if not chosen.importance.any():
        return f"Nothing matters{of} in any of the explanations, so there is nothing to show."
    shown, best = float(chosen.coverage[-1]), min(1.0, float(chosen.coverage[-1]) / chosen.bound)
    features = count(int((chosen.importance > 0).sum()), side.unit[:-1])
    together = "Together they show" if len(chosen) > 1 else "It shows"
    words = [f"{together} {percent(shown)} of all that matters{of} ({features}, each counted by its importance)."]
    many = len(chosen) > 1
    if shown >= 1:
        words.append("More cannot be shown.")
    else:
        greedy = f"; greedy picks are never below {percent(GREEDY)}" if chosen.promised == GREEDY else ""
        others, reach = (f"{len(chosen)} explanations", "these reach") if many else ("one", "it reaches")
        limit = f"No other {others} can show more than {_fine(best)}: {reach}" if best < 1 - 1e-9 else reach.capitalize()
        words.append(f"{limit} at least {percent(chosen.bound)} of the best possible{greedy}.")
    last = random[:, -1]
    words.append(f"Picked at random, {'as many show' if many else 'one shows'} {percent(float(last.mean()))} on average (nine "
                 f"times in ten {percent(float(np.quantile(last, .05)))} to {percent(float(np.quantile(last, .95)))}).")
    return " ".join(words)


def _fine(share: float) -> str:
    """A limit is no limit if it reads ">99%"."""
    return percent(share) if not 0.99 < share < 1 else f"{min(100 * share, 99.99):.2f}%"


def _lead(found: Shown) -> list[Markup | None]:
    many = count(found.explained, "prediction")
    several = len(found.sides) > 1
    turns = ", the models taking turns" if several else ""
    how = (f"were picked one after the other, each because it shows the most that those before it do not{turns}"
           if found.method == "submodular" else "were picked at random")
    lead = (f"{many} of {'each of these models' if several else 'this model'} {'were' if found.explained > 1 else 'was'} "
            f"explained. {'Nobody reads all of that: the' if found.explained >= MANY else 'The'} {len(found.indices)} below "
            f"{how}.")
    told = [tag("p", verdict(side, several))
            for side in found.sides]
    notes = [tag("li", tag("span", "⚠ Note: ", class_="icon"), tag("bdi", note)) for note in found.notes]
    return [tag("p", lead, class_="lead"), *told, tag("ul", *notes, class_="notes") if notes else None]


# --- overview ---------------------------------------------------------------------------------------------------------


def _overview(found: Shown) -> Markup:
    tables = [tag("div", tag("h3", tag("bdi", f"What matters most to {side.model}")), _features(side), class_="panel")
              for side in found.sides]
    return section("overview", "How much is shown", tag("h3", "After each explanation"), *_curves(found),
                   tag("p", "The share of everything that matters, over all explanations, that has been seen. The shaded band "
                            "holds nine of ten random picks.", class_="aside"),
                   tag("div", *tables, class_="panels"), _meaning(found))


def _meaning(found: Shown) -> Markup:
    kinds = dict.fromkeys(side.about for side in found.sides)
    return tag("p", "A feature is ", join([tag("bdi", kind) for kind in kinds], "; "), ". Its importance is the square "
                    "root of the sum of its weights' sizes over all explanations, and it counts as seen as soon as one "
                    "explanation gives it any weight.", class_="aside")


def _curves(found: Shown) -> list[Markup]:
    lines, several = [], len(found.sides) > 1
    for place, side in enumerate(found.sides):
        colour = _COLOURS[place % 2]
        name = side.model if several else f"{found.method} pick" if found.method == "submodular" else "this random pick"
        lines.append(Line(Contender(name, "", True, Kind("", colour, "", "", ""), place), [0.0, *side.pick.coverage.tolist()]))
        mean, low, high = side.random.mean(axis=0), *np.quantile(side.random, (.05, .95), axis=0)
        who = Contender(f"random, {side.model}" if several else "random picks", "", False, None, place,
                        colour if several else "")
        lines.append(Line(who, [0.0, *mean.tolist()], [0.0, *low.tolist()], [0.0, *high.tolist()]))
    size = len(found.indices)
    step = max(1, -(-size // 10))
    ticks = [(i, str(i)) for i in range(0, size + 1, step)]
    spoken = "Coverage after each pick: " + "; ".join(f"{line.who.name} {percent(line.value[-1])} at the end" for line in lines)
    highest = max(v or 0.0 for line in lines for v in (*line.value, *(line.high or ())))
    top = next(share for share in (0.25, 0.5, 0.75, 1.0) if share >= min(highest, 1.0))
    return [drawing(lines, ticks, size + 1, "explanations seen", spoken, narrow, "share of what matters", (0.0, top))
            for narrow in (False, True)]


def _features(side: Side) -> Markup:
    """The most important features of all, and where each is seen."""
    importance = side.pick.importance
    order = np.lexsort((np.arange(len(importance)), -importance))[:LISTED]
    first = {int(f): place + 1 for place, new in enumerate(side.pick.new) for f in new}
    largest = float(importance.max(initial=0.0)) or 1.0
    rows = []
    for feature in order[importance[order] > 0].tolist():
        seen = first.get(feature)
        bar = tag("span", class_="fill", style=f"width:{number(100 * importance[feature] / largest)}%")
        where = tag("a", f"✓ no. {seen}", href=f"#pick-{seen}") if seen else tag("span", "– not shown", class_="no")
        example = _example(side, seen, feature)
        name = tag("span", example, tag("bdi", pictures.one_line(side.features[feature])), class_="named")
        rows.append(tag("tr", tag("th", name, scope="row"),
                        tag("td", tag("span", bar, class_="meter small"), class_="weight"), tag("td", where, class_="number")))
    heads = [tag("th", words, scope="col") for words in ("Feature", "Importance", "Seen in")]
    left = int((importance > 0).sum()) - len(rows)
    more = tag("p", f"… and {left:,} less important ones.", class_="aside") if left > 0 else None
    return join([tag("table", tag("thead", tag("tr", *heads)), tag("tbody", *rows), class_="important"), more])


def _example(side: Side, seen: int | None, feature: int) -> Markup | None:
    """A component of images by its part of largest score, where it is first seen or else anywhere; what is around it paled."""
    if side.unit != "components" or side.explanations[0].view.kind != "image":
        return None
    among = side.explained if seen is None else [(side.explanations[seen - 1], side.of_parts[seen - 1])]
    sizes = [np.where(features == feature, np.abs(e.scores), -1.0) for e, features in among]
    if not sizes:
        return tag("span", class_="example")
    which = int(np.argmax([size.max(initial=-1.0) for size in sizes]))
    e = among[which][0]
    here = e.view.labels == int(np.argmax(sizes[which]))
    rows, columns = np.flatnonzero(here.any(axis=1)), np.flatnonzero(here.any(axis=0))
    box = slice(int(rows[0]), int(rows[-1]) + 1), slice(int(columns[0]), int(columns[-1]) + 1)
    crop = e.view.pixels[box].astype(np.float64)
    step = -(-max(crop.shape[:2]) // EXAMPLE)
    pale = np.where(here[box][..., None], crop, 0.2 * crop + 0.8 * 255)[::step, ::step]
    return tag("img", src=raster.png_uri(np.rint(pale).astype(np.uint8)), alt="", class_="example")


# --- the explanations -------------------------------------------------------------------------------------------------


def _card(found: Shown, place: int) -> Markup:
    several = len(found.sides) > 1
    index = found.indices[place]
    source = next((side.explanations[place].source for side in found.sides if side.explanations[place].source), "")
    heading = tag("h2", f"{place + 1}. ", tag("bdi", source or f"Input {index}"))
    turn = found.sides[found.sides[0].pick.by[place]].model if several and found.method == "submodular" else None
    why = tag("p", "Picked for what it adds to ", tag("bdi", turn), ".", class_="aside") if turn else None
    plain = scenes.plain(found.sides[0].explanations[place].view)
    shown = [tag("div", *_adds(side, place, several), *_explanation(side.explanations[place], None if several else plain),
                 class_="side") for side in found.sides]
    together = tag("div", plain, class_="plain") if several and plain is not None else None
    return tag("article", heading, why, together, tag("div", *shown, class_="sides" if several else "alone"), class_="card",
               id=f"pick-{place + 1}")


def _adds(side: Side, place: int, several: bool) -> list[Markup | None]:
    gain, covered = float(side.pick.gains[place]), float(side.pick.coverage[place])
    before = max(covered - gain, 0.0)
    meter = tag("span", tag("span", class_="before", style=f"width:{number(100 * before)}%"),
                tag("span", class_="fill", style=f"width:{number(100 * gain)}%"), class_="meter", role="img",
                aria_label=f"{percent(covered)} seen so far, {percent(gain)} added here")
    name = tag("h3", tag("bdi", side.model)) if several else None
    new = side.pick.new[place]
    if not len(new):
        return [name, tag("p", meter, f"{percent(covered)} seen so far; this one adds nothing new.", class_="so-far")]
    chips = [tag("span", tag("bdi", pictures.one_line(side.features[f])), _where(side, place, int(f)), class_="chip")
             for f in new[:CHIPS]]
    more = f" and {len(new) - CHIPS} more" if len(new) > CHIPS else None
    return [name, tag("p", meter, f"{percent(covered)} seen so far, {percent(gain)} added here", class_="so-far"),
            tag("p", "First seen here: ", join(chips, " "), more, class_="chips")]


def _where(side: Side, place: int, feature: int) -> str | None:
    """Which parts a component is, by the numbers of the chart; words and columns are their own names."""
    e = side.explanations[place]
    if side.unit != "components":
        return None
    scores = pictures.painted(e)
    ranks = [str(rank) for rank, part in enumerate(pictures.ranked(e), start=1)
             if side.of_parts[place][part] == feature and scores[part] != 0]
    listed = ", ".join(ranks[:5]) + (", …" if len(ranks) > 5 else "")
    return f" (part{'s' if len(ranks) > 1 else ''} {listed})"


def _explanation(e: Any, plain: Markup | None) -> list[Markup | None]:
    image = e.view.kind == "image"
    drawn = join([scenes.scene(e, "signed"), scenes.legend(e)])
    pictured = [tag("div", plain), tag("div", drawn)] if image and plain is not None else [tag("div", plain, drawn)]
    chart = tag("div", tag("h4", pictures.question(e)), bars.chart(e))
    facts = [] if e.fidelity_fresh is None and e.fidelity is None else [
        f"fidelity {pictures.figures(e.fidelity if e.fidelity_fresh is None else e.fidelity_fresh)}"]
    facts += [f"{e.method}, {e.calls:,} model calls"]
    notes = [tag("li", tag("bdi", note)) for note in (*e.notes, *((e.caution,) if e.caution else ()))]
    warned = tag("details", tag("summary", f"⚠ {count(len(notes), 'warning')} about this explanation"), tag("ul", *notes)
                 ) if notes else None
    return [tag("p", tag("bdi", pictures.headline(e)), class_="says"), tag("div", *pictured, chart, class_="columns"),
            tag("p", "; ".join(facts), class_="aside"), warned]


def _failures(found: Shown) -> Markup | None:
    if not found.failed:
        return None
    called = {index: f" ({name})" for index, name in found.names.items() if name}
    rows = [tag("li", f"Input {index}", tag("bdi", called.get(index, "")), ": ", tag("bdi", why))
            for index, why in list(found.failed.items())[:LISTED]]
    more = f" The first {LISTED} are listed." if len(found.failed) > LISTED else ""
    return section("failures", "What could not be explained",
                   tag("p", f"{count(len(found.failed), 'input')} failed and count nowhere on this page.{more}"),
                   tag("ul", *rows))


def _caveats(found: Shown) -> Markup:
    words = ["It shows what explanations say matters. Where those are wrong, so is this page: see the warnings of each.",
             "A feature counts as seen however little weight it has in the explanation that shows it.",
             "Inputs that are not among those explained may show something else that matters."]
    if any(side.unit == "components" for side in found.sides):
        words.append("Components are groups of parts that look, or sound, alike, also to the model where it could be asked. "
                     "Their names are words for their middle; what a person would call one thing may be several of them.")
    return section("caveats", "How this can mislead you", tag("ul", *(tag("li", one) for one in words)))


# --- figures ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Curve:
    """Coverage after each pick, beside that of random picks, as a piece of a figure."""

    found: Shown

    def height(self, width: float) -> float:
        """A little more than half as tall as wide."""
        return 0.62 * width

    def draw(self, axes: Any, width: float) -> None:
        """Draw in axes without frame."""
        inset = axes.inset_axes((0.13, 0.16, 0.85, 0.8))
        steps = np.arange(len(self.found.indices) + 1)
        for place, side in enumerate(self.found.sides):
            colour = _COLOURS[place % 2]
            of = f", {clean(side.model)}" if len(self.found.sides) > 1 else ""
            low, high = np.quantile(side.random, (.05, .95), axis=0)
            inset.fill_between(steps, [0, *low], [0, *high], color=colour, alpha=0.12, linewidth=0)
            inset.plot(steps, [0, *side.random.mean(axis=0)], "--", color=colour, linewidth=1.2, label=f"random picks{of}")
            inset.plot(steps, [0, *side.pick.coverage], "-o", color=colour, markersize=3.5,
                       label=f"{self.found.method} pick{of}")
        highest = max(float(max(np.max(side.random), side.pick.coverage.max(initial=0.0))) for side in self.found.sides)
        inset.set_ylim(0, highest * (1.65 if len(self.found.sides) > 1 else 1.05) or 1)  # four names need room of their own
        inset.xaxis.get_major_locator().set_params(integer=True)
        inset.set_xlabel("explanations seen", fontsize=8, **lettering.plain())
        inset.set_ylabel("share of what matters", fontsize=8, **lettering.plain())
        inset.tick_params(labelsize=7.5)
        legend = inset.legend(fontsize=7.5, frameon=False, loc="best")
        for text in legend.get_texts():
            text.set_parse_math(False)
        for edge in ("top", "right"):
            inset.spines[edge].set_visible(False)


def figure(found: Shown, top: int = 6, width: float | None = None) -> Any:
    """A matplotlib figure: how coverage grows, then one panel an explanation; `width` is in inches."""
    words = [clean(verdict(side, len(found.sides) > 1)) for side in found.sides]
    told = lettering.Lines([*words, *map(clean, found.notes)])
    # With two models the words have a column of their own, so that both explanations of an input stay in one row.
    panels = [plots.Panel(clean(_title(found)), [Curve(found), told])] if len(found.sides) == 1 else [
        plots.Panel(clean(_title(found)), [Curve(found)]), plots.Panel("", [told])]
    for place, index in enumerate(found.indices):
        for side in found.sides:
            e = side.explanations[place]
            new = [pictures.one_line(side.features[f]) for f in side.pick.new[place]]
            adds = f"adds {percent(float(side.pick.gains[place]))}: {', '.join(new[:CHIPS])}" if new else "adds nothing new"
            named = pictures.headline(e) if e.source else f"input {index}, {pictures.headline(e)}"
            panels.append(plots.Panel(clean(f"{place + 1}. {named}"), [lettering.Lines([clean(adds)]),
                                                                      *plots.pieces(e, "signed", top)]))
    columns = min(len(panels), plots.COLUMNS)
    each = (width or 3.9 * columns) / columns
    if each < 1.5:
        raise ValueError(f"width must leave at least 1.5 inches for each of {columns} columns, got {width!r}")
    return plots.draw(panels, columns, each)


def save_figure(found: Shown, path: str | os.PathLike[str], **options: Any) -> None:
    """Write the figure to a file; its ending says how (.png, .svg, .pdf)."""
    need("matplotlib.figure", "report")
    figure(found, **options).savefig(os.fspath(path), dpi=lettering.DPI, facecolor="white")

