"""Names at the ends of lines never overlap, and lines are seen through bands."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from whytrust.report.chart import Line, drawing, spread
from whytrust.report.words import Contender

HEIGHTS = st.lists(st.floats(0, 400), min_size=1, max_size=18)


@given(HEIGHTS)
def test_spread_heights_keep_their_distance_their_order_and_their_room(wanted):
    found = spread(wanted, 16, 0, 400)
    assert all(-1e-6 <= y <= 400 + 1e-6 for y in found)
    for i in range(len(wanted)):
        for j in range(i):
            assert abs(found[i] - found[j]) >= 16 - 1e-6
            assert wanted[i] == wanted[j] or (wanted[i] < wanted[j]) == (found[i] < found[j])


@given(st.lists(st.integers(0, 20), min_size=1, max_size=18, unique=True))
def test_heights_that_are_far_enough_apart_stay_where_they_are(places):
    wanted = [20.0 * place for place in places]
    assert spread(wanted, 16, 0, 400) == pytest.approx(wanted)


def test_more_names_than_fit_are_spread_over_all_the_room():
    assert spread([200.0] * 5, 300, 0, 400) == pytest.approx([0, 100, 200, 300, 400])


def test_two_equal_heights_are_moved_by_half_the_distance_each():
    assert sorted(spread([100.0, 100.0], 16, 0, 400)) == pytest.approx([92, 108])


def test_a_line_with_a_missing_number_is_broken_there_and_not_drawn_through_it():
    who = Contender("lime", "", True, None, 0)
    drawn = str(drawing([Line(who, [0.1, None, 0.3, 0.4])], [(0, "1")], 4, "k", "chart", narrow=False))
    stroke = drawn.split('class="stroke"')[0].rsplit('d="', 1)[1].split('"')[0]
    assert stroke.count("M") == 2
    assert stroke.count("L") == 1


@pytest.mark.parametrize("many", [1, 4, 10, 18])
def test_lines_are_seen_through_bands_that_all_overlap(many):
    lines = [Line(Contender(f"m{i}", "", True, None, i), [0.5] * 4, [0.0] * 4, [1.0] * 4) for i in range(many)]
    drawn = str(drawing(lines, [(0, "1")], 4, "k", "chart", narrow=False))
    shades = [float(shade) for shade in re.findall(r'class="band"[^>]*fill-opacity="([.0-9]+)"', drawn)]
    seen = 1.0
    for shade in shades:
        seen *= 1 - shade
    assert len(shades) == many
    assert 0.54 < seen < 1
