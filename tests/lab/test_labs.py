"""The lab's truths: by the formula, by every set of parts, and by the gradient the model gives."""

import numpy as np
import pytest

from whytrust.core import generator
from whytrust.lab import LABS, LEARNT, Pictures, Rows, added_on_average, corrupted, other_weights, shapley, shifted
from whytrust.question import Question

CUTS = {"image": "grid:3x3", "tabular": None, "text": None, "audio": None}


def asked(lab, planted):
    return Question(lab.model, planted.parts, planted.target)


EACH = [(lab, baseline) for one in LABS for lab in dict.fromkeys([one, shifted(one)]) for baseline in lab.baselines]
NAMED = [f"{lab.name} {baseline}" for lab, baseline in EACH]


@pytest.mark.parametrize(("lab", "baseline"), EACH, ids=NAMED)
def test_the_truth_is_the_shapley_value_of_every_part_behind_every_baseline(lab, baseline):
    cases = [lab.planted(case, CUTS[lab.domain], baseline) for case in range(20)]
    few = next((planted for planted in cases if len(planted.parts.names) <= 14), None)
    if few is None:
        assert lab.domain == "audio"  # of 16 parts; see below
        return
    np.testing.assert_allclose(shapley(asked(lab, few), generator(0)), lab.truth(asked(lab, few)), atol=1e-9)


@pytest.mark.parametrize(("lab", "baseline"), EACH, ids=NAMED)
def test_contributions_add_up_and_where_nothing_interacts_each_is_what_hiding_it_takes(lab, baseline):
    for case in range(3):
        planted = lab.planted(case, baseline=baseline)
        question, d = asked(lab, planted), len(planted.parts.names)
        none = question.score(np.zeros((1, d), bool), generator(0))[0]
        truth = lab.truth(question)
        assert truth.sum() == pytest.approx(question.original[planted.target] - none)
        if "interactions" not in lab.name and "edges" not in lab.name:
            fall = question.original[planted.target] - question.score(~np.eye(d, dtype=bool), generator(0))
            np.testing.assert_allclose(fall, truth, atol=1e-9)


@pytest.mark.parametrize("lab", [lab for one in LABS for lab in (one, shifted(one)) if lab.domain != "text"],
                         ids=lambda lab: lab.name)
def test_gradients_are_those_of_the_formula(lab):
    planted = lab.planted(4)
    item = asked(lab, planted).input
    weights = np.zeros((1, lab.model(item).shape[1]))
    weights[0, planted.target] = 1
    _, gradient = lab.model.vjp(item, weights)
    values, step = np.asarray(item[0], float), 1e-5
    for place in np.argsort(-np.abs(gradient[0]).ravel())[:3]:
        at = np.unravel_index(int(place), values.shape)
        moved = np.stack([values, values])
        moved[(0, *at)] += step
        moved[(1, *at)] -= step
        scores = lab.model(moved)[:, planted.target]
        assert (scores[0] - scores[1]) / (2 * step) == pytest.approx(gradient[0][at], rel=1e-4, abs=1e-6)


@pytest.mark.parametrize("lab", LABS, ids=lambda lab: lab.name)
def test_where_people_point_is_right_where_it_says_so(lab):
    inside = []
    for case in range(30):
        planted = lab.planted(case)
        truth = lab.truth(asked(lab, planted))
        best = planted.parts.view.spread(truth) == truth.max()
        inside.append(float(planted.annotation[best].mean()))
    assert np.mean(inside) > 0.8 if lab.expected else np.mean(inside) < 0.2


@pytest.mark.parametrize("lab", LABS, ids=lambda lab: lab.name)
def test_the_same_case_is_the_same_input_and_another_another(lab):
    one, again, other = (lab.truth(asked(lab, lab.planted(case))) for case in (3, 3, 5))
    np.testing.assert_array_equal(one, again)
    assert one.shape != other.shape or not np.array_equal(one, other)


@pytest.mark.parametrize("lab", [lab for lab in LABS if not lab.shared], ids=lambda lab: lab.name)
def test_what_classes_share_changes_no_decision_and_has_the_largest_contribution(lab):
    largest = []
    for case in range(20):
        one, other = lab.planted(case), shifted(lab).planted(case)
        assert one.target == other.target
        before, after = lab.truth(asked(lab, one)), shifted(lab).truth(asked(shifted(lab), other))
        changed = np.flatnonzero(np.abs(after - before) > 1e-9)
        assert 1 <= len(changed) <= len(before)
        largest.append(int(np.abs(after).argmax()) in changed)
    assert np.mean(largest) > 0.8


