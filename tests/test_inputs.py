"""Of which domain is an input, where its parts could be those of several?"""

from pathlib import Path

import numpy as np
import pytest
import soundfile

from whytrust import inputs

LABELS = np.zeros((20, 10), int)


@pytest.mark.parametrize(("item", "parts", "options", "domain"), [
    (np.zeros((20, 10)), "slic:4", {}, "image"),
    (np.zeros((20, 10)), "slic:4", {"hop_seconds": 0.01}, "audio"),
    (np.zeros((20, 10)), "slic:4", {"band_edges_hz": range(11)}, "audio"),
    (np.zeros((20, 10)), "slic:4", {"hop_seconds": None}, "image"),
    (np.zeros(500), "slic:4", {}, "audio"),
    (np.zeros(50), "slic:4", {"rate": 8000}, "audio"),
    ([0.0] * 50, "slic:4", {}, "audio"),
    ("a.wav", "slic:4", {}, "audio"),
    (Path("a.FLAC"), "slic:4", {}, "audio"),
    ("a.png", "slic:4", {}, "image"),
    (np.zeros((20, 10)), LABELS, {}, "image"),
    (np.zeros((20, 10, 3)), LABELS, {}, "image"),
    (np.zeros((20, 10)), LABELS, {"hop_seconds": 0.01}, "audio"),
    (np.zeros(500), LABELS, {}, "audio"),
    ("a.wav", LABELS, {}, "audio"),
    ("a.png", LABELS, {}, "image"),
    (np.zeros((20, 10)), None, {}, "image"),
    (np.zeros((20, 10)), None, {"hop_seconds": 0.01}, "audio"),
    (np.zeros((20, 10)), "grid:2x2", {}, "image"),
    (np.zeros((20, 10)), "tf:2x2", {}, "audio"),
])
def test_super_pixels_and_labels_are_of_an_image_unless_the_input_is_a_sound(item, parts, options, domain):
    assert inputs.domain_of(item, parts, options) == domain


def test_a_sound_file_is_cut_into_super_pixels_with_seconds_and_hertz(tmp_path):
    soundfile.write(tmp_path / "a.wav", np.random.default_rng(0).normal(size=8000) / 10, 8000)
    parts = inputs.cut(tmp_path / "a.wav", "slic:6", "NHWC", {})
    assert parts.domain == "audio"
    assert all(name.endswith(" Hz") and " s, " in name for name in parts.names)


def test_labels_of_a_spectrogram_keep_its_units():
    labels = np.arange(20)[:, None] // 10 * np.ones(10, int)
    parts = inputs.cut(np.zeros((20, 10)), labels, "NHWC", {"hop_seconds": 0.1})
    assert parts.names == ("0.00–1.00 s", "1.00–2.00 s")


def test_the_error_for_unknown_parts_names_each_kind_once():
    with pytest.raises(ValueError, match="parts must begin with one of") as error:
        inputs.domain_of(np.zeros(500), "segments:4", {})
    assert str(error.value).count("slic") == 1
