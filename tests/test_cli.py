import json
import subprocess
import sys

import numpy as np
import pytest

from whytrust.cli import main

MODEL = '''
import numpy as np

def praise(texts):
    p = np.array([0.9 if "good" in t else 0.2 for t in texts])
    return np.column_stack([1 - p, p])

class Holder:
    dark = staticmethod(lambda images: 1 - images.reshape(len(images), -1).mean(axis=1) / 255)

def rows(frame):
    return frame["age"] / 100 + (frame["job"] == "nurse") * 0.3

nothing = 3
'''


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(MODEL)
    return tmp_path


def run(capsys, *arguments):
    code = main(list(arguments))
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_a_text_and_a_model_from_a_file(capsys):
    code, out, err = run(capsys, "explain", "mine.py:praise", "a good film", "--samples", "50")
    assert code == 0
    assert err == ""
    assert out.splitlines()[1].split()[0] == "good"


def test_json_is_machine_readable_and_repeats(capsys):
    _, first, _ = run(capsys, "explain", "mine.py:praise", "a good film", "--samples", "auto", "--json", "--seed", "3")
    _, second, _ = run(capsys, "explain", "mine.py:praise", "a good film", "--samples", "auto", "--json", "--seed", "3")
    assert first == second
    assert json.loads(first)["names"] == ["a", "good", "film"]


def test_pages_pictures_and_their_difference(capsys, folder):
    for name, text in (("a", "a good film"), ("b", "a good film")):
        assert run(capsys, "explain", "mine.py:praise", text, "--out", f"{name}.json", "--samples", "50")[0] == 0
    assert run(capsys, "explain", "mine.py:praise", "a good film", "--out", "e.html", "--target", "top:2")[0] == 0
    assert "<!DOCTYPE html>" in (folder / "e.html").read_text()
    code, out, _ = run(capsys, "diff", "a.json", "b.json")
    assert (code, "+0.0000" in out) == (0, True)
    assert run(capsys, "diff", "a.json", "b.json", "--out", "d.png")[0] == 0
    assert (folder / "d.png").read_bytes()[:4] == b"\x89PNG"


def test_an_image_a_folder_and_an_array(capsys, folder):
    from PIL import Image

    (folder / "pictures").mkdir()
    picture = np.random.default_rng(0).integers(0, 255, (12, 12, 3), dtype=np.uint8)
    for name in "ab":
        Image.fromarray(picture).save(folder / "pictures" / f"{name}.png")
    np.save(folder / "x.npy", picture)
    _, one, _ = run(capsys, "explain", "mine.py:Holder.dark", "pictures/a.png", "--parts", "grid:2x2", "--fill", "0", "--json")
    _, array, _ = run(capsys, "explain", "mine.py:Holder.dark", "x.npy", "--parts", "grid:2x2", "--fill", "0", "--json")
    _, many, _ = run(capsys, "explain", "mine.py:Holder.dark", "pictures", "--parts", "grid:2x2", "--fill", "0", "--json")
    found = [json.loads(one), json.loads(array), *json.loads(many)]
    assert [e.pop("source") for e in found] == ["a.png", "", "a.png", "b.png"]
    assert all(e == found[0] for e in found)


def test_rows_of_a_csv_file(capsys, folder):
    lines = ["age,job,income"] + [f"{20 + i},{'nurse' if i % 3 else 'clerk'},{i}" for i in range(40)]
    (folder / "train.csv").write_text("\n".join(["age,job"] + [line.rpartition(",")[0] for line in lines[1:]]))
    (folder / "rows.csv").write_text("\n".join(lines))
    code, out, err = run(capsys, "explain", "mine.py:rows", "rows.csv:4", "--background", "train.csv", "--samples", "300")
    assert (code, err) == (0, "")
    assert "job = nurse" in out


def test_one_bad_file_does_not_stop_the_others(capsys, folder):
    from PIL import Image

    (folder / "pictures").mkdir()
    Image.fromarray(np.eye(12, dtype=np.uint8) * 200).save(folder / "pictures" / "a.png")
    (folder / "pictures" / "b.png").write_bytes(b"not an image")
    code, out, err = run(capsys, "explain", "mine.py:Holder.dark", "pictures", "--parts", "grid:2x2")
    assert code == 1
    assert "input 1" in err
    assert "segment" in out


@pytest.mark.parametrize(("arguments", "message"), [
    (["explain", "mine.py:nothing", "a good film"], "a model must be"),
    (["explain", "mine.py:absent", "a good film"], "has no attribute 'absent'"),
    (["explain", "other.py:model", "a good film"], "does not exist"),
    (["explain", "nomodule:model", "a good film"], "nomodule"),
    (["explain", "praise", "a good film"], "MODEL must be"),
    (["explain", "demo:cats", "0"], "demo models are"),
    (["explain", "demo:sound", "99"], "inputs 0 to 2"),
    (["explain", "mine.py:praise", "a.png"], "does not exist"),
    (["explain", "mine.py:praise", ""], "text"),
    (["explain", "mine.py:praise", "a good film", "--samples", "few"], "samples must be"),
    (["explain", "mine.py:praise", "a good film", "--method", "lym"], "method must be one of"),
    (["explain", "mine.py:praise", "a good film", "--out", "e.doc"], "must end in"),
    (["diff", "a.json", "b.json"], "a.json"),
])
def test_a_wrong_argument_is_one_line_and_code_2(capsys, arguments, message):
    code, out, err = run(capsys, *arguments)
    assert code == 2
    assert out == ""
    assert message in err
    assert err.count("\n") == 1


