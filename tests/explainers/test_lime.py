"""LIME against truths it does not know: additive models and exact enumeration."""

import numpy as np
import pytest

import whytrust as wt
from whitebox import COSINE, Additive, Bits, Net, enumerated, question
from whytrust.core import generator
from whytrust.designs import Kernel
from whytrust.explainers.lime import Lime

NO_SELECTION = {"features": "all", "selection": "none", "ridge": 0.0, "distance": "cosine", "width": 0.25}


# --- additive models: the weights are known -----------------------------------------------------------------------------


@pytest.mark.parametrize("variant", ["paper", "reference"])
@pytest.mark.parametrize(("d", "samples"), [(2, 10), (7, 200), (12, 5000), (20, 300)])
def test_an_additive_model_gets_its_weights_back(d, samples, variant, rng):
    truth = rng.normal(size=d)
    found = Lime(samples=samples, variant=variant, features="all", selection="none", ridge=0.0)(
        question(Additive(tuple(truth)), Bits(d)), rng)
    np.testing.assert_allclose(found.scores, truth, atol=1e-6)
    assert found.intercept == pytest.approx(0.3, abs=1e-6)
    assert found.gap == pytest.approx(0, abs=1e-6)
    assert found.fidelity == pytest.approx(1)
    assert found.fidelity_fresh == pytest.approx(1)


def test_image_weights_are_what_the_pixels_of_a_segment_add(rng):
    image, weights = rng.random((8, 8)), rng.normal(size=(8, 8))
    labels = np.arange(64).reshape(8, 8) // 8
    found = wt.explain(lambda b: (b * weights).reshape(len(b), -1).sum(axis=1), image, parts=labels, fill=0.0, samples=300)
    np.testing.assert_allclose(found.scores, [(weights * image)[labels == i].sum() for i in range(8)], atol=1e-6)
    np.testing.assert_array_equal(found.standard_errors, 0)


def test_segment_mean_hides_the_shape_and_keeps_the_level(rng):
    image, weights = rng.random((6, 6, 3)), rng.normal(size=(6, 6, 3))
    found = wt.explain(lambda b: (b * weights).reshape(len(b), -1).sum(axis=1), image, parts="grid:3x2", samples=100)
    labels = np.repeat(np.arange(3), 2)[:, None] * 2 + np.repeat(np.arange(2), 3)[None]
    truth = [(weights[labels == i] * (image[labels == i] - image[labels == i].mean(axis=0))).sum() for i in range(6)]
    np.testing.assert_allclose(found.scores, truth, atol=1e-6)


def test_text_weights_are_the_words_own(rng):
    worth = {"good": 0.7, "bad": -0.4, "film": 0.1, "the": 0.0, "very": 0.25}
    found = wt.explain(lambda texts: [sum(v for w, v in worth.items() if w in t.split()) for t in texts],
                       "the very good bad film", samples=100)
    assert dict(found.as_list()) == pytest.approx(worth, abs=1e-6)


def test_sound_weights_are_what_each_slice_adds(rng):
    wave, weights = rng.normal(size=800), rng.normal(size=800)
    found = wt.explain(lambda b: (b * weights).sum(axis=1), wave, parts="time:8", samples=300)
    np.testing.assert_allclose(found.scores, (wave * weights).reshape(8, 100).sum(axis=1), atol=1e-6)


def test_waveform_cells_are_additive_for_a_linear_detector(rng):
    wave, weights = rng.normal(size=4000), rng.normal(size=4000)
    found = wt.explain(lambda b: (b * weights).sum(axis=1), wave, parts="tf:3x3", rate=8000, samples=600)
    assert found.intercept + found.scores.sum() == pytest.approx((wave * weights).sum(), abs=1e-6)
    assert found.fidelity == pytest.approx(1)
    np.testing.assert_array_equal(found.standard_errors, 0)


def table(rng, n=200):
    return np.column_stack([rng.integers(0, k, n) for k in (3, 4, 2, 5)]).astype(float)


