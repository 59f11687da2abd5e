"""torch modules as models; the truth is torch's own output and torch's own autograd, written out."""

import pickle
import threading
from collections import OrderedDict
from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np
import pytest

import whytrust as wt
from whytrust.backends.torch import TorchScores, scores_of
from whytrust.checked import DifferentiableModel

torch = pytest.importorskip("torch")
nn = torch.nn
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:torch", "ignore:Input Tensor 0 did not")


def seeded(make, seed=0):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return make()


def mlp(outputs=3, dtype=torch.float64):
    return seeded(lambda: nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, outputs))).to(dtype)


def conv_net(dtype=torch.float64):
    """Convolution, batch norm with statistics of its own, and an in-place ReLU; in training mode, as users leave them."""
    net = seeded(lambda: nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(inplace=True), nn.Conv2d(4, 5, 3), nn.Tanh(),
                                       nn.Dropout(0.5), nn.Flatten(), nn.Linear(5 * 16, 3)))
    with torch.no_grad():
        seeded(lambda: net[1](torch.randn(50, 4, 6, 6) * 2 + 1))
    return net.to(dtype).train()


def in_torch(net, batch):
    """What torch itself says."""
    modes = [m.training for m in net.modules()]
    with torch.no_grad():
        answer = net.eval()(torch.as_tensor(np.asarray(batch))).double().numpy()
    for module, mode in zip(net.modules(), modes, strict=True):
        module.training = mode
    return answer


class Returns(nn.Module):
    """Gives back `shape(logits)`, in whatever form a user's module has."""

    def __init__(self, shape, outputs=3):
        super().__init__()
        self.inner, self.shape = mlp(outputs, torch.float32), shape

    def forward(self, inputs):
        return self.shape(self.inner(inputs))


ROWS = np.random.default_rng(0).normal(size=(4, 5))
IMAGES = np.random.default_rng(1).normal(size=(4, 3, 8, 8))
BYTES = np.random.default_rng(2).integers(0, 256, size=(4, 3, 8, 8), dtype=np.uint8)


# --- scores -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16, np.int64, np.int8, np.uint8, np.uint16, np.bool_, ">f8"])
def test_scores_are_the_modules_own_for_arrays_of_any_real_type(dtype):
    net, batch = mlp(dtype=torch.float32), (ROWS * 3).astype(dtype)
    np.testing.assert_array_equal(wt.model(net)(batch), in_torch(net, batch.astype(np.float32)))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
def test_inputs_have_the_type_of_the_parameters(dtype):
    net = mlp(dtype=dtype)
    with torch.no_grad():
        expected = net(torch.from_numpy(ROWS.astype(np.float32) if dtype != torch.float64 else ROWS).to(dtype)).double().numpy()
    np.testing.assert_array_equal(wt.model(net)(ROWS), expected)


@pytest.mark.parametrize("view", [lambda b: b[:, ::-1], lambda b: np.asfortranarray(b), lambda b: b.astype(object), lambda b: b.tolist()])
def test_any_memory_layout_is_read_as_numpy_reads_it(view):
    np.testing.assert_array_equal(wt.model(mlp())(view(ROWS)), in_torch(mlp(), np.array(view(ROWS), dtype=np.float64, order="C")))


def test_a_data_frame_is_read_in_the_order_of_its_columns():
    pandas = pytest.importorskip("pandas")
    np.testing.assert_array_equal(wt.model(mlp())(pandas.DataFrame(ROWS, columns=list("ebadc"))), in_torch(mlp(), ROWS))


class Given(nn.Module):
    """Remembers how images came to it; `flatten` is what a subclass, or a user, does with them."""

    def __init__(self):
        super().__init__()
        self.conv, self.head, self.given = nn.Conv2d(3, 4, 3), nn.Linear(4 * 36, 2), []

    def flatten(self, features):
        return features.flatten(1)

    def forward(self, images):
        self.given.append(images.is_contiguous())
        return self.head(self.flatten(self.conv(images).relu()))


class Viewing(Given):
    def flatten(self, features):
        return features.view(len(features), -1)


