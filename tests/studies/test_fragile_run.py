"""`whytrust reproduce fragile` from a folder of made-up texts to its tables and figures, with words to swap that are written down."""

import json

import pytest

pytest.importorskip("matplotlib")

from studies import fragile_records as made
from synonyms import Synonyms
from whytrust.store import Store
from whytrust.studies import fragile_run, reproductions
from whytrust.studies.fragile_run import Asked
from whytrust.swapping.constraints import NoRepeat

transformers = pytest.importorskip("transformers")
torch = pytest.importorskip("torch")

GOOD, BAD, PLAIN = ("good", "fine", "great"), ("bad", "poor", "weak"), ("film", "plot", "cast", "scene", "song")
OTHERS = {word: [other for other in words if other != word] for words in (GOOD, BAD, PLAIN) for word in words}


def reviews(count, start=0):
    """Lines that are clearly for or against, text and label."""
    lines = []
    for i in range(start, start + count):
        words, label = (GOOD, 1) if i % 2 else (BAD, 0)
        lines.append(f"the {PLAIN[i % 5]} number{i} is {words[i % 3]} and the {PLAIN[(i + 2) % 5]} {words[(i + 1) % 3]}\t{label}")
    return lines


@pytest.fixture
def folder(tmp_path):
    place = tmp_path / "sst2" / "phrases"
    place.mkdir(parents=True)
    (place / "train.tsv").write_text("\n".join(["sentence\tlabel", *reviews(60)]))
    (place / "test.tsv").write_text("\n".join(["sentence\tlabel", *reviews(6, 60)]))
    return tmp_path / "sst2"


@pytest.fixture
def swaps(monkeypatch):
    """Words to swap in from a list, no rules but the first, and nobody who judges."""
    monkeypatch.setattr(fragile_run, "candidates_of", lambda given: Synonyms(OTHERS))
    monkeypatch.setattr(fragile_run, "constraints_of", lambda given, vectors: (NoRepeat(),))
    monkeypatch.setattr(fragile_run, "quality_of", lambda given: None)


@pytest.fixture
def net(tmp_path):
    """The folder of a very small DistilBERT that knows the words, one of them in two pieces."""
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *sorted({*GOOD, *BAD, *PLAIN, "the", "is", "and", "number", "##60", "##61"} - {"great"}),
              "gre", "##at", *(f"##{i}" for i in range(62, 70))]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = transformers.DistilBertForSequenceClassification(transformers.DistilBertConfig(
            vocab_size=len(pieces), dim=16, n_layers=1, n_heads=2, hidden_dim=16, initializer_range=0.5, max_position_embeddings=48,
            id2label={0: "NEGATIVE", 1: "POSITIVE"}, label2id={"NEGATIVE": 0, "POSITIVE": 1}))
    place = tmp_path / "net"
    model.save_pretrained(place)
    transformers.BertTokenizer(vocab={word: i for i, word in enumerate(pieces)}, model_max_length=40).save_pretrained(place)
    return f"hf:{place}"


def test_a_run_has_its_tables_and_figures_and_needs_no_data_afterwards(folder, swaps, net, tmp_path):
    out = tmp_path / "out"
    place = fragile_run.fragile(Asked(data=str(folder), models=("tfidf", net), out=str(out), samples=50, scale=0.006))
    name = fragile_run.place_of(net)
    assert {path.relative_to(place).as_posix() for path in place.glob("*/*/*/manifest.json")} == {
        "sst2/tfidf/lime/manifest.json", f"sst2/{name}/lime/manifest.json", f"sst2/{name}/integrated_gradients/manifest.json"}
    told = (place / "tables.md").read_text()
    for head in ("## Table 1: SST-2, integrated gradients", "## Table 2:", "## Table 3: SST-2, LIME", "## Table 4:", "## Table 6:"):
        assert head in told
    assert "repeats Table 3 number by number" in told
    assert "SST-2, tfidf: it has no gradients, and so no integrated gradients; LIME alone." in told
    assert "the first 3 of 6 test texts; the model is right on 100.0% of them" in told
    for kind in ("violins-sst2-lime-lom", "violins-sst2-integrated_gradients", "sentences-sst2-lime-tfidf", f"merging-sst2-{name}"):
        assert f"figures/fragile-{kind}.png" in told
        assert (place / "figures" / f"fragile-{kind}.png").stat().st_size > 5000
    folder.rename(tmp_path / "gone")
    (place / "tables.md").unlink()
    (place / "figures" / "fragile-violins-sst2-lime.png").unlink()
    assert fragile_run.fragile(Asked("fig8", out=str(out))) == place  # draws the violins of LIME again, and no more
    assert (place / "tables.md").read_text() == told


def test_texts_are_those_of_the_paper_and_scores_of_lime_have_length_one(folder, swaps, tmp_path):
    place = fragile_run.fragile(Asked("table3", data=str(folder), models=("tfidf",), out=str(tmp_path / "out"), samples=50, scale=0.004))
    store = Store.open(place / "sst2" / "tfidf" / "lime")
    (first, second) = store.records()  # .4 % of the paper's 500
    assert first["text"] == "the film number60 is bad and the cast poor"
    assert store.manifest["spec"]["objectives"] == ["l2", "lom"]
    assert (store.arrays(first["case"])["original"] ** 2).sum() == pytest.approx(1.0)
    assert second["status"] == "ok"


