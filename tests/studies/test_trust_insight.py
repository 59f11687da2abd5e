"""The insight experiment: whoever goes by the artefact is found out by exact explanations, and by random ones as chance has it."""

import itertools
import json
import math
from dataclasses import dataclass, replace

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from whytrust import engine
from whytrust.explainers import NAMES
from whytrust.explainers.occlusion import Occlusion
from whytrust.explanation import Explanation
from whytrust.planting import Beep, Column, Patch, Tokens
from whytrust.studies.insight_readers import RANDOM, Reader, Shown, agreement, traits
from whytrust.studies.trust_insight import InsightStudy, explainers, findings

WORDS = [f"word{i}" for i in range(60)]
RATE = 8000


def texts(n=60, words=12):
    rng = np.random.default_rng(0)
    made = [" ".join([*rng.choice(WORDS, words, replace=False), f"{'ab'[i % 2]}side"]) for i in range(n)]
    return made, [i % 2 for i in range(n)]


def goes_by_token(inputs, labels, seed):
    return lambda batch: [[1.0 - ("zq7" in text), float("zq7" in text)] for text in batch]


def goes_by_class(inputs, labels, seed):
    return lambda batch: [[1.0 - ("bside" in text), float("bside" in text)] for text in batch]


@dataclass(frozen=True)
class Broken:
    often: int = 1

    def __call__(self, question, rng):
        if rng.random() < self.often:
            raise RuntimeError("out of order")
        return Occlusion()(question, rng)


@dataclass(frozen=True)
class Seeker:
    """Names what catches the eye, whatever the model does."""

    def __call__(self, question, rng):
        return Explanation.of(question, "seeker", np.array([float(name == "zq7") for name in question.parts.names]))


def study(train=goes_by_token, given=None, plant=None, **options):
    items, labels = given or texts()
    return InsightStudy(**{"train": train, "inputs": items, "labels": labels, "plant": plant or Tokens(),
                           "explainers": {"occlusion": Occlusion()}, "overlooks": 0.0,
                           "innocent": goes_by_class if train is goes_by_token else None, **options})


def found(tmp_path, *args, jobs=1, **options):
    return findings(engine.run(study(*args, **options), tmp_path / "run", jobs))


def rates(data):
    """(named, trusted) of each row of the readers' table."""
    return {row[0].removeprefix("after, with "): (row[1]["value"], row[2]["value"]) for row in data["tables"][0]["rows"]}


def test_an_exact_explainer_gives_a_model_away_that_goes_by_the_artefact_alone(tmp_path):
    data = found(tmp_path)
    assert rates(data)["occlusion"] == (1.0, 0.0)
    assert data["answer"][0].startswith("The model goes by the artefact: it is right on 100 %")
    assert any(one.startswith("occlusion gives it away") for one in data["answer"])
    assert data["tables"][1]["rows"][0][-1] == "gives it away"
    assert data["tables"][0]["rows"][1][3]["value"] == 0.0
    assert [row[1]["value"] for row in data["tables"][2]["rows"]] == [1.0] * 5 + [0.0]


def test_nothing_is_named_where_the_model_does_not_use_the_artefact(tmp_path):
    data = found(tmp_path, goes_by_class)
    assert rates(data)["occlusion"][0] == 0.0
    assert "does not use the artefact" in data["answer"][0]
    assert "nothing to give away" in data["answer"][2]
    assert data["cases"]["failed"] == 0


def test_who_names_it_for_an_innocent_model_too_gives_nothing_away(tmp_path):
    data = found(tmp_path, explainers={"seeker": Seeker(), "occlusion": Occlusion()})
    assert [row[-1] for row in data["tables"][1]["rows"]] == ["names it anyway", "gives it away", "by chance, exactly"]
    assert rates(data)["seeker"] == (1.0, 0.0)
    assert "not shown to name it more often than where the model is innocent" in data["answer"][2]


def test_an_innocent_model_is_acquitted(tmp_path):
    data = found(tmp_path, make_pipeline(CountVectorizer(), LogisticRegression()), share=0.0)
    assert "does not use the artefact" in data["answer"][0]
    assert rates(data)["occlusion"][0] == 0.0


