"""KernelSHAP against the definition, against shap and captum, and against enumeration."""

import itertools
import logging
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import whytrust as wt
from whitebox import Additive, Bits, Net, all_masks, examples, question
from whytrust.core import generator
from whytrust.explainers import shap_surrogate
from whytrust.explainers.kernel_shap import KernelShap
from whytrust.explainers.shap_surrogate import Taught


def game(d, seed):
    """A random number for every coalition: nothing about it is smooth."""
    table = np.random.default_rng(seed).normal(size=2**d)
    return Table(table)


class Table:
    def __init__(self, values):
        self.values = values

    def __call__(self, batch):
        batch = np.asarray(batch)
        return self.values[(batch > 0.5) @ (2 ** np.arange(batch.shape[1]))]


def by_definition(function, d):
    """What a part adds to each coalition of the others, weighed by how many orders of showing the parts lead there."""
    values = np.zeros(d)
    for i in range(d):
        others = [j for j in range(d) if j != i]
        for size in range(d):
            for chosen in itertools.combinations(others, size):
                mask = np.zeros((2, d))
                mask[:, list(chosen)] = 1
                mask[1, i] = 1
                without, with_it = function(mask)
                values[i] += (with_it - without) * math.factorial(size) * math.factorial(d - size - 1) / math.factorial(d)
    return values


def by_sizes(function, d):
    """The same, fast: over sizes, the mean score of coalitions with a part less that of those without."""
    masks = all_masks(d)
    scores, sizes = function(masks.astype(np.float64)), masks.sum(axis=1)
    values = np.full(d, (scores[-1] - scores[0]) / d)
    for s in range(1, d):
        rows, own = masks[sizes == s], scores[sizes == s]
        values += (own @ rows / rows.sum(axis=0) - own @ ~rows / (~rows).sum(axis=0)) / d
    return values


def explain(function, d, seed=0, parts=None, **options):
    return KernelShap(**options)(question(function, parts or Bits(d)), generator(seed))


# --- exact ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("d", [1, 2, 3, 4, 5, 6])
@pytest.mark.parametrize("seed", range(3))
def test_with_every_coalition_asked_values_are_those_of_the_definition(d, seed):
    function = game(d, seed)
    found = explain(function, d, samples=2**d)
    np.testing.assert_allclose(found.scores, by_definition(function, d), atol=1e-9)
    np.testing.assert_allclose(by_sizes(function, d), by_definition(function, d), atol=1e-9)
    np.testing.assert_array_equal(found.standard_errors, 0)
    assert found.calls == 2**d
    assert found.settings["design"] == "every coalition"
    assert found.intercept == pytest.approx(float(function(np.zeros((1, d)))[0]))


def test_one_part_has_the_whole_difference():
    found = explain(lambda b: 3 * b[:, 0] + 1, 1)
    np.testing.assert_allclose(found.scores, [3.0])
    assert found.calls == 2


def test_the_default_asks_everything_where_that_is_cheaper():
    found = explain(game(10, 0), 10)
    assert found.calls == 2**10
    np.testing.assert_allclose(found.scores, by_sizes(game(10, 0), 10), atol=1e-9)


# --- other libraries ------------------------------------------------------------------------------------------------------


def test_it_is_shaps_kernel_explainer(rng):
    shap = pytest.importorskip("shap")
    row, net = rng.normal(size=6), Net(6, 4)
    theirs = shap.KernelExplainer(net, np.zeros((1, 6))).shap_values(row, nsamples=1000, l1_reg=False, silent=True)
    found = wt.explain(lambda b: net(b.reshape(len(b), -1)), row.reshape(2, 3), KernelShap(), parts="grid:2x3", fill=0.0)
    np.testing.assert_allclose(found.scores, theirs, atol=1e-5)
    assert np.abs(theirs).max() > 1e-2


@pytest.mark.parametrize("target", [0, 2])
def test_it_is_captums_shapley_values(target, rng):
    torch, attr = pytest.importorskip("torch"), pytest.importorskip("captum.attr")
    torch.manual_seed(3)
    net = torch.nn.Sequential(torch.nn.Conv2d(3, 5, 3), torch.nn.Tanh(), torch.nn.Flatten(), torch.nn.Linear(5 * 6 * 4, 3),
                              torch.nn.Softmax(dim=1)).eval()
    image, labels = rng.random((3, 8, 6)).astype(np.float32), rng.integers(0, 5, (8, 6))
    asked = {"baselines": 0, "target": target, "feature_mask": torch.tensor(labels)[None, None]}
    theirs = attr.ShapleyValues(net).attribute(torch.tensor(image)[None], **asked).detach().numpy()[0, 0]
    found = wt.explain(wt.model(net), image, KernelShap(), target=target, parts=labels, fill=0.0)
    np.testing.assert_allclose(found.as_map(), theirs, atol=1e-5)
    assert np.abs(theirs).max() > 1e-3
    torch.manual_seed(0)
    drawn = attr.KernelShap(net).attribute(torch.tensor(image)[None], n_samples=2000, **asked).detach().numpy()[0, 0]
    np.testing.assert_allclose(drawn, theirs, atol=0.02)  # theirs is drawn with repeats and so not exact


