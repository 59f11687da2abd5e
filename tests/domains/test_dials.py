"""Values that a sound is made of: adding up must give the sound, and a gradient must be pulled back as arithmetic says."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whytrust.domains.audio import AudioParts
from whytrust.domains.stems import StemParts


def dials_of(kind, samples, seed):
    rng = np.random.default_rng(seed)
    if kind == "stems":
        return StemParts.of({"a": rng.normal(size=samples), "b": rng.normal(size=samples)}).dials
    if kind == "stems over another":
        parts = StemParts.of({"a": rng.normal(size=samples), "b": rng.normal(size=samples)})
        return parts.over(rng.normal(size=samples)).dials
    return AudioParts.cut(rng.normal(size=samples), kind, rate=8000).dials


KINDS = ("tf:3x2", "freq:3", "stems", "stems over another")


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=20, deadline=None)
@given(samples=st.integers(60, 700), seed=st.integers(0, 99))
def test_a_pulled_gradient_is_the_slope_of_the_sum(kind, samples, seed):
    dials, rng = dials_of(kind, samples, seed), np.random.default_rng(seed)
    values, gradient = rng.normal(size=(2, *dials.own.shape)), rng.normal(size=(2, samples))
    nothing = dials.inputs(np.zeros((1, *dials.own.shape)))
    moved = ((dials.inputs(values) - nothing) * gradient).sum(axis=1)
    pulled = dials.pulled(gradient)
    assert pulled.shape == values.shape
    np.testing.assert_allclose((values * pulled).reshape(2, -1).sum(axis=1), moved, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_the_own_values_make_the_sound_to_the_bit_and_others_add_up(kind):
    dials = dials_of(kind, 500, 0)
    made = dials.inputs(np.stack([dials.own, dials.own * 0.5, dials.own * (1 + 1e-15)]))
    assert np.array_equal(made[0], dials.sound)
    np.testing.assert_allclose(made[2], dials.sound, atol=1e-12)
    nothing = dials.inputs(np.zeros((1, *dials.own.shape)))[0]
    np.testing.assert_allclose(made[1], (dials.sound + nothing) / 2, atol=1e-12)


def test_a_sound_cut_in_time_alone_needs_none():
    assert AudioParts.cut(np.ones(500), "time:5").dials is None
    assert AudioParts.cut(np.ones((20, 8)), "tf:5x4").dials is None


def test_turning_cells_down_is_hiding_their_part():
    parts = AudioParts.cut(np.random.default_rng(1).normal(size=900), "tf:3x2", rate=8000)
    masks = ~np.eye(6, dtype=bool)
    turned = np.stack([np.where(parts.labels == part, 0, parts.dials.own) for part in range(6)])
    np.testing.assert_allclose(parts.dials.inputs(turned), parts.compose(masks, np.random.default_rng(0)), atol=1e-12)


def test_silence_has_a_gradient_too():
    dials = AudioParts.cut(np.zeros(400), "freq:3").dials
    assert not dials.own.any()
    assert np.isfinite(dials.pulled(np.ones((1, 400)))).all()
