"""A run is continued with the model that it was begun with: in every study another one of the same name is refused."""

import json
import subprocess
import sys
from dataclasses import dataclass
from functools import partial

import numpy as np
import pytest
from PIL import Image
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeClassifier

import whytrust as wt
from whytrust import engine
from whytrust.cli import main
from whytrust.measures import PixelFlipping
from whytrust.store import Block, Result, Store
from whytrust.studies import pitfalls_linear, plausible
from whytrust.studies.described import code_of
from whytrust.studies.pitfalls_enhanced import EnhancedStudy
from whytrust.studies.pitfalls_flipping import FlippingStudy
from whytrust.studies.pitfalls_linear import Digits, LinearStudy
from whytrust.studies.pitfalls_nets import Pictures

TEXTS = ["good film", "bad film", "a good plot", "a bad plot", "good", "bad", "no good at all", "not bad"]
LABELS = [1, 0, 1, 0, 1, 0, 0, 1]
REFUSED = "holds a run of another spec.* other content of .*{}"


class Scores:
    """A model of texts or rows with a weight inside; two of them have the same name and the same code."""

    def __init__(self, weight):
        self.weight = weight

    def __call__(self, batch):
        first = np.array([text.count("good") - text.count("bad") if isinstance(text, str) else float(np.ravel(text)[0]) for text in batch])
        high = 1 / (1 + np.exp(-self.weight * first))
        return np.stack([1 - high, high], axis=1)


ONE_NUMBER = Scores(1.0)


def trees():
    """Two trees that say the same of every row that is asked about, and not of rows between them."""
    rows = np.array([[-2.0, 0, 0], [-1, 0, 0], [1, 0, 0], [2, 0, 0]])
    labels = [0, 0, 1, 1]
    one = DecisionTreeClassifier(max_depth=1).fit(rows, labels)
    other = DecisionTreeClassifier(max_depth=1).fit(np.array([[-2.0, 0, 0], [-0.1, 0, 0], [1, 0, 0], [2, 0, 0]]), labels)
    assert (one.predict_proba(rows) == other.predict_proba(rows)).all()
    assert one.predict([[0.2, 0, 0]]) != other.predict([[0.2, 0, 0]])
    return rows, one, other


def learnt_elsewhere(weight, inputs, labels, seed):
    return Scores(weight)


def learnt_with(weight, inputs, labels, deleted, seed):
    return Scores(weight)


def audited(model, out):
    wt.audit(Scores(model), np.array([[-1.0, 0, 0], [1, 0, 0]]), ["occlusion"], background=np.array([[-1.0, 0, 0], [2, 1, 1]]), out=out)


def picked(model, out):
    wt.pick(Scores(model), TEXTS, 2, explainer="occlusion", out=out)


def fooled(model, out):
    wt.fool(wt.model(Scores(model)), TEXTS[:2], "occlusion", quality=None, controls=0, out=out)


def predicted(model, out):
    wt.trust(Scores(model), TEXTS, ["occlusion"], rounds=2, out=out)


def faithful(model, out):
    wt.trust(Scores(model), [*TEXTS, *(f"{text} again" for text in TEXTS)], ["occlusion"], "faithfulness", out=out)


def insight(model, out):
    texts = [f"{'good' if i % 2 else 'bad'} film number {i}" for i in range(40)]
    wt.trust(partial(learnt_elsewhere, model), texts, ["occlusion"], "insight", labels=[i % 2 for i in range(40)], readers=2, out=out)


def chosen(model, out):
    wt.trust(partial(learnt_elsewhere, model), TEXTS * 4, ["occlusion"], "model", labels=LABELS * 4, pairs=1, tries=2, out=out)


def repaired(model, out):
    wt.trust(partial(learnt_with, model), TEXTS * 4, ["occlusion"], "repair", labels=LABELS * 4, readers=(1,), instances=1, out=out)


