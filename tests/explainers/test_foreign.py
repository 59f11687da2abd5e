"""What others computed arrives as it was: the libraries' own output and closed forms are the truth."""

import importlib
import random
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LinearRegression

import whytrust as wt
from whytrust.explainers import foreign
from whytrust.explainers.laying import enlarged, located
from whytrust.explainers.lime import Lime
from whytrust.explainers.occlusion import Occlusion

TEXT = "an unbelievable story, badly told"
SUBWORDS = [(0, 2), (3, 5), (5, 11), (11, 15), (16, 21), (21, 22), (23, 28), (29, 33)]


class TokenModel:
    """A text model that says where its tokens stand: an, un, believ, able, story, the comma, badly, told."""

    def __call__(self, texts):
        return [[0.2, 0.8] for _ in texts]

    def tokens(self, text):
        return SUBWORDS


def bright(batch):
    """Two classes by the brightness of images in either layout."""
    level = np.asarray(batch, dtype=float).reshape(len(batch), -1).mean(axis=1)
    return np.column_stack([1 - level, level])


@pytest.fixture(scope="module")
def table():
    data = load_breast_cancer()
    return data.data[:, :5], data.target


@pytest.fixture(scope="module")
def torch():
    return pytest.importorskip("torch")


@pytest.fixture(scope="module")
def shap():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip("shap")


@pytest.fixture(scope="module")
def captum():
    return pytest.importorskip("captum.attr")


@pytest.fixture
def linear_net(torch):
    """(1, 4, 6) images -> 3 classes, by fixed weights."""
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(24, 3))


# --- arrays -----------------------------------------------------------------------------------------------------------


def image_maps():
    """Every accepted shape of one and the same map over a (4, 6, 3) image."""
    map = np.arange(24.0).reshape(4, 6)
    last = np.stack([map - 1, map, map + 1], axis=-1)
    first = np.moveaxis(last, -1, 0)
    return {"(H,W)": map, "(1,H,W)": map[None], "(1,1,H,W)": map[None, None], "(H,W,C)": last, "(C,H,W)": first,
            "(1,H,W,C)": last[None], "(1,C,H,W)": first[None], "flat": last.ravel(), "(1,flat)": last.reshape(1, -1)}


@pytest.mark.parametrize("shape", image_maps())
def test_a_map_over_an_image_is_averaged_over_each_part_wherever_its_channels_stand(shape):
    found = wt.explain(bright, np.ones((4, 6, 3)), method=image_maps()[shape], parts="grid:2x2")
    map = np.arange(24.0).reshape(4, 6)
    assert np.allclose(found.scores, [map[:2, :3].mean(), map[:2, 3:].mean(), map[2:, :3].mean(), map[2:, 3:].mean()])


@pytest.mark.parametrize("shape", ["(H,W)", "(H,W,C)", "(C,H,W)", "(1,C,H,W)"])
def test_a_map_over_an_image_with_channels_first_is_read_alike(shape):
    model = wt.model(bright, layout="NCHW")
    found = wt.explain(model, np.ones((3, 4, 6)), method=image_maps()[shape], parts="grid:2x2")
    assert np.allclose(found.scores, wt.explain(bright, np.ones((4, 6, 3)), method=image_maps()["(H,W)"], parts="grid:2x2").scores)


def test_a_square_map_of_three_by_three_by_three_follows_the_input_s_own_layout():
    values = np.zeros((3, 3, 3))
    values[0] = 1.0
    rows_first = wt.explain(bright, np.ones((3, 3, 3)), method=values, parts="grid:3x1").scores
    channels_first = wt.explain(wt.model(bright, layout="NCHW"), np.ones((3, 3, 3)), method=values, parts="grid:3x1").scores
    assert np.allclose(rows_first, [1, 0, 0])
    assert np.allclose(channels_first, 1 / 3)


@pytest.mark.parametrize(("pooling", "expected"), [("mean", [0, 0]), ("mean_abs", [2, 1]), ("mean_pos", [1, 0.5]), ("sum", [0, 0]),
                                                   ("signed_max", [-3, -2])])
def test_pooling_is_what_its_name_says(pooling, expected):
    map = np.array([[1.0, -1, 0, 2], [3, -3, 0, -2]])
    found = wt.explain(bright, np.ones((2, 4)), method=map, parts="grid:1x2", pooling=pooling)
    expected = [3, 2] if pooling == "signed_max" else expected  # of equal magnitudes the first
    assert np.allclose(found.scores, expected)


def test_subwords_merge_onto_their_word_by_signed_maximum():
    values = np.array([0, 0.1, -0.5, 0.2, 0, 0, 0.3, 0])
    found = wt.explain(TokenModel(), TEXT, method=values, parts="words")
    assert dict(zip(found.names, found.scores, strict=True)) == {"an": 0, "unbelievable": -0.5, "story": 0, "badly": 0.3, "told": 0}


def test_subwords_are_summed_where_asked():
    values = np.array([0, 0.1, -0.5, 0.2, 0, 0.7, 0.3, 0])
    found = wt.explain(TokenModel(), TEXT, method=values, parts="words", pooling="sum")
    assert np.allclose(found.scores, [0, -0.2, 0, 0.3, 0])


