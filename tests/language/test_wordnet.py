"""WordNet's files are read as its own program reads them; where neither is installed, by a database of eight sets made here."""

import pickle
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from whytrust.language.wordnet import WordNet
from whytrust.language.written import Written

SETS = {  # name: (part, words, pointers (kind, name of a set, own word's number, the other's))
    "film": ("n", ["movie", "film", "motion_picture"], []),
    "layer": ("n", ["film"], [("@", "film", 0, 0)]),
    "mouse": ("n", ["mouse", "creeper"], []),
    "love": ("v", ["love", "adore", "hold_dear"], [("!", "hate", 1, 1)]),
    "like": ("v", ["love", "enjoy", "hate"], []),
    "hate": ("v", ["hate", "detest"], [("!", "love", 1, 1)]),
    "good": ("a", ["good", "fine(p)", "grand"], [("!", "bad", 1, 1), ("&", "superb", 0, 0)]),
    "bad": ("a", ["bad"], [("!", "good", 1, 1), ("&", "awful", 0, 0)]),
    "awful": ("s", ["awful"], [("&", "bad", 0, 0)]),
    "superb": ("s", ["superb", "brilliant", "awful"], [("&", "good", 0, 0)]),
    "fast": ("r", ["quickly", "rapidly"], []),
}
FILE = {"n": "noun", "v": "verb", "a": "adj", "s": "adj", "r": "adv"}
LICENCE = "  1 This is nobody's database.  \n"


def line(offsets, name):
    part, words, pointers = SETS[name]
    fields = [f"{offsets[name]:08d}", "00", part, f"{len(words):02x}", *(f"{word} 0" for word in words), f"{len(pointers):03d}"]
    fields += [f"{kind} {offsets[other]:08d} {SETS[other][0]} {own:02x}{theirs:02x}" for kind, other, own, theirs in pointers]
    return " ".join(fields) + " | what it means; \"! & @\"  \n"


def write(folder):
    """The files of a WordNet 3 with these sets."""
    offsets = dict.fromkeys(SETS, 0)
    for _ in range(2):  # their lengths do not hang on the offsets
        at = dict.fromkeys(FILE.values(), len(LICENCE))
        for name, (part, *_) in SETS.items():
            offsets[name] = at[FILE[part]]
            at[FILE[part]] += len(line(offsets, name))
    for part in set(FILE.values()):
        own = [name for name, (letter, *_) in SETS.items() if FILE[letter] == part]
        (folder / f"data.{part}").write_text(LICENCE + "".join(line(offsets, name) for name in own))
        places = {}
        for name in own:
            for word in SETS[name][1]:
                places.setdefault(word.partition("(")[0], []).append(offsets[name])
        rows = [f"{word} {part[0]} {len(p)} 2 @ ! {len(p)} 0 {' '.join(f'{o:08d}' for o in p)}  \n" for word, p in sorted(places.items())]
        (folder / f"index.{part}").write_text(LICENCE + "".join(rows))
    (folder / "noun.exc").write_text("mice mouse\n")
    (folder / "adj.exc").write_text("better good\n")
    return folder


@pytest.fixture
def made(tmp_path):
    return WordNet(str(write(tmp_path)))


def test_synonyms_come_from_the_sets_of_the_right_part_in_the_order_of_meanings(made):
    assert made.synonyms("film", "NOUN") == ["movie"]  # no words of two
    assert made.synonyms("loves", "VERB") == ["adore", "enjoy", "hate"]
    assert made.synonyms("film", "VERB") == made.synonyms("zebra", "NOUN") == []
    assert made.synonyms("mice", "NOUN") == ["creeper"]
    assert made.synonyms("good", "ADJ") == ["fine", "grand"]


def test_opposites_are_those_of_the_word_itself_and_of_what_an_adjective_is_similar_to(made):
    assert made.opposites("loved") == {"hate"}
    assert made.opposites("adore") == frozenset()  # the pointer is from "love" alone
    assert made.opposites("good") == {"bad", "awful"}
    assert made.opposites("superb") == {"bad", "awful"}


def at(sentence, word):
    text = Written.of(sentence)
    return text, text.words.index(word)


