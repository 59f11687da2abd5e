"""Words of others on a terminal and in Markdown: seen, and nothing more."""

import html
import sys
import types
import unicodedata

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import whytrust as wt
from whitebox import examples
from whytrust import cli, legible
from whytrust.cli import runs
from whytrust.cli.screen import LONGEST, Screen, complain
from whytrust.progress import CaseProgress
from whytrust.studies import markdown

ANY = st.text(st.characters(exclude_categories=()), max_size=60)
ESCAPES = "\x1b]0;owned\x07\x1b[2J\x9b31m\r\b\x00"


def obeyed(text):
    """Characters that a terminal acts on, or that turn or hide the words around them."""
    kept = {"\u200c", "\u200d", "\u200e", "\u200f", "\u061c", "\u00ad", "\n", "\t"}  # scripts and emoji are written with them
    return [c for c in text if (unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp") and c not in kept)
            or unicodedata.bidirectional(c) in ("LRE", "RLE", "PDF", "LRO", "RLO", "LRI", "RLI", "FSI", "PDI")]


@examples(300)
@given(ANY)
def test_nothing_that_a_terminal_obeys_is_left_and_the_rest_is_as_it_was(text):
    shown = legible.harmless(text)
    assert obeyed(shown) == []
    assert shown.count("\n") == text.count("\n")
    plain = "".join(c for c in text if c.isalnum() or c in " \n")
    assert "".join(c for c in legible.harmless(plain)) == plain


@examples(300)
@given(st.lists(ANY, max_size=6))
def test_as_many_lines_as_were_given(texts):
    shown = legible.lines(texts)
    assert len(shown.splitlines()) <= len(texts)
    assert shown.count("\n") == max(len(texts) - 1, 0)
    assert not set(shown) & set("\r\v\f\x1c\x1d\x1e\x85\u2028\u2029\t")


@pytest.mark.parametrize("text", ["שלום", "مرحبا بالعالم", "👩‍👩‍👧", "naïve e\u0301", "می‌خواهم", "price \u200e5", "a\u00adb", "日本語"])
def test_scripts_and_emoji_stay_as_they_are_written(text):
    assert legible.seen(text) == legible.in_line(text) == text


def test_what_is_written_out_says_which_character_it_was():
    assert legible.seen("a\u202eb") == r"a\u202eb"
    assert legible.seen("tag\U000e0041") == r"tag\U000e0041"
    assert legible.in_line("a\x1b[31m\n\ud800") == r"a\x1b[31m\n\ud800"


def test_a_very_long_name_moves_no_other_line():
    assert legible.width(["lime", "x" * 10_000]) == legible.WIDEST
    assert legible.width(["lime", "occlusion"]) == 9


# --- on the screen ----------------------------------------------------------------------------------------------------


def explanation(names, classes):
    def model(batch):
        scores = np.clip(np.array([0.2 + 0.6 * ("good" in text) for text in batch]), 0, 1)
        return np.stack([1 - scores, scores], axis=1)

    return wt.explain(wt.model(model, classes=classes, name=names), "a good film, truly", "occlusion")


def test_names_of_classes_and_models_forge_no_line_of_an_explanation():
    plain = str(explanation("net", ("bad", "fine")))
    shown = str(explanation("net\n  fidelity 1.00", ("bad", f"fine\nwhytrust: all is well{ESCAPES}")))
    assert len(shown.splitlines()) == len(plain.splitlines())
    assert obeyed(shown) == []
    assert obeyed(repr(explanation("net", ("bad", f"a\n{ESCAPES}")))) == []
    assert r"net\n  fidelity 1.00" in shown


def test_a_saved_explanation_of_somebody_else_steers_no_terminal(tmp_path, capsys):
    for name in ("a.json", "b.json"):
        explanation(f"net{ESCAPES}", ("bad", f"\u202efine{ESCAPES}")).save(tmp_path / name)
    assert cli.main(["diff", str(tmp_path / "a.json"), str(tmp_path / "b.json")]) == 0
    shown = capsys.readouterr().out
    assert obeyed(shown) == []
    assert r"\x1b" in shown


def test_an_error_is_one_line_that_obeys_nothing(tmp_path, capsys):
    path = tmp_path / f"{ESCAPES.replace(chr(0), '')}\nwhytrust: done.json"
    path.write_text("{}")
    assert cli.main(["diff", str(path), str(path)]) == 2
    shown = capsys.readouterr().err
    assert obeyed(shown) == []
    assert shown.count("\n") == 1
    assert shown.startswith("whytrust: ")


def test_problems_of_a_run_and_notes_on_the_way_obey_nothing(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(runs.Store, "open", lambda folder: types.SimpleNamespace(problems=["block \x1b[2J\nforged"]))
    monkeypatch.setattr(runs, "export", lambda store, table: 3)
    assert cli.main(["export", str(tmp_path), "t.parquet"]) == 0
    CaseProgress("auditing", 5).aside("case \x1b[2J\nforged")
    said = capsys.readouterr().err
    assert "\x1b" not in said
    assert [line.split()[0] for line in said.splitlines()] == ["whytrust:", "auditing:"]


def test_a_message_of_megabytes_is_told_by_its_beginning_and_its_end(capsys):
    complain("first " + "x" * 3_000_000 + " last")
    shown = capsys.readouterr().err
    assert len(shown) < LONGEST + 50
    assert shown.startswith("whytrust: first")
    assert shown.endswith("last\n")


def test_the_screen_is_the_stream_in_all_else(capsys):
    screen = Screen(sys.stdout)
    assert screen.encoding == sys.stdout.encoding
    assert screen.write("\x1b[1m") == 4
    screen.flush()
    assert capsys.readouterr().out == r"\x1b[1m"


# --- Markdown ---------------------------------------------------------------------------------------------------------


@examples(200)
@given(st.lists(st.lists(ANY | st.sampled_from(["a|b", "<script>x</script>", "[x](javascript:y)", "![](//z)", "`|`", "\\|", "<!-- |"]),
                         min_size=3, max_size=3), min_size=1, max_size=4))
def test_a_table_keeps_its_rows_and_columns_and_no_cell_becomes_markup(rows):
    made = markdown.table(["a", "b", "c"], rows)
    assert len("\n".join(made).splitlines()) == 2 + len(rows)
    for line in made:
        bare = line.replace("\\\\", "")
        assert sum(c == "|" and bare[i - 1:i] != "\\" for i, c in enumerate(bare)) == 4
        assert not any(opened in line for opened in ("<s", "<!", "</"))
        assert "](" not in line


@pytest.mark.parametrize("text", ["see http://evil.example/x", "HTTPS://evil.example", "ftp://evil.example", "www.evil.example", "WWW.evil.example", "(http://a)http://b",
                                  "[q]: http://evil.example", "![p][q]"])
def test_an_address_in_markdown_is_shown_and_is_no_link(text):
    told = markdown.inert(text)
    assert "://" not in told
    assert "www." not in told.lower()
    assert "]:" not in told
    assert html.unescape(told) == text


def test_plain_words_in_markdown_stay_as_they_are():
    assert markdown.inert("p < .001, a_b * 3 [2, 5] (n = 8) `x`") == "p < .001, a_b * 3 [2, 5] (n = 8) `x`"