def test_values_over_an_embedding_are_summed_for_each_token():
    values = np.array([0, 0.1, -0.5, 0.2, 0, 0, 0.3, 0])
    spread = np.stack([values - 1, 2 - values, values - 1], axis=1)[None]  # (1, tokens, 3), which sums to the values
    assert np.allclose(wt.explain(TokenModel(), TEXT, method=spread).scores, [0, -0.5, 0, 0.3, 0])


def test_values_one_a_character_are_averaged_over_each_word():
    values = np.arange(len(TEXT), dtype=float)
    found = wt.explain(lambda texts: [0.5] * len(texts), TEXT, method=values, parts="words")
    assert np.allclose(found.scores, [0.5, np.arange(3, 15).mean(), np.arange(16, 21).mean(), np.arange(23, 28).mean(), np.arange(29, 33).mean()])


def test_values_come_with_their_tokens():
    pair = (["an", "un", "##believ", "##able", "story", "[SEP]"], [0.0, 0.1, -0.5, 0.2, 0.4, 9.0])
    found = wt.explain(lambda texts: [0.5] * len(texts), TEXT, method=pair, parts="words")
    assert np.allclose(found.scores, [0, -0.5, 0.4, 0, 0])


def test_tokens_are_found_in_order_and_special_ones_nowhere():
    spans = located(["[CLS]", "The", "the", "Ġcat", "##s"], "the The cats")
    assert spans == [(), ((0, 3),), ((4, 7),), ((8, 11),), ((11, 12),)]


def test_one_number_a_part_is_taken_as_it_is():
    values = [0.4, -0.1, 0.2, 0.0, 3.0]
    assert wt.explain(TokenModel(), TEXT, method=values).scores.tolist() == values


def test_several_inputs_have_one_entry_each():
    first, second = wt.explain(bright, [np.ones((2, 2)), np.ones((2, 2))], method=np.arange(8.0).reshape(2, 2, 2), parts="grid:2x2")
    assert first.scores.tolist() == [0, 1, 2, 3]
    assert second.scores.tolist() == [4, 5, 6, 7]
    with pytest.raises(ValueError, match="expected 3 entries"):
        wt.explain(bright, [np.ones((2, 2))] * 3, method=np.zeros((2, 2, 2)), parts="grid:2x2")


def test_a_sound_s_samples_are_averaged_over_each_slice():
    wave = np.sin(np.arange(800.0))
    found = wt.explain(lambda batch: np.asarray(batch).mean(axis=1), wave, method=np.arange(800.0)[None], parts="time:4", rate=8000)
    assert np.allclose(found.scores, np.arange(800.0).reshape(4, 200).mean(axis=1))


@pytest.mark.parametrize(("values", "message"), [
    (np.zeros((5, 6)), r"accepted are \(4,\) one a part; \(4, 6\); \(4, 6, 'C'\); \('C', 4, 6\).*got \(5, 6\)"),
    (np.full((4, 6), np.nan), "finite"), (np.zeros((4, 6), complex), "real numbers, got complex"),
    (np.full((4, 6), "x"), "real numbers"), ([[1.0, 2.0], [1.0]], "different lengths")])
def test_an_array_that_cannot_be_read_is_one_clear_error(values, message):
    with pytest.raises(ValueError, match=message):
        wt.explain(bright, np.ones((4, 6)), method=values, parts="grid:2x2")


def test_given_values_speak_of_one_target_and_take_no_options():
    with pytest.raises(ValueError, match="one target at a time"):
        wt.explain(bright, np.ones((4, 6)), method=np.zeros((4, 6)), target="top:2")
    with pytest.raises(TypeError, match="no options but pooling, got steps"):
        wt.explain(bright, np.ones((4, 6)), method=np.zeros((4, 6)), steps=3)
    with pytest.raises(ValueError, match="pooling must be one of"):
        wt.explain(bright, np.ones((4, 6)), method=np.zeros((4, 6)), pooling="median")


# --- functions of (model, inputs, targets) ----------------------------------------------------------------------------


def test_a_function_gets_the_user_s_own_object_a_batch_of_one_and_the_target(table):
    rows, labels = table
    forest = RandomForestClassifier(5, random_state=0).fit(rows, labels)
    seen = {}

    def attribute(model, inputs, targets, scale=1.0):
        seen.update(model=model, inputs=inputs, targets=targets)
        return scale * inputs

    found = wt.explain(forest, rows[0], method=attribute, background=rows, target=0, scale=2.0)
    assert seen["model"] is forest
    assert np.array_equal(seen["inputs"], rows[:1])
    assert seen["targets"].tolist() == [0]
    assert np.allclose(found.scores, 2 * rows[0])
    assert found.method == "attribute"


def test_a_function_sees_what_preprocessing_makes():
    model = wt.model(lambda flat: flat[:, :2], preprocess=lambda batch: np.asarray(batch).reshape(len(batch), -1))
    found = wt.explain(model, np.arange(4.0).reshape(2, 2), method=lambda f, flat, targets: flat, parts="grid:2x2")
    assert found.scores.tolist() == [0, 1, 2, 3]


