import pickle
import tracemalloc
from contextlib import contextmanager

import numpy as np
import pytest
import torch
from scipy import sparse

import whytrust as wt
from whytrust.core import generator
from whytrust.domains.image import ImageParts
from whytrust.explainers import NAMES
from whytrust.progress import Progress
from whytrust.question import Question

GOOD = lambda texts: np.array([[0.2, 0.8] if "good" in t else [0.7, 0.3] for t in texts])  # noqa: E731
IMAGE = np.kron(np.random.default_rng(0).random((2, 2, 3)), np.ones((8, 8, 1)))


def bright(batch):
    return np.asarray(batch, dtype=float).reshape(len(batch), -1).mean(axis=1)


def test_the_predicted_class_is_explained_by_default():
    found = wt.explain(wt.model(GOOD, classes=["bad", "fine"]), "a good film", samples=50)
    assert (found.target, found.target_name, found.prediction) == (1, "fine", 0.8)
    assert found.as_list()[0] == ("good", pytest.approx(0.5))


@pytest.mark.parametrize(("target", "index"), [("bad", 0), (1, 1), (-1, 1), ("0", 0)])
def test_targets_by_name_and_index(target, index):
    assert wt.explain(wt.model(GOOD, classes=["bad", "fine"]), "a good film", target=target, samples=50).target == index


@pytest.mark.parametrize(("target", "error", "message"), [
    ("great", ValueError, r"one of the model's classes \(bad, fine\)"), (2, ValueError, "from 0 to 1"),
    (1.0, TypeError, "class name as text, an index or None"), ("top:3", ValueError, "from 1 to the number of classes"), ("top:²", ValueError, "from 1 to the number of classes"), ([], ValueError, "empty")])
def test_targets_that_do_not_exist(target, error, message):
    with pytest.raises(error, match=message):
        wt.explain(wt.model(GOOD, classes=["bad", "fine"]), "a good film", target=target, samples=50)


def test_top_targets_come_by_score():
    found = wt.explain(lambda b: np.tile([0.1, 0.6, 0.3], (len(b), 1)) + 0.001 * bright(b)[:, None], IMAGE, target="top:2",
                       parts="grid:2x2")
    assert [e.target for e in found] == [1, 2]


@pytest.mark.parametrize("image", [
    (IMAGE[..., 0] * 255).astype(np.uint8), IMAGE[..., :1], IMAGE, (IMAGE * 255).astype(np.uint8),
    np.dstack([IMAGE, np.ones((16, 16))]), IMAGE.astype(np.float32), IMAGE[..., 0] > 0.5])
@pytest.mark.parametrize("parts", ["grid:2x2", "slic:4"])
def test_images_of_every_kind(image, parts):
    found = wt.explain(bright, image, parts=parts, fill="black")
    assert found.as_map().shape == (16, 16)
    assert (found.scores > -1e-12).all()
    assert found.scores.max() > 0
    assert found.view.pixels.shape == (16, 16, 3)


def test_channels_first_is_the_same_image():
    last = wt.explain(lambda b: b[..., 0].mean(axis=(1, 2)), IMAGE, parts="grid:2x2")
    first = wt.explain(wt.model(lambda b: b[:, 0].mean(axis=(1, 2)), layout="NCHW"), np.moveaxis(IMAGE, -1, 0), parts="grid:2x2")
    np.testing.assert_allclose(first.scores, last.scores)
    np.testing.assert_array_equal(first.view.pixels, last.view.pixels)


def test_a_grey_image_gets_a_channel_where_channels_come_first():
    shapes = []
    wt.explain(wt.model(lambda b: shapes.append(b.shape[1:]) or bright(b), layout="NCHW"), IMAGE[..., 0], parts="grid:2x2")
    assert set(shapes) == {(1, 16, 16)}


@pytest.mark.parametrize("mode", ["L", "RGB", "RGBA", "P", "1", "CMYK", "LA"])
def test_a_pil_image_is_what_its_file_is(mode, tmp_path):
    from PIL import Image

    image = Image.fromarray((IMAGE * 255).astype(np.uint8)).convert(mode)
    path = tmp_path / ("a.tif" if mode == "CMYK" else "a.png")
    image.save(path)
    assert wt.explain(bright, image, parts="grid:2x2") == wt.explain(bright, path, parts="grid:2x2")


