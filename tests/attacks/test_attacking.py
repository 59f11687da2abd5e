"""What a user types."""

import re
from dataclasses import replace

import numpy as np
import pytest
import torch
from fooled import linear, random_linear, small_net

import whytrust as wt
from whytrust.attacking import attack
from whytrust.attacks import PGD

IMAGES = np.random.default_rng(1).uniform(size=(3, 1, 6, 6)).astype(np.float32)


@pytest.fixture(scope="module")
def net():
    return wt.model(small_net(dtype=torch.float32), output="logit", classes=["ant", "bee", "cat", "dog"])


@pytest.mark.parametrize("given", [
    IMAGES, list(IMAGES), torch.from_numpy(IMAGES), list(torch.from_numpy(IMAGES)), IMAGES[:, 0], [i[0] for i in IMAGES],
    [i.transpose(1, 2, 0) for i in IMAGES],
], ids=["array", "list", "tensor", "tensors", "grey images in an array", "grey images", "channels last"])
def test_inputs_may_come_in_many_ways(net, given):
    found, same = attack(net, given, iterations=5), attack(net, IMAGES, iterations=5)
    shape = (3, *np.shape(given[0]))
    assert found.adversarial.shape == found.clean.shape == shape
    assert found[0].shape == shape[1:]
    np.testing.assert_array_equal(found.adversarial, same.adversarial.reshape(shape))  # one channel may go anywhere
    np.testing.assert_array_equal(found.clean, np.stack([np.asarray(g) for g in given]))
    np.testing.assert_array_equal(found.linf, same.linf)


def colours(outputs=3):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return wt.model(torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.Tanh(), torch.nn.Flatten(), torch.nn.Linear(96, outputs)),
                        output="logit")


def test_channels_last_come_back_last_and_what_was_searched_too():
    pytest.importorskip("matplotlib")
    model, x = colours(), np.random.default_rng(0).uniform(size=(2, 6, 8, 3)).astype(np.float32)
    last = attack(model, x, epsilon=[0.1, 0.2], iterations=3)
    first = attack(model, x.transpose(0, 3, 1, 2), epsilon=[0.1, 0.2], iterations=3)
    assert last.adversarial.shape == x.shape
    np.testing.assert_array_equal(last.adversarial, first.adversarial.transpose(0, 2, 3, 1))
    np.testing.assert_array_equal(last.clean, x)
    np.testing.assert_array_equal(last.l2, first.l2)
    assert np.abs(last.adversarial.astype(np.float64) - x).max() == last.linf.max()
    assert last.plot().axes[0].images[0].get_array().shape == (6, 8, 3)


def test_a_mask_may_be_shaped_like_the_input_as_it_was_given():
    x, inside = np.random.default_rng(0).uniform(size=(2, 6, 8, 3)), np.zeros((6, 8, 3), dtype=bool)
    inside[1:3, 2:5, 1] = True
    found = attack(colours(), x, inside=inside, stop="never", iterations=3)
    np.testing.assert_array_equal((found.adversarial != x).any(axis=0), inside)


def test_a_grey_image_is_drawn_as_an_image_and_not_as_a_spectrogram():
    pytest.importorskip("matplotlib")
    net = torch.nn.Sequential(torch.nn.Conv2d(1, 2, 3), torch.nn.Flatten(), torch.nn.Linear(2 * 4 * 8, 2))
    found = attack(wt.model(net, output="logit"), np.random.default_rng(0).uniform(size=(2, 6, 10)), iterations=2)
    assert found.adversarial.shape == (2, 6, 10)
    assert found.plot().axes[0].images[0].get_array().shape == (6, 10, 3)


def test_a_picture_comes_back_as_the_model_takes_it(net):
    image_module = pytest.importorskip("PIL.Image")
    picture = image_module.fromarray((IMAGES[0, 0] * 255).astype(np.uint8))
    assert attack(net, [picture], iterations=2)[0].shape == (1, 6, 6)


def test_the_bounds_do_not_hang_on_how_the_model_is_wrapped():
    levels = np.random.default_rng(0).integers(0, 17, size=(3, 6, 6)).astype(np.float64)
    levels[0, 0, 0] = 16
    net = small_net(dtype=torch.float32)
    wrapped = [wt.model(net, output="logit"), wt.model(net, output="logit", preprocess=lambda x: x[:, None])]
    for found in (attack(model, given, iterations=2) for model in wrapped for given in (levels, list(levels))):
        assert found.bounds is None
        assert (found.epsilon == 0.05).all()
    assert attack(wrapped[0], levels[:, None], iterations=2).bounds is None


def test_one_input_is_a_result_of_one(net):
    assert len(attack(net, IMAGES[0])) == len(attack(net, IMAGES[0, 0])) == 1