class Insisting(Given):
    def flatten(self, features):
        if not features.is_contiguous():
            raise ValueError("I want my features in order")
        return features.flatten(1)


class Misreading(Given):
    """Reads memory as if it lay in order, and says nothing."""

    def flatten(self, features):
        return torch.as_strided(features, (len(features), 144), (144, 1))


def turned(images):
    return images.transpose(0, 3, 1, 2)


def test_images_reach_the_net_as_they_lie_in_memory():
    net = seeded(Given)
    images = np.random.default_rng(0).random((2, 8, 8, 3)).astype(np.float32)
    model = wt.model(net, preprocess=turned)
    first, second = model(images), model(images)
    assert net.given == [True, False, False]  # compared once
    with torch.no_grad():
        expected = net(torch.from_numpy(turned(images))).double().numpy()
    np.testing.assert_array_equal(first, expected)
    np.testing.assert_array_equal(second, expected)


@pytest.mark.parametrize("made", [lambda array: array, torch.from_numpy])
@pytest.mark.parametrize("kind", [Viewing, Insisting, Misreading])
def test_a_net_that_counts_on_the_usual_order_gets_it(kind, made):
    net = seeded(kind)
    images = np.random.default_rng(0).random((2, 8, 8, 3)).astype(np.float32)
    model = wt.model(net, preprocess=lambda batch: made(turned(batch)))
    first, second = model(images), model(images)
    assert net.given == [True, False, True]
    np.testing.assert_array_equal(first, in_torch(net, np.ascontiguousarray(turned(images))))
    np.testing.assert_array_equal(first, second)


@pytest.mark.filterwarnings("ignore:fast is given up")
def test_a_net_that_views_works_fast_and_with_gradients():
    net, images = seeded(Viewing), np.random.default_rng(0).random((2, 8, 8, 3)).astype(np.float32)

    def tensors(batch):
        return torch.as_tensor(batch).permute(0, 3, 1, 2)

    expected = in_torch(net, np.ascontiguousarray(turned(images)))
    np.testing.assert_allclose(wt.model(net, preprocess=tensors, fast=True)(images), expected, atol=1e-6)
    scores, gradient = wt.model(net, preprocess=tensors).vjp(images, np.ones((2, 2)))
    np.testing.assert_allclose(scores, expected, atol=1e-6)
    assert gradient.shape == images.shape


class TextNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.conv, self.head = nn.Embedding(50, 6), nn.Conv1d(6, 4, 3), nn.Linear(4, 2)

    def forward(self, tokens):
        return self.head(self.conv(self.words(tokens).transpose(1, 2)).amax(2))


@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.uint8])
@pytest.mark.parametrize("shape", [lambda n: n, torch.jit.script])
def test_token_ids_stay_whole_where_the_first_layer_is_an_embedding(dtype, shape):
    net, tokens = seeded(TextNet), np.random.default_rng(0).integers(0, 50, (3, 7))
    np.testing.assert_array_equal(wt.model(shape(net))(tokens.astype(dtype)), in_torch(net, tokens))


class Lookup(nn.Module):
    """Its first layer with parameters is no embedding, so it is `preprocess` that says what it takes."""

    def __init__(self):
        super().__init__()
        self.table = nn.Parameter(torch.arange(12.0).reshape(6, 2))

    def forward(self, tokens):
        return self.table[tokens].sum(1)


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32])
def test_integer_tensors_of_a_preprocess_are_meant(dtype):
    model = wt.model(Lookup(), preprocess=lambda batch: torch.as_tensor(batch).to(dtype))
    np.testing.assert_array_equal(model(np.array([[0, 1], [5, 5]])), [[2, 4], [20, 22]])


def test_a_preprocess_may_return_tensors():
    model = wt.model(conv_net(torch.float32), preprocess=lambda batch: torch.from_numpy(batch))
    np.testing.assert_array_equal(model(BYTES), in_torch(conv_net(torch.float32), BYTES.astype(np.float32)))


