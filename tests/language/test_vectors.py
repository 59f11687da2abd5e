"""Neighbours are those of a brute search over the file; an index on disk changes nothing but the time."""

import gzip
import multiprocessing
import os
import pickle
import tempfile
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whytrust.language import vectors as module
from whytrust.language.vectors import NearestWords, WordVectors
from whytrust.language.written import Written

SMALL = {"good": (1, 0, 0), "fine": (0.9, 0.1, 0), "bad": (0.8, -0.6, 0), "movie": (0, 1, 1), "movies": (0, 1, 0.9), "films": (0, 0.9, 1),
         "film": (0, 2, 2.1), "loved": (-1, 0, 1), "adored": (-1, 0.1, 1), "hated": (-1, -0.1, 1), "The": (0, -1, 0), "the": (0.1, -1, 0)}


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def written(path, table, header=False):
    lines = [f"{word} {' '.join(map(repr, numbers))}" for word, numbers in table.items()]
    first = [f"{len(table)} {len(next(iter(table.values())))}"] if header else []
    path.write_text("\n".join([*first, *lines]) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def small(tmp_path):
    return WordVectors.open(written(tmp_path / "small.txt", SMALL))


def cosine(a, b):
    a, b = np.array(a, dtype=np.float64), np.array(b, dtype=np.float64)
    return float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))


# --- what they say ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("header", [False, True])
@pytest.mark.parametrize("packed", [False, True])
def test_similarity_is_the_cosine_of_the_files_vectors(tmp_path, header, packed):
    path = written(tmp_path / "v.txt", SMALL, header)
    if packed:
        path = tmp_path / "v.txt.gz"
        path.write_bytes(gzip.compress((tmp_path / "v.txt").read_bytes()))
    found = WordVectors.open(path)
    for one in SMALL:
        for other in SMALL:
            assert found.similarity(one, other) == pytest.approx(cosine(SMALL[one], SMALL[other]), abs=1e-6)
    assert len(found) == len(SMALL)


def test_words_are_also_looked_up_in_lower_case_and_others_have_no_similarity(small):
    assert small.similarity("GOOD", "Fine") == small.similarity("good", "fine")
    assert small.similarity("The", "good") == pytest.approx(0)  # its own, not that of "the"
    assert small.similarity("THE", "good") == pytest.approx(cosine(SMALL["the"], SMALL["good"]), abs=1e-6)
    assert small.similarity("zebra", "good") is small.similarity("good", "") is small.similarity("good", "\ud83d") is None
    assert small.nearest("zebra") == []
    assert "Good" in small
    assert "zebra" not in small


def brute(table, word, k, least):
    """Cosines to the word, largest first, by the file's numbers; small whole numbers, so that they are equal or well apart."""
    others = {w: round(cosine(table[w], table[word]), 5) for w in table if w != word and any(table[w])} if any(table[word]) else {}
    return sorted(((c, w) for w, c in others.items() if c >= least), key=lambda pair: -pair[0])[:k], others


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_the_nearest_are_those_of_a_brute_search(data):
    dimensions, rows = data.draw(st.integers(1, 4)), data.draw(st.integers(1, 25))
    numbers = st.lists(st.integers(-3, 3).map(float), min_size=dimensions, max_size=dimensions)
    table = {f"w{i}": tuple(data.draw(numbers)) for i in range(rows)} | {"one": (1.0,) * dimensions}
    k, least = data.draw(st.integers(1, 30)), data.draw(st.sampled_from([-1.0, -0.3001, 0.0501, 0.4501, 0.9001]))  # which no cosine is
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", folder)
        patch.setattr(module, "ROWS", 4)
        found = WordVectors.open(written(Path(folder) / "v.txt", table, data.draw(st.booleans())))
        for word in table:
            best, cosines = brute(table, word, k, least)
            answer = found.nearest(word, k, least)
            np.testing.assert_allclose([c for _, c in answer], [c for c, _ in best], atol=1e-5)
            np.testing.assert_allclose([cosines[w] for w, _ in answer], [c for c, _ in best], atol=1e-5)
            assert len({w for w, _ in answer}) == len(answer)


