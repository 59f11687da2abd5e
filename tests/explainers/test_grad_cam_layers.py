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


class Attending(nn.Module):
    """Two blocks of attention over 16 tokens of places, and tokens of none joined to them as `how` says."""

    def __init__(self, how):
        super().__init__()
        self.how = how
        self.p, self.head = nn.Conv2d(3, 8, 4, 4), nn.Linear(8, 4)
        self.b = nn.ModuleList([nn.TransformerEncoderLayer(8, 2, 16, batch_first=how != "tokens first") for _ in range(2)])
        self.cls = nn.Parameter(torch.randn(1, 1, 8))
        self.register_buffer("fixed", torch.randn(1, 2, 8))
        self.norm = nn.LayerNorm(8)

    def forward(self, x):
        t, cls = self.p(x).flatten(2).transpose(1, 2), self.cls.expand(len(x), -1, -1)
        fixed = self.fixed.expand(len(x), -1, -1)
        if self.how == "tokens first":
            t = self.norm(t).transpose(0, 1)
        elif self.how == "padded":
            t = nn.functional.pad(t, (0, 0, 0, 1)) + self.cls
        else:
            t = torch.cat({"first": [cls, t], "last": [t, cls], "fixed last": [t, fixed], "both": [fixed, t, cls],
                           "middle": [t[:, :8], cls, t[:, 8:]]}[self.how], 1)
        for block in self.b:
            t = block(t)
        return self.head(t.mean(0) if self.how == "tokens first" else t[:, 8 if self.how == "middle" else -("last" in self.how)])


@pytest.mark.parametrize(("how", "first"), [("first", 1), ("last", 0), ("fixed last", 0), ("both", 2)])
@pytest.mark.parametrize("layer", [None, "b.0"])
def test_tokens_of_no_place_may_stand_at_either_end(how, first, layer):
    net, kept = made(lambda: Attending(how)), []
    handle = net.b[0].register_forward_hook(lambda _layer, _inputs, output: kept.append(output))
    score = net(TENSOR)[0, 1]
    handle.remove()
    (slopes,) = torch.autograd.grad(score, kept[0])
    values, slopes = (t.detach()[0, first:first + 16].T.reshape(8, 4, 4) for t in (kept[0], slopes))
    cam = torch.relu(torch.tensordot(slopes.mean((1, 2)), values, 1))
    found = explained(net, layer=layer)
    assert found.settings["layer"] == "b.0"
    assert cam.any()
    np.testing.assert_allclose(found.map, enlarged(cam), rtol=1e-5, atol=1e-9)


@pytest.mark.parametrize("how", ["middle", "padded"])
def test_tokens_that_do_not_say_which_are_places_are_refused(how):
    net = made(lambda: Attending(how))
    with pytest.raises(ValueError, match=r"behind 'p', the last, attention still mixes.*which of them are places; name"):
        explained(net)
    with pytest.raises(ValueError, match=r"'b.0' gives \(17, 8\); tokens must form a grid .* torch.cat"):
        explained(net, layer="b.0")


def test_a_transformer_whose_tokens_come_before_the_inputs_is_refused():
    net = made(lambda: Attending("tokens first"))
    with pytest.raises(ValueError, match=r"behind 'norm', the last, attention still mixes.*layer=…, such as one of 'p', 'norm'"):
        explained(net)
    assert explained(net, layer="norm").settings["layer"] == "norm"


@pytest.mark.parametrize("fused", [True, False])
def test_attention_that_pools_a_map_is_a_pooling(fused):
    """Of CLIP's ResNets: the mean of the map asks, all places answer; here for all places, of which one token is read."""
    class Pooling(nn.Module):
        def __init__(self):
            super().__init__()
            self.features, self.out = nn.Sequential(nn.Conv2d(3, 6, 4, 4), nn.ReLU()), nn.Linear(6, 4)
            self.q, self.k, self.every = nn.Linear(6, 6), nn.Linear(6, 6), False

        def forward(self, x):
            t = self.features(x).flatten(2).transpose(1, 2)
            t = torch.cat([t.mean(1, keepdim=True), t], 1)
            q, k = self.q(t), self.k(t)
            t = (nn.functional.scaled_dot_product_attention(q[:, None], k[:, None], t[:, None])[:, 0] if fused else
                 torch.softmax(q @ k.transpose(1, 2), -1) @ t)
            return self.out(t.mean(1) if self.every else t[:, 0])

    net = made(Pooling)
    assert explained(net).settings["layer"] == "features"
    np.testing.assert_allclose(explained(net).map, by_hand(net, "features", IMAGE, channels_last=False), rtol=1e-5, atol=1e-9)
    net.every = True
    if not fused:
        with pytest.raises(ValueError, match=r"behind 'features', the last, attention still mixes"):
            explained(net)


