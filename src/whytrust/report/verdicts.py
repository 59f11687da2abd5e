"""Section: the verdict on every explainer, one row each, with its rates drawn beside the baselines'."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from whytrust.pictures import html
from whytrust.pictures.html import Markup, join, tag
from whytrust.report.words import (
    UNSTABLE,
    Contender,
    Findings,
    badge,
    between,
    breakable,
    contenders,
    count,
    key,
    kinds_of,
    known,
    percent,
    ranged,
    section,
    table,
    termed,
)

REFERENCES = ("random", "blind", "magnitude", "oracle")
TOGETHER = 4
"""Measures in one table."""


def lead(findings: Findings) -> Markup:
    """What was done, and what came out, each in a sentence."""
    outcome = _outcome(findings)
    notes = [tag("li", str(one)) for one in [*_unfinished(findings), *(findings.get("notes") or [])]]
    return join([tag("p", _done(findings.get("counts") or {}, str(findings.get("kind"))), class_="lead"),
                 tag("p", outcome, class_="outcome") if outcome else None,
                 tag("ul", *notes, class_="notes") if notes else None, _about(findings)])


def _unfinished(findings: Findings) -> list[str]:
    """Inputs that are in no number of the page."""
    failed = known((findings.get("counts") or {}).get("failed"))
    said = f"{count(failed, 'input')} could not be worked on: see what failed, below."
    return [termed(findings, said)] if failed else []


def _done(counts: Mapping[str, Any], kind: str) -> str:
    fooled, inputs = known(counts.get("adversaries")), known(counts.get("inputs"))
    if fooled is None or inputs is None:
        return "Inputs were changed a little so that the model changed its mind. Which explanations find the cause?"
    if fooled == 0:
        return (f"None of {count(inputs, 'input')} could be changed so that the model changed its mind. Without a known cause "
                "there is nothing to judge explanations by: attack harder, or with another method.")
    verb = "was" if fooled == 1 else "were"
    if kind == "text":
        return (f"A few words of {fooled:,.0f} of {count(inputs, 'text')} were swapped so that the model changed its mind. We "
                "know which: which explanations find them?")
    if kind == "tabular":
        return (f"{fooled:,.0f} of {count(inputs, 'row')} {verb} led to the nearest training row that the model labels "
                "otherwise. We know what differs between the two: which explanations find it?")
    return (f"{fooled:,.0f} of {count(inputs, 'input')} {verb} changed a little so that the model "
            "changed its mind. We know what caused that: which explanations find it?")


def _outcome(findings: Findings) -> str | None:
    """The verdicts counted, in one sentence."""
    kinds = [str(one.get("kind")) for one in findings.get("verdicts") or []]
    if not kinds:
        return None
    words = {
        "better_than_magnitude": "{} it better than picking the parts that were changed most",
        "better_than_blind": "{} it better than blind guesses, not shown to beat picking the parts that were changed most",
        "better_than_random": "{} it better than chance", "no_better": "{} it no better than a blind guess",
        "worse": "{} it less often than chance would", "undecided": "{} undecided"}
    if findings.get("kind") == "text":
        words["better_than_blind"] = "{} it better than blind guesses"
    by_metrics = any(one.get("admitted") for one in findings.get("metrics") or [])
    parts = []
    for kind, phrase in (BY_METRICS if by_metrics else words).items():
        number = kinds.count(kind)
        if number:
            verbs = ("is", "are") if kind == "undecided" or by_metrics else ("finds", "find")
            parts.append(phrase.format(f"{number} {verbs[number > 1]}"))
    whole = f"Of {count(len(kinds), 'explainer')}, " if len(kinds) > 1 else "Of the one explainer, "
    told = "by the trials and the admitted metrics together, " * by_metrics
    return whole + told + "; ".join(parts).replace(" it ", " the cause ", 1) + "."


BY_METRICS = {"better_than_magnitude": "{} better than picking the parts that were changed most",
              "better_than_blind": "{} better than blind guesses", "better_than_random": "{} better than chance",
              "no_better": "{} no better than a blind guess",
              "worse": "{} worse than chance", "undecided": "{} undecided"}
"""What is said of so many explainers where metrics have a say: those do not ask for the cause of the change."""


def _about(findings: Findings) -> Markup:
    model, data = findings.get("model") or {}, findings.get("data") or {}
    pieces: list[str | Markup] = ["Model: ", tag("bdi", str(model.get("name") or "not named"))]
    if data.get("what"):
        pieces += [" · Data: ", tag("bdi", str(data["what"]))]
    sources = known(data.get("sources"))
    if sources is not None and sources != known(data.get("inputs")):
        pieces.append(f", from {count(sources, 'independent source')}")
    calls = findings.get("calls") or {}
    if known(calls.get("all") or calls.get("asked")):
        pieces.append(f" · {count(calls.get('all') or calls['asked'], 'model call')}")
    return tag("p", *pieces, class_="aside")


def verdict_table(findings: Findings) -> Markup | None:
    """The table, and what its words mean; None where nobody was judged."""
    everyone = contenders(findings)
    verdicts = {str(one["name"]): one for one in findings.get("verdicts") or []}
    judged = [one for one in everyone if one.explainer]
    if not judged:
        return None
    titled = [(termed(findings, _title(name)), measure) for name, measure in _columns(findings)]
    heads = [tag("th", "Explainer", scope="col"), tag("th", "Verdict", scope="col"),
             *(tag("th", title, _axis(measure, everyone), scope="col", class_="plot") for title, measure in titled),
             tag("th", "Way from random to oracle", scope="col", class_="number"),
             tag("th", "Cases", scope="col", class_="number")]
    rows = [_row(one, verdicts.get(one.name), titled) for one in judged]
    rows += [_row(one, None, titled) for one in everyone if not one.explainer]
    whole = tag("table", tag("thead", tag("tr", *heads)), tag("tbody", *rows), class_="verdicts")
    box = tag("div", whole, class_="box", tabindex=0, role="region", aria_label="The verdict on each explainer")
    return section("verdicts", "The verdict", _rule(findings), _lines(), box, _meanings(findings),
                   _by_measure(findings, verdicts))


def _columns(findings: Findings) -> list[tuple[str, Mapping[str, Any]]]:
    measures = findings.get("measures") or {}
    there = [name for name in ("flip@3", *(n for n in measures if n.startswith("flip@"))) if _measured(measures.get(name))]
    return [(name, measures[name]) for name in (*there[:1], "flip") if name in measures]


def _measured(measure: Mapping[str, Any] | None) -> bool:
    rates = (measure or {}).get("rates") or {}
    return any(known((rate or {}).get("value")) is not None for rate in rates.values())


def _title(measure: str) -> str:
    if measure == "flip":
        return "Answer turned, mean over all numbers of parts"
    return "Answer turned by the best part" if measure == "flip@1" else f"Answer turned by the {measure[5:]} best parts"


def _row(one: Contender, verdict: Mapping[str, Any] | None, measures: Sequence[tuple[str, Mapping[str, Any]]]) -> Markup:
    normalised = _way(one.name, measures[-1][1]) if measures else None
    cases = (verdict or {}).get("n")
    if cases is None and measures:
        cases = ((measures[-1][1].get("rates") or {}).get(one.name) or {}).get("n")
    share = percent(normalised) if normalised is not None else "–"
    return tag(
        "tr", tag("th", tag("span", key(one), breakable(one.name), class_="named"),
                  tag("span", one.about, class_="about") if one.about else None, scope="row"),
        tag("td", _verdict(one, verdict), class_="verdict"),
        *(tag("td", *_rate(one, measure), class_="plot", data_label=title) for title, measure in measures),
        tag("td", share, class_="number", data_label="from random to oracle"),
        tag("td", f"{known(cases):,.0f}" if known(cases) is not None else "–", class_="number", data_label="cases"),
        class_="explainer" if one.explainer else "baseline")


def _way(name: str, measure: Mapping[str, Any]) -> float | None:
    """How far from random (0) to the oracle (1); the baselines stand on the same scale."""
    found = known((measure.get("normalised") or {}).get(name))
    rates = measure.get("rates") or {}
    own, low, high = (known((rates.get(n) or {}).get("value")) for n in (name, "random", "oracle"))
    if found is not None or own is None or low is None or high is None or high <= low:
        return found
    return (own - low) / (high - low)


def _verdict(one: Contender, verdict: Mapping[str, Any] | None) -> Markup:
    if not one.explainer:
        return tag("span", "for comparison", class_="aside")
    if verdict is None or one.kind is None:
        return tag("span", "not judged", class_="aside")
    needed = known(verdict.get("needed"))
    unsaid = needed is not None and verdict.get("kind") == "undecided" and "needed" not in str(verdict.get("words"))
    more = f"About {count(needed, 'case')} would decide it." if unsaid else None
    return join([
        badge(one.kind, str(verdict.get("words") or one.kind.short).split("; unstable")[0]),
        tag("span", "⚠ unstable", class_="badge unstable", title=UNSTABLE) if verdict.get("unstable") else None,
        tag("span", " ".join(str(w) for w in (verdict.get("why"), more) if w), class_="why")])


def _rate(one: Contender, measure: Mapping[str, Any]) -> list[Markup]:
    rates = measure.get("rates") or {}
    rate = rates.get(one.name) or {}
    value, low, high = (known(rate.get(part)) for part in ("value", "low", "high"))
    if value is None:
        return [tag("span", "not measured", class_="aside")]
    ranged = low is not None and high is not None
    words = f"{percent(value)}, 95% range {between(rate)}" if ranged else percent(value)
    pieces = [tag("line", x1=_at(0), x2=_at(1), y1="50%", y2="50%", class_="track-line")]
    pieces += [_tick(name, v) for name in REFERENCES if (v := known((rates.get(name) or {}).get("value"))) is not None]
    if low is not None and high is not None:
        pieces.append(tag("line", x1=_at(low), x2=_at(high), y1="50%", y2="50%", stroke=one.colour, class_="whisker"))
    pieces.append(tag("circle", cx=_at(value), cy="50%", r=5, fill=one.colour if one.explainer else "#fff", stroke=one.colour,
                      class_="dot"))
    strip = tag("svg", *pieces, class_="strip", role="img", aria_label=f"{one.name}: {words}", title=words)
    return [tag("span", percent(value), tag("span", between(rate), class_="range") if ranged else None, class_="rate"), strip]


def _tick(name: str, value: float) -> Markup:
    return tag("line", x1=_at(value), x2=_at(value), y1=0, y2="100%", class_=f"tick {name}")


def _at(share: float) -> str:
    """A share's place across the strip, which leaves a little room at both ends."""
    return f"{html.number(round(3 + 94 * min(max(share, 0.0), 1.0), 2))}%"