def test_of_equals_the_first_of_the_file_comes_first(tmp_path):
    found = WordVectors.open(written(tmp_path / "v.txt", {"a": (1, 0), "z": (2, 0), "c": (3, 0), "b": (1, 0)}))
    assert found.nearest("a", 2) == [("z", 1.0), ("c", 1.0)]


def test_a_word_that_stands_twice_counts_once_as_it_first_was(tmp_path):
    (tmp_path / "v.txt").write_text("a 1 0\nb 1 1\na 0 1\nzero 0 0\nc -1 0\n")
    found = WordVectors.open(tmp_path / "v.txt")
    assert len(found) == 3
    assert [word for word, _ in found.nearest("b", 10, -1)] == ["a", "c"]
    assert found.similarity("a", "b") == pytest.approx(0.5 ** 0.5)
    assert found.similarity("zero", "a") is None


def test_numbers_of_any_size_and_words_with_spaces_do_no_harm(tmp_path):
    (tmp_path / "v.txt").write_bytes("huge 1e300 1e300\r\ntiny 1e-300 0\r\n. . . 1 2\r\nnaïve 1 0 \r\n".encode() + b"\xff\xfe 1 1\r\n\r\n")
    found = WordVectors.open(tmp_path / "v.txt")
    assert len(found) == 3
    assert found.similarity("huge", "tiny") == pytest.approx(0.5 ** 0.5)
    assert found.similarity("naïve", "tiny") == pytest.approx(1)


# --- bad files --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("content", "says"), [
    (b"", "has 0; it is empty or cut off"), (b"\n\n", "has 0"), (b"3 2\n", "3 or more, and has 0"), (b"3 2\na 1 2\nb 1 2\n", "3 or more, and has 2"),
    (b"a 1 2\nb 1\n", "line 2 of"), (b"a 1 2\nb 1 2 3\n", "line 2 of"), (b"2 2\na 1 2\nb 1 x\n", "line 3 of"),
    (b"It was the best of times\n", "line 1 of"), (b"alone\n", "line 1 of"), (b"a 1 nan\n", "must be finite.*'a'"), (b"a 1 2\nb inf 2\n", "must be finite.*'b'"),
    (b"2 2\na \x00\x01\x02\x03\x04\x05\x06\x07", "convert a binary file first"), (b"\x00" * 3_000_000, "convert a binary file first"),
    (b"a 0 0\nb 0 0\n", "none that is not all zeros"), (b"a" * 3_000_000, "must be in text format")])
def test_a_file_without_vectors_is_refused_in_one_line(tmp_path, content, says):
    (tmp_path / "v.txt").write_bytes(content)
    with pytest.raises(ValueError, match=says) as error:
        WordVectors.open(tmp_path / "v.txt")
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 600
    assert not [name for name in os.listdir(tmp_path / "cache" / "whytrust") if name.startswith("vectors")]


