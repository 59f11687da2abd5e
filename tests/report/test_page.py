"""The audit's page says what the findings say, in order, and nothing of the data becomes markup."""

from __future__ import annotations

import base64
import copy
import hashlib
import json
import re

import numpy as np
import pytest

from report import made
from report.reading import Page
from whytrust.pictures import html
from whytrust.pictures.colours import luminance
from whytrust.report import page
from whytrust.report.script import SCRIPT
from whytrust.report.styles import AUDIT
from whytrust.report.words import percent

FOUND = made.findings(n=60)
DIGITS = [page.shown(*case) for case in made.digit_cases(2)]


def sections(text):
    return [e.attributes["id"] for e in Page(text).all("section")]


def altered(**changes):
    return {**copy.deepcopy(FOUND), **changes}


@pytest.fixture(scope="module")
def whole():
    return Page(page.document(FOUND, DIGITS))


# --- what it says -----------------------------------------------------------------------------------------------------


def test_sections_stand_in_order_and_the_verdict_comes_first(whole):
    assert whole.faults == []
    assert [e.attributes["id"] for e in whole.all("section")] == [
        "verdicts", "curves", "recovery", "fidelity", "attack", "gallery", "pairs", "repeat", "failures", "caveats"]


def test_the_first_sentence_counts_the_inputs(whole):
    assert whole.all("p", "lead")[0].text == (
        "60 of 300 inputs were changed a little so that the model changed its mind. We know what caused that: which explanations "
        "find it?")


def test_every_explainer_has_a_row_with_its_words_and_numbers_best_first(whole):
    rows = list(whole.all("table", "verdicts")[0].all("tr", "explainer"))
    assert [next(row.all("bdi")).text for row in rows] == [v["name"] for v in FOUND["verdicts"]]
    for row, verdict in zip(rows, FOUND["verdicts"], strict=True):
        assert verdict["words"] in row.text
        assert ("unstable" in row.text) == verdict["unstable"]
        for measure in ("flip@3", "flip"):
            assert percent(FOUND["measures"][measure]["rates"][verdict["name"]]["value"]) in row.text
        assert percent(FOUND["measures"]["flip"]["normalised"][verdict["name"]]) in row.text


def test_the_whisker_spans_the_interval_on_a_common_scale(whole):
    def place(share):
        return f"{round(3 + 94 * share, 2):g}%"
    first = next(whole.all("table", "verdicts")[0].all("tr", "explainer"))
    rate = FOUND["measures"]["flip@3"]["rates"][FOUND["verdicts"][0]["name"]]
    whisker = next(first.all("line", "whisker"))
    assert (whisker.attributes["x1"], whisker.attributes["x2"]) == (place(rate["low"]), place(rate["high"]))
    assert next(first.all("circle")).attributes["cx"] == place(rate["value"])
    for name in ("random", "magnitude", "oracle"):
        assert next(first.all("line", name)).attributes["x1"] == place(FOUND["measures"]["flip@3"]["rates"][name]["value"])


def test_curves_have_a_line_a_contender_and_the_whole_numbers_in_a_table(whole):
    panel = next(whole.by_id("curves").all("div", "any"))
    names = {c["name"] for c in FOUND["contenders"]}
    for chart in panel.all("svg", "lines"):
        assert {next(line.all("title")).text.split(":")[0] for line in chart.all("g", "line")} == names
    cells = [[c.text for c in row.children] for t in panel.all("table") for row in t.all("tr")]
    given = [percent(v) for v in FOUND["curves"]["any"]["lines"]["lime"]["value"]]
    assert [cell for row in cells if row[0] == "lime" for cell in row[1:]] == given


def test_recovered_counts_stand_in_bars_whose_widths_are_shares(whole):
    bars = list(whole.by_id("recovery").all("div", "stack-bar"))
    one = next(b for b in bars if (b.attributes["aria-label"] or "").startswith("lime: not found"))
    counts = FOUND["recovery"][0]["counts"]["lime"]
    widths = [float(re.search(r"width:([\d.]+)%", c.look)[1]) for c in one.children]
    assert widths == pytest.approx([100 * c / sum(counts) for c in counts if c], abs=0.01)


