"""Images of bytes and of floats through a preprocess that is a torch module, as torchvision's transforms are."""

import numpy as np
import pytest

import whytrust as wt

torch = pytest.importorskip("torch")
nn = torch.nn

MEAN, DEVIATION = 0.3, 0.35
IMAGES = np.random.default_rng(0).integers(0, 256, (6, 3, 8, 8), dtype=np.uint8)


class ToDtype(nn.Module):
    """As torchvision.transforms.v2.ToDtype(torch.float32, scale=True): whole numbers go to 0–1, floats stay as they are."""

    def forward(self, images):
        return images if images.is_floating_point() else images.float() / torch.iinfo(images.dtype).max


class Preset(nn.Module):
    """As the transforms of torchvision's weights: resized, in bytes where bytes come; scaled; normalised."""

    def __init__(self, size=None, mode="bilinear"):
        super().__init__()
        self.size, self.mode, self.scaled = size, mode, ToDtype()

    def forward(self, images):
        if self.size is not None:
            resized = nn.functional.interpolate(images.float(), (self.size, self.size), mode=self.mode, antialias=True)
            images = resized if images.is_floating_point() else resized.round().clamp(0, 255).to(images.dtype)
        return (self.scaled(images) - MEAN) / DEVIATION


def net_of(side=8):
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Conv2d(8, 8, 3), nn.ReLU(), nn.Flatten(),
                         nn.Linear(8 * (side - 4) ** 2, 4)).eval()


def model_of(preset=None, side=8):
    return wt.model(net_of(side), preprocess=preset or Preset(), layout="NCHW", output="logit")


def truth(images=IMAGES, preset=None, side=8):
    """What the net says of images in bytes, in torch alone."""
    with torch.no_grad():
        return net_of(side)((preset or Preset())(torch.from_numpy(images))).softmax(1).numpy()


@pytest.mark.parametrize("units", ["bytes", "grey levels", "shares", "whole numbers"])
def test_scores_are_the_nets_own_in_any_units(units):
    images = {"bytes": IMAGES, "grey levels": IMAGES.astype(np.float32), "shares": IMAGES / 255,
              "whole numbers": IMAGES.astype(np.int64)}[units]
    np.testing.assert_allclose(model_of()(images), truth(), atol=1e-6)


def test_an_image_keeps_its_units_whatever_others_are_in_the_batch():
    dark = (IMAGES[:1] / 255 * 0.01).astype(np.float32)
    both = model_of()(np.concatenate([dark, IMAGES[1:2].astype(np.float32)]))
    np.testing.assert_allclose(both[:1], model_of()(dark), atol=1e-6)
    np.testing.assert_allclose(both[1:], truth()[1:2], atol=1e-6)


def test_a_preset_that_resizes_bytes_gets_bytes():
    preset = Preset(size=6)
    np.testing.assert_allclose(model_of(preset, 6)(IMAGES), truth(preset=preset, side=6), atol=1e-6)
    np.testing.assert_allclose(model_of(preset, 6)(IMAGES / 255), truth(preset=preset, side=6), atol=0.01)  # not rounded


@pytest.mark.parametrize("side", [6, 13, 32])
def test_a_preset_with_a_bicubic_resize_scales_bytes_too(side, recwarn):
    """A bicubic resize goes beyond black and white, where bytes end and floats do not; here photographs are smooth."""
    preset, smooth = Preset(side, "bicubic"), np.linspace(20, 235, 6 * 3 * 8 * 8).reshape(IMAGES.shape).astype(np.uint8)
    model, said = model_of(preset, side), truth(smooth, preset, side)
    np.testing.assert_allclose(model(smooth), said, atol=1e-6)
    for images in (smooth.astype(np.float32), smooth / 255):
        np.testing.assert_allclose(model(images), said, atol=0.02)  # not rounded
    assert wt.explain(model, smooth[0], method="saliency", parts="grid:2x2", target=1).scores.any()
    assert not recwarn.list


def test_images_of_16_bits_are_scaled_by_what_they_can_hold():
    deep = IMAGES.astype(np.uint16) * 257
    np.testing.assert_allclose(model_of()(deep), truth(), atol=1e-6)
    e = wt.explain(model_of(), deep[0], method="occlusion", parts="grid:2x2", target=1)
    assert e.prediction == pytest.approx(truth()[0, 1], abs=1e-5)
    with pytest.raises(ValueError, match=r"got uint16; pass image / 65535 as float32"):
        wt.explain(model_of(), deep[0], method="saliency", parts="grid:2x2", target=1)


