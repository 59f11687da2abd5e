"""The page of a fragility run says what the records say, chooses texts fairly, and nothing of the data becomes markup."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from report import fooled as made
from report.made import HOSTILE
from report.reading import Page
from whytrust import fooling
from whytrust.pictures.html import clean
from whytrust.report import fragile, trust
from whytrust.report.fragile_styles import FOOLED, shade
from whytrust.report.fragile_texts import chosen, excerpt, milestones, reread, spread

LINES = ("sure", "judged", "seen", "top", "perplexity", "errors", "similarity")


def text(*args, why="", **more):
    return fragile.fooled(*made.case(*args, **more), why)


def page(*texts, **more):
    return Page(fragile.document(made.findings(**more), texts))


def rows(article):
    """[(numbers by class, sentence)] of the first table."""
    return [({name: next((cell.text for cell in body.all("td", name)), None) for name in LINES}, next(body.all("div", "sentence")))
            for body in next(article.all("table", "levels")).all("tbody")]


def traded(sentence):
    """[(word before, word now, whether it is the latest swap)] as they stand in a sentence."""
    return [(next(one.all("s")).text, next(one.all("b")).text, "latest" in one.classes) for one in sentence.all("bdi", "traded")]


# --- which texts ------------------------------------------------------------------------------------------------------


@given(st.integers(0, 60), st.integers(0, 20))
def test_as_many_are_chosen_as_there_are_none_twice_and_all_three_kinds(n, limit):
    found = chosen(n, limit)
    places = [place for _, place in found]
    assert len(places) == min(n, limit)
    assert places == sorted(set(places))
    assert all(0 <= place < n for place in places)
    if min(n, limit) >= 3:
        assert [reason for reason, _ in found][::len(found) - 1] == ["moved furthest", "moved least"]
        assert (places[0], places[-1]) == (0, n - 1)
        typical = [place for reason, place in found if reason == "typical"]
        assert typical[0] - 1 <= (n - 1) / 2 <= typical[-1] + 1


def test_texts_come_by_what_is_left_at_their_last_level_and_say_why(tmp_path):
    ranks = [0.5, 0.9, 0.1, 0.7, 0.3, 0.8, 0.2]
    cases = [made.case(i, rank=rank) for i, rank in enumerate(ranks)]
    cases.append(({"case": "00007", "status": "nothing to swap", "error": "…", "name": "x"}, {}))
    cases.append(({"case": "00008", "status": "failed", "error": "…", "name": "x"}, {}))
    found = fragile.shown(made.run(tmp_path, cases), limit=3)
    assert [(one.name, one.why.split(":")[0]) for one in found] == [
        ("text 3", "moved furthest"), ("text 1", "typical"), ("text 2", "moved least")]
    assert found[1].why == "typical: number 4 of 7, counted from the furthest moved"
    np.testing.assert_array_equal(found[0].original, cases[2][1]["original"])
    np.testing.assert_array_equal(found[0].trails[0].scores, cases[2][1]["lom"])
    np.testing.assert_array_equal(found[0].control.scores, cases[2][1]["random"])


def test_a_run_without_a_swap_shows_no_text_and_a_negative_limit_is_refused(tmp_path):
    store = made.run(tmp_path, [({"case": "00000", "status": "wrong", "error": "…", "name": "x"}, {})])
    assert fragile.shown(store) == []
    assert Page(fragile.document(made.findings(), [])).by_id("texts") is None
    with pytest.raises(ValueError, match="limit must be 0 or more"):
        fragile.shown(store, -1)


def test_the_first_control_that_swapped_something_is_shown_as_its_arrays_are():
    record, arrays = made.case(controls=2)
    record["paths"]["random"][0] = []
    found = fragile.fooled(record, arrays)
    assert found.control.levels == tuple(record["paths"]["random"][1])


@pytest.mark.parametrize(("change", "words"), [
    ({"original": np.zeros(3)}, "a span and a score a word"), ({"original": None}, "a span and a score a word"),
    ({"lom": np.zeros((2, 21))}, "path 'lom' of case '00000' has 4 levels"), ({"random": None}, "path 'random'")])
def test_scores_that_do_not_belong_to_the_text_are_refused(change, words):
    record, arrays = made.case()
    arrays = {name: array for name, array in {**arrays, **change}.items() if array is not None}
    with pytest.raises(ValueError, match=words):
        fragile.fooled(record, arrays)


class Suffixed:
    """Two other words for each: the word itself with an ending."""

    name = "endings"

    def __call__(self, text, place):
        return [text.words[place] + ending for ending in ("er", "est")]


def test_a_run_as_it_is_really_kept_makes_a_page(tmp_path):
    weights = {"good": 2.0, "fine": 1.0, "gooder": 1.0, "dull": -1.0, "duller": -0.5}

    def model(texts):
        scores = np.array([sum(weights.get(word, 0.0) for word in re.findall(r"\w+", text)) for text in texts])
        return np.stack([-scores, scores], axis=1)

    texts = ["a good and fine film, if dull", "dull but good and good again", "one more good film"]
    run = fooling.fool(model, texts, objective=["lom", "l2"], candidates=Suffixed(), constraints=[], quality=None, controls=1, samples=60,
                       out=tmp_path / "run")
    found = Page(run.as_html())
    assert found.faults == []
    assert len(found.all("article")) == 3
    for record in run.store.records():
        article = next(one for one in found.all("article") if next(one.all("h3")).text.startswith(record["name"]))
        levels = record["paths"]["lom"][0]
        assert levels
        drawn = rows(article)
        assert [numbers["judged"] for numbers, _ in drawn[1:]] == [trust.decimal(level["rank"]) for level in levels]
        assert [[now for _, now, latest in traded(sentence) if latest] for _, sentence in drawn[1:]] == [[level["after"]] for level in levels]


# --- what was swapped -------------------------------------------------------------------------------------------------


def test_each_level_marks_every_word_swapped_so_far_and_the_latest_among_them():
    one = text(m=4)
    found = rows(page(one).by_id("text-1"))
    assert traded(found[0][1]) == []
    for m, (_, sentence) in enumerate(found[1:], 1):
        levels = sorted(one.record["paths"]["lom"][0][:m], key=lambda level: level["place"])
        assert [pair[:2] for pair in traded(sentence)] == [(level["before"], level["after"]) for level in levels]
        assert [pair[1] for pair in traded(sentence) if pair[2]] == [one.record["paths"]["lom"][0][m - 1]["after"]]


def test_a_sentence_without_the_struck_out_words_is_the_text_of_its_level():
    one = text(m=4)
    for (_, sentence), level in zip(rows(page(one).by_id("text-1"))[1:], one.record["paths"]["lom"][0], strict=True):
        shown = sentence.text
        for before, now, _ in traded(sentence):
            shown = shown.replace(before + now, now, 1)
        assert shown == level["text"]


def test_in_the_authors_variant_the_text_itself_tells_what_was_swapped():
    record, arrays = made.case(m=3)
    levels = record["paths"]["lom"][0]
    # The path went on from another objective's word at the first place: this objective's own pick is not in the later texts.
    for level in levels[1:]:
        level["text"] = level["text"].replace(levels[0]["after"], "yarn")
    found = traded(rows(page(fragile.fooled(record, arrays)).by_id("text-1"))[2][1])
    assert (levels[0]["before"], "yarn", False) in found
    assert not any(now == levels[0]["after"] for _, now, _ in found)


WORDS = st.text("abcdé", min_size=1, max_size=6)


@given(st.lists(st.tuples(WORDS, WORDS, st.sampled_from([" ", ", ", " – ", ".\n"])), min_size=1, max_size=12), st.sampled_from(["", "“"]))
def test_words_are_read_again_between_what_stands_between_them(pieces, opening):
    gaps = [opening, *(gap for _, _, gap in pieces)]
    written = opening + "".join(new + gap for _, new, gap in pieces)
    assert reread(written, gaps, [old for old, _, _ in pieces]) == [new for _, new, _ in pieces]


def test_a_text_that_is_another_is_not_read():
    assert reread("quite another text", ["", " ", "!"], ["two", "words"]) is None


# --- numbers and colours ----------------------------------------------------------------------------------------------


def test_the_numbers_of_each_level_are_those_of_the_record():
    one = text(m=4)
    found = rows(page(one).by_id("text-1"))
    assert found[0][0] == {"sure": ".93", "judged": ".91", "seen": "–", "top": "83%", "perplexity": "96", "errors": "0", "similarity": "1.00"}
    for (numbers, _), level in zip(found[1:], one.record["paths"]["lom"][0], strict=True):
        for name, value in (("sure", level["score"]), ("judged", level["rank"]), ("seen", level["seen"]["rank"]),
                            ("similarity", level["quality"]["similarity"])):
            assert float(f"0{numbers[name]}") == pytest.approx(value, abs=0.005)
        assert float(numbers["top"].strip("%")) == pytest.approx(100 * level["top"], abs=0.5)
        assert float(numbers["perplexity"]) == level["quality"]["perplexity"]
        assert int(numbers["errors"]) == level["quality"]["new_errors"]


def test_what_is_left_stands_beside_chance_noise_and_the_model():
    one = text(m=4, controls=2)
    paths = one.record["paths"]
    left = next(page(one).by_id("text-1").all("ul", "left"))
    found = [(next(line.all("span")).text, next(line.all("b")).text) for line in left.all("li")]
    by_chance = sum(path[3]["rank"] for path in paths["random"]) / 2
    assert found == [("after this attack, judged anew", trust.decimal(paths["lom"][0][3]["rank"])),
                     ("after as many swaps by chance", trust.decimal(by_chance)), ("the same text again", ".91"),
                     ("the model’s own answers", ".87")]


def test_a_word_has_the_colour_and_the_sign_of_its_score():
    record, arrays = made.case(m=1)
    arrays["original"] = np.zeros(21)
    arrays["original"][[3, 9, 12, 20]] = (-0.5, 1.0, 0.04, 0.26)
    sentence = rows(page(fragile.fooled(record, arrays)).by_id("text-1"))[0][1]
    assert [(mark.text, mark.attributes["class"], mark.attributes.get("title")) for mark in sentence.all("mark")] == [
        ("dull", "n5", "−0.50"), ("wonderful", "p10", "+1.00"), ("film", "p3", "+0.26")]
    assert 'mark[class^=p]::after { content: "+"; }' in FOOLED
    assert 'mark[class^=n]::after { content: "−"; }' in FOOLED
    assert all(f".{kind}{step} {{" in FOOLED for kind in "pn" for step in range(1, 11))


@given(st.floats(-1, 1))
def test_every_strength_has_a_shade_that_the_style_knows(strength):
    kind = shade(strength)
    assert (kind is None) == (abs(strength) < 0.05)
    if kind:
        assert f".{kind} {{" in FOOLED
        assert (kind[0] == "p") == (strength > 0)


def test_what_was_not_judged_has_no_column_and_a_control_was_seen_by_no_attack():
    article = page(text(quality=False)).by_id("text-1")
    attacked, control = article.all("table", "levels")
    heads = [[head.text for head in table.all("th") if head.attributes["scope"] == "col"] for table in (attacked, control)]
    assert heads[0][1:] == ["Confidence", "Order, judged anew", "Order, as the attack saw it", "Top half"]
    assert heads[1][1:] == ["Confidence", "Order, judged anew", "Top half"]


def test_each_objective_is_open_and_chance_is_folded():
    paths = list(page(text(objectives=("lom", "l2"))).by_id("text-1").all("details", "path"))
    assert [("open" in one.attributes, next(one.all("summary")).text) for one in paths] == [
        (True, "Swaps chosen to move the explanation’s centre of mass"), (True, "Swaps chosen to move its scores furthest"),
        (False, "For comparison: swaps picked by chance")]


def test_where_only_chance_swapped_it_is_shown_open():
    record, arrays = made.case()
    del record["paths"]["lom"]
    paths = list(page(fragile.fooled(record, arrays)).by_id("text-1").all("details", "path"))
    assert ["open" in one.attributes for one in paths] == [True]


def test_an_explainer_that_draws_nothing_is_said_to():
    record, arrays = made.case(deterministic=True)
    assert "the same text again, which draws nothing" in page(fragile.fooled(record, arrays)).by_id("text-1").text


def test_characters_that_the_model_does_not_read_are_counted():
    assert "does not read the last 1,234 characters" in page(text(left_out=1234)).by_id("text-1").text


def test_numbers_that_are_missing_are_dashes():
    record, arrays = made.case(m=1)
    record["paths"]["lom"][0][0] |= {"top": None, "quality": {"perplexity": None, "new_errors": None, "similarity": 0.5}}
    numbers = rows(page(fragile.fooled(record, arrays)).by_id("text-1"))[1][0]
    assert (numbers["top"], numbers["perplexity"], numbers["similarity"]) == ("–", None, ".50")


# --- long texts and long paths ----------------------------------------------------------------------------------------


def test_levels_that_begin_a_tenth_are_shown_with_the_last_and_others_folded():
    words = " ".join(f"w{i}" for i in range(40))
    article = page(text(text=words, m=20, swap=lambda word, m: f"x{m}")).by_id("text-1")
    shown, folded = list(next(article.all("details", "path")).all("table", "levels"))
    counts = [[next(body.all("b")).text for body in table.all("tbody")] for table in (shown, folded)]
    assert counts[0] == ["None", "1 (2%)", "5 (12%)", "9 (22%)", "13 (32%)", "17 (42%)", "20 (50%)"]
    assert len(counts[1]) == 12
    assert counts[1][0] == "2 (5%)"
    assert counts[1][-1] == "19 (48%)"
    assert "12 more levels (2 more are in the run’s records)" in article.text


@given(st.integers(1, 300), st.integers(1, 400), st.integers(1, 12))
def test_milestones_begin_with_the_first_end_with_the_last_and_are_few(levels, words, most):
    found = milestones([{"ratio": (i + 1) / (words + levels)} for i in range(levels)], most)
    assert found == sorted(set(found))
    assert len(found) <= most
    assert found[0] == 0
    assert most == 1 or found[-1] == levels - 1


@given(st.integers(0, 500), st.integers(1, 30))
def test_places_are_spread_from_the_first_to_the_last(n, most):
    found = spread(n, most)
    assert len(found) == min(n, most)
    assert found == sorted(set(found))
    assert not n or found[0] == 0
    assert not n or most == 1 or found[-1] == n - 1


@given(st.integers(1, 400), st.lists(st.integers(0, 399), max_size=30), st.integers(20, 120))
def test_an_excerpt_has_all_of_a_short_text_and_the_first_wish_of_a_long_one(n, wanted, most):
    wanted = [place for place in wanted if place < n]
    found = excerpt(n, wanted, most, 5)
    assert found == sorted(set(found))
    assert all(0 <= place < n for place in found)
    if n <= most:
        assert found == list(range(n))
    elif wanted:
        assert wanted[0] in found


def test_ten_thousand_words_are_elided_and_none_goes_uncounted():
    one = text(text=made.long_words(np.random.default_rng(0), 10_000), m=60, objectives=("lom", "l2"), controls=1)
    whole = fragile.document(made.findings(), [one] * 12)
    assert len(whole.encode()) < 2_000_000
    for sentence in Page(whole[whole.index("<article"):whole.index("</article>")]).all("div", "sentence"):
        left_out = [int(found.replace(",", "")) for found in re.findall(r"… ([\d,]+) words?", sentence.text)]
        shown = re.sub(r"… [^…]* …", " ", sentence.text)
        for before, _, _ in traded(sentence):
            shown = shown.replace(before, "", 1)
        assert sum(left_out) + len(shown.split()) == 10_000
        assert len(shown.split()) < 140


def test_a_text_of_medium_length_with_half_of_its_words_swapped_stays_small_too():
    one = text(text=made.long_words(np.random.default_rng(0), 100), m=50, objectives=("lom", "l2"), controls=1)
    assert len(fragile.document(made.findings(), [one] * 12).encode()) < 2_000_000


def test_an_endless_word_is_cut():
    one = text(text="a " + "b" * 100_000 + " c" + "!" * 100_000, m=1, label_name="L" * 100_000, name="N" * 100_000)
    whole = fragile.document(made.findings(), [one])
    assert len(whole) < 60_000
    assert "b" * 39 + "…" in whole


# --- nothing of the data becomes markup -------------------------------------------------------------------------------

STRANGE = (*HOSTILE, "הסרט הזה נפלא", "👩‍👩‍👧‍👦 😀", "z̷̢̛a̷l̷g̴o̷", "a\x00b\x1b[31m", "lone \ud800 surrogate", "]]>", "﷽ \u2066x\u2069",
           "`${window.ran=1}`", "\u202eabc", "%3Cscript%3E", "ﬃ \ufffe")


@pytest.mark.parametrize("words", STRANGE)
def test_hostile_words_are_shown_as_they_are(words):
    record, arrays = made.case(text=f"so {words} and on", m=1, swap=lambda word, m: words, name=words, label_name=words)
    settings = {"question": words, "answer": [words], "notes": [words], "failures": [{"case": words, "error": words}], "settings": {words: words}}
    whole = fragile.document(made.findings(**settings), [fragile.fooled(record, arrays, words)])
    assert whole.encode("utf-8")
    found = Page(whole)
    assert found.faults == []
    assert found.all("script") == []
    assert not [name for element in found.elements for name in element.attributes if name.startswith("on")]
    assert {e.tag for e in found.elements} <= {
        "html", "head", "meta", "title", "style", "body", "a", "main", "header", "h1", "h2", "h3", "p", "nav", "section", "ul", "li", "dl", "dt",
        "dd", "div", "details", "summary", "svg", "g", "line", "path", "text", "span", "mark", "bdi", "s", "b", "article", "table",
        "thead", "tbody", "tr", "th", "td", "footer"}
    assert next(found.by_id("answer").all("li")).text == clean(words)
    assert traded(rows(found.by_id("text-1"))[1][1])[0][1] == clean(fragile.cut(words, 40))


def test_texts_stand_in_the_direction_of_their_script():
    article = page(text(text="הסרט הזה נפלא מאוד", m=1, swap=lambda word, m: "טוב")).by_id("text-1")
    assert {e.attributes.get("dir") for e in article.all("div", "sentence")} == {"auto"}
    assert {e.attributes["dir"] for e in page(text(text=made.long_words(np.random.default_rng(0), 300), m=1)).all("span", "hole")} == {"ltr"}


def test_the_page_reaches_for_nothing_outside_and_allows_no_script():
    whole = fragile.document(made.findings(), [text()])
    assert not re.search(r"https?:|url\(|@import|src=", whole)
    policy = next(e.attributes["content"] for e in Page(whole).all("meta") if e.attributes.get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy
    assert "script-src 'none'" in policy


def test_the_same_findings_give_the_same_bytes(tmp_path):
    cases = [made.case(i, rank=0.9 - 0.1 * i) for i in range(4)]
    first = made.run(tmp_path / "a", cases)
    second = made.run(tmp_path / "b", cases, block=4)
    assert fragile.document(made.findings(), fragile.shown(first)) == fragile.document(made.findings(), fragile.shown(second))


# --- the head, and numbers that are no shares -------------------------------------------------------------------------


def test_sections_stand_in_order_and_every_link_leads_somewhere():
    found = page(text(), text(number=1))
    assert found.faults == []
    assert [e.attributes["id"] for e in found.all("section")] == [
        "answer", "reading", "chart-1", "texts", "table-1", "table-2", "notes", "failures", "settings"]
    ids = [e.attributes["id"] for e in found.elements if "id" in e.attributes]
    assert len(ids) == len(set(ids))
    assert {e.attributes["href"][1:] for e in found.all("a")} <= set(ids)


def test_the_header_counts_texts_and_no_reader_is_simulated_here():
    header = next(iter(page().all("header"))).text
    assert "40 texts, 1 of which failed" in header
    assert "In 2 texts there was nothing to swap." in header
    assert "simulated" not in fragile.document(made.findings())
    other = {**made.findings(), "experiment": "prediction"}
    assert "40 cases, 1 of which failed. Readers are simulated" in Page(trust.document(other)).all("header")[0].text


def test_a_table_may_say_that_its_numbers_are_no_shares():
    first, second = (page().by_id(f"table-{i}") for i in (1, 2))
    assert [cell.text for cell in first.all("td")][:4] == ["40", ".65 (.60 to .70)", "40", ".60 (.55 to .65)"]
    assert [cell.text for cell in second.all("td")] == ["96", "1.00", "1,234", "−.12"]
    assert ".65 (.60 to .70)" in trust.told(made.findings())
    plain = made.findings()
    del plain["tables"][0]["as"]
    assert "65% (60 to 70%)" in trust.told(plain)


def test_a_chart_may_say_that_its_numbers_are_no_shares():
    labels = [line.attributes["aria-label"] for line in page().by_id("chart-1").all("g", "line")]
    assert "centre of mass (ΔLOM): .72, .62, .52, .42, .32" in labels
    plain = made.findings()
    del plain["charts"][0]["as"]
    assert "centre of mass (ΔLOM): 72%, 62%, 52%, 42%, 32%" in [
        line.attributes["aria-label"] for line in Page(trust.document(plain)).by_id("chart-1").all("g", "line")]


@pytest.mark.parametrize(("values", "ends"), [([-0.6, 0.4], ("−1.00", ".50")), ([3.0, 1234.0], (".00", "1,500")), ([0.2, 0.9], (".00", "1.00"))])
def test_a_chart_of_numbers_goes_as_far_as_they_do(values, ends):
    chart = {**made.findings()["charts"][0], "series": [{"name": "x", "x": [1, 2], "y": values}]}
    frame = next(page(charts=[chart]).by_id("chart-1").all("g", "frame"))
    labels = [t.text for t in frame.all("text") if t.attributes.get("text-anchor") == "end"]
    assert (labels[0], labels[-1]) == ends


def test_bars_of_numbers_are_told_as_numbers():
    chart = {"title": "x", "kind": "bars", "as": "number", "x_label": "", "y_label": "y",
             "series": [{"name": "a", "x": [0], "y": [0.5], "low": [0.4], "high": [0.6]}, {"name": "b", "x": [0], "y": [2.0]}]}
    bars = next(page(charts=[chart]).by_id("chart-1").all("svg", "roomy"))
    assert ".50  (.40 to .60)" in [t.text for t in bars.all("text")]
    first, second = (float(r.attributes["width"]) for r in bars.all("rect"))
    assert second == pytest.approx(4 * first, rel=1e-3)


@pytest.mark.parametrize(("value", "words"), [(0.65, ".65"), (-0.125, "−.12"), (1.0, "1.00"), (-1.0, "−1.00"), (0, ".00"), (-0.001, ".00"),
                                              (0.996, ".996"), (0.99999, ">.999"), (1 - 1e-12, "1.00"), (210.4, "210.4"), (None, "–"),
                                              (float("nan"), "–"), (-3.5, "−3.5")])
def test_a_number_that_is_no_share_has_two_decimals(value, words):
    assert trust.decimal(value) == words
