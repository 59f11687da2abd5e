"""A model that does not depend on the input gets a sentence in place of scores, in every domain and every rendering."""

import numpy as np
import pytest

import whytrust as wt
from whytrust.explainers.greedy import Greedy

SENTENCE = "The model's score does not depend on these parts"
RNG = np.random.default_rng(0)
WAVE = np.sin(np.arange(1600.0) / 7).astype(np.float32)
INPUTS = {
    "text": ("a warm and clever film with a tired plot", {}),
    "image": (RNG.random((16, 16, 3)), {"parts": "grid:4x4"}),
    "sound": (WAVE, {"parts": "time:6", "rate": 8000}),
    "table": (RNG.normal(size=5), {"background": RNG.normal(size=(300, 5))}),
    "uncut table": (RNG.normal(size=5), {"background": RNG.normal(size=(300, 5)), "bins": None}),
}
"""What is explained, and how it is cut."""


def noisy(batch):
    """0.3 but for rounding, another in every place of a batch, as sums in another order give."""
    return 0.3 + 2.0**-54 * (np.arange(len(batch)) % 7)


def single(batch):
    """The same of a model that counts in single precision."""
    return (np.float32(0.3) + np.float32(2.0**-25) * (np.arange(len(batch)) % 7)).astype(np.float32)


@pytest.mark.parametrize("method", ["lime", "kernel_shap", "occlusion"])
@pytest.mark.parametrize("kind", INPUTS)
@pytest.mark.parametrize("model", [noisy, single])
def test_rounding_is_said_to_be_none_of_the_input_s_doing(kind, method, model):
    item, options = INPUTS[kind]
    options = {name: value for name, value in options.items() if name != "bins" or method == "lime"}
    e = wt.explain(model, item, method=method, **options)
    assert not e.scores.any()
    assert sum(note.startswith(SENTENCE) for note in e.notes) == 1
    assert e.fidelity is None
    assert e.fidelity_fresh is None
    text, page = str(e), e.as_html()
    for said in (text, page):
        assert said.replace("&#x27;", "'").replace("&#39;", "'").count(SENTENCE) == 1
        assert "e-16" not in said
        assert "fidelity 1" not in said.lower()
    assert not any(name in text for name in e.names[:1] if kind != "text")
    assert "<svg class=\"chart\"" not in page
    assert 'class="bar' not in page
    assert "<mark" not in page
    figure = e.plot()
    assert not any(axes.patches for axes in figure.axes)
    drawn = " ".join(text.get_text() for axes in figure.axes for text in axes.texts)
    assert SENTENCE.split(" ")[2] in drawn
    assert "does not depend" in " ".join(drawn.split())
    assert wt.Explanation.from_json(e.to_json()) == e


@pytest.mark.parametrize("method", ["lime", "kernel_shap", "occlusion"])
def test_rounding_of_log_odds_near_zero_is_no_explanation(method):
    def even(texts):
        p = 0.5 + 2.0**-53 * (np.arange(len(texts)) % 3)
        return np.column_stack([1 - p, p])

    e = wt.explain(even, INPUTS["text"][0], method=method, explains="logit", target=1)
    assert not e.scores.any()
    assert any(SENTENCE in note for note in e.notes)


@pytest.mark.parametrize("method", ["lime", "kernel_shap", "occlusion"])
def test_rounding_of_a_net_whose_logits_are_squashed_here_is_no_explanation(method):
    torch = pytest.importorskip("torch")

    class Even(torch.nn.Module):
        """The same for every input, but for the rounding of a mean in single precision."""

        def forward(self, x):
            flat = x.flatten(1)
            means = ((flat - flat.mean(1, keepdim=True)) / 3).sum(1) * 1e-2
            return torch.stack([means, -means], 1) + 0.3

    item, options = INPUTS["image"]
    e = wt.explain(wt.model(Even(), output="logit"), item, method=method, **options)
    assert not e.scores.any()
    assert any(SENTENCE in note for note in e.notes)


def test_a_small_effect_is_no_rounding():
    e = wt.explain(lambda texts: np.array([0.3 + 1e-9 * ("warm" in text) for text in texts]), "a warm film")
    assert dict(zip(e.names, e.scores, strict=True))["warm"] == pytest.approx(1e-9, rel=1e-3)
    assert not any(SENTENCE in note for note in e.notes)


def test_a_model_whose_parts_only_work_together_is_not_called_independent():
    """The parity of four words: by symmetry every Shapley value is 0, and yet the score depends on every word."""
    e = wt.explain(lambda texts: np.array([0.2 + 0.6 * (len(text.split()) % 2) for text in texts]), "a warm old film",
                   method="kernel_shap")
    assert np.abs(e.scores).max() < 1e-9
    assert not any(SENTENCE in note for note in e.notes)