# --- Shapley's axioms -----------------------------------------------------------------------------------------------------

sampled = st.sampled_from([(4, 10), (4, 12), (5, 14), (7, 40), (9, 100), (6, 64), (3, 8)])


@given(sampled, st.integers(0, 10**6))
@examples(25)
def test_values_and_intercept_add_up_to_the_prediction_however_few_are_asked(case, seed):
    d, samples = case
    found = explain(game(d, seed), d, seed, samples=samples)
    assert found.intercept + found.scores.sum() == pytest.approx(found.prediction, abs=1e-9)
    assert found.local_prediction == found.prediction
    assert found.calls <= samples


@given(st.integers(2, 6), st.integers(0, 10**6))
@examples(15)
def test_parts_that_do_the_same_have_the_same_value(d, seed):
    function = game(d, seed)
    alike = lambda b: function(b) + function(b[:, [1, 0, *range(2, d)]])  # noqa: E731
    scores = explain(alike, d).scores
    assert scores[0] == pytest.approx(scores[1], abs=1e-9)


@given(st.integers(2, 6), st.integers(0, 10**6))
@examples(15)
def test_a_part_that_does_nothing_has_none(d, seed):
    function = game(d - 1, seed)
    assert explain(lambda b: function(b[:, 1:]), d).scores[0] == pytest.approx(0, abs=1e-9)


@given(sampled, st.integers(0, 10**6), st.floats(-3, 3))
@examples(15)
def test_values_of_a_sum_are_the_sum_of_values(case, seed, factor):
    d, samples = case
    first, second = game(d, seed), game(d, seed + 1)
    one, other, both = (explain(f, d, seed, samples=samples, surrogate=False).scores if samples >= 40 else explain(f, d).scores
                        for f in (first, second, lambda b: first(b) + factor * second(b)))
    np.testing.assert_allclose(both, one + factor * other, atol=1e-9)


@given(st.integers(0, 10**6))
@examples(10)
def test_renaming_the_parts_renames_the_values(seed):
    d = 5
    order = np.random.default_rng(seed).permutation(d)
    function = game(d, seed)
    np.testing.assert_allclose(explain(lambda b: function(b[:, order]), d).scores[order], explain(function, d).scores, atol=1e-9)


# --- few calls ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("d", [4, 7, 12, 40, 150])
@pytest.mark.parametrize("beyond", [0, 2, 9, 60])
def test_an_additive_model_gets_its_weights_back_with_hardly_more_than_two_calls_a_part(d, beyond, rng):
    truth = rng.normal(size=d)
    found = explain(Additive(tuple(truth)), d, samples=2 * d + 2 + beyond)
    np.testing.assert_allclose(found.scores, truth, atol=1e-9)
    assert found.standard_errors is None or found.standard_errors.max() < 1e-9


def test_two_parts_that_act_together_cancel_in_pairs(rng):
    d = 30
    bends = np.triu(rng.normal(size=(d, d)), 1)
    found = explain(lambda b: np.einsum("ni,ij,nj->n", b, bends, b), d, samples=200)
    np.testing.assert_allclose(found.scores, (bends + bends.T).sum(axis=1) / 2, atol=1e-9)


def root_mean_square(net, truth, samples, repeats=8, **options):
    d = len(truth)
    found = [explain(net, d, seed, samples=samples, **options).scores for seed in range(repeats)]
    return np.sqrt(np.mean(np.square(np.array(found) - truth)))


def test_more_calls_err_less():
    net = Net(12, 3)
    truth = by_sizes(net, 12)
    errors = [root_mean_square(net, truth, n) for n in (60, 200, 800, 4096)]
    assert all(after < 0.7 * before for before, after in itertools.pairwise(errors))
    assert errors[-1] < 1e-12


