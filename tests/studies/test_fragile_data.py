"""Readers of the texts of Sinha et al. (2021), on folders made on the spot."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from whytrust.studies import fragile_data

REAL = Path(os.environ.get("WHYTRUST_TEXTS", Path(__file__).parents[3] / "shared" / "data"))


def put(path, lines):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def sst2(folder, sentences=True):
    put(folder / "phrases" / "test.tsv", ["sentence\tlabel", "It 's a Charming journey . \t1", "so bad \t0", "slow and very bleak\t0"])
    put(folder / "phrases" / "train.tsv", ["sentence\tlabel", "a bonus \t1", "fetid underbelly \t0"])
    if sentences:
        put(folder / "sentences" / "train.tsv", ["one long string of cliches\t0", "a stirring , funny film\t1"])
    return folder


def ag_news(folder):
    put(folder / "classes.txt", ["World", "Sports", "Sci/Tech"])
    put(folder / "test.tsv", ["Unions say they are\tWorld", "A second rocket starts\tSci/Tech", "The cup is theirs\tSports"])
    put(folder / "dev.tsv", ["It #39;s over now\tSci/Tech", "Peace in the north\tWorld", "Goal in extra time\tSports"])
    return folder


def imdb(folder):
    put(folder / "test.tsv", [f"{label}\t{i}_{label}.txt\tReview {word} number {i}<br /><br />The end" for label, word in ((0, "bad"), (1, "good"))
                              for i in range(3)])
    put(folder / "train.tsv", [f"{label}\t{i}.txt\tAnother {word} one" for label, word in ((0, "bad"), (1, "good")) for i in range(2)])
    return folder


def test_sst_2_is_tested_on_glues_validation_set_and_learnt_from_whole_sentences(tmp_path):
    found = fragile_data.read(sst2(tmp_path))
    assert (found.name, found.title) == ("sst2", "SST-2")
    assert found.test == ("it 's a charming journey .", "slow and very bleak")
    assert found.test_labels == ("positive", "negative")
    assert found.train == ("one long string of cliches", "a stirring , funny film")
    assert found.classes == ("negative", "positive")
    assert "1 test texts of two words or fewer are dropped" in found.how


def test_without_whole_sentences_sst_2_is_learnt_from_phrases(tmp_path):
    found = fragile_data.read(sst2(tmp_path, sentences=False))
    assert found.train == ("a bonus", "fetid underbelly")
    assert found.learnt == "Trained on phrases."


def test_ag_news_is_learnt_from_its_dev_file(tmp_path):
    found = fragile_data.read(ag_news(tmp_path))
    assert (found.name, found.title) == ("ag_news", "AG News")
    assert found.test[0] == "unions say they are"
    assert found.train_labels == ("Sci/Tech", "World", "Sports")
    assert found.classes == ("Sci/Tech", "Sports", "World")


def test_imdb_is_read_class_by_turn_for_it_is_sorted_by_class(tmp_path):
    found = fragile_data.read(imdb(tmp_path))
    assert found.name == "imdb"
    assert found.test_labels == ("negative", "positive") * 3
    assert found.test[:3] == ("review bad number 0 the end", "review good number 0 the end", "review bad number 1 the end")
    assert found.train_labels == ("negative", "positive") * 2
    assert "read by turns" in found.how


def test_any_other_folder_of_texts_and_labels(tmp_path):
    place = tmp_path / "my texts"
    put(place / "train.tsv", ["a b c\tspam", "d e f\tham"])
    put(place / "test.tsv", ["text\tlabel", "g h i\tham", "j k l\tspam", "m n o\tham"])
    found = fragile_data.read(place)
    assert (found.name, found.title) == ("my-texts", "my-texts")
    assert found.test == ("g h i", "j k l", "m n o")
    assert found.classes == ("ham", "spam")


def test_no_text_is_learnt_from_that_is_tested_on(tmp_path):
    put(tmp_path / "train.tsv", ["It 's very slow .\t0", "quite another one\t1", "a third one\t0"])
    put(tmp_path / "test.tsv", ["it's very slow\t0", "and one more\t1", "or yet another\t0"])
    found = fragile_data.read(tmp_path)
    assert found.train == ("quite another one", "a third one")
    assert found.learnt == "1 texts to train on are also tested on: dropped."


@given(st.lists(st.sampled_from("abc"), min_size=1, max_size=30))
def test_by_turns_nothing_is_lost_and_each_class_keeps_its_order(labels):
    rows = [(str(i), label) for i, label in enumerate(sorted(labels))]
    turned = fragile_data._by_turn(rows)
    assert sorted(turned) == sorted(rows)
    for label in set(labels):
        own = [int(text) for text, of in turned if of == label]
        assert own == sorted(own)
    classes = len(set(labels))
    assert len({label for _, label in turned[:classes]}) == classes  # the first so many have every class


def test_a_folder_may_hold_several_data_sets(tmp_path):
    for name, make in (("imdb", imdb), ("sst2", sst2), ("ag_news", ag_news)):
        make(tmp_path / name)
    (tmp_path / "other").mkdir()
    assert [place.name for place in fragile_data.found_in(tmp_path)] == ["sst2", "ag_news", "imdb"]
    assert fragile_data.found_in(tmp_path / "imdb") == [tmp_path / "imdb"]


def test_the_first_so_many_are_the_papers_500_or_100_of_lime_on_imdb():
    many = tuple(f"text number {i}" for i in range(600))
    labels = ("negative",) * 600
    for name, explainer, expected in (("sst2", "lime", 500), ("imdb", "lime", 100), ("imdb", "integrated_gradients", 500)):
        found = fragile_data.TextSet(name, many, labels, many, labels)
        assert found.first(explainer)[0] == many[:expected]
        assert len(found.first(explainer, 0.1)[0]) == expected // 10
        assert len(found.first(explainer, 0.0001)[0]) == 1
    with pytest.raises(ValueError, match=r"scale must lie in \(0, 1\]"):
        found.first("lime", 1.5)


@pytest.mark.parametrize(("change", "message"), [
    (lambda f: put(f / "test.tsv", ["no tab here"]), "line 1 of .* must have a text and a label with a tab between them"),
    (lambda f: put(f / "test.tsv", ["a b c\t0", "\t1"]), "line 2 of .* must have a text and a label"),
    (lambda f: put(f / "test.tsv", ["a b\t0"]), "at least one text of 3 words or more"),
    (lambda f: put(f / "train.tsv", ["a b c\t0", "d e f\t0"]), "at least two classes, got 1 in 2 texts"),
    (lambda f: put(f / "test.tsv", ["p q r\t7"]), "must be in the training set, too, and '7' is not"),
    (lambda f: (f / "test.tsv").write_bytes(b"\xff\xfe a\t0\n"), "must be a text file in UTF-8")])
def test_wrong_files_are_one_clear_error(tmp_path, change, message):
    put(tmp_path / "train.tsv", ["a b c\t0", "d e f\t1"])
    put(tmp_path / "test.tsv", ["g h i\t0", "j k l\t1"])
    change(tmp_path)
    with pytest.raises(ValueError, match=message):
        fragile_data.read(tmp_path)


def test_labels_that_classes_txt_does_not_have_are_refused(tmp_path):
    put(ag_news(tmp_path) / "test.tsv", ["a new kind of\tWeather"])
    with pytest.raises(ValueError, match=r"must be one of classes.txt \(World, Sports, Sci/Tech\), got 'Weather'"):
        fragile_data.read(tmp_path)


def test_folders_without_texts_are_refused(tmp_path):
    with pytest.raises(ValueError, match="--data must name a folder, got"):
        fragile_data.found_in(tmp_path / "nowhere")
    with pytest.raises(ValueError, match="holds none that is known: neither SST-2"):
        fragile_data.found_in(tmp_path)
    with pytest.raises(ValueError, match="must hold SST-2"):
        fragile_data.read(tmp_path)


@pytest.mark.skipif(not (REAL / "imdb" / "test.tsv").is_file(), reason="needs the real folders (WHYTRUST_TEXTS)")
def test_the_real_folders():
    found = {place.name: fragile_data.read(place) for place in fragile_data.found_in(REAL)}
    assert {name: len(one.test) for name, one in found.items()} == {"sst2": 868, "ag_news": 7600, "imdb": 500}
    assert found["sst2"].test[0] == "it 's a charming and often affecting journey ."
    assert all(text == text.lower() for one in found.values() for text in one.test)
    assert found["imdb"].test_labels[:100].count("positive") == 50
