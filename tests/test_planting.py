"""Artefacts are where they were put, nothing else is changed, and who looks for them finds them."""

import numpy as np
import pytest

from whytrust import inputs
from whytrust.core import generator
from whytrust.planting import Beep, Column, Patch, Tokens, holding, planted

RATE = 8000
RNG = np.random.default_rng(0)
PHOTO = RNG.integers(20, 200, (40, 60, 3)).astype(np.uint8)
WAVE = (0.1 * RNG.standard_normal(RATE)).astype(np.float32)
CELLS = RNG.normal(size=(50, 40)).astype(np.float32)


def cut(item, parts=None, **options):
    return inputs.cut(item, parts, "NHWC", options)


PLANTS = [(Tokens(("zq7", "vex")), "a good film, really"), (Column(), np.arange(5.0)), (Column(), {"a": 1, "b": "x"}),
          *((Patch(looks, at=at), PHOTO) for looks in ("square", "frame", "stripes") for at in ("random", "top left", (0.3, 0.7))),
          (Patch(), PHOTO[..., 0]), (Patch(), PHOTO.transpose(2, 0, 1) / 255.0), (Patch(at="random"), PHOTO / 128.0 - 1),
          (Patch(domain="audio", at="random"), CELLS), (Beep(RATE), WAVE), (Beep(RATE, at=0.5), (30000 * WAVE).astype(np.int16))]


@pytest.mark.parametrize(("plant", "item"), PLANTS, ids=lambda one: type(one).__name__)
def test_the_same_dice_plant_the_same_and_the_input_is_left_alone(plant, item):
    before = item.copy() if hasattr(item, "copy") else item
    one, other = (plant.into(item, generator(3, "plant")) for _ in range(2))
    np.testing.assert_equal(one, other)
    np.testing.assert_equal(item, before)
    assert not np.array_equal(one, plant.without(item))
    if isinstance(plant, Patch | Beep):
        assert one.dtype == item.dtype
        assert one.shape == item.shape
        assert one.min() >= min(item.min(), -1 if item.dtype.kind == "f" else np.iinfo(item.dtype).min)
        assert plant.without(item) is item


@pytest.mark.parametrize("text", ["a good film, really", "word", "two\nlines  of text ", "äöü 你好"])
def test_tokens_stand_between_words_and_nothing_else_changes(text):
    plant = Tokens(("zq7", "vex"))
    for seed in range(20):
        made = plant.into(text, generator(seed))
        assert {"zq7", "vex"} <= set(made.split())
        assert [word for word in made.split() if word not in plant.words] == text.split()


def test_tokens_are_found_as_words_and_in_sentences():
    text = "zq7 is here. But not zq77. And zq7 again."
    words, sentences = cut(text, "words"), cut(text, "sentences")
    assert [words.names[i] for i in np.flatnonzero(Tokens().parts_of(words))] == ["zq7", "zq7 [2]"]
    assert Tokens().parts_of(sentences).tolist() == [True, False, True]


def test_a_column_is_added_to_rows_of_every_kind_and_found_by_name_or_place():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": [1.0, 2.0, 3.0, 4.0], "b": list("xyzx")})
    made, which = planted(frame, [0, 0, 1, 1], Column("noise"), {1: 0.5}, generator(0))
    assert list(made.columns) == ["a", "b", "noise"]
    assert made["noise"].tolist() == which.astype(int).tolist()
    assert made["noise"].sum() == 1
    assert list(frame.columns) == ["a", "b"]
    assert Column("noise").parts_of(cut(made.iloc[0], background=made)).tolist() == [False, False, True]
    rows = RNG.normal(size=(20, 3))
    first = np.vstack([Column("one").into(row, RNG) for row in rows])
    both = np.vstack([Column("two").without(row) for row in first])
    both[::2, -1] = 1
    both[::3, 3] = 0
    assert Column("one", index=3).parts_of(cut(both[0], background=both)).tolist() == [False, False, False, True, False]
    assert Column("two").parts_of(cut(both[0], background=both)).tolist() == [False] * 4 + [True]
    assert Column("c").into([1, 2], RNG) == [1, 2, 1]
    assert Column("c").into(np.array([1, 2], np.int32), RNG).dtype == np.int32


