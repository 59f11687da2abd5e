"""Names that come with data never lead out of where they belong: to other people's files, or out of a run's folder."""

from pathlib import Path

import numpy as np
import pytest

import whytrust as wt
from studies.swapped import Swapping, looking, texts
from whytrust import cli, inputs
from whytrust.cli import reading
from whytrust.studies import figures, spec

SECRET = "the fine film has a secret story"


@pytest.fixture
def place(tmp_path, monkeypatch):
    (tmp_path / "secret.txt").write_text(SECRET)
    (tmp_path / "texts.txt").write_text(f"{tmp_path}/secret.txt\na fine film with a long story\nan old film\n")
    (tmp_path / "texts.csv").write_text(f"text,label\n{tmp_path}/secret.txt,0\na fine film with a long story,1\nan old film,1\n")
    (tmp_path / "model.py").write_text("import numpy as np\ndef score(texts):\n    return np.array([.2 + .6 * ('fine' in t) for t in texts])\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_line_of_a_file_of_texts_opens_no_file(place, capsys):
    code = cli.main(["pick", "model.py:score", "texts.txt", "--budget", "2", "--explainer", "occlusion", "--out", "page.html"])
    assert code in (0, 1)
    shown = (place / "page.html").read_text() + capsys.readouterr().err
    assert "secret story" not in shown
    assert "film" in shown


def test_a_cell_of_a_column_of_texts_opens_no_file(place):
    found = reading.column(Path("texts.csv"), "text")
    assert found[0] == f"{place}/secret.txt"
    assert all(inputs.domain_of(text, None, {}) == "text" and inputs.source_of(text) == "" for text in found)
    assert inputs.source_of(str(found[0])) == "secret.txt"  # who writes the name himself means the file


def test_an_audit_of_a_file_of_texts_reads_that_file_alone(place):
    lines = [f"{place}/secret.txt", *texts(5)]
    (place / "many.txt").write_text("\n".join(lines))
    found = wt.audit(looking(), place / "many.txt", ["occlusion"], attack=Swapping(), out=place / "run")
    records = list(found.store.records())
    assert len(records) == 6
    assert not any("secret story" in str(record) for record in records)


def test_a_file_that_is_named_by_the_user_is_read(place):
    def score(batch):
        return np.array([0.2 + 0.6 * ("fine" in text) for text in batch])

    assert wt.explain(score, str(place / "secret.txt"), "occlusion").source == "secret.txt"


@pytest.mark.parametrize("name", ["../out", "/tmp/out", "a/b", "..", "a\\b", "", "."])
def test_a_figure_with_a_name_that_leads_elsewhere_is_not_written(tmp_path, name):
    class Figure:
        def savefig(self, path, **options):
            Path(path).write_bytes(b"")

    with pytest.raises(ValueError, match="plain name"):
        figures.write([("x", name, Figure())], tmp_path / "figures")
    assert [path.name for path in tmp_path.rglob("*")] == ["figures"]
    assert figures.write([("x", "fragile-imdb", Figure())], tmp_path / "figures") == [tmp_path / "figures" / "fragile-imdb.png"]


@pytest.mark.parametrize("text", ["²", "⑤", "٣"])
def test_what_is_no_number_of_ours_is_a_text(text, tmp_path):
    assert reading.item_of(text, ["first", "second"], {}) == text
    (tmp_path / "labels.txt").write_text(f"1\n{text}\n007\n", encoding="utf-8")
    assert spec._lines(str(tmp_path / "labels.txt")) == [1, text, 7]