@pytest.mark.parametrize("study", [audited, picked, fooled, predicted, faithful])
def test_a_run_is_not_continued_with_another_model_of_the_same_name(study, tmp_path):
    study(1.0, tmp_path / "run")
    before = {path.name: path.read_bytes() for path in (tmp_path / "run").rglob("*") if path.is_file() and path.name != "sessions.jsonl"}
    study(1.0, tmp_path / "run")
    with pytest.raises(ValueError, match="holds a run of another spec"):
        study(-1.5, tmp_path / "run")
    after = {path.name: path.read_bytes() for path in (tmp_path / "run").rglob("*") if path.is_file() and path.name != "sessions.jsonl"}
    assert {name: data for name, data in after.items() if name in before and not name.endswith("lock")} == {
        name: data for name, data in before.items() if not name.endswith("lock")}


@pytest.mark.parametrize("study", [audited, picked, fooled, predicted])
@pytest.mark.parametrize("read", [{"threshold": 0.9}, {"classes": ["no", "yes"]}])
def test_a_run_is_not_continued_with_scores_that_are_read_in_another_way(study, read, tmp_path, monkeypatch):
    """The models say the same numbers; another class is decided for, or the classes are called otherwise."""
    monkeypatch.setitem(globals(), "Scores", lambda weight: wt.model(ONE_NUMBER, **{"threshold": 0.4} | (read if weight < 0 else {})))
    study(1.0, tmp_path / "run")
    study(1.0, tmp_path / "run")
    with pytest.raises(ValueError, match="holds a run of another spec"):
        study(-1.0, tmp_path / "run")


class Slotted:
    """A model of rows that holds what it has learnt in slots, one of them private."""

    __slots__ = ("__weight", "name")

    def __init__(self, weight):
        self.__weight, self.name = weight, "slotted"

    def __call__(self, rows):
        return 1 / (1 + np.exp(-self.__weight * np.asarray(rows, dtype=float)[:, 0]))


def test_what_a_model_holds_in_slots_is_part_of_what_it_is(tmp_path):
    rows = np.array([[-1.0, 0, 0], [1, 0, 0], [3, 1, 0]])
    run = partial(wt.audit, inputs=rows, explainers=["occlusion"], background=rows, out=tmp_path / "run")
    run(wt.model(Slotted(20.0), threshold=0.5))
    run(wt.model(Slotted(20.0), threshold=np.float64(0.5)))
    assert code_of(wt.model(Slotted(20.0))) != code_of(wt.model(Slotted(30.0)))
    with pytest.raises(ValueError, match="holds a run of another spec"):
        run(wt.model(Slotted(-20.0), threshold=0.5))
    assert wt.pick(wt.model(Slotted(20.0), threshold=0.5), rows, 2, explainer="occlusion", background=rows, out=tmp_path / "pick")


@pytest.mark.parametrize("study", [insight, chosen, repaired])
def test_a_run_is_not_continued_with_a_function_that_trains_other_models(study, tmp_path, monkeypatch):
    """The function itself is the same to the byte: what it trains is another model, by a helper or a file that it reads."""
    weight = {"now": 1.0}
    monkeypatch.setitem(globals(), "learnt_elsewhere", lambda _, inputs, labels, seed: Scores(weight["now"]))
    monkeypatch.setitem(globals(), "learnt_with", lambda _, inputs, labels, deleted, seed: Scores(weight["now"]))
    study(0.0, tmp_path / "run")
    study(0.0, tmp_path / "run")
    weight["now"] = 1.5
    with pytest.raises(ValueError, match=REFUSED.format("model")):
        study(0.0, tmp_path / "run")


def test_trees_that_say_the_same_of_every_input_are_told_apart(tmp_path):
    rows, one, other = trees()
    audit = partial(wt.audit, inputs=rows, explainers=["occlusion"], background=rows, out=tmp_path / "run")
    audit(one)
    audit(one)
    with pytest.raises(ValueError, match=REFUSED.format("the weights of DecisionTreeClassifier")):
        audit(other)
    pick = partial(wt.pick, inputs=rows, budget=2, explainer="occlusion", background=rows, out=tmp_path / "pick")
    pick(one)
    with pytest.raises(ValueError, match=REFUSED.format("the weights of DecisionTreeClassifier")):
        pick(other)