class Centre(nn.Module):
    def __init__(self):
        super().__init__()
        self.drop = nn.Dropout(0.5)

    def forward(self, inputs):
        return self.drop((1.0 * inputs - 127) / 128)  # 1.0: bytes wrap around


def test_a_preprocess_that_is_a_module_gets_tensors_in_eval_mode():
    centre, scores = Centre().train(), TorchScores(mlp())
    prepared = scores.prepare(np.array([[0, 255]], dtype=np.uint8), centre)
    np.testing.assert_array_equal(prepared.numpy(), [[-127 / 128, 1.0]])
    assert centre.training
    assert centre.drop.training
    assert scores.prepare(ROWS, len) == 4  # a function gets the batch itself


@pytest.mark.parametrize("shape", [
    lambda t: SimpleNamespace(logits=t, loss=None), lambda t: {"logits": t, "hidden": t * 2}, lambda t: {"anything": t},
    lambda t: OrderedDict(scores=t, name="x"), lambda t: (t, t * 2), lambda t: (t,),
])
def test_scores_are_found_in_what_a_module_returns(shape):
    net = Returns(shape)
    np.testing.assert_array_equal(wt.model(net)(ROWS), in_torch(net.inner, ROWS.astype(np.float32)))
    with torch.no_grad():
        assert scores_of(shape(torch.ones(1))).item() == 1


def test_a_hugging_face_output_is_read_by_its_logits():
    outputs = pytest.importorskip("transformers.modeling_outputs")
    net = Returns(lambda t: outputs.SequenceClassifierOutput(loss=t.sum(), logits=t, hidden_states=(t, t)))
    np.testing.assert_array_equal(wt.model(net)(ROWS), in_torch(net.inner, ROWS.astype(np.float32)))


@pytest.mark.parametrize(("shape", "names"), [
    (lambda t: t.tolist(), "got list of list"), (lambda t: {"a": t, "b": t}, "got dict with a, b"), (lambda t: ("x", t), "got tuple of str, Tensor"),
    (lambda t: None, "got NoneType"), (lambda t: t.numpy(), "got ndarray of float32"), (lambda t: t * 1j, "got Tensor of torch.complex64"),
    (lambda t: {"logits": None}, "got dict with logits"), (lambda t: (), "got tuple of nothing"),
])
def test_other_outputs_are_refused_by_name(shape, names):
    with pytest.raises(ValueError, match=names):
        wt.model(Returns(shape))(ROWS)


@pytest.mark.parametrize(("shape", "came"), [(lambda t: t[:, :, None], r"\(4, 3, 1\)"), (lambda t: t[:2], r"\(2, 3\)"), (lambda t: t.sum(), r"\(\)")])
def test_wrong_shapes_are_named_at_the_first_call(shape, came):
    with pytest.raises(ValueError, match=rf"expected \(4, classes\), got shape {came}"):
        wt.model(Returns(shape))(ROWS)
    with pytest.raises(ValueError, match=rf"expected \(4, classes\), got shape {came}"):
        wt.model(Returns(shape)).vjp(ROWS, np.ones_like)


@pytest.mark.parametrize("batch", [["a text", "another"], np.array(["a", "b"]), ROWS * 1j, [[1, 2], [3]]])
def test_batches_without_numbers_are_refused(batch):
    with pytest.raises(ValueError, match="a torch module takes an array of numbers, got"):
        wt.model(mlp())(batch)


# --- left as it was found ---------------------------------------------------------------------------------------------


def everything(net):
    """All of a module that a call could change."""
    return {"state": {k: v.clone() for k, v in net.state_dict().items()}, "modes": [m.training for m in net.modules()],
            "gradients": [None if p.grad is None else p.grad.clone() for p in net.parameters()],
            "versions": [t._version for t in (*net.parameters(), *net.buffers())],
            "flags": [p.requires_grad for p in net.parameters()],
            "hooks": [(len(m._forward_hooks), len(m._forward_pre_hooks), len(m._backward_hooks)) for m in net.modules()],
            "memory": [p.stride() for p in net.parameters()],
            "global": (torch.is_grad_enabled(), torch.get_num_threads(), torch.get_rng_state().tolist())}


