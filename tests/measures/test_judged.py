"""What comes before a metric: which metrics may judge which scores, and what they are given."""

from dataclasses import fields

import numpy as np
import pytest

from whitebox import Additive, Bits, question
from whytrust.core import generator
from whytrust.measures import METRICS
from whytrust.measures.amounts import Infidelity
from whytrust.measures.flipping import WordDeletion
from whytrust.measures.judged import NEEDS, Judged, incompatible, judge
from whytrust.measures.pointing import PointingGame


def judged(goal="contribution", **more):
    return Judged(question(Additive((1.0, 2.0)), Bits(2)), np.array([1.0, 2.0]), goal, **more)


@pytest.mark.parametrize(("goal", "words"), [
    ("sensitivity", "judges contribution, and these scores say how the prediction moves"),
    ("ranking", "judges contribution, and these scores say which parts come first")])
def test_a_metric_of_amounts_refuses_what_is_no_contribution_unless_the_user_insists(goal, words):
    with pytest.raises(ValueError, match=f"infidelity/scaled {words}.*insist=True"):
        judge(Infidelity(scaled=True), judged(goal), generator(0))
    assert judge(Infidelity(scaled=True), judged(goal), generator(0), insist=True) == pytest.approx(0, abs=1e-20)


@pytest.mark.parametrize("metric", [metric for metric in METRICS if type(metric).__module__.endswith(".flipping")],
                         ids=lambda metric: metric.about.name)
def test_metrics_that_use_an_order_alone_judge_any_scores_with_that_order(metric):
    one = Additive((1.0, 2.0, -0.5, 0.25))
    asked = question(lambda batch: np.outer(one(batch) - 1, (-1.0, 1.0)), Bits(4, domain=metric.about.domains[0]), target=1)
    scores = np.array([0.5, 3.0, -2.0, 0.1])
    own = judge(metric, Judged(asked, scores, "contribution"), generator(0))
    assert np.isfinite(own)
    for goal in ("sensitivity", "ranking"):
        assert judge(metric, Judged(asked, np.exp(scores), goal), generator(0)) == own  # other amounts, the same order


@pytest.mark.parametrize("goal", ["contribution", "nothing"])
def test_contributions_and_baselines_are_judged(goal):
    assert judge(Infidelity(), judged(goal), generator(0)) == pytest.approx(0, abs=1e-20)


def test_what_a_metric_needs_cannot_be_insisted_on():
    for insist in (False, True):
        with pytest.raises(ValueError, match="pointing_game needs truth="):
            judge(PointingGame(), judged(), generator(0), insist)


def test_a_metric_of_texts_refuses_images():
    with pytest.raises(ValueError, match="word_deletion is for text inputs, and these are image inputs"):
        judge(WordDeletion(), judged(), generator(0))


@pytest.mark.parametrize("scores", [[1.0], [1.0, np.nan], [[1.0, 2.0]]])
def test_scores_of_other_parts_are_refused(scores):
    with pytest.raises(ValueError, match=r"one a part: expected \(2,\)"):
        judged().with_scores(np.array(scores))


def test_a_goal_that_nobody_knows_is_refused():
    with pytest.raises(ValueError, match="goal must be one of contribution"):
        judged("truth")


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.about.name)
def test_every_metric_says_what_it_is(metric):
    about = metric.about
    assert about.name
    assert about.words
    assert about.paper
    assert set(about.goals) <= {"contribution", "sensitivity", "ranking"}
    assert set(about.needs) <= set(NEEDS)
    assert (about.kind == "alignment") == (about.aspect == "plausibility")
    assert metric == type(metric)(**{f.name: getattr(metric, f.name) for f in fields(metric)})
    assert incompatible(about, "contribution", about.domains[0]) is None


def test_names_are_distinct():
    names = [metric.about.name for metric in METRICS]
    assert len(set(names)) == len(names)