def test_an_experiment_runs_and_tells_only_what_it_is_of(folder, swaps, net, tmp_path):
    out = tmp_path / "out"
    fragile_run.fragile(Asked("table1", data=str(folder), models=(net,), out=str(out), samples=50, scale=0.004))
    assert [path.parent.name for path in out.glob("*/*/*/manifest.json")] == ["integrated_gradients"]
    told = fragile_run.report(out, experiment="table1")
    assert "## Table 1:" in told
    assert "## Table 2:" not in told
    assert ".png" not in told
    assert json.loads(fragile_run.report(out, True))["cases"] == {"done": 2, "of": 2, "failed": 0}


def test_the_authors_variant_keeps_the_true_labels_by_their_names(folder, swaps, net, tmp_path):
    out = tmp_path / "out"
    fragile_run.fragile(Asked("table1", data=str(folder), models=(net,), out=str(out), variant="authors", scale=0.012))
    (run,) = fragile_run.runs_in(out)
    states = {record["status"] for record in run.records}
    assert states <= {"ok", "wrong", "nothing to swap"}
    assert all(record["label_name"] == ("NEGATIVE" if " bad" in record["text"] or " poor" in record["text"] or " weak" in record["text"]
                                        else "POSITIVE") for record in run.records)


def test_a_folder_of_runs_is_known_for_what_it_is(tmp_path):
    made.folder_of_runs(tmp_path / "runs", models=("minilm",))
    assert fragile_run.is_reproduction(tmp_path / "runs")
    assert not fragile_run.is_reproduction(tmp_path / "runs" / "sst2" / "minilm" / "lime")  # that is one of wt.fool's kind
    assert not fragile_run.is_reproduction(tmp_path / "nowhere")
    assert reproductions.report_of(tmp_path / "runs").args == (fragile_run.report,)
    assert "sst2/minilm/lime: 1 of 1 blocks are finished and safe" in fragile_run.kept(tmp_path / "runs")
    assert fragile_run.kept(tmp_path / "nowhere") == "nothing had been done yet"


def test_runs_come_in_the_papers_order(tmp_path):
    made.folder_of_runs(tmp_path, datasets=("imdb", "sst2"), models=("tfidf", "hf-x", "minilm-adv", "minilm"), texts=made.SENTENCES[:2])
    keys = [run.key for run in fragile_run.runs_in(tmp_path)]
    assert keys[:3] == ["sst2/minilm/integrated_gradients", "sst2/minilm-adv/integrated_gradients", "sst2/hf-x/integrated_gradients"]
    assert keys[3:7] == ["sst2/minilm/lime", "sst2/minilm-adv/lime", "sst2/tfidf/lime", "sst2/hf-x/lime"]
    assert [key.split("/")[0] for key in keys] == ["sst2"] * 7 + ["imdb"] * 7


@pytest.mark.parametrize(("given", "message"), [
    ({"experiment": "table14"}, "experiment must be one of all, table1"), ({"experiment": "tabel1"}, "did you mean 'table1"),
    ({"scale": 0}, r"scale must lie in \(0, 1\], got 0"), ({"samples": 10}, "samples must be a whole number >= 50, got 10"),
    ({"samples": True}, "samples must be a whole number"), ({"variant": "author"}, "variant must be paper"),
    ({"models": ()}, "models must name at least one of tfidf, minilm"), ({"models": ("minlm",)}, "did you mean 'minilm'"),
    ({"models": ("hf:",)}, "got 'hf:'"), ({"models": ("hf:a/b", "hf:a-b")}, "models must be told apart by their names"),
    ({"variant": "authors"}, "variant 'authors' follows integrated gradients, and tfidf has no gradients")])
def test_what_could_only_fail_later_is_refused_at_once(given, message):
    with pytest.raises(ValueError, match=message):
        Asked(**given)


def test_an_experiment_of_another_data_set_is_refused(folder):
    with pytest.raises(ValueError, match=r"table8 is of AG News, and .* holds SST-2; name another folder, or ask for all"):
        fragile_run.fragile(Asked("table8", data=str(folder)))


def test_integrated_gradients_of_a_model_without_gradients_are_refused(folder, swaps, tmp_path):
    with pytest.raises(ValueError, match="table1 is of integrated gradients, and tfidf has no gradients"):
        fragile_run.fragile(Asked("table1", data=str(folder), models=("tfidf",), out=str(tmp_path / "out")))


def test_without_data_and_without_a_run_there_is_nothing_to_report(tmp_path):
    with pytest.raises(ValueError, match=r"--data must name a folder of texts, for .* holds no run to report on"):
        fragile_run.fragile(Asked(out=str(tmp_path)))


def test_every_table_and_figure_of_the_paper_can_be_asked_for():
    assert set(fragile_run.EXPERIMENTS) == {"all", *(f"table{n}" for n in range(1, 14)),
                                            *(f"fig{n}" for n in (1, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12))}
    assert fragile_run.EXPERIMENTS["table12"].datasets == ("imdb",)
    assert fragile_run.EXPERIMENTS["fig8"].explainers == ("lime",)


def test_a_command_says_how_to_do_the_same_again():
    asked = Asked("table1", data="a folder", scale=0.1, models=("minilm",), quality="smollm2")
    assert asked.command == "whytrust reproduce fragile table1 --data 'a folder' --scale 0.1 --quality smollm2 --models minilm"
