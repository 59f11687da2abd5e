"""What a reader finds on a page."""

from __future__ import annotations

import base64
import dataclasses
import io
import re
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image

from whytrust.pictures import bars, html, overlays, page, scenes, shown

KINDS = ("image", "text", "sound", "bare sound", "table")


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_gives_a_whole_page_that_asks_for_nothing_else(make: SimpleNamespace, kind: str) -> None:
    text = page.document([make.kinds()[kind]], title="Why?")
    found = make.read(text)
    assert found.faults == []
    assert text.startswith("<!DOCTYPE html>")
    assert found.all("html")[0].attributes["lang"] == "en"
    assert "http" not in re.sub(r"base64,[^\"]*|<meta http-equiv", "", text)
    assert not re.search(r"url\(|@import|<script|<link", text)
    assert all(img.attributes["alt"] for img in found.all("img"))
    assert "NaN" not in text
    assert "net says cat: 0.93" in found.all("h2")[0].text
    assert "speaks for cat" in found.all("p", "legend")[0].text
    assert "speaks against cat" in found.all("p", "legend")[0].text


def test_a_fragment_styles_only_itself(make: SimpleNamespace) -> None:
    text = page.fragment([make.kinds()["table"]])
    found = make.read(text)
    assert found.elements[0].tag == "div"
    assert not found.all("html")
    assert not found.all("h1")
    rules = re.sub(r"@(media|container)[^{]*\{", "", found.all("style")[0].text)
    selectors = [s.strip() for block in re.findall(r"([^{}]+)\{", rules) for s in block.split(",")]
    assert selectors
    assert all(s.startswith(".whytrust") for s in selectors)


def test_bars_are_as_long_as_scores_and_ranges_are_at_196_errors(make: SimpleNamespace) -> None:
    scores, errors = np.array([0.4, -0.2, 0.1]), np.array([0.05, 0.1, 0.02])
    found = make.read(str(bars.chart(make.explanation(make.table(), scores, standard_errors=errors))))
    rects, lines = found.all("rect", "bar"), found.all("line", "error")
    zero = found.all("line", "zero")[0].number("x1")
    unit = rects[0].number("width") / 0.4
    for rect, line, score, error in zip(rects, lines, scores, errors, strict=True):
        assert rect.number("width") == pytest.approx(abs(score) * unit, abs=0.01)
        assert rect.number("x") == pytest.approx(zero + min(score, 0) * unit, abs=0.01)
        assert line.number("x1") == pytest.approx(zero + (score - 1.96 * error) * unit, abs=0.01)
        assert line.number("x2") == pytest.approx(zero + (score + 1.96 * error) * unit, abs=0.01)
        assert 0 <= line.number("x1") <= line.number("x2") <= bars.WIDTH
    assert [t.text for t in found.all("text", "score")] == ["+0.400 ± 0.098", "−0.200 ± 0.196", "+0.100 ± 0.039"]


def test_long_names_are_shortened_with_the_whole_name_at_hand(make: SimpleNamespace) -> None:
    name = "a very long name of a column " * 10 + "> 3.14"
    found = make.read(str(bars.chart(make.explanation(make.table(1), [0.5], [name]))))
    label = found.all("text", "name")[0].text
    assert label.startswith("1. a very long")
    assert label.endswith("> 3.14")
    assert bars.text_width(label) + bars.text_width("+0.500") < bars.WIDTH
    assert name.strip() in found.all("title")[0].text


@pytest.mark.parametrize("text", ["漢字" * 60, "😀" * 60, "W" * 90, "ab " * 90])
def test_shortened_text_fits(text: str) -> None:
    assert bars.text_width(bars.fit(text, 100)) <= 100
    assert bars.fit("short", 100) == "short"
    assert bars.fit(text, 1) == "…"