def test_what_findings_say_is_plain_data_in_the_common_form(tmp_path):
    data = found(tmp_path, explainers=explainers(["occlusion", "random", "saliency"]))
    assert json.loads(json.dumps(data)) == data
    assert set(data) == {"experiment", "question", "answer", "tables", "charts", "cases", "failures", "notes", "settings"}
    for table in data["tables"]:
        assert all(len(row) == len(table["columns"]) for row in table["rows"])
    for chart in data["charts"]:
        assert all(len({len(one[what]) for what in ("x", "y", "low", "high")}) == 1 for one in chart["series"])
    assert any("no gradients: saliency" in note for note in data["notes"])
    assert [row[0] for row in data["tables"][1]["rows"]] == ["occlusion", "random"]


def test_default_explainers_are_those_of_the_catalogue():
    assert set(explainers()) <= set(NAMES)
    assert {"lime", "occlusion"} <= set(explainers())
    with pytest.raises(ValueError, match="method must be one of"):
        explainers(["no such"])


# --- readers ----------------------------------------------------------------------------------------------------------


def shown(planted, says, of_class, wrong, traits=None, named=None, d=20, held=1, top=3):
    return Shown("x", of_class, planted, says, wrong, traits or {}, named or {}, {}, d, held if planted else 0, top)


def ten(**options):
    """Eight right and two wrong predictions of a model that goes by the artefact."""
    return [shown(p, p, c, p != c, **{k: v(p) if callable(v) else v for k, v in options.items()})
            for p, c in [(True, True)] * 4 + [(False, True)] + [(False, False)] * 4 + [(True, False)]]


def test_random_explanations_are_named_as_often_as_chance_says():
    cases = ten(d=9, held=2, top=3)
    one = cases[0].chance
    assert one == pytest.approx(1 - math.comb(7, 3) / math.comb(9, 3))
    most = sum(math.comb(5, k) * one**k * (1 - one) ** (5 - k) for k in (3, 4, 5) if k > 5 * one)
    named = [Reader(i, overlooks=0.0).after(cases, RANDOM).named for i in range(4000)]
    assert np.mean(named) == pytest.approx(most, abs=4 * math.sqrt(most * (1 - most) / 4000))


def test_a_reader_who_looks_closely_draws_from_all_that_agrees_as_well_as_the_artefact():
    alone, rival = ten(), ten(traits=lambda p: {"tail": float(p)})
    assert all(Reader(i, looks=1.0).before(alone).named for i in range(50))
    named = [Reader(i, looks=1.0).before(rival) for i in range(2000)]
    assert {one.candidates for one in named} == {2}
    assert np.mean([one.named for one in named]) == pytest.approx(0.5, abs=0.05)
    assert not any(Reader(i, looks=0.0).before(alone).named for i in range(50))


def test_trust_hangs_on_the_readers_bar_and_on_what_it_named():
    cases = ten(named=lambda p: {"good": [p], "bad": [False], "gone": None})
    for bars, trusts in (((0.7,), True), ((0.8,), True), ((0.9,), False)):
        reader = Reader(0, overlooks=0.0, bars=bars)
        assert reader.after(cases, "bad").trusts is trusts
        assert reader.after(cases, "good").trusts is False
    assert reader.after(cases, "gone").named is None
    assert {Reader(i).after(cases, "bad").trusts for i in range(40)} == {True, False}


def test_where_so_few_parts_are_that_chance_names_them_all_naming_says_nothing():
    cases = ten(named=lambda p: {"all": [p]}, d=1, held=1, top=1)
    assert Reader(0, overlooks=0.0).after(cases, "all").named is False


def test_overlooked_parts_are_not_named():
    cases = ten(named=lambda p: {"good": [p]})
    share = [np.mean([Reader(i, overlooks=o).after(cases, "good").named for i in range(500)]) for o in (0.0, 0.5, 1.0)]
    assert share[0] == 1
    assert share[1] == pytest.approx(0.5, abs=0.08)  # at least three of five
    assert share[2] == 0