def _lines() -> Markup:
    """The reference lines by name, for a telephone, where the table has no head."""
    keys = [tag("span", tag("svg", tag("line", x1=4, x2=4, y1=0, y2=18, class_=f"tick {name}"), viewBox="0 0 8 18",
                            aria_hidden="true"), name) for name in REFERENCES]
    return tag("p", "Lines, from 0 to 100%: ", *keys, class_="tick-key")


def _axis(measure: Mapping[str, Any], everyone: Sequence[Contender]) -> Markup:
    """The names of the reference lines above them: in as many lines as keep them apart."""
    rates = measure.get("rates") or {}
    names = [(name, value) for name in REFERENCES if any(one.name == name for one in everyone)
             and (value := known((rates.get(name) or {}).get("value"))) is not None]
    # All names on one side of their lines, and the line that is outermost on that side named last: none runs through a name.
    right = max((value for _, value in names), default=0.0) < 0.6
    anchor = "start" if right else "end"
    texts, ticks = [], []
    for level, (name, value) in enumerate(sorted(names, key=lambda pair: pair[1] if right else -pair[1])):
        y = 11 + 13 * level
        texts.append(tag("text", f"{name} {percent(value)}", x=_at(value), y=y, text_anchor=anchor))
        ticks.append(tag("line", x1=_at(value), x2=_at(value), y1=y + 3, y2="100%", class_=f"tick {name}"))
    return tag("svg", *ticks, *texts, class_="strip head", height=13 * len(names) + 6, aria_hidden="true")