def test_half_a_packed_file_and_no_file_are_refused(tmp_path):
    whole = gzip.compress(b"".join(b"word%d 1 2 3\n" % i for i in range(1000)))
    (tmp_path / "v.gz").write_bytes(whole[:len(whole) // 2])
    with pytest.raises(ValueError, match="must be a whole gzip file"):
        WordVectors.open(tmp_path / "v.gz")
    for path in (tmp_path / "nowhere.txt", tmp_path):
        with pytest.raises(ValueError, match="is not there"):
            WordVectors.open(path)


# --- the index --------------------------------------------------------------------------------------------------------


def test_a_file_is_read_once_and_again_when_it_has_changed(tmp_path, monkeypatch):
    reads, read = [], module._vectors
    monkeypatch.setattr(module, "_vectors", lambda path: (reads.append(path), read(path))[1])
    path = written(tmp_path / "v.txt", SMALL)
    first = WordVectors.open(path)
    module._table.cache_clear()  # as in another process
    assert WordVectors.open(path) == first
    assert len(reads) == 1
    written(path, {"good": (1, 0), "bad": (-1, 0)})
    second = WordVectors.open(path)
    assert len(reads) == 2
    assert second.similarity("good", "bad") == -1
    assert second != first
    assert len([n for n in os.listdir(tmp_path / "cache" / "whytrust") if n.startswith("vectors")]) == 1  # the old one is gone
    module._table.cache_clear()
    with pytest.raises(ValueError, match="must be as it was when it was opened"):
        first.similarity("good", "bad")


def test_memory_stays_flat_while_a_file_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "ROWS", 200)
    numbers = " ".join(["0.123456"] * 50)

    def peak(rows):
        path = tmp_path / f"{rows}.txt"
        path.write_text("".join(f"word{i} {numbers}\n" for i in range(rows)))
        tracemalloc.start()
        WordVectors.open(path)
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return found

    peak(400)
    few, many = peak(1000), peak(8000)
    assert many < few + 7000 * 100  # a hash, a length and the like; all numbers would be 200 bytes a word at least


def _open(path, queue):
    queue.put(WordVectors.open(path).nearest("good", 2))


def test_memory_stays_flat_where_few_vectors_are_very_long(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_NUMBERS", 1 << 14)
    (tmp_path / "v.txt").write_text("".join(f"w{i}{' 1.5' * 2000}\n" for i in range(150)))
    WordVectors.open(tmp_path / "v.txt")  # what is imported and kept is no matter of the file's
    (tmp_path / "again.txt").write_bytes((tmp_path / "v.txt").read_bytes())
    tracemalloc.start()
    try:
        WordVectors.open(tmp_path / "again.txt")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 2_500_000  # of 300,000 numbers


def test_vectors_of_more_numbers_than_any_have_are_refused(tmp_path):
    for first in ("", "1 100001\n"):
        (tmp_path / "v.txt").write_text(f"{first}w{' 1' * 100_001}\n")
        with pytest.raises(ValueError, match=r"at most 100,000 numbers, and those of .* have 100,001"):
            WordVectors.open(tmp_path / "v.txt")


def test_several_processes_may_make_the_index_at_once(tmp_path):
    path = written(tmp_path / "v.txt", {**SMALL, **{f"w{i}": (-1, i, 1) for i in range(3000)}})
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    workers = [context.Process(target=_open, args=(path, queue)) for _ in range(4)]
    for worker in workers:
        worker.start()
    answers = [queue.get(timeout=60) for _ in workers]
    for worker in workers:
        worker.join()
        assert worker.exitcode == 0
    assert [word for word, _ in answers[0]] == ["fine", "bad"]
    assert answers.count(answers[0]) == 4
    assert len(os.listdir(tmp_path / "cache" / "whytrust")) == 1


def test_they_travel_by_their_path(small):
    assert len(pickle.dumps(small)) < 500
    assert pickle.loads(pickle.dumps(small)) == small
    assert pickle.loads(pickle.dumps(small)).similarity("good", "fine") == small.similarity("good", "fine")


def test_a_cache_that_cannot_be_written_is_said(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(ValueError, match=r"must be writable.*XDG_CACHE_HOME"):
        WordVectors.open(written(tmp_path / "v.txt", SMALL))


# --- as candidates ----------------------------------------------------------------------------------------------------


def at(sentence, word):
    text = Written.of(sentence)
    return text, text.words.index(word)


def test_neighbours_take_the_words_form_and_the_nearest_come_first(small):
    assert NearestWords(small)(*at("Good films", "Good")) == ["Fine", "Bad"]
    assert NearestWords(small, k=1)(*at("Good films", "Good")) == ["Fine"]
    assert NearestWords(small, least=0.9)(*at("Good films", "Good")) == ["Fine"]
    assert NearestWords(small)(*at("two films", "films")) == ["movies"]  # "film" is the word itself, "movie" has its plural
    assert NearestWords(small)(*at("the film's end", "film's")) == ["movie's"]
    assert small.similarity("film's", "Movies’s") == small.similarity("film", "movies")
    assert NearestWords(small)(*at("a zebra", "zebra")) == []


def test_antonyms_are_left_out_where_somebody_knows_them(small):
    loved = at("I loved it", "loved")
    assert NearestWords(small, least=0.9)(*loved) == ["adored", "hated"]
    assert NearestWords(small, least=0.9, antonyms=lambda word: {"love": {"hate"}}.get(word, set()))(*loved) == ["adored"]


@pytest.mark.parametrize("wrong", [{"k": 0}, {"k": 1.5}, {"k": True}, {"least": 2}, {"least": "much"}])
def test_what_is_no_number_of_words_or_no_cosine_is_refused(small, wrong):
    with pytest.raises(ValueError, match="must be"):
        NearestWords(small, **wrong)