def test_rows_of_an_array_are_inputs_where_the_model_takes_rows():
    x = np.random.default_rng(0).normal(size=(5, 8))
    pandas = pytest.importorskip("pandas")
    for given in (x, pandas.DataFrame(x), x.tolist(), list(x)):
        assert attack(random_linear(3, 8), given).adversarial.shape == (5, 8)
    assert attack(random_linear(3, 8), x[0]).adversarial.shape == (1, 8)


def test_a_spectrogram_is_taken_as_it_is_where_the_model_has_no_channels():
    class OfFrames(torch.nn.Module):
        def forward(self, x):
            frames, _ = x.shape[1:]  # an axis of channels would be one too many
            return torch.stack([x[:, 0].sum(1), x[:, frames - 1].sum(1)], dim=1)

    assert attack(OfFrames(), [np.zeros((4, 5))] * 2).adversarial.shape == (2, 4, 5)


def test_files_are_read_and_a_broken_one_stops_no_other(net, tmp_path):
    image_module = pytest.importorskip("PIL.Image")
    for name in ("a", "c"):
        image_module.fromarray((IMAGES[0, 0] * 255).astype(np.uint8)).save(tmp_path / f"{name}.png")
    (tmp_path / "b.png").write_bytes(b"no picture")
    found = attack(wt.model(net, preprocess=lambda x: x / 255.0, layout="NCHW"), tmp_path, iterations=3)
    assert list(found.errors) == [1]
    assert "b.png" in str(found.errors[1])
    assert found.bounds == (0, 255)
    np.testing.assert_array_equal(found[0], found[2])
    with pytest.raises(ValueError, match=r"b\.png"):
        attack(net, tmp_path / "b.png")


def test_sounds_are_read(tmp_path):
    soundfile = pytest.importorskip("soundfile")
    soundfile.write(tmp_path / "a.wav", np.sin(np.arange(800) / 9) / 2, 8000)
    found = attack(random_linear(2, 800), tmp_path, "carlini_wagner", iterations=30)
    assert found[0].shape == (800,)
    assert attack(random_linear(2, 400), tmp_path / "a.wav", "carlini_wagner", iterations=2, rate=4000)[0].shape == (400,)


@pytest.mark.parametrize("given", [IMAGES, [i.transpose(1, 2, 0) for i in IMAGES]], ids=["first", "last"])
def test_parts_confine_the_attack(net, given):
    found = attack(net, given, parts="grid:2x2", inside=[0, 3], stop="never", iterations=3)
    where = np.zeros((6, 6), dtype=bool)
    where[:3, :3] = where[3:, 3:] = True
    np.testing.assert_array_equal((found.adversarial != found.clean).any(axis=0).reshape(6, 6), where)


@pytest.mark.parametrize("one", [3, np.int64(3)])
def test_one_part_needs_no_list(net, one):
    found, same = (attack(net, IMAGES, parts="grid:2x2", inside=i, stop="never", iterations=3) for i in (one, [3]))
    np.testing.assert_array_equal(found.adversarial, same.adversarial)
    assert (found.adversarial != IMAGES).any()


def test_parts_of_a_sound_confine_the_attack():
    wave = np.sin(np.arange(800) / 9)
    found = attack(random_linear(2, 800), wave, "carlini_wagner", parts="time:4", inside=[1], iterations=5, stop="never")
    assert np.flatnonzero(found[0] != wave)[[0, -1]].tolist() == [200, 399]
    with pytest.raises(ValueError, match="cut it in time"):
        attack(random_linear(2, 800), wave, "carlini_wagner", parts="freq:4", inside=[1])


def test_targets_may_be_names(net):
    found = attack(net, IMAGES, targets=["dog" if label != 3 else "ant" for label in net(IMAGES).argmax(axis=1)])
    assert all(row["target"] in ("dog", "ant") for row in found.table())


def test_no_target_may_be_said_for_each_input(net):
    away, toward = attack(net, IMAGES), (net(IMAGES).argmax(axis=1) + 1) % 4
    np.testing.assert_array_equal(attack(net, IMAGES, targets=[None] * 3).adversarial, away.adversarial)
    mixed = attack(net, IMAGES, targets=[None, int(toward[1]), None])
    assert mixed.targets.tolist() == [-1, toward[1], -1]
    np.testing.assert_array_equal(mixed[0], away[0])


def test_a_method_may_be_an_object(net):
    assert attack(net, IMAGES, PGD(iterations=2), epsilon=0.2).method == PGD(iterations=2, epsilon=0.2)


# --- search -----------------------------------------------------------------------------------------------------------


