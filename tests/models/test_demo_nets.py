import numpy as np
import pytest

import whytrust as wt
from whytrust.models import demos


@pytest.mark.parametrize("name", ["digits", "photos"])
def test_the_demos_nets_have_gradients_that_predict_small_changes(name):
    demo = demos.load(name)
    model = wt.model(demo.model, **demo.model_options)
    image = np.asarray(demo.inputs[0], dtype=np.float64)[None]
    target = int(model(image)[0].argmax())
    scores, gradient = model.vjp(image, np.eye(model(image).shape[1])[[target]])
    direction = gradient / np.linalg.norm(gradient)
    step = 1e-5 * np.linalg.norm(image)
    change = (model(image + step * direction) - model(image - step * direction))[0, target] / (2 * step)
    assert scores[0].argmax() == target
    assert change == pytest.approx(np.linalg.norm(gradient), rel=0.05)
