import pickle
import time
import unicodedata
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lime.lime_text import IndexedString

from whytrust.core import Parts, generator
from whytrust.domains.text import SPECS, TextParts, sentences, words

RNG = generator(0)
ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=60)  # lone surrogates too
PIECES = ["good", "bad", "don't", "नमस्ते", "北京", "カタカナ", "👩‍👧", "🇦🇹", "3.14", "U.S.", " ", " ", ". ", "\n\n", "! ",
          ", ", "。", "-", "'", "\u0301", "\u200d", "\ud800"]
MIXED = st.lists(st.sampled_from(PIECES), max_size=20).map("".join)
TEXTS = (ANY_TEXT | MIXED).map(lambda text: text + " end")  # never without a word


def written(text, spans):
    return [text[start:end] for start, end in spans]


def masks_for(parts, rows, seed):
    return generator(seed).random((rows, len(parts.names))) < 0.5


# --- words ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("text", "expected"), [
    ("I don't like John’s e-mail.", ["I", "don't", "like", "John’s", "e-mail"]),
    ("'quoted' -- and well-known, rock 'n' roll", ["quoted", "and", "well-known", "rock", "n", "roll"]),
    ("pi is 3.14, not 1,000.5!", ["pi", "is", "3.14", "not", "1,000.5"]),
    ("the U.S. army, e.g. here", ["the", "U.S.", "army", "e.g.", "here"]),
    ("end.Start a_b x=y", ["end", "Start", "a_b", "x", "y"]),
    ("नमस्ते दुनिया", ["नमस्ते", "दुनिया"]),
    ("cafe\u0301 e\u0301te\u0301", ["cafe\u0301", "e\u0301te\u0301"]),
    ("我爱北京，iPhone手机", ["我", "爱", "北", "京", "iPhone", "手", "机"]),
    ("ひらとカタカナとラーメン", ["ひ", "ら", "と", "カタカナ", "と", "ラーメン"]),
    ("らーめん", ["らー", "め", "ん"]),
    ("안녕하세요 세계", ["안녕하세요", "세계"]),
    ("สวัสดีชาวโลก ไทย", ["สวัสดีชาวโลก", "ไทย"]),
    ("می‌خواهم کتاب", ["می‌خواهم", "کتاب"]),
    ("שָׁלוֹם، مَرْحَبًا", ["שָׁלוֹם", "مَرْحَبًا"]),
    ("great😀👍🏽!", ["great", "😀", "👍🏽"]),
    ("👩‍👩‍👧‍👦🇦🇹🇩🇪❤️", ["👩‍👩‍👧‍👦", "🇦🇹", "🇩🇪", "❤️"]),
    ("🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f 1️⃣ #️⃣ 🙂‍↔️",
     ["🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f", "1️⃣", "#️⃣", "🙂‍↔️"]),
    ("5 > 3 & $7 \ud800 x", ["5", "3", "7", "x"]),
])
def test_words_are_what_a_reader_would_point_at(text, expected):
    assert written(text, words(text)) == expected


@given(TEXTS)
def test_every_letter_digit_mark_and_connector_is_in_exactly_one_word_and_no_space_is_in_any(text):
    covered = np.zeros(len(text), int)
    for start, end in words(text):
        assert start < end
        covered[start:end] += 1
    for character, times in zip(text, covered, strict=True):
        category = unicodedata.category(character)
        assert times == 1 if category[0] in "LMN" or category == "Pc" else times <= 1
        assert not (character.isspace() and times)


# --- sentences --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("text", "expected"), [
    ("Dr. Smith left. He was late!", ["Dr. Smith left.", "He was late!"]),
    ("J. K. Rowling wrote it. I read it.", ["J. K. Rowling wrote it.", "I read it."]),
    ("So do I. He left.", ["So do I.", "He left."]),
    ("It costs 3.14 dollars at example.com today. OK?", ["It costs 3.14 dollars at example.com today.", "OK?"]),
    ("The U.S. Army came. In the U.S. He stayed.", ["The U.S. Army came.", "In the U.S.", "He stayed."]),
    ("See Fig. 3, e.g. Paris. No. I won't.", ["See Fig. 3, e.g. Paris.", "No.", "I won't."]),
    ('"Really?" he asked. Well... maybe. Yes... No', ['"Really?" he asked.', "Well... maybe.", "Yes...", "No"]),
    ("i liked it. it was good.", ["i liked it.", "it was good."]),
    ("good film . . . really", ["good film . . .", "really"]),
    ("... wow. yes", ["... wow.", "yes"]),
    ("1. Open it. 2. Close it.", ["1. Open it.", "2. Close it."]),
    ("A title\n\nA line\nthat is wrapped\r\n\r\nthe end", ["A title", "A line\nthat is wrapped", "the end"]),
    ("你好。我很好！你呢？", ["你好。", "我很好！", "你呢？"]),
    ("यह है। दूसरा।", ["यह है।", "दूसरा।"]),
    ("He left. (Early.) She stayed.", ["He left.", "(Early.)", "She stayed."]),
])
def test_sentences_end_where_a_reader_would_end_them(text, expected):
    assert written(text, sentences(text)) == expected