class Counts(nn.Module):
    """Of a camera of 12 bits, in numbers of its own."""

    def forward(self, images):
        return (images.float() - 1000) / 500


class Bare(nn.Module):
    """The same, by what torch cannot do with uint16."""

    def forward(self, images):
        return (images - 1000) / 500


@pytest.mark.parametrize("preprocess", [Counts(), Bare()])
def test_a_preprocess_that_counts_16_bits_itself_is_left_alone(preprocess):
    deep = IMAGES.astype(np.uint16) * 16
    with torch.no_grad():
        said = net_of()((torch.from_numpy(deep.astype(np.float32)) - 1000) / 500).softmax(1).numpy()
    np.testing.assert_allclose(model_of(preprocess)(deep), said, atol=1e-6)
    assert wt.explain(model_of(preprocess), deep[0], method="saliency", parts="grid:2x2", target=1).scores.any()


@pytest.mark.parametrize("more", [-127, -16, 15, 50, 100, 200])
def test_bytes_that_wrap_around_where_images_are_dark_or_bright_are_found(more):
    class Brighter(nn.Module):
        def forward(self, images):
            return (images + more) / 128

    with pytest.warns(UserWarning, match="bytes may wrap around in it"):
        model_of(Brighter())(IMAGES)


def test_gradients_are_those_of_the_bytes():
    weights = np.eye(4)[[0, 1, 2, 3, 0, 1]]
    leaf = torch.from_numpy(IMAGES.astype(np.float32)).requires_grad_()
    logits = net_of()((leaf / 255 - MEAN) / DEVIATION)
    (expected,) = torch.autograd.grad((torch.from_numpy(weights) * logits).sum(), leaf)
    for images, factor in ((IMAGES, 1), (IMAGES.astype(np.float32), 1), (IMAGES / 255, 255)):
        _, gradient = model_of().raw.vjp(images, weights)
        np.testing.assert_allclose(gradient, factor * expected.numpy(), rtol=1e-4, atol=1e-8 * factor)


@pytest.mark.parametrize("method", ["integrated_gradients", "input_x_gradient", "grad_cam", "input_x_gradient/smoothgrad"])
def test_explanations_of_bytes_and_of_floats_agree(method):
    layer = {"layer": "2"} if method == "grad_cam" else {}
    of_bytes, of_levels, of_shares = (
        wt.explain(model_of(), image, method=method, parts="grid:2x2", target=1, **layer).scores
        for image in (IMAGES[0], IMAGES[0].astype(np.float32), IMAGES[0] / 255))
    np.testing.assert_allclose(of_bytes, of_levels, rtol=1e-5)
    np.testing.assert_allclose(of_bytes, of_shares, rtol=1e-3, atol=1e-6)


def test_integrated_gradients_add_up_from_black_to_the_bytes():
    """Near the baseline all grey levels are below 1, and are grey levels all the same."""
    found = wt.explain(model_of(), IMAGES[0], method="integrated_gradients", parts="grid:2x2", target=1)
    with torch.no_grad():
        ends = net_of()(Preset()(torch.from_numpy(np.stack([IMAGES[0], np.zeros_like(IMAGES[0])]))))[:, 1]
    assert found.scores.sum() == pytest.approx(float(ends[0] - ends[1]), abs=0.005)


def test_attacks_on_bytes_and_on_floats_find_the_same():
    of_bytes, of_shares = (wt.attack(model_of(), images, targets="random", epsilon=0.3)
                           for images in (IMAGES, (IMAGES / 255).astype(np.float32)))
    assert list(of_bytes.success) == list(of_shares.success)
    assert of_bytes.success_rate > 0
    for found in (of_bytes, of_shares):
        adversaries = np.stack(found.adversarial)
        shares = torch.from_numpy(adversaries / (255 if found is of_bytes else 1)).float()
        with torch.no_grad():
            said = net_of()((shares - MEAN) / DEVIATION).softmax(1).numpy()
        np.testing.assert_allclose(model_of()(adversaries), said, atol=1e-5)


