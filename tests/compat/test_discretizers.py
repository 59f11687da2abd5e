"""lime's discretizers: bins are where the data say, and values drawn back fall into the bins they came from."""

import pickle

import numpy as np
import pytest

from whytrust.compat.lime import discretize

KINDS = [discretize.QuartileDiscretizer, discretize.DecileDiscretizer, discretize.EntropyDiscretizer]


@pytest.fixture
def data(rng):
    return np.column_stack([rng.normal(size=500), rng.exponential(size=500), rng.integers(0, 3, 500)])


@pytest.mark.parametrize("kind", KINDS)
def test_drawn_values_fall_into_their_bins(kind, data):
    cut = kind(data, [2], ["a", "b", "c"], labels=data[:, 0] > data[:, 1], random_state=1)
    bins = cut.discretize(data)
    back = cut.undiscretize(bins)
    np.testing.assert_array_equal(cut.discretize(back), bins)
    np.testing.assert_array_equal(back[:, 2], data[:, 2])
    assert (back[:, :2] != data[:, :2]).mean() > 0.9  # a bin of one value has no other


@pytest.mark.parametrize("kind", KINDS)
def test_rows_are_cut_like_tables(kind, data):
    cut = kind(data, [2], ["a", "b", "c"], labels=data[:, 0] > 0)
    np.testing.assert_array_equal(cut.discretize(data[7]), cut.discretize(data)[7])
    assert cut.undiscretize(cut.discretize(data[7])).shape == (3,)


def test_moments_are_those_of_each_bin(data):
    cut = discretize.QuartileDiscretizer(data, [2], ["a", "b", "c"])
    bins = cut.discretize(data)[:, 1]
    for state in range(4):
        here = data[bins == state, 1]
        assert (cut.means[1][state], cut.stds[1][state]) == pytest.approx((here.mean(), here.std()))
        assert cut.mins[1][state] <= here.min() <= here.max() <= cut.maxs[1][state]


def test_missing_values_have_a_bin_of_their_own(data):
    data[::5, 0] = np.nan
    cut = discretize.QuartileDiscretizer(data, [2], ["a", "b", "c"])
    bins = cut.discretize(data)
    assert (bins[::5, 0] == 4).all()
    assert np.isnan(cut.undiscretize(bins)[::5, 0]).all()
    assert not np.isnan(cut.undiscretize(bins)[1::5, 0]).any()


def test_discretizers_pickle(data):
    cut = discretize.DecileDiscretizer(data, [2], ["a", "b", "c"])
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(cut)).discretize(data), cut.discretize(data))


def test_constant_columns_have_one_bin(data):
    data[:, 1] = 3.0
    cut = discretize.QuartileDiscretizer(data, [2], ["a", "b", "c"])
    assert cut.names[1] == ["b <= 3.00"]
    assert (cut.undiscretize(cut.discretize(data))[:, 1] == 3.0).all()


def test_the_base_class_asks_for_bins(data):
    with pytest.raises(NotImplementedError, match="bins"):
        discretize.BaseDiscretizer(data, [], ["a", "b", "c"])


def test_too_few_edges_are_named(data):
    class Lazy(discretize.BaseDiscretizer):
        def bins(self, data, labels):
            return [[0.0]]

    with pytest.raises(ValueError, match="each of the 3 columns"):
        Lazy(data, [], ["a", "b", "c"])


def test_statistics_must_be_whole(data):
    with pytest.raises(ValueError, match="it lacks means, stds"):
        discretize.StatsDiscretizer(data, [2], ["a", "b", "c"], data_stats={"mins": {}, "maxs": {}})