def test_table_weights_are_those_of_the_expectation_over_draws(rng):
    background = table(rng)
    effects = [rng.normal(size=k) for k in (3, 4, 2, 5)]
    row = background[0]
    truth = []
    for column, effect in zip(background.T, effects, strict=True):
        own = int(row[len(truth)])
        others = column[column != own].astype(int)
        truth.append(effect[own] - effect[others].mean())
    found = wt.explain(lambda b: sum(e[b[:, i].astype(int)] for i, e in enumerate(effects)), row, background=background,
                       categorical=[0, 1, 2, 3], samples=500)
    assert found.settings["design"] == "every row that can be drawn"
    np.testing.assert_allclose(found.scores, truth, atol=1e-6)
    np.testing.assert_array_equal(found.standard_errors, 0)


def test_controls_make_sampled_tables_exact_for_linear_models(rng):
    background = rng.normal(size=(400, 5))
    weights = rng.normal(size=5)
    found = wt.explain(lambda b: b @ weights, background[0], background=background, samples=800)
    truth = []
    for j in range(5):
        column = background[:, j]
        edges = np.quantile(column, [0.25, 0.5, 0.75])
        bins = np.searchsorted(edges, column)
        own = bins == bins[0]
        truth.append(weights[j] * (column[own].mean() - column[~own].mean()))
    # 16 quantile values stand for a bin, so bin means differ a little from the data's own; no sampling noise is left.
    np.testing.assert_allclose(found.scores, truth, atol=0.05)
    assert found.standard_errors.max() < 1e-6


# --- the same number as exact enumeration, with honest intervals ---------------------------------------------------------


@pytest.mark.parametrize("sampling", ["uniform_kept", "uniform_removed", "bernoulli"])
@pytest.mark.parametrize("kernel", [COSINE, Kernel("l2", 2.0, root=True)])
def test_enumeration_is_least_squares_over_every_mask(sampling, kernel, rng):
    net = Net(8, 3)
    lime = Lime(samples=300, features="all", sampling=sampling, distance=kernel.distance, width=kernel.width, root=kernel.root)
    found = lime(question(net, Bits(8)), rng)
    np.testing.assert_allclose(found.scores, enumerated(net, 8, sampling, kernel, 300), atol=1e-9)
    np.testing.assert_array_equal(found.standard_errors, 0)


COVERAGE = [
    ("stratified", {"surrogate": False}, {}, 200),
    ("stratified with surrogate", {}, {}, 200),
    ("nearly everything asked", {}, {}, 850),
    ("plain", {"design": "plain"}, {}, 400),
]


@pytest.mark.parametrize(("name", "options", "parts", "samples"), COVERAGE, ids=[c[0] for c in COVERAGE])
def test_intervals_cover_the_enumerated_truth(name, options, parts, samples):
    nets = [Net(10, seed, scale=1.0) for seed in range(5)]
    truths = [enumerated(net, 10, "uniform_kept", COSINE, samples) for net in nets]
    inside = []
    for repeat in range(160):
        found = Lime(samples=samples, **NO_SELECTION, **options)(question(nets[repeat % 5], Bits(10)), generator(repeat))
        inside.append(np.abs(found.scores - truths[repeat % 5]) <= 1.96 * found.standard_errors)
    assert 0.93 <= np.mean(inside) <= 0.97


def test_intervals_cover_where_the_fill_draws_at_random():
    d = 6
    truth = np.linspace(-1, 1, d)
    inside = []
    for repeat in range(200):
        parts = Bits(d, deterministic=False, noise=0.5)
        found = Lime(samples=150, **NO_SELECTION)(question(Additive(tuple(truth)), parts), generator(repeat))
        inside.append(np.abs(found.scores - truth) <= 1.96 * found.standard_errors)
    assert 0.93 <= np.mean(inside) <= 0.97