def _rule(findings: Findings) -> Markup:
    admitted = [str(name) for name in findings.get("admitted") or []]
    listed = " and ".join(filter(None, (", ".join(admitted[:-1]), admitted[-1]))) if admitted else ""
    by = f" The verdict rests on {listed}." if admitted else ""
    if findings.get("kind") == "text":
        return tag("p", "The dot is the share of texts whose answer turned when words were swapped only where the explainer’s "
                        "best words are; the bar is its 95% range. Random draws words, blind is a guess that never asks the "
                        "model, the best one on the other half of the texts, magnitude is told which words were swapped and "
                        "takes those, and the oracle is the best choice that was found." + by, class_="aside")
    return tag("p", "The dot is the share of inputs whose answer turned when only the explainer’s best parts of the attack’s "
                    "change were laid over the untouched input; the bar is its 95% range. Random draws parts, blind is a guess "
                    "that never asks the model, the best one on the other half of the inputs, magnitude takes the parts that "
                    "were changed most, and the oracle is the best choice that was found." + by, class_="aside")


GUESSES = ("a ranking of an input's parts that does not ask the model about this input: the explainer's own scores of other "
           "inputs, the mean of all explainers there, what the input itself shows (nearness to the centre, size, edges, "
           "loudness, rare words, …), and imitations, which predict the explainer's scores from all of these by a linear "
           "model, or by one with squares and products (curved).")


