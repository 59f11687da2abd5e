"""Audits from the command line of folders of images and of table rows, and what newcomers stumble over."""

import json
import re
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from planted import GRID
from studies.specs import MODEL, SPEC, stop_after, told, written
from whytrust.models.whitebox import PlantedCause
from whytrust.report.audit import Audit
from whytrust.store import Store
from whytrust.studies import spec

# --- folders of images ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def pictures(place):
    from PIL import Image
    folder = place / "pictures"
    values = (PlantedCause(GRID == 5).inputs(6) * 255).astype(np.uint8)
    for i, picture in enumerate(values):
        (folder / "dark").mkdir(parents=True, exist_ok=True)
        Image.fromarray(picture).save(folder / "dark" / f"{i}.png")
    return folder


FOLDER = SPEC.replace("model.py:box", "model.py:bytes_box").replace("inputs.npy", "pictures").replace("0.5", "128")


def test_class_folders_are_true_labels(place, pictures, tmp_path, capsys):
    code, out, _ = told(capsys, "audit", written(place, "folder.toml", FOLDER), "--out", tmp_path / "run", "--json")
    assert code == 0
    assert json.loads(out)["attack"]["accuracy_before"] == 1.0
    assert json.loads(out)["data"]["what"] == "6 images of pictures in 1 class folders"


def test_classes_that_are_not_the_model_s_are_one_error(place, pictures, tmp_path, capsys):
    (pictures / "dark").rename(pictures / "darc")
    code, _, err = told(capsys, "audit", written(place, "folder.toml", FOLDER), "--out", tmp_path / "run")
    (pictures / "darc").rename(pictures / "dark")
    assert code == 2
    assert "the data's classes must be among the model's 2: 1 of 1 are not, such as 'darc' (did you mean 'dark'?)" in err


def test_corrupt_images_are_recorded_and_the_rest_is_audited(place, pictures, tmp_path, capsys):
    (pictures / "dark" / "7.png").write_bytes(b"not a picture")
    (pictures / "dark" / "8.png").write_bytes((pictures / "dark" / "0.png").read_bytes()[:40])
    code, out, _ = told(capsys, "audit", written(place, "folder.toml", FOLDER), "--out", tmp_path / "run")
    for name in ("7.png", "8.png"):
        (pictures / "dark" / name).unlink()
    assert code == 1  # as everywhere, where some of several inputs failed
    assert "6 of 8 inputs were fooled, 2 failed" in out
    assert "must be an image file that Pillow can read" in out


def test_images_of_any_size_are_cut_to_the_middle_square(place, tmp_path, capsys):
    from PIL import Image
    folder = place / "wide"
    folder.mkdir(exist_ok=True)
    for i, picture in enumerate((PlantedCause(GRID == 5).inputs(3) * 255).astype(np.uint8)):
        Image.fromarray(picture.repeat(4, 0).repeat(6, 1)).save(folder / f"{i}.png")
    text = FOLDER.replace('"pictures"', '"wide"').replace("draws", "size = 8\nresize = 8\ndraws").replace(
        "bytes_box", "grey_box")
    (place / "model.py").write_text(MODEL + """
def _grey(batch): return np.asarray(batch, float)[..., 0]
grey_box = lambda batch: bytes_box(_grey(batch))
""")
    code, _, err = told(capsys, "audit", written(place, "wide.toml", text), "--out", tmp_path / "run")
    assert code == 2
    assert "follows gradients, and" in err  # a function of a batch has none, and that is told


def test_an_empty_folder_is_told(place, tmp_path, capsys):
    (place / "empty").mkdir(exist_ok=True)
    path = written(place, "none.toml", FOLDER.replace('"pictures"', '"empty"'))
    code, _, err = told(capsys, "audit", path, "--out", tmp_path / "run")
    assert code == 2
    assert "must hold images" in err


# --- table rows -------------------------------------------------------------------------------------------------------


def test_table_rows_are_led_to_the_nearest_row_of_another_class(tmp_path, capsys):
    code, out, _ = told(capsys, "audit", "tabular", "--limit", 6, "--out", tmp_path / "run", "--explainers", "occlusion", "--json")
    assert code == 0
    found = json.loads(out)
    assert found["kind"] == "tabular"
    assert found["counts"]["adversaries"] == 6
    study = spec.load("tabular", {"limit": 6})
    rows = study.adversaries.rows
    scale = rows.std(ddof=0)
    labels = study.model.labels(study.model(rows))
    for record in Store.open(tmp_path / "run").records():
        clean = next(item.value for item in study.data.items if item.id == record["case"])
        distances = (((rows - clean) / scale) ** 2).sum(axis=1).to_numpy()
        others = np.flatnonzero(labels != record["clean_label"])
        assert record["attack"]["row"] == others[np.argmin(distances[others])]
        assert record["attack"]["l2"] == pytest.approx(np.sqrt(distances[record["attack"]["row"]]))
    assert (tmp_path / "run" / "report.html").is_file()


