"""Parzen windows against finite differences, naive loops, scipy's densities and white boxes."""

import pickle
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from scipy.stats import gaussian_kde

import whytrust as wt
from whitebox import examples
from whytrust.explainers import windows
from whytrust.explainers.parzen import Parzen
from whytrust.explainers.windows import Rows, Windows, cross_validated, folds_of, tried

WORDS = ["good", "bad", "film", "plot", "long", "short", "actor", "scene", "music", "night", "old", "new"]


def reviews(n, seed=0, words=WORDS):
    rng = np.random.default_rng(seed)
    return [" ".join(rng.choice(words, rng.integers(2, 7), replace=False)) for _ in range(n)]


def says_good(texts):
    """The word of the truth is "good"; "bad" speaks against it; others say nothing."""
    return [0.5 + 0.4 * ("good" in t.split()) - 0.4 * ("bad" in t.split()) + 0.01 * ("film" in t.split()) for t in texts]


MODEL = wt.model(says_good, threshold=0.51, classes=["rotten", "fresh"])


# --- the windows themselves -------------------------------------------------------------------------------------------


def naive_probability(x, vectors, worth, width):
    kernels = [np.exp(-np.sum((x - v) ** 2) / (2 * width**2)) for v in vectors]
    return np.dot(kernels, worth) / np.sum(kernels)


@examples(30)
@given(st.integers(0, 10**6), st.sampled_from([0.5, 1.0, 3.0]), st.booleans())
def test_the_gradient_is_that_of_finite_differences(seed, width, as_sparse):
    rng = np.random.default_rng(seed)
    vectors, x = (rng.random((30, 4)) < 0.5).astype(float) if as_sparse else rng.normal(size=(30, 4)), rng.normal(size=4)
    worth = (rng.random(30) < 0.4).astype(float)
    made = Windows(Rows(sparse.csr_array(vectors) if as_sparse else vectors), width)
    assert made.value(x, worth) == pytest.approx(naive_probability(x, vectors, worth, width), abs=1e-10)
    step = 1e-5 * np.eye(4)
    slopes = [(naive_probability(x + s, vectors, worth, width) - naive_probability(x - s, vectors, worth, width)) / 2e-5
              for s in step]
    np.testing.assert_allclose(made.gradient(x, worth), slopes, atol=1e-6)


def test_the_gradient_is_the_closed_form_of_two_classes(rng):
    vectors, x, width = rng.normal(size=(40, 3)), rng.normal(size=3), 0.8
    ones = rng.random(40) < 0.5
    kernels = np.exp(-((x - vectors) ** 2).sum(axis=1) / (2 * width**2))
    sums = [kernels[ones == c].sum() for c in (False, True)]
    moments = [kernels[ones == c] @ (vectors[ones == c] - x) for c in (False, True)]
    truth = (sums[0] * moments[1] - sums[1] * moments[0]) / (width**2 * sum(sums) ** 2)
    np.testing.assert_allclose(Windows(Rows(vectors), width).gradient(x, ones.astype(float)), truth, rtol=1e-9)


@pytest.mark.parametrize("width", [0.3, 1.0])
def test_the_density_is_scipys(rng, width):
    # Whitened, so that scipy's kernel, which follows the data's covariance, is the same in all directions.
    values = rng.normal(size=(200, 2))
    values -= values.mean(axis=0)
    values = values @ np.linalg.inv(np.linalg.cholesky(np.cov(values.T))).T
    theirs, ours = gaussian_kde(values.T, bw_method=width), Windows(Rows(values), width)
    for x in rng.normal(size=(5, 2)):
        assert ours.log_density(x) == pytest.approx(float(theirs.logpdf(x)[0]), rel=1e-9)


@pytest.mark.parametrize("far", [10.0, 1e3, 1e8, 1e150])
@pytest.mark.parametrize("width", [1e-300, 1e-3, 1.0, 1e200])
def test_nothing_is_nan_however_far_away_or_narrow(rng, far, width):
    vectors = rng.normal(size=(20, 2))
    worth = (vectors[:, 0] > 0).astype(float)
    made = Windows(Rows(vectors), width)
    x = np.array([far, 0.1])
    assert -1e-12 <= made.value(x, worth) <= 1 + 1e-12
    assert np.isfinite(made.gradient(x, worth)).all()
    if width <= 1:
        assert made.value(x, worth) == pytest.approx(1.0, abs=1e-5)  # the nearest are all on that side