def test_it_errs_less_than_shaps_kernel_explainer_with_as_many_calls(monkeypatch):
    shap = pytest.importorskip("shap")
    monkeypatch.setattr(logging.getLogger("shap"), "disabled", True)
    ours, theirs = [], []
    state = np.random.get_state()  # noqa: NPY002 - shap draws from the global state
    for seed in range(4):
        net = Net(12, seed)
        truth = by_sizes(net, 12)
        ours.append(root_mean_square(net, truth, 800, repeats=6))
        for repeat in range(6):
            np.random.seed(repeat)  # noqa: NPY002
            explainer = shap.KernelExplainer(net, np.zeros((1, 12)))
            theirs.append(explainer.shap_values(np.ones(12), nsamples=798, l1_reg=False, silent=True) - truth)
    np.random.set_state(state)  # noqa: NPY002
    assert np.sqrt(np.mean(np.square(ours))) < 0.7 * np.sqrt(np.mean(np.square(theirs)))


def test_the_surrogate_takes_noise_out_and_adds_no_bias():
    net = Net(10, 2)
    truth = by_sizes(net, 10)
    assert root_mean_square(net, truth, 400) < 0.5 * root_mean_square(net, truth, 400, surrogate=False)
    found = np.array([explain(net, 10, seed, samples=400).scores for seed in range(60)])
    assert (np.abs(found.mean(axis=0) - truth) < 4 * found.std(axis=0) / np.sqrt(60)).all()


# --- intervals ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("d", "samples", "options"), [(8, 60, {}), (10, 300, {}), (12, 300, {}), (9, 350, {}),
                                                       (10, 200, {"surrogate": False})])
def test_intervals_cover_the_enumerated_truth(d, samples, options):
    nets = [Net(d, seed) for seed in range(5)]
    truths = [by_sizes(net, d) for net in nets]
    inside = []
    for repeat in range(120):
        found = explain(nets[repeat % 5], d, repeat, samples=samples, **options)
        inside.append(np.abs(found.scores - truths[repeat % 5]) <= 1.96 * found.standard_errors)
    assert 0.92 <= np.mean(inside) <= 0.98


@pytest.mark.parametrize("samples", [40, 150])
def test_intervals_cover_where_the_fill_draws_at_random(samples):
    truth, parts = np.linspace(-1, 1, 6), Bits(6, deterministic=False, noise=0.5)
    inside = []
    for seed in range(200):
        found = explain(Additive(tuple(truth)), 6, seed, parts, samples=samples)
        assert found.calls <= samples
        inside.append(np.abs(found.scores - truth) <= 1.96 * found.standard_errors)
    assert 0.92 <= np.mean(inside) <= 0.98


def test_a_row_of_a_table_is_compared_with_its_background(rng):
    background, weights = rng.normal(size=(300, 4)), np.array([1.0, -2.0, 0.5, 0.0])
    found = wt.explain(lambda b: b @ weights, background[0], KernelShap(), background=background)
    truth = weights * (background[0] - background.mean(axis=0))  # Shapley values of a linear model
    assert (np.abs(found.scores - truth) <= 3.5 * found.standard_errors + 0.02).all()  # quantiles stand for the column's values
    assert found.intercept + found.scores.sum() == pytest.approx(found.prediction, abs=1e-9)
    assert any("drawn at random" in note for note in found.notes)


def test_one_random_part_is_compared_with_its_mean():
    found = explain(Additive((2.0,)), 1, parts=Bits(1, deterministic=False, noise=1.0), samples=400)
    assert abs(found.scores[0] - 2.0) < 4 * found.standard_errors[0]
    assert found.standard_errors[0] == pytest.approx(2 / 20, rel=0.2)


# --- calls, bits and words ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("d", "samples"), [(4, 10), (4, 11), (5, 20), (12, 301), (14, None), (70, None), (300, 620), (300, 700)])
def test_no_more_calls_than_were_allowed(d, samples):
    found = explain(Net(d, 0, scale=0.3), d, samples=samples)
    assert found.calls <= (2 * d + 2048 if samples is None else samples)
    assert np.isfinite(found.scores).all()


@pytest.mark.parametrize("noise", [0.0, 0.3])
def test_the_batch_size_changes_no_bit(noise):
    parts = Bits(9, deterministic=not noise, noise=noise)
    model = lambda b: np.array([np.tanh(row.sum() + row[0] * row[3] * row[5]) for row in b])  # noqa: E731
    found = [KernelShap(samples=150)(question(model, parts, batch_size=size), generator(1)) for size in (1, 7, 64)]
    assert len({e.scores.tobytes() for e in found}) == len({e.standard_errors.tobytes() for e in found}) == 1


def test_several_targets_share_one_set_of_model_calls():
    model = lambda b: np.column_stack([p := Net(10, 1)(b), 1 - p])  # noqa: E731
    for parts in (Bits(10), Bits(10, deterministic=False, noise=0.1)):
        first, second = (KernelShap(samples=100)(q, generator(0)) for q in question(model, parts).watching([0, 1]))
        assert first.calls == second.calls <= 100
        np.testing.assert_allclose(first.scores, -second.scores, atol=1e-9)


