"""What a file may do to whoever reads it: no pickle runs unless it is vouched for, and nothing outside a folder is read or written."""

import io
import json
import os
import pickle
import re
import subprocess
import zipfile
from pathlib import Path

import joblib
import numpy as np
import pytest

import whytrust as wt
from garbage.kinds import BY_NAME, KINDS, Bomb, command, in_three_parts, recorded, with_model, with_others
from garbage.trying import prepared, tried
from whytrust import files, inputs, limits, loading
from whytrust.language import vectors
from whytrust.studies import excerpts, pitfalls_linear, plausible, songs
from whytrust.studies.data import gather

MODELS = ("m.joblib", "m.pkl", "m.pickle", "m.JOBLIB", "m.pt", "m.pth", "m.bin", "m.ckpt", "m.onnx", "m.safetensors", "m.h5", "m", "m.npy", "m.json")


@pytest.fixture(autouse=True)
def cache(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))


def bombs(mark):
    """A mark left by whoever unpickles it, packed in every way."""
    plain = pickle.dumps(Bomb(mark))
    of_array, of_zip, of_torch, by_joblib = io.BytesIO(), io.BytesIO(), io.BytesIO(), io.BytesIO()
    np.save(of_array, np.array([Bomb(mark)], dtype=object), allow_pickle=True)
    np.savez(of_zip, **{name: np.array([Bomb(mark)], dtype=object) for name in ("x_train", "y_train", "x_test", "y_test")})
    with zipfile.ZipFile(of_torch, "w") as made:  # as torch.save packs it
        made.writestr("archive/data.pkl", plain)
        made.writestr("archive/version", "3\n")
    joblib.dump(Bomb(mark), by_joblib)
    return {"pickle": plain, "old pickle": pickle.dumps(Bomb(mark), protocol=0), "joblib": by_joblib.getvalue(), ".npy": of_array.getvalue(), ".npz": of_zip.getvalue(),
            "torch": of_torch.getvalue()}


def test_the_bomb_goes_off_where_it_is_unpickled(tmp_path):
    """Else the tests below would prove nothing."""
    for name in ("pickle", "old pickle"):
        mark = tmp_path / name
        pickle.loads(bombs(mark)[name])
        assert mark.exists()
    np.load(io.BytesIO(bombs(tmp_path / "npy")[".npy"]), allow_pickle=True)
    assert (tmp_path / "npy").exists()


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_no_door_unpickles(kind, tmp_path):
    mark = tmp_path / "mark"
    path = prepared(kind, tmp_path / "folder")
    for raw in bombs(mark).values():
        path.write_bytes(raw)
        assert tried(kind.door, path).wrong == ""
        assert not mark.exists()


@pytest.mark.parametrize("name", MODELS)
def test_no_model_is_unpickled_unless_it_is_vouched_for(name, tmp_path):
    mark = tmp_path / "mark"
    for raw in bombs(mark).values():
        (tmp_path / name).write_bytes(raw)
        with pytest.raises(ValueError, match=r"\S") as told:
            loading.load(str(tmp_path / name))
        assert "\n" not in str(told.value)
        with pytest.raises(ValueError, match="whytrust: "):
            command("explain", tmp_path / name, "a text")
        assert not mark.exists()


def test_a_model_that_is_vouched_for_is_read_and_nothing_else_is(tmp_path):
    model, other = tmp_path / "model", tmp_path / "other"
    (tmp_path / "m.pkl").write_bytes(bombs(model)["pickle"])
    (tmp_path / "x.npy").write_bytes(bombs(other)[".npy"])
    with pytest.raises((ValueError, TypeError)):
        command("explain", tmp_path / "m.pkl", tmp_path / "x.npy", "--trust-pickle")
    assert model.exists()
    with_model(tmp_path)
    with pytest.raises(ValueError, match="pickle"):
        command("explain", f"{tmp_path / 'model.py'}:pictures", tmp_path / "x.npy", "--trust-pickle")
    with pytest.raises(ValueError, match="whytrust: "):
        command("explain", f"{tmp_path / 'model.py'}:rows", f"{tmp_path / 'rows.csv'}:0", "--background", tmp_path / "x.npy", "--trust-pickle")
    assert not other.exists()


@pytest.mark.parametrize("name", ["pytorch_model.bin", "training_args.bin", "model.safetensors", "optimizer.pt", "tokenizer.json", "config.json", "special_tokens_map.json"])
def test_a_folder_of_hugging_face_is_never_unpickled(name, tmp_path):
    for number, raw in enumerate(bombs(tmp_path / "mark").values()):
        folder = tmp_path / str(number)
        folder.mkdir()
        with_others(folder)
        (folder / name).write_bytes(raw)
        if name == "pytorch_model.bin":
            (folder / "model.safetensors").unlink()
        assert tried(loading.load, f"hf:{folder}").wrong == ""
        assert not (tmp_path / "mark").exists()