def test_a_function_s_error_is_told_with_its_name():
    def broken(model, inputs, targets):
        raise RuntimeError("no gradient here")

    with pytest.raises(ValueError, match="broken raised RuntimeError: no gradient here"):
        wt.explain(bright, np.ones((4, 6)), method=broken)
    with pytest.raises(TypeError, match=r"broken raised TypeError: .*steps"):
        wt.explain(bright, np.ones((4, 6)), method=broken, steps=3)


def test_our_own_explainers_are_told_from_foreign_ones():
    def ours(question, rng, more=1):
        return Occlusion()(question, rng)

    assert foreign.adapt(ours, {}) is None
    assert foreign.adapt(Lime(), {}) is None
    assert foreign.adapt(lambda question, rng: None, {}) is None
    assert type(foreign.adapt(lambda m, x, y: None, {})).__name__ == "Function"
    assert type(foreign.adapt(lambda model, inputs, targets=None, **kw: None, {})).__name__ == "Function"
    assert wt.explain(bright, np.ones((4, 6)), method=ours).method == "occlusion"
    with pytest.raises(TypeError, match="method must be a name"):
        wt.explain(bright, np.ones((4, 6)), method=3)


def test_the_same_call_gives_the_same_bits_and_global_randomness_is_left_alone(torch):
    def noise(model, inputs, targets):
        return inputs + np.random.rand() + random.random() + float(torch.rand(1))  # noqa: NPY002

    random.seed(1), np.random.seed(1), torch.manual_seed(1)  # noqa: NPY002
    before = random.getstate(), np.random.get_state()[1].tobytes(), torch.get_rng_state().numpy().tobytes()  # noqa: NPY002
    first, second = (wt.explain(bright, np.ones((4, 6)), method=noise) for _ in range(2))
    other = wt.explain(bright, np.ones((4, 6)), method=noise, seed=1)
    assert first == second
    assert not np.array_equal(first.scores, other.scores)
    assert (random.getstate(), np.random.get_state()[1].tobytes(), torch.get_rng_state().numpy().tobytes()) == before  # noqa: NPY002


# --- captum -----------------------------------------------------------------------------------------------------------


def image(seed=0):
    return np.random.default_rng(seed).random((4, 6))


def test_saliency_of_a_linear_net_is_its_weights(captum, linear_net):
    weights = np.abs(linear_net[1].weight.detach().numpy())
    for target in range(3):
        found = wt.explain(linear_net, image(), method=captum.Saliency(linear_net), target=target, parts="grid:4x6")
        assert np.allclose(found.scores, weights[target])
    assert found.method == "captum Saliency"


def test_a_captum_class_is_made_with_the_net(captum, linear_net):
    by_class = wt.explain(linear_net, image(), method=captum.InputXGradient, parts="grid:2x2")
    assert by_class == wt.explain(linear_net, image(), method=captum.InputXGradient(linear_net), parts="grid:2x2")
    with pytest.raises(TypeError, match=r"pass an instance, such as method=LayerGradCam\(net, …\)"):
        wt.explain(linear_net, image(), method=captum.LayerGradCam)
    with pytest.raises(TypeError, match="Saliency needs a torch module, and this model is function"):
        wt.explain(bright, image(), method=captum.Saliency)


def test_an_explainer_of_another_net_is_told(captum, linear_net, torch):
    other = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(24, 3))
    assert any("another net" in n for n in wt.explain(linear_net, image(), method=captum.Saliency(other)).notes)
    assert not any("another net" in n for n in wt.explain(linear_net, image(), method=captum.Saliency(linear_net)).notes)