def test_audits_of_bytes_and_of_floats_agree():
    tables = []
    for images in (IMAGES, (IMAGES / 255).astype(np.float32)):
        audit = wt.audit(model_of(), list(images), explainers=["integrated_gradients", "random"], parts="grid:2x2",
                         attack={"epsilon": 0.3})
        tables.append([(row["name"], row["flip"], row["flip@1"], row.get("recovery")) for row in audit.table()])
    assert tables[0] == tables[1]
    assert tables[0][0][0] == "integrated_gradients"


class Wraps(nn.Module):
    """127 more than a byte is a byte too."""

    def forward(self, images):
        return (images - 127) / 128


def test_bytes_that_wrap_around_are_not_passed_over_in_silence():
    model = model_of(Wraps())
    with pytest.warns(UserWarning, match="bytes may wrap around in it"):
        model(IMAGES)
    with pytest.raises(ValueError, match=r"must do the same to bytes and to floats.*begin with x\.float\(\)"):
        wt.explain(model, IMAGES[0], method="saliency", parts="grid:2x2", target=1)
    with pytest.raises(ValueError, match="must do the same to bytes and to floats"):
        model.vjp(IMAGES, np.eye(4)[[0, 1, 2, 3, 0, 1]])


def test_a_preprocess_that_works_alike_on_bytes_and_floats_is_left_alone(recwarn):
    class Centre(nn.Module):
        def forward(self, images):
            return (images.float() - 127) / 128

    model = model_of(Centre())
    np.testing.assert_array_equal(model(IMAGES), model(IMAGES.astype(np.float32)))
    assert not recwarn.list


class OnlyFloats(nn.Module):
    def forward(self, images):
        if not images.is_floating_point():
            raise TypeError("Input tensor should be a float tensor")
        return images


@pytest.mark.parametrize("preprocess", [OnlyFloats(), lambda images: images.no_such_method()])
def test_a_preprocess_that_fails_is_blamed_itself(preprocess):
    model = wt.model(net_of(), preprocess=preprocess, layout="NCHW", output="logit", name="the net")
    with pytest.raises(ValueError, match=r"^preprocess raised (Type|Attribute)Error: .* \(array \(6, 3, 8, 8\) of uint8\)") as error:
        model(IMAGES)
    assert "the net raised" not in str(error.value)
    with pytest.raises(ValueError, match=r"^preprocess raised"):
        model.cut(IMAGES[:1], "0")


def test_a_net_that_fails_is_blamed_itself():
    model = wt.model(net_of(), preprocess=lambda images: images[:, :2], layout="NCHW", output="logit", name="the net")
    with pytest.raises(ValueError, match=r"^the net raised RuntimeError"):
        model(IMAGES)


def test_captum_gets_what_the_net_gets():
    saliency = pytest.importorskip("captum.attr").Saliency
    found = wt.explain(model_of(), IMAGES[0], method=saliency, parts="grid:2x2", target=1)
    leaf = Preset()(torch.from_numpy(IMAGES[:1])).requires_grad_()
    (gradient,) = torch.autograd.grad(net_of()(leaf)[0, 1], leaf)
    cells = gradient[0].abs().mean(0).reshape(2, 4, 2, 4).mean(dim=(1, 3)).flatten()
    np.testing.assert_allclose(found.scores, cells.numpy(), rtol=1e-5)


# --- torchvision itself, where it is installed and matches torch --------------------------------------------------------


@pytest.fixture(scope="module")
def torchvision():
    """A torchvision built for another torch lacks two operators of detectors, which nothing here uses."""
    try:
        import torchvision
    except ImportError:
        pytest.skip("torchvision is not installed")
    except RuntimeError:
        library = torch.library.Library("torchvision", "DEF")
        for name in ("nms", "qnms"):
            library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        import torchvision
    return torchvision


def test_torchvisions_transforms_get_bytes(torchvision):
    from torchvision.transforms import v2

    normalised = v2.Compose([v2.ToDtype(torch.float32, scale=True), v2.Normalize([MEAN] * 3, [DEVIATION] * 3)])
    preset = torchvision.models.ResNet18_Weights.IMAGENET1K_V1.transforms(crop_size=8, resize_size=8)
    for transforms in (normalised, preset):
        with torch.no_grad():
            expected = net_of()(transforms(torch.from_numpy(IMAGES))).softmax(1).numpy()
        for images in (IMAGES, IMAGES.astype(np.float32), IMAGES / 255):
            np.testing.assert_allclose(model_of(transforms)(images), expected, atol=1e-5)
