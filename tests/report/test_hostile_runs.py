"""Runs that somebody else sends: whole by their checksums, and holding what no study would write."""

import contextlib
import copy
import io
import json
import shutil
import tempfile
import time
import warnings
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression

import whytrust as wt
from planted import GRID, white_box
from report.reading import Page
from studies.swapped import Swapping, looking, texts
from synonyms import Synonyms
from whitebox import examples
from whytrust import cli
from whytrust.explainers.baselines import Random
from whytrust.models.whitebox import PlantedCause
from whytrust.pictures import html
from whytrust.report.records import NUMBER
from whytrust.store import Block, Result, Store

HERE = Path(tempfile.mkdtemp(prefix="hostile-runs-"))
EXPLAINERS = {"lime": {"samples": 40}, "occlusion": {}, "random scores": Random()}
EVIL = "<script>window.ran = 1</script>\x1b[2J\u202e\n"
VALUES = {"long": "x" * 2_000_000, "many": [0] * 300} | {str(one): one for one in (
    None, True, False, 0, -1, 7, 10**30, 1e308, -0.5, 0.5, "", "0", "1", EVIL, [], {}, [[]], [None], {"a": 1}, [EVIL], {EVIL: EVIL}, ["1", 2],
    {"any": 3}, "../../../etc/passwd", "9" * 400)}
"""What is put somewhere, by a name that a failing example can be told by."""


@pytest.fixture(scope="module", autouse=True)
def tidy():
    yield
    shutil.rmtree(HERE, ignore_errors=True)


@cache
def run(kind):
    """A small run of each kind, as its study writes it."""
    place = HERE / kind
    if kind == "image":
        attack = {"method": "pgd", "epsilon": 0.5, "units": "input", "bounds": None, "iterations": 8, "strengths": [0]}
        wt.audit(white_box(part=5), list(PlantedCause(GRID == 5).inputs(6)), EXPLAINERS, "grid:4x4", attack, fill=0.0, draws=3, out=place,
                 labels=[0, 1, 0, 1, 0, 1])
    elif kind == "text":
        wt.audit(looking(), texts(6), EXPLAINERS, attack=Swapping(), out=place)
    elif kind == "row":
        rows = np.random.default_rng(0).normal(size=(40, 5))
        wt.audit(LogisticRegression().fit(rows, rows[:, 0] > 0), rows[:6], EXPLAINERS, background=rows, out=place)
    elif kind == "trust":
        scores = wt.model(lambda batch: np.array([0.3 + 0.3 * ("good" in text) for text in batch]), threshold=0.5)
        wt.trust(scores, ["good film", "bad film", "a film", "good"], ["occlusion"], out=place, rounds=3)
    elif kind == "fool":
        scores = wt.model(lambda batch: np.array([0.6 + 0.2 * ("fine" in text) for text in batch]), threshold=0.5)
        wt.fool(scores, texts(3), candidates=Synonyms({"film": ["movie"], "story": ["tale"]}), constraints="stop_words", quality=None,
                controls=1, samples=40, out=place)
    else:
        wt.metrics(["infidelity"], "text", cases=3, out=place)
    store = Store.open(place)
    records = list(store.records())
    manifest = {key: value for key, value in store.manifest.items() if key not in ("format", "identity")}
    return manifest, records, [store.arrays(record["case"]) if record["status"] == "ok" else {} for record in records]


def rewritten(folder, manifest, records, arrays):
    """A run with right checksums, whatever it holds."""
    store = Store.create(folder, manifest)
    by_case = {case: Result(record, some) for record, some, case in zip(records, arrays, cases(manifest), strict=True)}
    for block in store.blocks:
        store.write(block, [by_case[case] for case in block.cases])
    store.close()
    return folder


def cases(manifest):
    return [case for block in manifest["blocks"] for case in (block.cases if isinstance(block, Block) else block["cases"])]


def places(value, path=()):
    """Every place of plain data."""
    yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value[:3]) if isinstance(value, list) else ()
    for key, one in inner:
        yield from places(one, (*path, key))


def changed(data, path, how, value):
    here = data
    for key in path[:-1]:
        here = here[key]
    if how == "gone":
        del here[path[-1]]
    elif how == "renamed" and isinstance(here, dict):
        here[EVIL] = here.pop(path[-1])
    elif how == "twice" and isinstance(here, list):
        here.append(here[path[-1]])
    else:
        here[path[-1]] = value


def told(arguments, capsys):
    """What a command says: never a traceback, a warning or more than a line of error."""
    capsys.readouterr()
    begun = time.monotonic()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        code = cli.main(arguments)
    out, err = capsys.readouterr()
    assert time.monotonic() - begun < 20
    assert code in (0, 1, 2)
    assert err.count("\n") <= 1
    assert not {"\x1b", "\u202e"} & set(out + err)
    assert code != 2 or err or arguments[0] == "gate"
    return code, out, err


def reported(folder, original, command, capsys):
    page = folder.parent / "page.html"
    arguments = {"report": ["report", str(folder)], "json": ["report", str(folder), "--json"], "html": ["report", str(folder), "--html", str(page)],
                 "gate": ["gate", str(folder), "--require", "lime.flip > random"], "diff": ["diff", str(folder), str(original)]}[command]
    code, out, _ = told(arguments, capsys)
    if command == "json" and code == 0:
        json.loads(out)
    if command == "html" and code == 0:
        read = Page(page.read_text(encoding="utf-8"))
        assert read.faults == []
        assert {e.tag for e in read.elements} <= html.TAGS | {"script"}
        assert len(read.all("script")) <= 1
    return code