def test_candidates_have_the_words_form_and_are_no_opposites(made):
    assert made(*at("I loved it", "loved")) == ["adored", "enjoyed"]
    assert made(*at("Films are long", "Films")) == ["Movies"]
    assert made(*at("the film's end", "film's")) == ["movie's"]
    assert made(*at("a SUPERB film", "SUPERB")) == ["BRILLIANT"]
    assert made(*at("he ran quickly", "quickly")) == ["rapidly"]
    assert made(*at("the mice", "the")) == []
    assert made(*at("better films", "better")) == ["finer", "grander"]


def test_it_travels_as_a_folders_name(made):
    again = pickle.loads(pickle.dumps(made))
    assert again == made
    assert len(pickle.dumps(made)) < 500
    assert again(*at("I loved it", "loved")) == ["adored", "enjoyed"]


def test_the_folder_may_come_from_the_environment(tmp_path, monkeypatch):
    (tmp_path / "dict").mkdir()
    write(tmp_path / "dict")
    monkeypatch.setenv("WNHOME", str(tmp_path))
    assert WordNet().synonyms("film", "NOUN") == ["movie"]


@pytest.mark.parametrize("spoil", [lambda f: (f / "data.verb").unlink(), lambda f: (f / "index.adv").write_text("")])
def test_a_folder_without_the_database_is_refused(tmp_path, spoil):
    write(tmp_path)
    spoil(tmp_path)
    with pytest.raises(ValueError, match=r"must be in .*which has no \(or an empty\) (data\.verb|index\.adv)"):
        WordNet(str(tmp_path))


def test_files_that_do_not_belong_together_are_refused(tmp_path):
    write(tmp_path)
    data = (tmp_path / "data.verb").read_text()
    (tmp_path / "data.verb").write_text("  2 a line more\n" + data)
    with pytest.raises(ValueError, match=r"must be WordNet 3\.x's and go with its index"):
        WordNet(str(tmp_path)).synonyms("love", "VERB")


def test_an_index_of_something_else_is_refused(tmp_path):
    write(tmp_path)
    (tmp_path / "index.verb").write_text("love is all you need\n")
    with pytest.raises(ValueError, match=r"must be WordNet 3\.x's, its line of 'love' is not"):
        WordNet(str(tmp_path)).synonyms("love", "VERB")


# --- the real one -----------------------------------------------------------------------------------------------------

REAL = Path("/usr/share/wordnet/data.noun").is_file()
needs_wordnet = pytest.mark.skipif(not REAL, reason="WordNet's files are not installed (Debian: wordnet-base)")


@needs_wordnet
def test_the_real_wordnet_knows_films_and_feelings():
    wordnet = WordNet("/usr/share/wordnet")
    assert {"movies", "pictures", "flicks"} <= set(wordnet(*at("these films are long", "films")))
    assert {"awful", "dreadful", "horrific"} <= set(wordnet(*at("the plot was terrible", "terrible")))
    assert wordnet(*at("they spoke of it", "spoke"))[0] == "talked"
    assert "hate" in wordnet.opposites("loved")
    assert {"bad", "awful", "terrible"} <= wordnet.opposites("superb")


@needs_wordnet
@pytest.mark.skipif(shutil.which("wn") is None, reason="WordNet's own program is not installed (Debian: wordnet)")
@pytest.mark.parametrize(("word", "part", "option"), [
    ("film", "NOUN", "-synsn"), ("run", "VERB", "-synsv"), ("terrible", "ADJ", "-synsa"), ("quickly", "ADV", "-synsr"), ("go", "VERB", "-synsv"),
    ("good", "ADJ", "-synsa"), ("mice", "NOUN", "-synsn"), ("love", "VERB", "-synsv")])
def test_synonyms_are_those_of_wordnets_own_program(word, part, option):
    shown = subprocess.run(["wn", word, option], capture_output=True, text=True).stdout
    expected = []
    for found in re.findall(r"^Sense \d+\n(.*)$", shown, re.MULTILINE):
        names = re.sub(r"\([^)]*\)|\(vs\..*$", "", found).split(", ")
        expected += [name.strip() for name in names if " " not in name.strip()]
    base = {"mice": "mouse"}.get(word, word)
    assert WordNet("/usr/share/wordnet").synonyms(word, part) == [w for w in dict.fromkeys(expected) if w.lower() != base]