def test_large_whole_numbers_that_differ_by_one_are_no_rounding():
    e = wt.explain(lambda texts: np.array([1e7 + ("warm" in text) for text in texts]), "a warm film")
    assert dict(zip(e.names, e.scores, strict=True))["warm"] == pytest.approx(1)


def test_a_score_that_only_the_input_itself_has_is_not_called_independent():
    table = RNG.integers(0, 2, (500, 3)).astype(float)
    table[0, 0] = 7.0
    e = wt.explain(lambda rows: np.where(rows[:, 0] == 7, 0.9, 0.1), table[0], background=table, categorical=[0], samples=30)
    assert not any(SENTENCE in note for note in e.notes)


def test_values_given_by_the_user_stay_when_the_model_is_constant():
    given = np.arange(16.0).reshape(4, 4).repeat(4, 0).repeat(4, 1)
    item, options = INPUTS["image"]
    both = wt.explain(noisy, item, method=["occlusion", given], **options)
    flat = [e for one in both for e in ([one] if isinstance(one, wt.Explanation) else one)]
    assert not flat[0].scores.any()
    assert flat[1].scores.any()


def test_random_scores_stay():
    item, options = INPUTS["image"]
    assert wt.explain(noisy, item, method="random", **options).scores.any()


def test_the_lime_package_s_rounding_is_left_out_too():
    lime = pytest.importorskip("lime.lime_tabular")
    rows = INPUTS["table"][1]["background"]
    explainer = lime.LimeTabularExplainer(rows, mode="regression", random_state=0)
    e = wt.explain(noisy, rows[0], method=explainer, background=rows)
    assert not e.scores.any()
    assert any(SENTENCE in note for note in e.notes)


@pytest.mark.parametrize("method", ["occlusion", "greedy"])
def test_parts_that_stand_in_for_each_other_are_not_called_independent(method):
    options = {"method": Greedy(features=2)} if method == "greedy" else {"method": method}
    e = wt.explain(lambda texts: np.array([float("good" in t or "great" in t) for t in texts]), "a good and great film", **options)
    assert not e.scores.any()
    assert not any(SENTENCE in note for note in e.notes)
    assert any("stand in for each other" in note for note in e.notes)


def test_greedy_says_so_too_where_every_part_may_go():
    e = wt.explain(noisy, "a warm and clever film", method="greedy")
    assert not e.scores.any()
    assert sum(note.startswith(SENTENCE) for note in e.notes) == 1


@pytest.mark.parametrize("methods", ["lime", "kernel_shap", "occlusion"])
def test_a_sure_model_in_double_precision_is_saturated_and_not_independent(methods):
    """1 − p next to p ≈ 1 fits into single precision, whatever the model counts in."""
    def sure(rows):
        q = 1 / (1 + np.exp(23 + 3 * rows[:, 0] - 2 * rows[:, 1]))
        return np.column_stack([q, 1 - q])

    rows = np.random.default_rng(1).normal([0.2, -0.5, 0], 0.05, size=(50, 3))
    e = wt.explain(sure, rows[0], background=rows, method=methods, target=1)
    assert not any(SENTENCE in note for note in e.notes)
    assert any("saturated" in note for note in e.notes)


def test_a_model_in_double_precision_that_is_constant_near_one_is_independent():
    e = wt.explain(lambda texts: np.tile([5e-6, 1 - 5e-6], (len(texts), 1)), "a warm film", target=1)
    assert any(SENTENCE in note for note in e.notes)


def test_a_constant_column_beside_a_large_score_says_nothing_of_its_precision():
    e = wt.explain(lambda texts: np.column_stack([np.zeros(len(texts)), [1e6 + 0.3 * ("warm" in t) for t in texts]]), "a warm film")
    assert dict(zip(e.names, e.scores, strict=True))["warm"] == pytest.approx(0.3, rel=1e-3)


@pytest.mark.parametrize("method", ["lime", "kernel_shap", "occlusion"])
def test_log_odds_that_were_cut_throughout_are_not_drawn(method):
    def sure(rows):
        p = 1 / (1 + np.exp(-(30 + 3 * rows[:, 0])))
        return np.column_stack([1 - p, p])

    rows = np.random.default_rng(1).normal(scale=0.05, size=(50, 3))
    e = wt.explain(sure, rows[0], background=rows, method=method, target=1, explains="logit")
    assert not e.scores.any()
    assert any("too sure" in note for note in e.notes)
    assert "e-1" not in str(e).replace("1e-09", "")


def test_log_odds_that_were_cut_for_some_are_noted():
    def sure(texts):
        p = np.float32(1) / (1 + np.exp(-(np.float32(16) + np.array([3.0 * ("warm" in t) for t in texts], np.float32))))
        return np.column_stack([1 - p, p])

    e = wt.explain(sure, "a warm film", method="occlusion", target=1, explains="logit")
    assert e.scores.any()
    assert any("were cut" in note for note in e.notes)
