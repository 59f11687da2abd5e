"""Backward passes by a rule; the truth is captum's and zennit's on nets that they can read, and cases worked out by hand."""

import gc
import importlib.util
import subprocess
import sys
import threading
import warnings
import weakref
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import whytrust as wt
from whytrust.backends.torch_backward import RULES, follow

torch = pytest.importorskip("torch")
nn, F = torch.nn, torch.nn.functional
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:torch", "ignore:Setting backward hooks", "ignore:Input Tensor 0")
ORACLE = Path(__file__).with_name("zennit_oracle.py")


def seeded(make, seed=0):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return make()


def noise(*shape, seed=1):
    return seeded(lambda: torch.randn(*shape, dtype=torch.float64), seed)


def one_hot(outputs, target=1):
    seeds = torch.zeros_like(outputs)
    seeds[:, target] = 1
    return seeds


def pulled(rule, run, inputs, target=1):
    leaf = inputs.clone().requires_grad_()
    outputs = follow(rule, run, leaf)
    return torch.autograd.grad(outputs, leaf, one_hot(outputs, target))[0]


def lively(net):
    """In eval mode and float64, with batch norms that have statistics, shifts and scales of both signs."""
    def stir():
        for part in net.modules():
            if isinstance(part, nn.modules.batchnorm._BatchNorm):
                nn.init.normal_(part.running_mean), nn.init.uniform_(part.running_var, 0.5, 2)
                nn.init.normal_(part.weight), nn.init.normal_(part.bias)
    seeded(stir, 5)
    return net.double().eval()


class Net(nn.Module):
    """Convolutions, batch norm, both poolings and a residual; `bend(i)` is the rectifier at place i."""

    def __init__(self, bend):
        super().__init__()
        self.first, self.norm = nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4)
        self.second, self.third = nn.Conv2d(4, 5, 3, padding=1), nn.Conv2d(5, 4, 3, padding=1)
        self.hidden, self.head = nn.Linear(4 * 4, 8), nn.Linear(8, 3)
        self.bend = bend

    def forward(self, inputs):
        bend = self.bend
        below = F.max_pool2d(bend[0](self.norm(self.first(inputs))), 2)
        above = bend[2](self.third(bend[1](self.second(below))) + below)
        return self.head(bend[3](self.hidden(F.avg_pool2d(above, 2).flatten(1))))


def net(bend):
    return lively(seeded(lambda: Net(bend)))


IMAGES = noise(3, 3, 10, 10)
TWICE = nn.ReLU()
SPELLINGS = {
    "F.relu": F.relu, "torch.relu": torch.relu, "Tensor.relu": lambda x: x.relu(), "Tensor.relu_": lambda x: x.relu_(),
    "F.relu(inplace)": lambda x: F.relu(x, inplace=True), "nn.ReLU(inplace)": nn.ReLU(inplace=True), "one module many times": TWICE,
    "clamp(min=0)": lambda x: x.clamp(min=0), "clamp_": lambda x: x.clamp_(min=0), "clamp(min=0, max=1e9)": lambda x: x.clamp(0, 1e9),
    "clamp(tensor)": lambda x: x.clamp(min=torch.zeros((), dtype=x.dtype)), "clamp_min": lambda x: torch.clamp_min(x, 0),
    "clamp_min(tensor)": lambda x: torch.clamp_min(x, torch.zeros(1, dtype=x.dtype)), "threshold": lambda x: F.threshold(x, 0, 0),
    "threshold_": lambda x: F.threshold(x, 0, 0, inplace=True), "maximum": lambda x: torch.maximum(x, torch.zeros_like(x)),
    "maximum, zeros first": lambda x: torch.maximum(torch.zeros(1, dtype=x.dtype), x), "max": lambda x: torch.max(x, x.new_zeros(())),
    "fmax": lambda x: torch.fmax(x, torch.zeros_like(x)), "leaky without slope": lambda x: F.leaky_relu(x, 0.0),
    "hardtanh up to 1e9": lambda x: F.hardtanh(x, 0, 1e9), "in place on a view": lambda x: x.view(x.shape).relu_(),
    "a function in place on a view": lambda x: F.relu(x.flatten(), inplace=True).view(x.shape),
    "in place on a view, by name": lambda x: F.relu(input=x.view(x.shape), inplace=True),
    "in place on slices": lambda x: [x[:, :2].relu_(), x[:, 2:].clamp_(min=0), x][-1],
}


# --- guided and deconvnet ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def captum_says():
    attr = pytest.importorskip("captum.attr")
    twin = net(nn.ModuleList(nn.ReLU() for _ in range(4)))
    return {rule: method(twin).attribute(IMAGES.clone().requires_grad_(), target=1).detach()
            for rule, method in (("guided", attr.GuidedBackprop), ("deconvnet", attr.Deconvolution))}


@pytest.mark.parametrize("rule", ["guided", "deconvnet"])
@pytest.mark.parametrize("spelling", SPELLINGS)
def test_every_spelling_of_relu_has_what_captum_has_for_the_twin_with_modules(rule, spelling, captum_says):
    found = pulled(rule, net([SPELLINGS[spelling]] * 4), IMAGES)
    assert found.abs().max() > 1e-3
    np.testing.assert_allclose(found, captum_says[rule], rtol=0, atol=1e-10)


@pytest.mark.parametrize("rule", ["guided", "deconvnet"])
def test_float32_agrees_with_captum_too(rule, captum_says):
    found = pulled(rule, net([F.relu] * 4).float(), IMAGES.float())
    assert found.dtype == torch.float32
    np.testing.assert_allclose(found, captum_says[rule], rtol=0, atol=1e-5)