def test_gallery_figures_show_the_three_best_parts_and_whether_they_flip(whole):
    trial = DIGITS[0].record["trials"][0]
    case = whole.by_id("case-0")
    figures = {next(f.all("b")).text: f for f in case.all("figure", "who")}
    assert set(figures) == {c["name"] for c in FOUND["contenders"]} - {"random"}
    for name, figure in figures.items():
        on = [next(g.all("use")).attributes["href"] for g in figure.all("g", "on")]
        assert on == [f"#p0-{part}" for part in trial["order"][name][:3]]
        assert ("hit" in figure.classes) == (trial["flip"]["any"][name][2] == "1")
        assert figure.attributes["data-bits"] == trial["flip"]["any"][name]


def test_bits_that_were_measured_for_some_k_only_say_so_for_the_others():
    record, arrays = copy.deepcopy(made.digit_cases(1)[0])
    record["trials"][0] |= {"k": [1, 2, 4, 16], "flip": {"any": {"lime": "0011"}}, "random": {"any": [0.0, 0.25, 0.5, 1.0]}}
    read = Page(page.document(FOUND, [page.shown(record, arrays)]))
    figure = next(f for f in read.all("figure", "who") if next(f.all("b")).text == "lime")
    assert figure.attributes["data-bits"] == "00?1" + "?" * 11 + "1"
    assert "unknown" in figure.classes  # k = 3
    assert next(e for e in read.elements if "data-chances" in e.attributes).attributes["data-chances"].split()[:4] == ["0%", "25%", "?", "50%"]


def test_a_row_of_a_table_shows_values_before_and_after_and_every_rank():
    cases = [page.shown(*case) for case in made.row_cases(1)]
    read = Page(page.document(made.findings(n=40, d=8, kind="tabular"), cases))
    rows = list(next(read.by_id("case-0").all("tbody")).children)
    assert [r.children[0].text for r in rows] == cases[0].record["columns"]
    assert [r.children[2].text == "same" for r in rows] == [a == b for a, b in zip(cases[0].before, cases[0].after, strict=True)]
    who = [next(th.all("bdi")).text for th in read.by_id("case-0").all("th", "who")]
    order = cases[0].record["trials"][0]["order"]
    for i, row in enumerate(rows):
        assert [int(cell.text) for cell in row.children[3:]] == [order[name].index(i) + 1 for name in who]


def test_failures_are_counted_and_the_first_twenty_are_listed():
    failures = [{"case": f"{i:04d}", "error": f"(reason {i})"} for i in range(31)]
    text = Page(page.document(altered(failures=failures, counts={**FOUND["counts"], "failed": 31}))).by_id("failures").text
    assert "31 inputs" in text
    assert "(reason 19)" in text
    assert "(reason 20)" not in text


# --- what is missing --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("changes", "gone"), [
    ({"recovery": []}, "recovery"), ({"recovery": None}, "recovery"), ({"fidelity": []}, "fidelity"),
    ({"curves": {}}, "curves"), ({"pairs": []}, "pairs"), ({"failures": [], "explainer_failures": {}, "counts": {"failed": 0}}, "failures"),
    ({"attack": {}, "strengths": {}}, "attack"), ({"caveats": []}, "caveats")])
def test_what_was_not_measured_has_no_section(changes, gone):
    here = sections(page.document(altered(**changes), DIGITS[:1]))
    assert gone not in here
    assert "verdicts" in here


def test_without_cases_there_is_no_gallery_and_no_slider():
    read = Page(page.document(FOUND))
    assert read.by_id("gallery") is None
    assert read.by_id("k") is None


def test_without_the_target_judge_there_is_no_choice():
    read = Page(page.document(altered(curves={"any": FOUND["curves"]["any"]})))
    assert not [e for e in read.all("input") if e.attributes.get("type") == "radio"]
    assert read.by_id("curves") is not None


def test_an_empty_audit_says_that_there_is_nothing_to_judge_by():
    text = Page(page.document({"counts": {"inputs": 20, "adversaries": 0}})).all("p", "lead")[0].text
    assert text.startswith("None of 20 inputs could be changed")
    assert page.document({})


def emptied(value, rng, share):
    """The same findings with numbers gone at random, as NaN becomes null on its way through JSON."""
    if isinstance(value, dict):
        return {k: emptied(v, rng, share) for k, v in value.items()}
    if isinstance(value, list):
        return [emptied(v, rng, share) for v in value]
    return None if isinstance(value, float) and rng.random() < share else value


@pytest.mark.parametrize("share", [0.2, 0.7, 1.0])
@pytest.mark.parametrize("seed", range(4))
def test_numbers_that_are_null_never_break_the_page(seed, share):
    read = Page(page.document(emptied(FOUND, np.random.default_rng(seed), share), DIGITS[:1]))
    assert read.faults == []
    assert "nan" not in read.root.text.lower().split()
    assert "None" not in read.root.text.replace("None of", "")


