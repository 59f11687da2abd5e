"""What a user types: pick, and what comes back, in words, as a table, a page and a file."""

import json
import pickle
from html.parser import HTMLParser

import numpy as np
import pytest

import whytrust as wt
from whytrust.report.words import percent


def reasons(texts):
    """A model whose only reasons are the words good and dull."""
    p = np.array([0.5 + 0.3 * ("good" in t.split()) - 0.3 * ("dull" in t.split()) for t in texts])
    return np.column_stack([1 - p, p])


def other(texts):
    """One whose only reason is the word film."""
    p = np.array([0.5 + 0.4 * ("film" in t.split()) for t in texts])
    return np.column_stack([1 - p, p])


TEXTS = ["a plain film", "a good film", "the good end", "a dull film", "nothing at all", "good and dull"]
EXACT = {"method": "submodular", "explainer": "occlusion", "target": 1}


@pytest.fixture
def picked():
    return wt.pick(wt.model(reasons, name="reasons"), TEXTS, budget=3, **EXACT)


class Elements(HTMLParser):
    def __init__(self, page):
        super().__init__()
        self.tags, self.places = [], []
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.places += [value for key, value in attributes if key == "href"]


# --- what is picked ---------------------------------------------------------------------------------------------------


def test_the_first_picks_cover_the_only_reasons(picked):
    assert picked.indices[0] == 5  # the one text that shows both
    assert set(picked.features[0]) == {"good", "dull"}
    assert picked.coverage.tolist() == [1, 1, 1]
    assert picked.features[1:] == ((), ())
    apart = wt.pick(reasons, TEXTS[:5], budget=2, **EXACT)
    assert sorted(f for new in apart.features for f in new) == ["dull", "good"]
    assert apart.indices == (1, 3)
    assert apart.bound == 1.0


def test_it_is_a_sequence_of_explanations(picked):
    assert len(picked) == 3
    assert all(isinstance(e, wt.Explanation) for e in picked)
    assert picked[0] == picked.explanations[picked.indices[0]]
    assert picked[:2] == [picked[0], picked[1]]
    assert len(picked.explanations) == len(TEXTS)
    assert pickle.loads(pickle.dumps(picked)).indices == picked.indices


def test_targets_are_the_predicted_class_or_one_for_all():
    assert {e.target for e in wt.pick(reasons, TEXTS, 2, explainer="occlusion").explanations} == {0, 1}
    assert {e.target for e in wt.pick(reasons, TEXTS, 2, explainer="occlusion", target=0).explanations} == {0}


def test_random_picks_are_seeded_and_explain_as_much():
    one, two, three = (wt.pick(reasons, TEXTS, 3, "random", "occlusion", 1, seed=seed) for seed in (0, 0, 1))
    assert one.indices == two.indices != three.indices
    assert "random pick" in str(one)
    assert one.table()[0]["features"] == list(one.features[0])


def test_two_models_are_picked_for_in_turns_and_shown_side_by_side(tmp_path):
    found = wt.pick((wt.model(reasons, name="first"), wt.model(other, name="second")), TEXTS, 2, explainer="occlusion", target=1)
    assert isinstance(found[0], tuple)
    assert [e.model for e in found[0]] == ["first", "second"]
    assert found.gains.shape == (2, 2)
    assert found.indices == (5, 0)  # the first model's turn, then the second's
    assert found.coverage[:, -1].tolist() == [1, 1]
    assert found.table()[1]["chosen_for"] == "first"
    assert "first and second" in str(found)
    page = found.as_html()
    assert page.count('class="side"') == 4
    assert "Picked for what it adds to <bdi>second</bdi>" in page
    found.save(tmp_path / "two.json")
    assert wt.Picked.load(tmp_path / "two.json").as_html() == page
    same = wt.pick([reasons, reasons], TEXTS, 1, explainer="occlusion")
    assert [e.model for e in same[0]] == ["reasons (A)", "reasons (B)"]


def test_explanations_that_are_there_already_can_be_picked_from(picked):
    ready = wt.explain(reasons, TEXTS, "occlusion", 1)
    assert wt.pick(None, ready, 3).indices == picked.indices
    assert wt.Picked.of(wt.Gallery(tuple(ready)), 3).indices == picked.indices
    assert wt.pick(None, (ready, ready), 2).gains.shape == (2, 2)
    with pytest.raises(TypeError, match="leave out explainer"):
        wt.pick(None, ready, 3, target=1)
    with pytest.raises(ValueError, match="at least one Explanation"):
        wt.Picked.of([])
    with pytest.raises(ValueError, match="same inputs, got 6, 5"):
        wt.Picked.of([ready, ready[:5]])


def test_inputs_that_cannot_be_explained_are_told_and_left_out(tmp_path):
    found = wt.pick(reasons, [*TEXTS[:2], "  ", *TEXTS[2:]], 2, **EXACT)
    assert list(found.failed) == [2]
    assert found.indices[0] == 6  # of the inputs as they were given
    assert found.explanations[2] is None
    assert "1 input of 7 could not be explained and is left out: input 2; a text must have" in found.notes[-1]
    assert "What could not be explained" in found.as_html()
    found.save(tmp_path / "p.json")
    assert wt.Picked.load(tmp_path / "p.json").failed == found.failed
    with pytest.raises(ValueError, match="at least one word"):
        wt.pick(reasons, ["  ", " "], 2, **EXACT)