@given(TEXTS)
def test_sentences_cover_all_but_whitespace_and_begin_and_end_with_none(text):
    spans = sentences(text)
    left = text
    for start, end in reversed(spans):
        assert text[start:end] == text[start:end].strip() != ""
        left = left[:start] + left[end:]
    assert not left.strip()


def test_a_long_row_of_dots_or_spaces_takes_no_quadratic_time():
    begin = time.perf_counter()
    for text in ("." * 100_000 + "x", ". " * 20_000, "\n" + " " * 100_000 + "x", "a." * 50_000, "e.g. " * 20_000):
        list(words(text))
        sentences(text)
    assert time.perf_counter() - begin < 5  # a quadratic rule takes minutes


# --- parts ------------------------------------------------------------------------------------------------------------


@given(TEXTS, st.sampled_from(SPECS), st.sampled_from([None, "", "[MASK]"]))
def test_showing_everything_gives_the_text_back(text, spec, fill):
    parts = TextParts.cut(text, spec, fill=fill)
    assert parts.compose(np.ones((2, len(parts.names)), bool), RNG) == [text, text]


@given(TEXTS, st.sampled_from(SPECS), st.integers(0, 9), st.sampled_from([None, "<hidden>"]))
def test_hiding_parts_changes_exactly_their_spans(text, spec, seed, fill):
    parts = TextParts.cut(text, spec, fill=fill)
    masks = masks_for(parts, 4, seed)
    for mask, composed in zip(masks, parts.compose(masks, RNG), strict=True):
        expected = text
        gone = sorted(span for part in np.flatnonzero(~mask) for span in parts.spans[part])
        for start, end in reversed(gone):
            expected = expected[:start] + (fill or "") + expected[end:]
        assert composed == expected


@given(TEXTS, st.sampled_from(SPECS))
def test_spans_are_apart_and_inside_and_names_are_distinct(text, spec):
    parts = TextParts.cut(text, spec)
    flat = sorted(span for spans in parts.spans for span in spans)
    assert all(0 <= start < end <= len(text) for start, end in flat)
    assert all(first[1] <= second[0] for first, second in pairwise(flat))
    assert len(set(parts.names)) == len(parts.names) == len(parts.spans)
    assert [spans[0] for spans in parts.spans] == sorted(spans[0] for spans in parts.spans)


@given(TEXTS)
def test_a_bag_holds_the_same_occurrences_grouped_by_how_they_are_written(text):
    positional, bag = TextParts.cut(text), TextParts.cut(text, bag=True)
    assert sorted(span for spans in bag.spans for span in spans) == [spans[0] for spans in positional.spans]
    for name, spans in zip(bag.names, bag.spans, strict=True):
        assert set(written(text, spans)) == {name}


@given(TEXTS, st.sampled_from(SPECS), st.integers(0, 9))
def test_a_composed_text_does_not_depend_on_its_batch(text, spec, seed):
    parts = TextParts.cut(text, spec)
    masks = masks_for(parts, 5, seed)
    batch = parts.compose(masks, RNG)
    assert batch == [parts.compose(masks[i:i + 1], RNG)[0] for i in range(5)]
    assert parts.compose(masks[:0], RNG) == []


@given(TEXTS, st.sampled_from(SPECS), st.integers(0, 9), st.sampled_from([None, "<hidden>"]))
def test_many_masks_at_once_compose_what_each_composes_alone(text, spec, seed, fill):
    parts = TextParts.cut(text, spec, fill=fill)
    masks = masks_for(parts, 600, seed)
    few = np.arange(0, 600, 41)
    composed = parts.compose(masks, RNG)
    assert [composed[i] for i in few] == [parts.compose(masks[i:i + 1], RNG)[0] for i in few]


def test_many_masks_of_a_long_text_are_composed_in_pieces_of_bounded_memory_with_the_same_result():
    text = " ".join(f"w{i}" for i in range(3000))
    parts = TextParts.cut(text)
    masks = masks_for(parts, 800, 3)
    composed = parts.compose(masks, RNG)
    for i in (0, 348, 349, 350, 799):  # around the border between two pieces
        assert composed[i].split() == [name for name, kept in zip(parts.names, masks[i], strict=True) if kept]


def test_a_removed_word_leaves_its_separators_as_lime_leaves_them():
    parts = TextParts.cut("not bad, really")
    assert parts.compose(np.array([[1, 0, 1]]), RNG) == ["not , really"]


@given(st.text("ab ,.!\n", min_size=1).map(lambda text: text + " a"), st.integers(0, 9))
def test_a_bag_of_plain_words_is_hidden_as_lime_hides_it(text, seed):
    parts, reference = TextParts.cut(text, "bag", split=r"\w+"), IndexedString(text)
    mask = masks_for(parts, 1, seed)
    order = [parts.names.index(reference.word(i)) for i in range(reference.num_words())]
    hidden_in_lime = np.flatnonzero(~mask[0][order])
    assert parts.compose(mask, RNG) == [reference.inverse_removing(hidden_in_lime)]


