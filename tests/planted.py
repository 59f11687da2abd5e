"""Cases whose cause is known, made without any attack of ours."""

import numpy as np
import pytest

from whytrust import model
from whytrust.api import explainer_of
from whytrust.core import generator
from whytrust.domains.image import ImageParts
from whytrust.measures import Case
from whytrust.models.whitebox import MarkedCause, PlantedCause

GRID = np.arange(16).reshape(4, 4).repeat(2, axis=0).repeat(2, axis=1)  # a 4 × 4 grid over 8 × 8 pixels


def white_box(part=5, **options):
    return model(PlantedCause(part == GRID, **options), output="logit", classes=["dark", "bright"])


def planted_case(part=5, seed=0, labels=GRID, **options):
    """Every pixel is changed by 0.5 up or down; in the part that decides, up."""
    box = PlantedCause(part == GRID, **options)
    clean = box.inputs(1, seed)[0]
    signs = generator(seed, "signs").choice([-0.04, 0.04], clean.shape)
    changed = clean + np.where(box.where, 0.5, signs)
    wrapped = white_box(part, **options)
    return Case(wrapped, ImageParts(changed, labels, 0.0), clean, 0, 1)


def planted_net(part=5):
    """The same white box as a torch net of (n, 1, 8, 8), with a convolution and a ReLU for those who need them."""
    torch = pytest.importorskip("torch")
    box = PlantedCause(part == GRID)
    slopes = torch.tensor(box._slopes, dtype=torch.float32)
    where = torch.tensor(box.where, dtype=torch.float32)

    class PlantedNet(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.places = torch.nn.Parameter(torch.stack([where, (slopes > 0).float(), (slopes < 0).float()]))
            self.sees = torch.nn.Conv2d(3, 3, 1, bias=False)
            self.sees.weight = torch.nn.Parameter(torch.eye(3)[:, :, None, None])
            self.decides = torch.nn.Linear(3, 2)
            each = torch.tensor([box.gain / box.where.sum(), box.whisper, -box.whisper]) / 2
            self.decides.weight = torch.nn.Parameter(torch.stack([-each, each]).float())
            self.decides.bias = torch.nn.Parameter(torch.tensor([1.0, -1.0]) * box.gain * box.threshold / 2)

        def forward(self, images):
            seen = torch.relu(self.sees(images * self.places))
            return self.decides(torch.cat([seen[:, :1] ** 2, seen[:, 1:]], dim=1).sum(dim=(2, 3)))

    return PlantedNet()


def explaining(*names, **options):
    made = {name: explainer_of(name, options.get(name, {}), set()) for name in names}
    return lambda question: {name: one(question, generator(0, "explain")) for name, one in made.items()}


def marked_box():
    return model(MarkedCause(GRID), output="logit", classes=["dark", "bright"])