def test_unknown_commands_and_options_exit_with_2(capsys):
    with pytest.raises(SystemExit) as caught:
        main(["explain", "mine.py:praise", "a good film", "--colour", "blue"])
    assert caught.value.code == 2
    err = capsys.readouterr().err
    assert "--colour" in err
    assert err.count("\n") == 1


def test_methods_doctor_version_and_help(capsys):
    assert "lime" in run(capsys, "methods")[1]
    rows = {row["name"]: row for row in json.loads(run(capsys, "methods", "--json")[1])}
    assert rows["integrated_gradients"]["goal"] == "contribution"
    assert rows["saliency/vargrad"]["gradients"]
    assert rows["lime"]["paper"] == "Ribeiro et al. 2016"
    assert "ready" in run(capsys, "doctor")[1]
    assert "extras" in json.loads(run(capsys, "doctor", "--json")[1])
    assert "explain" in run(capsys)[1]
    version = subprocess.run([sys.executable, "-m", "whytrust", "--version"], capture_output=True, text=True, check=True)
    assert version.stdout.startswith("whytrust ")


@pytest.mark.parametrize(("demo", "extra"), [("sound", []), ("tabular", []), ("reviews", []), ("reviews/forest", ["--samples", "200"]),
                                             ("digits", []), ("photos", ["--samples", "20"])])
def test_every_demo_explains_its_first_input(capsys, folder, demo, extra):
    code, _, _ = run(capsys, "explain", f"demo:{demo}", "0", "--out", "e.html", *extra)
    assert code == 0
    assert (folder / "e.html").stat().st_size > 5000


def test_the_whistle_is_heard_where_and_when_it_sounds(capsys):
    # The detector's reason is known: 2–4 kHz, from 0.9 to 1.25 s.
    _, out, _ = run(capsys, "explain", "demo:sound", "0", "--json")
    data = json.loads(out)
    best = data["names"][int(np.argmax(data["scores"]))]
    assert best == "0.80–1.20 s, 1768–3934 Hz"


def test_a_row_that_is_not_there_and_a_file_without_an_attribute_are_named(capsys, folder):
    (folder / "rows.csv").write_text("age,job\n30,nurse\n40,cook\n50,nurse\n")
    code, _, err = run(capsys, "explain", "mine.py:rows", "rows.csv:-1", "--background", "rows.csv")
    assert (code, "rows 0 to 2, got -1" in err) == (2, True)
    code, _, err = run(capsys, "explain", "mine.py", "a text")
    assert (code, "mine.py:predict" in err) == (2, True)


def test_methods_tells_all_about_one(capsys):
    assert main(["methods", "integrated_gradients"]) == 0
    told = capsys.readouterr().out
    assert all(words in told for words in ("contribution", "steps=50", "pooling=None", "--method integrated_gradients", "completeness"))
    assert main(["methods", "saliency/vargrad"]) == 0
    assert "samples=25" in capsys.readouterr().out
    assert main(["methods", "lime"]) == 0
    assert "samples=None, variant='paper'" in capsys.readouterr().out
    assert main(["methods", "pgd"]) == 0
    assert "wt.attack(model, inputs, 'pgd')" in capsys.readouterr().out
    assert main(["methods", "slic", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["name"] == "slic"
    assert main(["methods", "limee"]) == 2
    assert "did you mean 'lime'" in capsys.readouterr().err


def test_an_interrupt_while_modules_are_read_is_one_line(capsys, monkeypatch):
    from whytrust.__main__ import main

    class Interrupted:
        def find_spec(self, name, path=None, target=None):
            if name == "whytrust.cli":
                raise KeyboardInterrupt

    monkeypatch.delitem(sys.modules, "whytrust.cli")
    monkeypatch.setattr(sys, "meta_path", [Interrupted(), *sys.meta_path])
    assert main() == 130
    assert capsys.readouterr().err == "whytrust: interrupted\n"


def test_an_interrupt_that_a_library_takes_for_something_else_is_one_line():
    code = """
import os, signal, sys, whytrust.__main__ as entry
class Interrupted:
    def find_spec(self, name, path=None, target=None):
        if name == "numpy":
            try:
                os.kill(os.getpid(), signal.SIGINT)
                sum(range(1000))
            except KeyboardInterrupt:
                raise ImportError("as numpy tells it") from None
sys.meta_path.insert(0, Interrupted())
sys.exit(entry.main())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "whytrust: interrupted\n")


def test_the_command_begins_where_interrupts_are_caught():
    import tomllib
    from pathlib import Path
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
    assert project["scripts"] == {"whytrust": "whytrust.__main__:main"}
    words = [sys.executable, "-c", "import whytrust.__main__, sys; sys.exit('whytrust.cli' in sys.modules or 'numpy' in sys.modules)"]
    assert subprocess.run(words, check=False).returncode == 0  # nothing large is read before
