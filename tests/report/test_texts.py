"""Texts in the gallery: what was swapped, and what each explainer says of the words, whatever the words are."""

from __future__ import annotations

import time

import numpy as np
import pytest

from report import made
from report.reading import Page
from whytrust.pictures import html
from whytrust.report import page
from whytrust.report.gallery import DEEPEST, K
from whytrust.report.shown import shown
from whytrust.report.texts import FIRST, NARROW, around
from whytrust.report.words import termed

LETTERS = tuple(f"{a}{b}" for a in "abcdefghijklmnopqrst" for b in "abcdefghijklmno")
NAMES = {"occlusion": 0.15, "lime": 0.4, "edges": 40.0}
FOUND = made.findings(n=30, names=NAMES, kind="text", kinds=("better_than_random", "undecided", "worse"))
CASES = made.text_cases(2, NAMES)


@pytest.fixture(scope="module")
def first():
    return Page(page.document(FOUND, [shown(*case) for case in CASES])).by_id("case-0")


def boxes(case):
    """{who: the element that holds the words}"""
    return {next(figure.all("b", None)).text if "who" not in figure.classes else next(next(figure.all("figcaption")).all("b")).text:
            next(figure.all("div", "text")) for figure in case.all("figure")}


def plain(element):
    """The text without the numbers of ranks."""
    return element.text if not list(element.all("span", "rank")) else "".join(_spoken(element))


def _spoken(element):
    numbers = [one.text for one in element.all("span", "rank")]
    rest = element.text
    for number in numbers:
        before, _, rest = rest.partition(number)
        yield before
    yield rest


def texts_of(number):
    _, arrays = CASES[number]
    return tuple(bytes(arrays[name]).decode() for name in ("clean", "adversarial"))


def test_a_text_is_shown_before_and_after_with_the_old_word_struck_before_the_new(first):
    before, after = [figure for figure in first.all("figure") if "who" not in figure.classes]
    clean, changed = texts_of(0)
    assert next(before.all("div", "text")).text == clean
    assert [one.text for one in after.all("s")] == ["old2", "old5"]
    assert [one.text for one in after.all("span", "swap")] == ["old2\u00a0→\u00a0new2", "old5\u00a0→\u00a0new5"]
    undone = next(after.all("div", "text")).text.replace("old2\u00a0→\u00a0", "").replace("old5\u00a0→\u00a0", "")
    assert undone == changed
    assert "answer: good" in before.text
    assert "answer: bad" in after.text


def test_each_explainer_has_the_changed_text_with_its_ranks_and_the_swapped_words_underlined(first):
    record, _ = CASES[0]
    found = boxes(first)
    for name in NAMES:
        order = record["trials"][0]["order"][name]
        ranked = {int(one.attributes["data-rank"]): one for one in found[name].all("span", "part")}
        names = texts_of(0)[1].split()
        assert [next(ranked[rank + 1].all("mark"), ranked[rank + 1]).text.removeprefix(str(rank + 1)) for rank in range(12)] == [
            names[part] for part in order]
        assert {rank for rank, one in ranked.items() if "on" in one.classes} == set(range(1, K + 1))
        assert [one.text.lstrip("0123456789") for one in found[name].all("span", "swapped")] == ["new2", "new5"]
        assert plain(found[name]) == texts_of(0)[1]


def test_blue_and_orange_are_the_sign_of_a_score_and_faint_words_stay_plain():
    record, arrays = made.text_cases(1, {"lime": 0.3}, words=4, swapped=(1,))[0]
    record["trials"][0]["scores"] = {"lime": [1.0, -0.5, 0.01, 0.0]}
    case = Page(page.document(FOUND, [shown(record, arrays)])).by_id("case-0")
    marks = list(boxes(case)["lime"].all("mark"))
    assert [(one.text, one.attributes["class"]) for one in marks] == [("plain", "for"), ("new1", "against")]
    assert [one.attributes["title"] for one in marks] == ["plain: +1", "new1: −0.5"]


def test_sizes_have_colours_and_no_sign():
    record, arrays = made.text_cases(1, {"lime": 0.3}, words=4, swapped=(1,))[0]
    record["trials"][0]["scores"] = {"lime": [1.0, 0.5, 0.2, 0.0]}
    for positive, kind in (({}, "much"), ({"lime": {"k": 3}}, "for")):
        record["trials"][0]["positive"] = positive
        case = Page(page.document(FOUND, [shown(record, arrays)])).by_id("case-0")
        assert {one.attributes["class"] for one in boxes(case)["lime"].all("mark")} == {kind}


