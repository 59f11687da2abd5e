"""One scale: white at zero, blue for, orange against, readable everywhere."""

from __future__ import annotations

import numpy as np

from whytrust.pictures import colours

STEPS = np.linspace(0, 1, 201)


def test_zero_is_white_and_the_ends_are_blue_and_orange() -> None:
    assert colours.css(0.0) == "#ffffff"
    assert tuple(colours.rgb(1.0)) == colours.FOR
    assert tuple(colours.rgb(-1.0)) == colours.AGAINST
    assert colours.FOR[2] > colours.FOR[0]
    assert colours.AGAINST[0] > colours.AGAINST[2]


def test_the_scale_is_symmetric_and_monotone() -> None:
    for sign, end in ((1, colours.FOR), (-1, colours.AGAINST)):
        shades = colours.rgb(sign * STEPS).astype(int)
        assert (np.diff(shades, axis=0) <= 0).all()
        gone = (255 - shades) / (255 - np.array(end))  # the share of the way from white to the full colour
        assert np.abs(gone - STEPS[:, None]).max() < 0.02


def test_strength_is_divided_by_the_largest_score() -> None:
    assert colours.strength([2.0, -4.0, 0.0]).tolist() == [0.5, -1.0, 0.0]
    assert colours.strength([0.0, 0.0]).tolist() == [0.0, 0.0]
    assert colours.strength([np.nan, 1.0, -np.inf]).tolist() == [0.0, 1.0, 0.0]
    assert colours.strength([1e-300, -1e-300]).tolist() == [1.0, -1.0]


def test_words_stay_readable_on_every_colour() -> None:
    for strength in np.concatenate([-STEPS, STEPS]):
        dark = colours.text_css(float(strength)) == "#000000"
        light, ink = colours.luminance(colours.rgb(float(strength))), 0.0 if dark else 1.0
        assert (max(light, ink) + 0.05) / (min(light, ink) + 0.05) >= 4.5


def test_laying_colour_over_a_picture_leaves_parts_without_score_alone() -> None:
    base = np.arange(24).reshape(2, 4, 3)
    assert np.array_equal(colours.blend(base, np.zeros((2, 4))), base)


def test_signs_go_with_colours() -> None:
    assert [colours.sign(x) for x in (0.1, -0.1, 0.0)] == ["+", "−", ""]