def test_the_first_inputs_without_an_explanation_are_named(tmp_path):
    for name in "abcd":
        (tmp_path / f"{name}.txt").write_text("  ")
    found = wt.pick(reasons, [TEXTS[0], *(tmp_path / f"{name}.txt" for name in "abcd")], 1, **EXACT)
    said = "4 inputs of 5 could not be explained and are left out: input 1 (a.txt), input 2 (b.txt), input 3 (c.txt) and 1 more; the first: "
    assert said in str(found)
    assert "Input 4<bdi> (d.txt)</bdi>: " in found.as_html()
    assert wt.Picked.from_json(found.to_json()).notes == found.notes


def test_unsigned_explanations_count_like_any_other(rng):
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    net = wt.model(torch.nn.Sequential(torch.nn.Conv2d(1, 3, 3), torch.nn.Flatten(), torch.nn.Linear(108, 2)), output="logit")
    images = [rng.random((8, 8)).astype(np.float32) for _ in range(5)]
    found = wt.pick(net, images, 2, explainer="saliency", parts="grid:2x2", pooling="mean_abs", components=3)
    assert found[0].unsigned
    assert "net's activations" in found.sides[0].shared.about
    assert 0 < found.coverage[-1] <= 1


# --- kinds of inputs ----------------------------------------------------------------------------------------------------


def test_rows_folders_and_sounds(rng, tmp_path):
    table = rng.normal(size=(60, 3))
    rows = wt.pick(lambda b: b[:, 0] - 2 * b[:, 1], table[:6], 2, background=table, samples=60, names=["a", "b", "c"])
    assert set(rows.features[0]) <= {"a", "b", "c"}
    waves = [np.sin(np.arange(800) * (i + 1) / 9) for i in range(4)]
    sounds = wt.pick(lambda b: np.abs(b).mean(axis=1), waves, 2, explainer="occlusion", parts="time:4", rate=800, components=3)
    assert len(sounds.sides[0].shared.names) <= 3
    assert "<audio" in sounds.as_html()
    pillow = pytest.importorskip("PIL.Image")
    for name in ("b.png", "a.png", "c.png"):
        pillow.fromarray((rng.random((12, 12, 3)) * 255).astype(np.uint8)).save(tmp_path / name)
    images = wt.pick(lambda b: b.mean(axis=(1, 2, 3)), tmp_path, 2, explainer="occlusion", parts="grid:2x2", fill="black")
    assert {e.source for e in images} <= {"a.png", "b.png", "c.png"}
    assert images.as_html().count('class="example"') >= 1
    assert '<span class="example"' not in images.as_html()  # also those that no picked explanation shows have a picture
    places = wt.pick(lambda b: b.mean(axis=(1, 2, 3)), tmp_path, 2, explainer="occlusion", parts="grid:2x2", describe=("place",))
    assert places.features[0][0].startswith("segment")


# --- in words, on a page, in a file ---------------------------------------------------------------------------------------


def test_it_says_in_words_what_was_picked(picked):
    words = str(picked)
    assert words.startswith("3 of 6 explanations of reasons (submodular pick)")
    assert "1. input 5: class 1 = 0.5; adds 100%: good, dull" in words
    assert "2. input 0: class 1 = 0.5; adds nothing new" in words
    assert "2 of the 3 picks add nothing" in words
    assert repr(picked) == "<Picked 3 of 6 explanations, submodular: [5, 0, 1]>"


def test_the_page_holds_every_pick_and_number(picked):
    page = picked.renamed([f"review {i}.txt" for i in range(6)]).as_html()
    found = Elements(page)
    assert {"script", "iframe", "link"}.isdisjoint(found.tags)
    assert page.count('class="card"') == 3 + 2  # with the overview and how it misleads
    assert all(f'id="{place[1:]}"' in page for place in found.places)
    assert "review 5.txt" in page
    assert "adds nothing new" in page
    assert percent(float(picked.coverage[0])) in page
    assert "random picks" in page
    assert "<div" in picked._repr_html_()


def test_text_of_the_data_is_never_markup():
    evil = "<script>alert(1)</script> good \"quoted\" & 'more'"
    model = wt.model(reasons, name="<b>model</b>", classes=["<i>no</i>", "yes"])
    found = wt.pick(model, [evil, "a good <img src=x onerror=y> film"], 2, explainer="occlusion", parts="sentences")
    page = found.renamed(["<u>one</u>", "two"]).as_html()
    tags = Elements(page).tags
    assert not {"script", "b", "i", "u"} & set(tags)
    assert "&lt;script&gt;" in page
    assert "onerror=y>" not in page