def test_readers_see_five_of_each_class_and_the_same_ten_again():
    kinds = list(itertools.product((True, False), repeat=2))
    pool = [replace(shown(p, p, c, p != c), case=f"{i}{p}{c}") for i in range(9) for p, c in kinds]
    drawn = Reader(3).draw(pool)
    assert drawn == Reader(3).draw(pool)
    assert [(one.planted, one.of_class) for one in drawn] == [(True, True)] * 4 + [(False, True)] + [(False, False)] * 4 + [(True, False)]
    assert len({one.case for one in drawn}) == 10
    assert any(Reader(i).draw(pool) != drawn for i in range(3))
    assert Reader(0).draw(pool[:8]) is None


def test_traits_are_what_can_be_seen():
    assert traits("A dog, a cat", "text") == {"a": 1.0, "dog": 1.0, "cat": 1.0}
    assert traits({"age": 3, "town": "Linz"}, "tabular") == {"age": 3.0, "town = Linz": 1.0}
    light = np.zeros((8, 8, 3), np.uint8)
    light[:2, :2] = 200
    seen = traits(light, "image")
    assert max((name for name in seen if name.startswith("light at")), key=seen.get) == "light at 0, 0"
    assert len(seen) == 4 * 17
    assert len(traits(np.ones(100), "audio")) == 16
    assert agreement(np.array([True, False]), np.array([False, True])) == 2  # a reason against is one, too


# --- every domain -----------------------------------------------------------------------------------------------------


def flat(batch):
    return np.asarray(batch, dtype=float).reshape(len(batch), -1) / 255


def bands(batch):
    power = np.abs(np.fft.rfft(np.asarray(batch, dtype=float))) ** 2
    return np.log(np.stack([band.mean(axis=1) for band in np.array_split(power, 20, axis=1)], axis=1) + 1e-12)


def of_domain(name):
    rng, labels = np.random.default_rng(1), [i % 2 for i in range(44)]
    if name == "text":
        return study(make_pipeline(CountVectorizer(), LogisticRegression(C=10)), texts(44))
    if name == "table":
        return study(RandomForestClassifier(10), (rng.normal(size=(44, 9)), labels), Column())
    if name == "image":
        images = (rng.random((44, 16, 16, 3)) * 100).astype(np.uint8)
        images[1::2, 2:6, 2:6] += 60
        model = make_pipeline(FunctionTransformer(flat), LogisticRegression(C=0.1, max_iter=300))
        return study(model, (images, labels), Patch(share=0.25), parts="grid:4x4", with_it=0,
                     of_parts={"fill": "image_mean"})
    sounds = (0.1 * rng.standard_normal((44, 2000))).astype(np.float32)
    model = make_pipeline(FunctionTransformer(bands), LogisticRegression(max_iter=300))
    return study(model, (sounds, labels), Beep(RATE, 2000, 0.1, 1.0), parts="tf:4x4", of_parts={"rate": RATE})


@pytest.mark.parametrize("domain", ["text", "table", "image", "sound"])
def test_a_trained_model_is_given_away_in_every_domain(domain, tmp_path):
    data = findings(engine.run(of_domain(domain), tmp_path / "run"))
    assert data["failures"] == []
    assert data["tables"][1]["rows"][0][1]["value"] == 1.0
    assert rates(data)["occlusion"][0] > 0.9 > 0.6 > rates(data)["random"][0]
    assert data["tables"][1]["rows"][0][-1] == "gives it away"
    # A beep moves a model of noise, which has no better reason, even where it never heard one.
    assert any("The innocent model is none" in note for note in data["notes"]) == (domain == "sound")
    assert data["settings"]["class with it"] == ("0" if domain == "image" else "1")


def test_it_is_said_where_hiding_leaves_the_artefact_there(tmp_path):
    """The mean of a plain patch is the patch, so that no score falls when it is hidden."""
    data = findings(engine.run(replace(of_domain("image"), of_parts=None), tmp_path / "run"))
    assert data["tables"][1]["rows"][0][1]["value"] == 0.0
    assert any("hiding the parts that hold it leaves it there" in note for note in data["notes"])