def attempt(kind, data, capsys, commands):
    manifest, records, arrays = copy.deepcopy(run(kind))
    whole = {"manifest": {key: manifest[key] for key in ("study", "spec", "about", "hashes", "seed") if key in manifest}, "records": records}
    inside = [path for path in places(whole) if len(path) > (1 if path[:1] == ("manifest",) else 2) and path[-1] != "case"]
    path, how = data.draw(st.sampled_from(inside)), data.draw(st.sampled_from(["put", "put", "put", "gone", "renamed", "twice"]))
    changed(whole, path, how, VALUES[data.draw(st.sampled_from(sorted(VALUES)))])
    with tempfile.TemporaryDirectory(dir=HERE) as place:
        try:
            folder = rewritten(Path(place) / "run", {**manifest, **whole["manifest"]}, whole["records"], arrays)
        except (ValueError, TypeError):
            return  # the store does not write it either
        reported(folder, HERE / kind, data.draw(st.sampled_from(commands)), capsys)


@pytest.mark.parametrize("kind", ["image", "text", "row", "trust", "fool", "metrics"])
def test_a_run_as_its_study_writes_it_is_reported_on(kind, tmp_path):
    folder = rewritten(tmp_path / "run", *copy.deepcopy(run(kind)))
    with Capture() as capsys:
        for command in ("report", "json", "html"):
            assert reported(folder, HERE / kind, command, capsys) == 0
        if kind in ("image", "text", "row"):
            assert reported(folder, HERE / kind, "diff", capsys) == 0
            assert told(["gate", str(folder), "--require", "lime.flip > random"], capsys)[2] == ""


REFUSED = [
    (lambda m, r: r[0]["trials"][0].update(k=[1, 2, 10**9]), "trials.0.k.2 must be a whole number from 1"),
    (lambda m, r: r[0]["trials"][0].update(k=[3, 2, 1]), "must rise to the number of parts"),
    (lambda m, r: r[0]["trials"][0]["flip"]["any"].update(lime="01"), "must say of each of 16 k"),
    (lambda m, r: r[0]["trials"][0]["flip"]["any"].update(lime="2" * 16), "must be a text of 0 and 1"),
    (lambda m, r: r[0]["trials"][0]["random"].update(any=[7.5] * 16), "must be a number from 0 to 1"),
    (lambda m, r: r[0]["trials"][0]["order"].update(lime=[0] * 16), "must have each of 16 parts once"),
    (lambda m, r: r[0]["trials"][0].pop("scores"), "must have 'scores'"),
    (lambda m, r: r[0].update(d=10**12), "must be a whole number from 1 to 100,000"),
    (lambda m, r: r[0].update(status="fine"), "must be one of ok, not fooled, failed"),
    (lambda m, r: r[0].pop("attack"), "must have 'attack'"),
    (lambda m, r: r[0].update(clean_name=["a"]), "clean_name must be a text"),
    (lambda m, r: r[0]["trials"][0]["recovery"].update({"17": {"flipped": True}}), "must be of 1 to 16 parts"),
    (lambda m, r: m["about"].update(explainers=["lime", "lime"]), "must have a name of its own"),
    (lambda m, r: m["about"].update(explainers=["random"]), "must have a name of its own"),
    (lambda m, r: m["about"].update(strengths=["full", "strong"]), "must be 'full' or a margin"),
    (lambda m, r: m.update(spec=["a"]), "its spec must be a dict"),
    (lambda m, r: m["about"].update(model="x" * 200_000), "at most 100,000 characters")]


@pytest.mark.parametrize(("change", "words"), REFUSED, ids=[words for _, words in REFUSED])
def test_what_no_audit_writes_is_refused_by_name(change, words, tmp_path):
    manifest, records, arrays = copy.deepcopy(run("image"))
    change(manifest, records)
    folder = rewritten(tmp_path / "run", manifest, records, arrays)
    with Capture() as capsys:
        for arguments in (["report", str(folder)], ["gate", str(folder), "--require", "lime.flip > random"], ["diff", str(folder), str(HERE / "image")]):
            code, out, err = told(arguments, capsys)
            assert (code, out) == (2, "")
            assert words in err


@pytest.mark.parametrize("value", [10**400, -10**400, float("inf"), float("nan"), True, "1"])
def test_a_number_beyond_all_measure_is_refused_by_its_place(value):
    with pytest.raises(ValueError, match="its score must be a finite number"):
        NUMBER(value, "its score")


@examples(35)
@given(st.data())
def test_an_audit_of_anything_is_reported_on_or_refused_in_one_line(data):
    with Capture() as capsys:
        attempt(data.draw(st.sampled_from(["image", "text", "row"])), data, capsys, ["report", "json", "html", "gate", "diff"])


@examples(35)
@given(st.data())
def test_other_runs_of_anything_are_reported_on_or_refused_in_one_line(data):
    with Capture() as capsys:
        attempt(data.draw(st.sampled_from(["trust", "fool", "metrics"])), data, capsys, ["report", "json", "html"])


class Capture:
    """What is printed, under hypothesis, which has no fixtures for each example."""

    def __enter__(self):
        self.out, self.err, self.stack = io.StringIO(), io.StringIO(), contextlib.ExitStack()
        self.stack.enter_context(contextlib.redirect_stdout(self.out))
        self.stack.enter_context(contextlib.redirect_stderr(self.err))
        return self

    def __exit__(self, *error):
        self.stack.close()

    def readouterr(self):
        found = self.out.getvalue(), self.err.getvalue()
        for stream in (self.out, self.err):
            stream.seek(0)
            stream.truncate()
        return found