def test_a_word_that_returns_is_numbered_and_in_a_bag_is_one_part():
    text = "good Good good, good"
    assert TextParts.cut(text).names == ("good", "Good", "good [2]", "good [3]")
    bag = TextParts.cut(text, "bag")
    assert bag.names == ("good", "Good")
    assert bag.compose(np.array([[0, 1]]), RNG) == [" Good , "]


def test_a_part_that_is_written_like_a_numbered_one_still_gets_a_name_of_its_own():
    assert TextParts.cut("x|x [2]|x|x [2]", split=r"[^|]+").names == ("x", "x [2]", "x [3]", "x [2] [2]")


def test_a_long_sentence_has_a_short_name_on_one_line():
    name, = TextParts.cut("word\n" * 50, "sentences").names
    assert len(name) == 60
    assert name.startswith("word word")
    assert name.endswith("…")


def test_split_takes_an_expression_strings_or_spans():
    text = "ab-cd ab"
    by_regex = TextParts.cut(text, split="[a-z]+")
    assert by_regex.spans == (((0, 2),), ((3, 5),), ((6, 8),))
    assert TextParts.cut(text, split=lambda t: ["ab", "cd", "", "ab"]) == by_regex
    assert TextParts.cut(text, split=lambda t: [(0, 2), (3, 5), [6, 8]]) == by_regex
    assert TextParts.cut(text, "bag", split="[a-z]+").spans == (((0, 2), (6, 8)), ((3, 5),))


def test_pooling_averages_the_characters_of_each_part_only():
    parts = TextParts.cut("ab, c ab", "bag")
    map = np.array([1.0, -3, 100, 100, 5, 100, 2, -2])
    np.testing.assert_allclose(parts.pool(map, "mean"), [-0.5, 5])
    np.testing.assert_allclose(parts.pool(map, "mean_abs"), [2, 5])
    np.testing.assert_allclose(parts.pool(map, "mean_pos"), [0.75, 5])
    with pytest.raises(ValueError, match=r"expected \(8,\)"):
        parts.pool(map[:7], "mean")


def test_parts_satisfy_the_protocol_pickle_and_show_where_they_stand():
    parts = TextParts.cut("नमस्ते good world", fill="[MASK]")
    assert isinstance(parts, Parts)
    assert (parts.domain, parts.deterministic) == ("text", True)
    np.testing.assert_array_equal(parts.view.spread(np.array([1.0, 2, 3])), [1] * 6 + [0] + [2] * 4 + [0] + [3] * 5)
    again = pickle.loads(pickle.dumps(parts))
    assert again == parts
    assert again.compose(np.array([[1, 0, 1]]), RNG) == ["नमस्ते [MASK] world"]


@pytest.mark.parametrize(("error", "message", "arguments", "options"), [
    (TypeError, "must be a str, got bytes", (b"x",), {}),
    (ValueError, "at least one word, got ''", ("",), {}),
    (ValueError, "at least one word", (" \n\t",), {}),
    (ValueError, "at least one word, got '!!! ...'", ("!!! ...",), {}),
    (ValueError, "at least one word", ("!!! ...", "sentences"), {}),
    (ValueError, "one of words, words:bag, bag, sentences, got 'letters'", ("x", "letters"), {}),
    (ValueError, "bag=False", ("x", "bag"), {"bag": False}),
    (TypeError, "fill must be a string", ("x",), {"fill": 0}),
    (ValueError, "regular expression", ("x",), {"split": "("}),
    (TypeError, "split must be a regular expression or a function", ("x",), {"split": 3}),
    (ValueError, "'zz' does not occur after character 1", ("x y",), {"split": lambda t: ["x", "zz"]}),
    (ValueError, r"expected 1 <= start <= end <= 3, got \(0, 2\)", ("x y",), {"split": lambda t: [(0, 1), (0, 2)]}),
    (ValueError, r"got \(2, 9\)", ("x y",), {"split": lambda t: [(2, 9)]}),
    (TypeError, "strings or", ("x y",), {"split": lambda t: [(1.5, 2)]}),
])
def test_what_cannot_be_cut_is_one_clear_error(error, message, arguments, options):
    with pytest.raises(error, match=message):
        TextParts.cut(*arguments, **options)


def test_masks_of_another_width_are_refused():
    with pytest.raises(ValueError, match=r"expected \(n, 2\), got \(2,\); pass masks\[None\]"):
        TextParts.cut("a b").compose(np.ones(2, bool), RNG)


def test_five_thousand_masks_of_two_hundred_words_take_well_under_half_a_second():
    parts = TextParts.cut(" ".join(f"word{i}" for i in range(200)))
    masks = masks_for(parts, 5000, 0)
    parts.compose(masks, RNG)
    begin = time.process_time()
    parts.compose(masks, RNG)
    assert time.process_time() - begin < 0.5