def test_sure_nets_that_say_the_same_of_every_input_are_told_apart(tmp_path):
    torch = pytest.importorskip("torch")

    def net(weight):
        made = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(48, 2, bias=False))
        made[1].weight.data = torch.tensor([[0.0], [weight]]).repeat(1, 48)
        return wt.model(made.eval(), output="logit", layout="NCHW", name="net")

    images = np.full((2, 3, 4, 4), 250.0, dtype=np.float32)
    assert (net(1.0)(images) == net(2.0)(images)).all()  # probabilities of 0 and 1, to the last digit
    audit = partial(wt.audit, inputs=images, explainers=["saliency"], parts="grid:2x2", out=tmp_path / "run",
                    attack={"method": "pgd", "epsilon": 600.0, "step": 40.0, "iterations": 20, "units": "input", "bounds": None})
    audit(net(1.0))
    with pytest.raises(ValueError, match=REFUSED.format("the weights of net")):
        audit(net(2.0))


def test_estimators_have_the_same_identity_in_each_process_and_another_when_fitted_to_other_labels():
    """What a tree holds between the fields of its nodes is arbitrary, and must not count."""

    rng = np.random.default_rng(0)
    rows, labels = rng.normal(size=(60, 3)), rng.integers(0, 2, 60)
    for make in (partial(DecisionTreeClassifier, random_state=0), partial(LogisticRegression, C=2.0)):
        told = [code_of(wt.model(make().fit(rows, y))) for y in (labels, labels.copy(), 1 - labels)]
        assert told[0] == told[1] != told[2]
    texts = make_pipeline(CountVectorizer(), LogisticRegression())
    told = [code_of(wt.model(texts.fit(some, LABELS))) for some in (TEXTS, list(TEXTS), TEXTS[::-1])]
    assert told[0] == told[1] != told[2]


class Service:
    """What another one says of few inputs only, and of none of those that are asked about."""

    def __init__(self, turned):
        self.turned, self.asked = turned, 0

    def __call__(self, batch):
        self.asked += len(batch)
        rows = np.asarray(batch, dtype=float)
        high = 1 / (1 + np.exp(-rows[:, 0]))
        high = np.where(rows[:, 1] > 2 - self.turned, 1 - high, high)
        return np.stack([1 - high, high], axis=1)


class Wrapped:
    def __init__(self, tree):
        self._tree = tree

    def __call__(self, batch):
        return self._tree.predict_proba(np.asarray(batch))


def by_name(tree):
    """A function that finds its estimator among the names of its module."""
    made = {"tree": tree}
    exec("def score(batch):\n    return tree.predict_proba(batch)", made)
    return made["score"]


@pytest.mark.parametrize("kind", ["service", "method", "wrapped", "closure", "global", "partial", "method of an estimator"])
def test_models_of_ones_own_that_say_the_same_of_the_inputs_asked_are_told_apart(kind, tmp_path):
    _, tree, other = trees()
    make = {"service": lambda late: Service(late), "method": lambda late: Service(late).__call__,
            "wrapped": lambda late: Wrapped(other if late else tree),
            "closure": lambda late: (lambda chosen: lambda batch: chosen.predict_proba(batch))(other if late else tree),
            "global": lambda late: by_name(other if late else tree),
            "partial": lambda late: partial(lambda chosen, batch: chosen.predict_proba(batch), other if late else tree),
            "method of an estimator": lambda late: (other if late else tree).predict_proba}[kind]
    rows = np.random.default_rng(0).uniform(-2, -1, (40, 3))
    rows[5] = [0.2, 1.5, 0]
    pick = partial(wt.pick, inputs=rows, budget=2, explainer="occlusion", background=rows, out=tmp_path / "run")
    one = wt.model(make(0), name="own")
    pick(one)
    pick(one)
    pick(wt.model(make(0), name="own"))
    with pytest.raises(ValueError, match=REFUSED.format("the (code|weights) of own")):
        pick(wt.model(make(1), name="own"))


