"""What is shown of the drop-in's explanations, the submodular pick, and lime's base class."""

import os
import subprocess
import sys

import numpy as np
import pytest

import whytrust
import whytrust.compat.lime as lime
from compat.models import TEXT, additive, bright, grid, linear, total


@pytest.fixture
def texts():
    return lime.lime_text.LimeTextExplainer(class_names=["<no>", "yes"])


@pytest.fixture
def explained(texts):
    return texts.explain_instance(TEXT, additive, labels=(0, 1), num_samples=300)


# --- pages and figures ------------------------------------------------------------------------------------------------


def test_pages_hold_everything_and_no_scripts(explained):
    page = explained.as_html()
    assert "<script" not in page
    assert "http://" not in page
    assert "https://" not in page
    assert page.count("<!DOCTYPE") == 1
    assert "&lt;no&gt;" in page
    assert "<no>" not in page
    assert "good" in page


def test_pages_show_the_probabilities_unless_told_not_to(explained):
    assert "Probability of each class" in explained.as_html()
    assert "Probability of each class" not in explained.as_html(predict_proba=False)
    assert explained.as_html(labels=[1]).count("<article") == 1
    assert explained.as_html().count("<article") == 2
    with pytest.raises(KeyError, match="label 5"):
        explained.as_html(labels=[5])


def test_pages_of_many_classes_count_the_rest(texts):
    def hundred(batch):
        return np.column_stack([additive(batch)[:, :1], *[additive(batch)[:, 1:] / 99] * 99])

    assert "90 other classes together" in lime.lime_text.LimeTextExplainer().explain_instance(TEXT, hundred, num_samples=100).as_html()


def test_pages_of_regressions_show_the_predicted_value(rng):
    table = rng.normal(size=(100, 3))
    e = lime.lime_tabular.LimeTabularExplainer(table, mode="regression").explain_instance(table[0], total, num_samples=200)
    assert "over the sampled rows" in e.as_html()
    assert "over the sampled rows" not in e.as_html(show_predicted_value=False)


def test_saved_pages_are_the_pages(explained, tmp_path):
    explained.save_to_file(tmp_path / "e.html")
    assert (tmp_path / "e.html").read_text(encoding="utf-8") == explained.as_html()


def test_figures_are_known_to_pyplot(explained):
    from matplotlib import pyplot

    figure = explained.as_pyplot_figure(label=1, figsize=(7, 4))
    assert pyplot.figure(figure.number) is figure
    assert figure.get_figwidth() == 7
    pyplot.close(figure)


def test_notebooks_get_the_page_and_others_a_hint(explained, monkeypatch):
    import types

    shown = []
    fake = types.ModuleType("IPython.display")
    fake.display, fake.HTML = shown.append, str
    monkeypatch.setitem(sys.modules, "IPython", types.ModuleType("IPython"))
    monkeypatch.setitem(sys.modules, "IPython.display", fake)
    explained.show_in_notebook(text=True)
    assert shown == [explained._repr_html_()]
    monkeypatch.setitem(sys.modules, "IPython.display", None)
    with pytest.raises(ImportError, match="save_to_file"):
        explained.show_in_notebook()


def test_the_full_explanation_is_at_hand(explained):
    full = explained.whytrust[1]
    assert isinstance(full, whytrust.Explanation)
    assert full.fidelity == explained.scores[1]
    assert full.standard_errors is not None
    assert [w for _, w in full.as_list()] == [w for _, w in explained.as_list(1)]


# --- the submodular pick ----------------------------------------------------------------------------------------------


def test_picks_cover_what_the_texts_are_about(texts):
    """Each pick adds the most importance not yet covered; the second text repeats the first."""
    data = ["good film", "good film", "bad end", "nothing here", "dull plot"]
    pick = lime.submodular_pick.SubmodularPick(texts, data, additive, method="full", num_exps_desired=3, num_samples=200)
    covered = {name for e in pick.sp_explanations for name, _ in e.as_list(e.top_labels[0])}
    assert {"good", "bad", "plot", "dull"} <= covered
    assert len(set(pick.V)) == 3
    assert 3 not in pick.V
    assert not {0, 1} <= set(pick.V)
    assert [pick.explanations[i] for i in pick.V] == pick.sp_explanations


def test_picks_are_the_greedy_ones():
    weights = np.array([[1.0, 0, 0, 0], [0, 4, 0, 0], [1, 4, 0, 0], [0, 0, 1, 9.0]])
    assert lime.submodular_pick.picked(weights, 3) == [2, 3, 0]