def test_baselines_that_know_the_swaps_mark_those_alone(first):
    found = boxes(first)
    for name in ("oracle", "magnitude"):
        assert {one.text.lstrip("0123456789") for one in found[name].all("span", "part")} == {"new2", "new5"}
    assert "magnitude_mean" not in found


def test_words_that_try_to_be_markup_stay_words():
    words = [*made.HOSTILE, "שלום", "👍🏽", "plain"]
    record, arrays = made.text_cases(1, {"lime": 0.3}, words=len(words), swapped=())[0]
    arrays = {**made.bytes_of("clean", words), **made.bytes_of("adversarial", [f"{word}!" for word in words])}
    read = Page(page.document(FOUND, [shown(record, arrays)]))
    assert read.faults == []
    assert len(read.all("script")) == 1
    assert {e.tag for e in read.elements} <= html.TAGS | {"script"}
    case = read.by_id("case-0")
    assert plain(boxes(case)["lime"]).replace("\ufffd", "?") == html.clean(" ".join(f"{word}!" for word in words)).replace("\ufffd", "?")
    assert all(one.attributes["dir"] == "auto" for one in case.all("div", "text"))


def test_of_a_long_text_what_matters_is_shown_and_what_is_left_out_is_marked():
    record, arrays = made.text_cases(1, {"lime": 0.3}, words=300, swapped=(150,), vocabulary=LETTERS)[0]
    case = Page(page.document(FOUND, [shown(record, arrays)])).by_id("case-0")
    box = boxes(case)["lime"]
    order = record["trials"][0]["order"]["lime"]
    expected = {*order[:DEEPEST]} | {near for place in (150, *order[:FIRST]) for near in range(place - NARROW, place + NARROW + 1)}
    there = [word for word in plain(box).split() if word != "…"]
    assert there == ["new150" if place == 150 else LETTERS[place] for place in sorted(expected & set(range(300)))]
    assert "…" in box.text
    assert {int(one.attributes["data-rank"]) for one in box.all("span", "part")} == set(range(1, DEEPEST + 1))


def test_a_dozen_documents_of_ten_thousand_words_make_a_page_that_can_be_sent():
    begin = time.perf_counter()
    cases = [shown(*case) for case in made.text_cases(12, made.EXPLAINERS, words=10_000, swapped=tuple(range(0, 10_000, 900)))]
    text = page.document(made.findings(n=20, kind="text"), cases)
    assert len(text.encode()) < 3_000_000
    assert time.perf_counter() - begin < 60  # most of it making up the cases


def test_around_a_place_are_its_neighbours_inside_the_text():
    assert around(10, {0, 8}, 2) == {0, 1, 2, 6, 7, 8, 9}


@pytest.mark.parametrize(("wrong", "message"), [
    ({"clean_spans": np.array([[0, 4]])}, "both texts must have as many words, got 1 and 12"),
    ({"clean_spans": np.array([[4, 0]] * 12)}, "clean_spans must say where each word begins and ends"),
    ({"adversarial_spans": np.array([[0, 10_000]])}, "inside the text"),
    ({"adversarial_spans": np.zeros(3, int)}, "adversarial_spans must say"),
    ({"clean_spans": np.array([[-1, 2]] * 12)}, "in order and inside the text"),
])
def test_arrays_that_do_not_fit_are_refused_in_a_sentence(wrong, message):
    record, arrays = CASES[0]
    with pytest.raises(ValueError, match=message):
        shown(record, {**arrays, **wrong})


def test_a_failed_explainer_says_so_in_place_of_a_text():
    record, arrays = made.text_cases(1, NAMES)[0]
    trial = record["trials"][0]
    trial["failed"] = {"lime": "<b>no luck</b>"}
    for key in ("order", "scores"):
        trial[key] = {name: value for name, value in trial[key].items() if name != "lime"}
    trial["flip"]["any"].pop("lime")
    case = Page(page.document(FOUND, [shown(record, arrays)])).by_id("case-0")
    assert "failed: <b>no luck</b>" in case.text


def test_sentences_about_parts_are_about_words_where_inputs_are_texts():
    assert termed({"kind": "text"}, "Inputs have parts; a part of an input, apart.") == "Texts have words; a word of a text, apart."
    assert termed({"kind": "image"}, "a part of an input") == "a part of an input"
    read = Page(page.document(FOUND, [shown(*CASES[0])]))
    assert read.by_id("k").attributes["data-unit"] == "word"