def test_intervals_cover_for_tables():
    rng = np.random.default_rng(1)
    background = table(rng, 400)
    bend = lambda b: np.tanh(b[:, 0] * b[:, 1] - b[:, 2]) + 0.2 * b[:, 3]  # noqa: E731
    options = {"background": background, "categorical": [0, 1, 2, 3], "selection": "none"}
    truth = wt.explain(bend, background[0], samples=200, **options)
    assert truth.settings["design"] == "every row that can be drawn"
    inside = []
    for seed in range(250):
        found = wt.explain(bend, background[0], samples=100, seed=seed, **options)
        assert found.standard_errors.min() > 0
        inside.append(np.abs(found.scores - truth.scores) <= 1.96 * found.standard_errors)
    assert 0.93 <= np.mean(inside) <= 0.97


def test_the_surrogate_needs_fewer_calls_and_changes_nothing_else():
    net = Net(12, 1, scale=0.7)
    truth = enumerated(net, 12, "uniform_kept", COSINE, 800)
    error = {}
    for design in ({"design": "plain"}, {"surrogate": False}, {}):
        found = [Lime(samples=800, **NO_SELECTION, **design)(question(net, Bits(12)), generator(s)).scores for s in range(30)]
        error[str(design)] = np.mean((np.array(found) - truth) ** 2)
        # No bias: the mean over repetitions is the truth, within four of its own standard errors.
        assert (np.abs(np.mean(found, axis=0) - truth) < 4 * np.std(found, axis=0) / np.sqrt(30)).all()
    plain, stratified, adjusted = error.values()
    assert adjusted < 0.7 * stratified < 0.7 * 0.7 * plain


# --- samples="auto" -------------------------------------------------------------------------------------------------------


def test_auto_stops_early_when_the_top_parts_stand_apart(rng):
    weights = (3, 2.5, 2, 0.01, 0.0, 0.02, 0.0, 0.01, 0.0, 0.0, 0.0, 0.0)
    asked = question(lambda b: Additive(weights)(b) + 0.3 * b[:, 0] * b[:, 5] * b[:, 7], Bits(12))
    found = Lime(samples="auto", budget=3000, top=3, features="all")(asked, rng)
    assert found.calls < 500
    assert set(found.order[:3]) == {0, 1, 2}
    assert not any("budget" in note for note in found.notes)


def test_auto_spends_its_budget_on_ties_and_says_so(rng):
    # Two parts that are equal but for the noise of the fill.
    found = Lime(samples="auto", budget=600, top=1, features="all")(
        question(Additive((1.0, 1.0, 0.1, 0.1)), Bits(4, deterministic=False, noise=0.5)), rng)
    assert found.settings["samples"] == 600
    assert 1 in found.undecided
    assert any("budget of 600 samples ended" in note and "1 and 2" in note for note in found.notes)


def test_equal_weights_are_called_separated_in_at_most_five_percent_of_runs():
    parts = Bits(4, deterministic=False, noise=1.0)
    stopped = 0
    runs = 250
    for seed in range(runs):
        found = Lime(samples="auto", budget=1024, top=1, features="all", selection="none")(
            question(Additive((1.0, 1.0, 0.0, 0.0)), parts), generator(seed))
        stopped += found.settings["samples"] < 1024
    assert stopped / runs <= 0.05


def test_equal_columns_of_a_table_are_rarely_called_separated():
    background = np.tile(np.linspace(-1, 1, 40)[:, None], (1, 2))
    both = lambda b: b[:, 0] * b[:, 1] + b[:, 0] + b[:, 1]  # noqa: E731
    runs = 200
    apart = [not any("budget" in note for note in wt.explain(both, [0.3, 0.3], background=background, samples="auto", budget=1024,
                                                             top=1, features="all", seed=seed).notes) for seed in range(runs)]
    assert np.mean(apart) <= 0.05 + 1.64 * np.sqrt(0.05 * 0.95 / runs)


def test_the_budgets_end_is_a_look_like_any_other(rng):
    found = Lime(samples="auto", budget=64, top=2, features="all")(question(Additive((2.0, 1.0, *[0.0] * 8)), Bits(10)), rng)
    assert not any("budget" in note for note in found.notes)