def test_the_search_picks_the_settings_that_are_known_to_be_best():
    """The margin is 1 and the weights differ by 2: inputs flip from an epsilon of 0.5 on, and 0.6 does it with less than 2."""
    model = linear([[1.0], [-1.0]], [0.0, 0.0])
    found = attack(model, [np.array([0.5]), np.array([0.4])], epsilon=[0.1, 0.45, 0.6, 2.0], step=[0.05, 1.0], units="input")
    assert (found.method.epsilon, found.method.step) == (0.6, 0.05)
    assert len(found.search) == 8
    assert [t["successes"] for t in found.search] == [0, 0, 1, 1, 2, 2, 2, 2]
    assert found.search[4]["mean_linf"] == pytest.approx((0.55 + 0.45) / 2)  # steps of 0.05; the border itself is a tie
    assert all(t["passes"] > 0 for t in found.search)
    assert found.search[4] == {**found.search[4], "epsilon": 0.6, "step": 0.05}


def test_the_search_takes_alpha_too():
    found = attack(random_linear(2, 16), np.random.default_rng(0).normal(size=(4, 16)), "carlini_wagner", alpha=[0.1, 5.0], epsilon=1.0,
                   step=0.01)
    assert {t["alpha"] for t in found.search} == {0.1, 5.0}


def test_bounds_are_a_pair_and_not_searched(net):
    assert attack(net, IMAGES, bounds=[0, 1], iterations=2).search is None


# --- errors -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("options", "kind", "message"), [
    ({"epsilom": 0.1}, TypeError, "did you mean 'epsilon'"), ({"method": "pdg"}, ValueError, "did you mean 'pgd'"),
    ({"method": PGD}, TypeError, "the class PGD"), ({"method": 3}, TypeError, "such as PGD"), ({"seed": -1}, ValueError, "seed must be"),
    ({"epsilon": []}, ValueError, "at least one value"), ({"parts": "grid:2x2"}, ValueError, "must come with inside"),
    ({"parts": "grid:2x2", "inside": [4]}, ValueError, "from 0 to 3"), ({"parts": "grid:2x2", "inside": []}, ValueError, "at least one"),
    ({"parts": "grid:2x2", "inside": 4}, ValueError, "from 0 to 3"), ({"parts": "grid:2x2", "inside": True}, ValueError, "got True"),
    ({"method": "enhance", "targets": [None] * 3}, ValueError, "true label of its input, got None"),
    ({"method": "enhance"}, ValueError, "pass them as targets"), ({"batch_siz": 1}, TypeError, "did you mean 'batch_size'"),
    ({"epsilon": [0.1, -1]}, ValueError, "epsilon must be"),
])
def test_a_wrong_call_is_one_clear_error(net, options, kind, message):
    with pytest.raises(kind, match=message):
        attack(net, IMAGES, **options)


@pytest.mark.parametrize("given", ["a text", ["a text", "another"], {"a": 1}, np.array([["a", "b"]])])
def test_words_have_no_gradient(net, given):
    with pytest.raises(TypeError, match="swapping words"):
        attack(net, given)


def test_a_table_with_strings_has_no_gradient(net):
    pandas = pytest.importorskip("pandas")
    with pytest.raises(TypeError, match="turned into numbers"):
        attack(net, pandas.DataFrame({"a": [1, 2], "b": ["x", "y"]}))


def test_a_black_box_is_told_so():
    with pytest.raises(TypeError, match="gradients"):
        attack(lambda batch: np.zeros((len(batch), 2)), IMAGES)


def test_a_shape_that_the_model_does_not_take_is_the_models_own_error(net):
    with pytest.raises(ValueError, match="must accept such a batch"):
        attack(net, np.zeros((1, 3, 6, 6)))


# --- pictures ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(1, 6, 6), (6, 6), (6, 6, 3), (12, 30), (500,), (5, 6, 7)])
def test_a_result_can_be_drawn(shape):
    pytest.importorskip("matplotlib")
    x = np.random.default_rng(0).uniform(size=(2, *shape))
    model = random_linear(2, int(np.prod(shape)))
    figure = PGD(epsilon=0.3)(model, x).plot(n=2)
    assert len(figure.axes) == 6
    assert "class" in figure.axes[0].get_title()


def test_the_factor_of_a_picture_is_round_and_fills_it():
    from whytrust.attacks.figures import blue_orange, factor
    for most, expected in ((0.05, 20), (0.03, 20), (0.01, 100), (1.0, 1), (0.0, 1), (1e-9, 1), (0.0021, 200)):
        assert factor(np.array([most]), 1.0) == pytest.approx(expected)
    assert np.allclose(blue_orange(np.zeros(2)), 1)
    assert blue_orange(np.array([1.0]))[0, 2] > blue_orange(np.array([1.0]))[0, 0]


