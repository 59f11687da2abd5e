"""Outlines say exactly which cells belong to a part."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from whytrust.report.shapes import FINEST, outline, shapes


def loops(path):
    """The corners of each closed loop of a path of M, h, v and z."""
    assert re.fullmatch(r"(M\d+ \d+([hv]-?\d+)*z)*", path), path
    out = []
    for piece in path.split("z")[:-1]:
        x, y = map(int, re.match(r"M(\d+) (\d+)", piece).groups())
        points = [(x, y)]
        for way, length in re.findall(r"([hv])(-?\d+)", piece.split(" ", 1)[1]):
            x, y = (x + int(length), y) if way == "h" else (x, y + int(length))
            points.append((x, y))
        out.append(points)
    return out


def filled(path, height, width):
    """Which cells an even-odd fill covers: count the upright edges to the left of a cell's centre."""
    out = np.zeros((height, width), dtype=bool)
    for points in loops(path):
        for (x0, y0), (x1, y1) in zip(points, points[1:] + points[:1], strict=True):
            assert x0 == x1 or y0 == y1, "the closing stroke must be straight"
            for y in range(min(y0, y1), max(y0, y1)):
                out[y, x0:] ^= True
    return out


@given(arrays(bool, st.tuples(st.integers(1, 7), st.integers(1, 7))))
def test_the_outline_of_any_mask_fills_that_mask_and_nothing_else(mask):
    assert np.array_equal(filled(outline(mask), *mask.shape), mask)


@given(arrays(bool, (5, 5)), st.integers(2, 9))
def test_a_unit_only_scales_the_outline(mask, unit):
    scaled = [[(x * unit, y * unit) for x, y in points] for points in loops(outline(mask))]
    assert loops(outline(mask, unit)) == scaled


def test_a_rectangle_takes_four_corners():
    mask = np.zeros((6, 9), dtype=bool)
    mask[2:5, 3:7] = True
    assert outline(mask) == "M3 2h4v3h-4z"


@pytest.mark.parametrize(("height", "width"), [(8, 8), (224, 224), (300, 200), (113, 57)])
def test_places_lie_in_their_part_and_the_box_has_the_pictures_proportions(height, width):
    labels = (np.arange(height)[:, None] * 3 // height) * 3 + np.arange(width)[None] * 3 // width
    found = shapes(labels)
    assert found.width / found.height == pytest.approx(width / height)
    assert FINEST * 0.5 <= max(found.width, found.height) <= FINEST * 2
    for part, (x, y) in found.places.items():
        assert labels[int(y / found.height * height), int(x / found.width * width)] == part


def test_a_part_of_one_pixel_is_not_lost_in_a_large_picture():
    labels = np.zeros((448, 448), dtype=np.int32)
    labels[201, 77] = 1
    found = shapes(labels)
    assert filled(found.paths[1], 448, 448).sum() >= 1


def test_the_number_of_a_grids_part_stands_in_the_middle_of_it():
    labels = np.arange(8)[:, None] // 2 * 4 + np.arange(8)[None] // 2
    found = shapes(labels)
    for part, (x, y) in found.places.items():
        assert (x, y) == pytest.approx((found.width * (part % 4 + 0.5) / 4, found.height * (part // 4 + 0.5) / 4), abs=1)
