"""The drop-in for lime's image explainer."""

import pickle

import numpy as np
import pytest

from compat.models import bright, grid, own_kernel, quarters
from whytrust.compat.lime.lime_image import LimeImageExplainer
from whytrust.compat.lime.wrappers.scikit_image import SegmentationAlgorithm

OPTIONS = {"segmentation_fn": quarters, "hide_color": 0, "num_samples": 300}


@pytest.fixture
def image(rng):
    return rng.random((16, 16, 3))


def explain(image, model=bright, explainer=None, **options):
    return (explainer or LimeImageExplainer()).explain_instance(image, model, **{**OPTIONS, **options})


def test_the_segment_that_counts_is_found_under_its_own_label(image):
    e = explain(image, labels=(1,), top_labels=None)
    assert e.local_exp[1][0] == (1, pytest.approx(bright(image[None])[0, 1], rel=0.05))
    assert sorted(i for i, _ in e.local_exp[1]) == [1, 2, 3, 4]
    np.testing.assert_array_equal(e.segments, quarters(image))
    assert e.whytrust[1].as_list()[0][0] == "segment 1 (top left)"


def test_weights_are_limes_up_to_noise(image):
    from lime.lime_image import LimeImageExplainer as Original

    def curved(images):
        p = images[:, :8].mean(axis=(1, 2, 3)) * images[:, :, :8].mean(axis=(1, 2, 3))
        return np.column_stack([1 - p, p])

    options = {"segmentation_fn": grid, "hide_color": 0, "top_labels": 1, "num_samples": 4000}
    theirs = Original(random_state=0).explain_instance(image, curved, **options)
    ours = explain(image, curved, **options)
    assert theirs.top_labels == ours.top_labels
    assert dict(ours.local_exp[0]) == pytest.approx({int(i): w for i, w in theirs.local_exp[0]}, abs=0.003)


@pytest.mark.parametrize(("shape", "channels"), [((16, 16), 3), ((16, 16, 1), 1), ((16, 16, 3), 3), ((16, 16, 4), 4)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.uint8])
def test_grey_and_transparent_images_work_and_keep_their_dtype(rng, shape, channels, dtype):
    picture = rng.integers(0, 256, shape, dtype=np.uint8) if dtype == np.uint8 else rng.random(shape).astype(dtype)
    shapes = set()

    def model(images):
        shapes.add((images.shape[1:], images.dtype))
        return bright(images)

    e = explain(picture, model, hide_color=None, segmentation_fn=None)  # lime's own quickshift
    assert shapes == {((16, 16, channels), np.dtype(dtype))}
    assert e.image.shape == (16, 16, channels)
    assert e.get_image_and_mask(e.top_labels[0])[0].dtype == dtype


def test_alpha_is_never_hidden(rng):
    picture = rng.integers(0, 256, (16, 16, 4), dtype=np.uint8)

    def model(images):
        assert (images[..., 3] == picture[..., 3]).all()
        return bright(images)

    explain(picture, model)


def test_batches_are_no_larger_than_asked_for(image):
    sizes = []
    explain(image, lambda b: (sizes.append(len(b)), bright(b))[1], batch_size=7, segmentation_fn=grid)
    assert max(sizes) == 7


def test_results_repeat_and_pickle(image):
    explainer = LimeImageExplainer(random_state=4)
    first, second = (explain(image, explainer=explainer, segmentation_fn=None) for _ in range(2))
    third = explain(image, explainer=pickle.loads(pickle.dumps(explainer)), segmentation_fn=None)
    assert first.local_exp == second.local_exp == third.local_exp
    assert pickle.loads(pickle.dumps(first)).local_exp == first.local_exp


def test_every_label_keeps_its_own_numbers(image):
    e = explain(image, lambda b: np.column_stack([bright(b)[:, 1], b[..., 1].mean(axis=(1, 2)) ** 2, bright(b)[:, 0]]))
    assert set(e.scores) == set(e.local_preds) == set(e.intercept) == {0, 1, 2}
    assert e.score == e.scores[e.top_labels[0]]
    assert len({round(s, 12) for s in e.scores.values()}) > 1