def test_files_pil_images_and_folders(tmp_path):
    from PIL import Image

    picture = (IMAGE * 255).astype(np.uint8)
    for name in ("a.png", "b.png"):
        Image.fromarray(picture).save(tmp_path / name)
    from_array = wt.explain(bright, picture, parts="grid:2x2")
    assert wt.explain(bright, str(tmp_path / "a.png"), parts="grid:2x2") == from_array
    assert wt.explain(bright, Image.fromarray(picture), parts="grid:2x2") == from_array
    assert wt.explain(bright, tmp_path, parts="grid:2x2") == [from_array, from_array]


def test_sound_files(tmp_path):
    import soundfile

    wave = np.random.default_rng(0).normal(size=8000).astype(np.float32) / 10
    soundfile.write(tmp_path / "a.wav", wave, 8000, subtype="FLOAT")
    found = wt.explain(lambda b: (b**2).mean(axis=1), tmp_path / "a.wav", parts="time:4")
    np.testing.assert_allclose(found.scores, (wave.reshape(4, -1) ** 2).sum(axis=1) / 8000, rtol=1e-4)
    assert found.names[0] == "0.00–0.25 s"


def test_an_input_is_explained_alike_alone_and_among_others():
    texts = ["a good film", "not a very good film, I think"]
    together = wt.explain(GOOD, texts, samples=20)
    assert together == [wt.explain(GOOD, t, samples=20) for t in texts]


def test_rows_of_a_frame():
    import pandas as pd

    frame = pd.DataFrame({"age": [20.0, 35, 50, 65, np.nan] * 8, "job": ["a", "b", "a", "c", "b"] * 8, "old": [False, True] * 20})
    model = lambda b: b["age"].fillna(40) / 100 + (b["job"] == "a") * 0.2  # noqa: E731
    found = wt.explain(model, frame.iloc[:3], background=frame, samples=400)
    assert len(found) == 3
    assert found[0].names[1] == "job = a"
    assert found[0].scores[1] == pytest.approx(0.2)
    missing = wt.explain(model, frame.iloc[4], background=frame, samples=400)
    assert missing.names[0] == "age is missing"


def test_one_bad_input_does_not_lose_the_others():
    with pytest.raises(wt.SomeFailed, match=r"1 of 3 inputs could not be explained.*Input 1: ") as caught:
        wt.explain(GOOD, ["a good film", "", "a bad film"], samples=20)
    assert [e is None for e in caught.value.explanations] == [False, True, False]
    assert set(caught.value.errors) == {1}
    assert pickle.loads(pickle.dumps(caught.value)).explanations == caught.value.explanations


NAN_IMAGE = IMAGE.copy()
NAN_IMAGE[3, 3] = np.nan


def wrong_rows(batch):
    return np.zeros((len(batch) + 1, 2))


def fails_later(batch):
    if len(batch) > 1:
        raise RuntimeError("out of cheese")
    return np.zeros((1, 2))


@pytest.mark.parametrize(("model", "item", "options", "message"), [
    (GOOD, "", {}, "text"), (GOOD, "   \n", {}, "text"), (GOOD, "good", {}, "at least two"),
    (bright, np.ones((8, 8)), {"parts": "grid:1x1"}, "at least two"), (bright, np.ones((1, 8)), {}, "2 × 2 pixels"),
    (bright, NAN_IMAGE, {}, "finite pixels, got 3"), (bright, IMAGE * np.inf, {}, "finite pixels"),
    (bright, IMAGE, {"parts": "grid:99x2"}, "1 to 16 rows"), (bright, IMAGE, {"parts": "grid:two"}, "grid:ROWSxCOLUMNS"),
    (bright, IMAGE, {"parts": "slic:0"}, "whole number"), (bright, IMAGE, {"parts": "slic:²"}, "whole number"), (bright, IMAGE, {"parts": "squares"}, "parts must begin with"),
    (bright, IMAGE, {"parts": np.zeros((3, 3), int)}, "one whole number a pixel"), (bright, IMAGE, {"fill": "pink"}, "fill must be"),
    (bright, IMAGE, {"fill": (1.0, 2.0)}, "one number or 3"), (bright, (IMAGE * 255).astype(np.uint8), {"fill": 300}, "must fit"),
    (wt.model(bright, layout="NCHW"), np.ones((2, 8, 8)), {}, "1, 3 or 4 channels"),
    (bright, np.ones(4), {"background": np.ones((9, 4))}, "vary|varies|constant"),
    (bright, np.ones(4), {}, "background"), (bright, np.ones((2, 2, 2, 2, 2)), {}, "an input must be"),
    (lambda b: np.full(len(b), np.nan), "a good film", {}, "finite scores"), (wrong_rows, "a good film", {}, "one row of scores"),
    (fails_later, "a good film", {"samples": 20}, "out of cheese"),
    (GOOD, "a good film", {"method": "limes"}, "did you mean 'lime'"), (GOOD, "a good film", {"seed": -3}, "seed must be"),
    (GOOD, "a good film", {"batch_size": 0}, "batch_size must be"),
])
def test_bad_input_is_one_clear_error(model, item, options, message):
    with pytest.raises(ValueError, match=message):
        wt.explain(model, item, **options)


