"""Function words are among the stop words, words with content are not."""

import pytest

from whytrust.language.stop_words import STOP_WORDS


@pytest.mark.parametrize("word", ["the", "not", "never", "n't", "n’t", "'s", "’s", "don't", "don’t", "cannot", "and", "but", "of", "is", "were",
                                  "i'm", "who", "very", "no", "nobody", "without", "would", "ca", "wo"])
def test_function_words_and_negations_are_stop_words(word):
    assert word in STOP_WORDS


@pytest.mark.parametrize("word", ["good", "bad", "film", "love", "hate", "great", "boring", "make", "story", "quickly", "best", "worst", "old"])
def test_words_with_content_are_not(word):
    assert word not in STOP_WORDS


def test_all_are_single_words_in_lower_case():
    assert all(word == word.lower() and word == word.strip() and " " not in word and word for word in STOP_WORDS)