def assert_same(before, after):
    assert before.keys() == after.keys()
    for name, value in before.pop("state").items():
        torch.testing.assert_close(after["state"][name], value, rtol=0, atol=0)
    for old, new in zip(before.pop("gradients"), after["gradients"], strict=True):
        assert (old is None) == (new is None)
        assert old is None or torch.equal(old, new)
    assert before == {k: after[k] for k in before}


def mixed_net():
    """Some submodules in training mode, some gradients and some frozen parameters."""
    net = conv_net()
    net[5].eval()
    net[1].eval()
    net[0].weight.requires_grad_(False)
    net[3].weight.grad = torch.full_like(net[3].weight, 7)
    net[3].register_forward_hook(lambda *_: None)
    return net


@pytest.mark.parametrize("fast", [False, True])
@pytest.mark.parametrize("ask", [lambda m: m(IMAGES), lambda m: m.vjp(IMAGES, np.ones_like)])
def test_the_module_and_torch_are_left_as_they_were_found(ask, fast):
    net = mixed_net()
    before = everything(net)
    ask(wt.model(net, fast=fast))
    assert_same(before, everything(net))


class Fails(nn.Module):
    def forward(self, inputs):
        raise RuntimeError("the module's own trouble")


@pytest.mark.parametrize("fast", [False, True])
@pytest.mark.parametrize("ask", [lambda m: m(IMAGES), lambda m: m.vjp(IMAGES, np.ones_like)])
def test_modes_come_back_after_an_error_too(ask, fast):
    net = nn.Sequential(*mixed_net(), Fails())
    before = everything(net)
    with pytest.raises(ValueError, match="the module's own trouble"):
        ask(wt.model(net, fast=fast))
    assert_same(before, everything(net))


@pytest.mark.parametrize("preprocess", [lambda batch: batch, lambda batch: batch[:, ::-1], lambda batch: batch.reshape(4, 5)])
def test_a_preprocessing_that_returns_the_batch_or_a_view_does_not_get_it_changed(preprocess):
    net = nn.Sequential(nn.ReLU(inplace=True), mlp(dtype=torch.float32))
    rows = -np.random.default_rng(0).random((4, 5)).astype(np.float32)
    before = rows.copy()
    np.testing.assert_array_equal(wt.model(net, preprocess=preprocess)(rows), in_torch(net, np.zeros_like(rows)))
    np.testing.assert_array_equal(rows, before)


def test_what_a_preprocessing_has_made_is_not_copied_again():
    given = []
    net = nn.Sequential(nn.Identity(), mlp(dtype=torch.float32))
    net[0].register_forward_hook(lambda _, inputs, __: given.append(inputs[0].data_ptr()))
    made = []
    wt.model(net, preprocess=lambda rows: made.append(rows * np.float32(2)) or made[-1])(np.ones((4, 5), np.float32))
    assert given == [made[0].ctypes.data]


def test_a_layer_that_works_in_place_does_not_change_the_batch():
    batch = IMAGES.copy()
    net = nn.Sequential(nn.ReLU(inplace=True), nn.Flatten(), nn.Linear(192, 2).double())
    for model in (wt.model(net), wt.model(net, preprocess=torch.from_numpy)):
        model(batch)
        np.testing.assert_array_equal(batch, IMAGES)


class Watching(nn.Module):
    def forward(self, inputs):
        assert not self.training
        assert not torch.is_grad_enabled()
        return inputs


def test_a_module_is_asked_in_eval_mode_without_gradients():
    np.testing.assert_array_equal(wt.model(Watching().train())(ROWS), ROWS.astype(np.float32))


# --- kinds of modules and devices -------------------------------------------------------------------------------------


SINGLE = IMAGES.astype(np.float32)


def traced(net):
    return torch.jit.trace(net, torch.from_numpy(SINGLE))


def frozen(net):
    return torch.jit.freeze(torch.jit.script(net))


