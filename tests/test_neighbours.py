"""What leaves for shap and captum adds up, has the shapes those libraries use, and is accepted by their plots."""

import sys
import warnings

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LinearRegression

import whytrust as wt

TEXT = "A good film, not bad at all!"


def words(texts):
    return np.array([0.5 * ("good" in t) - 0.3 * ("bad" in t) * ("not" in t) for t in texts])


def centre(batch):
    return np.asarray(batch, dtype=float)[:, 4:10, 4:10].reshape(len(batch), -1).mean(axis=1)


@pytest.fixture(scope="module")
def shap():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip("shap")


@pytest.fixture
def pyplot():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    from matplotlib import pyplot
    yield pyplot
    pyplot.close("all")


@pytest.fixture(scope="module")
def rows():
    data = load_breast_cancer()
    return data.data[:, :4], [str(n) for n in data.feature_names[:4]], data.target


@pytest.fixture(scope="module")
def row_explanations(rows):
    table, names, target = rows
    model = LinearRegression().fit(table, target)
    return wt.explain(model, table[:6], background=table, names=names, samples=200, features="all")


def picture():
    return np.random.default_rng(0).random((12, 12, 3))


@pytest.fixture(scope="module")
def picture_explanation():
    return wt.explain(centre, picture(), parts="grid:3x3", fill="black")


@pytest.fixture(scope="module")
def text_explanation():
    return wt.explain(words, TEXT, parts="words")


@pytest.mark.parametrize("kind", ["text", "bag", "image", "table", "standardised table", "sound"])
def test_base_value_and_values_add_up_to_the_local_prediction(kind, shap, rows, text_explanation, picture_explanation, row_explanations):
    table, _, target = rows
    model = LinearRegression().fit(table, target)
    wave = np.sin(np.arange(800.0))
    found = {
        "text": lambda: text_explanation, "image": lambda: picture_explanation, "table": lambda: row_explanations[0],
        "bag": lambda: wt.explain(words, "good good film", parts="bag"),
        "standardised table": lambda: wt.explain(model, table[0], background=table, bins=None, samples=200, features="all"),
        "sound": lambda: wt.explain(lambda b: np.abs(b).mean(axis=1), wave, parts="time:4", rate=8000)}[kind]()
    export = found.to_shap()
    assert export.base_values + export.values.sum() == pytest.approx(found.local_prediction)


def test_the_parts_of_a_text_in_a_row_read_as_the_text(shap, text_explanation):
    export = text_explanation.to_shap()
    assert "".join(export.data) == TEXT
    assert np.array_equal(export.values, text_explanation.scores)
    assert export.feature_names == list(text_explanation.names)
    page = shap.plots.text(export, display=False)
    assert "good" in page
    assert f"{text_explanation.local_prediction:.6f}".rstrip("0") in page


def test_a_row_has_its_values_and_its_column_names(shap, rows, row_explanations):
    export = row_explanations[0].to_shap()
    assert export.feature_names == rows[1]
    assert np.allclose(export.data, rows[0][0], rtol=1e-3)
    assert np.array_equal(export.values, row_explanations[0].scores)


def test_a_row_with_words_keeps_them(shap):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"colour": ["red", "blue"] * 10, "size": np.arange(20.0)})
    found = wt.explain(lambda f: (f["colour"] == "red").astype(float) + f["size"] / 20, frame.iloc[3], background=frame, samples=200)
    assert found.to_shap().data.tolist() == ["blue", 3.0]


def test_a_picture_s_values_come_back_as_the_scores(shap, picture_explanation):
    export = picture_explanation.to_shap()
    assert export.shape == (12, 12, 3)
    again = wt.explain(centre, picture(), method=export.values, parts="grid:3x3", pooling="sum")
    assert np.allclose(again.scores, picture_explanation.scores)


def test_rows_stack_to_a_batch(shap, rows, row_explanations):
    batch = wt.Gallery(row_explanations).to_shap()
    assert batch.shape == (6, 4)
    assert np.array_equal(batch.values, [e.scores for e in row_explanations])
    assert np.allclose(batch.base_values, [e.intercept for e in row_explanations])
    assert batch.feature_names == rows[1]


@pytest.mark.parametrize("name", ["bar", "waterfall"])
@pytest.mark.parametrize("kind", ["row", "text"])
def test_shap_s_plots_of_one_take_it(name, kind, shap, pyplot, row_explanations, text_explanation):
    found = row_explanations[0] if kind == "row" else text_explanation
    getattr(shap.plots, name)(found.to_shap(), show=False)
    shown = [t.get_text() for axes in pyplot.gcf().axes for t in axes.get_yticklabels()]
    largest = found.view.columns[found.order[0]] if kind == "row" else found.names[found.order[0]]
    assert any(largest in label for label in shown)