def test_a_model_of_ones_own_is_the_same_one_for_every_number_of_workers(tmp_path):
    rows = np.random.default_rng(0).uniform(-2, -1, (40, 3))
    picks = [wt.pick(wt.model(Service(0), name="own"), rows, budget=2, explainer="occlusion", background=rows, out=tmp_path / "run",
                     jobs=jobs) for jobs in (1, 2, 1)]
    assert len({str(pick) for pick in picks}) == 1


METRIC = """
import sys
import whytrust as wt
from whytrust.measures.judged import About
class Own:
    about = About("own", "a metric of one's own", higher=True, goals=("contribution",), kind="performance", aspect="faithfulness",
                  paper="nobody")
    def __call__(self, judged, rng):
        return {value}
print(wt.metrics([Own()], "text", cases=2, out=sys.argv[1]))
"""


def test_a_trial_of_a_metric_of_ones_own_goes_on_in_another_process_and_not_with_other_code(tmp_path):
    def said(value):
        (tmp_path / "own.py").write_text(METRIC.replace("{value}", value))
        return subprocess.run([sys.executable, tmp_path / "own.py", tmp_path / "run"], text=True, capture_output=True, check=False)

    first = said("float(judged.scores.max())")
    assert first.returncode == 0, first.stderr
    assert said("float(judged.scores.max())").returncode == 0
    assert "holds a run of another spec" in said("float(judged.scores.min())").stderr


def test_a_metric_of_ones_own_in_an_audit_is_told_by_its_code(monkeypatch, tmp_path):
    def own(value):
        @dataclass(frozen=True)
        class Own:
            about = PixelFlipping().about.__class__("own", "a metric", higher=True, goals=("contribution",), kind="performance",
                                                    aspect="faithfulness", paper="nobody")

            def __call__(self, judged, rng):
                return value

        return Own()

    monkeypatch.setattr("whytrust.studies.admitting.admitted", lambda *given: [])
    rows = np.array([[-1.0, 0, 0], [1, 0, 0]])
    audit = partial(wt.audit, Scores(1.0), rows, ["occlusion"], background=rows, out=tmp_path / "run")
    audit(trials=["flip", own(1.0)])
    audit(trials=["flip", own(1.0)])
    with pytest.raises(ValueError, match="holds a run of another spec"):
        audit(trials=["flip", own(2.0)])


# --- demonstrations and papers ----------------------------------------------------------------------------------------


def test_other_digits_are_another_run_of_the_demonstrations():
    read = pitfalls_linear.read(None, 0.1)
    changed = Digits(read.name, read.train + (np.arange(len(read.train)) == 3)[:, None, None], read.train_labels, read.test, read.test_labels)
    assert LinearStudy(read).manifest()["hashes"] == LinearStudy(pitfalls_linear.read(None, 0.1)).manifest()["hashes"]
    assert LinearStudy(read).manifest()["hashes"] != LinearStudy(changed).manifest()["hashes"]


def test_another_net_of_the_same_name_is_another_demonstration(monkeypatch):
    pytest.importorskip("torch")
    from whytrust.models import small_nets
    from whytrust.studies import pitfalls_nets

    made = small_nets.untrained
    monkeypatch.setattr(small_nets, "trained", lambda kind, images, labels: made(kind, seed=5).eval())
    for study in (FlippingStudy, EnhancedStudy):
        told = []
        for seed in (0, 0, 1):
            pitfalls_nets._model.cache_clear()
            monkeypatch.setattr(small_nets, "trained", lambda kind, images, labels, seed=seed: made(kind, seed=seed).eval())
            told.append(study(Pictures(None, 0.02)).manifest()["hashes"])
        pitfalls_nets._model.cache_clear()
        assert told[0] == told[1] != told[2]