@pytest.mark.parametrize("key", [*FOUND])
def test_any_one_piece_may_be_absent(key):
    found = {name: value for name, value in FOUND.items() if name != key}
    assert Page(page.document(found, DIGITS[:1])).faults == []


def test_one_explainer_alone_and_all_undecided_reads_well():
    one = made.findings(n=20, names={"lime": 0.3}, kinds=("undecided",))
    read = Page(page.document(one, []))
    assert read.all("p", "outcome")[0].text == "Of the one explainer, 1 is undecided."
    assert read.by_id("pairs") is None


def test_a_strength_at_which_nobody_was_fooled_is_said():
    strengths = copy.deepcopy(FOUND["strengths"])
    strengths["adversaries"][0] = 0
    strengths["rates"] = {name: [None, *values[1:]] for name, values in strengths["rates"].items()}
    text = Page(page.document(altered(strengths=strengths))).by_id("attack").text
    assert "At strength margin 0 no input was fooled" in text


# --- what it must never do --------------------------------------------------------------------------------------------


def hostile(value, words, strings=("kind", "role", "unit", "format")):
    """Every text of the findings replaced by one that tries to be markup; the few that are words of the format are left."""
    if isinstance(value, dict):
        return {k: v if k in strings else hostile(v, words) for k, v in value.items()}
    if isinstance(value, list):
        return [hostile(v, words) for v in value]
    return words if isinstance(value, str) else value


@pytest.mark.parametrize("words", made.HOSTILE)
def test_no_text_of_the_data_becomes_markup(words):
    record, arrays = made.digit_cases(1)[0]
    record = {**record, "name": words, "clean_name": words, "label_name": words,
              "trials": [{**record["trials"][0], "failed": {"lime": words}, "flip": {"any": {"lime": words, "occlusion": "01" * 8}}}]}
    found = {**hostile(FOUND, words), "contenders": [*FOUND["contenders"], {"name": words, "role": "explainer", "about": words}],
             "spec": {words: {words: words}}, "versions": {words: words}, "explainer_failures": {words: {"count": 1, "first": words}},
             "verdicts": [{**v, "words": words, "why": words} for v in FOUND["verdicts"]]}
    text = page.document(found, [page.shown(record, arrays)])
    read, plain = Page(text), Page(page.document(FOUND, DIGITS[:1]))
    assert read.faults == []
    assert {e.tag for e in read.elements} <= html.TAGS | {"script"}
    assert len(read.all("script")) == 1
    assert {name for e in read.elements for name in e.attributes} <= {name for e in plain.elements for name in e.attributes} | {"stroke-dasharray"}
    assert read.all("title")[0].text == html.clean(words)
    for element in read.elements:
        for name in ("href", "src"):
            assert re.match(r"#[A-Za-z][\w-]*$|data:image/png;base64,[\w+/=]+$", element.attributes.get(name) or "#x")


def test_hostile_columns_of_a_table_stay_text():
    record, arrays = made.row_cases(1)[0]
    record = {**record, "columns": list(made.HOSTILE)}
    read = Page(page.document(FOUND, [page.shown(record, arrays)]))
    assert [r.children[0].text for r in next(read.by_id("case-0").all("tbody")).children] == [html.clean(w) for w in made.HOSTILE]


def test_the_only_script_is_the_packages_own_and_the_page_forbids_all_others(whole):
    assert [e.text for e in whole.all("script")] == [SCRIPT]
    policy = next(e for e in whole.all("meta") if e.attributes.get("http-equiv") == "Content-Security-Policy").attributes["content"]
    assert "default-src 'none'" in policy
    assert f"'sha256-{base64.b64encode(hashlib.sha256(SCRIPT.encode()).digest()).decode()}'" in policy


def test_no_address_but_the_pages_own(whole):
    ids = {e.attributes["id"] for e in whole.elements if "id" in e.attributes}
    assert len(ids) == sum("id" in e.attributes for e in whole.elements)
    for element in whole.elements:
        address = element.attributes.get("href") or ""
        assert not address.startswith("#") or address[1:] in ids, address
    text = page.document(FOUND, DIGITS)
    assert "://" not in text.replace(SCRIPT, "")
    assert "url(" not in text