@pytest.mark.parametrize("rule", ["guided", "deconvnet"])
def test_linear_layers_on_tokens_hide_no_relu_that_works_in_place(rule):
    attr = pytest.importorskip("captum.attr")
    def make(inplace):
        return seeded(lambda: nn.Sequential(nn.Linear(6, 8), nn.ReLU(inplace), nn.Linear(8, 4), nn.Flatten(), nn.Linear(20, 3))).double()
    method = attr.GuidedBackprop if rule == "guided" else attr.Deconvolution
    tokens = noise(2, 5, 6)
    truth = method(make(False)).attribute(tokens.clone().requires_grad_(), target=1)
    np.testing.assert_allclose(pulled(rule, make(True), tokens), truth, atol=1e-12)


X = torch.tensor([[-2.0, -0.5, 0.5, 2.0, 7.0, 1.0]], dtype=torch.float64)
SEEDS = torch.tensor([[3.0, -1.0, 2.0, -4.0, 5.0, 6.0]], dtype=torch.float64)
E2, E5 = 2 * np.exp(-2), 2 * np.exp(-0.5)
BY_HAND = [
    ("guided", F.relu6, [0, 0, 2, 0, 0, 6]),
    ("deconvnet", F.relu6, [3, 0, 2, 0, 5, 6]),
    ("guided", lambda x: x.clamp(0, 6), [0, 0, 2, 0, 0, 6]),
    ("guided", lambda x: F.leaky_relu(x, 0.1), [0.3, 0, 2, 0, 5, 6]),
    ("deconvnet", lambda x: F.leaky_relu(x, 0.1), [3, -0.1, 2, -0.4, 5, 6]),
    ("guided", lambda x: F.leaky_relu(x.clone(), 0.1, inplace=True), [0.3, 0, 2, 0, 5, 6]),
    ("deconvnet", lambda x: F.leaky_relu(x.clone(), 0.1, inplace=True), [3, -0.1, 2, -0.4, 5, 6]),
    ("guided", lambda x: F.elu(x, 2.0), [3 * E2, 0, 2, 0, 5, 6]),
    ("guided", lambda x: F.elu(x.clone(), 2.0, inplace=True), [3 * E2, 0, 2, 0, 5, 6]),
    ("guided", lambda x: F.celu(x, 1.0), [1.5 * E2, 0, 2, 0, 5, 6]),
    ("guided", F.selu, list(1.0507009873554805 * np.array([3 * 1.6732632423543772 * E2 / 2, 0, 2, 0, 5, 6]))),
    ("guided", F.softplus, list(np.array([3, 0, 2, 0, 5, 6]) / (1 + np.exp(-X[0].numpy())))),
    ("guided", lambda x: F.prelu(x, x.new_full((6,), 0.25)), [0.75, 0, 2, 0, 5, 6]),
    ("guided", lambda x: F.rrelu(x, 0.1, 0.3), [0.6, 0, 2, 0, 5, 6]),
    # not rectifiers: the derivative itself
    ("guided", lambda x: put_into(x)[:1], [3, -1, 4, -8, 10, 12]),
    ("guided", lambda x: F.hardtanh(x, -1, 1), [0, -1, 2, 0, 0, 0]),
    ("deconvnet", lambda x: x.clamp(min=1e-6), [0, 0, 2, -4, 5, 6]),
    ("deconvnet", lambda x: x.clamp(max=1.5), [3, -1, 2, 0, 0, 6]),
    ("deconvnet", lambda x: torch.maximum(x, torch.full_like(x, 1e-6)), [0, 0, 2, -4, 5, 6]),
    ("deconvnet", lambda x: torch.maximum(x, 0 * x), [0, 0, 2, -4, 5, 6]),
    ("guided", lambda x: torch.maximum(x, -x), [-3, 1, 2, -4, 5, 6]),
    ("guided", torch.tanh, list(SEEDS[0].numpy() / np.cosh(X[0].numpy()) ** 2)),
    ("deconvnet", torch.sigmoid, list(SEEDS[0].numpy() / (2 * np.cosh(X[0].numpy() / 2)) ** 2)),
]


@pytest.mark.parametrize(("rule", "bend", "truth"), BY_HAND)
def test_single_activations_are_as_worked_out_by_hand(rule, bend, truth):
    leaf = X.clone().requires_grad_()
    found, = torch.autograd.grad(follow(rule, bend, leaf), leaf, SEEDS)
    np.testing.assert_allclose(found[0], truth, atol=1e-12)


def test_a_maximum_that_spreads_its_input_sums_over_the_spread():
    leaf = torch.tensor([[-1.0, 2.0]], requires_grad=True)
    outputs = follow("deconvnet", lambda x: torch.maximum(x, torch.zeros(3, 2)), leaf)
    found, = torch.autograd.grad(outputs, leaf, torch.tensor([[1.0, -1], [2, 3], [-5, 4]]))
    np.testing.assert_allclose(found, [[3, 7]])


