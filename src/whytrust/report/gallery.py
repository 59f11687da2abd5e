"""Section: some cases, with what each explainer pointed at drawn over the picture, for every k; sounds can be heard."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from whytrust.pictures import html
from whytrust.pictures.html import Markup, join, tag
from whytrust.pictures.shown import figures
from whytrust.report.listen import CAUTION, SOUNDS, axes, listening, playable
from whytrust.report.shapes import Shapes, shapes
from whytrust.report.shown import Shown, packed
from whytrust.report.sound import Sound, Waves
from whytrust.report.texts import Text, before_and_after, scored
from whytrust.report.words import Contender, Findings, breakable, contenders, count, known, percent, section, termed

K = 3
"""How many parts are shown before the slider is moved."""
MOST = 12
"""Cases on a page; more would make it too large to send."""
UNFOLDED = 14
"""Columns of a table's row that are shown at once."""
DEEPEST = 40
"""The largest k that is drawn."""
LARGEST, LEAST, MARK = 2_700_000, 900_000, 130
"""Characters: of the whole gallery, of its pictures at the least, of one part drawn for one contender."""


PICTURES = ("Each explainer’s best parts, numbered from its best, are drawn over the untouched input. ✓ and blue: the attack’s "
            "change in just these parts turns the answer. ✗ and orange: it does not.")
ROWS = ("Each row before and after the attack, with the rank that each explainer gives each column; its best are shaded. ✓: "
        "the attack’s change in just these columns turns the answer. ✗: it does not.")
TEXTS = ("Each text before and after words were swapped; then the changed text once more for each explainer, coloured by what "
         "it says of the new answer: blue and + speaks for it, orange and − against it, and words that hardly matter stay "
         "plain. Its best words are framed and numbered. The words that were swapped are underlined. ✓: with only the framed "
         "words swapped the answer turns. ✗: it does not.")


def gallery(findings: Findings, cases: Sequence[Shown]) -> Markup | None:
    """The cases one under another, under one slider for k; None where there are none."""
    chosen = list(cases)[:MOST]
    if not chosen:
        return None
    deepest = min(max(case.parts for case in chosen), DEEPEST)
    marks = sum(MARK * min(case.parts, DEEPEST) * len(contenders(findings)) for case in chosen)
    room = max(LEAST, LARGEST - marks) // len(chosen)
    played, quality = playable([case.sound for case in chosen if case.sound])
    heard = iter(played)
    drawn = [_case(findings, case, i, room, next(heard) if case.sound else None) for i, case in enumerate(chosen)]
    steps = tag("nav", *(tag("a", tag("bdi", _name(case)), href=f"#case-{i}") for i, case in enumerate(chosen)), class_="steps",
                aria_label="Cases") if len(chosen) > 1 else None
    left = f" Of {len(cases)} cases given the first {MOST} are shown." if len(cases) > MOST else ""
    words = (SOUNDS if played else TEXTS if all(case.text is not None for case in chosen) else
             ROWS if all(case.clean is None for case in chosen) else PICTURES)
    about = [tag("p", words + left), tag("p", f"{CAUTION} {quality}".strip()) if played else None]
    return section("gallery", "Case by case", *about, _slider(findings, deepest), steps, *drawn)


def _slider(findings: Findings, deepest: int) -> Markup:
    start, unit = min(K, deepest), termed(findings, "part")
    output = tag("output", start, class_="k-shown", for_="k")
    return tag("div", tag("span", "Shown: the best ", tag("b", start, class_="k-shown"), f" of each explainer’s {unit}s (k). ",
                          class_="k-words"),
               tag("span", tag("label", "k", for_="k"),
                   tag("input", type="range", id="k", min=1, max=deepest, value=start, step=1, autocomplete="off",
                       data_unit=unit), output,
                   id="k-control", hidden=True), class_="k-bar")


def _name(case: Shown) -> str:
    return str(case.record.get("name") or case.record.get("case") or "case")


def _case(findings: Findings, case: Shown, number: int, room: int, played: Waves | None) -> Markup:
    record = case.record
    before = str(record.get("clean_name") or record.get("clean_label", "?"))
    after = str(record.get("label_name") or record.get("label", "?"))
    title = tag("h3", tag("bdi", _name(case)), ": ", tag("bdi", before, class_="answer"), " became ",
                tag("bdi", after, class_="answer"))
    body = (_texts(findings, case, case.text) if case.text is not None else _row(findings, case, number)
            if case.clean is None else _pictures(findings, case, number, room, played))
    return tag("article", title, _where(case), _blindly(findings, case), *body, class_="case", id=f"case-{number}")