def test_asking_ahead_changes_no_value():
    net = Net(6, 1)
    model = lambda b: np.column_stack([p := net(b.reshape(len(b), -1)), 1 - p])  # noqa: E731
    image = np.ones((2, 3))
    early = wt.explain(model, image, KernelShap(samples=30), parts="grid:2x3", fill=0.0)
    late = wt.explain(model, image, KernelShap(samples=30), parts="grid:2x3", fill=0.0, target=int(model(image[None])[0].argmax()))
    np.testing.assert_allclose(early.scores, late.scores, atol=1e-12)
    assert early.calls == late.calls <= 30


def test_too_few_calls_are_refused_and_few_are_called_few():
    with pytest.raises(ValueError, match=r"samples must be at least 22 for 10 parts .*, got 21"):
        explain(Net(10, 0), 10, samples=21)
    found = explain(Net(10, 0), 10, samples=22)
    assert found.standard_errors is None
    assert any("22 model calls are few for 10 parts" in note for note in found.notes)
    assert explain(Net(10, 0), 10, samples=42).standard_errors is not None


@pytest.mark.parametrize("options", [{"samples": 0}, {"samples": "auto"}, {"samples": True}, {"samples": 2.5}, {"surrogate": 3}])
def test_wrong_settings_are_refused(options):
    with pytest.raises(ValueError, match=f"{next(iter(options))} must be"):
        KernelShap(**options)


def test_a_constant_model_has_nothing_to_explain():
    found = explain(lambda b: np.full(len(b), 0.4), 12, samples=100)
    np.testing.assert_allclose(found.scores, 0, atol=1e-12)
    assert any("nothing to explain" in note for note in found.notes)


def test_values_stay_within_reason_where_the_budget_is_small_and_the_fill_is_drawn():
    background = np.random.default_rng(0).random((100, 9))
    for samples in (22, 24, 30, 60):
        for seed in range(6):
            found = wt.explain(lambda x: np.asarray(x)[:, :2], background[0], "kernel_shap", background=background, target=0,
                               samples=samples, seed=seed)
            assert np.abs(found.scores).max() < 5
            assert found.intercept + found.scores.sum() == pytest.approx(found.prediction, abs=1e-9)


# --- the surrogate ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bent", [False, True])
def test_what_a_surrogate_says_of_a_pair_it_has_not_seen_is_what_a_fit_without_it_says(bent, rng):
    """Left out by hand: the equations of a ridge with a free linear part, solved anew without each row."""
    rows = rng.choice([-1.0, 1.0], size=(25, 4))
    targets, basis = rng.normal(size=25), np.linalg.qr(rows)[0]
    taught = Taught(rows, np.arange(25), targets, basis, np.linalg.pinv(rows), shap_surrogate._sinh(rows, rows, 3.0) if bent else None, 0.7)
    for row in range(25):
        kept = np.delete(np.arange(25), row)
        kernel = np.sinh(3.0 * (rows @ rows.T) / 4) / np.sinh(3.0) if bent else np.zeros((25, 25))
        inner = np.block([[kernel[np.ix_(kept, kept)] + 0.7 * np.eye(24), rows[kept]], [rows[kept].T, np.zeros((4, 4))]])
        found = np.linalg.solve(inner, np.concatenate([targets[kept], np.zeros(4)]))
        predicted = kernel[row, kept] @ found[:24] + rows[row] @ found[24:]
        assert taught.unseen[row] == pytest.approx(targets[row] - predicted, rel=1e-8)


def test_a_pair_that_alone_tells_of_a_part_has_no_error_that_could_be_known(rng):
    rows = np.vstack([rng.choice([-1.0, 1.0], size=(12, 3)), np.zeros((1, 3))])
    rows = np.hstack([rows, np.zeros((13, 1))])
    rows[-1, 3] = 1.0
    taught = Taught(rows, np.arange(13), rng.normal(size=13), np.linalg.qr(rows)[0], np.linalg.pinv(rows))
    assert np.isinf(taught.unseen[-1])
    assert np.isfinite(taught.unseen[:-1]).all()


@pytest.mark.parametrize("d", [1, 2, 3])
def test_few_parts_whose_fill_is_drawn_are_explained(d):
    rows = np.random.default_rng(0).normal(size=(200, d))
    found = wt.explain(lambda x: np.tanh(x.sum(axis=1)), rows[0], "kernel_shap", background=rows, samples=400)
    assert np.isfinite(found.scores).all()
    assert found.scores.sum() + found.intercept == pytest.approx(np.tanh(rows[0].sum()))