@pytest.mark.parametrize(("options", "message"), [
    ({"sample": 10}, "did you mean 'samples'"), ({"background": None, "rate": 8000}, "cannot be used with text"),
    ({"method": 3}, "method must be a name")])
def test_options_nobody_knows_are_refused(options, message):
    with pytest.raises(TypeError, match=message):
        wt.explain(GOOD, "a good film", **options)


@pytest.mark.parametrize(("item", "parts", "message"), [
    (IMAGE, "words", r"parts 'words' are of text inputs, got an array of shape .* which looks like an image; image inputs take grid"),
    (IMAGE, "columns", "parts 'columns' are of tabular inputs, got an array"),
    ("a good film", "slic:5", "parts 'slic:5' are of image inputs, got the text 'a good film', which names no file; text inputs"),
    ("a good film", "time:5", "parts 'time:5' are of audio inputs, got the text"),
])
def test_parts_of_another_domain_are_told_so(item, parts, message):
    with pytest.raises(TypeError, match=message):
        wt.explain(bright, item, parts=parts)


def test_an_unseen_category_is_named():
    import pandas as pd

    frame = pd.DataFrame({"job": ["a", "b"] * 10, "age": range(20)})
    with pytest.raises(ValueError, match="job"):
        wt.explain(lambda b: b["age"] / 20, pd.Series({"job": "pilot", "age": 3}), background=frame)


def test_memory_does_not_grow_with_the_number_of_samples():
    image = np.random.default_rng(0).random((96, 96, 3))  # 221 kB each

    def peak(samples):
        tracemalloc.start()
        wt.explain(bright, image, parts="grid:5x5", samples=samples)
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return found

    peak(100)
    small, large = peak(2500), peak(10000)  # both with the surrogate in use
    # 25 parts: what may grow is the masks (as numbers, and about ten working copies) and the answers, not 7500 images of 221 kB.
    assert large - small < 7500 * 25 * 8 * 12
    assert large - small < 7500 * 221_000 / 80


def test_the_catalogue_lists_explainers_and_parts():
    rows = wt.methods()
    assert {"lime", "occlusion", "random", "slic", "words", "tf", "columns"} <= {row["name"] for row in rows}
    assert all(row["about"] for row in rows)


def test_statistics_stand_in_for_the_training_data(tmp_path):
    from whytrust.domains.tabular import TableStatistics

    background = np.random.default_rng(0).normal(size=(300, 4))
    statistics = TableStatistics.fit(background)
    statistics.save(tmp_path / "s.json")
    direct = wt.explain(lambda b: b[:, 0], background[0], background=background, samples=200)
    assert wt.explain(lambda b: b[:, 0], background[0], background=TableStatistics.load(tmp_path / "s.json"), samples=200) == direct
    with pytest.raises(ValueError, match="bins cannot be set"):
        wt.explain(lambda b: b[:, 0], background[0], background=statistics, bins="decile")


def test_reference_tables_draw_from_truncated_normals():
    background = np.random.default_rng(0).normal(size=(300, 2))
    seen = []
    wt.explain(lambda b: seen.append(b.copy()) or b[:, 0], background[0], background=background, variant="reference", samples=300)
    drawn = np.vstack(seen)[1:]
    assert not np.isin(drawn, background).any()  # not training values, but numbers between them
    assert drawn.min() >= background.min()


def test_texts_come_in_lists_arrays_and_series():
    import pandas as pd

    texts = ["a good film", "a bad film"]
    expected = wt.explain(GOOD, texts, samples=20)
    assert wt.explain(GOOD, np.array(texts), samples=20) == expected
    assert wt.explain(GOOD, pd.Series(texts), samples=20) == expected


def test_words_that_name_files_are_read_as_files(tmp_path):
    (tmp_path / "review.txt").write_text("a good film")
    assert wt.explain(GOOD, str(tmp_path / "review.txt"), samples=20) == wt.explain(GOOD, "a good film", samples=20)
    for name in ("nothing.wav", "nothing.png", "nothing.txt"):
        with pytest.raises(ValueError, match="nothing"):
            wt.explain(GOOD, name)