@pytest.mark.parametrize("name", ["bar", "beeswarm", "heatmap"])
def test_shap_s_plots_of_many_take_them(name, shap, pyplot, row_explanations):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        getattr(shap.plots, name)(wt.Gallery(row_explanations).to_shap(), show=False)
    shown = [t.get_text() for axes in pyplot.gcf().axes for t in axes.get_yticklabels()]
    assert any("mean radius" in label for label in shown)


def test_shap_s_picture_plot_takes_one_and_many(shap, pyplot, picture_explanation):
    for export, count in ((picture_explanation.to_shap(), 1), (wt.Gallery([picture_explanation] * 2).to_shap(), 2)):
        shap.image_plot(export, show=False)
        drawn = [axes for axes in pyplot.gcf().axes if axes.images]
        assert len(drawn) == 2 * count  # the picture, and its values over it


def test_texts_of_different_lengths_stack(shap, text_explanation):
    batch = wt.Gallery([text_explanation, wt.explain(words, "bad wine", parts="words")]).to_shap()
    page = shap.plots.text(batch, display=False)
    assert "film" in page
    assert "wine" in page


def test_what_cannot_be_stacked_is_refused(shap, text_explanation, row_explanations, picture_explanation):
    with pytest.raises(ValueError, match="one kind of input"):
        wt.Gallery([text_explanation, row_explanations[0]]).to_shap()
    small = wt.explain(centre, picture()[:11], parts="grid:3x3", fill="black")
    with pytest.raises(ValueError, match="images of one size"):
        wt.Gallery([picture_explanation, small]).to_shap()


def test_without_shap_one_line_says_how_to_get_it(monkeypatch, text_explanation):
    monkeypatch.setitem(sys.modules, "shap", None)
    with pytest.raises(wt.MissingExtra, match=r"pip install shap$"):
        text_explanation.to_shap()


# --- captum -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(1, 3, 12, 12), (1, 12, 12, 3), (3, 12, 12), (12, 12, 3), (12, 12), (1, 1, 12, 12), (1, 12, 12)])
def test_a_map_takes_the_shape_of_the_net_s_input(shape, picture_explanation):
    found = picture_explanation.to_captum(np.zeros(shape))
    assert found.shape == shape
    map = picture_explanation.as_map()
    channel_last = shape[-1] == 3
    planes = np.moveaxis(found, -1, 0).reshape(-1, 12, 12) if channel_last else found.reshape(-1, 12, 12)
    assert all(np.array_equal(plane, map) for plane in planes)


def test_without_an_example_shapes_are_captum_s(picture_explanation, text_explanation, row_explanations):
    assert picture_explanation.to_captum().shape == (1, 1, 12, 12)
    assert np.array_equal(text_explanation.to_captum(), text_explanation.scores[None])
    assert np.array_equal(row_explanations[0].to_captum(), row_explanations[0].scores[None])


def test_a_tensor_comes_back_as_one_of_its_type(picture_explanation, text_explanation):
    torch = pytest.importorskip("torch")
    like = torch.zeros(1, 3, 12, 12, dtype=torch.float64, requires_grad=True)
    found = picture_explanation.to_captum(like)
    assert found.dtype == torch.float64
    assert not found.requires_grad
    assert np.array_equal(found[0, 1].numpy(), picture_explanation.as_map())
    ids = torch.zeros(1, len(text_explanation.names), dtype=torch.int64)
    assert torch.is_floating_point(text_explanation.to_captum(ids))


def test_another_shape_is_refused(picture_explanation):
    with pytest.raises(ValueError, match=r"like must have the input's shape, \(12, 12\) with a channel axis"):
        picture_explanation.to_captum(np.zeros((1, 3, 24, 24)))


def test_captum_s_picture_of_attributions_takes_it(pyplot, picture_explanation):
    visualization = pytest.importorskip("captum.attr").visualization
    values = picture_explanation.to_captum(np.zeros((12, 12, 3)))
    _, axes = visualization.visualize_image_attr(values, picture(), method="heat_map", sign="all", use_pyplot=False)
    shown = axes.images[0].get_array()
    assert np.unravel_index(np.argmax(shown), shown.shape) == np.unravel_index(np.argmax(picture_explanation.as_map()), (12, 12))


def test_what_goes_to_captum_and_comes_back_is_the_same(picture_explanation):
    again = wt.explain(centre, picture(), method=picture_explanation.to_captum(np.zeros((1, 3, 12, 12))), parts="grid:3x3")
    assert np.allclose(again.scores, picture_explanation.scores)