def exported(net):
    rows = {0: torch.export.Dim("n", min=1, max=64)}
    return torch.export.export(net, (torch.from_numpy(SINGLE),), dynamic_shapes=(rows,)).module()


def compiled(net):
    return torch.compile(net, backend="eager")


@pytest.mark.parametrize("made", [traced, torch.jit.script, frozen, exported, compiled])
def test_scripted_exported_and_compiled_modules_are_modules_too(made):
    net = conv_net(torch.float32).eval()
    model, plain = wt.model(made(net)), wt.model(net)
    np.testing.assert_allclose(model(IMAGES), in_torch(net, SINGLE), atol=1e-5)
    np.testing.assert_allclose(model.vjp(IMAGES, WEIGHTS)[1], plain.vjp(IMAGES, WEIGHTS)[1], atol=1e-5)
    with pytest.raises(ValueError, match="compiled or scripted already; leave fast out") if made is not exported else nullcontext():
        wt.model(made(net), fast=True)


def test_a_wrapped_module_says_what_it_is():
    model = wt.model(conv_net(), device="cpu")
    assert str(model).startswith("Sequential (a torch module on cpu): scores as they come")
    assert isinstance(model, DifferentiableModel)
    assert model.layout == "NCHW"
    assert wt.model(torch.jit.script(mlp())).name == "Sequential"


def test_a_wrapped_module_pickles():
    model = wt.model(conv_net(), output="logit", device="cpu")
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again(IMAGES), model(IMAGES))
    assert again.function.source is again.function.module


@pytest.mark.parametrize("device", ["cpu", torch.device("cpu")])
def test_a_device_may_be_a_name_or_torchs_own(device):
    np.testing.assert_array_equal(wt.model(mlp(), device=device)(ROWS), in_torch(mlp(), ROWS))


@pytest.mark.parametrize("device", ["gpu", "cuda:x", "cuda:99", "mps:7", 3.5])
def test_a_device_that_torch_does_not_have_is_one_clear_error(device):
    with pytest.raises(ValueError, match="device must be one that torch has here, such as 'cpu', got '" + str(device)):
        wt.model(mlp(), device=device)


def test_a_module_is_not_moved():
    with pytest.raises(ValueError, match=r"device='meta' was asked for, but Sequential has weights on cpu, .* call module.to\('meta'\) first"):
        wt.model(mlp(), device="meta")


def test_inputs_follow_the_module(monkeypatch):
    net = mlp()
    model = wt.model(net)
    net.to("meta")  # as a user may move it to another device afterwards
    seen = []
    net.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0].device.type))
    with pytest.raises(ValueError, match="meta"):
        model(ROWS)
    assert seen == ["meta"]


def test_weights_that_are_not_there_are_one_clear_error():
    with pytest.raises(ValueError, match="meta device"):
        wt.model(mlp().to("meta"))
    with pytest.raises(ValueError, match="lazy layers; call it once on a batch first"):
        wt.model(nn.Sequential(nn.LazyLinear(3)))


# --- gradients --------------------------------------------------------------------------------------------------------


def by_autograd(net, batch, loss):
    """The gradient of a loss of the logits, as a user of torch would write it."""
    inputs = torch.from_numpy(np.array(batch, dtype=np.float64)).requires_grad_()
    net.eval()
    loss(net(inputs)).backward()
    return inputs.grad.numpy()


def by_differences(model, batch, weights, step=1e-5):
    """Central differences, a coordinate at a time."""
    gradient = np.empty(batch.shape)
    for index in np.ndindex(batch.shape):
        up, down = batch.copy(), batch.copy()
        up[index], down[index] = up[index] + step, down[index] - step
        gradient[index] = (weights * (model(up) - model(down))).sum() / (2 * step)
    return gradient


WEIGHTS = np.random.default_rng(3).normal(size=(4, 3))
TENSOR = torch.from_numpy(WEIGHTS)
CASES = {
    "raw": (3, {}, lambda z: (TENSOR * z).sum()),
    "logits": (3, {"output": "logit"}, lambda z: (TENSOR * z.softmax(1)).sum()),
    "one raw": (1, {}, lambda z: (TENSOR[:, :1] * z).sum()),
    "one logit": (1, {"output": "logit", "threshold": 0.3}, lambda z: (TENSOR[:, :2] * torch.hstack([1 - z.sigmoid(), z.sigmoid()])).sum()),
}