def test_auto_on_a_table_stops_early_too(rng):
    background = rng.normal(size=(300, 6))
    found = wt.explain(lambda b: np.tanh(3 * b[:, 0] + b[:, 1] * b[:, 2]), background[0] + 1, background=background,
                       samples="auto", budget=5000, top=1)
    assert found.settings["samples"] < 5000
    assert found.order[0] == 0


# --- families, targets, regressors ----------------------------------------------------------------------------------------


def test_auto_family_takes_the_tree_where_the_model_is_a_rule(rng):
    rule = lambda b: ((b[:, 0] > 0) & (b[:, 1] > 0) | (b[:, 0] == 0) & (b[:, 2] > 0)).astype(float)  # noqa: E731
    found = Lime(samples=200, family="auto")(question(rule, Bits(6)), rng)
    assert found.settings["used"] == "tree"
    assert found.fidelity_fresh > 0.99
    assert found.local_prediction == pytest.approx(1)
    assert found.rules.startswith("if “part 1” is kept:\n    if “part 2” is kept:\n        → 1.000\n    otherwise:")
    assert found.standard_errors is None


def test_auto_family_stays_linear_where_the_model_is(rng):
    found = Lime(samples=200, family="auto")(question(Additive(tuple(rng.normal(size=6))), Bits(6)), rng)
    assert found.settings["used"] == "linear"


def test_tree_scores_add_up_to_its_prediction_for_the_input(rng):
    net = Net(7, 2)
    found = Lime(samples=100, family="tree", features="all")(question(net, Bits(7)), rng)
    assert found.intercept + found.scores.sum() == pytest.approx(found.local_prediction)


def test_a_tree_walks_the_rows_own_way_where_columns_are_numbers(rng):
    background = rng.normal(size=(300, 3))
    row = np.array([-1.0, 0.5, 0.2])
    found = wt.explain(lambda b: (b[:, 0] > 0.3).astype(float), row, background=background, bins=None, family="tree")
    assert found.local_prediction == pytest.approx(0, abs=0.02)
    assert found.scores[0] == pytest.approx(-found.intercept, abs=0.02)
    assert "column 0 is above" in found.rules


def test_parts_in_an_exact_tie_do_not_end_the_selection(rng):
    weights = (1.0, 1.0, 1.0, 1.0, 0.5, 0.5, 0.25, 0.0)
    found = Lime(samples=300, features=6)(question(Additive(weights), Bits(8)), rng)
    assert set(np.flatnonzero(found.selected)) == {0, 1, 2, 3, 4, 5}


def test_the_surrogate_never_empties_the_selection():
    net = Net(14, 1, scale=0.3)
    for seed in range(20):
        found = Lime(samples=300, features=5)(question(net, Bits(14)), generator(seed))
        assert found.selected.sum() == 5


def test_several_targets_share_one_set_of_model_calls(rng):
    calls = []

    def model(batch):
        calls.append(len(batch))
        return np.column_stack([Additive((1.0, 2.0, 3.0))(batch), Additive((3.0, -2.0, 1.0))(batch)])

    for parts in (Bits(3), Bits(3, deterministic=False, noise=0.1)):
        calls.clear()
        both = [Lime(samples=50)(q, generator(0)) for q in question(model, parts).watching([0, 1])]
        assert sum(calls) == both[0].calls <= 50
        np.testing.assert_allclose(both[0].scores, [1, 2, 3], atol=0.2)
        np.testing.assert_allclose(both[1].scores, [3, -2, 1], atol=0.2)


def test_targets_of_a_table_share_one_set_of_draws(rng):
    calls = []
    background = rng.normal(size=(200, 3))

    def model(batch):
        calls.append(len(batch))
        p = 1 / (1 + np.exp(-batch[:, 0]))
        return np.column_stack([p, 1 - p])

    both = wt.explain(model, background[0], target=[0, 1], background=background, samples=500)
    assert sum(calls) == 501
    np.testing.assert_allclose(both[0].scores, -both[1].scores, atol=1e-9)


