"""The demonstrations: hand-computed examples, closed forms, and a whole run on a few digits."""

import json
import math

import numpy as np
import pytest

from whitebox import Bits
from whytrust.checked import CheckedModel
from whytrust.cli import main
from whytrust.core import generator
from whytrust.measures.flipping import PixelFlipping
from whytrust.measures.judged import Judged
from whytrust.models.whitebox import AdditiveModel
from whytrust.question import Question
from whytrust.studies import pitfalls_linear, pitfalls_run, pitfalls_told
from whytrust.studies.pitfalls_flipping import dice

DIGITS = pitfalls_linear.read(None, 0.1)


def test_the_papers_counter_example_comes_out():
    found = pitfalls_linear.example()
    np.testing.assert_allclose(found["scores"], [[3, math.sqrt(6), math.sqrt(5)], [1, 0, 0], [2, math.sqrt(6), math.sqrt(5)]])
    assert found["labels"] == [0, 0, 1]


def test_the_counter_example_misleads_our_own_metric_by_accuracy_and_not_by_score():
    weights = np.array([[2.0, 1.0], [math.sqrt(6), 0.0], [math.sqrt(5), 0.0]])
    question = Question(CheckedModel(lambda batch: np.asarray(batch) @ weights.T), Bits(2), 0)
    truth, other = (Judged(question, np.array(scores)) for scores in ([2.0, 1.0], [1.0, 2.0]))
    by_score, by_accuracy = PixelFlipping(), PixelFlipping(indicator="accuracy")
    assert by_score(truth, generator(0)) > by_score(other, generator(0))
    assert by_accuracy(truth, generator(0)) < by_accuracy(other, generator(0))


def test_among_random_linear_models_only_the_accuracy_is_misled():
    often = pitfalls_linear.how_often(300, 0)
    assert often["score"] == 0
    assert often["accuracy"] > 0.2


def test_a_box_is_tight():
    digit = np.zeros((5, 6))
    digit[1, 2] = digit[3, 4] = 7
    assert np.argwhere(pitfalls_linear.box(digit)).min(axis=0).tolist() == [1, 2]
    assert np.argwhere(pitfalls_linear.box(digit)).max(axis=0).tolist() == [3, 4]
    assert not pitfalls_linear.box(np.zeros((3, 3))).any()


def test_the_manipulation_changes_one_weight_a_class_no_label_and_every_largest_contribution():
    rng = np.random.default_rng(0)
    images = rng.normal(size=(30, 4, 4))
    images[:, 0, 0] = -0.4
    weights = rng.normal(size=(3, 4, 4))
    weights[:, 0, 0] = 0
    model = AdditiveModel(weights)
    other = pitfalls_linear.manipulated(model, images)
    np.testing.assert_array_equal(model(images).argmax(axis=1), other(images).argmax(axis=1))
    assert np.count_nonzero(other.each - model.each) == 3
    for image in images:
        for target in range(3):
            assert other.contributions(image, np.zeros((4, 4)), target).argmax() == 0


def test_a_corner_that_is_no_mark_is_refused():
    with pytest.raises(ValueError, match="must be the same in all images, and not 0"):
        pitfalls_linear.manipulated(AdditiveModel(np.ones((2, 3, 3))), np.zeros((4, 3, 3)))


def test_dice_is_n_over_N_on_average():
    order = np.arange(60)
    steps = np.array([0, 10, 20, 40])
    means = np.mean([dice(order, generator(0, i).permutation(40), steps) for i in range(400)], axis=0)
    np.testing.assert_allclose(means, [1, 10 / 40, 20 / 40, 1], atol=0.02)


def test_digits_are_read_and_odd_files_are_told(tmp_path):
    assert DIGITS.train.shape[1:] == (8, 8)
    assert len(DIGITS.test) == 45
    with pytest.raises(ValueError, match=r"a folder with mnist\.npz"):
        pitfalls_linear.read(tmp_path)
    np.savez(tmp_path / "mnist.npz", x_train=np.zeros((3, 2)), y_train=np.zeros(3), x_test=np.zeros((3, 2)), y_test=np.zeros(3))
    with pytest.raises(ValueError, match=r"must hold images \(n, H, W\)"):
        pitfalls_linear.read(tmp_path)
    (tmp_path / "mnist.npz").write_bytes(b"nothing of the kind")
    with pytest.raises(ValueError, match="with the arrays"):
        pitfalls_linear.read(tmp_path)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    pytest.importorskip("torch")
    folder = tmp_path_factory.mktemp("pitfalls") / "run"
    pitfalls_run.reproduce(pitfalls_run.Asked("all", scale=0.01, out=str(folder)))
    return folder


def test_a_whole_run_has_every_table_figure_and_sentence(run):
    found = json.loads(pitfalls_run.report(run, as_json=True))
    titles = " ".join(table["title"] for table in found["tables"])
    assert all(word in titles for word in ("Table 2", "Table 3", "Figure 6", "Figures 1 and 4", "appendix E"))
    assert found["cases"]["failed"] == 0
    drawn = {path.stem for path in (run / "figures").glob("*.png")}
    assert {f"metrics-fig{n}" for n in (1, 3, 4, 5, 6)} | {"metrics-boxes", "metrics-twins-deep-grad_cam"} <= drawn
    text = (run / "tables.md").read_text()
    assert "published" in text
    assert "nan" not in text


def test_enhancement_makes_untrained_nets_right(run):
    found = pitfalls_run.findings(pitfalls_run.opened(run), "table2")
    rows = {row[0]: row for row in found["tables"][0]["rows"]}
    assert all(float(rows[net][2].split()[0]) >= 75 for net in ("shallow", "deep", "slim"))


def test_edges_do_not_see_the_net(run):
    found = pitfalls_run.findings(pitfalls_run.opened(run), "appendix")
    called = {row[0]: row[-1] for table in found["tables"][1:] for row in table["rows"]}
    assert called["edges (no model)"] == "does not see the net"


def test_the_command_line_reports_it_and_refuses_what_it_cannot(run, tmp_path, capsys):
    assert main(["report", str(run)]) == 0
    assert "Wang & Wang" in capsys.readouterr().out
    assert main(["reproduce", "metrics", "fig9", "--out", str(tmp_path)]) == 2
    assert "experiment must be one of" in capsys.readouterr().err
    assert main(["reproduce", "metrics", "table3", "--scale", "2", "--out", str(tmp_path)]) == 2
    assert main(["reproduce", "metrics", "table3", "--data", str(tmp_path / "none"), "--out", str(tmp_path)]) == 2
    assert "there is no" in capsys.readouterr().err


def test_a_run_without_a_right_image_says_so():
    assert "no curve" in pitfalls_told.flipping([{"status": "ok", "right": False, "score": 1.0}])[0][0]


def test_the_walk_of_the_indicator_is_that_of_pixel_flipping():
    rng = np.random.default_rng(3)
    weights, values = rng.normal(size=(3, 5)), rng.normal(size=5)
    target = int((weights @ values).argmax())
    order = rng.permutation(5)
    scores = np.empty(5)
    scores[order] = np.arange(5)[::-1]
    question = Question(CheckedModel(lambda batch: (np.asarray(batch) * values) @ weights.T), Bits(5), target)
    fall, lost = pitfalls_linear._walked(weights, values, order, target)
    assert PixelFlipping()(Judged(question, scores), generator(0)) == pytest.approx(fall)
    assert PixelFlipping(indicator="accuracy")(Judged(question, scores), generator(0)) == pytest.approx(lost)