def test_slopes_beyond_any_number_are_refused():
    made = Windows(Rows(np.array([[1.0], [-1.0]])), 1e-200)
    with pytest.raises(ValueError, match="width must not be so small"):
        made.gradient(np.zeros(1), np.array([1.0, 0.0]))


def test_a_distance_beyond_any_number_is_refused():
    with pytest.raises(ValueError, match="within reach"):
        Windows(Rows(np.array([[1e10], [-1.0]])), 1.0).gradient(np.array([1e305]), np.array([1.0, 0.0]))


def test_arrays_are_standardised_as_one_in_pieces(rng, monkeypatch):
    values = rng.integers(0, 256, (50, 12)).astype(np.uint8)
    whole = Rows.standardised(values)
    monkeypatch.setattr(windows, "AT_ONCE", 8 * 12 * 7)
    pieces = Rows.standardised(values)
    units = (values - values.mean()) / values.std()
    for made in (whole, pieces):
        np.testing.assert_allclose(made.squares, (units**2).sum(axis=1))
        np.testing.assert_allclose(made.times(units[:3]), units[:3] @ units.T)
        np.testing.assert_allclose(made.weighed(np.arange(50.0)), np.arange(50.0) @ units)
        apart = ((units[:, None] - units[None]) ** 2).sum(axis=2)
        assert made.scale == pytest.approx(np.sqrt(apart.mean()))


def test_what_held_out_inputs_are_given_is_a_naive_loop_s(rng, monkeypatch):
    monkeypatch.setattr(windows, "AT_ONCE", 8 * 41 * 3)
    vectors, worth = rng.normal(size=(41, 3)), rng.random((41, 2))
    folds, held_out = folds_of(41)
    assert held_out.tolist() == list(range(41))
    assert sorted(np.bincount(folds)) == [8, 8, 8, 8, 9]
    found = cross_validated(Rows(vectors), worth, [0.4, 2.0], lambda given: given)
    for width, said in zip([0.4, 2.0], found, strict=True):
        truth = [naive_probability(vectors[i], vectors[folds != folds[i]], worth[folds != folds[i]], width) for i in held_out]
        np.testing.assert_allclose(said, truth, rtol=1e-9)


def test_of_very_many_inputs_some_are_predicted():
    folds, held_out = folds_of(200_000)
    assert len(folds) == 200_000
    assert len(held_out) == windows.LEAST_HELD_OUT
    assert len(set(held_out.tolist())) == len(held_out)


# --- texts ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [1.0, "auto"])
@pytest.mark.parametrize("parts", ["bag", "words"])
def test_the_word_of_the_truth_comes_first(width, parts):
    texts = reviews(300)
    found = wt.explain(MODEL, "good film with new plot and old music", "parzen", background=texts, width=width, parts=parts)
    assert found.as_list(1)[0][0] == "good"
    assert found.as_list(1)[0][1] > 0
    other = wt.explain(MODEL, "bad film with new plot and old music", "parzen", background=texts, width=width, parts=parts)
    assert other.target_name == "rotten"
    assert other.as_list(1)[0][0] == "bad"
    assert dict(other.as_list())["with"] == 0  # no training text has it
    assert found.intercept + found.scores.sum() == pytest.approx(found.local_prediction)


def test_scores_are_the_gradient_of_the_naive_probability_with_respect_to_words_that_are_there():
    texts, text, width = reviews(60), "good film bad plot", 1.5
    found = wt.explain(MODEL, text, "parzen", target="fresh", background=texts, width=width, parts="bag")
    bags = np.array([[word in t.split() for word in WORDS] for t in texts], dtype=float)
    own = np.array([word in text.split() for word in WORDS], dtype=float)
    labels = (np.array(says_good(texts)) > 0.51).astype(float)
    assert found.local_prediction == pytest.approx(naive_probability(own, bags, labels, width))
    for name, score in found.as_list():
        step = 1e-6 * (np.array(WORDS) == name)
        slope = (naive_probability(own + step, bags, labels, width) - naive_probability(own - step, bags, labels, width)) / 2e-6
        assert score == pytest.approx(slope, abs=1e-8)