def test_a_layer_whose_places_are_not_read_any_more_says_so():
    net = made(lambda: Attending("first"))
    (note,) = explained(net, layer="b.1").notes
    assert "does not depend on the places of this layer" in note
    assert note.endswith("only other tokens are read, such as one of the class. Name an earlier layer.")
    nn.init.zeros_(net.head.weight)
    (note,) = explained(net, layer="b.0").notes
    assert note.endswith("(its gradient is 0 at each of them), so every score is 0.")


# --- channels last -----------------------------------------------------------------------------------------------------


class Stage(nn.Module):
    """Of a Swin transformer as timm writes it, without the attention: the places come before the channels."""

    def __init__(self, here, there, merging):
        super().__init__()
        self.reduce = nn.Linear(4 * here, there) if merging else None
        self.norm, self.linear = nn.LayerNorm(there), nn.Linear(there, there)

    def forward(self, x):
        if self.reduce is not None:
            x = self.reduce(torch.cat([x[:, i::2, j::2] for j in (0, 1) for i in (0, 1)], -1))
        return x + self.linear(nn.functional.gelu(self.norm(x))) + 0.3 * torch.roll(x, 1, 1)


class ChannelsLast(nn.Module):
    def __init__(self, width, normed=True):
        super().__init__()
        self.patch, self.first = nn.Conv2d(3, width, 4, 4), nn.LayerNorm(width)
        self.s1, self.s2 = Stage(width, width, False), Stage(width, 2 * width, True)
        self.norm, self.head = nn.LayerNorm(2 * width) if normed else nn.Identity(), nn.Linear(2 * width, 4)

    def forward(self, x):
        return self.head(self.norm(self.s2(self.s1(self.first(self.patch(x).permute(0, 2, 3, 1))))).mean((1, 2)))


def by_hand(net, layer, image, channels_last=True, target=1):
    """Grad-CAM by its definition, of a layer that a hook sees."""
    kept = []
    handle = net.get_submodule(layer).register_forward_hook(lambda _layer, _inputs, output: kept.append(output))
    score = net(torch.from_numpy(image)[None])[0, target]
    handle.remove()
    (slopes,) = torch.autograd.grad(score, kept[0])
    values, slopes = (t.detach()[0].permute(2, 0, 1) if channels_last else t.detach()[0] for t in (kept[0], slopes))
    cam = torch.relu((slopes.mean((1, 2))[:, None, None] * values).sum(0))
    return nn.functional.interpolate(cam[None, None], image.shape[1:], mode="bilinear", align_corners=False)[0, 0].numpy()


@pytest.mark.parametrize(("width", "size"), [(96, (224, 224)), (16, (64, 64)), (24, (64, 64)), (8, (32, 32)), (8, (32, 64)),
                                             (16, (32, 64)), (32, (64, 128))])
def test_channels_that_come_last_are_read_so(width, size):
    torch.manual_seed(0)
    net, image = made(lambda: ChannelsLast(width)), np.random.default_rng(2).normal(size=(3, *size))
    for layer in (None, "s1", "s2"):
        found = wt.explain(wt.model(net), image, "grad_cam", target=1, parts="grid:2x2", layer=layer)
        assert found.settings["layer"] == (layer or "norm")
        truth = by_hand(net, layer or "norm", image)
        assert truth.any() or layer != "s2"
        np.testing.assert_allclose(found.map, truth, rtol=1e-4, atol=1e-7 * max(truth.max(), 1e-3))


def test_where_nothing_says_which_axis_has_channels_the_shape_of_the_image_may():
    """A function of one's own, whose gradient does not say what it does; 4 channels lie on 4 × 4 places."""
    class Own(torch.autograd.Function):
        @staticmethod
        def forward(_context, x):
            return x.unfold(2, 4, 4).unfold(3, 4, 4).mean((4, 5)).sum(1)[:, None].repeat(1, 4, 1, 1)

        @staticmethod
        def backward(_context, slopes):
            return slopes.sum(1)[:, None].repeat_interleave(4, 2).repeat_interleave(4, 3).repeat(1, 3, 1, 1) / 16

    from whytrust.backends.torch_cuts import _channels

    leaf = TENSOR.clone().requires_grad_()
    output = Own.apply(leaf)
    assert output.shape == (1, 4, 4, 4)
    assert _channels(output.grad_fn, output, (3, 16, 16)) is None
    assert _channels(output[:, :3].grad_fn, output[:, :3], (3, 16, 16)) == 1
    assert _channels(output[..., :3].grad_fn, output[..., :3], (3, 16, 16)) == 3