def _where(case: Shown) -> Markup | None:
    """From which longer sound a sound was cut, and where."""
    if case.sound is None:
        return None
    moment, source = case.sound.moment or "", str(case.record.get("source") or "")
    given = (source if source not in moment else "", moment)
    said = [tag("bdi", words) for words in given if words and words not in _name(case)]
    return tag("p", join(said, ", "), class_="aside") if said else None


def _ks(case: Shown, number: int) -> Sequence[int]:
    """For which k a case was measured: all, or those that its trial names."""
    given = case.trial.get("k")
    return [int(k) for k in given] if given else range(1, number + 1)


def _flips(case: Shown) -> dict[str, str]:
    """For each contender and k = 1, 2, …: 1 turns the answer, 0 does not, ? not measured; from whatever a record holds."""
    out = {}
    for name, bits in ((case.trial.get("flip") or {}).get("any") or {}).items():
        text = str(bits or "")
        if text and set(text) <= {"0", "1"}:
            found = dict(zip(_ks(case, len(text)), text, strict=False))
            out[str(name)] = "".join(found.get(k, "?") for k in range(1, min(case.parts, DEEPEST) + 1))
    return out


def _blindly(findings: Findings, case: Shown) -> Markup | None:
    """What as many parts drawn at random would do: without it, ✓ for many parts looks like knowledge."""
    chances = (case.trial.get("random") or {}).get("any") or []
    found = {k: known(chance) for k, chance in zip(_ks(case, len(chances)), chances, strict=False)}
    if all(chance is None for chance in found.values()):
        return None
    last = min(case.parts, DEEPEST)
    shares = [percent(c) if (c := found.get(k)) is not None else "?" for k in range(1, last + 1)]
    k = min(K, last)
    share = tag("b", shares[k - 1], data_chances=" ".join(shares))
    parts = count(case.parts, termed(findings, "part"))
    return tag("p", f"Of {parts}, ", tag("b", k, class_="k-shown"), " drawn at random turn the answer in ",
               share, " of draws.", class_="aside")


# --- pictures ---------------------------------------------------------------------------------------------------------