def test_lists_may_mix_sizes_and_paths(tmp_path):
    from PIL import Image

    Image.fromarray((IMAGE * 255).astype(np.uint8)).save(tmp_path / "a.png")
    found = wt.explain(bright, [IMAGE, np.ones((8, 12)), tmp_path / "a.png"], parts="grid:2x2", fill="black")
    assert [e.as_map().shape for e in found] == [(16, 16), (8, 12), (16, 16)]


def test_numpy_numbers_are_numbers(tmp_path):
    found = wt.explain(GOOD, "a good film", seed=np.int64(3), samples=np.int64(30), root=np.bool_(True), width=np.float32(0.25))
    assert wt.Explanation.load(found.save(tmp_path / "e.json")) == found


def test_a_word_is_a_word_even_where_a_folder_has_its_name(tmp_path, monkeypatch):
    (tmp_path / "good film").mkdir()
    monkeypatch.chdir(tmp_path)
    assert wt.explain(GOOD, "good film", samples=20).names == ("good", "film")


@pytest.mark.parametrize("scale", [1e-200, 1e-10, 1.0, 1e100])
def test_fidelity_does_not_depend_on_the_scale_of_scores(scale):
    found = wt.explain(lambda b: scale * b.max(axis=1), np.arange(900.0), parts="time:3")
    assert found.fidelity == pytest.approx(wt.explain(lambda b: b.max(axis=1), np.arange(900.0), parts="time:3").fidelity)


def test_two_channels_are_averaged_by_the_user():
    with pytest.raises(ValueError, match=r"looks like a sound.*average the channels, x\.mean\(axis=0\)"):
        wt.explain(bright, np.zeros((2, 8000)))


@pytest.mark.parametrize(("shape", "alone", "back"), [((1, 8000), "x[0]", "layout='NCT'"),
                                                       ((8000, 1), "x[:, 0]", "preprocess=lambda waves: waves[..., None]")])
@pytest.mark.parametrize("options", [{}, {"rate": 8000, "parts": "time:4"}])
def test_a_sound_with_an_axis_of_one_channel_says_what_to_pass_and_that_works(shape, alone, back, options):
    sound = np.random.default_rng(0).normal(size=shape)
    with pytest.raises(ValueError) as error:
        wt.explain(bright, sound, **options)
    assert f"pass {alone}" in str(error.value)
    assert f"wt.model(…, {back})" in str(error.value)
    came = []
    model = wt.model(lambda waves: came.append(waves.shape[1:]) or bright(waves), **eval(f"dict({back})"))
    assert wt.explain(model, eval(alone, {"x": sound}), **options).view.kind == "sound"
    assert set(came) == {shape}


@pytest.mark.parametrize("options", [{}, {"background": np.eye(3)}])
def test_a_list_without_inputs_is_called_empty(options):
    for nothing in ([], ()):
        with pytest.raises(ValueError, match="the list of inputs is empty"):
            wt.explain(bright, nothing, **options)


def test_sparse_rows_and_backgrounds_are_told_how_to_become_dense():
    row = sparse.csr_matrix([[0.0, 1.0, 0.0]])
    for item, options in ((row, {"background": np.eye(3)}), ([row], {"background": np.eye(3)}), (row, {}), (sparse.csr_array(row), {})):
        with pytest.raises(TypeError, match=r"an input must be dense.*x\.toarray\(\)"):
            wt.explain(bright, item, **options)
    with pytest.raises(TypeError, match=r"background\.toarray\(\)"):
        wt.explain(bright, np.ones(3), background=sparse.csr_matrix(np.eye(3)))


def test_fewer_segments_than_asked_for_are_noted():
    noise = np.random.default_rng(0).random((32, 32, 3))
    found = wt.explain(bright, noise, samples=30)
    assert len(found.names) < 8
    assert f"cut into {len(found.names)} segments where 16 were asked for" in found.notes[0]
    for even in (wt.explain(bright, noise, parts="grid:2x2"), wt.explain(bright, np.zeros((32, 32, 3)), samples=30)):
        assert not any("asked for" in note for note in even.notes)


def test_a_ready_made_reference_lime_is_the_named_one(rng):
    from whytrust.explainers.lime import Lime

    background = rng.normal(size=(100, 3))
    by_name = wt.explain(bright, background[0], background=background, variant="reference", samples=50)
    assert wt.explain(bright, background[0], method=Lime(variant="reference", samples=50), background=background) == by_name


def test_an_explainer_can_be_brought_along():
    from whytrust.explainers.lime import Lime

    assert wt.explain(GOOD, "a good film", method=Lime(samples=30)) == wt.explain(GOOD, "a good film", samples=30)
    assert wt.explain(GOOD, "a good film", method=Lime(), samples=30) == wt.explain(GOOD, "a good film", samples=30)