@pytest.mark.parametrize("looks", ["square", "frame", "stripes"])
@pytest.mark.parametrize("at", ["random", "top left", "top right", "bottom left", "bottom right", (0.5, 0.5)])
@pytest.mark.parametrize("picture", [PHOTO, PHOTO[..., 1], PHOTO / 255.0, (PHOTO / 128.0 - 1).astype(np.float32)],
                         ids=["bytes", "grey", "unit", "normalised"])
def test_a_patch_is_found_exactly_where_the_picture_changed(looks, at, picture):
    plant = Patch(looks, share=0.2, at=at)
    made = plant.into(picture, generator(5))
    changed = (made != picture).reshape(*picture.shape[:2], -1).any(axis=-1)
    np.testing.assert_array_equal(plant.where(made) & changed, changed)
    assert not plant.where(picture).any()
    assert plant.where(made).sum() <= 8 * 12
    if at == "bottom right":
        assert changed[32:, 48:].any()
        assert not changed[:32, :48].any()


def test_parts_hold_a_patch_by_its_area():
    made = Patch(share=0.25, at="top left").into(np.zeros((40, 40), np.uint8), RNG)
    plant = Patch(share=0.25, at="top left")
    assert np.flatnonzero(plant.parts_of(cut(made, "grid:4x4"))).tolist() == [0]
    assert np.flatnonzero(plant.parts_of(cut(made, "grid:2x2"))).tolist() == [0]  # all of it in a larger part
    assert np.flatnonzero(plant.parts_of(cut(made, "grid:8x8"))).tolist() == [0, 1, 8, 9]  # a quarter of it each
    assert not plant.parts_of(cut(np.zeros((40, 40), np.uint8), "grid:4x4")).any()
    labels = np.repeat([0, 1], [3, 97])
    assert holding(np.arange(100) < 10, labels, 2).tolist() == [True, True]  # 3 of 3 pixels of the one, 7 of 10 in the other
    assert not holding(np.zeros(100, bool), labels, 2).any()


def test_a_bright_patch_in_a_spectrogram_is_found():
    plant = Patch(domain="audio", share=0.2, at=(0.5, 0.0))
    parts = cut(plant.into(CELLS, RNG), "tf:5x4", hop_seconds=0.01)
    assert [parts.names[i] for i in np.flatnonzero(plant.parts_of(parts))] == ["0.20–0.30 s, bands 0–9"]


@pytest.mark.parametrize("parts", ["time:10", "tf:5x4", "slic:20"])
@pytest.mark.parametrize("at", [None, 0.25])
@pytest.mark.parametrize("sound", [WAVE, (30000 * WAVE).astype(np.int16)], ids=["floats", "integers"])
def test_a_beep_is_found_in_time_and_frequency(parts, at, sound):
    plant = Beep(RATE, hertz=2000, seconds=0.1, level=1.0, at=at)
    made = plant.into(sound, generator(2))
    start = int(np.flatnonzero(made != sound)[0])
    cutting = cut(made, parts, rate=RATE)
    held = plant.parts_of(cutting)
    assert 1 <= held.sum() <= 3
    if parts == "time:10":
        assert held[round((start / RATE + 0.05) * 10 - 0.5)] or held[int(start / RATE * 10)]
    if at == 0.25 and parts == "tf:5x4":
        assert [cutting.names[i] for i in np.flatnonzero(held)] == ["0.20–0.40 s, 1114–2220 Hz"]
    assert not plant.parts_of(cut(sound, parts, rate=RATE)).any()


def test_a_share_of_each_class_gets_it_and_the_container_stays():
    texts, labels = [f"text number {i}" for i in range(50)], [i % 2 for i in range(50)]
    made, which = planted(texts, labels, Tokens(), {0: 0.1, 1: 0.2}, generator(1))
    assert [sum(which[i] for i in range(50) if labels[i] == label) for label in (0, 1)] == [2, 5]
    assert [("zq7" in one.split()) for one in made] == which.tolist()
    assert planted(texts, labels, Tokens(), {0: 0.1, 1: 0.2}, generator(1))[0] == made
    pandas = pytest.importorskip("pandas")
    assert planted(pandas.Series(texts, index=range(100, 150)), labels, Tokens(), {0: 0.1, 1: 0.2}, generator(1))[0] == made
    rows, _ = planted(np.zeros((6, 2), np.float32), list("aabbaa"), Column(), {"b": 1.0}, generator(0))
    assert rows.dtype == np.float32
    assert rows[:, 2].tolist() == [0, 0, 1, 1, 0, 0]
    images, which = planted(np.zeros((4, 10, 10), np.uint8), [0, 1, 0, 1], Patch(), {1: 1.0}, generator(0))
    assert (images.reshape(4, -1).max(axis=1) > 0).tolist() == which.tolist() == [False, True, False, True]


