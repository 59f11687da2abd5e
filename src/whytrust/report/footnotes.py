"""Sections: who was compared with whom, how to repeat the run, what failed, and how all this can mislead."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from whytrust.pictures.html import Markup, tag
from whytrust.report.words import Findings, count, known, plain, section, spoken, table, termed

LISTED = 20
"""How many failures are listed; all are counted."""
OPEN = 12
"""Longer tables start closed."""


def pairs(findings: Findings) -> Markup | None:
    """Every two explainers against each other."""
    given = findings.get("pairs") or []
    if not given:
        return None
    rows = [[f"{one.get('first')} − {one.get('second')}", _points(one.get("value")),
             f"{_points(one.get('low'))} to {_points(one.get('high'))}", _chance(one.get("p_holm")),
             str(one.get("words") or "")] for one in given]
    drawn = table(["First minus second", "Difference", "95% range", "p (Holm)", "In words"], rows, "Pairs of explainers")
    about = tag("p", termed(findings, "Differences are in points of 100, case by case on the same inputs. p is adjusted for "
                            "the number of comparisons (Holm): below 0.05 the difference is unlikely to be chance."),
                class_="aside")
    if len(rows) > OPEN:
        drawn = tag("details", tag("summary", f"All {len(rows)} pairs"), drawn)
    return section("pairs", "Who was compared with whom", about, drawn)


def _points(value: Any) -> str:
    number = known(value)
    if number is None:
        return "not known"
    text = f"{abs(100 * number):.1f}"
    return text if float(text) == 0 else ("+" if number > 0 else "−") + text


def _chance(value: Any) -> str:
    number = known(value)
    return "not known" if number is None else "< 0.001" if number < 0.001 else f"{number:.3f}"


def repeat(findings: Findings) -> Markup | None:
    """The command, the settings, versions and seed that give the same numbers again."""
    command = (findings.get("repeat") or {}).get("command")
    settings = _flat(findings.get("spec") or {})
    versions = {str(k): spoken(v) for k, v in (findings.get("versions") or {}).items()}
    facts = {"seed": spoken(findings.get("seed")), **{f"version of {k}": v for k, v in versions.items()}}
    calls = findings.get("calls") or {}
    if known(calls.get("asked")):
        different = spoken(calls.get("distinct"))
        facts["masks that the trials asked the model about"] = f"{spoken(calls['asked'])} ({different} different ones)"
    tables = [table(["Setting", "Value"], [[k, v] for k, v in settings.items()], "Settings")] if settings else []
    if len(settings) > OPEN:
        tables = [tag("details", tag("summary", f"All {len(settings)} settings"), *tables)]
    return section("repeat", "How to repeat this run", tag("pre", str(command), tabindex=0) if command else None, *tables,
                   tag("h3", "Versions and seed"),
                   table(["What", "Value"], [[k, v] for k, v in facts.items()], "Versions and seed"))


def _flat(settings: Mapping[str, Any], before: str = "") -> dict[str, str]:
    out: dict[str, str] = {}
    for name, value in settings.items():
        path = f"{before}{plain(str(name))}"
        if isinstance(value, Mapping) and value:
            out |= _flat(value, f"{path}: ")
        else:
            out[path] = spoken(value)
    return out


def failures(findings: Findings) -> Markup | None:
    """What could not be done: counted, and the first ones listed; None where nothing failed."""
    cases = findings.get("failures") or []
    explainers = findings.get("explainer_failures") or {}
    total = max(int(known((findings.get("counts") or {}).get("failed")) or 0), len(cases))
    problems = [tag("li", str(one)) for one in findings.get("problems") or []]
    if not total and not explainers and not problems:
        return None
    pieces: list[Markup] = []
    if total:
        more = f"; the first {LISTED} are listed" if len(cases) > LISTED else ""
        verb = "is" if total == 1 else "are"
        inputs = count(total, termed(findings, "input"))
        pieces.append(tag("p", f"{inputs} could not be worked on and {verb} in no number above{more}."))
    if cases:
        listed = [[str(one.get("name") or one.get("case")), str(one.get("error"))] for one in cases[:LISTED]]
        pieces.append(table(["Case", "Error"], listed, "Failed cases"))
    if explainers:
        rows = [[str(name), spoken(one.get("count")), str(one.get("first") or "")] for name, one in explainers.items()]
        pieces += [tag("h3", "Explainers that failed on some cases"),
                   table(["Explainer", "Cases", "First error"], rows, "Failed explainers")]
    if problems:
        pieces += [tag("h3", "Problems of the stored run"), tag("ul", *problems[:LISTED])]
    return section("failures", "What failed", *pieces)


def caveats(findings: Findings) -> Markup | None:
    """How the page can mislead its reader."""
    given = [tag("li", str(sentence)) for sentence in findings.get("caveats") or []]
    return section("caveats", "How this can mislead you", tag("ul", *given)) if given else None


def foot(findings: Findings) -> Markup:
    """What a verdict is not."""
    return tag("footer", termed(findings, "A verdict is about this model, these inputs and this attack. It does not say that "
                                          "the model is right. Made with whytrust."))