@pytest.mark.parametrize("case", CASES)
def test_gradients_are_autograds(case):
    outputs, options, loss = CASES[case]
    model = wt.model(mlp(outputs), **options)
    scores, gradient = model.vjp(ROWS, WEIGHTS[:, : model(ROWS).shape[1]])
    np.testing.assert_array_equal(scores, model(ROWS))
    np.testing.assert_allclose(gradient, by_autograd(mlp(outputs), ROWS, loss), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("case", CASES)
def test_gradients_are_central_differences(case):
    outputs, options, _ = CASES[case]
    model = wt.model(mlp(outputs), **options)
    weights = WEIGHTS[:, : model(ROWS).shape[1]]
    np.testing.assert_allclose(model.vjp(ROWS, weights)[1], by_differences(model, ROWS, weights), rtol=1e-6, atol=1e-8)


def test_a_probability_of_one_output_has_the_gradient_of_both_classes():
    net = nn.Sequential(mlp(1), nn.Sigmoid(), nn.Flatten(0))  # (n,)
    model = wt.model(net, threshold=0.5)
    weights = WEIGHTS[:, :2]
    np.testing.assert_allclose(model.vjp(ROWS, weights)[1], by_differences(model, ROWS, weights), rtol=1e-6, atol=1e-8)


def test_weights_may_be_a_function_of_the_scores():
    labels = np.eye(3)[[0, 2, 1, 0]]
    model = wt.model(mlp(), output="logit")
    _, gradient = model.vjp(ROWS, lambda scores: -labels / scores)  # of the cross entropy
    expected = by_autograd(mlp(), ROWS, lambda z: nn.functional.cross_entropy(z, torch.tensor([0, 2, 1, 0]), reduction="sum"))
    np.testing.assert_allclose(gradient, expected, rtol=1e-9, atol=1e-12)


def test_gradients_go_through_convolutions_and_a_batch_norm_in_eval_mode():
    model = wt.model(conv_net(), output="logit", layout="NCHW")
    expected = by_autograd(conv_net(), IMAGES, lambda z: (TENSOR * z.softmax(1)).sum())
    np.testing.assert_allclose(model.vjp(IMAGES, WEIGHTS)[1], expected, rtol=1e-9, atol=1e-12)
    small = IMAGES[:1, :, :, :]
    near = by_differences(model, small, WEIGHTS[:1])
    np.testing.assert_allclose(model.vjp(small, WEIGHTS[:1])[1], near, rtol=1e-4, atol=1e-7)


def test_gradients_are_those_of_captum():
    attr = pytest.importorskip("captum.attr")
    expected = attr.Saliency(conv_net().eval()).attribute(torch.from_numpy(IMAGES), target=[0, 1, 2, 0], abs=False)
    np.testing.assert_allclose(wt.model(conv_net()).vjp(IMAGES, np.eye(3)[[0, 1, 2, 0]])[1], expected.detach().numpy(), rtol=1e-9, atol=1e-12)


PIXELS = np.moveaxis(BYTES, 1, -1).astype(np.float64)


@pytest.mark.parametrize("batch", [PIXELS, PIXELS.astype(np.uint8)])
def test_gradients_are_with_respect_to_the_batch_before_preprocess(batch):
    model = wt.model(conv_net(), preprocess=lambda x: ((x - 127.0) / 128).swapaxes(1, 3).swapaxes(2, 3))
    scores, gradient = model.vjp(batch, WEIGHTS)
    prepared = np.moveaxis((PIXELS - 127) / 128, -1, 1)
    np.testing.assert_allclose(scores, in_torch(conv_net(), prepared), rtol=1e-9)
    expected = np.moveaxis(by_autograd(conv_net(), prepared, lambda z: (TENSOR * z).sum()), 1, -1) / 128
    np.testing.assert_allclose(gradient, expected, rtol=1e-9, atol=1e-12)


def test_gradients_go_through_a_preprocess_that_is_a_module():
    centre = Centre().train()
    outputs, pull = TorchScores(mlp()).pullback(ROWS, centre)
    np.testing.assert_allclose(outputs, in_torch(mlp(), (ROWS - 127) / 128))
    expected = by_autograd(mlp(), (ROWS - 127) / 128, lambda z: (TENSOR * z).sum()) / 128
    np.testing.assert_allclose(pull(WEIGHTS), expected, rtol=1e-9, atol=1e-14)
    assert centre.drop.training


@pytest.mark.parametrize("preprocess", [lambda x: np.asarray(x) / 2, lambda x: x.detach().numpy() / 2, lambda x: x.detach() / 2,
                                        lambda x: x.astype(np.float32), lambda x: x.long()])
def test_a_preprocess_that_gradients_cannot_follow_is_one_clear_error(preprocess):
    with pytest.raises(TypeError, match=r"preprocess must work on torch tensors for gradients, as \(x - 127.0\) / 128 does"):
        TorchScores(mlp()).pullback(ROWS, preprocess)
    with pytest.raises(ValueError, match="preprocess must work on torch tensors"):
        wt.model(mlp(), preprocess=preprocess).vjp(ROWS, WEIGHTS)


def test_a_preprocess_in_which_bytes_wrap_around_is_refused():
    model = wt.model(conv_net(), preprocess=lambda x: (x - 127) / 128)  # uint8 - 127 is uint8 in numpy
    with pytest.raises(ValueError, match="whole numbers may wrap around"):
        model.vjp(BYTES, WEIGHTS)


def test_token_ids_have_no_gradients():
    with pytest.raises(TypeError, match="gradients need inputs that are real numbers, TextNet takes token ids"):
        TorchScores(seeded(TextNet)).pullback(np.zeros((2, 7), dtype=np.int32))


@pytest.mark.parametrize("forward", [lambda t: t.detach(), lambda t: t.round().long(), lambda t: (t * 0).detach() + nn.Parameter(torch.ones(3))])
def test_outputs_that_nothing_connects_with_the_inputs_are_one_clear_error(forward):
    with pytest.raises(ValueError, match="nothing connects its outputs with its inputs"):
        wt.model(Returns(forward)).vjp(ROWS, WEIGHTS)


def test_a_first_layer_that_works_in_place_has_gradients():
    net = nn.Sequential(nn.ReLU(inplace=True), mlp())
    expected = by_autograd(nn.Sequential(nn.ReLU(), mlp()), ROWS, lambda z: (TENSOR * z).sum())
    batch = ROWS.copy()
    np.testing.assert_allclose(wt.model(net).vjp(batch, WEIGHTS)[1], expected, rtol=1e-9)
    np.testing.assert_array_equal(batch, ROWS)


@pytest.mark.parametrize("context", [torch.no_grad, torch.inference_mode])
def test_gradients_do_not_depend_on_the_callers_context(context):
    expected = wt.model(mlp()).vjp(ROWS, WEIGHTS)[1]
    frozen = mlp().requires_grad_(False)
    with context():
        np.testing.assert_array_equal(wt.model(frozen).vjp(ROWS, WEIGHTS)[1], expected)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_gradients_of_half_precision_are_near_those_of_full(dtype):
    half = wt.model(mlp(dtype=dtype)).vjp(ROWS, WEIGHTS)[1]
    np.testing.assert_allclose(half, wt.model(mlp()).vjp(ROWS, WEIGHTS)[1], atol=0.05)


def test_pull_may_be_asked_again():
    _, pull = TorchScores(mlp()).pullback(ROWS)
    np.testing.assert_allclose(pull(WEIGHTS) + pull(-2 * WEIGHTS), -pull(WEIGHTS), rtol=1e-9)


class Checkpointed(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = conv_net()

    def forward(self, inputs):
        return torch.utils.checkpoint.checkpoint(self.inner, inputs, use_reentrant=False)


def test_a_checkpointed_module_is_run_again_in_eval_mode():
    net = Checkpointed().train()
    before = everything(net)
    gradient = wt.model(net).vjp(IMAGES, WEIGHTS)[1]
    assert_same(before, everything(net))
    np.testing.assert_allclose(gradient, wt.model(conv_net()).vjp(IMAGES, WEIGHTS)[1], rtol=1e-9, atol=1e-12)


def test_a_training_net_is_in_eval_mode_while_it_is_explained_and_training_afterwards():
    modes = []
    net = nn.Sequential(mlp(), nn.Dropout(0.9)).train()
    net.register_forward_hook(lambda module, _, __: modes.append([m.training for m in module.modules()]))
    model = wt.model(net)
    first = wt.explain(model, ROWS[0], background=ROWS, target=1, samples=40)
    assert not np.array(modes).any()
    assert all(m.training for m in net.modules())
    np.testing.assert_array_equal(first.scores, wt.explain(model, ROWS[0], background=ROWS, target=1, samples=40).scores)
    with pytest.raises(ValueError, match="target must be"):
        wt.explain(model, ROWS[0], background=ROWS, target=7, samples=40)
    assert all(m.training for m in net.modules())
    assert not model.function._is_asking


def test_another_thread_asks_for_itself_while_one_explains():
    net = nn.Sequential(mlp(), nn.Dropout(0.9)).train()
    function = wt.model(net).function
    expected = function(ROWS)
    answers = []
    with function.asking():
        thread = threading.Thread(target=lambda: answers.append((function._is_asking, function(ROWS))))
        thread.start()
        thread.join()
        assert function._is_asking
    assert answers[0][0] is False
    np.testing.assert_array_equal(answers[0][1], expected)


def test_asking_inside_asking_leaves_the_outer_one_as_it_was():
    function = wt.model(mlp(), fast=True).function
    with function.asking():
        with function.asking():
            assert function._is_asking
        assert function._is_asking
    assert not function._is_asking


def test_threads_that_ask_one_training_net_all_get_its_eval_answers():
    from concurrent.futures import ThreadPoolExecutor

    net = torch.nn.Sequential(torch.nn.Linear(40, 400), torch.nn.Dropout(0.5), torch.nn.Linear(400, 2)).train()
    model = wt.model(net)
    batch = np.random.default_rng(0).normal(size=(300, 40))
    expected = model(batch)
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda _: model(batch), range(60)))
    assert all(np.allclose(answer, expected, atol=1e-5) for answer in answers)
    assert all(module.training for module in net.modules())


