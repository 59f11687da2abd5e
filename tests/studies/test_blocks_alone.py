"""What a block comes to must depend on the block alone: each is done first by a study that has done nothing else yet."""

import pickle
from functools import cache

import pytest

import whytrust as wt
from whytrust import engine, loading
from whytrust.engine.supervised import pickled
from whytrust.engine.work import attempt
from whytrust.shards import Form
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