def test_a_layer_of_embeddings_is_summed_for_each_word(captum, torch):
    class Bag(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding, self.head = torch.nn.Embedding(128, 4), torch.nn.Linear(4, 2)

        def forward(self, ids):
            return self.head(self.embedding(ids).sum(dim=1))

    net = Bag()
    model = wt.model(net, preprocess=lambda texts: torch.tensor([[ord(w[0]) if w else 0 for w in (t.split() + [""] * 3)[:3]] for t in texts]))
    found = wt.explain(model, "a b c", method=captum.LayerIntegratedGradients(net, net.embedding), target=1, parts="words")
    with torch.no_grad():
        weights = (net.embedding.weight - net.embedding.weight[0]) @ net.head.weight[1]  # of a linear net, from the baseline 0
    assert np.allclose(found.scores, [weights[ord(letter)] for letter in "abc"], atol=1e-5)


def test_integrated_gradients_takes_its_own_options(captum, linear_net):
    base = np.full((1, 1, 4, 6), 0.25, dtype=np.float32)
    found = wt.explain(linear_net, image(), method=captum.IntegratedGradients(linear_net), target=1, parts="grid:4x6", n_steps=7, baselines=base)
    assert np.allclose(found.scores, linear_net[1].weight.detach().numpy()[1] * (image().ravel() - 0.25), atol=1e-6)
    with pytest.raises(TypeError, match=r"captum IntegratedGradients raised TypeError: .*steps_"):
        wt.explain(linear_net, image(), method=captum.IntegratedGradients(linear_net), steps_=7)


def test_captum_s_ablation_over_the_parts_is_our_occlusion(captum, linear_net):
    ours = wt.explain(linear_net, image(), method="occlusion", parts="grid:2x3", fill=0.0)
    theirs = wt.explain(linear_net, image(), method=captum.FeatureAblation(linear_net), parts="grid:2x3")
    assert np.allclose(ours.scores, theirs.scores, atol=1e-6)
    windows = wt.explain(linear_net, image(), method=captum.Occlusion(linear_net), parts="grid:2x3", sliding_window_shapes=(1, 2, 2), strides=(1, 2, 2))
    assert np.allclose(ours.scores, windows.scores, atol=1e-6)


def test_captum_s_lime_over_the_parts_is_our_lime(captum, linear_net):
    ours = wt.explain(linear_net, image(), parts="grid:2x2", fill=0.0, features="all")
    from captum._utils.models.linear_model import SkLearnLinearRegression
    method = captum.Lime(linear_net, interpretable_model=SkLearnLinearRegression())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = wt.explain(linear_net, image(), method=method, parts="grid:2x2", n_samples=60)
    assert np.allclose(ours.scores, theirs.scores, atol=1e-4)  # of a linear net both are exact
    assert any("parts are the features" in note for note in theirs.notes)


def test_a_coarse_layer_map_is_enlarged_as_captum_enlarges_it(captum, torch):
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Conv2d(1, 3, 3, stride=2), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(3 * 3 * 4, 2))
    x = np.random.default_rng(0).random((8, 10)).astype(np.float32)
    method = captum.LayerGradCam(net, net[0])
    coarse = method.attribute(torch.from_numpy(x)[None, None], target=1)
    assert tuple(coarse.shape) == (1, 1, 3, 4)
    fine = captum.LayerAttribution.interpolate(coarse, (8, 10), "bilinear")[0, 0].detach().numpy()
    found = wt.explain(net, x, method=method, target=1, parts="grid:8x10")
    assert np.allclose(found.as_map(), fine, atol=1e-6)


def test_enlarging_keeps_the_corners_and_a_constant():
    assert np.allclose(enlarged(np.full((3, 4), 7.0), (10, 11)), 7)
    assert np.allclose(enlarged(np.array([[0.0, 1.0]]), (1, 4)), [[0, 0.25, 0.75, 1]])
    assert np.allclose(enlarged(np.array([0.0, 1.0]), (4,)), [0, 0.25, 0.75, 1])


def test_a_net_that_sees_an_enlarged_image_is_pooled_in_its_own_pixels(captum, torch):
    weights = torch.arange(16.0).reshape(1, 16)
    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(16, 1, bias=False))
    net[1].weight.data = weights
    model = wt.model(net, preprocess=lambda batch: np.asarray(batch)[:, None].repeat(2, axis=2).repeat(2, axis=3))
    found = wt.explain(model, np.ones((2, 2)), method=captum.Saliency(net), parts="grid:2x2")
    assert np.allclose(found.scores, [2.5, 4.5, 10.5, 12.5])


def test_noise_tunnel_repeats_and_leaves_the_net_as_it_was(captum, linear_net, torch):
    linear_net.train()
    linear_net[1].weight.grad = kept = torch.ones_like(linear_net[1].weight)
    method = captum.NoiseTunnel(captum.InputXGradient(linear_net))
    first, second = (wt.explain(linear_net, image(), method=method, nt_samples=3) for _ in range(2))
    assert first == second
    assert first.method == "captum NoiseTunnel of InputXGradient"
    assert linear_net.training
    assert linear_net[1].training
    assert linear_net[1].weight.grad is kept
    assert kept.eq(1).all()
    assert linear_net[1].bias.grad is None


def test_a_net_is_in_eval_mode_while_a_function_has_it(torch):
    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(24, 2)).train()

    def careless(model, inputs, targets):
        assert not model.training
        tensor = torch.from_numpy(np.asarray(inputs, dtype=np.float32)).requires_grad_()
        model(tensor)[:, targets[0]].sum().backward()
        return tensor.grad

    found = wt.explain(net, image(), method=careless, target=0, parts="grid:4x6")
    assert np.allclose(found.scores, net[1].weight.detach().numpy()[0])
    assert net.training
    assert net[1].weight.grad is None


def test_a_net_beside_its_tokenizer_is_left_as_it_was_too(torch):
    from whytrust.explainers.foreign.calling import left_alone
    nets = [torch.nn.Linear(2, 1).train() for _ in range(2)]
    with left_alone((nets[0], "tokenizer"), SimpleNamespace(model=nets[1])):
        assert not any(net.training for net in nets)
        for net in nets:
            net(torch.ones(1, 2)).sum().backward()
    assert all(net.training and net.weight.grad is None for net in nets)


def test_a_net_with_one_output_speaks_of_the_second_class(captum, torch):
    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(24, 1))
    model = wt.model(net, output="logit", threshold=0.5)
    second, first = (wt.explain(model, image(), method=captum.InputXGradient(net), target=t, parts="grid:4x6") for t in (1, 0))
    assert np.allclose(second.scores, net[1].weight.detach().numpy()[0] * image().ravel())
    assert np.array_equal(first.scores, -second.scores)
    assert any("negated" in note for note in first.notes)