def test_a_regressor_is_explained_on_its_own_scale(rng):
    found = wt.explain(lambda b: 1000 * b.mean(axis=(1, 2)), np.ones((4, 4)), parts="grid:2x2", fill=0.0)
    np.testing.assert_allclose(found.scores, 250)
    assert found.target_name == "output"


def test_selection_keeps_k_parts_and_the_right_ones(rng):
    weights = np.zeros(30)
    weights[[3, 11, 17]] = (1.0, -2.0, 1.5)
    found = Lime(samples=500, features=3)(question(Additive(tuple(weights)), Bits(30)), rng)
    assert set(np.flatnonzero(found.selected)) == {3, 11, 17}
    np.testing.assert_allclose(found.scores, weights, atol=1e-6)


# --- said in words --------------------------------------------------------------------------------------------------------


def test_a_worthless_explanation_is_called_so(rng):
    parity = lambda b: (b.sum(axis=1) % 2).astype(float)  # noqa: E731
    found = Lime(samples=400)(question(parity, Bits(9)), rng)
    assert any("Do not rely on these weights" in note for note in found.notes)


def test_a_local_model_that_decides_otherwise_is_called_so(rng):
    step = lambda b: np.column_stack([1 - (p := 0.2 + 0.6 * (b.sum(axis=1) == 6)), p])  # noqa: E731
    found = Lime(samples=63, features="all", distance="l2", width=100.0)(question(step, Bits(6), target=1), rng)
    assert any("would decide for" in note for note in found.notes)


def test_a_constant_model_has_nothing_to_explain(rng):
    found = Lime(samples=100)(question(lambda b: np.full(len(b), 0.4), Bits(5)), rng)
    assert any("nothing to explain" in note for note in found.notes)
    np.testing.assert_allclose(found.scores, 0, atol=1e-12)


@pytest.mark.parametrize(("options", "message"), [
    ({"samples": 0}, "samples must be a whole number"), ({"samples": "many"}, "samples must be a whole number"),
    ({"samples": 6}, "samples must be at least"), ({"variant": "original"}, "variant must be one of"),
    ({"family": "forest"}, "family must be one of"), ({"features": -1}, "features must be"),
    ({"ridge": -1.0}, "ridge must be"), ({"selection": "best"}, "selection must be one of"),
    ({"design": "plain", "samples": "auto"}, "needs the stratified design")])
def test_wrong_settings_are_refused(options, message, rng):
    with pytest.raises(ValueError, match=message):
        Lime(**{"features": "all", **options})(question(Additive((1.0,) * 12), Bits(12)), rng)


def test_few_samples_are_called_few(rng):
    net = Net(10, 0)
    assert any("samples are few" in note for note in Lime(samples=30, features="all")(question(net, Bits(10)), rng).notes)
    assert Lime(samples=14, features="all")(question(net, Bits(10)), rng).standard_errors is None


@pytest.mark.parametrize("samples", [500, "auto"])
def test_a_kernel_too_narrow_for_a_table_is_refused(samples, rng):
    background = rng.normal(size=(200, 4))
    with pytest.raises(ValueError, match="so narrow"):
        wt.explain(lambda b: b[:, 0], background[0], background=background, width=0.01, samples=samples)


def test_margins_are_not_read_as_probabilities(rng):
    margin = lambda b: np.column_stack([-(m := 0.3 + 0.05 * b.sum(axis=1) + 0.2 * (b.sum(axis=1) == 6)), m])  # noqa: E731
    found = Lime(samples=63, distance="l2", width=100.0)(question(margin, Bits(6), target=1), rng)
    assert not any("would decide for" in note for note in found.notes)


def test_one_part_cannot_be_compared(rng):
    with pytest.raises(ValueError, match="at least two"):
        Lime()(question(Additive((1.0,)), Bits(1)), rng)
