"""Texts as words that can be swapped: nothing else of them moves."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from whytrust.domains.text import words
from whytrust.language.written import Written, is_one_word

texts = st.text(st.sampled_from("abc 'é-.,!\n中🙂"), min_size=1, max_size=40).filter(lambda text: any(True for _ in words(text)))


@given(texts, st.data())
def test_a_swap_changes_one_word_and_nothing_between(text, data):
    written = Written.of(text)
    place = data.draw(st.integers(0, len(written) - 1))
    swapped = written.swap(place, "other")
    assert swapped.words == (*written.words[:place], "other", *written.words[place + 1:])
    start, end = written.spans[place]
    assert swapped.text == text[:start] + "other" + text[end:]
    assert swapped.changed(written) == ((place,) if written.words[place] != "other" else ())
    assert swapped.swap(place, written.words[place]) == written


def test_a_window_has_so_many_words_around_the_place():
    written = Written.of("one two, three four five six seven.")
    assert written.window(3, 3) == "three four five"
    assert written.window(0, 3) == "one two, three"
    assert written.window(6, 3) == "five six seven"
    assert written.window(2, 15) == written.text


def test_parts_are_the_words_and_end_where_the_model_stops_reading():
    written = Written.of("a good film").swap(1, "fine")
    assert written.parts().names == ("a", "fine", "film")
    assert written.parts(lambda _: 3).names == ("a", "fine")


@pytest.mark.parametrize(("word", "one"), [("film", True), ("isn't", True), ("well-made", True), ("two words", False), ("", False), ("!", False), ("a.", False)])
def test_what_is_one_word(word, one):
    assert is_one_word(word) is one


def test_several_words_cannot_be_swapped_in():
    with pytest.raises(ValueError, match="one word"):
        Written.of("a film").swap(1, "motion picture")