def test_a_value_too_rare_to_be_drawn_is_said_to_be_unknown():
    table = generator(0).normal(size=(2000, 5))
    table[:, 0] = generator(1).integers(0, 2, 2000)
    table[3, 0] = 2.0
    e = wt.explain(lambda rows: np.where(rows[:, 0] == 2, 0.9, 0.0), table[3], background=table, categorical=[0], samples=300, seed=1,
                   names=["kind", "a", "b", "c", "d"])
    assert any(note.startswith("Hardly anything is known about “kind") for note in e.notes)
    assert any("was never sampled" in note for note in e.notes)
    assert not any("does not depend" in note for note in e.notes)


def test_a_method_that_returns_no_explanation_is_one_clear_error():
    with pytest.raises(TypeError, match=r"must return an Explanation.*takes \(model, inputs, targets\)"):
        wt.explain(lambda rows: rows[:, 0], np.zeros(3), method=lambda model, inputs: inputs, background=np.eye(3))


@pytest.mark.parametrize(("target", "message"), [(5, r"or one of the classes \(5, 6, 7\) as text"), (True, "class name as text")])
def test_a_target_that_is_a_label_but_no_name_is_told_what_to_pass(target, message):
    model = wt.model(lambda rows: np.ones((len(rows), 3)), classes=[5, 6, 7])
    with pytest.raises((ValueError, TypeError), match=message):
        wt.explain(model, np.zeros(3), background=np.eye(3), target=target)


def test_a_net_that_drops_the_axis_of_a_single_input_is_understood():
    model = wt.model(lambda rows: np.squeeze(rows[:, :1]), threshold=0.5)
    np.testing.assert_allclose(model(np.full((1, 2), 0.3)), [[0.7, 0.3]])
    np.testing.assert_allclose(wt.model(lambda rows: np.squeeze(rows))(np.full((1, 2), 0.3)), [[0.3, 0.3]])


def test_an_object_with_predict_alone_is_told_to_pass_the_method():
    class Own:
        def predict(self, rows):
            return rows[:, 0]

    with pytest.raises(TypeError, match=r"pass its method, obj\.predict"):
        wt.model(Own())


def test_bytes_for_a_bare_net_are_said_aloud():
    torch = pytest.importorskip("torch")
    net = torch.nn.Sequential(torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(3, 2))
    picture = generator(0).integers(0, 256, (8, 8, 3)).astype(np.uint8)
    options = {"parts": "grid:2x2", "samples": 16}
    assert any("pixels as they are" in note for note in wt.explain(net, picture, **options).notes)
    scaled = wt.model(net, preprocess=lambda x: x / 255.0, layout="NCHW")
    assert not any("pixels as they are" in note for note in wt.explain(scaled, picture, **options).notes)
    batch = wt.explain(net, torch.rand(2, 3, 8, 8), **options)
    assert len(batch) == 2
    assert not any("pixels as they are" in note for note in batch[0].notes)


def test_progress_of_a_training_goes_to_a_file_too(capsys):
    quiet, told = Progress("asking"), Progress("training", every=0.0)
    for progress in (quiet, told):
        progress.start = progress.logged = progress.start - 60
        with progress.expect(100):
            progress(50)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("training: 50 of 100 model calls")


def test_progress_says_how_much_is_left_where_that_is_known():
    progress = Progress("explaining")
    progress.start = 0.0
    with progress.expect(100):
        progress(20)
        with progress.expect(10):  # a piece of the whole
            assert progress.words(2.0) == "20 of 100 model calls, 10 a second, 8 s left"
        progress.item = "input 2 of 3, "
        assert progress.words(2.0).startswith("input 2 of 3, 20 of 100")
    assert progress.words(2.0) == "input 2 of 3, 20 model calls, 10 a second, 2 s"


def test_smoothed_integrated_gradients_expect_every_call():
    seen, expected = [0], []

    class Watch:
        def __call__(self, calls):
            seen[0] += calls

        @contextmanager
        def expect(self, calls):
            expected.append((seen[0], calls))
            yield

    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(16, 2))
    question = Question(wt.model(net), ImageParts.cut(np.ones((1, 4, 4)), "grid:2x2", layout="NCHW"), 0, on_calls=Watch())
    NAMES["integrated_gradients/smoothgrad"].make(samples=3, steps=4)(question, generator(0))
    before, calls = expected[0]
    assert calls == 12
    assert seen[0] - before - calls == 1  # what the model says of the input itself