@pytest.mark.parametrize("wrong", [
    lambda: html.tag("a", href="https://example.org"), lambda: html.tag("a", href="javascript:x"), lambda: html.tag("a", href="#a b"),
    lambda: html.tag("image", href="data:text/html;base64,AAAA"), lambda: html.tag("image", href="data:image/svg+xml;base64,AAAA"),
    lambda: html.tag("input", formaction="x"), lambda: html.tag("input", onfocus="x"), lambda: html.tag("script", "x"),
    lambda: html.tag("p", style="background:URL(x)"), lambda: html.script("a < b"), lambda: html.script("fetch('http://x')")])
def test_markup_refuses_what_could_run_or_reach_out(wrong):
    with pytest.raises(ValueError):
        wrong()


def test_the_same_findings_give_the_same_bytes(tmp_path):
    again = json.loads(json.dumps(FOUND))
    assert page.save(tmp_path / "a.html", FOUND, DIGITS).read_bytes() == page.save(tmp_path / "b.html", again, DIGITS).read_bytes()


def test_twelve_photographs_and_twelve_contenders_stay_below_three_megabytes():
    names = dict(list(made.EXPLAINERS.items())[:8])
    cases = [page.shown(*case) for case in made.photo_cases(12, d=36, names=names)]
    text = page.document(FOUND, [*cases, *DIGITS])
    assert len(text.encode()) < 3_000_000
    assert "Of 14 cases given the first 12 are shown." in text


def test_every_chart_says_in_words_what_it_shows(whole):
    for drawing in whole.all("svg"):
        assert drawing.attributes.get("aria-hidden") == "true" or drawing.attributes.get("aria-label"), drawing.attributes
    assert next(whole.root.all("html")).attributes["lang"] == "en"


def test_words_on_coloured_ground_can_be_read():
    pairs = re.findall(r"\.badge\.\w+ \{ background: (#\w+); color: (#\w+)", AUDIT)
    assert len(pairs) == 6
    for colour in ("#57606a", "#3d444d", "#00568a", "#9a4300", "#1b1f24", "#0072b2"):
        assert f"color: {colour}" in AUDIT or f"fill: {colour}" in AUDIT
        pairs += [("#ffffff", colour), ("#f4f5f7", colour)] if colour != "#0072b2" else [("#ffffff", colour)]

    def light(colour):
        full = colour if len(colour) == 7 else "#" + "".join(2 * c for c in colour[1:])
        return luminance([int(full[i: i + 2], 16) for i in (1, 3, 5)])
    for ground, ink in pairs:
        low, high = sorted((light(ground), light(ink)))
        assert (high + 0.05) / (low + 0.05) >= 4.5, (ground, ink)


def test_of_many_columns_those_that_nobody_ranks_high_are_folded_and_none_is_lost():
    d = 30
    order = list(range(d))[::-1]
    record = made.record(0, d, {"lime": order, "occlusion": order}, {"lime": [1] * d, "occlusion": [1] * d}, [0.5] * d,
                         columns=[f"column {i}" for i in range(d)])
    case = Page(page.document(FOUND, [page.shown(record, {"clean": np.zeros(d), "adversarial": np.ones(d)})])).by_id("case-0")
    names = [[row.children[0].text for row in body.children] for body in case.all("tbody")]
    assert names[0][:3] == ["column 29", "column 28", "column 27"]
    assert sorted(names[0] + names[1]) == sorted(f"column {i}" for i in range(d))
    assert len(list(next(case.all("details")).all("tbody"))) == 1


def test_shares_are_never_rounded_to_certainty():
    assert [percent(v) for v in (0, 0.001, -0.001, 0.5, 0.9996, 1, -0.86)] == ["0%", "<1%", ">−1%", "50%", ">99%", "100%", "−86%"]
    assert [percent(v) for v in (None, float("nan"), float("inf"), "x", True)] == ["not known"] * 5


@pytest.mark.parametrize(("kinds", "words"), [
    (("better_than_magnitude", "worse"), "Of 2 explainers, 1 finds the cause better than picking the parts that were changed most; 1 finds it less "
                                         "often than chance would."),
    (("better_than_blind", "better_than_blind"), "Of 2 explainers, 2 find the cause better than blind guesses, not shown to beat picking the parts that "
                                                   "were changed most.")])
def test_the_outcome_is_counted_in_one_sentence(kinds, words):
    found = altered(verdicts=[{"name": f"e{i}", "kind": kind, "words": ""} for i, kind in enumerate(kinds)])
    assert Page(page.document(found)).all("p", "outcome")[0].text == words
