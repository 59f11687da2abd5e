"""ONNX graphs say what the same arithmetic says in numpy or torch, whatever shape their inputs and outputs have."""

import pickle

import numpy as np
import pytest

import whytrust as wt
from whytrust.backends import onnx as backend

onnx = pytest.importorskip("onnx")
runtime = pytest.importorskip("onnxruntime")
TensorProto, helper, numpy_helper = onnx.TensorProto, onnx.helper, onnx.numpy_helper

FLOAT, INT, STRING = TensorProto.FLOAT, TensorProto.INT64, TensorProto.STRING
W = np.random.default_rng(0).normal(size=(3, 2)).astype(np.float32)
B = np.array([0.3, -0.2], dtype=np.float32)
ROWS = np.random.default_rng(1).normal(size=(7, 3))


def value(name, shape, kind=FLOAT):
    return helper.make_tensor_value_info(name, kind, shape)


def graph(nodes, inputs, outputs, opset=17, ir=9, **weights):
    made = helper.make_graph(nodes, "g", inputs, outputs, [numpy_helper.from_array(v, k) for k, v in weights.items()])
    return helper.make_model(made, opset_imports=[helper.make_opsetid("", opset), helper.make_opsetid("ai.onnx.ml", 3)],
                             ir_version=ir)


def saved(model, folder, name="model.onnx"):
    path = folder / name
    path.write_bytes(model.SerializeToString())
    return path


