"""Every kind of page with hostile words in a real browser: they are read, they do nothing, and the page works under its own policy."""

from __future__ import annotations

import os

import pytest

from browser.devtools import program
from report.hostile import PAGES, PAYLOADS, Words, explanations
from whytrust.pictures import html, page

pytestmark = pytest.mark.skipif(program() is None, reason="no chromium on this machine: hostile pages were not opened in a browser")
# All that a reader, or a screen reader, can come upon.
READ = """(() => { const parts = [document.title, document.body.textContent];
  document.querySelectorAll('*').forEach(e => Array.from(e.attributes).forEach(a => parts.push(a.value)));
  return parts.join('\\n').replace(/\\s+/g, ' '); })()"""
OWN = {"script", "button", "select", "option"}  # what the page's own script makes
FOREIGN = "Array.from(document.querySelectorAll('*')).map(e => e.localName)"
UNSTYLED = """Array.from(document.querySelectorAll('[data-look]')).filter(e => ![...document.styleSheets[0].cssRules].some(
  rule => rule.selectorText && e.matches(rule.selectorText) && rule.selectorText.startsWith('[data-look'))).length"""


def written(folder, text):
    file = folder / "page.html"
    file.write_text(text, encoding="utf-8")
    return file.as_uri()


def faults(browser, address, words):
    """What went wrong on a page; nothing, where every word is shown as it is and none does anything."""
    browser.open(address)
    found = [] if browser.run("typeof window.ran") == "undefined" else ["a word ran"]
    found += ["a dialog"] * any(event.get("method") == "Page.javascriptDialogOpening" for event in browser.events)
    found += [f"asked for {one}" for one in browser.requests() if one != address]
    found += [f"complaint: {one}" for one in browser.complaints()]
    found += [f"has <{name}>" for name in sorted(set(browser.run(FOREIGN)) - html.TAGS - OWN)]
    found += ["a style is not applied"] * bool(browser.run("document.styleSheets.length") != 1 or browser.run(UNSTYLED))
    shown = browser.run(READ)
    for word in words:
        plain = " ".join(html.clean(word).split())
        begun = plain[:20]  # pages cut what is long
        found += [f"not shown: {word[:60]!r}"] * ((plain if len(plain) < 40 else begun) not in shown)
    return found + ["turned or hidden"] * bool({"\u202e", "\u2066", "\u200b"} & set(shown))


@pytest.mark.parametrize("kind", PAGES)
def test_hostile_words_are_shown_as_they_are_on_every_page_and_do_nothing(browser, tmp_path, kind):
    # Which of its data a page shows at all is asked of one with harmless words in the same places.
    counted, words = Words([f"word{i:04d}" for i in range(400)]), Words()
    plain, text = PAGES[kind](counted), PAGES[kind](words)
    places = [i for i, one in enumerate(counted.given) if one in plain]
    assert len(places) >= 15
    assert faults(browser, written(tmp_path, text), {words.given[i] for i in places}) == []


@pytest.mark.skipif("SOAK" not in os.environ, reason="each word alone on every page takes minutes: SOAK=1")
@pytest.mark.parametrize("kind", PAGES)
def test_each_hostile_word_alone_everywhere_does_nothing(browser, tmp_path, kind):
    for words in PAYLOADS:
        assert faults(browser, written(tmp_path, PAGES[kind](lambda words=words: words)), [words]) == [], words


def test_the_check_fails_where_escaping_is_broken_and_the_policy_still_lets_nothing_run(browser, tmp_path, monkeypatch):
    monkeypatch.setattr(html, "escape", lambda text: html.Markup(html.clean(str(text))))
    found = faults(browser, written(tmp_path, PAGES["trust"](lambda: PAYLOADS[0])), [PAYLOADS[0]])
    assert any("Content Security Policy" in one for one in found)
    assert "a word ran" not in found


@pytest.mark.parametrize("words", [PAYLOADS[0], PAYLOADS[2]])
def test_the_check_fails_where_escaping_and_policy_are_both_broken(browser, tmp_path, monkeypatch, words):
    monkeypatch.setattr(html, "escape", lambda text: html.Markup(html.clean(str(text))))
    monkeypatch.setattr(html, "policy", lambda *given: "default-src * 'unsafe-inline'")
    assert "a word ran" in faults(browser, written(tmp_path, PAGES["trust"](lambda: words)), [words])


def test_a_picture_from_elsewhere_is_noticed_where_the_policy_is_broken(browser, tmp_path, monkeypatch):
    monkeypatch.setattr(html, "escape", lambda text: html.Markup(html.clean(str(text))))
    monkeypatch.setattr(html, "policy", lambda *given: "default-src * data: 'unsafe-inline'")
    words = "<img src=http://127.0.0.1:9/pixel.png>"
    assert "asked for http://127.0.0.1:9/pixel.png" in faults(browser, written(tmp_path, PAGES["trust"](lambda: words)), [])


def test_the_slider_and_the_players_work_among_hostile_words(browser, tmp_path):
    browser.open(written(tmp_path, PAGES["sound audit"](Words())))
    browser.run("document.getElementById('k').focus()")
    before = browser.run("document.querySelector('.k-shown').textContent")
    browser.press("ArrowRight")
    assert browser.run("document.querySelector('.k-shown').textContent") == str(int(before) + 1)
    browser.click("#case-0 .controls .play")
    assert browser.run("document.querySelectorAll('[aria-pressed=true]').length") == 1
    assert browser.complaints() == []


def test_what_a_notebook_shows_runs_nothing_though_it_has_no_policy_of_its_own(browser, tmp_path):
    some = explanations(Words())
    cell = page.fragment(some)
    address = written(tmp_path, f"<!DOCTYPE html><meta charset=utf-8><title>a notebook</title>{cell}{some[0]._repr_html_()}")
    browser.open(address)
    assert browser.run("typeof window.ran") == "undefined"
    assert browser.requests() == [address]
    assert browser.run("document.title") == "a notebook"


@pytest.mark.parametrize("kind", PAGES)
def test_names_of_ten_thousand_letters_do_not_make_a_page_scroll_sideways(browser, tmp_path, kind):
    browser.open(written(tmp_path, PAGES[kind](lambda: "Donau" * 2000)), 1000)
    assert browser.run("document.documentElement.scrollWidth") <= 1000
