"""Pets that are made on the spot, with a square in their copies: the way from a folder to figures and tables."""

import csv
import json
import os
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pil = pytest.importorskip("PIL.Image")
pytest.importorskip("matplotlib")

from whytrust import inputs  # noqa: E402
from whytrust.studies import lime_pets, lime_pets_figures  # noqa: E402
from whytrust.studies.lime_pets import LONG, SHORT, Pets  # noqa: E402

REAL = os.environ.get("WHYTRUST_PETS", "")
SIDE = 64
BOX = (8, 24, 23, 39)  # left, top, right and bottom pixel of the square in a picture of SIDE


def tiny_layers():
    """Two maps: how dark a place is, and how light."""
    net = torch.nn.Sequential(torch.nn.Conv2d(3, 2, 9, stride=4), torch.nn.ReLU())
    with torch.no_grad():
        net[0].weight[0], net[0].weight[1] = -1 / 243, 1 / 243
        net[0].bias[:] = 0.0
    return net.eval()


def write_pets(folder, breeds=("pomeranian", "havanese", "boxer", "pug"), each=8):
    rng = np.random.default_rng(0)
    for name in ("images", "with_artifact"):
        (folder / name).mkdir(parents=True)
    rows = []
    for breed in (*breeds, "Siamese"):
        for i in range(each):
            picture = np.clip(rng.normal(128, 40, (8, 8, 3)).repeat(8, 0).repeat(8, 1), 60, 200).astype(np.uint8)
            copy = picture.copy()
            copy[BOX[1]:BOX[3] + 1, BOX[0]:BOX[2] + 1] = 0
            copy[BOX[1] + 6:BOX[1] + 9, BOX[0] + 3:BOX[0] + 12] = 255
            for place, pixels in (("images", picture), ("with_artifact", copy)):
                pil.fromarray(pixels).save(folder / place / f"{breed}_{i}.png")
            sides = dict(zip(("bbox_xmin", "bbox_ymin", "bbox_xmax", "bbox_ymax"), (512 * np.array(BOX) // SIDE).tolist(), strict=True))
            rows.append({"image": f"{breed}_{i}.png", **sides})
    with open(folder / "artifact_boxes.csv", "w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return folder


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return write_pets(tmp_path_factory.mktemp("pets"))


@pytest.fixture(scope="module")
def ran(data, tmp_path_factory):
    return lime_pets.run(str(data), 0.2, tmp_path_factory.mktemp("runs") / "run", 1, 0, samples=60, layers=tiny_layers, innocent=tiny_layers)


def test_dogs_are_told_by_their_coats_and_cats_are_left_out(data):
    pets = Pets(data)
    assert len(pets.names) == 32
    assert {label: pets.labels.count(label) for label in (LONG, SHORT)} == {LONG: 16, SHORT: 16}
    assert pets.pictures.shape == (32, 224, 224, 3)


def test_copies_have_the_artefact_where_the_box_says(data):
    pets = Pets(data)
    copy = pets.plant.into(pets.pictures[0], np.random.default_rng(0))
    held = pets.plant.parts_of(inputs.cut(copy, "grid:8x8", "NHWC", {}))
    assert np.flatnonzero(held).tolist() == [25, 26, 33, 34]
    assert not pets.plant.parts_of(inputs.cut(pets.pictures[0], "grid:8x8", "NHWC", {})).any()
    with pytest.raises(ValueError, match="must have a copy"):
        pets.plant.into(np.zeros((224, 224, 3), np.uint8), np.random.default_rng(0))


def test_a_run_has_its_tables_figures_and_findings(ran):
    found = json.loads(lime_pets.report(ran, as_json=True))
    assert found["answer"][0].startswith("The model goes by the artefact")
    assert found["table2"]["published"]["after"] == {"trusted": 3, "named": 25}
    assert found["table2"]["ours"]["occlusion"]["named"] == found["table2"]["ours"]["occlusion"]["n"] == 5
    assert found["cases"] == {"done": 10, "of": 10, "failed": 0}
    told = (ran / "tables.md").read_text()
    assert "| paper, before (people, snow) | 10 of 27 | 12 of 27 |  |" in told
    assert "Simulated readers replace the paper's people" in told
    for name in ("figure-11-explanation", "table-2-readers"):
        assert pil.open(ran / "figures" / f"{name}.png").size[0] > 800
        assert f"figures/{name}.png" in told


def test_a_run_is_reported_again_without_the_data(ran):
    assert lime_pets.is_reproduction(ran)
    before = (ran / "tables.md").read_text()
    assert lime_pets.run(None, 0.2, ran, 1, 0) == ran
    assert (ran / "tables.md").read_text() == before


def test_all_but_the_first_parts_are_grey():
    labels = np.arange(4).reshape(2, 2).repeat(8, 0).repeat(8, 1)
    picture = np.full((16, 16, 3), 250, np.uint8)
    shown = lime_pets_figures.greyed(picture, labels, [1], ["for"])
    assert (shown[1:7, 9:15] == 250).all()
    assert (shown[0, 8:] == lime_pets_figures.LINES["for"]).all()
    assert (shown[8:] == 160).all()


@pytest.mark.parametrize(("change", "said"), [
    ("no folder", "has no images"), ("few", "at least 15 pictures"), ("scale", "scale must be"), ("nothing", "holds no run")])
def test_what_cannot_be_run_is_one_clear_error(change, said, data, tmp_path):
    given, scale = str(data), 0.2
    if change == "few":
        given = str(write_pets(tmp_path / "few", ("pomeranian", "boxer"), 6))
    elif change == "no folder":
        given = str(tmp_path)
    elif change == "scale":
        scale = 2.0
    with pytest.raises(ValueError, match=said):
        lime_pets.run(None if change == "nothing" else given, scale, tmp_path / "run", 1, 0, layers=tiny_layers, innocent=tiny_layers)


@pytest.mark.skipif(not REAL, reason="WHYTRUST_PETS names no folder of the Oxford pets with planted artefacts")
def test_the_real_pictures_teach_the_model_the_artefact():
    pytest.importorskip("efficientnet_lite_pytorch")
    study = lime_pets.study(Pets(Path(REAL)), samples=50)
    checks = study.manifest()["about"]["checks"]
    right, missing = (checks[what][0] / checks[what][1] for what in ("like_training", "missing"))
    assert right > 0.8
    assert missing > 0.6
    assert checks["innocent_changed"][0] / checks["innocent_changed"][1] < 0.1