def test_the_mask_marks_what_speaks_for_and_against(image):
    e = explain(image, labels=(0, 1), top_labels=None)
    shown, mask = e.get_image_and_mask(1, hide_rest=True, num_features=1)
    np.testing.assert_array_equal(mask, (e.segments == 1).astype(int))
    np.testing.assert_array_equal(shown, image * (mask[..., None] == 1))
    _, against = e.get_image_and_mask(0, positive_only=False, negative_only=True, min_weight=0.01)
    np.testing.assert_array_equal(against, (e.segments == 1).astype(int))
    painted, both = e.get_image_and_mask(0, positive_only=False, num_features=1)
    assert (both[e.segments == 1] == -1).all()
    assert (painted[e.segments == 1][:, 0] == image.max()).all()
    assert not e.get_image_and_mask(1, min_weight=10.0)[1].any()
    np.testing.assert_array_equal(e.image, image)


def test_an_own_kernel_metric_and_regressor_are_used(image):
    from sklearn.linear_model import LinearRegression
    truth = pytest.approx(bright(image[None])[0, 1], rel=1e-6)
    e = explain(image, labels=(1,), top_labels=None, model_regressor=LinearRegression())
    assert e.local_exp[1][0] == (1, truth)
    e = explain(image, labels=(1,), top_labels=None, distance_metric="hamming", explainer=LimeImageExplainer(kernel=own_kernel))
    assert e.local_exp[1][0][0] == 1
    assert e.whytrust[1].settings["kernel"] == "own_kernel"


def test_fewer_samples_than_segments_work_as_in_lime(image):
    assert len(explain(image, segmentation_fn=grid, num_samples=10).local_exp[0]) == 16


@pytest.mark.parametrize(("options", "says"), [
    ({"hide_color": np.zeros((16, 16, 3))}, "fill='blur'"),
    ({"hide_color": 300, "image": np.zeros((16, 16, 3), np.uint8)}, "must fit"),
    ({"labels": (7,), "top_labels": None}, "0 to 1"),
    ({"segmentation_fn": lambda i: np.zeros((3, 3), int)}, "label array"),
    ({"image": np.zeros(16)}, "an image must be"),
])
def test_wrong_arguments_are_named(image, options, says):
    with pytest.raises(ValueError, match=says):
        explain(options.pop("image", image), **options)


def test_a_mask_needs_an_explained_label_and_one_side(image):
    e = explain(image, labels=(1,), top_labels=None)
    with pytest.raises(KeyError, match="label 0 was not explained"):
        e.get_image_and_mask(0)
    with pytest.raises(ValueError, match="cannot both be True"):
        e.get_image_and_mask(1, negative_only=True)


@pytest.mark.parametrize(("name", "params"), [("quickshift", {"kernel_size": 3, "max_dist": 6, "ratio": 0.5}), ("slic", {"n_segments": 9}),
                                              ("felzenszwalb", {"scale": 50})])
def test_segmentations_are_scikit_images(image, name, params):
    from skimage import segmentation
    seed = {"rng": 3} if name == "quickshift" else {}
    np.testing.assert_array_equal(SegmentationAlgorithm(name, random_seed=3, **params)(image), getattr(segmentation, name)(image, **params, **seed))


def test_segmentations_refuse_what_they_do_not_know():
    with pytest.raises(ValueError, match="quickshift, slic, felzenszwalb"):
        SegmentationAlgorithm("watershed")
    with pytest.raises(ValueError, match="'n_segment' is not a parameter of slic"):
        SegmentationAlgorithm("slic", n_segment=5)
    algorithm = SegmentationAlgorithm("slic", n_segments=5)
    algorithm.set_params(n_segments=7)
    assert pickle.loads(pickle.dumps(algorithm)).target_params == {"n_segments": 7}
