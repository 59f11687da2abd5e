"""What holds for every explainer, on every kind of parts."""

import pickle
import random
from dataclasses import replace

import numpy as np
import pytest

from contracts.examples import EXPLAINERS, PARTS, background, linear_model
from whitebox import question
from whytrust.core import generator
from whytrust.explanation import Explanation


@pytest.fixture(params=EXPLAINERS)
def explainer(request):
    return EXPLAINERS[request.param]


@pytest.fixture(params=PARTS)
def parts(request):
    return PARTS[request.param]()


def explain(explainer, parts, batch_size=None, target=1):
    if hasattr(explainer, "background"):
        explainer = replace(explainer, background=background(parts))
    return explainer(question(linear_model(parts), parts, batch_size=batch_size, target=target), generator(11))


def test_one_finite_score_a_part(explainer, parts):
    found = explain(explainer, parts)
    assert found.scores.shape == (len(parts.names),)
    assert np.isfinite(found.scores).all()
    in_values = parts.domain == "tabular" and found.method != "lime"  # only LIME asks about bins
    view = parts.view
    assert found.names == (tuple(map(" = ".join, zip(view.columns, view.values, strict=True))) if in_values else tuple(parts.names))
    assert found.calls >= 1


def test_the_batch_size_changes_no_bit(explainer, parts):
    first, *others = (explain(explainer, parts, size) for size in (1, 7, 64))
    assert all(o.scores.tobytes() == first.scores.tobytes() and o.to_json() == first.to_json() for o in others)


def test_the_same_call_gives_the_same_bytes_and_leaves_global_randomness_alone(explainer, parts):
    random.seed(1)
    np.random.seed(1)  # noqa: NPY002 - the global state is what must not be touched
    before = random.getstate(), np.random.get_state()[1].tobytes()  # noqa: NPY002
    first, second = explain(explainer, parts), explain(explainer, parts)
    assert first == second
    assert (random.getstate(), np.random.get_state()[1].tobytes()) == before  # noqa: NPY002


def test_explanations_pickle_and_survive_json(explainer, parts, tmp_path):
    found = explain(explainer, parts)
    assert pickle.loads(pickle.dumps(found)) == found
    found.save(tmp_path / "e.json")
    assert Explanation.load(tmp_path / "e.json") == found
    assert (tmp_path / "e.json").read_bytes() == found.save(tmp_path / "again.json").read_bytes()


def test_an_explainer_is_a_value(explainer):
    assert pickle.loads(pickle.dumps(explainer)) == explainer
    assert type(explainer)() == explainer
    assert "how" in type(explainer).__doc__.lower() or "?" in type(explainer).__doc__  # it says what question it answers


def test_every_explanation_can_be_shown(explainer):
    parts = PARTS["text words"]()
    found = explain(explainer, parts)
    assert "<!DOCTYPE html>" in found.as_html()
    assert found.as_map().shape == (len(parts.text),)