def test_a_map_that_nothing_says_the_channels_of_is_refused():
    class Mixed(nn.Module):
        """In doubt: channels and width change places, and 4 channels lie on 4 × 4 places."""

        def __init__(self):
            super().__init__()
            self.patch, self.act, self.out = nn.Conv2d(3, 4, 4, 4), nn.ReLU(), nn.Linear(4, 4)

        def forward(self, x):
            x = self.patch(x)
            return self.out(self.act(x + x.transpose(1, 3)).mean((2, 3)))

    class Rows(nn.Module):
        """A linear layer mixes the places of a row."""

        def __init__(self):
            super().__init__()
            self.patch, self.mix, self.out = nn.Conv2d(3, 7, 4, 4), nn.Linear(4, 4), nn.Linear(7, 4)

        def forward(self, x):
            return self.out(self.mix(self.patch(x)).relu().mean((2, 3)))

    with pytest.raises(ValueError, match=r"nothing says it of 'relu\[1\]' in Rows, which gives \(7, 4, 4\)"):
        explained(made(Rows))
    with pytest.raises(ValueError, match=r"nothing says it of 'act'.*\(4, 4, 4\).*layer=…, such as one of 'patch', 'act'"):
        explained(made(Mixed))
    assert explained(made(Mixed), layer="act").settings["layer"] == "act"


def axes(value):
    from whytrust.backends.torch_axes import channel_axes

    return channel_axes(value.grad_fn)


def test_channels_are_followed_through_changes_of_shape():
    torch.manual_seed(0)
    conv, linear, norm, batch = nn.Conv2d(3, 6, 2, 2), nn.Linear(6, 6), nn.LayerNorm(6), nn.BatchNorm2d(6).eval()
    first = conv(TENSOR.float())
    last = first.permute(0, 2, 3, 1)
    tokens = first.flatten(2).transpose(1, 2)
    heads = linear(tokens).reshape(1, 64, 2, 3).transpose(1, 2)
    windows = last.reshape(1, 2, 4, 2, 4, 6).permute(0, 1, 3, 2, 4, 5).reshape(-1, 16, 6)
    back = linear(windows).reshape(1, 2, 2, 4, 4, 6).permute(0, 1, 3, 2, 4, 5).reshape(1, 8, 8, 6)
    attended = torch.softmax(tokens @ tokens.transpose(1, 2), -1) @ tokens
    for value, expected in ((first, 1), (batch(first), 1), (last, 3), (linear(last), 3), (norm(last), 3), (tokens, 2),
                            (linear(last).movedim(-1, 1), 1), (first.flatten(2), 1), (first + last.permute(0, 3, 1, 2), 1),
                            (torch.cat([first, first], 1).relu(), 1), (last.roll(1, 1)[:, ::2], 3), (windows, 2), (back, 3),
                            (last + back, 3), (first * torch.sigmoid(linear(first.mean((2, 3))))[:, :, None, None], 1),
                            (attended, 2), (linear.weight @ first.flatten(2)[0], 0),
                            (first.transpose(-1, 1), 3)):
        assert axes(value) == {expected}
    assert axes(last[:, :6] + last[:, :6].transpose(1, 3)) == {1, 3}
    assert axes(heads) == set()
    assert axes(TENSOR.clone().requires_grad_() * 2) == set()