def test_notes_order_rules_and_numbers_are_told(make: SimpleNamespace) -> None:
    e = make.explanation(make.table(), [0.3, -0.2, 0.1], notes=("Read with care.",), undecided=(1, 2), rules="x <= 1",
                         local_prediction=0.9, intercept=0.7, fidelity=0.81, fidelity_fresh=0.42, seed=7,
                         settings={"samples": 1000, "design": "pairs", "width": None})
    found = make.read(page.document([e], title="Why?"))
    assert found.all("li")[0].text == "⚠ Warning: Read with care."
    unfitted = make.read(page.document([dataclasses.replace(e, fidelity=None, fidelity_fresh=None)], title="Why?"))
    assert unfitted.all("li")[0].text == "⚠ Note: Read with care."
    assert "ranks 1 to 3 may be chance" in found.all("p", "doubt")[0].text
    assert found.all("pre")[0].text == "x <= 1"
    rows = {tr.text for tr in found.all("tr")}
    for start in ("Model's prediction0.93", "Local prediction0.9", "Gap+0.03", "Intercept0.7", "Fidelity0.81",
                  "Fidelity, unseen samples0.42", "Model calls1,001"):
        assert any(row.startswith(start) and len(row) > len(start) + 20 for row in rows), start
    assert found.all("p", "made")[0].text == "How it was made: method lime, samples 1,000, design pairs, seed 7."


def test_numbers_that_do_not_exist_are_not_shown(make: SimpleNamespace) -> None:
    found = make.read(page.document([make.explanation(make.table(), [0.3, -0.2, 0.1])], title="Why?"))
    assert "Fidelity" not in "".join(table.text for table in found.all("table"))
    assert not found.all("ul")
    assert not found.all("p", "doubt")
    assert not found.all("pre")


@pytest.mark.parametrize(("ranks", "words"), [((1,), "ranks 1 and 2 may"), ((2, 3, 7), "ranks 2 to 4; 7 and 8 may"),
                                              ((1, 14), "1 and 2 (and others further down) may"),
                                              ((12, 15), "12 and below may")])
def test_undecided_ranks_in_words(make: SimpleNamespace, ranks: tuple[int, ...], words: str) -> None:
    assert words in (shown.doubt(make.explanation(make.table(), [1, 2, 3], undecided=ranks)) or "")


def test_words_are_marked_with_colour_sign_and_number_and_blanks_are_kept(make: SimpleNamespace) -> None:
    e = make.explanation(make.text(["good", "bad", "so", "fine"], " \n\t "), [1.0, -0.5, 0.001, 0.7], ["g", "b", "s", "f"],
                         selected=np.array([True, True, True, False]))
    found = make.read(str(scenes.scene(e, "signed")))
    assert found.all("div", "text")[0].text == "good \n\t bad \n\t so \n\t fine"
    assert [(m.text, m.attributes["class"], m.attributes["title"]) for m in found.all("mark")] == [
        ("good", "for", "g: +1.00"), ("bad", "against", "b: −0.50")]
    assert found.all("span")[0].text == "so"  # too faint to colour, its score is still at hand


def test_overlapping_spans_show_each_character_once(make: SimpleNamespace) -> None:
    view = dataclasses.replace(make.text(["abcdef"]), spans=(((0, 4),), ((2, 6),), ((4, 6), (6, 6))))
    found = make.read(str(scenes.scene(make.explanation(view, [1.0, -1.0, 0.5]), "signed")))
    assert found.all("div", "text")[0].text == "abcdef"


def test_positive_style_greys_exactly_the_parts_that_are_not_positive(make: SimpleNamespace) -> None:
    e = make.explanation(make.image(320, 330), [0.5, -0.3, 0.0, 0.2, -0.1, 1e-9])
    source = make.read(page.document([e], title="Why?", style="positive")).all("img")[1].attributes["src"] or ""
    drawn = np.asarray(Image.open(io.BytesIO(base64.b64decode(source.split(",")[1]))))
    keep = np.isin(e.view.labels, [0, 3, 5])
    assert np.array_equal(drawn[keep], e.view.pixels[keep])
    assert (drawn[~keep] == overlays.GREY).all()
    with pytest.raises(ValueError, match="style"):
        page.document([e], title="Why?", style="loud")


def test_the_overlay_is_blue_for_orange_against_and_grey_elsewhere(make: SimpleNamespace) -> None:
    canvas = overlays.image_canvas(make.image(320, 330))
    drawn = canvas.coloured(np.array([0.5, -0.5, 0.0, 0.0, 0.0, 0.0])).astype(int)
    inner = ~overlays.raster.outlines(canvas.labels)
    red, blue = drawn[..., 0], drawn[..., 2]
    assert (blue > red)[inner & (canvas.labels == 0)].all()
    assert (red > blue)[inner & (canvas.labels == 1)].all()
    assert (red == blue)[canvas.labels > 1].all()


