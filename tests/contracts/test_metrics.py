"""What every metric must do, in every domain that it is for: one number, the same each time, whatever the batches."""

import math
import pickle

import numpy as np
import pytest

from whytrust.core import generator
from whytrust.lab import Beeps, Pictures, Reviews, Rows, other_weights
from whytrust.measures import METRICS
from whytrust.measures.judged import Judged, judge
from whytrust.question import Question
from whytrust.studies.judged_cases import hidden

LABS = {"image": (Pictures("bend"), "grid:4x4"), "text": (Reviews(), None), "audio": (Beeps(), None), "tabular": (Rows("bend"), None)}
EACH = [(metric, domain) for metric in METRICS for domain in LABS if domain in metric.about.domains]


def exhibit(metric, domain, case=0, batch_size=None, baseline=None):
    lab, cut = LABS[domain]
    if metric.about.of_change:
        changed = next(made for made in (lab.changed(i, cut) for i in range(case, 50)) if made is not None)
        adversary = changed.case(lab.model, batch_size)
        question = hidden(adversary.question)
        return Judged(question, lab.truth(question), explain=lambda asked: lab.truth(hidden(asked)), case=adversary)
    planted = lab.planted(case, cut, baseline)
    question = Question(lab.model, planted.parts, planted.target, batch_size)
    return Judged(question, lab.truth(question), truth=planted.annotation, explain=lab.truth,
                  untrained=other_weights(lab).model, relabelled=other_weights(other_weights(lab)).model)


@pytest.mark.parametrize(("metric", "domain"), EACH, ids=lambda one: one if isinstance(one, str) else one.about.name)
class TestEveryMetric:
    def test_gives_one_number_and_the_same_again(self, metric, domain):
        values = [judge(metric, exhibit(metric, domain), generator(0, "metric")) for _ in range(2)]
        assert isinstance(values[0], float)
        assert values[0] == values[1] or (math.isnan(values[0]) and math.isnan(values[1]))

    def test_batches_change_the_models_rounding_alone(self, metric, domain):
        one, other = (judge(metric, exhibit(metric, domain, 1, batch_size), generator(0, "metric")) for batch_size in (None, 3))
        np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-9)

    def test_leaves_scores_and_global_randomness_alone(self, metric, domain):
        case = exhibit(metric, domain, 2)
        before, state = case.scores.copy(), np.random.get_state()[1].copy()  # noqa: NPY002
        judge(metric, case, generator(0, "metric"))
        np.testing.assert_array_equal(case.scores, before)
        np.testing.assert_array_equal(np.random.get_state()[1], state)  # noqa: NPY002

    def test_takes_zeros_and_constants_without_a_warning(self, metric, domain, recwarn):
        case = exhibit(metric, domain, 3)
        for scores in (np.zeros(case.d), np.full(case.d, -2.5)):
            value = judge(metric, case.with_scores(scores, explain=lambda question, scores=scores: scores), generator(0))
            assert math.isnan(value) or math.isfinite(value)
        assert not [one for one in recwarn if issubclass(one.category, RuntimeWarning)]

    def test_pickles(self, metric, domain):
        assert pickle.loads(pickle.dumps(metric)) == metric

    def test_knows_every_baseline_of_the_domain(self, metric, domain):
        lab, _ = LABS[domain]
        for baseline in lab.baselines:
            value = judge(metric, exhibit(metric, domain, 4, baseline=baseline), generator(0, "metric"))
            assert math.isnan(value) or math.isfinite(value)


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.about.name)
def test_a_model_that_returns_nan_is_told_as_that(metric):
    lab = Pictures()
    planted = lab.planted(0, "grid:4x4")
    asked = []

    def broken(batch):
        asked.append(len(batch))
        return np.full((len(batch), 3), np.nan if len(asked) > 1 else 0.0)

    from whytrust.checked import CheckedModel
    question = Question(CheckedModel(broken, name="broken"), planted.parts, 0)
    case = Judged(question, np.arange(16.0), truth=planted.annotation, explain=lambda question: np.arange(16.0) + question.original[0],
                  untrained=CheckedModel(broken, name="broken"), relabelled=CheckedModel(broken, name="broken"))
    if "image" in metric.about.domains and not metric.about.of_change and (metric.about.hides or "explain" in metric.about.needs):
        with pytest.raises(ValueError, match="broken must return finite scores"):
            judge(metric, case, generator(0))