def test_the_digits_preset_runs(tmp_path, capsys):
    pytest.importorskip("torch")
    code, out, _ = told(capsys, "audit", "digits", "--limit", 4, "--out", tmp_path / "run", "--explainers", "saliency,lime")
    assert code == 0
    assert "saliency" in out
    assert Audit.open(tmp_path / "run").gallery()


# --- what newcomers stumble over --------------------------------------------------------------------------------------


def test_a_model_file_that_imports_its_neighbour_works_in_workers(place, tmp_path):
    (place / "neighbour.py").write_text("def scaled(batch):\n    return batch * 1.0\n")
    (place / "importing.py").write_text(MODEL + """
import neighbour
def prepared(batch):
    return neighbour.scaled(batch)
own = model(MarkedCause(GRID), output="logit", classes=["dark", "bright"], preprocess=prepared)
class Own:
    kind = "mine"
    def __call__(self, batch): return MarkedCause(GRID)(neighbour.scaled(batch))
    def pullback(self, batch, preprocess=None): return MarkedCause(GRID).pullback(neighbour.scaled(batch))
plain = model(Own(), output="logit")
""")
    for attribute in ("own", "plain"):
        path = written(place, f"{attribute}.toml", SPEC.replace("model.py:box", f"importing.py:{attribute}"))
        words = [sys.executable, "-m", "whytrust", "audit", path, "--out", str(tmp_path / attribute), "--jobs", "2"]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert "better than magnitude" in done.stdout


@pytest.mark.parametrize(("rows", "words"), [
    ("price,colour\n3,red\n", r"rows\.csv must have every column of the background: it lacks size, and its columns are price, colour; change"),
    ("price,size,colour\n", r"an audit needs at least one input, and \S*rows\.csv has none")])
def test_a_csv_that_cannot_be_audited_is_named_with_its_columns(tmp_path, capsys, rows, words):
    (tmp_path / "train.csv").write_text("price,size\n1,2\n3,4\n")
    (tmp_path / "rows.csv").write_text(rows)
    (tmp_path / "shop.py").write_text("def model(rows):\n    return (rows['price'] > 2).to_numpy(float)\n")
    path = written(tmp_path, "csv.toml", 'model = "shop.py:model"\ninputs = "rows.csv"\nbackground = "train.csv"\nexplainers = ["occlusion"]\n')
    code, _, err = told(capsys, "audit", path, "--out", tmp_path / "run")
    assert code == 2
    assert re.search(words, err)


def test_a_csv_s_label_column_is_no_input_and_may_be_its_labels(tmp_path, capsys):
    pandas = pytest.importorskip("pandas")
    random = np.random.default_rng(0)
    train = pandas.DataFrame({"a": random.normal(size=80), "b": random.normal(size=80)})
    rows = pandas.DataFrame({"a": random.normal(size=12), "b": random.normal(size=12)})
    rows["bought"] = np.where(rows["a"] > 0, "yes", "no")
    train.to_csv(tmp_path / "train.csv", index=False)
    rows.to_csv(tmp_path / "rows.csv", index=False)
    (tmp_path / "shop.py").write_text("import numpy as np\nimport whytrust as wt\ndef f(rows):\n    p = (rows['a'] > 0).to_numpy(float)\n"
                                      "    return np.column_stack([1 - p, p])\nmodel = wt.model(f, classes=['no', 'yes'])\n")
    path = written(tmp_path, "csv.toml", 'model = "shop.py:model"\ninputs = "rows.csv"\nbackground = "train.csv"\nlabels = "bought"\n'
                                         'explainers = ["occlusion"]\n')
    code, out, _ = told(capsys, "audit", path, "--out", tmp_path / "run", "--json")
    assert code == 0
    assert json.loads(out)["attack"]["accuracy_before"] == 1.0


def test_rows_without_a_background_are_told_what_they_need():
    pandas = pytest.importorskip("pandas")
    from sklearn.linear_model import LogisticRegression

    import whytrust as wt
    rows = pandas.DataFrame({"a": [0.0, 1.0, 2.0, 3.0], "b": [1.0, 1.0, 0.0, 0.0]})
    fitted = LogisticRegression().fit(rows, [0, 0, 1, 1])
    with pytest.raises(ValueError, match="table rows are audited against training rows"):
        wt.audit(fitted, rows, ["lime"])