def test_explanations_of_one_input_stand_side_by_side(make: SimpleNamespace) -> None:
    view = make.image()
    scores = [0.5, -0.3, 0.1, 0.0, 0.2, -0.1]
    three = [make.explanation(view, np.roll(scores, i), target_name=f"class {i}") for i in range(3)]
    other = make.kinds()["table"]
    found = make.read(page.document([*three, other], title="Why?"))
    assert len(found.all("div", "grid")) == 1
    assert len(found.all("article", "card")) == 4
    assert len(found.all("img")) == 4  # the image once, then each explanation's overlay
    assert [[e.target_name for e in group] for group in shown.groups([*three, other])] == [
        ["class 0", "class 1", "class 2"], ["cat"]]


def test_a_difference_is_worded_as_one(make: SimpleNamespace) -> None:
    a, b = (make.explanation(make.table(), s, target_name="cat", model=m) for s, m in (([1, 2, 3], "A"), ([3, 2, 0], "B")))
    text = make.read(page.document([a.minus(b)], title="Why?"))
    assert text.all("h2")[0].text == "The difference cat (A) minus cat (B) is 0"
    assert "raises the difference" in text.all("p", "legend")[0].text
    assert text.all("li")[0].text.startswith("Note: ")


def test_sound_has_a_player_and_axes(make: SimpleNamespace) -> None:
    found = make.read(page.document([make.kinds()["sound"]], title="Why?"))
    assert (found.all("audio")[0].attributes["src"] or "").startswith("data:audio/wav;base64,")
    assert [s.text for s in found.all("span") if s.text in ("0 s", "0.4 s", "8 kHz")] == ["8 kHz", "0 s", "0.4 s"]
    bare = make.read(page.document([make.kinds()["bare sound"]], title="Why?"))
    assert not bare.all("audio")
    assert "frame 40" in bare.all("div", "time")[0].text


def test_a_spectrogram_has_low_notes_at_the_bottom_and_loud_ones_dark(make: SimpleNamespace) -> None:
    view = make.sound()
    quiet = np.zeros_like(view.spectrogram)
    quiet[:5, 0] = 1.0  # a low note at the beginning
    pixels = overlays.sound_canvas(dataclasses.replace(view, spectrogram=quiet)).pixels[..., 0]
    assert pixels[-1, 0] == 0
    assert pixels[0, 0] == pixels[-1, -1] == 255


@pytest.mark.parametrize("scores", [np.zeros(200), np.linspace(-1, 1, 200), np.array([0.3]), np.full(3, 1e-12),
                                    np.full(3, 1e12)])
def test_many_parts_one_part_no_scores_and_odd_sizes(make: SimpleNamespace, scores: np.ndarray) -> None:
    e = make.explanation(make.table(len(scores)), scores, standard_errors=np.zeros(len(scores)))
    found = make.read(page.document([e], title="Why?"))
    assert found.faults == []
    assert len(found.all("rect")) == min(10, len(scores))
    assert ("Every score is 0" in found.all("p", "legend")[0].text) == (not scores.any())


def test_parts_left_out_are_told_apart_from_small_ones(make: SimpleNamespace) -> None:
    selected = np.arange(30) < 12
    e = make.explanation(make.table(30), np.arange(30, 0, -1.0), selected=selected)
    found = make.read(page.document([e], title="Why?"))
    assert [s.text for s in found.all("summary")] == ["2 more columns with smaller scores",
                                                      "18 columns that the explanation leaves out"]
    assert "uses 12 of 30 parts" in "".join(p.text for p in found.all("p"))


@pytest.mark.parametrize(("value", "words"), [(0.93, "0.93"), (-0.5, "−0.5"), (0, "0"), (23412.4, "23,412"),
                                              (0.9996, "0.9996"),
                                              (1e-9, "1.00e-09"), (None, "not known"), (float("nan"), "not known"),
                                              (0.99999999, "1"), (512.25, "512.2")])
def test_numbers_as_a_reader_wants_them(value: float | None, words: str) -> None:
    assert shown.figures(value) == words


def test_names_in_right_to_left_scripts_keep_the_sentence_in_order(make: SimpleNamespace) -> None:
    assert shown.headline(make.explanation(make.table(1), [1], target_name="חתול")) == "net says \u200eחתול\u200e: 0.93"
    plain = make.explanation(make.table(1), [1], target_name="output", model="model")
    assert shown.headline(plain) == "The model predicts 0.93"


def test_a_page_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one"):
        page.document([], title="Why?")
    assert html.TAGS.isdisjoint({"script", "link", "iframe", "object", "form"})