@pytest.mark.parametrize("lab", LABS, ids=lambda lab: lab.name)
def test_other_weights_have_another_truth(lab):
    planted, other = lab.planted(0), other_weights(lab)
    question = Question(other.model, planted.parts, planted.target)
    assert not np.allclose(lab.truth(question), lab.truth(asked(lab, planted)))


def test_the_leak_decides():
    lab = Rows("leak")
    for case in range(20):
        planted = lab.planted(case)
        assert lab.truth(asked(lab, planted))[7] == pytest.approx(12 * abs(planted.parts.upper.row[7] - planted.parts.lower[7]))


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_a_lie_has_the_same_numbers(share):
    truth = np.arange(40.0)
    lie = corrupted(truth, share, generator(0))
    assert sorted(lie) == sorted(truth)
    assert (lie != truth).sum() == round(40 * share)


def test_a_greater_lie_moves_what_a_smaller_one_does_and_two_at_least():
    truth = np.arange(8.0)
    moved = [np.flatnonzero(corrupted(truth, share, generator(3)) != truth) for share in (0.01, 0.5, 1.0)]
    assert [len(one) for one in moved] == [2, 4, 8]
    assert set(moved[0]) < set(moved[1])


def test_shapley_of_many_parts_is_refused():
    lab = Pictures()
    with pytest.raises(ValueError, match="at most 14 parts, got 144"):
        shapley(asked(lab, lab.planted(0)), generator(0))


@pytest.mark.parametrize("shown", [0.25, 0.75])
@pytest.mark.parametrize("lab", [Pictures("edges"), Pictures("interactions"), Rows("interactions"), Rows("bend")],
                         ids=lambda lab: lab.name)
def test_the_truth_where_others_are_shown_more_or_less_often_is_what_every_set_says(lab, shown):
    for case in range(3):
        question = asked(lab, lab.planted(case, CUTS[lab.domain]))
        np.testing.assert_allclose(added_on_average(question, shown, generator(0)), lab.truth(question, shown), atol=1e-9)


@pytest.mark.parametrize("lab", [*LABS, *LEARNT], ids=lambda lab: lab.name)
def test_what_was_changed_turns_the_label_and_is_the_same_each_time(lab):
    made = [lab.changed(case, "grid:4x4" if lab.domain == "image" else None) for case in range(12)]
    found = [one for one in made if one is not None]
    assert len(found) >= 3
    for one in found:
        case = one.case(lab.model)
        assert case.clean_label != case.label
        assert case.change.max() > 0
    again = [lab.changed(case, "grid:4x4" if lab.domain == "image" else None) for case in range(12)]
    assert [one is None for one in made] == [one is None for one in again]
    first, second = (next(one for one in some if one is not None).parts for some in (made, again))
    ones = np.ones((1, len(first.names)), bool)
    one, other = (np.asarray(some.compose(ones, generator(0))) for some in (first, second))
    np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("lab", LEARNT, ids=lambda lab: lab.name)
def test_what_was_learnt_is_the_artefact_and_nothing_else(lab):
    assert min(lab.reliance.values()) >= 0.95
    put_in, taken_out, kept = [], [], []
    for case in range(1000, 1040):  # inputs that it was neither trained nor verified on
        item, clean = lab._pair(case, 0)
        batch = [item, clean] if lab.domain == "text" else np.array([item, clean])
        labels = lab.model(batch).argmax(axis=1)
        put_in.append(labels[0] == 1)
        taken_out.append(labels[1] == 0)
        planted = lab.planted(case)
        question = asked(lab, planted)
        truth = lab.truth(question) > 0
        assert 0 < truth.sum() < len(truth)
        alone = planted.parts.compose(truth[None], generator(0))  # the artefact's parts, and nothing else
        kept.append(lab.model(alone).argmax() == 1)
    assert np.mean(put_in) >= 0.9
    assert np.mean(taken_out) >= 0.9
    assert np.mean(kept) >= 0.9


def test_before_its_training_a_model_does_not_go_by_the_artefact():
    for lab in LEARNT:
        other = other_weights(lab)
        items = [lab._pair(case, 0) for case in range(60)]
        batch = [one for pair in items for one in pair]
        labels = other.model(batch if lab.domain == "text" else np.array(batch)).argmax(axis=1)
        right = np.mean([labels[::2] == 1, labels[1::2] == 0])
        assert right < 0.9, lab.name