def test_an_unfinished_run_says_so_everywhere(place, tmp_path, capsys, monkeypatch):
    stop_after(monkeypatch, 2)
    assert told(capsys, "audit", place / "spec.toml", "--out", tmp_path / "run")[0] == 130
    code, out, _ = told(capsys, "gate", tmp_path / "run", "--require", "occlusion.flip > random")
    assert (code, "16 of 24 inputs are not done yet" in out) == (2, True)
    _, out, _ = told(capsys, "report", tmp_path / "run")
    assert "16 of 24 inputs are not done yet" in out
    told(capsys, "report", tmp_path / "run", "--html", tmp_path / "page.html")
    assert "16 of 24 inputs are not done yet" in (tmp_path / "page.html").read_text()


def test_runs_that_differ_in_their_blocks_are_still_compared_case_by_case(place, tmp_path, capsys):
    path = written(place, "blocks.toml", SPEC.replace("block = 4", "block = 7"))
    told(capsys, "audit", path, "--out", tmp_path / "run", "--limit", 10)
    _, out, _ = told(capsys, "diff", place / "run", tmp_path / "run", "--json")
    found = json.loads(out)
    assert found["paired"] is True
    assert found["rows"][0]["n"] == 10


def test_limited_inputs_are_spread_over_all(place, tmp_path, capsys):
    _, out, _ = told(capsys, "audit", place / "spec.toml", "--limit", 4, "--out", tmp_path / "run", "--json")
    assert [r["case"] for r in Store.open(tmp_path / "run").records()] == ["00000", "00008", "00015", "00023"]
    assert json.loads(out)["data"]["what"] == "4 of 24 inputs, evenly spread"


def test_a_net_that_was_given_bytes_is_noted(tmp_path):
    torch = pytest.importorskip("torch")
    import whytrust as wt
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 3))
    images = list(np.random.default_rng(0).integers(0, 255, (6, 1, 8, 8)).astype(np.uint8))
    explainers = {"integrated_gradients": {}, "by the mean": {"method": "integrated_gradients", "pooling": "mean"}}
    found = wt.audit(wt.model(net, output="logit"), images, explainers, "grid:4x4", {"method": "pgd", "epsilon": 0.2}, "flip",
                     tmp_path / "run")
    assert "The net was given pixels as they are" in str(found)
    assert "pooled onto parts in different ways (integrated_gradients by sum, by the mean by mean)" in str(found)
    assert "The net was given pixels as they are" in found.save_html(tmp_path / "p.html").read_text()


def test_failures_are_counted_by_case(tmp_path):
    import whytrust as wt

    def broken(question, rng):
        raise RuntimeError("boom")

    box = wt.model(PlantedCause(GRID == 5), output="logit")
    attack = {"method": "pgd", "epsilon": 0.5, "units": "input", "bounds": None, "iterations": 10, "strengths": [0]}
    found = wt.audit(box, list(PlantedCause(GRID == 5).inputs(5)), {"occlusion": "occlusion", "broken": broken}, "grid:4x4", attack,
                     out=tmp_path / "run", fill=0.0)
    assert found.findings["explainer_failures"]["broken"]["count"] == 5
    asked = found.findings["calls"]
    assert asked["all"] > asked["asked"]


@pytest.mark.parametrize("name", ["nowhere/p.html", "p.pdf"])
def test_a_page_goes_into_an_html_file_of_a_folder_that_exists(place, tmp_path, capsys, name):
    code, _, err = told(capsys, "report", place / "run", "--html", tmp_path / name)
    assert code == 2
    assert "--html must name an .html file" in err


def test_a_flat_folder_has_no_labels_and_size_makes_its_pictures_alike(tmp_path):
    from PIL import Image

    from whytrust.studies.data import gather
    random = np.random.default_rng(0)
    for name, shape in (("wide.png", (20, 50, 3)), ("grey.png", (30, 24)), ("clear.png", (16, 16, 4))):
        Image.fromarray(random.integers(0, 255, shape).astype(np.uint8)).save(tmp_path / name)
    (tmp_path / "notes.txt").write_text("no picture")
    data = replace(gather(tmp_path), size=8, resize=10)
    assert [item.name for item in data.items] == ["clear.png", "grey.png", "wide.png"]
    assert all(item.truth is None for item in data.items)
    assert {data.read(item).shape for item in data.items} == {(8, 8, 3)}


def test_the_middle_square_is_the_one_that_torchvision_cuts(tmp_path):
    """Of 57 × 40 pixels brought to 34: 48 × 34, and of these the middle 29, whose corner (2.5, 9.5) is rounded to (2, 10)."""
    from PIL import Image

    from whytrust.studies.data import square
    picture = Image.fromarray(np.random.default_rng(0).integers(0, 255, (40, 57, 3)).astype(np.uint8))
    expected = np.asarray(picture.resize((48, 34), Image.Resampling.BILINEAR).crop((10, 2, 39, 31)))
    np.testing.assert_array_equal(square(np.asarray(picture), 29, 34), expected)
