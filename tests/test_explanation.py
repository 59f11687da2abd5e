import json
from dataclasses import replace

import numpy as np
import pytest

import whytrust as wt
from whitebox import Additive, Bits, question
from whytrust.core import generator
from whytrust.explainers import Lime, Occlusion


@pytest.fixture
def pair():
    return [Lime(samples=20, features="all")(question(Additive(w), Bits(3)), generator(0)) for w in ((1.0, 2.0, -3.0), (1.0, 0.5, 1.0))]


def test_the_difference_is_part_by_part(pair):
    difference = pair[0].minus(pair[1])
    np.testing.assert_allclose(difference.scores, [0, 1.5, -4], atol=1e-9)
    assert difference.prediction == pytest.approx(-2.5)
    assert "difference" in difference.as_html().lower()


def test_errors_of_a_difference_are_added_where_the_draws_are_shared():
    background = np.random.default_rng(0).normal(size=(200, 3))
    curve = lambda b: np.column_stack([p := 1 / (1 + np.exp(-b[:, 0] * b[:, 1])), 1 - p])  # noqa: E731
    first, second = wt.explain(curve, background[0], target=[0, 1], background=background, samples=300)
    np.testing.assert_allclose(first.minus(second).standard_errors, 2 * first.standard_errors)


def test_a_gallery_takes_one_many_and_nested(pair):
    assert len(wt.Gallery(pair[0])) == 1
    assert len(wt.Gallery([pair[0], pair])) == 3


def test_ties_under_enumeration_are_called_ties():
    page = Lime(samples=20)(question(Additive((1.0, 1.0)), Bits(2)), generator(0)).as_html()
    assert "are equal, so their order means nothing" in page


def test_odd_characters_survive_json(tmp_path):
    found = wt.explain(lambda texts: [len(t) for t in texts], "good \ud83d bad")
    assert wt.Explanation.load(found.save(tmp_path / "e.json")) == found


def test_a_part_that_was_left_out_has_no_known_error():
    few = [Lime(samples=40, features=2)(question(Additive((3.0, 2.0, 0.1)), Bits(3)), generator(s)) for s in (0, 1)]
    difference = few[0].minus(few[1])
    assert difference.standard_errors is None
    assert any("left out" in note for note in difference.notes)


def test_only_the_same_parts_can_be_subtracted(pair):
    other = Lime(samples=20)(question(Additive((1.0, 2.0)), Bits(2)), generator(0))
    with pytest.raises(ValueError, match="same parts"):
        pair[0].minus(other)


def test_lists_are_sorted_by_size_and_can_be_cut(pair):
    assert [name for name, _ in pair[0].as_list()] == ["part 2", "part 1", "part 0"]
    assert pair[0].as_list(1) == [("part 2", pytest.approx(-3.0))]


def test_a_gallery_saves_and_loads(pair, tmp_path):
    gallery = wt.Gallery(pair, "Two models")
    for ending in ("html", "png", "svg", "json"):
        assert gallery.save(tmp_path / f"g.{ending}").stat().st_size > 500
    again = wt.Gallery.load(tmp_path / "g.json")
    assert list(again) == list(pair)
    assert len(wt.Gallery.load(pair[0].save(tmp_path / "one.json"))) == 1
    assert not list(tmp_path.glob(".*"))  # no half-written files


@pytest.mark.parametrize(("name", "options", "error", "message"), [
    ("e.txt", {}, ValueError, "must end in"), ("e", {}, ValueError, "must end in"), ("e.json", {"top": 3}, TypeError, "no options"),
    ("e.html", {"top": 3}, TypeError, "takes style"), ("nowhere/e.html", {}, FileNotFoundError, "nowhere")])
def test_files_that_cannot_be_written(pair, tmp_path, name, options, error, message):
    with pytest.raises(error, match=message):
        pair[0].save(tmp_path / name, **options)


@pytest.mark.parametrize(("content", "message"), [("{", "must be an explanation, JSON"), ("{}", "scores and view"), ("[1]", "scores and view")])
def test_files_that_are_no_explanations(tmp_path, content, message):
    (tmp_path / "e.json").write_text(content)
    with pytest.raises(ValueError, match=message):
        wt.Explanation.load(tmp_path / "e.json")


def damaged(**changes):
    def change(data):
        for path, value in changes.items():
            *ways, last = path.split("__")
            inner = data
            for way in ways:
                inner = inner[way]
            inner[last] = value
        return data
    return change


@pytest.mark.parametrize("change", [
    damaged(scores=[1.0]), damaged(scores=[float("nan")] * 4), damaged(view=[1]), damaged(view={"kind": "image"}),
    damaged(view__labels__zlib="AAAA"), damaged(view__labels__dtype="object"), damaged(view__labels__shape=[10**9, 10**9]),
    damaged(view__labels__shape=[-1, 4]), damaged(names=["a"]), damaged(view__pixels__shape=[2, 2, 2]), damaged(standard_errors=[1])])
def test_a_hostile_file_is_one_clear_error(tmp_path, change):
    found = wt.explain(lambda b: b.mean(axis=(1, 2)), np.eye(8), parts="grid:2x2")
    (tmp_path / "e.json").write_text(json.dumps(change(found.to_json())))
    with pytest.raises(ValueError, match=r"\w"):
        wt.Explanation.load(tmp_path / "e.json")