def test_a_sentence_has_the_sum_over_its_words():
    texts = reviews(100)
    words = dict(wt.explain(MODEL, "good film. bad plot.", "parzen", background=texts, width=1.5).as_list())
    found = wt.explain(MODEL, "good film. bad plot.", "parzen", background=texts, width=1.5, parts="sentences")
    np.testing.assert_allclose(found.scores, [words["good"] + words["film"], words["bad"] + words["plot"]])


def test_the_width_is_the_naive_loop_s_choice():
    texts = reviews(80)
    vocabulary = sorted({word for t in texts for word in t.split()})
    bags = np.array([[word in t.split() for word in vocabulary] for t in texts], dtype=float)
    labels = np.array(says_good(texts)) > 0.51
    folds, _ = folds_of(80)
    apart = ((bags[:, None] - bags[None]) ** 2).sum(axis=2)
    scale = np.sqrt(apart.mean())
    best = (-1.0, 0.0)
    for width in scale * 2.0 ** (np.arange(-10, 3) / 2):
        right = 0
        for i in range(80):
            others = folds != folds[i]
            p = naive_probability(bags[i], bags[others], labels[others], width) if width > 0.3 else _nearest(
                apart[i][others], labels[others])
            right += (p > 0.5) == labels[i]
        best = max(best, (right / 80, -width))
    found = wt.explain(MODEL, "good film", "parzen", background=texts)
    assert found.settings["width"] == pytest.approx(-best[1])
    assert found.settings["agreement"] == pytest.approx(best[0])
    assert found.settings["chosen"] == "by cross-validation"


def _nearest(apart, labels):
    """The limit of narrow windows, for which the loop's kernels are all 0."""
    return float(np.mean(labels[apart == apart.min()]))


def test_one_set_of_calls_about_the_background_serves_every_input_and_target():
    asked = []
    model = wt.model(lambda texts: [asked.append(len(texts)), says_good(texts)][1], threshold=0.51)
    found = wt.explain(model, ["good film", "bad film", "old plot"], "parzen", target=[0, 1], background=reviews(50))
    assert sum(asked) == 50 + 3
    assert {e.calls for pair in found for e in pair} == {51}  # as if each were explained alone
    alone = wt.explain(model, "bad film", "parzen", target=[0, 1], background=reviews(50))
    assert alone == found[1]


def test_an_explainer_keeps_its_fit_for_a_model_and_makes_another_for_another():
    asked = []

    def counted(texts):
        asked.append(len(texts))
        return says_good(texts)

    model, explainer = wt.model(counted, threshold=0.51), Parzen(reviews(40))
    first, second = (wt.explain(model, "good film", explainer) for _ in range(2))
    assert first == second
    assert sum(asked) == 40 + 2
    other = wt.explain(wt.model(counted, threshold=0.2), "good film", explainer)
    assert sum(asked) == 80 + 3
    assert not np.allclose(other.scores, first.scores)
    copy = pickle.loads(pickle.dumps(explainer))
    assert copy == explainer
    assert wt.explain(model, "good film", copy) == first


def test_labels_may_be_given_and_the_model_is_then_not_asked():
    texts = reviews(120)
    names = ["fresh" if "plot" in t else "rotten" for t in texts]
    found = wt.explain(MODEL, "good film new plot", "parzen", target="fresh", background=texts, labels=names, width=1.0)
    assert found.as_list(1)[0][0] == "plot"
    assert found.calls == 1
    numbers = wt.explain(MODEL, "good film new plot", "parzen", target="fresh", background=texts, width=1.0,
                         labels=np.array([name == "fresh" for name in names]).astype(int))
    assert numbers.scores.tolist() == found.scores.tolist()


def test_scores_may_be_fitted_instead_of_labels():
    texts = reviews(200)
    found = wt.explain(MODEL, "good film new plot", "parzen", background=texts, soft=True, width=1.0)
    scores = np.array(says_good(texts))
    bags = np.array([[word in t.split() for word in WORDS] for t in texts], dtype=float)
    own = np.isin(WORDS, ["good", "film", "new", "plot"]).astype(float)
    assert found.local_prediction == pytest.approx(naive_probability(own, bags, scores, 1.0))
    assert found.settings["fitted_to"] == "the model's scores"
    assert found.as_list(1)[0][0] == "good"