class Hiding(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clamp(min=0)

    @staticmethod
    def backward(ctx, gradient):
        return gradient


class Copy(Hiding):
    """Named as one of torch's own nodes."""


def scripted():
    module = torch.jit.script(nn.Sequential(nn.Linear(6, 4), nn.ReLU(), nn.Linear(4, 3)).double())
    for _ in range(3):  # the executor sees through the first calls
        module(X.clone().requires_grad_())
    return module


def traced():
    with warnings.catch_warnings(action="ignore"):
        return torch.jit.trace(nn.Sequential(nn.Linear(6, 6), nn.Unflatten(1, (2, 3)), nn.ReLU(inplace=True)).double(), X)


TRACED = traced()


def put_into(x):
    made = torch.zeros(2, 6, dtype=x.dtype)
    made[0] = x[0]
    made[:, 2:].mul_(2)
    return made


def checkpointed(x):
    return torch.utils.checkpoint.checkpoint(nn.ReLU(), x * 1, use_reentrant=True)


REFUSED = [
    ("both", F.gelu, "GELU"), ("both", lambda x: F.gelu(x, approximate="tanh"), "GELU"), ("both", F.silu, "SiLU"), ("both", F.mish, "Mish"),
    ("both", F.hardswish, "Hardswish"), ("both", lambda x: x * torch.sigmoid(x), "SiLU"), ("both", lambda x: torch.sigmoid(x) * x, "SiLU"),
    ("both", lambda x: 0.5 * x * (1 + torch.erf(x / 2**0.5)), "erf"), ("both", lambda x: F.silu((x * 1).view(2, 3), inplace=True), "SiLU"),
    ("both", lambda x: F.leaky_relu(x, -0.1), "LeakyReLU with the negative slope -0.1"), ("both", lambda x: F.threshold(x, 1, 0), "threshold at 1"),
    ("both", lambda x: F.elu(x, -1.0), "ELU or SELU with a negative slope"), ("both", lambda x: F.prelu(x, -torch.ones(6).double()), "PReLU with a negative slope"),
    ("both", Hiding.apply, r"custom autograd function \(Hiding\)"),
    ("both", lambda x: scripted()(x), "a scripted module"), ("both", lambda x: TRACED(x).flatten(1) + 1, "in-place work on a view where Python does not see it"), ("both", checkpointed, "a checkpointed module"),
    ("deconvnet", F.elu, "ELU"), ("deconvnet", F.selu, "SELU"), ("deconvnet", F.celu, "CELU"), ("deconvnet", F.softplus, "Softplus"),
    ("deconvnet", lambda x: F.prelu(x, torch.ones(6).double()), "PReLU"), ("deconvnet", F.rrelu, "RReLU"),
]


@pytest.mark.parametrize(("rules", "run", "words"), REFUSED)
def test_what_a_rule_cannot_pass_is_refused_in_plain_words(rules, run, words):
    for rule in ("guided", "deconvnet") if rules == "both" else (rules,):
        with pytest.raises(ValueError, match=rf"needs a module .*this one has .*{words}.*; use saliency or integrated_gradients"):
            follow(rule, run, X.clone().requires_grad_())


@pytest.mark.parametrize("rule", RULES)
def test_what_does_not_depend_on_the_input_does_not_matter(rule):
    weight = noise(6, 6).requires_grad_()
    run = lambda x: F.linear(x, F.gelu(weight) * Hiding.apply(weight))  # noqa: E731
    plain = F.linear(X, (F.gelu(weight) * Hiding.apply(weight)).detach())
    np.testing.assert_allclose(follow(rule, run, X.clone().requires_grad_()).detach(), plain)


def test_checkpoints_that_the_graph_can_be_seen_through_are_followed():
    module = net([F.relu] * 4)
    run = lambda x: torch.utils.checkpoint.checkpoint(module, x * 1, use_reentrant=False)  # noqa: E731
    np.testing.assert_allclose(pulled("guided", run, IMAGES), pulled("guided", module, IMAGES), atol=1e-12)


def test_rules_that_are_none_and_runs_that_give_no_tensor_are_refused():
    with pytest.raises(ValueError, match="rule must be one of guided, deconvnet, excitation, got 'lrp'"):
        follow("lrp", F.relu, X.clone().requires_grad_())
    for rule in RULES:
        with pytest.raises(TypeError, match="must return a tensor of scores, got tuple"):
            follow(rule, lambda x: (x,), X.clone().requires_grad_())


# --- compiled modules -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", RULES)
def test_compiled_modules_are_seen_through_and_stay_compiled(rule):
    module = seeded(lambda: nn.Sequential(nn.Linear(6, 8), nn.Unflatten(1, (2, 4)), nn.ReLU(inplace=True), nn.Flatten(), nn.Linear(8, 3))).double().eval()
    quick = torch.compile(module, backend="aot_eager")
    leaf = X.clone().requires_grad_()
    assert quick(leaf).grad_fn.name() == "CompiledFunctionBackward"
    for _ in range(10):
        np.testing.assert_array_equal(pulled(rule, quick, X), pulled(rule, module, X))
    assert quick(leaf).grad_fn.name() == "CompiledFunctionBackward"


class Partly(nn.Module):
    """A net of which one part alone is compiled."""

    def __init__(self, part):
        super().__init__()
        self.part, self.last = part, nn.Linear(4, 3).double()
        nn.init.constant_(self.last.weight, 0.1)

    def forward(self, x):
        return self.last(self.part(x).mean((2, 3)))


@pytest.mark.parametrize("method", ["guided_backprop", "deconvnet", "excitation_backprop", "grad_cam", "saliency"])
@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("made", ["net", "part", "in place"])
def test_a_compiled_net_is_explained_as_the_net_is(method, whole, made):
    """In any order: what was compiled already by an earlier question must not matter."""
    def part():
        return seeded(lambda: nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Conv2d(4, 4, 3), nn.ReLU())).double().eval()

    torch.compiler.reset()
    image, given = np.random.default_rng(0).normal(size=(1, 8, 8)), {"target": 1, "parts": "grid:2x2"}
    plain, options = Partly(part()).eval(), {"backend": "aot_eager", "fullgraph": whole}
    expected = wt.explain(wt.model(plain), image, method, **given)
    quick = Partly(torch.compile(part(), **options) if made == "part" else part()).eval()
    if made == "in place":
        quick.compile(**options)
    model = wt.model(torch.compile(quick, **options) if made == "net" else quick)
    for asked in (False, True):
        if asked:
            model(image[None])  # from here on there is something compiled
        found = wt.explain(model, image, method, **given)
        np.testing.assert_allclose(found.scores, expected.scores, rtol=1e-9)
    assert expected.scores.any()
    if method == "grad_cam":
        assert found.settings["layer"] == ("part" if made != "part" else found.settings["layer"])
        if made != "part":
            named = wt.explain(model, image, method, layer="part.0", **given)
            np.testing.assert_allclose(named.scores, wt.explain(plain, image, method, layer="part.0", **given).scores, rtol=1e-9)


