"""Which layer Grad-CAM looks at by itself: the last feature map that everything flows through.

Where a net ends in a mean over places and a linear layer, Grad-CAM at what the mean is taken of is the class activation map
(Zhou et al. 2016) in closed form: the linear layer's weights times the feature maps, divided by the number of places.
"""

import numpy as np
import pytest

import whytrust as wt
from whytrust.explainers.grad_cam import GradCam

torch = pytest.importorskip("torch")
captum = pytest.importorskip("captum.attr")
nn = torch.nn

IMAGE = np.random.default_rng(0).normal(size=(3, 16, 16))
TENSOR = torch.from_numpy(IMAGE)[None]


class Block(nn.Module):
    """Of a ResNet: two convolutions, and a convolution in the shortcut, which is met last."""

    def __init__(self, here, there):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(here, there, 3, 2, 1), nn.Conv2d(there, there, 3, 1, 1)
        self.bn1, self.bn2, self.relu = nn.BatchNorm2d(there), nn.BatchNorm2d(there), nn.ReLU(inplace=True)
        self.downsample = nn.Sequential(nn.Conv2d(here, there, 1, 2), nn.BatchNorm2d(there))

    def forward(self, x):
        return self.relu(self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x))))) + self.downsample(x))


class ResNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer1, self.layer2 = nn.Sequential(Block(3, 5)), nn.Sequential(Block(5, 7))
        self.avgpool, self.fc = nn.AdaptiveAvgPool2d(1), nn.Linear(7, 4)

    def forward(self, x):
        return self.fc(self.avgpool(self.layer2(self.layer1(x))).flatten(1))


class Branches(nn.Module):
    """Of Inception: three branches side by side."""

    def __init__(self, here):
        super().__init__()
        self.narrow, self.wide, self.last = nn.Conv2d(here, 2, 1), nn.Conv2d(here, 3, 3, padding=1), nn.Conv2d(here, 4, 1)
        self.pool = nn.MaxPool2d(3, 1, 1)

    def forward(self, x):
        return torch.cat([self.narrow(x), self.wide(x), self.last(self.pool(x))], 1).relu()


class Inception(nn.Module):
    def __init__(self):
        super().__init__()
        self.mixed1, self.mixed2, self.dropout, self.fc = Branches(3), Branches(9), nn.Dropout(), nn.Linear(9, 4)

    def forward(self, x):
        return self.fc(self.dropout(self.mixed2(nn.functional.max_pool2d(self.mixed1(x), 2)).mean((2, 3))))


class Pooled(nn.Module):
    """Of VGG: a pooling ends the features; what it is given is finer."""

    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(3, 5, 3, padding=1), nn.ReLU(inplace=True), nn.AvgPool2d(2))
        self.classifier = nn.Linear(5, 4)

    def forward(self, x):
        return self.classifier(self.features(x).mean((2, 3)))


def made(kind):
    torch.manual_seed(0)
    net = kind().double()
    for layer in net.modules():
        if isinstance(layer, nn.BatchNorm2d):
            nn.init.uniform_(layer.running_mean, -0.5, 0.5)
            nn.init.uniform_(layer.weight, 0.5, 1.5)
    return net.eval()


def explained(net, **options):
    return wt.explain(wt.model(net), IMAGE, "grad_cam", target=1, parts="grid:2x2", **options)


def enlarged(coarse):
    return nn.functional.interpolate(coarse[None, None], IMAGE.shape[1:], mode="bilinear", align_corners=False)[0, 0].numpy()


@pytest.mark.parametrize(("kind", "layer", "head"), [(ResNet, "layer2", "fc"), (Inception, "mixed2", "fc"),
                                                     (Pooled, "features.1", "classifier")])
def test_the_map_is_the_class_activation_map_in_closed_form(kind, layer, head):
    net, kept = made(kind), []
    handle = net.get_submodule(layer).register_forward_hook(lambda _layer, _inputs, output: kept.append(output.detach().clone()))
    with torch.no_grad():
        net(TENSOR)
    handle.remove()
    features = kept[0][0]
    weights = net.get_submodule(head).weight.detach()[1]
    cam = torch.relu(torch.tensordot(weights, features, 1)) / features[0].numel()
    found = explained(net)
    assert found.settings["layer"] == layer
    np.testing.assert_allclose(found.map, enlarged(cam), rtol=1e-5, atol=1e-9)
    theirs = captum.LayerGradCam(net, net.get_submodule(layer)).attribute(TENSOR, target=1, relu_attributions=True)[0, 0]
    np.testing.assert_allclose(theirs.detach().numpy(), cam.numpy(), atol=1e-9)
    assert cam.any()


def test_a_net_whose_branches_meet_only_in_the_scores_is_refused_with_candidates():
    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            self.left, self.right, self.out = nn.Conv2d(3, 4, 3), nn.Conv2d(3, 5, 5), nn.Linear(9, 4)

        def forward(self, x):
            return self.out(torch.cat([self.left(x).relu().mean((2, 3)), self.right(x).relu().mean((2, 3))], 1))

    net = made(Two)
    with pytest.raises(ValueError, match=r"through which everything flows.*layer=…, such as one of 'left', 'right'"):
        explained(net)
    assert explained(net, layer="left").settings["layer"] == "left"