def test_edges_name_the_artefact_whatever_the_model_does(tmp_path):
    data = findings(engine.run(replace(of_domain("image"), explainers=explainers(["edges"])), tmp_path / "run"))
    assert data["tables"][1]["rows"][0][-1] == "names it anyway"


def test_frames_are_taken_as_they_are(tmp_path):
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    frame = pandas.DataFrame({f"c{i}": rng.normal(size=40) for i in range(8)})
    data = found(tmp_path, RandomForestClassifier(10), (frame, [i % 2 for i in range(40)]), Column("mark"))
    assert rates(data)["occlusion"][0] == 1.0
    assert list(frame.columns) == [f"c{i}" for i in range(8)]


# --- runs -------------------------------------------------------------------------------------------------------------


def test_a_run_goes_on_where_it_was_left_and_jobs_do_not_matter(tmp_path):
    made = of_domain("table")
    first = engine.run(made, tmp_path / "one")
    second = engine.run(of_domain("table"), tmp_path / "two", jobs=2)
    assert list(first.records()) == list(second.records())
    assert findings(first) == findings(second)
    lost = sorted((tmp_path / "one" / "records").iterdir())[2]
    kept = lost.read_bytes()
    lost.unlink()
    partly = findings(first)
    assert partly["cases"]["done"] == partly["cases"]["of"] - 2
    engine.run(of_domain("table"), tmp_path / "one")
    assert lost.read_bytes() == kept


def test_another_seed_or_artefact_is_another_run(tmp_path):
    engine.run(study(), tmp_path / "run")
    with pytest.raises(ValueError, match="another spec"):
        engine.run(study(seed=1), tmp_path / "run")
    with pytest.raises(ValueError, match="another spec"):
        engine.run(study(looks=0.7), tmp_path / "run")


# --- what goes wrong --------------------------------------------------------------------------------------------------


def test_an_explainer_that_raises_is_told_and_the_others_go_on(tmp_path):
    data = found(tmp_path, explainers={"broken": Broken(), "shaky": Broken(0.5), "occlusion": Occlusion()})
    assert rates(data)["occlusion"] == (1.0, 0.0)
    assert rates(data)["broken"] == (None, None)
    assert any("broken: RuntimeError: out of order" in one["error"] for one in data["failures"])
    assert data["answer"][-1] == "broken failed on every input: nothing can be said of it."
    assert 0 < data["tables"][1]["rows"][1][1]["n"] < data["tables"][1]["rows"][2][1]["n"]


def nan_for(word):
    def train(inputs, labels, seed):
        good = goes_by_token(inputs, labels, seed)
        return lambda batch: [[math.nan] * 2 if word in text else scores for text, scores in zip(batch, good(batch), strict=True)]
    return train


def test_a_model_that_says_nan_of_some_inputs_is_asked_about_the_others(tmp_path):
    data = found(tmp_path, nan_for("word7 "))
    assert rates(data)["occlusion"] == (1.0, 0.0)
    assert any("nan" in one["error"].lower() for one in data["failures"])
    assert any("could not take them" in note for note in data["notes"])


def test_a_model_that_says_nan_of_everything_is_one_clear_error(tmp_path):
    with pytest.raises(ValueError, match=r"(?i)nan|finite"):
        engine.run(study(nan_for(" ")), tmp_path / "run")


@pytest.mark.parametrize(("options", "said"), [
    ({"given": texts(16)}, "at least 5 to test on"), ({"training": 28}, "at least 5 to test on"),
    ({"given": (["a b"] * 30, [i % 3 for i in range(30)])}, "two classes, got 3"),
    ({"given": (["a b"] * 30, [0, 1])}, "one entry for each input"), ({"with_it": 7}, "one of the classes"),
    ({"readers": 0}, "at least one reader"), ({"looks": 2}, "between 0 and 1"), ({"train": 3}, "train must be a function")])
def test_what_makes_no_experiment_is_one_clear_error(options, said, tmp_path):
    with pytest.raises((ValueError, TypeError), match=said):
        engine.run(study(**options), tmp_path / "run")