def test_a_file_that_unpacks_to_more_than_it_says_is_refused(tmp_path):
    import base64
    import zlib

    data = wt.explain(lambda b: b.mean(axis=(1, 2)), np.eye(8), parts="grid:2x2").to_json()
    data["view"]["labels"]["zlib"] = base64.b64encode(zlib.compress(bytes(10**8))).decode()
    with pytest.raises(ValueError, match="must have 256 bytes, got more"):
        wt.Explanation.from_json(data)


def test_a_newer_format_is_refused(pair, tmp_path):
    data = pair[0].to_json() | {"format": 99}
    (tmp_path / "e.json").write_text(json.dumps(data))
    with pytest.raises(ValueError, match="newer"):
        wt.Explanation.load(tmp_path / "e.json")


def test_text_and_notebook_forms(pair):
    assert "part 2" in str(pair[0])
    assert "<html" not in pair[0]._repr_html_()
    assert "part 2" in pair[0]._repr_html_()


def test_occlusion_is_the_drop_and_has_errors_only_where_the_fill_draws():
    fixed = Occlusion()(question(Additive((1.0, -2.0)), Bits(2)), generator(0))
    np.testing.assert_allclose(fixed.scores, [1, -2])
    assert fixed.standard_errors is None
    drawn = Occlusion(repeats=400)(question(Additive((1.0, -2.0)), Bits(2, deterministic=False, noise=0.5)), generator(0))
    np.testing.assert_allclose(drawn.scores, [1, -2], atol=4 * drawn.standard_errors.max())
    np.testing.assert_allclose(drawn.standard_errors, np.array([0.5, 1.0]) / 20, rtol=0.15)
    with pytest.raises(ValueError, match="repeats"):
        Occlusion(repeats=1)(question(Additive((1.0, -2.0)), Bits(2, deterministic=False)), generator(0))


def test_a_target_that_the_model_does_not_predict_is_not_what_it_says():
    model = wt.model(lambda batch: np.tile([[0.2, 0.7, 0.1]], (len(batch), 1)), classes=["ant", "bee", "cat"], name="net")
    found = wt.explain(model, "one two", target="ant")
    assert found.predicted == "bee"
    assert "net says bee, and gives ant 0.2" in found.as_html()
    assert "Model&#39;s score of ant" in found.as_html()
    assert str(found).startswith("net: ant = 0.2 (lime); the model says bee")
    assert "net says bee: 0.7" in wt.explain(model, "one two").as_html()
    assert wt.Explanation.from_json(found.to_json()) == found
    assert wt.explain(lambda batch: np.ones(len(batch)), "one two").predicted is None


def test_it_shows_itself_in_one_line():
    found = wt.explain(lambda batch: np.ones(len(batch)), "one two three")
    assert repr(found).startswith("<Explanation of output by lime: 3 parts, one +0, two +0, …>")
    assert repr(wt.Gallery((found, found))) == "<Gallery 'Explanations' of 2 explanations>"


def test_only_lime_speaks_of_bins():
    background = np.random.default_rng(0).normal(size=(200, 2))
    found = wt.explain(lambda rows: rows[:, 0], background[0], ["lime", "occlusion"], background=background, names=["a", "b"])
    assert "≤" in " ".join(found[0].names)
    assert [name.split(" = ")[0] for name in found[1].names] == ["a", "b"]
    assert "Condition" in found[0].as_html()
    assert "Condition" not in found[1].as_html()


def test_what_means_different_things_is_not_subtracted():
    background = np.random.default_rng(0).normal(size=(200, 2))
    lime, shap, noise = wt.explain(lambda rows: rows[:, 0], background[0], ["lime", "kernel_shap", "random"], background=background)
    difference = lime.minus(shap)  # the same row, however its columns are called
    np.testing.assert_allclose(difference.scores, lime.scores - shap.scores)
    assert "by lime" in difference.target_name
    assert "by kernel_shap" in difference.target_name
    assert any("different methods" in note for note in difference.notes)
    with pytest.raises(ValueError, match=r"scores mean the same, got lime: signed scores, and random: scores without the model"):
        lime.minus(noise)


def test_print_says_what_it_leaves_out():
    text = " ".join("abcdefghijklm")
    assert "… 3 more, of smaller size" in str(wt.explain(lambda batch: [float(len(x)) for x in batch], text, features="all"))


@pytest.mark.parametrize("predicted", [5, ["a"]])
def test_a_prediction_from_a_file_must_be_text(pair, predicted):
    with pytest.raises(ValueError, match="predicted must be text"):
        wt.Explanation.from_json({**pair[0].to_json(), "predicted": predicted})


def test_the_file_that_was_explained_is_kept_shown_and_escaped_but_makes_no_difference(pair):
    named = replace(pair[0], source="<b>.wav around 1.50 s")
    assert named == pair[0]
    assert wt.Explanation.from_json(named.to_json()).source == named.source
    assert "&lt;b&gt;.wav around 1.50 s" in named.as_html()
    assert "<b>.wav" not in named.as_html()
    with pytest.raises(ValueError, match="source must be text"):
        wt.Explanation.from_json({**pair[0].to_json(), "source": 5})


def test_cards_of_several_methods_are_headed_by_them():
    several = wt.Gallery(wt.explain(lambda batch: np.ones(len(batch)), "one two", ["lime", "occlusion"]))
    assert "<h2><bdi>occlusion</bdi></h2>" in several.as_html()
    several.plot()


def test_random_scores_are_called_so():
    found = wt.explain(lambda batch: np.ones(len(batch)), "one two", "random")
    assert "speaks" not in found.as_html()
    assert any("drawn at random" in note for note in found.notes)