def test_files_come_back_as_they_were(picked, tmp_path):
    path = picked.save(tmp_path / "pick.json")
    again = wt.Picked.load(path)
    assert again.indices == picked.indices
    assert again.table() == picked.table()
    assert str(again) == str(picked)
    assert list(again) == list(picked)
    assert again.bound == picked.bound
    assert json.loads(path.read_text())["indices"] == [5, 0, 1]
    more = wt.Picked.of(list(picked), budget=9)
    assert any("9 explanations were asked for" in note for note in more.notes)
    assert wt.Picked.from_json(more.to_json()).notes == more.notes


def test_pages_and_figures_are_written_whole_or_not_at_all(picked, tmp_path):
    pytest.importorskip("matplotlib")
    for name in ("pick.html", "pick.png", "pick.svg"):
        assert picked.save(tmp_path / name).stat().st_size > 5000
    assert sorted(p.name for p in tmp_path.iterdir()) == ["pick.html", "pick.png", "pick.svg"]
    assert picked.save(tmp_path / "pick.html").read_text(encoding="utf-8") == picked.as_html()
    with pytest.raises(ValueError, match="must end in"):
        picked.save(tmp_path / "pick.doc")
    with pytest.raises(FileNotFoundError, match="must exist"):
        picked.save(tmp_path / "no" / "pick.html")
    with pytest.raises(TypeError, match="no options"):
        picked.save(tmp_path / "pick.json", top=3)


@pytest.mark.parametrize(("data", "words"), [
    ({"kind": "explanation"}, "must be a pick"), ({"kind": "pick", "format": 99}, "update whytrust"), ([], "must be a pick"),
    ({"kind": "pick", "format": 1}, "no pick as picked.save"),
])
def test_other_files_are_refused(data, words, tmp_path):
    (tmp_path / "p.json").write_text(json.dumps(data))
    with pytest.raises(ValueError, match=words):
        wt.Picked.load(tmp_path / "p.json")


def test_files_that_were_tampered_with_are_refused(picked):
    data = picked.to_json()
    for change in ({"picked": [0, 0, 1]}, {"budget": 2}, {"turns": [0, 0, 7]}, {"method": "best"}, {"sides": []}):
        with pytest.raises(ValueError, match=r"picks must be|turn of|method must be|at least one model"):
            wt.Picked.from_json({**data, **change})
    data["sides"][0]["features"]["of_parts"][0][0] = 99
    with pytest.raises(ValueError, match="features of this file"):
        wt.Picked.from_json(data)


def test_every_weight_may_be_zero():
    found = wt.pick(lambda texts: np.zeros(len(texts)), TEXTS, 2, explainer="occlusion")
    assert "nothing to cover" in str(found)
    assert "Nothing matters" in found.as_html()


@pytest.mark.parametrize(("options", "words"), [
    ({"method": "lime"}, "the explainer is given as explainer="), ({"budget": 0}, "budget must be"),
    ({"target": "top:2"}, "one class for all inputs"), ({"target": [0, 1]}, "one class for all inputs"),
    ({"explainer": ["lime", "occlusion"]}, "must be one explainer"), ({"model": (reasons,)}, "two or more"),
    ({"inputs": "a text"}, "inputs must be several"), ({"inputs": []}, "empty"),
    ({"components": 0, "inputs": [np.zeros((8, 8))] * 2, "parts": "grid:2x2", "model": lambda b: b.mean(axis=(1, 2))}, "components must be"),
])
def test_what_cannot_be_is_one_clear_error(options, words):
    given = {"model": reasons, "inputs": TEXTS, "explainer": "occlusion", **options}
    with pytest.raises(ValueError, match=words):
        wt.pick(**given)


def test_a_pick_needs_a_model_or_explanations():
    with pytest.raises(TypeError, match=r"model must be what wt\.model takes, got None"):
        wt.pick(None, TEXTS)
    with pytest.raises(TypeError, match="has no option 'sampels'"):
        wt.pick(reasons, TEXTS, 2, sampels=9)


@pytest.mark.parametrize("score", [0.3, 0.7, 1e6])
def test_in_a_model_that_never_changes_its_mind_nothing_matters(score):
    picked = wt.pick(lambda texts: np.full(len(texts), score), ["a warm film", "a dull one", "too long"], budget=2)
    assert "Nothing matters" in str(picked)


def test_a_folder_may_be_named_as_a_text(tmp_path):
    (tmp_path / "one.txt").write_text("a warm film")
    (tmp_path / "two.txt").write_text("a dull film")
    picked = wt.pick(lambda texts: [("warm" in text) * 0.5 for text in texts], str(tmp_path), budget=1)
    assert len(picked.explanations) == 2
    with pytest.raises(ValueError, match="no such folder"):
        wt.pick(len, str(tmp_path / "nowhere"))


def test_explanations_that_name_everything_are_told_to_name_less(rng):
    rows = rng.normal(size=(40, 3))
    picked = wt.pick(lambda batch: np.asarray(batch, dtype=float) @ [1.0, 2.0, 3.0], rows[:8], budget=3, background=rows)
    assert any("features=1." in note for note in picked.notes)
    less = wt.pick(lambda batch: np.asarray(batch, dtype=float) @ [1.0, 2.0, 3.0], rows[:8], budget=3, background=rows, features=1)
    assert not any("features=" in note for note in less.notes)