@pytest.mark.parametrize(("options", "shape", "hint"), [
    ({}, (8, 8), r"shape \(1, 8, 8\), channels first.*image.convert\('RGB'\)"),
    ({}, (8, 8, 4), r"shape \(4, 8, 8\), channels first.*image.convert\('RGB'\)"),
    ({"layout": "NHWC"}, (8, 8, 3), r"shape \(8, 8, 3\), channels last.*layout='NCHW'"),
    ({"layout": "NHWC"}, (8, 8), r"shape \(8, 8\), no channels.*image.convert\('RGB'\).*layout='NCHW'"),
    ({"preprocess": lambda x: x / 255}, (8, 8, 3), r"shape \(8, 8, 3\).*channels moved in preprocess"),
])
def test_an_image_that_does_not_fit_the_net_is_told_what_to_try(options, shape, hint):
    with pytest.raises(ValueError, match=rf"Sequential raised RuntimeError: .*channels.*each input came with {hint}"):
        wt.explain(wt.model(conv_net(), **options), np.ones(shape), parts="grid:2x2")


def test_other_faults_of_a_net_come_without_a_hint_about_images():
    for model, batch in ((mlp(), np.ones((2, 4))), (wt.model(lambda images: 1 / 0), np.ones((2, 8, 8, 3)))):
        with pytest.raises(ValueError) as error:
            wt.model(model)(batch)
        assert "each input came" not in str(error.value)