def test_captum_refuses_texts_with_a_way_out(captum, linear_net):
    with pytest.raises(TypeError, match="one value a token"):
        wt.explain(TokenModel(), TEXT, method=captum.Saliency(linear_net))


def test_anything_with_attribute_will_do(torch):
    class Own:
        def attribute(self, inputs, target):
            return inputs * target

    found = wt.explain(lambda batch: np.eye(3)[[2] * len(batch)], image(), method=Own(), parts="grid:4x6")
    assert np.allclose(found.scores, 2 * image().ravel())


# --- shap -------------------------------------------------------------------------------------------------------------


def test_shap_s_linear_values_are_weight_times_distance_from_the_mean(shap, table):
    rows, labels = table
    model = LinearRegression().fit(rows, labels)
    found = wt.explain(model, rows[3], method=shap.LinearExplainer(model, rows), background=rows)
    assert np.allclose(found.scores, model.coef_ * (rows[3] - shap.LinearExplainer(model, rows).mean))
    assert np.isclose(found.intercept + found.scores.sum(), model.predict(rows[3:4])[0])
    assert np.isclose(found.local_prediction, found.prediction)
    assert found.method == "shap LinearExplainer"


def test_shap_s_trees_give_each_class_its_own_values(shap, table):
    rows, labels = table
    forest = RandomForestClassifier(10, random_state=0).fit(rows, labels)
    explainer = shap.TreeExplainer(forest)
    truth = explainer(rows[:1])
    for target in (0, 1):
        found = wt.explain(forest, rows[0], method=explainer, background=rows, target=target)
        assert np.array_equal(found.scores, truth.values[0, :, target])
        assert np.isclose(found.intercept, truth.base_values[0, target])
        assert np.isclose(found.local_prediction, found.prediction)


def test_shap_s_one_output_of_two_classes_is_the_second_and_log_odds_are_no_prediction(shap, table):
    rows, labels = table
    model = GradientBoostingClassifier(n_estimators=5, random_state=0).fit(rows, labels)
    explainer = shap.TreeExplainer(model)
    second, first = (wt.explain(model, rows[0], method=explainer, background=rows, target=t) for t in (1, 0))
    assert np.array_equal(second.scores, explainer(rows[:1]).values[0])
    assert np.array_equal(first.scores, -second.scores)
    assert np.isclose(second.intercept + second.scores.sum(), model.decision_function(rows[:1])[0])
    assert np.isclose(first.intercept, -second.intercept)
    assert second.local_prediction is None
    assert any("another quantity" in note for note in second.notes)
    assert any("negated" in note for note in first.notes)


def test_shap_s_one_probability_turns_into_that_of_the_first_class(shap, table):
    rows, labels = table
    model = RandomForestClassifier(5, random_state=0).fit(rows, labels)
    explainer = shap.KernelExplainer(lambda batch: model.predict_proba(batch)[:, 1], rows[:10])
    found = wt.explain(model, rows[0], method=explainer, background=rows, target=0)
    assert np.isclose(found.intercept + found.scores.sum(), model.predict_proba(rows[:1])[0, 0])
    assert np.isclose(found.local_prediction, found.prediction)


def test_shap_s_kernel_explainer_repeats_and_takes_frames(shap, table):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(table[0], columns=list("abcde"))
    forest = RandomForestClassifier(5, random_state=0).fit(frame, table[1])

    def predict(rows):
        return forest.predict_proba(pandas.DataFrame(rows, columns=frame.columns))

    explainer = shap.KernelExplainer(predict, frame[:10])
    first, second = (wt.explain(forest, frame.iloc[0], method=explainer, background=frame, nsamples=24) for _ in range(2))
    assert first == second
    assert np.isclose(first.local_prediction, first.prediction)


def test_old_style_lists_of_values_one_a_class_are_read_too(table):
    rows, labels = table
    forest = RandomForestClassifier(5, random_state=0).fit(rows, labels)
    old = SimpleNamespace(shap_values=lambda batch: [-np.asarray(batch), np.asarray(batch)], expected_value=[0.4, 0.6])
    found = wt.explain(forest, rows[0], method=old, background=rows, target=1)
    assert np.array_equal(found.scores, rows[0])
    assert found.intercept == 0.6


def word_count(texts):
    return np.array([t.count("good") * 0.25 + t.count("film") * 0.125 - t.count("!") * 0.0625 for t in texts])


def test_shap_s_values_of_tokens_are_summed_over_words_and_the_rest_is_the_intercept(shap):
    explainer = shap.Explainer(word_count, shap.maskers.Text(r"\W"), silent=True)
    text = "! good film, good, really"
    found = wt.explain(word_count, text, method=explainer, parts="bag")
    assert dict(zip(found.names, found.scores, strict=True)) == pytest.approx({"good": 0.5, "film": 0.125, "really": 0}, abs=1e-9)
    assert found.intercept == pytest.approx(-0.0625)
    assert found.intercept + found.scores.sum() == pytest.approx(found.local_prediction) == pytest.approx(found.prediction)
    assert any("lies on no part" in note for note in found.notes)