def test_what_a_compiler_made_before_is_refused():
    quick = torch.compile(lambda x: x.relu() * 2, backend="aot_eager")
    leaf = X.clone().requires_grad_()
    made = quick(leaf)
    for rule in RULES:
        with pytest.raises(ValueError, match=r"has a compiled module.*; use saliency or integrated_gradients"):
            follow(rule, lambda x: made + x, leaf)


def test_modules_that_must_be_compiled_as_a_whole_are_refused():
    quick = torch.compile(nn.Linear(6, 3).double(), backend="aot_eager", fullgraph=True)
    for rule in RULES:
        with pytest.raises(ValueError, match=r"operations can be seen, and this one is compiled as a whole: .*leave fullgraph out"):
            follow(rule, quick, X.clone().requires_grad_())


# --- every rule -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", RULES)
def test_scores_are_the_modules_own_and_run_is_called_once(rule):
    calls, module = [], net([F.relu] * 4)
    outputs = follow(rule, lambda x: calls.append(1) or module(x), IMAGES.clone().requires_grad_())
    assert len(calls) == 1
    np.testing.assert_allclose(outputs.detach(), module(IMAGES).detach(), atol=1e-12)


@pytest.mark.parametrize("rule", RULES)
def test_the_same_graph_can_be_pulled_twice_and_rows_do_not_mix(rule):
    leaf = IMAGES.clone().requires_grad_()
    outputs = follow(rule, net([nn.ReLU(inplace=True)] * 4), leaf)
    first, second = (torch.autograd.grad(outputs, leaf, one_hot(outputs), retain_graph=True)[0] for _ in range(2))
    np.testing.assert_array_equal(first, second)
    np.testing.assert_allclose(first[1:2], pulled(rule, net([F.relu] * 4), IMAGES[1:2]), atol=1e-12)


def state(module):
    hooks = [(dict(part._forward_hooks), dict(part._forward_pre_hooks), dict(part._backward_hooks), part.training, set(vars(part)))
             for part in module.modules()]
    return hooks, [(id(p), p.requires_grad, p.grad, p._version, p.detach().numpy().tobytes()) for p in module.parameters()]


@pytest.mark.parametrize("rule", RULES)
def test_the_module_is_left_as_it_was_even_after_an_exception(rule):
    module = net(nn.ModuleList(nn.ReLU() for _ in range(4)))
    before, plain = state(module), torch.autograd.functional.jacobian(lambda x: module(x).sum(0), IMAGES)
    pulled(rule, module, IMAGES)

    def breaks(x):
        module(x)
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        follow(rule, breaks, IMAGES.clone().requires_grad_())
    assert state(module) == before
    assert not torch.overrides._get_current_function_mode_stack()
    after = torch.autograd.functional.jacobian(lambda x: module(x).sum(0), IMAGES)
    np.testing.assert_array_equal(plain, after)


@pytest.mark.parametrize("rule", RULES)
def test_the_graph_dies_with_the_outputs_without_the_garbage_collector(rule):
    module = net([F.relu, nn.ReLU(inplace=True), lambda x: x.view(x.shape).relu_(), F.relu])
    kept = []

    def run(x):
        copy = x.clone()
        copy.register_hook(Watched(kept))  # is alive as long as the graph
        return module(copy)

    gc.collect()
    gc.disable()
    try:
        leaf = IMAGES.clone().requires_grad_()
        outputs = follow(rule, run, leaf)
        torch.autograd.grad(outputs, leaf, one_hot(outputs), retain_graph=True)
        assert kept[-1]() is not None
        del outputs
        assert all(graph() is None for graph in kept)
    finally:
        gc.enable()


class Watched:
    def __init__(self, kept):
        kept.append(weakref.ref(self))

    def __call__(self, gradient):
        return None


def test_threads_with_different_rules_do_not_disturb_each_other():
    module, answers = net([F.relu] * 4), {}
    truth = {rule: pulled(rule, module, IMAGES) for rule in RULES}
    start = threading.Barrier(len(RULES))

    def work(rule):
        start.wait()
        answers[rule] = [pulled(rule, module, IMAGES) for _ in range(5)]

    threads = [threading.Thread(target=work, args=(rule,)) for rule in RULES]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for rule in RULES:
        for found in answers[rule]:
            np.testing.assert_allclose(found, truth[rule], atol=1e-12)


# --- excitation -------------------------------------------------------------------------------------------------------


def part(kind, **options):
    """(kind, options, state) of a module of torch.nn with weights of its own: what the oracle builds it from."""
    module = lively(getattr(nn, kind)(**options))
    return kind, options, {key: value.clone() for key, value in module.state_dict().items()}


def conv(before, after, **options):
    return part("Conv2d", in_channels=before, out_channels=after, kernel_size=3, **options)


TINY = 1e-14  # zennit merges a batch norm with its eps, and then divides by sqrt(1 + eps) once more


