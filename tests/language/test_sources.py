"""Every source of words keeps the promise of candidates; and names say what they are, or what they should have been."""

import pickle

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from whytrust.language.sources import SOURCES, Several, candidates_of, describe
from whytrust.language.stop_words import STOP_WORDS
from whytrust.language.thesaurus import Thesaurus
from whytrust.language.vectors import NearestWords, WordVectors
from whytrust.language.written import Written, is_one_word

from .test_masked import model_that_prefers
from .test_wordnet import write


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    """A name for every source, all of whose files are made here."""
    folder = tmp_path_factory.mktemp("sources")
    for name in ("wordnet", "pairs", "masked"):
        (folder / name).mkdir()
    write(folder / "wordnet")
    (folder / "pairs" / "x_synonyms.txt").write_text("good fine\ngood the\nfilm movie\nfilm Movie\nloved adored\nloved don't\nfilm well-known\n")
    (folder / "v.txt").write_text("good 1 1\nfine 1 1\ngreat 1 .9\nGreat 1 .9\nfilm 0 1\nfilms 0 1\nmovie 0 1\nthe 1 1\n2nd 1 1\nloved -1 0\nadores -1 0\n")
    for thing in model_that_prefers("great", "the", "movie", "adore"):
        thing.save_pretrained(folder / "masked")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
        yield {"thesaurus": "thesaurus", "wordnet": f"wordnet:{folder / 'wordnet'}", "pairs": f"pairs:{folder / 'pairs'}",
               "vectors": f"vectors:{folder / 'v.txt'}", "masked": f"masked:{folder / 'masked'}"}


WORDS = st.sampled_from(["good", "Good", "GOOD", "gOod", "film", "films", "Films", "loved", "LOVED", "better", "the", "don't", "not", "2nd", "well-known",
                         "quickly", "mice", "3.5", "é", "中", "😀", "Paris", "xyzzy", "went", "a"])


@pytest.mark.parametrize("name", ["thesaurus", "wordnet", "pairs", "vectors", "masked"])
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_candidates_are_other_single_words_in_the_case_of_the_word(places, name, data):
    source = candidates_of(places[name])
    text = Written.of(data.draw(st.sampled_from([" ", ", ", ". ", "\n"])).join(data.draw(st.lists(WORDS, min_size=1, max_size=6))))
    place = data.draw(st.integers(0, len(text) - 1))
    found, own = source(text, place), text.words[place]
    assert len(found) <= 50
    assert len({word.lower() for word in found}) == len(found)
    for word in found:
        assert word
        assert is_one_word(word)
        assert word.lower() != own.lower()
        assert word.lower() not in STOP_WORDS
        assert not own.islower() or word.islower()
        assert not (own.isupper() and len(own) > 1) or word.isupper()
        assert not own.istitle() or word[0].isupper()
        assert len(text.swap(place, word)) == len(text)
    assert source(text, place) == found


@pytest.mark.parametrize("name", ["thesaurus", "wordnet", "pairs", "vectors", "masked"])
def test_every_source_has_a_name_for_readers_travels_light_and_finds_something(places, name):
    source = candidates_of(places[name])
    assert describe(source) == source.name
    again = pickle.loads(pickle.dumps(source))
    assert len(pickle.dumps(source)) < 2000
    text = Written.of("good films")
    assert again.name == source.name
    assert again(text, 0) == source(text, 0) != []


def test_none_is_the_thesaurus():
    assert candidates_of() == candidates_of("thesaurus") == candidates_of(["thesaurus"]) == Thesaurus.roget()


def test_several_are_joined_in_their_order_without_repeats(places):
    text = Written.of("good films")
    both = candidates_of([places["pairs"], places["vectors"]])
    pairs, vectors = candidates_of(places["pairs"]), candidates_of(places["vectors"])
    assert pairs(text, 0) == ["fine"]
    assert vectors(text, 0) == ["fine", "great"]
    assert both(text, 0) == ["fine", "great"]
    assert candidates_of([places["vectors"], places["pairs"]])(text, 0) == ["fine", "great"]
    assert both.name == f"{pairs.name}, then {vectors.name}"
    assert isinstance(both.vectors, WordVectors)
    assert candidates_of([places["pairs"], "thesaurus"]).vectors is None
    assert pickle.loads(pickle.dumps(both)) == both
    kept = Several((lambda text, place: ["b", "a", "B"], lambda text, place: ["c", "A", "b"]))
    assert kept(text, 0) == ["b", "a", "c"]


def shout(text, place):
    return [text.words[place] + "ish", text.words[place].upper(), "two words", "", "fine", "fine"]


def test_a_function_is_a_source_and_what_cannot_stand_there_is_left_out():
    source = candidates_of(shout)
    assert source.name == "shout"
    assert source(Written.of("a good film"), 1) == ["goodish", "fine"]
    assert pickle.loads(pickle.dumps(source)) == source
    with pytest.raises(TypeError, match="must give a list of words"):
        candidates_of(lambda text, place: "fine")(Written.of("a good film"), 1)


def test_an_object_with_a_name_is_taken_as_it_is(places):
    source = candidates_of(places["vectors"])
    assert candidates_of(source) is source
    assert candidates_of(source.vectors) == NearestWords(source.vectors)


@pytest.mark.parametrize(("given", "error", "says"), [
    ("thesarus", ValueError, r"must be among thesaurus, .*got 'thesarus' \(did you mean 'thesaurus'\?\)"),
    ("word_net", ValueError, "did you mean 'wordnet'"), ("vector:x.txt", ValueError, "did you mean 'vectors'"), ("", ValueError, "must be among"),
    ("vectors", ValueError, "must say where its words are: vectors:FILE"), ("pairs:", ValueError, "must say where its words are: pairs:FOLDER"),
    ("thesaurus:x", ValueError, "write 'pairs:x'"), ("pairs:/nowhere/at/all", ValueError, "is not there"), ("wordnet:/nowhere", ValueError, "WordNet's database must be in"),
    ([], ValueError, "got an empty list"), (3, TypeError, "got 3"), (Thesaurus, TypeError, "must be a name"), (["thesaurus", "x"], ValueError, "got 'x'")])
def test_what_is_no_source_is_refused_in_one_line(given, error, says):
    with pytest.raises(error, match=says) as raised:
        candidates_of(given)
    assert "\n" not in str(raised.value)


def test_the_list_of_sources_names_all_that_can_be_asked_for():
    assert [name.partition(":")[0] for name in SOURCES] == ["thesaurus", "pairs", "wordnet", "vectors", "masked"]
    assert all(about and len(about) < 110 and "\n" not in about for about in SOURCES.values())