def test_a_regressor_has_no_labels_and_is_fitted_by_its_scores():
    texts = reviews(200)
    found = wt.explain(says_good, "good film new plot", "parzen", background=texts)
    assert found.as_list(1)[0][0] == "good"
    assert found.settings["agreement"] is None
    assert found.settings["r2"] > 0.5
    noise = wt.explain(lambda some: [len(t) % 7 / 7 for t in some], "good film", "parzen", background=texts)
    assert any("of the variance" in note for note in noise.notes)


def test_the_largest_slopes_may_be_kept():
    texts = reviews(100)
    whole = wt.explain(MODEL, "good film new plot", "parzen", background=texts, width=1.0)
    found = wt.explain(MODEL, "good film new plot", "parzen", background=texts, width=1.0, features=2)
    assert found.as_list() == whole.as_list(2)
    assert found.selected.sum() == 2
    assert found.intercept + found.scores.sum() == pytest.approx(found.local_prediction)


# --- what is told -----------------------------------------------------------------------------------------------------


def test_windows_that_do_not_stand_in_for_the_model_are_told():
    rng = np.random.default_rng(3)
    texts = reviews(200)
    noisy = {t: float(rng.random()) for t in texts}
    model = wt.model(lambda some: [noisy.get(t, 0.7) for t in some], threshold=0.5)
    found = wt.explain(model, "good film", "parzen", background=texts)
    assert found.settings["agreement"] < 0.8
    assert any("hardly stand in for the model" in note for note in found.notes)
    assert "hardly stand in" not in str(wt.explain(MODEL, "good film", "parzen", background=texts))


def test_one_label_in_all_of_the_background_explains_nothing():
    texts = [t for t in reviews(100) if "good" in t and "bad" not in t]
    found = wt.explain(MODEL, "good film", "parzen", background=texts)
    assert not found.scores.any()
    assert any("nothing to explain" in note and "fresh" in note for note in found.notes)


def test_a_target_that_no_training_input_has_explains_nothing():
    model = wt.model(lambda texts: [[p, 1 - p, 0.0] for p in says_good(texts)])
    found = wt.explain(model, "good film", "parzen", target=2, background=reviews(60))
    assert not found.scores.any()
    assert found.local_prediction == 0
    assert any("No training input is labelled class 2" in note for note in found.notes)


def test_a_text_of_unknown_words_is_told():
    found = wt.explain(MODEL, "lorem ipsum", "parzen", background=reviews(60))
    assert not found.scores.any()
    assert any("has any of this text's words" in note for note in found.notes)


def test_a_training_text_without_a_word_is_an_empty_bag():
    found = wt.explain(MODEL, "good film", "parzen", background=[*reviews(60), "", "…"])
    assert np.isfinite(found.scores).all()
    assert found.settings["background"] == 62


# --- tables -----------------------------------------------------------------------------------------------------------


def clouds(n, seed=0):
    """Two Gaussian clouds, apart along (3, -1) / √10 of equal variances, and a third column that says nothing."""
    rng = np.random.default_rng(seed)
    axis = np.array([3, -1, 0]) / np.sqrt(10)
    return rng.normal(size=(n, 3)) + np.outer(rng.choice([-1.5, 1.5], n), axis), axis


def test_between_two_clouds_the_gradient_points_from_one_to_the_other():
    table, axis = clouds(2000)
    model = wt.model(lambda rows: 1 / (1 + np.exp(-3 * np.asarray(rows) @ axis)), threshold=0.5)
    found = wt.explain(model, table.mean(axis=0), "parzen", target=1, background=table, width=0.8)
    slope = found.scores / table.std(axis=0)  # from standard deviations back to the columns' own units
    assert slope @ axis / np.linalg.norm(slope) > 0.98
    assert found.names[0].startswith("column 0 = ")
    assert found.intercept + found.scores @ found.origin == pytest.approx(found.local_prediction)


def test_a_table_of_numbers_is_the_naive_probability_in_standard_deviations(rng):
    table, axis = clouds(90)
    model = wt.model(lambda rows: 1 / (1 + np.exp(-np.asarray(rows) @ axis)), threshold=0.5)
    found = wt.explain(model, table[3], "parzen", target=1, background=table, width=0.7)
    units = (table - table.mean(axis=0)) / table.std(axis=0)
    assert found.local_prediction == pytest.approx(naive_probability(units[3], units, (table @ axis > 0).astype(float), 0.7))