NET = """
import torch
torch.manual_seed({seed})
net = torch.nn.Sequential(torch.nn.AdaptiveAvgPool2d(4), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(48, 6)).eval()
"""


@pytest.fixture
def images(tmp_path, monkeypatch):
    pytest.importorskip("torch")
    pytest.importorskip("skimage")
    pytest.importorskip("matplotlib")
    monkeypatch.setattr(plausible, "ITERATIONS", 3)
    monkeypatch.setattr(plausible, "COPIES", 2)
    monkeypatch.setattr(plausible, "SAMPLES", 64)
    plausible._loaded.cache_clear()
    folder = tmp_path / "images"
    folder.mkdir()
    for i in range(2):
        colours = np.random.default_rng(i).integers(0, 256, (4, 4, 3))
        Image.fromarray(np.kron(colours, np.ones((9, 9, 1))).astype(np.uint8)).save(folder / f"n0000000{i}_a.png")
    yield folder
    plausible._loaded.cache_clear()


def again(images, tmp_path, net, *more):
    plausible._loaded.cache_clear()
    return main(["reproduce", "plausible", "accuracy", "--data", str(images), "--models", f"{tmp_path / 'net.py'}:{net}",
                 "--out", str(tmp_path / "run"), "--few", "0", *more])


def test_a_net_that_cannot_be_loaded_is_one_error_before_anything_is_written(images, tmp_path, capsys):
    (tmp_path / "net.py").write_text(NET.format(seed=0))
    assert again(images, tmp_path, "nowhere") == 2
    assert "has no attribute 'nowhere'" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()
    assert again(images, tmp_path, "net") == 0


def test_a_net_whose_weights_do_not_fit_is_one_line_that_names_it(images, tmp_path, capsys):
    (tmp_path / "net.py").write_text(NET.format(seed=0) + "net.load_state_dict({})\n")
    assert again(images, tmp_path, "net") == 2
    said = capsys.readouterr().err
    assert "net.py:net' cannot be loaded (RuntimeError: Error(s) in loading state_dict" in said
    assert "Traceback" not in said
    assert not (tmp_path / "run").exists()


def test_plausible_is_not_continued_with_another_net(images, tmp_path, capsys):
    (tmp_path / "net.py").write_text(NET.format(seed=0))
    assert again(images, tmp_path, "net") == 0
    assert again(images, tmp_path, "net") == 0
    (tmp_path / "net.py").write_text(NET.format(seed=1))
    assert again(images, tmp_path, "net") == 2
    assert "holds a run of another spec: other content of what" in capsys.readouterr().err


# --- trying again what failed -----------------------------------------------------------------------------------------