def test_shap_s_image_values_are_summed_over_parts_and_channels(shap):
    x = np.random.default_rng(0).random((4, 6, 3))
    weights = np.random.default_rng(1).normal(size=x.shape)

    def model(batch):
        return (np.asarray(batch) * weights).sum(axis=(1, 2, 3))

    explainer = shap.Explainer(model, shap.maskers.Image(np.zeros(x.shape), x.shape))
    found = wt.explain(model, x, method=explainer, parts="grid:2x2", max_evals=600)
    cells = (x * weights).sum(axis=2)
    assert np.allclose(found.scores, [cells[:2, :3].sum(), cells[:2, 3:].sum(), cells[2:, :3].sum(), cells[2:, 3:].sum()], atol=1e-6)


def test_shap_s_deep_explainer_gets_a_tensor(shap, torch, linear_net):
    background = torch.zeros(4, 1, 4, 6)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        explainer = shap.DeepExplainer(linear_net, background)
        found = wt.explain(linear_net, image(), method=explainer, parts="grid:4x6", target=2)
    assert np.allclose(found.scores, linear_net[1].weight.detach().numpy()[2] * image().ravel(), atol=1e-5)


def test_shap_s_explanations_of_rows_arrive_as_they_are(shap, table):
    rows, labels = table
    forest = RandomForestClassifier(10, random_state=0).fit(rows, labels)
    theirs, target = shap.TreeExplainer(forest)(rows[:3]), 0
    each = wt.explain(forest, rows[:3], method=theirs, background=rows, target=target)
    for i, found in enumerate(each):
        assert np.array_equal(found.scores, theirs.values[i, :, target])
        assert found.intercept == theirs.base_values[i, target]
        assert found.local_prediction == pytest.approx(found.prediction)
        assert found.notes == ()
        assert found.calls == 1
        for alone in (theirs[i], theirs[i:i + 1]):
            assert wt.explain(forest, rows[i], method=alone, background=rows, target=target) == found
    assert wt.explain(forest, rows[:3], method=[theirs[0], theirs[1], theirs[2]], background=rows, target=target) == each
    assert wt.explain(forest, rows[:1], method=theirs[0], background=rows, target=target) == each[:1]
    with pytest.raises(ValueError, match="with 2 inputs, method must hold one row of shap values for each, got 3"):
        wt.explain(forest, rows[:2], method=theirs, background=rows)
    with pytest.raises(ValueError, match="of 3; pass explanation"):
        wt.explain(forest, rows[0], method=theirs, background=rows)
    with pytest.raises(TypeError, match="no options but pooling, got nsamples"):
        wt.explain(forest, rows[0], method=theirs[0], background=rows, nsamples=3)


@pytest.mark.parametrize("chosen", [0, 1])
@pytest.mark.parametrize("target", [0, 1])
def test_one_output_of_a_shap_explanation_is_the_one_it_adds_up_to(shap, table, chosen, target):
    rows, labels = table
    forest = RandomForestClassifier(10, random_state=0).fit(rows, labels)
    theirs = shap.TreeExplainer(forest)(rows[:1])
    found = wt.explain(forest, rows[0], method=theirs[0, :, chosen], background=rows, target=target)
    assert np.allclose(found.scores, theirs.values[0, :, target])
    assert found.local_prediction == pytest.approx(found.prediction)
    assert found.intercept == pytest.approx(theirs.base_values[0, target])


def test_values_with_names_are_matched_by_name(shap):
    pandas = pytest.importorskip("pandas")
    rows = pandas.DataFrame(np.random.default_rng(0).normal(size=(60, 3)), columns=list("abc"))
    forest = RandomForestClassifier(10, random_state=0).fit(rows, rows["a"] > 0)
    theirs = shap.TreeExplainer(forest)(rows.iloc[:2])
    for order in ([0, 1, 2], [2, 0, 1]):
        found = wt.explain(forest, rows.iloc[:2], method=theirs[:, order], background=rows, target=1)
        assert all(np.array_equal(one.scores, theirs.values[i, :, 1]) for i, one in enumerate(found))


def test_one_output_of_three_is_refused_for_another_target(shap):
    rows = np.random.default_rng(0).normal(size=(50, 3))

    def model(batch):
        return np.column_stack([batch[:, 0], 2 * batch[:, 1] + 3, batch[:, 2] - 5])

    one = shap.Explanation(values=np.array([0.0, 2 * rows[0, 1], 0.0]), base_values=3.0, data=rows[0])
    found = wt.explain(model, rows[0], method=one, target=1, background=rows)
    assert found.local_prediction == pytest.approx(found.prediction)
    with pytest.raises(ValueError, match="add up to the score of class 1"):
        wt.explain(model, rows[0], method=one, target=[1, 2], background=rows)