def test_parts_may_be_named(net):
    by_name = attack(net, IMAGES, iterations=5, parts="grid:2x2", inside=["segment 2 (top right)"])
    np.testing.assert_array_equal(by_name.adversarial, attack(net, IMAGES, iterations=5, parts="grid:2x2", inside=1).adversarial)
    with pytest.raises(ValueError, match=r"0 to 3 \(0 is 'segment 1 \(top left\)'\) or their names, at least one, got 'segment 9'"):
        attack(net, IMAGES, parts="grid:2x2", inside=["segment 9"])


def test_a_failure_comes_with_advice_and_unknown_bounds_are_said(net):
    weak = attack(net, IMAGES, iterations=1, epsilon=1e-6)
    assert not weak.success.any()
    assert any("larger epsilon" in note for note in weak.notes)
    assert not any("bounds" in note for note in weak.notes)
    rows = np.random.default_rng(0).normal(size=(3, 5))
    assert any("bounds=(low, high)" in note for note in attack(random_linear(3, 5), rows, epsilon=9.0).notes)
    assert not any("bounds" in note for note in attack(random_linear(3, 5), rows, epsilon=9.0, bounds=None).notes)


@pytest.mark.parametrize(("name", "meant"), [("eps", "epsilon"), ("steps", "iterations"), ("alpha", "step")])
def test_what_others_call_an_option_is_understood(net, name, meant):
    with pytest.raises(TypeError, match=f"no option '{name}' .did you mean '{meant}'"):
        attack(net, IMAGES, **{name: 1})


def test_it_shows_itself_in_one_line(net):
    assert repr(attack(net, IMAGES, iterations=1)).startswith("<PGD on Sequential: ")


def test_a_figure_says_how_many_it_leaves_out(net):
    found = attack(net, IMAGES, iterations=1)
    assert found.plot(2).get_suptitle() == "2 of 3 inputs"
    assert found.plot().get_suptitle() == ""


def test_a_preprocessing_in_place_leaves_the_users_inputs_alone():
    def shift(batch):
        batch -= 0.5
        return batch

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(12, 3))
    rows = np.random.default_rng(0).random((2, 12)).astype(np.float32)
    given = rows.copy()
    found, honest = (attack(wt.model(net, output="logit", preprocess=p), given, epsilon=0.3) for p in (shift, lambda b: b - 0.5))
    np.testing.assert_array_equal(given, rows)
    np.testing.assert_array_equal(found.clean, rows)
    np.testing.assert_array_equal(found.adversarial, honest.adversarial)


@pytest.mark.parametrize(("options", "advice"), [
    ({"epsilon": 1e-6}, r"epsilon=\[2e-06, 5e-06, 1e-05\];"), ({"epsilon": 0.3, "step": 1e-9}, r"epsilon=\[0.6\];"),
    ({"epsilon": 1e-6, "targets": "dog"}, "no input reached its target"), ({"epsilon": [1e-7, 1e-6]}, "may do it; that this"),
    ({"epsilon": 1e-6, "units": "input"}, r"epsilon=\[2e-06")])
def test_advice_goes_beyond_what_was_tried(net, options, advice):
    weak = attack(net, IMAGES, iterations=1, **options)
    assert any(re.search(advice, note) for note in weak.notes)


def test_a_missed_margin_is_not_blamed_on_epsilon(net):
    found = attack(net, IMAGES, epsilon=0.9, margin=1e5, iterations=30)
    assert (found.labels != found.clean_labels).any()
    assert any("none by the margin of 100000" in note for note in found.notes)


@pytest.mark.parametrize("inside", [[[0], 1], [["segment 1 (top left)"], "segment 2 (top right)"]])
def test_parts_of_each_input_may_be_one_or_several(net, inside):
    found = attack(net, IMAGES[:2], iterations=3, parts="grid:2x2", inside=inside)
    changed = found.adversarial != found.clean
    assert not changed[0, 0, :, 3:].any()
    assert not changed[1, 0, :, :3].any()


def test_one_multiplier_for_all_inputs_of_a_figure(net):
    small, large = (attack(net, IMAGES[:1], epsilon=e, iterations=20, stop="never") for e in (0.02, 0.4))
    both = small.outcomes + large.outcomes
    titles = [ax.get_title() for ax in replace(small, outcomes=both).plot().axes]
    assert len({title.partition("shown ")[2] for title in titles if "largest" in title}) == 1


@pytest.mark.parametrize("shape", [(3, 4, 40), (3, 40, 4), (2, 2), (12,), (500,), (6, 9), (1, 1, 7)])
def test_every_shape_is_drawn(shape):
    size = int(np.prod(shape))
    found = attack(random_linear(2, size), [np.random.default_rng(i).random(shape) for i in range(2)], epsilon=0.5, bounds=None)
    figure = found.plot()
    figure.canvas.draw()
    assert min(figure.get_size_inches()) > 2
