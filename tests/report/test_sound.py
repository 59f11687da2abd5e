"""A sound's case: spectrograms the right way up on one scale, waves that are played as they are, and words where one is missing."""

from __future__ import annotations

import base64
import copy
import io
import wave as wave_files

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from report import made
from report.reading import Page
from whytrust.pictures import html
from whytrust.report import page
from whytrust.report.listen import LOWER, playable, runs
from whytrust.report.shown import shown
from whytrust.report.sound import BROADEST, NARROWEST, waves

RECORD, ARRAYS = made.sound_cases(1)[0]
FOUND = made.findings(n=30, d=20, kind="audio")


def case(record=RECORD, sound=None, without=(), **arrays):
    given = {name: value for name, value in {**ARRAYS, **arrays}.items() if name not in without}
    return shown({**record, "sound": {**record["sound"], **(sound or {})}}, given)


def read(*cases):
    return Page(page.document(FOUND, cases))


def played(element):
    """(rate, samples) of an audio element."""
    with wave_files.open(io.BytesIO(base64.b64decode(element.attributes["src"].split(",")[1]))) as file:
        return file.getframerate(), np.frombuffer(file.readframes(file.getnframes()), "<i2") / 32768


# --- pictures ---------------------------------------------------------------------------------------------------------


def test_time_runs_to_the_right_low_notes_stand_at_the_bottom_and_louder_is_darker():
    clean = np.zeros((115, 80), np.float32)
    clean[0, 0] = 9.0  # the first moment, the lowest band
    clean[-1, -1] = 5.0
    one = case(clean=clean, adversarial=clean, labels=np.arange(115 * 80).reshape(115, 80) // 4600, sound={"hertz": None})
    assert one.clean.shape == (80, 115)
    assert np.argwhere(one.clean < 255).tolist() == [[0, 114], [79, 0]]
    assert one.labels[:, 0].tolist() == [0] * 80
    assert one.labels[:, -1].tolist() == [1] * 80


def test_before_and_after_share_one_scale():
    clean, adversarial = np.zeros((20, 20), np.float32), np.zeros((20, 20), np.float32)
    clean[:10], adversarial[:10], adversarial[10:] = 1.0, 1.0, 2.0
    one = case(clean=clean, adversarial=adversarial, labels=np.zeros((20, 20), int), sound={"hertz": None})
    assert set(one.clean[:, :10].ravel().tolist()) == set(one.adversarial[:, :10].ravel().tolist()) == {128}
    assert set(one.adversarial[:, 10:].ravel().tolist()) == {0}
    assert set(one.clean[:, 10:].ravel().tolist()) == {255}


def test_louder_is_blue_quieter_is_orange_and_the_words_say_how_much():
    clean = np.zeros((20, 20), np.float32)
    adversarial = clean.copy()
    adversarial[:5, 0], adversarial[5:10, 0] = 0.8, -0.8  # lowest band: the bottom row
    one = case(clean=clean, adversarial=adversarial, labels=np.zeros((20, 20), int), sound={"hertz": None})
    assert one.change[-1, :5].tolist() == [[0, 114, 178]] * 5
    assert one.change[-1, 5:10].tolist() == [[221, 107, 0]] * 5
    assert (one.change[:-1] == 255).all()
    assert one.magnified == "blue is louder, orange quieter; full colour: ±\u00a00.8 in log magnitude"
    assert case(adversarial=ARRAYS["clean"]).magnified == "nothing changed"


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 900), st.integers(1, 600))
def test_any_length_and_number_of_bands_is_drawn_wider_than_tall(frames, bands):
    values = np.zeros((frames, bands), np.float32)
    one = case(clean=values, adversarial=values, labels=np.zeros((frames, bands), int), sound={"hertz": None})
    tall, wide = one.labels.shape
    assert NARROWEST <= wide / tall <= BROADEST
    assert max(one.clean.shape) <= 224


def test_no_part_is_lost_in_a_picture_smaller_than_the_spectrogram():
    labels = np.zeros((2000, 300), int)
    labels[777, 123], labels[:3, :3] = 1, 2
    values = np.zeros(labels.shape, np.float32)
    assert np.unique(case(clean=values, adversarial=values, labels=labels, sound={"hertz": None}).labels).tolist() == [0, 1, 2]


def test_marks_stand_where_their_second_and_their_frequency_are():
    hertz = np.linspace(0, 4000, 41)
    time, pitch = case(sound={"hertz": hertz.tolist(), "seconds": 1.6}).sound.marks()
    assert time == [(pytest.approx(t / 1.6), words) for t, words in ((0, "0"), (0.5, "0.5 s"), (1, "1 s"), (1.5, "1.5 s"))]
    assert pitch == [(pytest.approx(hz / 4000), words) for hz, words in ((500, "500 Hz"), (1000, "1 kHz"), (2000, "2 kHz"))]


