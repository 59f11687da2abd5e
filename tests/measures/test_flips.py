"""The flip trial against closed forms, enumeration and a naive loop."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planted import GRID, explaining, planted_case
from whitebox import examples
from whytrust.checked import CheckedModel
from whytrust.core import generator
from whytrust.domains.image import ImageParts
from whytrust.explainers.baselines import Random
from whytrust.explanation import Explanation
from whytrust.measures import Case, Flips
from whytrust.measures.flips import bits, nested, settled_ks
from whytrust.stats import area

SOUND = ("lime", "kernel_shap", "occlusion", "saliency", "input_x_gradient", "integrated_gradients", "saliency/smoothgrad",
         "integrated_gradients/smoothgrad", "saliency/vargrad")


class Tangle:
    """Three classes decided by products of random projections: labels flip, and flip back, as parts are added."""

    def __init__(self, seed, size=64):
        random = np.random.default_rng(seed)
        self.first, self.second = random.normal(size=(size, 12)), random.normal(size=(12, 3))

    def __call__(self, batch):
        return np.tanh(np.asarray(batch, dtype=np.float64).reshape(len(batch), -1) @ self.first) @ self.second


def tangled_case(seed, labels=GRID):
    random = np.random.default_rng(seed)
    wrapped = CheckedModel(Tangle(seed))
    clean = random.normal(size=(8, 8))
    before = int(wrapped.labels(wrapped(clean[None]))[0])
    for _ in range(200):
        changed = clean + random.normal(size=(8, 8))
        after = int(wrapped.labels(wrapped(changed[None]))[0])
        if after != before:
            return Case(wrapped, ImageParts(changed, labels, 0.0), clean, before, after)
    raise AssertionError("no adversary in 200 draws")


def scored(**scores):
    """An `explain` that gives these scores, whatever the question."""
    return lambda question: {name: Explanation.of(question, name, np.asarray(given, dtype=float))
                             for name, given in scores.items()}


def naive_flips(case, order, judge):
    """k by k, part by part, pixel by pixel."""
    flips = []
    for k in range(1, case.d + 1):
        mixed = np.array(case.clean, dtype=float)
        for part in order[:k]:
            mixed[case.parts.labels == part] = case.parts.image[case.parts.labels == part]
        label = int(case.model.labels(case.model(mixed[None]))[0])
        flips.append(label != case.clean_label if judge == "any" else label == case.label)
    return bits(flips)


def test_sound_explainers_find_the_planted_cause_and_random_scores_do_not():
    hits = {name: [] for name in SOUND}
    expected = []
    for seed in range(40):
        case = planted_case(part=seed % 16, seed=seed)
        found = Flips()(case, explaining(*SOUND), generator(0, seed))
        for name in SOUND:
            hits[name].append(found["flip"]["any"][name][0] == "1")
        assert found["flip"]["any"]["oracle"] == "1" * 16
        expected.append(found["random"]["any"])
    assert {name: np.mean(flips) >= 0.95 for name, flips in hits.items()} == dict.fromkeys(SOUND, True)
    # k of 16 parts, drawn at random, hold the one that decides with chance k / 16; 40 cases × 10 draws.
    deviation = np.sqrt(0.25 / 400)
    np.testing.assert_allclose(np.mean(expected, axis=0), np.arange(1, 17) / 16, atol=4 * deviation)


def test_random_s_expectation_is_exact_for_few_parts():
    labels = (GRID // 8 * 2 + GRID % 4 // 2).astype(np.int32)  # four parts: 2 × 2
    case = planted_case(part=5, labels=labels)
    found = Flips()(case, scored(any=[0, 1, 2, 3]), generator(0))
    assert found["random"]["any"] == [0.25, 0.5, 0.75, 1.0]


@pytest.mark.parametrize("judge", ["any", "target"])
@pytest.mark.parametrize("seed", range(6))
def test_curves_are_those_of_the_naive_loop(seed, judge):
    case = tangled_case(seed)
    scores = {f"explainer {i}": generator(seed, i).normal(size=16) for i in range(4)}
    found = Flips()(case, scored(**scores), generator(0, seed))
    for name, given_scores in scores.items():
        order = np.argsort(-given_scores)
        assert found["order"][name] == order.tolist()
        assert found["flip"][judge][name] == naive_flips(case, order, judge)
    for baseline in ("magnitude", "magnitude_mean"):
        assert found["flip"][judge][baseline] == naive_flips(case, found["order"][baseline], judge)


def test_every_set_is_asked_once():
    seen = []

    class Counted(Tangle):
        def __call__(self, batch):
            seen.extend(row.tobytes() for row in np.asarray(batch))
            return super().__call__(batch)

    case = tangled_case(3)
    counted = Case(CheckedModel(Counted(3)), case.parts, case.clean, case.clean_label, case.label)
    seen.clear()
    found = Flips()(counted, scored(a=np.arange(16.0), same=np.arange(16.0), b=-np.arange(16.0)), generator(0))
    assert len(seen) == len(set(seen))
    assert found["distinct"] < found["asked"]
    assert found["distinct"] + found["searched"] == len(seen) + 1  # and the adversary itself, which was asked before


@pytest.mark.parametrize("seed", range(8))
def test_the_oracle_of_few_parts_is_that_of_enumeration(seed):
    labels = (np.arange(64).reshape(8, 8) // 8).astype(np.int32)  # eight rows
    case = tangled_case(seed, labels)
    found = Flips()(case, scored(any=np.arange(8.0)), generator(0))
    for judge in ("any", "target"):
        smallest = next(k for k in range(1, 9) for chosen in itertools.combinations(range(8), k)
                        if naive_flips(case, chosen, judge)[k - 1] == "1")
        assert found["flip"][judge]["oracle"] == "0" * (smallest - 1) + "1" * (9 - smallest)
        sizes = [np.mean([naive_flips(case, chosen, judge)[k - 1] == "1" for chosen in itertools.combinations(range(8), k)])
                 for k in range(1, 9)]
        np.testing.assert_allclose(found["random"][judge], sizes)


@examples(20)
@given(seed=st.integers(0, 10**6))
def test_nobody_is_above_the_oracle(seed):
    case = tangled_case(seed % 40)
    found = Flips(draws=3)(case, lambda q: {"random scores": Random()(q, generator(seed))}, generator(seed))
    for judge in ("any", "target"):
        curves = found["flip"][judge]
        for name in curves:
            assert all(own <= best for own, best in zip(curves[name], curves["oracle"], strict=True))
        assert curves["oracle"][-1] == "1"
        assert all(0 <= e <= 1 for e in found["random"][judge])


def test_all_positive_parts_go_against_as_many_by_magnitude():
    case = planted_case(part=5)
    scores = np.full(16, -1.0)
    scores[[5, 6]] = 1.0
    found = Flips()(case, scored(right=scores, wrong=-scores), generator(0))["positive"]
    assert found["right"]["k"] == 2
    assert found["right"]["any"]["flip"] == 1
    assert found["wrong"] == {"k": 14, **{judge: {"flip": 0, "magnitude": 1, "random": found["wrong"][judge]["random"]}
                                          for judge in ("any", "target")}}
    assert found["wrong"]["any"]["random"] == pytest.approx(14 / 16, abs=0.35)  # ten draws


def test_sizes_without_a_sign_have_no_positive_trial():
    found = Flips()(planted_case(), explaining("saliency", "occlusion"), generator(0))
    assert set(found["positive"]) == {"occlusion"}


def test_equal_scores_are_ordered_by_chance_and_not_by_place():
    firsts = [Flips(draws=2)(planted_case(), scored(flat=np.zeros(16)), generator(0, i))["order"]["flat"][0] for i in range(60)]
    assert len(set(firsts)) > 8


def test_an_explainer_that_fails_is_told_and_the_others_go_on():
    case = planted_case()
    fine = scored(fine=np.arange(16.0))
    found = Flips()(case, lambda q: {**fine(q), "broken": ValueError("no such layer")}, generator(0))
    assert found["failed"] == {"broken": "ValueError: no such layer"}
    assert "fine" in found["flip"]["any"]
    assert "broken" not in found["flip"]["any"]


def test_magnitude_is_the_sum_of_squared_changes():
    case = planted_case(part=5)
    by_hand = [((case.parts.image - case.clean)[part == GRID] ** 2).sum() for part in range(16)]
    found = Flips()(case, scored(any=np.zeros(16)), generator(0))
    np.testing.assert_allclose(found["magnitude"], by_hand)
    np.testing.assert_allclose(found["magnitude_mean"], np.array(by_hand) / 4)


def test_with_very_many_parts_not_every_k_is_asked():
    assert settled_ks(16) == list(range(1, 17))
    assert settled_ks(200)[-1] == 200
    assert len(settled_ks(200)) < 20
    order = np.arange(200)[::-1]
    assert nested(order, [1, 3])[1].nonzero()[0].tolist() == [197, 198, 199]


@examples(50)
@given(values=st.lists(st.booleans(), min_size=2, max_size=20))
def test_the_area_is_the_mean_over_k_below_d(values):
    d = len(values)
    assert area(np.array(values, dtype=float), list(range(1, d + 1)), d) == pytest.approx(np.mean(values[:-1]))


def test_draws_must_be_a_number():
    with pytest.raises(ValueError, match="draws must be a whole number >= 2, got 1"):
        Flips(draws=1)


def test_who_else_is_there_changes_nobody_s_curve():
    case = tangled_case(2)
    alone = Flips()(case, scored(flat=np.zeros(16)), generator(0))
    again = tangled_case(2)
    beside = Flips()(again, scored(other=np.ones(16), flat=np.zeros(16)), generator(0))
    for judge in ("any", "target"):
        assert alone["random"][judge] == beside["random"][judge]
        for name in ("flat", "magnitude", "magnitude_mean"):
            assert alone["flip"][judge][name] == beside["flip"][judge][name]
