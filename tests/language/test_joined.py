import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from whytrust.language.joined import joined, writable

PIECES = ["a", "it", "'s", "n't", "''", "``", ",", ".", "(", "-lrb-", "-rrb-", ")", " ", "  ", "\n", "é", "👍", "\ud800", "’ve", "d"]


@pytest.mark.parametrize(("tokens", "written"), [
    ("it 's good , is n't it ?", "it's good, isn't it?"),
    ("you 've never seen it , i 'd say .", "you've never seen it, i'd say."),
    ("they wo n't , ca n't and DO N'T", "they won't, can't and DON'T"),
    ("the film ’s end", "the film’s end"),
    ("`` so what '' -LRB- he said -RRB- !", '" so what " (he said)!'),
    ("he said 'do it' to me", "he said 'do it' to me"),
    ("50 % of it ; the rest : none", "50% of it; the rest: none"),
])
def test_tokens_are_put_together_as_people_write_them(tokens, written):
    assert joined(tokens) == written


@given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join))
def test_only_spaces_brackets_and_quotes_change_and_nothing_changes_twice(text):
    def kept(one):
        return re.sub(r"\s|-[lr]rb-|[()\"`']", "", one)
    assert kept(joined(text)) == kept(writable(text))
    assert joined(joined(text)) == joined(text)


@given(st.text(st.characters(exclude_categories=()), max_size=20))
def test_writable_text_can_be_written_and_is_left_alone_where_it_could_be_before(text):
    assert writable(text).encode().decode() == writable(text)
    assert all(ours == theirs for ours, theirs in zip(writable(text), text, strict=True) if not 0xD800 <= ord(theirs) < 0xE000)
