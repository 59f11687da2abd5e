"""Edges: known responses, and no word from the model."""

import numpy as np
import pytest

from whitebox import question
from whytrust.core import generator
from whytrust.domains.audio import AudioParts
from whytrust.domains.image import ImageParts
from whytrust.domains.tabular import TableParts
from whytrust.domains.text import TextParts
from whytrust.explainers.edges import Edges


def flat(batch):
    return np.asarray(batch, dtype=np.float64).reshape(len(batch), -1)


def edges(parts, model=lambda b: flat(b).mean(axis=1), **options):
    return Edges()(question(model, parts, **options), generator(0))


def step(height=0.5):
    """Dark on the left, bright from column 5 on."""
    image = np.full((6, 10), 0.25)
    image[:, 5:] += height
    return image


@pytest.mark.parametrize("height", [0.5, -0.2])
def test_a_step_has_sobels_response(height):
    # Sobel's rows 1, 2, 1 add up to four times the step, in the two columns beside it and nowhere else.
    found = edges(ImageParts.cut(step(height), np.tile(np.arange(10), (6, 1)), 0.0))
    np.testing.assert_allclose(found.scores, 4 * abs(height) * np.isin(np.arange(10), (4, 5)), atol=1e-12)


def test_a_step_down_the_image_is_an_edge_too():
    found = edges(ImageParts.cut(step().T, np.tile(np.arange(10)[:, None], (1, 6)), 0.0))
    np.testing.assert_allclose(found.scores, 2.0 * np.isin(np.arange(10), (4, 5)), atol=1e-12)


def test_a_part_has_the_mean_of_its_pixels():
    found = edges(ImageParts.cut(step(), "grid:1x2", 0.0))
    np.testing.assert_allclose(found.scores, [2.0 / 5, 2.0 / 5])


def test_colours_are_averaged_first_or_last_and_transparency_is_no_edge(rng):
    colours = np.stack([step(0.3), step(0.6), step(0.0)], axis=-1)
    labels = np.tile(np.arange(10), (6, 1))
    last = edges(ImageParts.cut(colours, labels, 0.0)).scores
    np.testing.assert_allclose(last[4], 4 * (0.3 + 0.6) / 3)
    first = edges(ImageParts.cut(np.moveaxis(colours, -1, 0), labels, 0.0, "NCHW")).scores
    np.testing.assert_allclose(first, last)
    veiled = np.concatenate([colours, rng.random((6, 10, 1))], axis=-1)
    np.testing.assert_allclose(edges(ImageParts.cut(veiled, labels, 0.0)).scores, last)


def test_bytes_do_not_wrap_around():
    image = (step() * 100).astype(np.uint8)
    found = edges(ImageParts.cut(image[:, ::-1].copy(), np.tile(np.arange(10), (6, 1)), 0.0))
    np.testing.assert_allclose(found.scores[[4, 5]], 200)


@pytest.mark.parametrize("parts", [ImageParts.cut(np.full((8, 8, 3), 0.4), "grid:2x2"), AudioParts.cut(np.full(64, 0.1), "time:4"),
                                   AudioParts.cut(np.full((12, 8), 3.0), "tf:3x2")])
def test_where_nothing_changes_there_is_no_edge(parts):
    np.testing.assert_array_equal(edges(parts).scores, 0)


def test_a_click_is_an_edge_of_a_waveform():
    wave = np.zeros(40)
    wave[25] = 1.0
    np.testing.assert_allclose(edges(AudioParts.cut(wave, "time:4")).scores, [0, 0, 2 / 10, 0])


def test_an_onset_is_an_edge_of_a_spectrogram():
    cells = np.zeros((10, 6))
    cells[5:] = 2.0
    np.testing.assert_allclose(edges(AudioParts.cut(cells, "time:10")).scores, 8.0 * np.isin(np.arange(10), (4, 5)))


def test_a_beep_in_a_waveform_cut_in_frequency_has_its_edges_where_it_sounds():
    time = np.arange(3000) / 8000
    tone = np.where(abs(time - 0.19) < 0.02, np.sin(2 * np.pi * 3000 * time), 0)  # amid three stretches, in the upper band
    found = edges(AudioParts.cut(tone, "tf:3x2", rate=8000))
    assert found.order[0] == 3
    assert found.scores[[0, 1, 2, 4, 5]].max() < 0.2 * found.scores[3]
    assert found.map is None  # its cells are not those that are shown


def test_no_model_and_no_target_changes_them(rng):
    parts = ImageParts.cut(rng.random((12, 12, 3)), "grid:3x3")
    models = [lambda b, w=w: np.column_stack([(p := np.tanh(flat(b) @ w / 9)), 1 - p]) for w in rng.normal(size=(3, 432))]
    found = [edges(parts, model, target=target) for model in models for target in (0, 1)]
    assert len({e.scores.tobytes() for e in found}) == 1
    assert len({e.prediction for e in found}) == 6
    assert all(e.calls == 1 for e in found)
    assert all(any("the model had no part in them" in note for note in e.notes) for e in found)


@pytest.mark.parametrize(("parts", "message"), [
    (TextParts.cut("no edges here", "words"), "got a text"),
    (TableParts.cut([1.0, 2.0], np.arange(20.0).reshape(10, 2)), "got a row of a table")])
def test_inputs_without_edges_are_refused(parts, message):
    with pytest.raises(ValueError, match=message):
        edges(parts, model=lambda b: np.zeros(len(b)))