def test_shap_s_explanations_of_texts_and_images_arrive_as_they_are(shap):
    explainer = shap.Explainer(word_count, shap.maskers.Text(r"\W"), silent=True)
    texts = ["! good film, good, really", "a good film"]
    theirs = explainer(texts)
    for found, text in zip(wt.explain(word_count, texts, method=theirs), texts, strict=True):
        asked = wt.explain(word_count, text, method=explainer)
        assert np.allclose(found.scores, asked.scores)
        assert found.intercept == pytest.approx(asked.intercept)
    with pytest.raises(ValueError, match="must have the text's tokens as its data"):
        wt.explain(word_count, "a good film", method=shap.Explanation(values=np.ones(3), base_values=0.0))
    maps = np.random.default_rng(0).normal(size=(2, 4, 6, 3))
    both = wt.explain(bright, np.ones((2, 4, 6, 3)), method=shap.Explanation(maps, np.zeros(2), np.ones(maps.shape)), parts="grid:1x2", target=1)
    assert np.allclose([found.scores for found in both], [[m[:, :3].sum(), m[:, 3:].sum()] for m in maps])


def test_what_shap_states_no_base_value_for_is_said(shap, torch, linear_net):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        explainer = shap.GradientExplainer(linear_net, torch.zeros(4, 1, 4, 6))
        found = wt.explain(linear_net, image(), method=explainer, parts="grid:2x2", target=2)
    assert found.intercept == 0
    assert any("GradientExplainer states no base value" in note for note in found.notes)


def test_shap_with_another_number_of_outputs_is_refused(shap, table):
    rows, labels = table
    forest = RandomForestClassifier(3, random_state=0).fit(rows, labels % 2 + (rows[:, 0] > 15))
    explainer = shap.TreeExplainer(RandomForestClassifier(3, random_state=0).fit(rows, labels))
    with pytest.raises(ValueError, match="must explain every output of the model"):
        wt.explain(forest, rows[0], method=explainer, background=rows)


# --- lime -------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=["lime", "whytrust.compat.lime"])
def lime(request):
    pytest.importorskip(request.param)
    text, table, image = (importlib.import_module(f"{request.param}.lime_{kind}") for kind in ("text", "tabular", "image"))
    return SimpleNamespace(text=text, table=table, image=image)


def two_words(texts):
    p = np.array([0.5 + 0.3 * ("good" in t) - 0.2 * ("bad" in t) for t in texts])
    return np.column_stack([1 - p, p])


REVIEW = "a good film, not bad, really good"


def test_lime_s_explanation_of_a_text_arrives_as_it_is(lime):
    theirs = lime.text.LimeTextExplainer(random_state=0).explain_instance(REVIEW, two_words, num_samples=200)
    found = wt.explain(two_words, REVIEW, method=theirs, target=1)
    assert dict(found.as_list()) == pytest.approx(dict(theirs.as_list()))
    assert found.intercept == pytest.approx(theirs.intercept[1])
    assert found.local_prediction == pytest.approx(theirs.local_pred[0])
    assert found.fidelity == pytest.approx(theirs.score)
    assert found.method == "lime (lime_text)"


def test_lime_s_few_words_are_the_selected_ones(lime):
    theirs = lime.text.LimeTextExplainer(random_state=0).explain_instance(REVIEW, two_words, num_samples=200, num_features=2)
    found = wt.explain(two_words, REVIEW, method=theirs, target=1)
    assert {name for name, _ in found.as_list()} == {"good", "bad"}


def test_a_word_of_lime_s_bag_is_shared_by_its_places(lime):
    theirs = lime.text.LimeTextExplainer(random_state=0).explain_instance(REVIEW, two_words, num_samples=200)
    found = wt.explain(two_words, REVIEW, method=theirs, target=1, parts="words")
    weights, scores = dict(theirs.as_list()), dict(zip(found.names, found.scores, strict=True))
    assert scores["good"] == pytest.approx(weights["good"] / 2)
    assert scores["good [2]"] == pytest.approx(weights["good"] / 2)
    assert found.intercept + found.scores.sum() == pytest.approx(found.local_prediction)


def test_a_label_that_lime_did_not_explain_and_another_text_are_refused(lime):
    theirs = lime.text.LimeTextExplainer(random_state=0).explain_instance(REVIEW, two_words, num_samples=50)
    with pytest.raises(ValueError, match=r"has labels 1, not 0 \(class 0\)"):
        wt.explain(two_words, REVIEW, method=theirs, target=0)
    with pytest.raises(ValueError, match="of another text"):
        wt.explain(two_words, "quite another film", method=theirs, target=1)


def test_lime_keeps_the_fit_of_the_last_label_only():
    lime_text = pytest.importorskip("lime.lime_text")
    theirs = lime_text.LimeTextExplainer(random_state=0).explain_instance(REVIEW, two_words, num_samples=50, labels=(1, 0))
    first = wt.explain(two_words, REVIEW, method=theirs, target=1)
    assert first.fidelity is None
    assert first.local_prediction == pytest.approx(theirs.intercept[1] + sum(w for _, w in theirs.local_exp[1]))
    assert wt.explain(two_words, REVIEW, method=theirs, target=0).fidelity == pytest.approx(theirs.score)


