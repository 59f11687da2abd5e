"""What holds for every way to cut an input into parts."""

import pickle

import numpy as np
import pytest

from contracts.examples import PARTS, TABLE
from whytrust.core import DrawnParts, LayeredParts, Parts, generator
from whytrust.domains.stems import StemParts


@pytest.fixture(params=PARTS, scope="module")
def parts(request):
    return PARTS[request.param]()


def rows(batch):
    return batch if isinstance(batch, list) else np.asarray(batch)


def some_masks(parts, n=9):
    return np.random.default_rng(5).random((n, len(parts.names))) < 0.5


def test_it_is_parts(parts):
    assert isinstance(parts, Parts)
    assert len(parts.names) >= 2
    assert len(set(parts.names)) == len(parts.names)


def test_a_mask_of_ones_is_the_input_itself(parts):
    ones = np.ones((2, len(parts.names)), bool)
    first, second = rows(parts.compose(ones, generator(1))), rows(parts.compose(ones, generator(2)))
    np.testing.assert_array_equal(first, second)
    original = next((getattr(parts, n) for n in ("image", "sound", "text", "row") if hasattr(parts, n)), None)
    if isinstance(original, np.ndarray | str):
        np.testing.assert_array_equal(first[0], original)


def test_the_numbers_do_not_depend_on_how_masks_are_batched(parts):
    masks = some_masks(parts)
    whole = rows(parts.compose(masks, generator(3)))
    rng = generator(3)
    pieces = [rows(parts.compose(m, rng)) for m in (masks[:1], masks[1:3], masks[3:])]
    joined = [text for piece in pieces for text in piece] if isinstance(whole, list) else np.concatenate(pieces)
    assert joined == whole if isinstance(whole, list) else joined.tobytes() == whole.tobytes()


def test_types_and_shapes_stay(parts):
    one = rows(parts.compose(np.ones((1, len(parts.names)), bool), generator(0)))
    many = rows(parts.compose(some_masks(parts), generator(0)))
    assert len(many) == 9
    if not isinstance(many, list):
        assert many.dtype == one.dtype
        assert many.shape[1:] == one.shape[1:]


def test_no_masks_give_no_inputs(parts):
    assert len(parts.compose(np.empty((0, len(parts.names)), bool), generator(0))) == 0


def test_masks_of_the_wrong_shape_are_refused(parts):
    with pytest.raises(ValueError, match="one column per part"):
        parts.compose(np.ones(len(parts.names), bool), generator(0))


def test_it_pickles(parts):
    again = pickle.loads(pickle.dumps(parts))
    masks = some_masks(parts)
    np.testing.assert_array_equal(rows(again.compose(masks, generator(4))), rows(parts.compose(masks, generator(4))))
    assert again.names == parts.names


def test_the_view_lays_every_part_over_the_input(parts):
    spread = parts.view.spread(np.arange(1, len(parts.names) + 1, dtype=float))
    assert set(np.unique(spread)) - {0} == set(range(1, len(parts.names) + 1))


def test_the_view_survives_json(parts):
    import json

    from whytrust import views
    again = views.from_json(json.loads(json.dumps(parts.view.to_json())))
    scores = np.arange(len(parts.names), dtype=float)
    np.testing.assert_array_equal(again.spread(scores), parts.view.spread(scores))


def test_pooling_a_map_of_the_parts_gives_the_parts_back(parts):
    # A map that is constant on each part pools to that constant, whichever mean is taken.
    # Stems sound in one place at once, so only a map that is the same everywhere is.
    truth = np.full(len(parts.names), 3.0) if isinstance(parts, StemParts) else np.arange(1, len(parts.names) + 1, dtype=float)
    labels = getattr(parts, "labels", None)
    laid = truth[labels] if labels is not None else parts.view.spread(truth)
    for how in ("mean", "mean_abs", "mean_pos"):
        np.testing.assert_allclose(parts.pool(laid, how), truth)
    with pytest.raises(ValueError, match="pooling must be one of"):
        parts.pool(laid, "median")


def test_drawn_parts_know_their_own_row(parts):
    if not isinstance(parts, DrawnParts):
        return
    draws = parts.draw(50, generator(0))
    assert draws.design.shape == (50, len(parts.names))
    assert len(draws.rows(slice(3, 7))) == 4
    np.testing.assert_array_equal(rows(draws.rows(slice(0, 50)))[3:7], rows(draws.rows(slice(3, 7))))


# --- one input laid over another --------------------------------------------------------------------------------------


@pytest.fixture(params=PARTS, scope="module")
def layers(request):
    """(parts, this input, another of the same shape)"""
    parts = PARTS[request.param]()
    assert isinstance(parts, LayeredParts)
    this = rows(parts.compose(np.ones((1, len(parts.names)), bool), generator(0)))[0]
    return parts, this, TABLE[1] if parts.domain == "tabular" else this.swapcase() if parts.domain == "text" else np.flip(this)


def test_the_upper_input_shows_where_all_parts_do_and_the_lower_one_where_none_does(layers):
    parts, this, below = layers
    laid = parts.over(below)
    assert laid.deterministic
    assert len(laid.names) == len(parts.names)
    all_and_none = np.array([[True], [False]]).repeat(len(parts.names), axis=1)
    np.testing.assert_array_equal(rows(laid.compose(all_and_none, generator(0))), np.stack([this, below]))


def test_a_layer_does_not_depend_on_how_masks_are_batched(layers):
    parts, _, below = layers
    laid, masks = parts.over(below), some_masks(parts)
    apart = np.concatenate([rows(laid.compose(mask[None], generator(0))) for mask in masks])
    assert np.asarray(laid.compose(masks, generator(0))).tobytes() == apart.tobytes()


def test_the_same_cut_of_another_input_is_that_input_in_as_many_parts(layers):
    parts, _, other = layers
    moved = parts.like(other)
    assert len(moved.names) == len(parts.names)
    np.testing.assert_array_equal(rows(moved.compose(np.ones((1, len(parts.names)), bool), generator(0)))[0], other)


def test_what_changed_is_never_negative_and_nothing_changed_since_itself(layers):
    parts, this, other = layers
    pooled = parts.pool(parts.squared_change(other), "sum")
    assert pooled.shape == (len(parts.names),)
    assert (pooled >= 0).all()
    assert pooled.any()
    assert not parts.pool(parts.squared_change(this), "sum").any()