def _meanings(findings: Findings) -> Markup:
    items = [tag("li", badge(kind, None), " ", kind.rule) for kind in kinds_of(findings).values()]
    items.append(tag("li", tag("span", "⚠", class_="badge unstable"), " ", UNSTABLE))
    items.append(tag("li", tag("b", "blind guess"), ": ", GUESSES))
    about = [tag("li", tag("b", name), ": ", str(measure.get("about")))
             for name, measure in (findings.get("measures") or {}).items() if measure.get("about") and ":" not in name]
    return tag("details", tag("summary", "What the words mean"), tag("ul", *items, *about, class_="rules"))


def _by_measure(findings: Findings, verdicts: Mapping[str, Mapping[str, Any]]) -> Markup | None:
    """Every measure's rates, and what each says of its own; a few measures a table, so that none is cut off in print."""
    measures = {name: measure for name, measure in (findings.get("measures") or {}).items() if _measured(measure)}
    common = [name for name in measures if ":" not in name]
    tables = []
    for start in range(0, len(common), TOGETHER):
        names = common[start: start + TOGETHER]
        rows = [[one.name, *(_cell(one, name, measures[name], verdicts) for name in names)] for one in contenders(findings)]
        tables.append(table(["", *names], rows, f"Rates by {', '.join(names)}", 1))
    # A measure of one explainer alone, with rivals of its own, is written name:explainer.
    own = [[name.split(":", 1)[1], *(_cell(one, name, measure, verdicts) for one in _alone(name, findings))]
           for name, measure in measures.items() if ":" in name]
    if own:
        title = termed(findings, "All parts with a positive score")
        tables += [tag("h3", title), table(["", "its own", "magnitude", "random"], own, title, 1)]
    return tag("details", tag("summary", "Every measure, with 95% ranges"), *tables) if tables else None


def _alone(name: str, findings: Findings) -> list[Contender]:
    wanted = (name.split(":", 1)[1], "magnitude", "random")
    found = {one.name: one for one in contenders(findings)}
    return [found.get(w) or Contender(w, "", False, None, 0) for w in wanted]


def _cell(one: Contender, name: str, measure: Mapping[str, Any], verdicts: Mapping[str, Mapping[str, Any]]) -> Markup:
    rate = (measure.get("rates") or {}).get(one.name) or {}
    said = ((verdicts.get(one.name) or {}).get("by_measure") or {}).get(name) or {}
    number = "–" if known(rate.get("value")) is None else ranged(rate)
    return join([number, tag("span", str(said["words"]), class_="about") if said.get("words") else None])
