"""What a block comes to must depend on the block alone: each is done first by a study that has done nothing else yet."""

import contextlib
import pickle
from functools import cache

import pytest

import whytrust as wt
from whitebox import soak
from whytrust import cli, engine, integrity, loading
from whytrust.engine.supervised import pickled
from whytrust.engine.work import attempt
from whytrust.shards import Form
from whytrust.store import Store
from whytrust.studies import spec


def assert_alone(study, most=3):
    """Blocks in order by one study, and each by a study of its own, fresh from its pickle."""
    data, form = pickled(study), Form("run", ("lime", "occlusion"))
    blocks = list(study.blocks())[:most]
    in_order = [attempt(study, block, form, lambda calls: None).shard for block in blocks]
    assert len(blocks) > 1
    for block, shard in [*zip(blocks, in_order, strict=True)][::-1]:
        alone = attempt(pickle.loads(data), block, form, lambda calls: None).shard
        assert alone[0].decode() == shard[0].decode(), block.id
        assert alone[1] == shard[1], block.id


@pytest.mark.parametrize(("preset", "explainers"), [("tabular", ["lime", "occlusion", "parzen"]), ("digits", ["lime", "grad_cam"]),
                                                    ("reviews", ["occlusion"])])
def test_blocks_of_an_audit(preset, explainers):
    study = spec.load(preset, {"limit": 4, "block": 2, "explainers": explainers})
    assert_alone(study)


class Caught(Exception):
    pass


def caught(monkeypatch, call):
    """The study that a call would run."""
    found = []

    def run(study, *args, **options):
        found.append(study)
        raise Caught

    monkeypatch.setattr(engine, "run", run)
    with pytest.raises(Caught):
        call()
    return found[0]


TEXTS = ["a dull and lifeless film", "a wonderful, moving story", "the plot is terribly boring"]
LOADED = {name: cache(lambda name=name: loading.load(name)) for name in ("demo:tabular", "demo:reviews")}


def rows():
    loaded = LOADED["demo:tabular"]()
    return loaded.model, list(loaded.inputs[:40]), dict(loaded.explain_options)


CALLS = {
    "pick": lambda: wt.pick(rows()[0], rows()[1], samples=200, jobs=2, **rows()[2]),
    "fool": lambda: wt.fool(LOADED["demo:reviews"]().model, TEXTS, candidates="thesaurus", samples=100),
    "metrics": lambda: wt.metrics(["infidelity", "deletion"], "tabular", cases=3),
    "trust, prediction": lambda: wt.trust(rows()[0], rows()[1][:20], ["lime"], "prediction", rounds=5, **rows()[2]),
    "trust, faithfulness": lambda: wt.trust(rows()[0], rows()[1][:20], ["lime"], "faithfulness", **rows()[2]),
}


@pytest.mark.parametrize("name", CALLS)
def test_blocks_of_other_studies(name, monkeypatch):
    assert_alone(caught(monkeypatch, CALLS[name]))


# --- every study, on every engine -------------------------------------------------------------------------------------

STUDIES = {"audit, images": lambda patch: spec.load("digits", {"limit": 6, "block": 2, "explainers": ["lime", "grad_cam"]}),
           "audit, rows": lambda patch: spec.load("tabular", {"limit": 6, "block": 2, "explainers": ["kernel_shap", "occlusion"]}),
           "audit, texts": lambda patch: spec.load("reviews", {"limit": 4, "block": 2, "explainers": ["lime"]}),
           "reproduce": lambda patch: caught(patch, lambda: cli.main(["reproduce", "metrics", "fig4", "--scale", "0.1"])),
           **{name: lambda patch, call=call: caught(patch, call) for name, call in CALLS.items()}}
ENGINES = {"one process": engine.Processes(1), "two processes": engine.Processes(2), "dask": engine.Dask(), "dask, two": engine.Dask(workers=2)}


@pytest.mark.parametrize("name", STUDIES if soak() else ["audit, images"])
def test_every_study_gives_the_same_bytes_on_every_engine_and_after_interruptions(tmp_path, monkeypatch, name):
    with monkeypatch.context() as patch:
        study = STUDIES[name](patch)
    here = integrity.check(engine.run(study, tmp_path / "here"))
    assert not here.left
    put = Store.put

    def interrupted(self, block, shard):
        put(self, block, shard)
        raise KeyboardInterrupt

    for number, first in enumerate(ENGINES if soak() else ["two processes", "dask"]):
        folder = tmp_path / str(number)
        with monkeypatch.context() as patch, contextlib.suppress(KeyboardInterrupt):
            patch.setattr(Store, "put", interrupted)
            engine.run(study, folder, ENGINES[first])
        assert integrity.check(Store.open(folder)).left or len(study.blocks()) == 1
        for again in ([first, *ENGINES] if soak() else [first]):
            store = engine.run(study, folder, ENGINES[again])
            assert integrity.check(store).fingerprint == here.fingerprint, (name, first, again)