def _pictures(findings: Findings, case: Shown, number: int, room: int, played: Waves | None) -> list[Markup]:
    if case.clean is None or case.adversarial is None or case.change is None or case.labels is None:
        raise ValueError(f"a case must have all pictures or none: case {case.record.get('case')!r} has some; use shown()")
    found = shapes(case.labels)
    sources = packed([case.clean, case.adversarial], room * 5 // 6)
    change = packed([case.change], max(room // 6, room - sum(map(len, sources))))[0]
    box = f"0 0 {html.number(found.width)} {html.number(found.height)}"
    lines = tag("g", *(tag("path", d=d, id=f"p{number}-{part}", vector_effect="non-scaling-stroke")
                       for part, d in found.paths.items()), id=f"lines-{number}")
    coarse = max(case.labels.shape) < 60 and case.sound is None
    clean = tag("image", href=sources[0], width=found.width, height=found.height, preserveAspectRatio="none",
                id=f"clean-{number}", image_rendering="pixelated" if coarse else None)
    kept = tag("svg", tag("defs", clean, lines), class_="kept", aria_hidden="true", focusable="false")
    before, after = str(case.record.get("clean_name", "")), str(case.record.get("label_name", ""))
    heard = case.sound
    # A spectrogram is white and black in turn: dark lines need a white border to be seen on both.
    border = tag("use", href=f"#lines-{number}", class_="outlines border") if heard else None
    cut = join([tag("use", href=f"#clean-{number}"), border, tag("use", href=f"#lines-{number}", class_="outlines")])
    one = [
        _picture(box, tag("use", href=f"#clean-{number}"), "before", f"answer: {before}", "The untouched input", heard),
        _picture(box, _image(found, sources[1], coarse), "after", f"answer: {after}", "The input after the attack", heard),
        _picture(box, _image(found, change, coarse), "the change", case.magnified, "The change, magnified", heard),
        _picture(box, cut, f"{case.parts} parts", "what explainers rank", "The parts of the input", heard, "view cut"),
    ]
    orders, flips = case.trial.get("order") or {}, _flips(case)
    failed = case.trial.get("failed") or {}
    others = [_ranked(one_, orders.get(one_.name), flips.get(one_.name), failed.get(one_.name), found, number, box, case.parts)
              for one_ in contenders(findings) if one_.name in orders or one_.name in failed]
    kind = " sounds" if heard else ""
    return [kept, tag("div", *one, class_=f"pictures inputs{kind}"),
            *([listening(heard, played, _parts(case), _name(case))] if heard else []),
            tag("div", *others, class_=f"pictures{kind}")]


def _picture(box: str, content: Markup, title: str, words: str, spoken: str, heard: Sound | None,
             class_: str = "view") -> Markup:
    view = tag("svg", content, viewBox=box, class_=class_, role="img", aria_label=f"{spoken}: {words}")
    return tag("figure", view if heard is None else axes(view, heard), tag("figcaption", tag("b", title), tag("bdi", words)))


def _image(found: Shapes, source: str, coarse: bool) -> Markup:
    return tag("image", href=source, width=found.width, height=found.height, preserveAspectRatio="none",
               image_rendering="pixelated" if coarse else None)


def _parts(case: Shown) -> list[str]:
    """A name for each part, however many the record gives."""
    given = [str(name) for name in case.record.get("parts") or []]
    return (given + [f"part {i + 1}" for i in range(len(given), case.parts)])[:case.parts]


def _ranked(one: Contender, order: Any, bits: str | None, error: Any, found: Shapes, number: int, box: str, d: int) -> Markup:
    """One contender's parts over the picture; those beyond k are there, and not shown."""
    parts = [int(p) for p in order or [] if int(p) in found.paths][:DEEPEST]
    size = max(found.width, found.height) / (9 if d <= 30 else 13)
    marks = []
    for rank, part in enumerate(parts, start=1):
        x, y = found.places.get(part, (0.0, 0.0))
        x = min(max(x, size * (0.35 if rank < 10 else 0.65)), found.width - size * (0.35 if rank < 10 else 0.65))
        y = min(max(y, size * 0.5), found.height - size * 0.5)
        marks.append(tag("g", tag("use", href=f"#p{number}-{part}"),
                         tag("text", rank, x=round(x, 1), y=round(y + size * 0.36, 1)),
                         class_="part on" if rank <= K else "part", data_rank=rank))
    view = tag("svg", tag("use", href=f"#clean-{number}"), tag("g", *marks, font_size=round(size, 1)), viewBox=box,
               class_="view", role="img", aria_label=f"{one.name}: its best parts, numbered, over the input")
    title = tag("b", breakable(one.name), class_=None if one.explainer else "baseline")
    said = _said(bits, error)
    return tag("figure", view, tag("figcaption", title, said), class_=_class("who", bits), data_bits=bits)


def _class(name: str, bits: str | None) -> str:
    now = bits[min(K, len(bits)) - 1] if bits else "?"
    return f"{name} {({'1': 'hit', '0': 'miss'}).get(now, 'unknown')}"


def _said(bits: str | None, error: Any, short: bool = False) -> Markup:
    if error:
        return tag("span", f"failed: {error}", class_="aside")
    if bits is None:
        return tag("span", "not measured", class_="aside")
    yes, no = ("✓ turns", "✗ does not") if short else ("✓ turns the answer", "✗ does not turn it")
    return join([tag("span", yes, class_="yes"), tag("span", no, class_="no"),
                 tag("span", "? not measured", class_="open-question")])


# --- a table's row ----------------------------------------------------------------------------------------------------


def _row(findings: Findings, case: Shown, number: int) -> list[Markup]:
    """Columns before and after, and each contender's ranks of them; of many columns those that nobody ranks high are folded."""
    names = [str(name) for name in case.record.get("columns") or []]
    names += [f"column {i}" for i in range(len(names), len(case.before))]
    orders = case.trial.get("order") or {}
    who = [one for one in contenders(findings) if one.name in orders]
    ranks = {one.name: {int(part): rank for rank, part in enumerate(orders[one.name], start=1)} for one in who}
    columns = list(range(min(len(names), len(case.before), len(case.after))))
    if len(columns) <= UNFOLDED:
        return [_columns(case, number, columns, names, who, ranks)]
    columns.sort(key=lambda i: sorted(given.get(i, len(names)) for given in ranks.values()))
    rest = _columns(case, number, columns[UNFOLDED:], names, who, ranks)
    return [_columns(case, number, columns[:UNFOLDED], names, who, ranks),
            tag("details", tag("summary", f"{len(columns) - UNFOLDED} more columns, ranked lower"), rest)]


def _columns(case: Shown, number: int, columns: Sequence[int], names: Sequence[str], who: Sequence[Contender],
             ranks: Mapping[str, Mapping[int, int]]) -> Markup:
    flips = _flips(case)
    heads = [tag("th", "Column", scope="col"), tag("th", "Before", scope="col", class_="number"),
             tag("th", "After", scope="col", class_="number"),
             *(tag("th", breakable(one.name), _said(flips.get(one.name), None, short=True), scope="col",
                   class_=_class("who number", flips.get(one.name)), data_bits=flips.get(one.name)) for one in who)]
    lines = []
    for i in columns:
        after = "same" if case.before[i] == case.after[i] else tag("b", tag("bdi", _value(case.after[i])))
        lines.append(tag("tr", tag("th", tag("bdi", names[i]), scope="row"),
                         tag("td", tag("bdi", _value(case.before[i])), class_="number"), tag("td", after, class_="number"),
                         *(_rank(ranks[one.name].get(i)) for one in who)))
    whole = tag("table", tag("thead", tag("tr", *heads)), tag("tbody", *lines), class_="ranks")
    return tag("div", whole, class_="box", tabindex=0, role="region",
               aria_label=f"Columns before and after, with each explainer’s ranks, case {number + 1}")


def _rank(rank: int | None) -> Markup:
    if rank is None:
        return tag("td", "–", class_="number")
    return tag("td", rank, class_="part number on" if rank <= K else "part number", data_rank=rank)


def _value(value: Any) -> str:
    return figures(float(value)) if isinstance(value, int | float) and not isinstance(value, bool) else str(value)


# --- a text -----------------------------------------------------------------------------------------------------------


def _texts(findings: Findings, case: Shown, text: Text) -> list[Markup]:
    """The text before and after, and the changed one with what each contender says of its words."""
    record, trial, flips = case.record, case.trial, _flips(case)
    orders, failed, scores = (trial.get(key) or {} for key in ("order", "failed", "scores"))
    told = [f"answer: {record.get('clean_name', '')}", f"answer: {record.get('label_name', '')}"]
    inputs = [tag("figure", shown, tag("figcaption", tag("b", title), tag("bdi", words))) for shown, title, words in
              zip(before_and_after(text), ("before", "after"), told, strict=True)]
    unread = tag("p", f"{count(text.unread, 'more character')} of this text the model does not read: left out.",
                 class_="aside") if text.unread else None
    others = [_worded(one, text, orders.get(one.name), scores.get(one.name), _with_sign(trial, one.name), flips.get(one.name),
                      failed.get(one.name)) for one in contenders(findings)
              if (one.name in orders or one.name in failed) and one.name != "magnitude_mean"]  # the same words once more
    return [tag("div", *inputs, class_="texts inputs"), *([unread] if unread else []),
            tag("div", *others, class_="texts words")]


def _with_sign(trial: Mapping[str, Any], name: str) -> bool:
    """Do an explainer's scores speak for and against? Those of sizes are never negative, and have no set of positive ones."""
    return name in (trial.get("positive") or {}) or any((known(score) or 0.0) < 0 for score in (
        (trial.get("scores") or {}).get(name) or []))


def _worded(one: Contender, text: Text, order: Any, scores: Any, with_sign: bool, bits: str | None, error: Any) -> Markup:
    """The changed text as one contender sees it."""
    # What a baseline that knows the swaps takes after them is anything.
    ranked = [int(part) for part in order or [] if 0 <= int(part) < len(text) and (one.explainer or part in text.swapped)]
    values = [known(score) or 0.0 for score in scores or []]
    shown = scored(text, ranked, values if len(values) == len(text) else None, with_sign, DEEPEST, K)
    title = tag("b", breakable(one.name), class_=None if one.explainer else "baseline")
    return tag("figure", None if error else shown, tag("figcaption", title, _said(bits, error)), class_=_class("who", bits),
               data_bits=bits)
