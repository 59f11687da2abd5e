"""What makes a run of simulated readers another run: every setting that another answer may come of."""

import numpy as np
import pandas as pd
import pytest
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeClassifier

import whytrust as wt
from whytrust.explainers.occlusion import Occlusion
from whytrust.planting import Tokens
from whytrust.studies.trust_faithfulness import study as faithful
from whytrust.studies.trust_model import ChoiceStudy
from whytrust.studies.trust_repair import Labelled, RepairStudy

REFUSED = "holds a run of another spec"


def bright(images, labels, seed):
    middle = np.median([image.mean() for image in images])

    def score(batch):
        high = batch.reshape(len(batch), -1).mean(axis=1)
        return np.stack([high <= middle, high > middle], axis=1).astype(float)

    return score


def test_another_fill_is_another_insight(tmp_path, rng):
    images, labels = list(rng.random((48, 8, 8))), [0, 1] * 24
    asked = {"labels": labels, "parts": "grid:4x4", "readers": 2, "out": tmp_path / "run"}
    wt.trust(bright, images, ["occlusion"], "insight", fill="black", **asked)
    with pytest.raises(ValueError, match=REFUSED):
        wt.trust(bright, images, ["occlusion"], "insight", fill="white", **asked)


def test_another_threshold_is_another_run_of_predictions(tmp_path):
    texts = ["good film", "bad film", "good bad film", "a film", "good"]

    def score(batch):
        return np.array([0.3 + 0.3 * ("good" in text) for text in batch])

    wt.trust(wt.model(score, threshold=0.5), texts, ["occlusion"], out=tmp_path / "run", rounds=3)
    with pytest.raises(ValueError, match=r"threshold was 0\.5, now 0\.2"):
        wt.trust(wt.model(score, threshold=0.2), texts, ["occlusion"], out=tmp_path / "run", rounds=3)


def test_another_background_or_other_coefficients_are_another_run_of_faithfulness(rng):
    rows = rng.normal(size=(40, 4))
    labels = (rows[:, 0] > 0).astype(int)
    fitted = LogisticRegression().fit(rows, labels)

    def manifest(model, background):
        return faithful(wt.model(model), rows, {"own": Occlusion()}, of_parts={"background": background}, own=True).manifest()

    base = manifest(fitted, rows)
    assert manifest(fitted, rows.copy()) == base
    assert manifest(fitted, rows[:20])["spec"] != base["spec"]
    other = LogisticRegression().fit(rows, labels)
    other.coef_ = np.where(np.arange(4) == 3, 0, other.coef_) * 1.0
    other.coef_[0, 0] = fitted.coef_[0, 0]
    assert manifest(other, rows)["hashes"] != base["hashes"]


class Odd:
    """A plant of the user's own, without a repr of its own."""

    domain, name = "text", "odd"

    def __init__(self, word):
        self.word = word

    def into(self, item, rng):
        return f"{item} {self.word}"

    def without(self, item):
        return item


def choice(**changes):
    given = {"train": make_pipeline(CountVectorizer(), LogisticRegression()), "inputs": ["aa bb", "cc dd"] * 5, "labels": np.array([0, 1] * 5),
             "world": ["aa bb", "cc dd"], "world_labels": np.array([0, 1]), "plants": (Tokens(),), "explainers": {"own": Occlusion()}}
    return ChoiceStudy(**(given | changes)).manifest()["spec"]


def test_plants_and_cuts_of_the_users_own_are_told_apart_and_not_by_where_they_lie():
    assert choice(plants=(Odd("x"),)) == choice(plants=(Odd("x"),)) != choice(plants=(Odd("y"),))
    cut = np.arange(4096).reshape(64, 64) // 100
    changed = cut.copy()
    changed[32, 32] += 1
    assert choice(parts=cut) == choice(parts=cut.copy()) != choice(parts=changed)


@pytest.mark.parametrize("kind", ["array", "text"])
def test_another_judge_is_another_repair(kind, rng):
    """Judges are told apart by what they say of features as explanations name them."""
    if kind == "array":
        data = Labelled(rng.random((40, 3)), [0, 1] * 20)
        train, options, (one, other) = DecisionTreeClassifier(), {"names": ["a", "b", "leak"]}, ("leak", "b")
    else:
        data = Labelled(["Good, zq. film", "bad film"] * 20, [0, 1] * 20)
        train, options, (one, other) = make_pipeline(CountVectorizer(), LogisticRegression()), {}, ("zq", "Good")

    def opinion(word):
        study = RepairStudy(train, data, data, data, lambda feature: feature != word, {"own": Occlusion()}, options=options)
        return study.manifest()["spec"]["judge"]

    assert opinion(one) == opinion(one) != opinion(other)


@pytest.mark.parametrize("column", ["leak  x", "leak " + 15 * "long "])
def test_a_column_is_deleted_whatever_its_name_looks_like(column, rng):
    """Names are cut short for reading; what is deleted is the column."""
    labels = np.arange(200) % 2
    frame = pd.DataFrame({"noise": rng.random(200), column: labels + 0.01 * rng.random(200)})
    world = pd.DataFrame({"noise": rng.random(60), column: rng.random(60)})
    study = RepairStudy(DecisionTreeClassifier(max_depth=2), Labelled(frame, labels.tolist()), Labelled(frame[:10], labels[:10].tolist()),
                        Labelled(world, (np.arange(60) % 2).tolist()), lambda name: name != column, {"own": Occlusion()}, readers=(1,),
                        instances=3, features=1, overlooks=0.0, misjudges=0.0)
    assert study._bench.reference()["bad"] == 1
    nodes = []
    study._grow(type("Arm", (), {"explainer": "own", "pick": "submodular"})(), (0,), frozenset(), nodes)
    assert nodes[0]["words"] == [column]
    assert nodes[0]["held_out"] < 1.0  # the leak told everything