def mixed_frame(n, seed=0):
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(seed)
    frame = pandas.DataFrame({"age": rng.normal(40, 10, n), "town": rng.choice(["Linz", "Wien", "Graz"], n),
                              "since": pandas.Timestamp("2020-01-01") + pandas.to_timedelta(rng.integers(0, 900, n), "D"),
                              "kids": pandas.array(rng.integers(0, 4, n), dtype="Int64")})
    frame.loc[::7, "age"] = np.nan
    frame.loc[::11, "kids"] = pandas.NA
    frame.loc[::13, "town"] = None
    return frame


def test_categories_dates_and_missing_values_have_features_of_their_own():
    frame = mixed_frame(400)
    model = wt.model(lambda rows: (rows["town"] == "Wien").to_numpy(float) * 0.8 + 0.1, threshold=0.5)
    inside = frame[frame["town"] == "Wien"].iloc[0]
    found = wt.explain(model, inside, "parzen", background=frame)
    assert found.as_list(1)[0] == ("town = Wien", pytest.approx(found.scores.max()))
    assert found.scores[1] > 0
    missing = frame[frame["age"].isna() & frame["town"].notna()].iloc[0]
    known = wt.explain(model, missing, "parzen", target=1, background=frame)
    assert np.isfinite(known.scores).all()
    assert known.origin[0] == 1.0  # missing is a category


def test_features_of_a_frame_are_what_they_should_be():
    from whytrust.domains.tabular import TableParts
    frame = mixed_frame(60)
    parts = TableParts.cut(frame.iloc[5], frame)
    made = parts.vectors(frame)
    dense = made.matrix.toarray()
    age = frame["age"].to_numpy()
    units = np.where(np.isnan(age), 0, (age - np.nanmean(age)) / np.nanstd(age))
    np.testing.assert_allclose(dense[:, 0], units)
    np.testing.assert_array_equal(dense[:, 1], np.isnan(age))
    atoms = parts.statistics.columns[1].atoms
    truth = [[(town is None and atom is None) or town == atom for atom in atoms]
             for town in frame["town"].astype(object).where(frame["town"].notna(), None)]
    np.testing.assert_array_equal(dense[:, 2:2 + len(atoms)], truth)
    np.testing.assert_allclose(made.vector(parts), dense[5])
    assert dense.shape[1] == 2 + len(atoms) + 1 + 2
    assert made.batch(slice(2, 4)).equals(frame.iloc[2:4])


def test_lists_of_rows_and_arrays_are_the_same(rng):
    table, axis = clouds(60)
    model = wt.model(lambda rows: 1 / (1 + np.exp(-np.asarray(rows, dtype=float) @ axis)), threshold=0.5)
    first = wt.explain(model, table[0], "parzen", background=table)
    second = wt.explain(model, table[0], "parzen", background=table.tolist())
    np.testing.assert_allclose(first.scores, second.scores)


# --- images and sounds ------------------------------------------------------------------------------------------------


def bright_corner(images):
    return 1 / (1 + np.exp(-20 * (np.asarray(images, dtype=float)[:, :2, :2].mean(axis=(1, 2)) - 0.5)))


def test_the_part_of_an_image_that_matters_comes_first(rng):
    images = rng.random((600, 4, 4))
    images[:, :2, :2] = rng.random((600, 1, 1))
    model = wt.model(bright_corner, threshold=0.5)
    found = wt.explain(model, images[0], "parzen", target=1, background=images, parts="grid:2x2")
    assert found.order[0] == 0
    assert found.scores[0] > 0
    listed = wt.explain(model, images[0], "parzen", target=1, background=list(images), parts="grid:2x2")
    assert listed == found
    guessed = wt.explain(model, images[0], "parzen", target=1, background=images)  # no parts: still no table
    assert guessed.view.kind == "image"