def norm(channels, seed):
    kind, options, held = part("BatchNorm2d", num_features=channels, eps=TINY)
    held["weight"], held["bias"] = noise(channels, seed=seed), noise(channels, seed=seed + 1)
    return kind, options, held


def plans():
    relu, flat = part("ReLU"), part("Flatten")
    head = part("Linear", in_features=4, out_features=3)
    gap = part("AdaptiveAvgPool2d", output_size=1)
    branch = [conv(4, 4, padding=1), norm(4, 7), relu, conv(4, 4, padding=1), norm(4, 9), relu]
    return {
        "plain": [conv(3, 4), relu, conv(4, 4, stride=2, bias=False), relu, gap, flat, head],
        "pools": [conv(3, 4), relu, part("MaxPool2d", kernel_size=2), conv(4, 4, padding=1, groups=2), relu,
                  part("AvgPool2d", kernel_size=2), flat, part("Linear", in_features=16, out_features=6), relu,
                  part("Linear", in_features=6, out_features=3)],
        "norms": [conv(3, 4), norm(4, 1), relu, conv(4, 4, dilation=2), norm(4, 3), relu, gap, flat, head],
        "residual": [conv(3, 4), norm(4, 5), relu, ("residual", (branch, [conv(4, 4, padding=1), relu]), None),
                     ("residual", (branch, []), None), gap, flat, head],
        "dense": [flat, part("Linear", in_features=300, out_features=9), part("BatchNorm1d", num_features=9, eps=TINY), relu,
                  part("Linear", in_features=9, out_features=3)],
        "transposed": [part("ConvTranspose2d", in_channels=3, out_channels=4, kernel_size=3, stride=2), norm(4, 11), relu, gap, flat, head],
    }


class Sum(nn.Module):
    def __init__(self, one, two):
        super().__init__()
        self.one, self.two = one, two

    def forward(self, inputs):
        return self.one(inputs) + self.two(inputs)


def built(plan, inplace=False):
    """The same net with an ordinary sum, and with ReLUs in place if so wished."""
    made = []
    for kind, options, held in plan:
        if kind == "residual":
            made.append(Sum(built(options[0]), built(options[1])))
        elif kind == "ReLU":
            made.append(nn.ReLU(inplace))
        else:
            made.append(getattr(nn, kind)(**options).double())
            made[-1].load_state_dict(held)
    return nn.Sequential(*made).eval()


