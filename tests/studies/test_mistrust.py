"""Trust in predictions: what is true is worked out by hiding, what is summed up agrees with scikit-learn."""

import numpy as np
import pytest
from sklearn.metrics import f1_score

from whitebox import Additive, Bits, question
from whytrust.readers import Reading, f1
from whytrust.studies.mistrust import (
    EVERYTHING,
    judged,
    packed,
    scored,
    summary,
    truly_trusted,
    unpacked,
    untrusted,
    without_each,
)


def test_a_share_of_the_features_is_marked_and_the_same_ones_for_a_seed():
    marked = untrusted(40, 10, 0.25, 3)
    assert (marked.sum(axis=1) == 10).all()
    assert len(np.unique(marked, axis=0)) == 10
    np.testing.assert_array_equal(marked, untrusted(40, 10, 0.25, 3))
    assert (untrusted(40, 10, 0.25, 4) != marked).any()
    np.testing.assert_array_equal(marked[:4], untrusted(40, 4, 0.25, 3))  # more rounds do not change the first


@pytest.mark.parametrize("noise", [0.0, 0.01])
def test_a_prediction_is_trustworthy_when_it_stays_without_the_marked_features(noise, rng):
    def two(batch):
        p = np.clip(Additive((0.4, 0.3, -0.2), 0.2)(batch), 0, 1)
        return np.column_stack([1 - p, p])

    asked = question(two, Bits(3, noise=noise, deterministic=not noise))
    features = np.array([0, 1, 1])  # two parts are one feature
    marked = np.array([[False, False], [True, False], [False, True], [True, True]])
    # .7 as it is; without the first .3; without the other two .6; without all .2
    np.testing.assert_array_equal(truly_trusted(asked, features, marked, rng), [True, False, True, False])


def test_a_model_with_one_output_decides_nothing(rng):
    with pytest.raises(TypeError, match="decides nothing"):
        truly_trusted(question(Additive((1.0, 1.0)), Bits(2)), np.arange(2), np.ones((1, 2), bool), rng)


def test_flags_survive_being_packed(rng):
    flags = rng.random(37) < 0.5
    np.testing.assert_array_equal(unpacked(packed(flags), 37), flags)


def test_f1_and_leaving_one_out_agree_with_scikit_learn(rng):
    truly, said = rng.random((5, 30)) < 0.8, rng.random((5, 30)) < 0.7
    value, without = scored(truly, said)
    assert value == pytest.approx(np.mean([f1_score(t, s) for t, s in zip(truly, said, strict=True)]))
    naive = [np.mean([f1_score(np.delete(t, i), np.delete(s, i)) for t, s in zip(truly, said, strict=True)]) for i in range(30)]
    np.testing.assert_allclose(without, naive)
    np.testing.assert_allclose(without_each(truly, said), naive)


def test_a_reader_who_knows_is_above_trusting_everything_and_one_who_guesses_is_not(rng):
    marked = untrusted(30, 40, 0.25, 0)
    records = []
    for _ in range(80):
        features = rng.permutation(30)[:8]
        weights = rng.normal(size=8)
        contribution = marked[:, features] @ weights
        truly = contribution < 0.5
        knows = Reading(features, weights, 1.0, 0.5)
        guesses = Reading(features, rng.permutation(weights), 1.0, 0.5)
        records.append(judged({"knows": knows, "guesses": guesses}, truly, marked))
    found = summary(records, 40, ("guesses",))
    assert found["rows"]["knows"]["value"] == 1.0
    assert found["rows"]["knows"]["high"] <= 1.0
    assert found["rows"][EVERYTHING]["recall"] == 1.0
    tests = {(t["name"], t["rival"]): t for t in found["tests"]}
    assert tests["knows", EVERYTHING]["p"] < 0.001
    assert tests["knows", "guesses"]["p"] < 0.001
    assert tests["guesses", EVERYTHING]["value"] < 0


@pytest.mark.parametrize("repeats", [1, 3])
def test_leaving_out_a_source_leaves_out_all_its_predictions(repeats, rng):
    truly, said = (rng.random((5, 12)) < 0.6 for _ in range(2))
    sources = rng.permutation(np.repeat(np.arange(12 // repeats), repeats)).tolist()
    found = without_each(truly, said, sources)
    for place, source in enumerate(dict.fromkeys(sources)):
        kept = [i for i, one in enumerate(sources) if one != source]
        assert found[place] == pytest.approx(f1(said[:, kept], truly[:, kept]).mean())
