"""Cases whose cause is known, made without any attack of ours."""

import numpy as np

from whytrust import model
from whytrust.api import explainer_of
from whytrust.core import generator
from whytrust.domains.image import ImageParts
from whytrust.measures import Case
from whytrust.models.whitebox import PlantedCause

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


def explaining(*names, **options):
    made = {name: explainer_of(name, options.get(name, {}), set()) for name in names}
    return lambda question: {name: one(question, generator(0, "explain")) for name, one in made.items()}