def softmax(z):
    e = np.exp(z - z.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def linear(rows):
    return np.asarray(rows, dtype=np.float32).astype(np.float64) @ W + B


GEMM, SOFTMAX = helper.make_node("Gemm", ["x", "w", "b"], ["z"]), helper.make_node("Softmax", ["z"], ["p"], axis=1)


def classifier(batch="n", **options):
    return graph([GEMM, SOFTMAX], [value("x", [batch, 3])], [value("p", [batch, 2])], w=W, b=B, **options)


# --- the arithmetic ---------------------------------------------------------------------------------------------------


def test_a_file_a_name_and_a_session_give_the_graphs_scores(tmp_path):
    path = saved(classifier(), tmp_path)
    session = runtime.InferenceSession(path, providers=["CPUExecutionProvider"])
    for obj in (path, str(path), session):
        np.testing.assert_allclose(wt.model(obj)(ROWS), softmax(linear(ROWS)), atol=1e-6)
    assert wt.model(path, classes=["no", "yes"], name="mine").classes == ("no", "yes")
    assert wt.model(path).name == "model"


@pytest.mark.parametrize("size", [1, 3, 7, 10])
def test_a_graph_for_a_fixed_number_of_rows_is_run_in_pieces(tmp_path, size):
    model = wt.model(saved(classifier(size), tmp_path))
    np.testing.assert_allclose(model(ROWS), softmax(linear(ROWS)), atol=1e-6)


@pytest.mark.parametrize(("kind", "rows"), [
    (TensorProto.DOUBLE, ROWS), (TensorProto.FLOAT16, np.round(ROWS, 1)), (TensorProto.INT64, np.arange(6).reshape(2, 3)),
    (TensorProto.INT32, np.arange(6.0).reshape(2, 3)), (TensorProto.UINT8, np.arange(6, dtype=np.uint8).reshape(2, 3)),
    (TensorProto.BOOL, np.array([[True, False, True]]))])
def test_inputs_get_the_type_that_the_graph_asks_for(tmp_path, kind, rows):
    cast = helper.make_node("Cast", ["raw"], ["x"], to=FLOAT)
    model = wt.model(saved(graph([cast, GEMM], [value("raw", ["n", 3], kind)], [value("z", ["n", 2])], w=W, b=B), tmp_path))
    as_given = np.asarray(rows, helper.tensor_dtype_to_np_dtype(kind)).astype(np.float32)
    np.testing.assert_allclose(model(rows), linear(as_given), atol=1e-5)


def test_images_with_channels_first_are_explained_as_they_are_convolved(tmp_path):
    torch = pytest.importorskip("torch")
    kernel = np.random.default_rng(2).normal(size=(4, 3, 3, 3)).astype(np.float32)
    nodes = [helper.make_node("Conv", ["x", "k"], ["c"], pads=[1, 1, 1, 1]), helper.make_node("Relu", ["c"], ["r"]),
             helper.make_node("GlobalAveragePool", ["r"], ["a"]), helper.make_node("Flatten", ["a"], ["z"])]
    path = saved(graph(nodes, [value("x", ["n", 3, 8, 8])], [value("z", ["n", 4])], k=kernel), tmp_path)
    image = np.random.default_rng(3).random((8, 8, 3)).astype(np.float32)
    model = wt.model(path)
    assert model.layout == "NCHW"
    with pytest.raises(ValueError, match=r"must have shape.*each input came with shape \(1, 8, 8\), channels first.*convert\('RGB'\)"):
        model(np.zeros((2, 1, 8, 8)))
    with torch.no_grad():
        tensor = torch.from_numpy(np.moveaxis(image, -1, 0)[None].copy())
        expected = torch.nn.functional.conv2d(tensor, torch.from_numpy(kernel), padding=1).relu().mean((2, 3)).numpy()[0]
    e = wt.explain(model, image, parts="grid:2x2", samples=16)
    assert e.prediction == pytest.approx(expected.max(), abs=1e-5)


def test_images_with_channels_last_keep_them(tmp_path):
    nodes = [helper.make_node("ReduceMean", ["x"], ["z"], axes=[1, 2], keepdims=0)]
    model = wt.model(saved(graph(nodes, [value("x", ["n", 8, 8, 3])], [value("z", ["n", 3])]), tmp_path))
    images = np.random.default_rng(3).random((2, 8, 8, 3))
    assert model.layout == "NHWC"
    np.testing.assert_allclose(model(images), images.mean(axis=(1, 2)), atol=1e-6)


# --- several inputs, strings ------------------------------------------------------------------------------------------


@pytest.fixture
def by_column(tmp_path):
    nodes = [helper.make_node("Concat", ["age", "height", "is member"], ["x"], axis=1), GEMM]
    inputs = [value(name, ["n", 1]) for name in ("age", "height", "is member")]
    return saved(graph(nodes, inputs, [value("z", ["n", 2])], w=W, b=B), tmp_path)


def test_several_inputs_are_a_tables_columns_by_name(by_column):
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame(ROWS[:, [1, 0, 2]], columns=["height", "age", "is member"])
    np.testing.assert_allclose(wt.model(by_column)(table), linear(ROWS), atol=1e-5)
    with pytest.raises(ValueError, match="needs a column 'age'"):
        wt.model(by_column)(table.drop(columns="age"))
    with pytest.raises(ValueError, match=r"3 inputs \(age, height, is member\).*DataFrame"):
        wt.model(by_column)(ROWS)


@pytest.mark.parametrize("shape", [["n"], ["n", 1]])
def test_texts_are_fed_as_strings(tmp_path, shape):
    known = helper.make_node("LabelEncoder", ["text"], ["found"], domain="ai.onnx.ml", keys_strings=["good film", "bad"],
                             values_floats=[0.9, 0.1], default_float=0.5)
    nodes = [known, helper.make_node("Reshape", ["found", "shape"], ["p"])]
    path = saved(graph(nodes, [value("text", shape, STRING)], [value("p", ["n", 1])], shape=np.array([-1, 1])), tmp_path)
    model = wt.model(path, output="probability")
    for batch in (["good film", "bad", ""], np.array(["good film", "bad", ""])):
        np.testing.assert_allclose(model(batch)[:, 1], [0.9, 0.1, 0.5], atol=1e-6)
    e = wt.explain(model, "good film", target=1, samples=8)
    assert e.prediction == pytest.approx(0.9, abs=1e-6)


# --- outputs ----------------------------------------------------------------------------------------------------------


def argmax(kind=INT):
    return helper.make_node("ArgMax", ["z"], ["label"], axis=1, keepdims=0), value("label", ["n"], kind)


@pytest.mark.parametrize(("labels", "classes"), [({"classlabels_strings": ["yes", "no"]}, ("no", "yes")),
                                                 ({"classlabels_int64s": [7, 3]}, ("3", "7"))])
def test_a_map_of_probabilities_names_the_classes(tmp_path, labels, classes):
    node, label = argmax()
    zipmap = helper.make_node("ZipMap", ["p"], ["map"], domain="ai.onnx.ml", **labels)
    key = STRING if "classlabels_strings" in labels else INT
    maps = helper.make_value_info("map", helper.make_sequence_type_proto(
        helper.make_map_type_proto(key, helper.make_tensor_type_proto(FLOAT, []))))
    model = wt.model(saved(graph([GEMM, SOFTMAX, node, zipmap], [value("x", ["n", 3])], [label, maps], w=W, b=B), tmp_path))
    assert model.classes == classes
    np.testing.assert_allclose(model(ROWS), softmax(linear(ROWS))[:, ::-1], atol=1e-6)


def test_probabilities_are_chosen_before_labels_and_logits(tmp_path):
    node, label = argmax()
    rename = helper.make_node("Identity", ["p"], ["probabilities"])
    outputs = [label, value("z", ["n", 2]), value("probabilities", ["n", 2])]
    path = saved(graph([GEMM, SOFTMAX, node, rename], [value("x", ["n", 3])], outputs, w=W, b=B), tmp_path)
    np.testing.assert_allclose(wt.model(path)(ROWS), softmax(linear(ROWS)), atol=1e-6)
    np.testing.assert_allclose(wt.model(path, output_name="z")(ROWS), linear(ROWS), atol=1e-5)
    with pytest.raises(ValueError, match=r"output_name must be an output with scores.*label"):
        wt.model(path, output_name="label")


def test_scores_that_could_be_either_are_refused_by_name(tmp_path):
    path = saved(graph([GEMM, SOFTMAX], [value("x", ["n", 3])], [value("z", ["n", 2]), value("p", ["n", 2])], w=W, b=B), tmp_path)
    with pytest.raises(ValueError, match=r"several outputs.*z .*p .*output_name"):
        wt.model(path)


def test_labels_alone_are_refused(tmp_path):
    node, label = argmax()
    with pytest.raises(ValueError, match=r"label \(tensor\(int64\)\).*export the model with its probabilities"):
        wt.model(saved(graph([GEMM, node], [value("x", ["n", 3])], [label], w=W, b=B), tmp_path))


# --- refusals and manners ---------------------------------------------------------------------------------------------


def test_a_batch_of_another_shape_is_refused_with_both_shapes(tmp_path):
    model = wt.model(saved(classifier(), tmp_path))
    with pytest.raises(ValueError, match=r"'x' must have shape \(n, 3\), got \(7, 2\)"):
        model(ROWS[:, :2])


@pytest.mark.parametrize(("kind", "rows", "message"), [
    (TensorProto.UINT8, [[0.0, 1.0, 256.0]], "0 to 255"), (TensorProto.INT64, [[0.0, 1.5, 2.0]], "whole numbers, got 1.5"),
    (TensorProto.INT64, [[0.0, np.nan, 2.0]], "whole numbers"), (FLOAT, [["a", "b", "c"]], r"tensor\(float\)")])
def test_values_that_the_graphs_type_cannot_hold_are_refused(tmp_path, kind, rows, message):
    cast = helper.make_node("Cast", ["raw"], ["x"], to=FLOAT)
    model = wt.model(saved(graph([cast, GEMM], [value("raw", ["n", 3], kind)], [value("z", ["n", 2])], w=W, b=B), tmp_path))
    with pytest.raises(ValueError, match=message):
        model(np.array(rows))


@pytest.mark.parametrize("content", [b"", b"no graph at all", "cut", "opset", "ir"])
def test_a_file_that_is_no_graph_is_one_clear_error(tmp_path, content):
    whole = {"opset": classifier(opset=99), "ir": classifier(ir=99)}.get(content, classifier()).SerializeToString()
    path = tmp_path / "broken.onnx"
    path.write_bytes(content if isinstance(content, bytes) else whole[:60] if content == "cut" else whole)
    with pytest.raises(ValueError, match=r"broken.onnx must be an ONNX model that onnxruntime") as error:
        wt.model(path)
    assert "\n" not in str(error.value)
    assert "onnxruntime_src" not in str(error.value)


def test_a_file_that_is_not_there_is_said_so(tmp_path):
    for name in (tmp_path / "none.onnx", str(tmp_path / "none.onnx")):
        with pytest.raises(ValueError, match=r"none.onnx.*there is none"):
            wt.model(name)


def test_a_device_that_is_not_there_is_refused(tmp_path):
    path = saved(classifier(), tmp_path)
    np.testing.assert_allclose(wt.model(path, device="cpu")(ROWS), softmax(linear(ROWS)), atol=1e-6)
    if "CUDAExecutionProvider" not in runtime.get_available_providers():
        with pytest.raises(ValueError, match=r"cpu.*got 'cuda'"):
            wt.model(path, device="cuda")
    with pytest.raises(ValueError, match="where the session runs"):
        wt.model(runtime.InferenceSession(path, providers=["CPUExecutionProvider"]), device="cuda")


def test_models_pickle_by_what_they_were_made_from(tmp_path):
    path = saved(classifier(), tmp_path)
    sessions = [runtime.InferenceSession(made, providers=["CPUExecutionProvider"]) for made in (path, path.read_bytes())]
    for obj in (path, *sessions):
        model = wt.model(obj)
        again = pickle.loads(pickle.dumps(model))
        np.testing.assert_array_equal(again(ROWS), model(ROWS))
        assert again.classes == model.classes


def test_a_session_without_an_origin_says_that_it_cannot_be_pickled(tmp_path):
    session = runtime.InferenceSession(saved(classifier(), tmp_path), providers=["CPUExecutionProvider"])
    session._model_path = session._model_bytes = None
    with pytest.raises(TypeError, match=r"path of its .onnx file"):
        pickle.dumps(wt.model(session))


def test_other_names_are_no_graphs():
    assert not backend.accepts("a text about model.onnx files")
    assert not backend.accepts(3)