@given(st.floats(0.05, 100), st.lists(st.floats(1.0, 300), min_size=40, max_size=40))
def test_marks_lie_on_their_axis_in_order(seconds, steps):
    for axis in case(sound={"hertz": np.cumsum([20.0, *steps]).tolist(), "seconds": seconds}).sound.marks():
        places = [place for place, _ in axis]
        assert places == sorted(places)
        assert 1 <= len(places) <= 10
        assert all(0 <= place <= 1 for place in places)
        assert len({words for _, words in axis}) == len(axis)


def test_without_seconds_or_hertz_the_axes_count_frames_and_bands():
    time, pitch = case(sound={"hertz": None, "seconds": None}).sound.marks()
    assert time == [(0.0, "frame 1"), (1.0, "50")]
    assert pitch == [(0.0, "band 1"), (1.0, "40")]


def test_the_gallery_draws_axes_on_every_input_and_numbers_on_every_contender():
    article = read(case()).by_id("case-0")
    assert len(list(article.all("div", "spectrum"))) == 4
    assert [s.text for s in next(article.all("div", "seconds")).children] == ["0", "0.5 s", "1 s"]
    trial = RECORD["trials"][0]
    figures = {next(f.all("b")).text: f for f in article.all("figure", "who")}
    for name, figure in figures.items():
        assert [next(g.all("use")).attributes["href"] for g in figure.all("g", "on")] == [f"#p0-{p}" for p in trial["order"][name][:3]]
    assert "a song.mp3, 1:23.4 of the song" in article.text


def test_the_source_is_not_said_twice():
    article = read(case(sound={"moment": "0:03.0 of a song.mp3"})).by_id("case-0")
    assert article.text.count("a song.mp3") == 1


# --- sounds -----------------------------------------------------------------------------------------------------------


def test_before_and_after_are_played_to_the_bit_and_the_change_as_much_louder_as_is_said():
    players = {e.attributes["data-source"]: e for e in read(case()).all("audio")}
    clean, adversarial = made.sound_waves()
    for name, wave in (("clean", clean), ("adversarial", adversarial)):
        rate, samples = played(players[name])
        assert rate == 8000
        assert np.abs(samples - wave).max() <= 0.5 / 32768 + 1e-9
    said = players["change"].attributes["aria-label"]
    times = float(said.split("× ")[1].split(" ")[0].replace(",", ""))
    _, change = played(players["change"])
    assert said == "only the change (× 100 louder)"  # 0.5 / 0.005
    assert np.abs(change - times * (adversarial.astype(float) - clean)).max() <= 1 / 32768
    assert 0.45 <= np.abs(change).max() <= 0.55


def test_the_change_is_said_in_decibels_below_the_sound():
    clean = made.sound_waves()[0]
    one = case(adversarial_wave=clean * 1.01)
    assert waves(one.sound).below == pytest.approx(40, abs=1e-2)
    assert "The change is 40 dB quieter than the sound." in read(one).by_id("case-0").text


def test_a_sound_beyond_full_scale_is_made_quieter_and_not_clipped():
    clean = made.sound_waves()[0]
    got = waves(case(clean_wave=4 * clean, adversarial_wave=3 * clean).sound)
    loudest = np.abs(4 * clean.astype(float)).max()
    assert np.abs(got.clean).max() == pytest.approx(1)
    np.testing.assert_allclose(got.adversarial, 3 * clean.astype(float) / loudest, atol=1e-6)


def test_a_wave_that_did_not_change_has_no_player_of_its_change():
    article = read(case(adversarial_wave=ARRAYS["clean_wave"])).by_id("case-0")
    assert [e.attributes["data-source"] for e in article.all("audio")] == ["clean", "adversarial"]
    assert "The wave did not change." in article.text


@pytest.mark.parametrize("gone", ["clean_wave", "adversarial_wave"])
def test_without_waves_there_is_nothing_to_listen_to_and_that_is_said(gone):
    article = read(case(without=[gone])).by_id("case-0")
    assert not list(article.all("audio"))
    assert not list(article.all("div", "listen"))
    assert "only a spectrogram of this sound was kept" in article.text
    assert len(list(article.all("div", "spectrum"))) == 4


@pytest.mark.parametrize("gone", ["hertz", "seconds"])
def test_without_the_frequencies_of_bands_parts_cannot_be_played_and_that_is_said(gone):
    box = read(case(sound={gone: None})).all("div", "listen")[0]
    assert "data-cells" not in box.attributes
    assert len(list(box.all("audio"))) == 3
    assert "Parts cannot be played" in box.text