def test_code_that_comes_with_a_folder_of_hugging_face_is_not_run(tmp_path):
    with_others(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    config |= {"auto_map": {"AutoConfig": "own.Config", "AutoModelForSequenceClassification": "own.Model"}, "model_type": "own"}
    (tmp_path / "config.json").write_text(json.dumps(config))
    (tmp_path / "own.py").write_text(f"open({str(tmp_path / 'mark')!r}, 'w')")
    with pytest.raises(ValueError, match="save_pretrained"):
        loading.load(f"hf:{tmp_path}")
    assert not (tmp_path / "mark").exists()


def test_weights_of_hugging_face_lie_in_their_folder(tmp_path):
    with_others(tmp_path)
    (tmp_path / "model.safetensors").rename(tmp_path.parent / "elsewhere.safetensors")
    for place in ("../elsewhere.safetensors", str(tmp_path.parent / "elsewhere.safetensors"), 7):
        (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": {"bert.pooler.dense.weight": place}}))
        with pytest.raises(ValueError, match="lie beside it"):
            loading.load(f"hf:{tmp_path}")


@pytest.mark.parametrize("name", ["rows.npy", "hashes.npy", "ends.npy", "letters", "vectors"])
def test_an_index_of_word_vectors_that_somebody_wrote_to_is_made_again(name, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "v.txt").write_bytes(BY_NAME["word vectors"].made())
    expected = vectors.WordVectors.open(tmp_path / "v.txt").nearest("good", 3, -1.0)
    (place,) = (tmp_path / "cache").rglob(name)
    whole = place.read_bytes()
    for raw in (b"", whole[:-1], whole[:len(whole) // 2], *bombs(tmp_path / "mark").values()):
        place.write_bytes(raw)
        for remembered in (vectors._table, vectors._nearest):
            remembered.cache_clear()
        assert vectors.WordVectors.open(tmp_path / "v.txt").nearest("good", 3, -1.0) == expected
        assert not (tmp_path / "mark").exists()


# --- out of the folder ------------------------------------------------------------------------------------------------


@pytest.fixture
def outside(tmp_path):
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "secret.txt").write_text("nobody is to know this")
    (folder / "secret.wav").write_bytes(recorded("WAV")())
    (folder / "secret.png").write_bytes(BY_NAME["PNG"].made())
    return folder


@pytest.mark.parametrize("listing", [inputs.files, gather, lambda folder: wt.explain(len, folder), lambda folder: files.inside(folder)])
def test_a_link_that_leads_out_of_a_folder_is_refused(listing, tmp_path, outside):
    folder = tmp_path / "data"
    (folder / "deep").mkdir(parents=True)
    for name in ("own.txt", "deep/other.txt"):
        (folder / name).write_text("a good film")
    assert len(inputs.files(folder)) == 2
    (folder / "deep" / "link.txt").symlink_to(outside / "secret.txt")
    with pytest.raises(ValueError, match=r"link to .*outside.*copy the file there"):
        listing(folder)


def test_links_within_a_folder_and_to_one_are_followed(tmp_path):
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "own.txt").write_text("a good film")
    (folder / "again.txt").symlink_to("own.txt")
    (tmp_path / "named").symlink_to(folder)
    assert [path.name for path in inputs.files(tmp_path / "named")] == ["again.txt", "own.txt"]


def test_folders_that_links_lead_to_are_not_walked_into(tmp_path, outside):
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "own.txt").write_text("a good film")
    (folder / "far").symlink_to(outside)
    (folder / "round").symlink_to(folder)
    assert [path.name for path in inputs.files(folder)] == ["own.txt"]


@pytest.mark.parametrize("read", [excerpts.songs_in, songs.jamendo])
def test_songs_lie_in_their_folder(read, tmp_path, outside):
    folder = tmp_path / "songs"
    folder.mkdir()
    in_three_parts(folder)
    read(folder)
    (folder / "link.wav").symlink_to(outside / "secret.wav")
    with pytest.raises(ValueError, match="link to"):
        read(folder)


@pytest.mark.parametrize("listing", [inputs.files, gather, files.inside])
def test_a_folder_of_more_files_than_data_have_is_refused(listing, tmp_path, monkeypatch):
    (tmp_path / "deep").mkdir()
    for name in ("a.txt", "deep/b.txt", "deep/c.csv", "deep/d.txt"):
        (tmp_path / name).write_text("a good film")
    (tmp_path / "deep" / "again").symlink_to(tmp_path)  # a circle, if it were followed
    monkeypatch.setattr(limits, "ENTRIES", 6)
    assert [path.name for path in inputs.files(tmp_path)] == ["a.txt", "b.txt", "d.txt"]
    monkeypatch.setattr(limits, "ENTRIES", 5)
    with pytest.raises(ValueError, match="must hold at most 5 files and folders, and holds more; name the folder of the data alone"):
        listing(tmp_path)


def test_images_of_imagenet_lie_in_their_folder(tmp_path, outside):
    folder = tmp_path / "images"
    folder.mkdir()
    (folder / "n01440764_own.png").write_bytes(BY_NAME["PNG"].made())
    assert len(plausible.imagenet_folder(folder).items) == 1
    (folder / "n01440764_link.png").symlink_to(outside / "secret.png")
    with pytest.raises(ValueError, match="link to"):
        plausible.imagenet_folder(folder)


def test_a_list_of_songs_names_songs_of_its_folder_alone(tmp_path, outside):
    folder = tmp_path / "songs"
    folder.mkdir()
    in_three_parts(folder)
    for line in ("../outside/secret.wav", str(outside / "secret.wav"), "..\\outside\\secret.wav"):
        (folder / "filelists" / "train.txt").write_text(f"{line}\n")
        with pytest.raises(ValueError, match=r"'secret' .*must have a sound file of its name in"):
            songs.jamendo(folder).train[0]


def test_an_archive_of_arrays_is_read_by_the_names_that_are_asked_for(tmp_path):
    with zipfile.ZipFile(tmp_path / "mnist.npz", "w") as made:
        made.writestr("../x_train.npy", b"")
        made.writestr("/y_train.npy", b"")
    with pytest.raises(ValueError, match="lacks the array x_train"):
        pitfalls_linear.read(tmp_path)
    assert os.listdir(tmp_path) == ["mnist.npz"]


def test_weights_of_a_graph_lie_beside_it(tmp_path):
    onnx = pytest.importorskip("onnx")
    model = onnx.load_from_string(BY_NAME["ONNX"].made())
    weight = model.graph.initializer[0]
    raw = weight.raw_data
    weight.ClearField("raw_data")
    weight.data_location = onnx.TensorProto.EXTERNAL
    weight.external_data.add(key="location")
    (tmp_path / "outside.bin").write_bytes(raw)
    folder = tmp_path / "graph"
    folder.mkdir()
    (folder / "link.bin").symlink_to(tmp_path / "outside.bin")
    for place in ("../outside.bin", str(tmp_path / "outside.bin"), "link.bin"):
        weight.external_data[0].value = place
        (folder / "m.onnx").write_bytes(model.SerializeToString())
        with pytest.raises(ValueError, match="must be an ONNX model"):
            wt.model(folder / "m.onnx")
    (folder / "own.bin").write_bytes(raw)
    weight.external_data[0].value = "own.bin"
    (folder / "m.onnx").write_bytes(model.SerializeToString())
    assert wt.model(folder / "m.onnx")(np.zeros((1, 4), np.float32)).shape == (1, 3)


NAMES = ("../../up", "/tmp/absolute", "a/b", "..", "con\x1bsole", "-rf", "$(touch x)", "a" * 200)


def everything_in(folder):
    return {str(path.relative_to(folder)) for path in Path(folder).rglob("*")}


def test_names_of_classes_and_inputs_never_name_a_file_that_is_written(tmp_path, monkeypatch):
    """An audit of inputs, and explanations of classes, whose names are paths: all that is written is in the run's folder."""
    work = tmp_path / "deep" / "work"
    work.mkdir(parents=True)
    monkeypatch.chdir(work)

    def model(batch):
        some = np.asarray(batch, float)[:, 0]
        return np.column_stack([some, 1 - some, *[0 * some] * (len(NAMES) - 2)])

    asked = wt.model(model, classes=list(NAMES))
    rows = np.linspace(0, 1, 12).reshape(6, 2)
    before = everything_in(tmp_path)
    found = wt.audit(asked, rows, ["occlusion", "random"], background=rows, groups=[*NAMES[:6]], labels=[NAMES[0]] * 3 + [NAMES[1]] * 3, out=work / "run", trials=["flip"])
    found.save_html(work / "run.html")
    for one in wt.explain(asked, list(rows[:2]), "occlusion", background=rows):
        one.save(work / "e.json")
    new = everything_in(tmp_path) - before
    assert new
    assert all(name.startswith(("deep/work/run/", "deep/work/run.html", "deep/work/e.json")) or name == "deep/work/run" for name in new)


def test_a_postscript_program_that_is_called_a_picture_is_not_run(tmp_path, monkeypatch):
    (tmp_path / "x.png").write_bytes(b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n%%EndComments\nshowpage\n%%EOF\n")
    monkeypatch.setattr(subprocess, "check_call", lambda *_, **__: pytest.fail("an interpreter was called"))
    monkeypatch.setattr(subprocess, "Popen", lambda *_, **__: pytest.fail("an interpreter was called"))
    with pytest.raises(ValueError, match="must be an image file"):
        wt.explain(lambda batch: batch.mean(axis=(1, 2, 3)), tmp_path / "x.png")


def test_the_page_on_security_tells_every_limit():
    page = (Path(__file__).parents[2] / "docs" / "security.md").read_text(encoding="utf-8")
    told = dict(re.findall(r"^\| .* \| `limits\.(\w+)` \| ([^|]+) \|$", page, re.M))
    held = {name: value for name, value in vars(limits).items() if name.isupper() and name not in ("MIB", "GIB")}
    assert told == {name: files.size(value) if name in BYTES else f"{value:,}" for name, value in held.items()}


BYTES = ("RUN", "IMAGE", "EXIF", "ARRAY", "TABLE", "TEXT", "LINE", "JSON", "VIEW", "SPEC", "VECTORS")
