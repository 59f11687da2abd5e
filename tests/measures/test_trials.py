"""The adversarial trials as metrics: by hand on additive models, and the same numbers as the trials of an audit."""

import math

import numpy as np
import pytest

import whytrust as wt
from whytrust.checked import CheckedModel
from whytrust.core import generator
from whytrust.domains.image import ImageParts
from whytrust.explanation import Explanation
from whytrust.measures.case import Case
from whytrust.measures.flips import Flips
from whytrust.measures.judged import Judged, judge
from whytrust.measures.recovery import Recovery
from whytrust.measures.trials import AllPositive, LabelFlips, Recovered
from whytrust.stats import area

CLEAN = np.zeros((2, 2))
CHANGED = np.array([[1.0, 2.0], [0.5, 3.0]])
WEIGHTS = np.array([[3.0, 0.2], [1.0, -0.1]])  # of the change: 3, 0.4, 0.5, -0.3


def tells(batch):
    """Class 1 where the weighted sum is above 2."""
    logit = (np.asarray(batch, float) * WEIGHTS).sum(axis=(1, 2)) - 2
    return np.column_stack([-logit, logit])


def adversary(changed=CHANGED):
    return Case(CheckedModel(tells), ImageParts.cut(changed, "pixels", fill=0.0), CLEAN, 0, 1)


def judged(scores, changed=CHANGED, **more):
    case = adversary(changed)
    return Judged(case.question, np.asarray(scores, float), case=case, **more)


@pytest.mark.parametrize(("scores", "expected"), [
    ((4, 3, 2, 1), 1.0), ((3, 4, 2, 1), 2 / 3), ((2, 4, 3, 1), 1 / 3), ((1, 4, 3, 2), 0.0)])
def test_flips_by_hand(scores, expected):
    # Only the first part turns the label: what counts is how early it comes among k = 1, 2, 3.
    assert judge(LabelFlips(), judged(scores), generator(0)) == pytest.approx(expected)


@pytest.mark.parametrize(("scores", "expected"), [
    ((1, -1, -1, -1), 1.0),   # it flips; the most changed part, the last, does not
    ((-1, 1, 1, 1), -1.0),    # it does not; the three most changed (all but the third) do
    ((1, 1, 1, -1), 0.0), ((-1, -1, -1, -1), 0.0), ((-1, 1, -1, 1), 0.0)])
def test_all_positive_by_hand(scores, expected):
    assert judge(AllPositive(), judged(scores), generator(0)) == expected


def test_recovery_by_hand():
    # Left changed: the part of the largest change. With 3 at the first part that is the first, and it flips.
    changed = np.array([[3.0, 2.0], [0.5, 1.0]])
    for scores, found in (((9, 0, 1, 2), 1.0), ((0, 9, 1, 2), 0.0)):
        one = judged(scores, changed, explain=lambda question, scores=scores: np.asarray(scores, float))
        assert judge(Recovered(1), one, generator(0)) == found
    half = judged((9, 0, 1, 2), changed, explain=lambda question: np.array([9.0, 0, 1, 2]))
    assert judge(Recovered(2), half, generator(0)) == 0.5  # the two most changed are the first and the second
    kept = judged((9, 0, 1, 2), explain=lambda question: np.arange(4.0))
    assert math.isnan(judge(Recovered(1), kept, generator(0)))  # the most changed part alone flips nothing
    assert math.isnan(judge(Recovered(4), half, generator(0)))  # all parts are no choice


def test_what_is_explained_anew_is_the_input_with_the_other_changes_taken_back():
    seen = []

    def explain(question):
        seen.append(np.asarray(question.input[0]))
        return np.arange(4.0)

    judge(Recovered(2), judged(np.arange(4.0), np.array([[3.0, 2.0], [0.5, 1.0]]), explain=explain), generator(0))
    np.testing.assert_array_equal(seen[0], [[3.0, 2.0], [0.0, 0.0]])


def test_numbers_are_those_of_the_audits_trials():
    rng = np.random.default_rng(5)
    weights = rng.normal(size=(3, 4, 4))
    model = CheckedModel(lambda batch: np.tensordot(np.asarray(batch, float), weights, axes=([1, 2], [1, 2])))
    for _ in range(8):
        clean, changed = rng.uniform(size=(2, 4, 4))
        before, after = model(np.stack([clean, changed])).argmax(axis=1)
        if before == after:
            continue
        case = Case(model, ImageParts.cut(changed, "pixels", fill=0.0), clean, int(before), int(after))
        scores = rng.normal(size=16)

        def explain(question, scores=scores):
            return {"it": Explanation.of(question, "it", scores)}

        trial = Flips()(case, explain, generator(1))
        curve = np.array([int(bit) for bit in trial["flip"]["any"]["it"]], float)
        one = Judged(case.question, scores, case=case, explain=lambda question, scores=scores: scores)
        assert judge(LabelFlips(), one, generator(2)) == pytest.approx(area(curve, trial["k"], 16))
        positive = trial["positive"]["it"]["any"]
        assert judge(AllPositive(), one, generator(2)) == positive["flip"] - positive["magnitude"]
        found = Recovery((5,))(case, explain, generator(3)).get("5", {"flipped": False})
        value = judge(Recovered(5), one, generator(4))
        assert (found["found"]["it"] / 5 == value) if found["flipped"] else math.isnan(value)


def test_measure_takes_adversaries_with_what_they_were_before():
    weights = np.random.default_rng(0).normal(size=(16, 3))
    model = wt.model(lambda batch: np.asarray(batch, float).reshape(len(batch), -1) @ weights, name="linear")
    some = np.random.default_rng(1).uniform(size=(40, 4, 4))
    labels = model(some).argmax(axis=1)
    pairs = [(some[i], some[i + 1]) for i in range(39) if labels[i] != labels[i + 1]][:6]
    found = wt.measure(model, [after for _, after in pairs], "occlusion", ["flip", "all_positive", "recovery"],
                       clean=[before for before, _ in pairs], parts="grid:4x4", fill=0.0)
    numbers = found.values["flip"]["occlusion"]
    assert ((numbers >= 0) & (numbers <= 1)).all()
    with pytest.raises(ValueError, match="flip needs clean="):
        wt.measure(model, pairs[0][1], "occlusion", "flip", parts="grid:4x4")
    with pytest.raises(ValueError, match="of which the model says something else, and it says"):
        wt.measure(model, pairs[0][1], "occlusion", "flip", clean=pairs[0][1], parts="grid:4x4")
    other = (int(model(pairs[0][1][None]).argmax()) + 1) % 3
    with pytest.raises(ValueError, match="the target must be what the model says of the changed input"):
        wt.measure(model, pairs[0][1], "occlusion", "flip", clean=pairs[0][0], target=other, parts="grid:4x4")
    with pytest.raises(ValueError, match="this one's shape"):
        wt.measure(model, pairs[0][1], "occlusion", "flip", clean=np.zeros((2, 2)), parts="grid:4x4")


@pytest.mark.parametrize("k", [0, 1.5, True, "3"])
def test_what_is_no_number_of_parts_is_refused(k):
    with pytest.raises(ValueError, match="k must be a whole number"):
        Recovered(k)