def test_channels_come_first_where_the_model_wants_them(rng):
    pictures = rng.random((80, 6, 6, 3))
    model = wt.model(lambda batch: 1 / (1 + np.exp(-20 * (batch[:, 0].mean(axis=(1, 2)) - 0.5))), threshold=0.5, layout="NCHW")
    first = wt.explain(model, np.moveaxis(pictures[0], -1, 0), "parzen", background=np.moveaxis(pictures, -1, 1), parts="grid:2x2")
    second = wt.explain(model, np.moveaxis(pictures[0], -1, 0), "parzen", background=pictures, parts="grid:2x2")
    assert first.scores.tolist() == second.scores.tolist()


@pytest.mark.parametrize("parts", ["time:4", "tf:2x2"])
def test_sounds_are_compared_sample_by_sample(rng, parts):
    waves = rng.normal(size=(60, 800)) * rng.random((60, 1))
    waves[:, :200] += rng.choice([-1, 1], 60)[:, None]
    model = wt.model(lambda batch: 1 / (1 + np.exp(-5 * batch[:, :200].mean(axis=1))), threshold=0.5)
    found = wt.explain(model, waves[0], "parzen", target=1, background=waves, parts=parts, rate=800)
    assert np.isfinite(found.scores).all()
    assert found.view.kind == "sound"
    if parts == "time:4":
        assert found.order[0] == 0


# --- several methods, audits --------------------------------------------------------------------------------------------


def test_others_beside_it_get_what_they_want(rng):
    table, axis = clouds(60)
    model = wt.model(lambda rows: 1 / (1 + np.exp(-np.asarray(rows) @ axis)), threshold=0.5)
    lime, parzen, greedy = wt.explain(model, table[0], ["lime", "parzen", "greedy"], background=table)
    assert lime == wt.explain(model, table[0], "lime", background=table)
    assert parzen.scores.tolist() == wt.explain(model, table[0], "parzen", background=table).scores.tolist()
    assert greedy.method == "greedy"
    text = wt.explain(MODEL, "good film", ["occlusion", "parzen"], background=reviews(40))
    assert [e.method for e in text] == ["occlusion", "parzen"]


def test_ready_made_parts_keep_their_own_background(rng):
    from whytrust.domains.tabular import TableParts
    table, axis = clouds(60)
    model = wt.model(lambda rows: 1 / (1 + np.exp(-np.asarray(rows) @ axis)), threshold=0.5)
    found = wt.explain(model, table[0], "parzen", parts=TableParts.cut(table[0], table), background=table)
    assert found.scores.tolist() == wt.explain(model, table[0], "parzen", background=table).scores.tolist()


def test_rows_of_a_table_are_audited_with_the_audit_s_background(tmp_path):
    table, axis = clouds(120)
    model = wt.model(Slanted(axis), threshold=0.5)
    runs = [wt.audit(model, table[:8], ["parzen", "greedy"], background=table, out=tmp_path / str(jobs), jobs=jobs, block=2,
                     draws=2) for jobs in (1, 2)]
    first, second = ({row["name"]: row for row in run.table()} for run in runs)
    assert {"parzen", "greedy"} <= set(first)
    assert first == second
    assert not [note for note in runs[0].to_json().get("notes", ()) if "parzen" in note]


class Slanted:
    """A model that goes to worker processes."""

    def __init__(self, axis):
        self.axis = axis

    def __call__(self, rows):
        return 1 / (1 + np.exp(-2 * np.asarray(rows, dtype=float) @ self.axis))


# --- what goes wrong ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("options", "words"), [
    ({"width": 0}, "width must be a number > 0, or 'auto', got 0"),
    ({"width": -1.0}, "width must be"),
    ({"width": float("nan")}, "width must be"),
    ({"width": "wide"}, "width must be"),
    ({"soft": "yes"}, "soft must be True"),
    ({"soft": True, "labels": [0]}, "pass one of the two"),
    ({"features": 0}, "features must be"),
])
def test_bad_options_say_what_must_hold(options, words):
    with pytest.raises(ValueError, match=words):
        Parzen(reviews(5), **options)


@pytest.mark.parametrize(("background", "words"), [
    (None, "parzen needs training inputs: pass background="),
    ([], "parzen needs training inputs"),
    (["good film"], "parzen needs training inputs.*got 1"),
    ("good film", "training inputs themselves, .* got str"),
    ((text for text in ["good", "bad"]), "training inputs themselves, .* got generator"),
    ([b"good"], "background must be a list of texts, .* got bytes"),
    (np.zeros((3, 4, 4)), "background must be a list of texts, .* got ndarray"),
])
def test_a_bad_background_of_texts_says_what_must_hold(background, words):
    with pytest.raises((ValueError, TypeError), match=words):
        wt.explain(MODEL, "good film", "parzen", background=background)


