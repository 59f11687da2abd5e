import enum
import importlib
import os
import pickle
import sys
import types

import joblib
import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression

from whytrust import MissingExtra
from whytrust.cli import main
from whytrust.loading import load

X = np.random.default_rng(0).normal(size=(60, 3))
FITTED = LogisticRegression().fit(X, np.where(X[:, 0] > 0, "up", "down"))


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


class Trap:
    """A pickle that would run code."""

    def __reduce__(self):
        return os.mkdir, ("sprung",)


@pytest.mark.parametrize("dump", [joblib.dump, lambda model, path: path.write_bytes(pickle.dumps(model))])
@pytest.mark.parametrize("name", ["m.joblib", "m.pkl"])
def test_a_pickled_estimator_is_read_when_vouched_for(folder, dump, name):
    dump(FITTED, folder / name)
    np.testing.assert_array_equal(load(name, trust_pickle=True).model(X), FITTED.predict_proba(X))


def test_a_pickle_is_not_read_unless_vouched_for(folder, capsys):
    (folder / "m.pkl").write_bytes(pickle.dumps(Trap()))
    assert main(["explain", "m.pkl", "a text"]) == 2
    assert "--trust-pickle" in capsys.readouterr().err
    assert not (folder / "sprung").exists()


@pytest.mark.parametrize(("spec", "message"), [
    ("m.joblib", "does not exist"), ("weights.pt", "weights without the code"), ("net.h5", "framework"),
    ("what", "MODEL must be demo:NAME"), ("mine.py:model", "does not exist"), ("gone.onnx", "gone.onnx"),
])
def test_what_cannot_be_a_model_is_one_clear_error(spec, message):
    with pytest.raises(ValueError, match=message):
        load(spec, trust_pickle=True)


@pytest.mark.parametrize(("raw", "where"), [(b"x = 1\ndef broken(:\n", ", line 2"), (b"x = 1\0", ""), (b"\xff\xfe", ""), (b"x = (", ", line 1")])
def test_a_file_that_is_no_python_is_one_clear_error(raw, where, tmp_path, capsys):
    (tmp_path / "model.py").write_bytes(raw)
    with pytest.raises(ValueError, match=rf"file of Python code, and .*model\.py{where}"):
        load(f"{tmp_path / 'model.py'}:predict")
    assert main(["explain", f"{tmp_path / 'model.py'}:predict", "a text"]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_what_the_code_of_a_file_raises_is_its_own(tmp_path):
    (tmp_path / "model.py").write_text("raise SyntaxError('mine')")
    with pytest.raises(SyntaxError, match="mine"):
        load(f"{tmp_path / 'model.py'}:predict")


def test_a_broken_pickle_says_so(folder):
    (folder / "m.pkl").write_bytes(b"nothing of the kind")
    with pytest.raises(ValueError, match="reading it gave"):
        load("m.pkl", trust_pickle=True)


def test_options_of_the_command_line_reach_the_model(folder, capsys):
    (folder / "mine.py").write_text("def f(texts): return [2.0 if 'good' in t else -1.0 for t in texts]")
    (folder / "names.txt").write_text("bad\nfine\n")
    assert main(["explain", "mine.py:f", "a good film", "--output", "logit", "--threshold", "0.9", "--classes", "bad, fine"]) == 0
    assert capsys.readouterr().out.startswith("f: bad = 0.119")  # sigmoid(2) = .88 is below the threshold
    assert main(["explain", "mine.py:f", "a good film", "--output", "logit", "--classes", "names.txt"]) == 0
    assert capsys.readouterr().out.startswith("f: fine = 0.8808")


# --- torchvision: its API, without its package, which has no build for every torch ------------------------------------


class Weights:
    meta = {"categories": ["crane", "dog", "crane"]}  # noqa: RUF012

    def transforms(self):
        return lambda images: images.float() / (255 if images.dtype == torch.uint8 else 1)


class Published(enum.Enum):
    """As torchvision's: members hold weights, and DEFAULT is another name of the newest."""

    IMAGENET1K_V1 = "old"
    IMAGENET1K_V2 = "new"
    DEFAULT = IMAGENET1K_V2

    meta = property(lambda self: Weights.meta)
    transforms = Weights.transforms


@pytest.fixture
def fake_torchvision(monkeypatch):
    net = torch.nn.Sequential(torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(3, 3))
    models = types.ModuleType("torchvision.models")

    def get_model_weights(name):
        if name != "tiny":
            raise ValueError(f"Unknown model {name}")
        return Published

    models.get_model_weights = get_model_weights
    models.loaded = []
    models.get_model = lambda name, weights: models.loaded.append((name, weights)) or net
    monkeypatch.setitem(sys.modules, "torchvision", types.ModuleType("torchvision"))
    monkeypatch.setitem(sys.modules, "torchvision.models", models)
    return models, net


def test_a_torchvision_model_comes_with_its_preprocessing_and_names(fake_torchvision):
    _, net = fake_torchvision
    model = load("torchvision:tiny").model
    assert model.classes == ("crane (0)", "dog", "crane (2)")
    images = np.random.default_rng(0).integers(0, 256, (2, 8, 9, 3)).astype(np.uint8)
    with torch.no_grad():
        expected = net(torch.from_numpy(images).permute(0, 3, 1, 2).float() / 255).softmax(1)
    np.testing.assert_allclose(model(images), expected, atol=1e-6)
    np.testing.assert_allclose(model(images.astype(np.float64)), expected, atol=1e-6)
    np.testing.assert_allclose(model(images / 255), expected, atol=1e-6)
    grey = model(images[..., 0])
    np.testing.assert_allclose(grey, model(np.repeat(images[..., :1], 3, axis=3)), atol=1e-6)


def test_a_torchvision_model_has_the_weights_that_are_named(fake_torchvision):
    models, _ = fake_torchvision
    for spec, weights in (("tiny", "new"), ("tiny@IMAGENET1K_V1", "old"), ("tiny@IMAGENET1K_V2", "new")):
        assert load(f"torchvision:{spec}").model.name == "tiny"
        name, found = models.loaded[-1]
        assert (name, found.value) == ("tiny", weights)
    with pytest.raises(ValueError, match="weights of torchvision:tiny must be one of IMAGENET1K_V1, IMAGENET1K_V2, DEFAULT, got 'V3'"):
        load("torchvision:tiny@V3")


def test_an_unknown_torchvision_name_and_a_missing_network_are_clear(fake_torchvision):
    with pytest.raises(ValueError, match="no classifier named 'huge'"):
        load("torchvision:huge")

    def offline(name, weights):
        raise OSError("no route to host")

    fake_torchvision[0].get_model = offline
    with pytest.raises(ValueError, match="neither cached nor could they be downloaded"):
        load("torchvision:tiny")


def test_a_torchvision_that_does_not_import_is_named(monkeypatch):
    def broken(name):
        raise RuntimeError("operator torchvision::nms does not exist")

    monkeypatch.setattr(importlib, "import_module", broken)
    with pytest.raises(MissingExtra, match="matches torch, and it could not be imported"):
        load("torchvision:tiny")