@pytest.fixture(scope="module")
def zennit_says(tmp_path_factory):
    if importlib.util.find_spec("zennit") is None:
        pytest.skip("zennit, the oracle, is not installed: pip install --no-deps zennit==0.5.1")
    folder = tmp_path_factory.mktemp("zennit")
    nets = seeded(plans, 3)
    seeds = torch.zeros(3, 3, dtype=torch.float64)
    seeds[:, 1] = 1
    torch.save({name: (plan, IMAGES, seeds) for name, plan in nets.items()}, folder / "nets.pt")
    done = subprocess.run([sys.executable, str(ORACLE), str(folder / "nets.pt"), str(folder / "answers.npz")],
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return nets, np.load(folder / "answers.npz")


@pytest.mark.parametrize("inplace", [False, True])
@pytest.mark.parametrize("name", ["plain", "pools", "norms", "residual", "dense", "transposed"])
def test_excitation_is_what_zennit_says(name, inplace, zennit_says):
    nets, answers = zennit_says
    found = pulled("excitation", built(nets[name], inplace), IMAGES)
    assert found.abs().max() > 1e-4
    np.testing.assert_allclose(found, answers[name], rtol=0, atol=1e-9)


def probabilities(run, inputs, seeds):
    leaf = torch.tensor(inputs, dtype=torch.float64).requires_grad_()
    return torch.autograd.grad(follow("excitation", run, leaf), leaf, torch.tensor(seeds, dtype=torch.float64))[0].numpy()


W = torch.tensor([[1.0, -2.0, 3.0], [-1.0, -1.0, 4.0]], dtype=torch.float64)
SHARES = [
    # x⁺W⁺ + x⁻W⁻ of the first unit are 2, 2, 0 and of the second 0, 1, 0
    (lambda x: F.linear(x, W, torch.ones(2).double()), [[2, -1, -5]], [[1, 0]], [[0.5, 0.5, 0]]),
    (lambda x: F.linear(x, weight=W), [[2, -1, -5]], [[0, 1]], [[0, 1, 0]]),
    (lambda x: x @ W.T, [[2, -1, -5]], [[1, 1]], [[0.5, 1.5, 0]]),
    (lambda x: torch.matmul(W, x), [[2, 1], [-1, 1], [-5, 1]], [[1, 0], [0, 0]], [[0.5, 0], [0.5, 0], [0, 0]]),
    (lambda x: F.linear(x, W), [[-1, 1, 0]], [[1, 0]], [[0, 0, 0]]),  # nothing adds: lost
    (lambda x: x.mean(1), [[1, 3, -5]], [1], [[0.25, 0.75, 0]]),
    (lambda x: x.sum(1, keepdim=True), [[-1, -3, -5]], [[3]], [[1, 1, 1]]),
    (lambda x: F.avg_pool1d(x[None], 2, padding=1)[0], [[2, 1, 3, -1]], [[1, 1, 1]], [[1, 0.25, 0.75, 1]]),
    (lambda x: F.adaptive_avg_pool1d(x[None], 2)[0], [[2, 2, 1, 3]], [[1, 1]], [[0.5, 0.5, 0.25, 0.75]]),
    (lambda x: F.max_pool1d(x[None], 2)[0], [[2, 1, 3, -1]], [[1, 1]], [[1, 0, 1, 0]]),
    (lambda x: F.adaptive_max_pool1d(x[None], 1)[0], [[2, 1, 3, -1]], [[1]], [[0, 0, 1, 0]]),
    (lambda x: x.max(1).values, [[2, 1, 3, -1]], [1], [[0, 0, 1, 0]]),
    (lambda x: x[:, :2] + x[:, 2:], [[1, -1, 3, -1]], [[1, 1]], [[0.25, 0.5, 0.75, 0.5]]),
    (lambda x: torch.add(x[:, :2], x[:, 2:], alpha=2), [[1, -1, 1.5, -1]], [[1, 1]], [[0.25, 0.5, 0.75, 0.5]]),
    (lambda x: x[:, :1] + x[:, 1:], [[1, 1, 3]], [[1, 1]], [[0.75, 0.5, 0.75]]),
    (lambda x: sum([x[:, :1], x[:, 1:2], x[:, 2:]]), [[1, 2, 3]], [[1]], [[1 / 6, 2 / 6, 3 / 6]]),
    (lambda x: x * torch.ones(2, 1, 3).double(), [[1, 2, 3]], [[[1, 2, 3]], [[4, 5, 6]]], [[5, 7, 9]]),
    (lambda x: 2 * (1 - x) / 3 - 4, [[1, 2, 3]], [[1, 2, 3]], [[1, 2, 3]]),
    (lambda x: F.interpolate(x[None], scale_factor=2, mode="nearest")[0], [[1, 2]], [[1, 2, 3, 4]], [[3, 7]]),
    (lambda x: F.interpolate(x[None], size=3, mode="linear", align_corners=True)[0], [[1, 3]], [[1, 2, 3]], [[1.5, 4.5]]),
]


@pytest.mark.parametrize(("run", "inputs", "seeds", "truth"), SHARES)
def test_shares_are_as_worked_out_by_hand(run, inputs, seeds, truth):
    np.testing.assert_allclose(probabilities(run, inputs, seeds), truth, atol=1e-12)


ROUTED = [
    lambda x: x.reshape(3, 2).T.flatten(), lambda x: torch.cat([x[:, 3:], x[:, :3]], 1), lambda x: torch.stack([x, x]), lambda x: F.pad(x, (1, 2)),
    lambda x: x.view(1, 2, 3).permute(0, 2, 1).contiguous().transpose(1, 2), lambda x: x.squeeze(0).unsqueeze(1).clone(), lambda x: x.float().to(torch.float64),
    lambda x: x.expand(4, 6), lambda x: x.repeat(2, 1), lambda x: torch.cat(x.chunk(2, 1)), lambda x: torch.cat(x.split([2, 4], 1), 1), lambda x: x[:, [5, 0, 0]],
    lambda x: x.flip(1).roll(1, 1), lambda x: torch.where(x > 0, x, 0.0), lambda x: x.masked_fill(x < 0, 0), lambda x: x.unbind(1)[2], lambda x: x.narrow(1, 1, 2),
    lambda x: x.index_select(1, torch.tensor([1, 3])), lambda x: F.pixel_shuffle(x[:, :4, None, None], 2), lambda x: F.pad(x[None], (1, 1), mode="reflect"),
    lambda x: x.unfold(1, 3, 1), lambda x: x.gather(1, torch.tensor([[2, 2]])), lambda x: x.type_as(x).movedim(0, 1), lambda x: x.mT.view_as(x.mT), lambda x: x.topk(2).values,
    lambda x: x.new_zeros(2, 6).copy_(x), lambda x: set_item(x), lambda x: F.pad(x[None], (1, 1), mode="circular"), lambda x: x.amax(1), lambda x: x.view(2, 3).tril(),
    lambda x: F.max_pool2d(x.view(1, 1, 2, 3), 2, return_indices=True)[0], lambda x: x.view(1, 1, 2, 3).detach().sum() * 0 + x,
]


def set_item(x):
    made = torch.zeros(2, 8, dtype=x.dtype)
    made[0, 1:7] = x[0]
    return made


@pytest.mark.parametrize("run", ROUTED)
def test_what_only_moves_numbers_has_its_own_derivative(run):
    leaf = X.clone().requires_grad_()
    plain, outputs = run(leaf), follow("excitation", run, leaf)
    seeds = noise(*plain.shape).abs()
    np.testing.assert_allclose(torch.autograd.grad(outputs, leaf, seeds)[0], torch.autograd.grad(plain, leaf, seeds)[0])


PASSED = [
    F.relu, torch.relu_, lambda x: F.relu(x, inplace=True), F.relu6, nn.ReLU6(True), F.gelu, F.silu, nn.SiLU(True), F.mish, F.hardswish, nn.Hardswish(True),
    torch.sigmoid, torch.sigmoid_, torch.tanh, lambda x: x.tanh_(), F.softplus, F.softsign, F.tanhshrink, F.logsigmoid, F.elu, nn.ELU(inplace=True), F.selu,
    nn.SELU(True), F.celu, F.leaky_relu, nn.LeakyReLU(0.1, True), F.rrelu, F.hardtanh, nn.Hardtanh(inplace=True), F.hardsigmoid, nn.PReLU().double(),
    lambda x: x.clamp(0), lambda x: x.clamp_(0), lambda x: torch.maximum(x, torch.zeros_like(x)), lambda x: torch.max(torch.zeros_like(x), x), torch.abs,
    nn.Dropout(0.5).eval(), nn.Dropout(0.5, inplace=True).eval(), nn.AlphaDropout().eval(), lambda x: x.exp().log1p().sqrt(), lambda x: x**2, lambda x: -x,
    lambda x: x.add_(1).mul_(2).sub_(3).div_(4), lambda x: x.view(2, 3).relu_(), lambda x: torch.zeros_like(x).add_(x), nn.Parameter(X[0]).mul,
    nn.BatchNorm1d(6).double().eval(), lambda x: x - nn.Parameter(X[0]), nn.Identity(),
]


@pytest.mark.parametrize("run", PASSED)
def test_what_is_done_to_each_number_alone_hands_probability_on_and_has_torchs_values(run):
    leaf, seeds = X.clone().requires_grad_(), SEEDS.abs()
    def on_a_copy(x):
        return run(x.clone())
    outputs = follow("excitation", on_a_copy, leaf)
    np.testing.assert_allclose(outputs.detach(), on_a_copy(X).detach())
    np.testing.assert_allclose(torch.autograd.grad(outputs, leaf, seeds.view(outputs.shape))[0], seeds)
    np.testing.assert_array_equal(leaf.detach(), X)


def test_in_place_operations_change_the_callers_tensor_and_its_base_and_go_on_from_there():
    def run(x):
        mine = x.clone()
        assert mine[:, :2].relu_().data_ptr() == mine.data_ptr()
        before = mine
        mine += 1
        assert mine is before
        mine[:, 2:] *= 2
        return mine
    leaf = X.clone().requires_grad_()
    outputs = follow("excitation", run, leaf)
    np.testing.assert_array_equal(outputs.detach(), [[1, 1, 3, 6, 16, 4]])
    np.testing.assert_allclose(torch.autograd.grad(outputs, leaf, SEEDS.abs())[0], SEEDS.abs())


@pytest.mark.parametrize("rule", RULES)
def test_a_leaf_is_not_changed_in_place(rule):
    leaf = X.clone().requires_grad_()
    with pytest.raises(RuntimeError, match="leaf Variable that requires grad"):
        follow(rule, torch.relu_, leaf)
    np.testing.assert_array_equal(leaf.detach(), X)


NOT_EXCITED = [
    (lambda x: x * x.mean(1, keepdim=True), "mul of 2 tensors"), (lambda x: x - x.flip(1), "sub of 2 tensors"), (lambda x: torch.maximum(x, x.flip(1)), "maximum of 2"),
    (lambda x: x @ x.T, "matmul"), (lambda x: F.softmax(x, 1), "softmax"), (lambda x: F.layer_norm(x, (6,)), "layer_norm"), (lambda x: F.group_norm(x, 2), "group_norm"),
    (lambda x: F.instance_norm(x[None]), "instance_norm"), (lambda x: F.scaled_dot_product_attention(x, x, x), "scaled_dot_product_attention"), (F.normalize, "normalize"),
    (lambda x: F.batch_norm(x, None, None, training=True), "batch norm without running statistics"), (lambda x: x.cumsum(1), "cumsum"), (lambda x: x.clone().cumsum_(1), "cumsum_"),
    (lambda x: F.conv1d(x[None], x[None]), "conv1d whose weights or bias were made of the input"), (lambda x: F.glu(x), "glu"), (lambda x: x.std(), "std"),
    (lambda x: F.interpolate(x.view(1, 1, 2, 3), scale_factor=2, mode="bicubic"), "bicubic"), (Hiding.apply, r"custom autograd function \(Hiding\)"),
    (Copy.apply, r"custom autograd function \(Copy\)"), (lambda x: Hiding.apply(x) + 1, r"custom autograd function \(Hiding\)"),
    (lambda x: scripted()(x), "a scripted module"), (lambda x: torch.jit.script(nn.Linear(6, 3).double())(x), "where Python does not see it"),
    (checkpointed, "a checkpointed module"), (lambda x: torch.utils.checkpoint.checkpoint(torch.relu, x * 1, use_reentrant=False), "a checkpointed module"), (lambda x: nn.LSTM(6, 3).double()(x)[0], "lstm"), (lambda x: nn.MultiheadAttention(6, 2).double()(x, x, x)[0], "multi_head_attention_forward"),
    (lambda x: torch.einsum("ij,kj->ik", x, X), "einsum"), (lambda x: x.prod(1), "prod"),
]


@pytest.mark.parametrize(("run", "words"), NOT_EXCITED)
@pytest.mark.filterwarnings("ignore")
def test_excitation_refuses_what_probability_cannot_pass(run, words):
    with pytest.raises(ValueError, match=rf"needs a module of .* has .*{words}.*; use saliency or integrated_gradients"):
        follow("excitation", run, X.clone().requires_grad_())


def test_what_is_not_followed_by_gradients_is_free():
    def run(x):
        with torch.no_grad():
            weights = x * x + F.softmax(x, 1)
        scale = x.detach().std() + F.softmax(x.data, 1).sum() + x.shape[0] + x.size(1) + x.dim() + float(x.argmax() > 0) + weights.sum().item()
        assert x.device.type == "cpu"
        assert x.is_floating_point()
        return x * scale
    np.testing.assert_allclose(probabilities(run, [[1, 2, 3]], [[1, 2, 3]]), [[1, 2, 3]])


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_excitation_is_the_same_for_every_spelling_of_relu(spelling):
    np.testing.assert_allclose(pulled("excitation", net([SPELLINGS[spelling]] * 4), IMAGES), pulled("excitation", net([F.relu] * 4), IMAGES), atol=1e-12)


@st.composite
def random_nets(draw):
    """A small net of convolutions with batch norms, activations, pools and residuals; biases cannot make dead ends in it."""
    def number(*options):
        return draw(st.sampled_from(options))
    width, seed = number(2, 3), draw(st.integers(0, 10**6))
    parts = [nn.Conv2d(2, width, 3, padding=1), nn.BatchNorm2d(width), number(nn.ReLU(), nn.ReLU(True), nn.Softplus())]
    for _ in range(draw(st.integers(1, 2))):
        block = nn.Sequential(nn.Conv2d(width, width, 3, padding=1, groups=number(1, width)), nn.BatchNorm2d(width), nn.ReLU())
        parts += [number(block, Sum(block, nn.Identity())), number(nn.MaxPool2d(2), nn.AvgPool2d(2), nn.AvgPool2d(3, 1, 1), nn.Identity())]
    module = nn.Sequential(*parts, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, 3))
    def fill():
        for each in module.parameters():
            nn.init.normal_(each)
    seeded(fill, seed)
    return lively(module), noise(2, 2, 6, 6, seed=seed)