def test_channels_that_come_last_in_time():
    class Waves(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv, self.norm, self.linear, self.out = nn.Conv1d(1, 6, 8, 8), nn.LayerNorm(6), nn.Linear(6, 6), nn.Linear(6, 3)

        def forward(self, x):
            self.kept = torch.relu(self.linear(self.norm(self.conv(x[:, None]).transpose(1, 2))))
            return self.out(self.kept.mean(1))

    net, sound = made(Waves), np.random.default_rng(3).normal(size=800)
    found = wt.explain(wt.model(net), sound, "grad_cam", target=1, parts="time:100", rate=800)
    assert found.settings["layer"] == "relu[1]"
    (slopes,) = torch.autograd.grad(net(torch.from_numpy(sound)[None])[0, 1], net.kept)
    cam = torch.relu(net.kept[0] @ slopes[0].mean(0)).detach()
    large = nn.functional.interpolate(cam[None, None], 800, mode="linear", align_corners=False)[0, 0]
    np.testing.assert_allclose(found.scores, large.reshape(100, 8).mean(1).numpy(), rtol=1e-4, atol=1e-9)


# --- sums and branches that no layer gives -----------------------------------------------------------------------------


class Joined(nn.Module):
    """A net whose last map is put together in forward; `kept` is that map, for a Grad-CAM by hand."""

    def __init__(self, how):
        super().__init__()
        self.how = how
        self.stem, self.one, self.two = nn.Conv2d(3, 6, 4, 4), nn.Conv2d(6, 6, 3, padding=1), nn.Conv2d(6, 6, 1)
        self.norm, self.up, self.down, self.out = nn.LayerNorm(6), nn.Linear(6, 12), nn.Linear(12, 6), nn.Linear(6, 4)
        self.wide = nn.Linear(12, 4)

    def forward(self, x):
        x = self.stem(x)
        if self.how == "convnext":
            y = self.norm(self.one(x).permute(0, 2, 3, 1))
            x = x + self.down(nn.functional.gelu(self.up(y))).permute(0, 3, 1, 2)
        elif self.how == "residual":
            x = x.relu()
            x = x + self.two(self.one(x).relu())
        elif self.how == "in place":
            y = self.two(self.one(x).relu())
            y += x
            nn.functional.relu(y, inplace=True)
            x = y
        elif self.how == "inception":
            x = torch.cat([self.one(x).relu(), self.two(x).relu()], 1)
        elif self.how == "twice":
            x = self.one(self.one(x).relu()).relu()
        elif self.how == "channels last":
            x = x.permute(0, 2, 3, 1)
            x = x + self.down(nn.functional.gelu(self.up(self.norm(x))))
        elif self.how == "tokens":
            x = x.flatten(2).transpose(1, 2)
            x = x + self.down(nn.functional.gelu(self.up(self.norm(x))))
        self.kept = x
        head = self.wide if self.how == "inception" else self.out
        return head(x.mean({"channels last": (1, 2), "tokens": 1}.get(self.how, (2, 3))))


@pytest.mark.parametrize(("how", "name"), [("convnext", "add"), ("residual", "add"), ("in place", "relu"), ("inception", "cat"),
                                           ("twice", "relu"), ("channels last", "add"), ("tokens", "add")])
@pytest.mark.parametrize("method", ["grad_cam", "linear_approximation"])
def test_what_feeds_the_pooling_need_not_be_a_layers(how, name, method):
    net = made(lambda: Joined(how))
    found = wt.explain(wt.model(net), IMAGE, method, target=1, parts="grid:2x2")
    assert found.settings["layer"].partition("[")[0] == name
    score = net(TENSOR)[0, 1]
    (slopes,) = torch.autograd.grad(score, net.kept)
    turned = {"channels last": lambda t: t[0].permute(2, 0, 1), "tokens": lambda t: t[0].mT.reshape(6, 4, 4)}
    values, slopes = (turned.get(how, lambda t: t[0])(t) for t in (net.kept.detach(), slopes))
    weighted = slopes.mean((1, 2))[:, None, None] * values if method == "grad_cam" else slopes * values
    cam = torch.relu(weighted.sum(0)) if method == "grad_cam" else weighted.sum(0)
    assert cam.any()
    np.testing.assert_allclose(found.map, enlarged(cam), rtol=1e-5, atol=1e-9)
    again = wt.explain(wt.model(net), IMAGE, method, target=1, parts="grid:2x2", layer=found.settings["layer"])
    np.testing.assert_array_equal(found.map, again.map)


@pytest.mark.parametrize("last", [False, True])
def test_an_activation_that_is_no_layer_feeds_the_pooling(last):
    class Rectified(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv, self.out = nn.Conv2d(3, 6, 3, padding=1), nn.Linear(6, 4)

        def forward(self, x):
            x = self.conv(x)
            return self.out(x.permute(0, 2, 3, 1).relu().mean((1, 2)) if last else nn.functional.relu(x).mean((2, 3)))

    net = made(Rectified)
    found = explained(net)
    cam = torch.relu(torch.tensordot(net.out.weight.detach()[1], net.conv(TENSOR).detach()[0].relu(), 1)) / 256
    assert found.settings["layer"] == "relu[1]"
    np.testing.assert_allclose(found.map, enlarged(cam), rtol=1e-5, atol=1e-9)


def test_calls_are_counted_from_1():
    with pytest.raises(ValueError, match=r"layer 'add\[0\]' must say .* counting begins at 1: 'add\[1\]' is the first"):
        explained(made(lambda: Joined("residual")), layer="add[0]")


def test_smoothed_at_a_sum():
    net = made(lambda: Joined("convnext"))
    found = wt.explain(wt.model(net), IMAGE, "grad_cam/smoothgrad", target=1, parts="grid:2x2", noise=0.0, samples=2)
    np.testing.assert_allclose(found.map, explained(net).map, rtol=1e-6)


def test_features_beside_the_last_common_map_are_refused():
    class Skips(nn.Module):
        def __init__(self):
            super().__init__()
            self.one, self.two, self.out = nn.Conv2d(3, 4, 3), nn.Conv2d(4, 5, 3), nn.Linear(9, 4)

        def forward(self, x):
            early = self.one(x).relu()
            return self.out(torch.cat([early.mean((2, 3)), self.two(early).relu().mean((2, 3))], 1))

    with pytest.raises(ValueError, match=r"behind 'relu\[1\]'.*make other features beside it; name .* one of 'one', 'two'"):
        explained(made(Skips))


def test_a_gate_that_weighs_places_is_part_of_the_map():
    class Gated(nn.Module):
        def __init__(self):
            super().__init__()
            self.features, self.gate = nn.Sequential(nn.Conv2d(3, 5, 2, 2), nn.ReLU()), nn.Conv2d(5, 1, 1)
            self.out = nn.Linear(5, 4)

        def forward(self, x):
            x = self.features(x)
            self.kept = x * torch.sigmoid(self.gate(x))
            return self.out(self.kept.mean((2, 3)))

    net = made(Gated)
    found = explained(net)
    net(TENSOR)
    cam = torch.relu(torch.tensordot(net.out.weight.detach()[1] / 64, net.kept.detach()[0], 1))
    np.testing.assert_allclose(found.map, enlarged(cam), rtol=1e-5, atol=1e-9)


@pytest.mark.parametrize("layer", [None, "layer2.0", "layer1.0.conv1"])
def test_layers_of_a_compiled_part_have_the_names_that_they_had_before(layer):
    net = made(ResNet)
    net.layer1, net.layer2 = (torch.compile(one, backend="eager") for one in (net.layer1, net.layer2))
    plain, compiled = (wt.explain(wt.model(one, layout="NCHW", output="logit"), IMAGE, method="grad_cam", parts="grid:2x2",
                                  target=1, layer=layer) for one in (made(ResNet), net))
    assert "_orig_mod" not in compiled.settings["layer"]
    np.testing.assert_allclose(compiled.map, plain.map, rtol=1e-5)


@pytest.mark.parametrize("where", ["forward", "method"])
def test_a_net_with_a_compiled_method(where):
    class Compiled(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = ResNet()

        def forward(self, x):
            return self.inner(x)

        def inner(self, x):
            return self.net(x)

    name = "forward" if where == "forward" else "inner"
    setattr(Compiled, name, torch.compile(getattr(Compiled, name), backend="eager"))
    found = explained(made(Compiled))
    assert found.settings["layer"] == "net.layer2"
    np.testing.assert_allclose(found.map, by_hand(made(ResNet), "layer2", IMAGE, channels_last=False), rtol=1e-5, atol=1e-9)


def middle(x):
    """As torchvision's presets do, which enlarge a picture of 224 pixels to 256 and take the middle 224."""
    return nn.functional.interpolate(x, (20, 20), mode="bilinear")[..., 2:18, 2:18]


@pytest.mark.parametrize(("side", "preset", "crops"), [
    (16, middle, True), (64, middle, True), (16, lambda x: x * 2, False), (8, lambda x: x * 2, False),
    (64, lambda x: nn.functional.interpolate(x, (16, 16), mode="bilinear"), False),
    (64, lambda x: nn.functional.interpolate(x, (16, 16), mode="nearest"), False)])
def test_a_note_says_where_the_preprocessing_crops(side, preset, crops):
    class Preset(nn.Module):
        def forward(self, x):
            return preset(x)

    image = np.random.default_rng(1).normal(size=(3, side, side))
    model = wt.model(made(ResNet), preprocess=Preset(), layout="NCHW", output="logit")
    found = wt.explain(model, image, method="grad_cam", parts="grid:2x2", target=1)
    assert any("cuts off the border" in note for note in found.notes) == crops