@pytest.mark.parametrize(("background", "words"), [
    (None, "parzen needs training inputs"),
    (np.zeros((5, 3, 3)), r"shaped like the input, \(4, 4\), got one of shape \(3, 3\)"),
    ([np.zeros((4, 4)), np.zeros((4, 3))], r"got one of shape \(4, 3\)"),
    (["good", "bad"], r"shaped like the input"),
    (np.zeros((5, 4, 4)).astype(object), "arrays of numbers"),
    (np.zeros((0, 4, 4)), "got none"),
])
def test_a_bad_background_of_images_says_what_must_hold(background, words):
    with pytest.raises(ValueError, match=words):
        wt.explain(wt.model(bright_corner, threshold=0.5), np.ones((4, 4)), "parzen", background=background, parts="grid:2x2")


def test_a_bad_background_of_rows_says_what_must_hold():
    from whytrust.domains.tabular import TableParts, TableStatistics
    table, axis = clouds(40)
    model = wt.model(Slanted(axis), threshold=0.5)
    with pytest.raises(TypeError, match=r"the training inputs themselves, .* got TableStatistics"):
        wt.explain(model, table[0], "parzen", background=TableStatistics.fit(table))
    with pytest.raises(ValueError, match="rows of the input's 3 columns"):
        wt.explain(model, table[0], Parzen(table[:, :2]), background=table)
    with pytest.raises(ValueError, match="rows of the input's 3 columns"):
        wt.explain(model, table[0], Parzen(["good", "bad"]), parts=TableParts.cut(table[0], table))
    frame = mixed_frame(30)
    with pytest.raises(ValueError, match="DataFrame with the columns of the input, got DataFrame without age"):
        wt.explain(lambda rows: np.ones(len(rows)), frame.iloc[0], Parzen(frame.drop(columns="age")), background=frame)


@pytest.mark.parametrize(("labels", "words"), [
    ([0, 1], "one entry for each training input: expected 5, got 2"),
    ("fresh", "one entry for each training input"),
    (["fresh", "stale", "fresh", "fresh", "rotten"], "target must be one of the model's classes"),
])
def test_bad_labels_say_what_must_hold(labels, words):
    with pytest.raises(ValueError, match=words):
        wt.explain(MODEL, "good film", "parzen", background=reviews(5), labels=labels)


def test_labels_of_a_regressor_are_refused():
    with pytest.raises(ValueError, match="labels are for models with classes"):
        wt.explain(says_good, "good film", "parzen", background=reviews(5), labels=[0, 1, 0, 1, 0])


def test_an_audit_of_images_says_at_once_that_training_inputs_are_missing(rng):
    torch = pytest.importorskip("torch")
    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(16, 2))
    with pytest.raises(ValueError, match=r"parzen needs training inputs: .*'method': 'parzen', 'background'"):
        wt.audit(wt.model(net, output="logit"), list(rng.random((3, 1, 4, 4))), ["parzen"], "grid:2x2")


# --- size ---------------------------------------------------------------------------------------------------------------


def test_twenty_thousand_training_texts_stay_within_memory():
    vocabulary = [f"word{i}" for i in range(2000)] + WORDS
    rng = np.random.default_rng(0)
    texts = [" ".join(vocabulary[i] for i in row) for row in rng.integers(0, len(vocabulary), (20_000, 12))]
    tracemalloc.start()
    try:
        found = wt.explain(MODEL, "good film new plot", "parzen", background=texts, width=1.5)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert found.settings["background"] == 20_000
    assert peak < 150e6  # 20 000² distances would take 3.2 GB


def test_arrays_are_never_copied_whole():
    images = np.random.default_rng(0).integers(0, 256, (20_000, 24, 24), dtype=np.uint8)
    tracemalloc.start()
    try:
        rows = Rows.standardised(images.reshape(len(images), -1))
        Windows(rows, 5.0).gradient(rows.in_units(images[0]).ravel(), (np.arange(20_000) % 2).astype(float))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 60e6  # as floats they would take 92 MB
    assert len(tried(rows)) == 13