@settings(max_examples=25, deadline=None, derandomize=True)
@given(random_nets())
def test_probabilities_are_never_negative_and_never_sum_to_more_than_one(drawn):
    module, images = drawn
    found = pulled("excitation", module, images)
    sums = found.sum((1, 2, 3)).numpy()
    assert found.min() >= 0
    assert (sums <= 1 + 1e-9).all()


@settings(max_examples=15, deadline=None, derandomize=True)
@given(random_nets(), st.booleans())
def test_probabilities_sum_to_one_where_something_adds_to_every_unit(drawn, inplace):
    module, images = drawn
    for each in module.modules():
        if isinstance(each, nn.Conv2d | nn.Linear):  # positive weights on positive inputs: no unit lives of its bias alone
            each.weight.data.abs_()
        elif isinstance(each, nn.BatchNorm2d):
            each.weight.data.abs_().add_(0.1), each.bias.data.abs_(), each.running_mean.zero_()
    np.testing.assert_allclose(pulled("excitation", module, images.abs() + 0.1).sum((1, 2, 3)), 1, atol=1e-9)


@settings(max_examples=15, deadline=None, derandomize=True)
@given(random_nets())
def test_batch_norms_folded_into_their_convolutions_change_nothing(drawn):
    module, images = drawn
    before = pulled("excitation", module, images)
    for block in module.modules():
        if isinstance(block, nn.Sequential):
            for place in range(len(block) - 1):
                if isinstance(block[place], nn.Conv2d) and isinstance(block[place + 1], nn.BatchNorm2d):
                    block[place] = nn.utils.fusion.fuse_conv_bn_eval(block[place], block[place + 1])
                    block[place + 1] = nn.Identity()
    np.testing.assert_allclose(pulled("excitation", module, images), before, atol=1e-9)


