"""Adversaries that were made before, and a target for each input, in place of an attack's own."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

import whytrust as wt
from planted import GRID, white_box
from whytrust.attacks import PGD
from whytrust.cli import main
from whytrust.models.whitebox import PlantedCause
from whytrust.store import Store

BOX = white_box(5)
INPUTS = list(PlantedCause(GRID == 5).inputs(6, 1))
ATTACK = {"method": "pgd", "epsilon": 0.5, "step": 0.05, "iterations": 30, "units": "input", "bounds": None}
ASKED = {"explainers": ["occlusion", "saliency"], "parts": "grid:4x4", "fill": 0.0}
EXPLAINERS = ("occlusion", "saliency", "magnitude", "oracle")


def curves(audit):
    """Of each case whether the label flips, at every k."""
    return {r["case"]: {name: (t["k"], t["flip"]["any"].get(name), t["flip"]["target"].get(name)) for name in EXPLAINERS}
            for r in audit.store.records() if r["status"] == "ok" for t in r["trials"]}


@pytest.fixture(scope="module")
def attacked(tmp_path_factory):
    found = wt.audit(BOX, INPUTS, attack=ATTACK, out=tmp_path_factory.mktemp("attacked") / "run", **ASKED)
    assert found.findings["counts"]["adversaries"] == 6
    return found, [found.store.arrays(f"{i:05d}")["adversarial"] for i in range(6)]


def test_what_an_attack_made_gives_the_same_flips_at_every_k_when_it_is_saved(attacked, tmp_path):
    found, saved = attacked
    again = wt.audit(BOX, INPUTS, adversaries=saved, out=tmp_path / "list", **ASKED)
    assert curves(again) == curves(found)
    assert len(curves(found)) == 6
    for name in (path.name for path in tmp_path.iterdir()):
        assert [r["label"] for r in Store.open(tmp_path / name).records()] == [r["label"] for r in found.store.records()]
    np.save(tmp_path / "a.npy", np.stack(saved))
    np.savez(tmp_path / "a.npz", clean=np.stack(INPUTS), adversarial=np.stack(saved))
    np.savez(tmp_path / "one.npz", np.stack(saved))
    for file in ("a.npy", "a.npz", "one.npz"):
        assert curves(wt.audit(BOX, INPUTS, adversaries=tmp_path / file, out=tmp_path / f"of {file}", **ASKED)) == curves(found)
    facts = [[r["attack"][name] for r in audit.store.records() for name in ("linf", "l2", "relative_l2")] for audit in (found, again)]
    assert np.allclose(*facts, rtol=1e-5)
    assert again.findings["attack"]["method"] == "saved adversaries"


def test_those_of_some_inputs_are_taken_by_their_place(attacked, tmp_path):
    found, saved = attacked
    some = wt.audit(BOX, INPUTS, adversaries=saved, limit=2, out=tmp_path / "run", **ASKED)
    assert curves(some) == {case: curve for case, curve in curves(found).items() if case in ("00000", "00005")}


def test_an_adversary_that_does_not_change_the_label_did_not_fool_the_model(attacked, tmp_path):
    saved = [INPUTS[0], *attacked[1][1:]]
    found = wt.audit(BOX, INPUTS, adversaries=saved, out=tmp_path / "run", **ASKED)
    assert [r["status"] for r in found.store.records()] == ["not fooled"] + ["ok"] * 5
    none = wt.audit(BOX, INPUTS, adversaries=INPUTS, out=tmp_path / "none", **ASKED)
    assert none.verdicts()["occlusion"] == "undecided: no input could be fooled with this attack; pass other adversaries"


def test_a_saved_adversary_that_misses_its_target_did_not_fool_the_model(attacked, tmp_path):
    """The white box has two classes, and every adversary is of the second."""
    found = wt.audit(BOX, INPUTS, adversaries=attacked[1], targets=["bright"] * 3 + ["dark"] * 3, out=tmp_path / "run", **ASKED)
    assert [r["status"] for r in found.store.records()] == ["ok"] * 3 + ["not fooled"] * 3
    assert [r["attack"]["target"] for r in found.store.records()] == [1] * 3 + [0] * 3


@pytest.mark.parametrize(("wrong", "error", "message"), [
    ({"adversaries": INPUTS[:3]}, ValueError, "adversaries must be one for each input: expected 6, got 3"),
    ({"adversaries": INPUTS, "attack": "pgd"}, TypeError, "adversaries were given, so nothing is attacked: leave attack out"),
    ({"adversaries": 7}, TypeError, "adversaries must be arrays, texts or rows, one for each input"),
    ({"adversaries": "nowhere.npy"}, ValueError, "nowhere.npy does not exist"),
    ({"attack": ATTACK, "targets": [1] * 4}, ValueError, "targets must be one class for each input: expected 6, got 4"),
    ({"attack": ATTACK, "targets": "bright"}, TypeError, "targets must be a list with a class for each input"),
    ({"attack": {**ATTACK, "targets": [1] * 6}, "targets": [1] * 6}, TypeError, "targets were given twice"),
    ({"attack": {**ATTACK, "targets": "random"}, "targets": [1] * 6}, TypeError, "targets were given twice"),
    ({"attack": ATTACK, "targets": [1] * 5 + [7]}, ValueError, "target must be an index from 0 to 1.*got 7"),
    ({"adversaries": INPUTS, "targets": [None] * 6}, TypeError, "targets must be a class for each input, got None for input 0"),
])
def test_what_does_not_fit_the_inputs_is_one_clear_error(wrong, error, message, tmp_path):
    with pytest.raises(error, match=message):
        wt.audit(BOX, INPUTS, out=tmp_path / "run", **wrong, **ASKED)
    assert not (tmp_path / "run").exists()


def test_an_adversary_of_another_shape_is_that_input_s_failure(attacked, tmp_path):
    saved = [attacked[1][0][:4], *attacked[1][1:]]
    found = wt.audit(BOX, INPUTS, adversaries=saved, out=tmp_path / "run", **ASKED)
    assert found.findings["counts"]["failed"] == 1
    assert "must have its input's shape: expected (8, 8), got (4, 8)" in found.findings["failures"][0]["error"]


def test_other_adversaries_or_targets_are_another_run(attacked, tmp_path):
    saved = attacked[1]
    wt.audit(BOX, INPUTS, adversaries=saved, out=tmp_path / "run", **ASKED)
    wt.audit(BOX, INPUTS, adversaries=[one.copy() for one in saved], out=tmp_path / "run", **ASKED)
    with pytest.raises(ValueError, match=r"another spec: other content of adversaries"):
        wt.audit(BOX, INPUTS, adversaries=[saved[0] + 0.01, *saved[1:]], out=tmp_path / "run", **ASKED)
    with pytest.raises(ValueError, match=r"another spec: not there before: targets"):
        wt.audit(BOX, INPUTS, adversaries=saved, targets=[1] * 6, out=tmp_path / "run", **ASKED)


def three_classes():
    torch = pytest.importorskip("torch")
    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(16, 3))
    net[1].weight.data, net[1].bias.data = torch.eye(3, 16), torch.tensor([1.0, 0, 0])
    return wt.model(net.eval(), output="logit", layout="NCHW", name="three", classes=["a", "b", "c"])


@pytest.mark.parametrize("targets", [["b", "c", "c", "b", "c"], np.array([1, 2, 2, 1, 2])])
@pytest.mark.parametrize("inside", [False, True])
def test_every_input_is_led_to_its_own_target(targets, inside, tmp_path):
    """Class j is led by pixel j, and the first one by nothing: each target can be reached."""
    images = np.zeros((5, 1, 4, 4), dtype=np.float32)
    attack = {"method": "pgd", "epsilon": 2.0, "step": 0.2, "iterations": 20, "units": "input", "bounds": None}
    asked = {"attack": {**attack, "targets": targets}} if inside else {"attack": attack, "targets": targets}
    found = wt.audit(three_classes(), list(images), ["saliency"], "grid:4x4", out=tmp_path / "run", block=2, **asked)
    assert [r["label"] for r in found.store.records()] == [1, 2, 2, 1, 2]
    single = PGD(epsilon=2.0, step=0.2, iterations=20, units="input", bounds=None)
    again = wt.audit(three_classes(), list(images), ["saliency"], "grid:4x4", single, targets=targets, out=tmp_path / "object")
    assert [r["label"] for r in again.store.records()] == [1, 2, 2, 1, 2]
    with pytest.raises(ValueError, match="another spec"):
        wt.audit(three_classes(), list(images), ["saliency"], "grid:4x4", single, targets=["b"] * 5, out=tmp_path / "object")


def test_rows_that_were_saved(tmp_path):
    rows = pd.DataFrame({"x": [-2.0, -1, 1, 2], "y": [0.0, 1, 0, 1]})
    model = LogisticRegression().fit(rows, [0, 0, 1, 1])
    other = rows.assign(x=-rows.x)
    found = wt.audit(model, rows, ["occlusion"], background=rows, adversaries=other, out=tmp_path / "run")
    assert [(r["status"], r["clean_label"], r["label"]) for r in found.store.records()] == [
        ("ok", 0, 1), ("ok", 0, 1), ("ok", 1, 0), ("ok", 1, 0)]
    trial = next(found.store.records())["trials"][0]
    assert trial["flip"]["any"]["oracle"] == "11"  # x alone was changed, and x alone turns the label


def good(texts):
    high = np.array([text.count("good") for text in texts]) > 0
    return np.stack([~high, high], axis=1).astype(float)


def test_texts_that_were_saved(tmp_path):
    texts = ["a bad film", "a bad plot", "a good film"]
    saved = ["a good film", "a dull plot", "a good film with more words"]
    found = wt.audit(good, texts, ["occlusion"], adversaries=saved, out=tmp_path / "run")
    assert [r["status"] for r in found.store.records()] == ["ok", "not fooled", "failed"]
    first = next(found.store.records())
    assert (first["attack"]["swaps"], first["attack"]["swapped"]) == ("bad → good", 1)
    assert "must have as many words as its input" in found.findings["failures"][0]["error"]
    with pytest.raises(ValueError, match="words are swapped until the label is any other one"):
        wt.audit(good, texts, ["occlusion"], targets=[1, 1, 0], out=tmp_path / "other")


def test_a_spec_names_files_of_adversaries_and_targets(attacked, tmp_path, capsys):
    pytest.importorskip("torch")
    (tmp_path / "net.py").write_text("from planted import planted_net\nnet = planted_net()\n")
    np.save(tmp_path / "inputs.npy", np.stack(INPUTS)[:, None].astype(np.float32))
    np.save(tmp_path / "saved.npy", np.stack(attacked[1])[:, None].astype(np.float32))
    (tmp_path / "targets.txt").write_text("1\n" * 5 + "0\n")
    spec = tmp_path / "spec.toml"
    spec.write_text('model = "net.py:net"\nmodel_options = {output = "logit", layout = "NCHW"}\ninputs = "inputs.npy"\nparts = "grid:4x4"\n'
                    'fill = 0.0\nexplainers = ["occlusion"]\nadversaries = "saved.npy"\ntargets = "targets.txt"\n')
    assert main(["audit", str(spec), "--out", str(tmp_path / "run")]) == 0, capsys.readouterr().err
    assert [r["status"] for r in Store.open(tmp_path / "run").records()] == ["ok"] * 5 + ["not fooled"]
    np.save(tmp_path / "saved.npy", np.stack(attacked[1])[:, None].astype(np.float32) * 0.99)
    assert main(["audit", str(spec), "--out", str(tmp_path / "run")]) == 2
    assert "holds a run of another spec: other content of adversaries" in capsys.readouterr().err
    np.save(tmp_path / "saved.npy", np.zeros((2, 1, 8, 8), np.float32))
    assert main(["audit", str(spec), "--out", str(tmp_path / "other")]) == 2
    assert "adversaries must be one for each input: expected 6, got 2" in capsys.readouterr().err