def test_a_long_sound_is_played_at_a_lower_rate_and_what_is_beyond_the_room_is_not():
    rng = np.random.default_rng(0)
    t = np.arange(3 * 22050) / 22050
    tone = 0.5 * np.sin(2 * np.pi * 1000 * t)
    one = case(sound={"rate": 22050, "seconds": 3.0}, clean_wave=tone, adversarial_wave=tone + 0.001 * rng.normal(size=len(t))).sound
    got, words = playable([one] * 3, room=8 * 2 * 3 * LOWER + 100)
    assert [w is None for w in got] == [False, False, True]
    assert "at 16 kHz: what lies above 8 kHz is not heard" in words
    assert "2 sounds of 3 can be heard" in words
    inside = slice(2000, -2000)  # a filter needs neighbours on both sides
    np.testing.assert_allclose(got[0].clean[inside], 0.5 * np.sin(2 * np.pi * 1000 * np.arange(3 * LOWER) / LOWER)[inside], atol=2e-3)
    assert playable([one] * 3)[1] == ""
    long = case(sound={"rate": 22050, "seconds": 9.0}, clean_wave=np.tile(tone, 3), adversarial_wave=np.tile(tone, 3)).sound
    assert [w is None for w in playable([long, one, one], room=8 * 2 * 3 * LOWER + 100)[0]] == [True, False, False]


def test_twelve_sounds_of_the_singing_voice_detector_stay_below_six_megabytes(rng):
    labels = np.arange(115)[:, None] // 23 * 4 + np.arange(80)[None] // 20
    cases = []
    for record, _ in made.sound_cases(12):
        spectrum = rng.normal(size=(115, 80)).astype(np.float32)
        noise = (0.1 * rng.normal(size=36225)).astype(np.float32)
        cases.append(shown({**record, "sound": {"rate": 22050, "seconds": 1.643, "hertz": np.linspace(27.5, 8000, 81).tolist(),
                                                "moment": None}},
                           {"clean": spectrum, "adversarial": spectrum + 0.1, "labels": labels, "clean_wave": noise,
                            "adversarial_wave": noise + (0.001 * rng.normal(size=36225)).astype(np.float32)}))
    text = page.document(FOUND, cases)
    assert len(text.encode()) < 6_000_000
    assert len(Page(text).all("audio")) == 36
    assert "To keep this page small" not in text


@given(st.lists(st.lists(st.integers(0, 3), min_size=3, max_size=3), min_size=1, max_size=9))
def test_runs_unfold_to_the_labels(rows):
    unfolded = [int(part) for run in runs(np.array(rows)).split(" ") for part, times in [run.split(":")] for _ in range(int(times))]
    assert unfolded == [part for row in rows for part in row]


# --- what is refused, and what stays text -----------------------------------------------------------------------------


@pytest.mark.parametrize(("sound", "arrays", "message"), [
    ({}, {"clean": np.ones((2, 3, 3)), "adversarial": np.ones((2, 3, 3))}, r"must be \(frames, bands\)"),
    ({}, {"labels": np.zeros((40, 50), int)}, "part of each cell"),
    ({"hertz": [1.0, 2.0]}, {}, "41 rising edges of the 40 bands"),
    ({"hertz": [1.0] * 41}, {}, "rising"),
    ({"hertz": [float("nan")] * 41}, {}, "rising"),
    ({}, {"clean_wave": np.zeros(7)}, "of one length")])
def test_what_does_not_fit_is_refused_in_a_sentence(sound, arrays, message):
    with pytest.raises(ValueError, match=message):
        case(sound=sound, **arrays)


@pytest.mark.parametrize("words", made.HOSTILE)
def test_no_text_of_a_sound_becomes_markup(words):
    record = copy.deepcopy(RECORD) | {"name": words, "source": words, "parts": [words] * 20, "clean_name": words}
    text = page.document(FOUND, [case(record, sound={"moment": words})])
    dirty, plain = Page(text), read(case())
    assert dirty.faults == []
    assert {e.tag for e in dirty.elements} <= html.TAGS | {"script"}
    assert {name for e in dirty.elements for name in e.attributes} == {name for e in plain.elements for name in e.attributes}
    assert len(dirty.elements) <= len(plain.elements)
    assert html.clean(words) in dirty.by_id("case-0").text


def test_parts_that_the_record_does_not_name_are_counted():
    record = {name: value for name, value in RECORD.items() if name != "parts"}
    assert '"part 1", "part 2"' in read(case(record)).all("div", "listen")[0].attributes["data-names"]


def test_the_words_of_the_gallery_are_those_of_sounds_only_where_there_are_sounds():
    assert "spectrogram" in read(case()).by_id("gallery").text
    assert "spectrogram" not in Page(page.document(FOUND, [page.shown(*c) for c in made.digit_cases(1)])).by_id("gallery").text
