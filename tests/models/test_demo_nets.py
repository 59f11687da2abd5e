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


def test_the_digits_net_is_the_same_for_any_number_of_threads():
    torch = pytest.importorskip("torch")
    import hashlib

    import numpy as np
    from sklearn.datasets import load_digits

    from whytrust.models.nets import train_digits
    data, before, found = load_digits(), torch.get_num_threads(), []
    for threads in (1, 2):
        torch.set_num_threads(threads)
        net = train_digits(data.images[:400], data.target[:400], epochs=2)
        assert torch.get_num_threads() == threads
        found.append(hashlib.sha256(b"".join(np.asarray(p.detach()).tobytes() for p in net.parameters())).hexdigest())
    torch.set_num_threads(before)
    assert found[0] == found[1]
