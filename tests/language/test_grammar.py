import pickle
import shutil
import sys
import threading
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from whytrust.core import MissingExtra
from whytrust.language import grammar
from whytrust.language.grammar import (
    COUNTED,
    COUNTED_RULES,
    GRAMMARS,
    SWITCHED_OFF,
    Grammar,
    Harper,
    LinkGrammar,
    NewErrors,
    grammar_of,
    new_errors,
)

KINDS = st.lists(st.sampled_from(["AnA", "Agreement", "unlinked"]), max_size=8)
needs_link_parser = pytest.mark.skipif(shutil.which("link-parser") is None, reason="the command link-parser is not installed")


# --- what is new ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("before", "after", "new", "difference"), [
    ([], [], 0, 0),
    ([], ["AnA", "AnA"], 2, 2),
    (["AnA"], ["AnA"], 0, 0),
    (["AnA", "Agreement"], [], 0, 2),
    (["AnA"], ["Agreement"], 1, 0),  # one mended, one made: the number says nothing happened
    (["AnA", "AnA"], ["Agreement", "AnA", "AnA", "Agreement"], 2, 2),
    (["AnA", "AnA", "Agreement"], ["AnA", "unlinked"], 1, 1),
])
def test_new_errors_are_those_whose_kind_was_not_there_as_often(before, after, new, difference):
    assert NewErrors.between(before, after) == NewErrors(new, difference)


@given(KINDS, KINDS)
def test_what_is_new_less_what_is_mended_is_the_change_of_their_number(before, after):
    made, mended = NewErrors.between(before, after), NewErrors.between(after, before)
    assert made.new - mended.new == len(after) - len(before)
    assert made.difference == mended.difference == abs(made.new - mended.new)


@dataclass(frozen=True)
class Told:
    """A checker that finds the words it is told to."""

    name: str = "told"

    def __call__(self, text):
        return [word for word in text.split() if word.isupper()]


def test_new_errors_asks_the_checker_about_both_texts():
    assert new_errors(Told(), "a B film", "A C film") == NewErrors(new=2, difference=1)


# --- harper -----------------------------------------------------------------------------------------------------------

WRONG = [
    ("he go to the cinema every day .", ["PronounVerbAgreement"]),
    ("it is a entertaining film .", ["AnA"]),
    ("an good film and a awful one", ["AnA", "AnA"]),
    ("he did not went home", ["DidPast"]),
    ("it is more better than the first", ["AdjectiveDoubleDegree"]),
    ("the the film is good", ["RepeatedWords"]),
    ("it is one of the best film of the year", ["OneOfTheSingular"]),
    ("they went to suggests a entertaining film", ["InflectedVerbAfterTo", "AnA"]),
]
RIGHT = [
    "he goes to the cinema every day .",
    "i 'd say it 's an entertaining film , is n't it ?",
    "they wo n't like it .",
    "a good film -lrb- and an awful one -rrb- by steven soderbergh",
    "THE FILM IS GOOD",
    "it is too slow to care , even on a monday in january",
    "one long string of cliches",
    "qxzzt frst goood fim",  # misspelt, and not a matter of grammar
]


@pytest.mark.parametrize(("text", "rules"), WRONG)
def test_harper_finds_errors_of_grammar_in_their_order(text, rules):
    assert Harper()(text) == rules


@pytest.mark.parametrize("text", RIGHT)
def test_lower_case_tokens_names_and_spelling_are_no_errors_of_grammar(text):
    assert Harper()(text) == []


@pytest.mark.parametrize("text", ["", " ", "...", "\ud800", "\0", "<script>alert(1)</script>", "\u202eabc", "👩‍👧 名", "x" * 5000])
def test_harper_takes_any_text(text):
    assert Harper()(text) == []


def test_harper_knows_the_rules_that_are_switched_off_or_counted_by_name():
    rules = pytest.importorskip("harper").Linter().get_default_lint_config()
    assert rules.keys() >= SWITCHED_OFF | COUNTED_RULES
    assert not SWITCHED_OFF & COUNTED_RULES
    assert not COUNTED & {"Spelling", "Capitalization", "Punctuation", "Formatting", "Style", "Typo"}


def test_threads_may_ask_harper_at_once():
    found = []
    threads = [threading.Thread(target=lambda: found.append([Harper()("he go . " * (20 + i)) for i in range(10)])) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [[["PronounVerbAgreement"] * (20 + i) for i in range(10)]] * 4


def test_without_harper_one_line_says_how_to_get_it(monkeypatch):
    grammar._linter.cache_clear()
    grammar._broken.cache_clear()
    monkeypatch.setitem(sys.modules, "harper", None)
    with pytest.raises(MissingExtra, match=r"whytrust\[language\]"):
        Harper()("a film")


# --- link-grammar -----------------------------------------------------------------------------------------------------


@needs_link_parser
@pytest.mark.parametrize(("right", "wrong"), [
    ("the film is good .", "the film are good ."),
    ("i do n't like these films .", "i do n't like this films ."),
    ("he goes home .", "he go home ."),
])
def test_link_grammar_links_every_word_of_a_right_sentence_and_not_of_a_wrong_one(right, wrong):
    assert LinkGrammar()(right) == []
    found = LinkGrammar()(wrong)
    assert found
    assert set(found) == {"unlinked"}
    assert LinkGrammar()(f"{right} {wrong} {right}") == found


@needs_link_parser
@pytest.mark.parametrize("text", ["", "!!!", "...", "\ud800"])
def test_link_grammar_has_nothing_to_say_of_a_text_without_words(text):
    assert LinkGrammar()(text) == []


@needs_link_parser
def test_a_text_cannot_give_link_parser_commands():
    plain = LinkGrammar()("the film are good")
    assert LinkGrammar()("!the film are good") == LinkGrammar()("%the film\nare\0good") == plain != []


@needs_link_parser
def test_a_sentence_that_takes_too_long_or_is_too_long_is_one_error():
    assert LinkGrammar(seconds=1e-4)("the film is good .") == ["unparsed"]
    assert LinkGrammar()("very " * 300 + "good") == ["unparsed"]


def test_without_link_parser_one_line_says_how_to_get_it(monkeypatch):
    grammar._unlinked.cache_clear()
    monkeypatch.setenv("PATH", "")
    with pytest.raises(MissingExtra, match="apt install link-grammar"):
        LinkGrammar()("the film is good .")


@pytest.mark.parametrize("seconds", [0, -1, float("nan")])
def test_a_limit_must_leave_time(seconds):
    with pytest.raises(ValueError, match="above 0"):
        LinkGrammar(seconds)


# --- by name ----------------------------------------------------------------------------------------------------------


def test_names_lead_to_checkers():
    assert grammar_of("harper") == Harper()
    assert grammar_of("link-grammar") == LinkGrammar()
    assert grammar_of(None) is grammar_of("none") is None
    own = Told()
    assert grammar_of(own) is own
    assert all(isinstance(one, Grammar) and pickle.loads(pickle.dumps(one)) == one for one in (Harper(), LinkGrammar(), own))


@pytest.mark.parametrize("given", ["Harper", "link", "", 3, [], Harper, len])
def test_what_is_no_checker_is_refused_in_words(given):
    with pytest.raises(ValueError, match="grammar must be one of"):
        grammar_of(given)
    assert set(GRAMMARS) == {"harper", "link-grammar", "none"}