def test_ten_plants_can_be_put_in_one_after_the_other():
    items, labels = [f"some words {i}" for i in range(40)], [i % 2 for i in range(40)]
    for number in range(10):
        items, _ = planted(items, labels, Tokens(f"noise{number}"), {0: 0.1, 1: 0.2}, generator(0, number))
    assert sum(len(text.split()) - 3 for text in items) == 10 * (2 + 4)


@pytest.mark.parametrize(("make", "said"), [
    (lambda: Tokens("two words"), "without spaces"), (lambda: Tokens(()), "one or more words"),
    (lambda: Tokens().into(3, RNG), "a str, got int"), (lambda: Patch(share=1.5), "share must be"),
    (lambda: Patch(at="middle"), "at a corner"), (lambda: Patch(colour=(2, 0, 0)), "three numbers from 0 to 1"),
    (lambda: Patch().into("photo.png", RNG), "read files first"), (lambda: Patch(domain="audio").into(WAVE, RNG), "frames, bands"),
    (lambda: Patch().into(np.full((9, 9), np.nan), RNG), "finite"), (lambda: Beep(RATE, hertz=5000), "below half"),
    (lambda: Beep(RATE, at=0.95).into(WAVE, RNG), "must fit into the sound"), (lambda: Beep(RATE).into(CELLS, RNG), "a waveform"),
    (lambda: Column("a").into({"a": 1}, RNG), "a name of its own"), (lambda: Column().into(np.array(["x"]), RNG), "rows of numbers"),
    (lambda: Patch().parts_of(cut("a text")), "no image"), (lambda: Tokens().parts_of(cut(PHOTO)), "no text"),
    (lambda: Column().parts_of(cut("a text")), "a table row"),
    (lambda: planted(["a"], [0, 1], Tokens(), {0: 1.0}, RNG), "one entry for each input"),
    (lambda: planted(["a"], [0], Tokens(), {1: 1.0}, RNG), "classes of the labels"),
    (lambda: planted(["a"], [0], Tokens(), {0: 2.0}, RNG), "between 0 and 1")])
def test_what_cannot_be_planted_or_found_is_one_clear_error(make, said):
    with pytest.raises((ValueError, TypeError), match=said):
        make()


@pytest.mark.parametrize("kind", [np.float64, np.int16])
@pytest.mark.parametrize("at", ["bottom right", "random"])
def test_a_patch_is_found_where_it_covers_the_least_or_the_greatest_value(kind, at, rng):
    """Its colours were made from the range before it was there, which nobody knows afterwards."""
    for _ in range(60):
        picture = (100 * rng.normal(size=(24, 24, 3))).astype(kind)
        patch = Patch(at=at)
        marked = patch.into(picture, rng)
        where = patch.where(marked)
        assert where.sum() == 25
        np.testing.assert_array_equal(where, where | (marked != picture).any(axis=-1))
        assert not patch.where(picture).any()


def test_several_patches_one_after_the_other_are_all_found(rng):
    corners = ("bottom right", "top left", "bottom left", "top right")
    for _ in range(40):
        picture = rng.normal(size=(20, 20))
        for at in corners:
            picture = Patch(at=at).into(picture, rng)
        assert [int(Patch(at=at).where(picture).sum()) for at in corners] == [16] * 4


@pytest.mark.parametrize("plain", [0.0, 0.4])
def test_a_plain_corner_of_another_colour_is_no_patch(plain, rng):
    picture = rng.normal(size=(20, 20))
    picture[10:, 10:] = plain
    assert not Patch().where(picture).any()