@pytest.mark.parametrize("mode", ["classification", "regression"])
def test_picks_from_tables_repeat(rng, mode):
    table = rng.normal(size=(200, 3))
    model = linear if mode == "classification" else total
    explainer = lime.lime_tabular.LimeTabularExplainer(table, mode=mode)
    first, second = (lime.submodular_pick.SubmodularPick(explainer, table, model, sample_size=8, num_exps_desired=2, num_samples=100) for _ in range(2))
    assert first.V == second.V
    assert len(first.explanations) == 8
    assert [e.as_map() for e in first.sp_explanations] == [e.as_map() for e in second.sp_explanations]


def test_picks_from_frames_take_rows(rng):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(rng.normal(size=(50, 3)), columns=list("abc"))
    explainer = lime.lime_tabular.LimeTabularExplainer(frame)
    pick = lime.submodular_pick.SubmodularPick(explainer, frame, lambda f: linear(f.to_numpy()), sample_size=3, num_exps_desired=2, num_samples=100)
    assert len(pick.sp_explanations) == 2


def test_images_can_be_picked_from_where_they_are_cut_alike(rng):
    images = rng.random((4, 16, 16, 3))
    explainer = lime.lime_image.LimeImageExplainer()
    pick = lime.submodular_pick.SubmodularPick(explainer, images, bright, "full", num_exps_desired=2, num_features=3, segmentation_fn=grid,
                                               num_samples=60)
    assert len(pick.sp_explanations) == 2


def test_images_that_are_cut_differently_are_picked_by_what_their_segments_have_in_common(rng):
    """Two kinds of images, black with a white or with a grey half: the first two picks are one of each."""
    images = np.zeros((6, 16, 16, 3))
    for place, image in enumerate(images):
        image[:, : 5 + place] = 1.0 if place < 4 else 0.6
    pick = lime.submodular_pick.SubmodularPick(lime.lime_image.LimeImageExplainer(), images, bright, "full", num_exps_desired=2,
                                               segmentation_fn=lambda image: (image[..., 0] > 0.3).astype(int), num_samples=60,
                                               hide_color=0)  # a segment that is hidden by its own mean changes nothing
    assert len(pick.V) == 2
    assert len({place < 4 for place in pick.V}) == 2


def test_picks_refuse_and_warn(texts):
    data = ["good film", "bad film"]
    with pytest.raises(ValueError, match="'sample' or 'full'"):
        lime.submodular_pick.SubmodularPick(texts, data, additive, method="all")
    with pytest.raises(ValueError, match="num_exps_desired"):
        lime.submodular_pick.SubmodularPick(texts, data, additive, num_exps_desired=0)
    with pytest.warns(UserWarning, match=" and there are ") as warned:
        pick = lime.submodular_pick.SubmodularPick(texts, data, additive, num_exps_desired=9, num_samples=50)
    assert [w.message.args[0].split(" is ")[0] for w in warned] == ["sample_size", "num_exps_desired"]
    assert sorted(pick.V) == [0, 1]


# --- the base class, and the import -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("selection", "features"), [("auto", 3), ("auto", 9), ("none", 3), ("lasso_path", 3), ("highest_weights", 4), ("forward_selection", 4)])
def test_fits_to_given_data_are_limes(rng, selection, features):
    from lime.lime_base import LimeBase as Original

    rows = (rng.random((300, 12)) < 0.5).astype(float)
    rows[0] = 1
    scores = (rows @ rng.normal(size=12) + rng.normal(size=300) / 10)[:, None]
    distances = 1 - np.sqrt(rows.mean(axis=1))
    ours, theirs = (kind(lambda d: np.exp(-(d**2))).explain_instance_with_data(rows, scores, distances, 0, features, selection)
                    for kind in (lime.lime_base.LimeBase, Original))
    assert dict(ours[1]) == pytest.approx(dict(theirs[1]), abs=1e-6)
    assert (ours[0], ours[2]) == pytest.approx((theirs[0], theirs[2]), abs=1e-6)
    assert ours[3] == pytest.approx(theirs[3], abs=1e-6)


def test_the_import_loads_no_optional_library_and_not_lime():
    code = "import sys, whytrust.compat.lime; print([m for m in ('lime', 'torch', 'skimage', 'PIL', 'matplotlib') if m in sys.modules])"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    assert ran.stdout.strip() == "[]"