def test_a_normalisation_of_the_image_is_no_feature_map():
    class Normalised(nn.Module):
        def __init__(self):
            super().__init__()
            self.normalise, self.out = nn.BatchNorm2d(3), nn.Linear(9, 4)
            self.left, self.right = nn.Conv2d(3, 4, 3), nn.Conv2d(3, 5, 5)

        def forward(self, x):
            x = self.normalise(x)
            return self.out(torch.cat([self.left(x).relu().mean((2, 3)), self.right(x).relu().mean((2, 3))], 1))

    with pytest.raises(ValueError, match="through which everything flows"):
        explained(made(Normalised))


# --- transformers ------------------------------------------------------------------------------------------------------


def pixels(size):
    return np.random.default_rng(1).normal(size=(3, *size)).astype(np.float32)


def test_tokens_before_the_last_attention_are_laid_out_as_the_image():
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    config = transformers.ViTConfig(hidden_size=16, num_hidden_layers=3, num_attention_heads=2, intermediate_size=16,
                                    image_size=32, patch_size=8, num_labels=3, attn_implementation="eager")
    net = transformers.ViTForImageClassification(config).double().eval()
    image = pixels((32, 32)).astype(np.float64)
    found = wt.explain(wt.model(net), image, "grad_cam", target=1, parts="grid:4x4")
    layer = found.settings["layer"]
    kept = []

    def keep(_layer, _inputs, output):
        output.retain_grad()
        kept.append(output)

    handle = net.get_submodule(layer).register_forward_hook(keep)
    net(torch.from_numpy(image)[None]).logits[0, 1].backward()
    handle.remove()
    values, slopes = (t.detach()[0, 1:].T.reshape(16, 4, 4) for t in (kept[0], kept[0].grad))
    assert slopes.abs().max() > 0
    cam = torch.relu(torch.tensordot(slopes.mean((1, 2)), values, 1))
    large = nn.functional.interpolate(cam[None, None], (32, 32), mode="bilinear")[0, 0]
    np.testing.assert_allclose(found.scores, large.reshape(4, 8, 4, 8).mean((1, 3)).flatten().numpy(), rtol=1e-5, atol=1e-12)
    assert layer.endswith(".1")  # of the layers 0, 1, 2: the class token alone is read behind the last


def test_a_projection_of_patches_is_never_chosen():
    """The head's weights are 0, as torchvision makes them, and so are all gradients."""
    transformers = pytest.importorskip("transformers")
    config = transformers.ViTConfig(hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=16,
                                    image_size=32, patch_size=8, num_labels=3)
    net = transformers.ViTForImageClassification(config).eval()
    nn.init.zeros_(net.classifier.weight)
    with pytest.raises(ValueError, match=r"through which everything flows.*layer=…, such as one of"):
        wt.explain(wt.model(net), pixels((32, 32)), "grad_cam", target=1, parts="grid:4x4")


def test_swins_tokens_before_the_pooling_are_the_class_activation_map():
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    config = transformers.SwinConfig(image_size=32, patch_size=4, embed_dim=8, depths=[1, 1], num_heads=[1, 2], window_size=2,
                                     num_labels=3)
    net = transformers.SwinForImageClassification(config).double().eval()
    nn.init.normal_(net.classifier.weight)
    image = pixels((32, 32)).astype(np.float64)
    with torch.no_grad():
        tokens = net.swin(torch.from_numpy(image)[None]).last_hidden_state[0]
    cam = torch.relu(tokens @ net.classifier.weight.detach()[1]).reshape(4, 4) / 16
    found = wt.explain(wt.model(net), image, "grad_cam", target=1, parts="grid:1x1")
    assert found.settings["layer"] == "swin.layernorm"
    expected = nn.functional.interpolate(cam[None, None], (32, 32), mode="bilinear")[0, 0].numpy()
    np.testing.assert_allclose(found.map, expected, rtol=1e-5, atol=1e-9)


@pytest.mark.parametrize(("tokens", "size", "grid"), [
    (197, (224, 224), (14, 14, 1)), (49, (224, 224), (7, 7, 0)), (198, (224, 224), (14, 14, 2)), (201, (224, 224), (14, 14, 5)),
    (33, (32, 64), (4, 8, 1)), (2, (8, 8), None), (50, (32, 50), None)])
def test_tokens_form_a_grid_shaped_like_the_image(tokens, size, grid):
    from whytrust.backends.torch_cuts import grid_of_tokens

    assert grid_of_tokens(tokens, size) == grid


def test_a_named_layer_of_tokens_is_laid_out_too():
    class Patches(nn.Module):
        def __init__(self):
            super().__init__()
            self.patch, self.mix, self.head = nn.Conv2d(3, 6, 4, 4), nn.Linear(6, 6), nn.Linear(6, 2)

        def forward(self, x):
            return self.head(torch.relu(self.mix(self.patch(x).flatten(2).transpose(1, 2))).mean(1))

    net = made(Patches)
    found = explained(net, layer="mix")
    values = net.mix(net.patch(TENSOR).flatten(2).transpose(1, 2)).detach()[0]
    slopes = (net.head.weight.detach()[1] * (values > 0) / 16).mean(0)
    np.testing.assert_allclose(found.map, enlarged(torch.relu(values @ slopes).reshape(4, 4)), rtol=1e-5, atol=1e-9)
    assert GradCam("mix").layer == "mix"