class Odd:
    """A study of numbers of which some fail while a file is there."""

    def __init__(self, broken, cases=12):
        self.broken, self.cases = broken, cases

    def manifest(self):
        return {"study": "odd", "spec": {}, "seed": 0, "hashes": {}}

    def blocks(self):
        return [Block(f"b{i:04d}", tuple(f"{i:04d}-{j}" for j in range(3))) for i in range(self.cases // 3)]

    def work(self, block, on_calls):
        for case in block.cases:
            if self.broken.exists() and case in self.broken.read_text().split():
                yield Result({"case": case, "status": "failed", "error": "OSError: no luck"})
            else:
                yield Result({"case": case, "status": "ok"}, {"a": np.array([int(case[:4])])})


def states(folder):
    return {record["case"]: record["status"] for record in Store.open(folder).records()}


@pytest.mark.parametrize(("jobs", "cases"), [(engine.Here(retry_failed=True), 12), (engine.Here(retry_failed=True), 1050),
                                             (engine.Processes(2, retry_failed=True), 12)])
def test_what_failed_is_tried_again_when_asked_and_only_then(jobs, cases, tmp_path):
    broken = tmp_path / "broken"
    broken.write_text("0001-2 0003-0")
    study = Odd(broken, cases)
    engine.run(study, tmp_path / "run")
    assert [case for case, state in states(tmp_path / "run").items() if state == "failed"] == ["0001-2", "0003-0"]
    assert (cases > 1024) == (tmp_path / "run" / "packs" / "00000.jsonl").exists()
    broken.unlink()
    engine.run(study, tmp_path / "run")
    assert list(states(tmp_path / "run").values()).count("failed") == 2
    store = engine.run(study, tmp_path / "run", jobs)
    assert states(tmp_path / "run") == dict.fromkeys((case for block in study.blocks() for case in block.cases), "ok")
    assert store.problems == []
    assert (cases > 1024) == (tmp_path / "run" / "packs" / "00000.jsonl").exists()
    assert any("cases that failed were tried again: 2" in note for note in store.journal.notes())
    clean = engine.run(study, tmp_path / "clean")
    for block in study.blocks():
        assert store.shard(block)[0] == clean.shard(block)[0]  # to the byte what it would have been
        assert store.arrays(block.cases[0], "a")["a"] == clean.arrays(block.cases[0], "a")["a"]


def test_a_case_that_fails_again_is_recorded_again(tmp_path):
    (tmp_path / "broken").write_text("0001-2")
    study = Odd(tmp_path / "broken")
    for _ in range(3):
        engine.run(study, tmp_path / "run", engine.Here(retry_failed=True))
        assert list(states(tmp_path / "run").values()).count("failed") == 1


# --- exit codes -------------------------------------------------------------------------------------------------------

MODEL = """
import numpy as np
def score(batch):
    high = np.array([text.count("good") for text in batch]) > 0
    return np.stack([~high, high], axis=1).astype(float)
def choosy(batch):
    if any(len(text) < 30 and text != "good film" for text in batch):
        raise ValueError("no luck")
    return score(batch)
"""


@pytest.mark.parametrize("command", [
    ["fool", "{model}", "{texts}", "--explainer", "occlusion", "--quality", "none", "--out", "{out}"],
    ["pick", "{model}", "{texts}", "--explainer", "occlusion", "--budget", "1", "--run", "{out}"],
])
def test_a_command_of_which_every_case_failed_ends_with_1(command, tmp_path, capsys):
    (tmp_path / "model.py").write_text(MODEL)
    (tmp_path / "texts.txt").write_text("good film\nbad film\n")
    words = {"model": f"{tmp_path / 'model.py'}:choosy", "texts": str(tmp_path / "texts.txt"), "out": str(tmp_path / "run")}
    assert main([word.format(**words) for word in command]) == 1, capsys.readouterr()
    assert "no luck" in "".join(capsys.readouterr())


def test_an_audit_of_which_every_case_failed_ends_with_1_and_says_why(tmp_path, capsys):
    (tmp_path / "model.py").write_text(MODEL)
    (tmp_path / "texts.txt").write_text("good film\ngood film\n")
    spec = tmp_path / "spec.toml"
    spec.write_text('model = "model.py:choosy"\ninputs = "texts.txt"\nexplainers = ["occlusion"]\n')
    assert main(["audit", str(spec), "--out", str(tmp_path / "run")]) == 1
    assert "no luck" in capsys.readouterr().err


def test_reproduce_ends_with_1_where_a_case_failed(images, tmp_path, capsys):
    (tmp_path / "net.py").write_text(NET.format(seed=0))
    (images / "n00000005_broken.png").write_bytes(b"no image")
    assert again(images, tmp_path, "net", "--json") == 1
    assert json.loads(capsys.readouterr().out)["cases"] == {"done": 3, "of": 3, "failed": 1}
    Image.fromarray(np.zeros((36, 36, 3), np.uint8)).save(images / "n00000005_broken.png")  # another run now, by its inputs
    assert again(images, tmp_path, "net") == 2
    assert again(images, tmp_path, "net", "--out", str(tmp_path / "other"), "--retry-failed") == 0