def test_our_lime_drop_in_keeps_the_fit_of_every_label():
    lime_text = pytest.importorskip("whytrust.compat.lime.lime_text")
    theirs = lime_text.LimeTextExplainer(random_state=0).explain_instance(REVIEW, two_words, num_samples=50, labels=(1, 0))
    found = wt.explain(two_words, REVIEW, method=theirs, target=[1, 0])
    assert [e.fidelity for e in found] == [theirs.scores[1], theirs.scores[0]]


@pytest.mark.parametrize("discretize", [True, False])
def test_lime_s_explanation_of_a_row_arrives_as_it_is(lime, table, discretize):
    rows, labels = table
    forest = RandomForestClassifier(5, random_state=0).fit(rows, labels)
    explainer = lime.table.LimeTabularExplainer(rows, discretize_continuous=discretize, random_state=0)
    theirs = explainer.explain_instance(rows[0], forest.predict_proba, num_samples=200)
    found = wt.explain(forest, rows[0], method=theirs, target=1, background=rows)
    weights = found.scores if found.slopes is None else found.slopes
    assert (found.slopes is None) == discretize
    assert dict(enumerate(weights)) == pytest.approx(dict(theirs.local_exp[1]))
    assert found.fidelity == pytest.approx(theirs.score)
    assert found.intercept + found.scores.sum() == pytest.approx(theirs.local_pred[0])


def test_lime_s_regression_is_taken_with_its_own_sign(lime, table):
    rows, labels = table
    model = LinearRegression().fit(rows, labels)
    explainer = lime.table.LimeTabularExplainer(rows, mode="regression", random_state=0)
    theirs = explainer.explain_instance(rows[0], model.predict, num_samples=200)
    found = wt.explain(model, rows[0], method=theirs, background=rows)
    assert dict(enumerate(found.scores)) == pytest.approx(dict(theirs.local_exp[1]))
    assert found.local_prediction == pytest.approx(theirs.local_pred[0])


def halves(image):
    return (np.indices(np.shape(image)[:2])[1] >= 3).astype(int)


def test_lime_s_segments_become_the_parts_of_an_image(lime):
    x = np.random.default_rng(0).random((4, 6, 3))
    theirs = lime.image.LimeImageExplainer(random_state=0).explain_instance(x, bright, hide_color=0, num_samples=50, segmentation_fn=halves)
    found = wt.explain(bright, x, method=theirs, target=1)
    assert np.allclose(found.scores, [dict(theirs.local_exp[1])[i] for i in (0, 1)])
    assert np.array_equal(found.view.labels, halves(x))


def test_lime_s_explainer_is_asked_with_the_model(lime, table):
    theirs = lime.text.LimeTextExplainer(random_state=0).explain_instance(REVIEW, two_words, num_samples=200)
    explainer, asked = lime.text.LimeTextExplainer(random_state=0), []
    found = wt.explain(lambda texts: (asked.extend(texts), two_words(texts))[1], REVIEW, method=explainer, target=1, num_samples=200)
    assert found.calls == len(asked)
    found = wt.explain(two_words, REVIEW, method=explainer, target=1, num_samples=200)
    assert dict(found.as_list()) == pytest.approx(dict(theirs.as_list()))
    assert found == wt.explain(two_words, REVIEW, method=explainer, target=1, num_samples=200)
    with pytest.raises(TypeError, match=r"lime LimeTextExplainer raised TypeError: .*samples_"):
        wt.explain(two_words, REVIEW, method=explainer, samples_=200)


def test_lime_s_image_explainer_uses_the_parts(lime):
    grey = np.random.default_rng(0).random((4, 6))
    found = wt.explain(bright, grey, method=lime.image.LimeImageExplainer(random_state=0), parts="grid:1x2", hide_color=0, num_samples=40,
                       model_regressor=LinearRegression())
    first = wt.explain(wt.model(bright, layout="NCHW"), grey, method=lime.image.LimeImageExplainer(random_state=0), parts="grid:1x2",
                       hide_color=0, num_samples=40, model_regressor=LinearRegression())
    exact = [grey[:, :3].sum() / 24, grey[:, 3:].sum() / 24]
    sign = 1 if found.target == 1 else -1
    assert np.allclose(sign * found.scores, exact)
    assert np.allclose(found.scores, first.scores)


def test_lime_s_table_explainer_takes_frames(lime, table):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(table[0], columns=list("abcde"))
    forest = RandomForestClassifier(5, random_state=0).fit(frame, table[1])
    explainer = lime.table.LimeTabularExplainer(frame.to_numpy(), random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a forest warns when columns lose their names
        found = wt.explain(forest, frame.iloc[0], method=explainer, background=frame, num_samples=100)
    assert np.isfinite(found.scores).all()
    assert found.fidelity is not None


def test_several_lime_explanations_go_with_several_inputs(lime):
    texts = [REVIEW, "a bad film"]
    explainer = lime.text.LimeTextExplainer(random_state=0)
    theirs = [explainer.explain_instance(t, two_words, num_samples=50) for t in texts]
    found = wt.explain(two_words, texts, method=theirs, target=1)
    assert [dict(e.as_list()) for e in found] == [pytest.approx(dict(t.as_list())) for t in theirs]