@pytest.mark.parametrize("groups", [1, 2])
def test_batch_norms_fold_into_transposed_convolutions_of_groups_too(groups):
    pair = lively(seeded(lambda: nn.Sequential(nn.ConvTranspose1d(4, 6, 3, groups=groups), nn.BatchNorm1d(6))))
    tied = lively(seeded(lambda: nn.ConvTranspose1d(4, 6, 3, groups=groups)))
    with torch.no_grad():
        tied.load_state_dict(pair[0].state_dict())
        scale = pair[1].weight / (pair[1].running_var + pair[1].eps).sqrt()
        for out in range(6):
            group, place = divmod(out, 6 // groups)
            tied.weight[group * 4 // groups:(group + 1) * 4 // groups, place] *= scale[out]
    np.testing.assert_allclose(pulled("excitation", pair, noise(2, 4, 5), 3), pulled("excitation", tied, noise(2, 4, 5), 3), atol=1e-12)


def test_a_batch_norm_that_is_not_directly_after_weights_hands_probability_on():
    before = lively(seeded(lambda: nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.BatchNorm2d(4))))
    found, plain = pulled("excitation", before, IMAGES), pulled("excitation", before[:2], IMAGES)
    np.testing.assert_allclose(found, plain, atol=1e-12)


def test_a_batch_norm_over_tokens_is_not_merged_with_weights_over_features():
    layer, scaled, tokens = lively(seeded(lambda: nn.Linear(4, 5))), lively(nn.BatchNorm1d(5)), noise(2, 5, 4)
    scaled.weight.data[::2] *= -1
    found, plain = pulled("excitation", nn.Sequential(layer, scaled), tokens), pulled("excitation", layer, tokens)
    np.testing.assert_allclose(found, plain, atol=1e-12)


@pytest.mark.parametrize("layer", [nn.Linear(6, 4), nn.AvgPool1d(2), nn.AdaptiveAvgPool1d(3)], ids=str)
def test_activations_may_work_in_place_on_what_torch_returns_as_a_view(layer):
    tokens = noise(2, 5, 6)
    assert layer.double()(tokens.clone().requires_grad_())._is_view()
    found, plain = (pulled("excitation", nn.Sequential(layer, nn.ReLU(inplace), nn.Flatten()), tokens) for inplace in (True, False))
    np.testing.assert_allclose(found, plain, atol=1e-12)


def test_a_batch_norm_after_weights_that_are_used_elsewhere_too_is_merged_for_its_own_use():
    first, second = lively(seeded(lambda: nn.Conv2d(3, 4, 3))), lively(nn.BatchNorm2d(4))
    def run(x):
        made = first(x)
        return torch.cat([made, second(made)], 1)
    leaf = IMAGES.clone().requires_grad_()
    outputs = follow("excitation", run, leaf)
    seeds = noise(*outputs.shape).abs()
    (both,) = torch.autograd.grad(outputs, leaf, seeds)
    def alone(module, seeds):
        outputs = follow("excitation", module, leaf)
        return torch.autograd.grad(outputs, leaf, seeds)[0]
    np.testing.assert_allclose(both, alone(first, seeds[:, :4]) + alone(nn.Sequential(first, second), seeds[:, 4:]), atol=1e-12)
