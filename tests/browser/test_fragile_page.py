"""The page of a fragility run in a real browser: hostile texts do not run, nothing is cut off, and what is folded opens."""

from __future__ import annotations

import json

import numpy as np
import pytest

from browser.devtools import program
from report import fooled as made
from report.made import HOSTILE
from whytrust.report import fragile

pytestmark = pytest.mark.skipif(program() is None, reason="no chromium on this machine: the page was not looked at in a browser")
HEBREW = "הסרט הזה נפלא, אבל העלילה משעממת מאוד ואין בה שום דבר חדש."
EMOJI = "Great 👩‍👩‍👧 film 😀, z̷̢̛a̷l̷g̴o̷ and e\u0301clairs \u202efor\u202c all"
OPEN = "document.querySelectorAll('details').forEach(d => { d.open = true; })"


def saved(folder, texts, **more):
    file = folder / "fooled.html"
    file.write_text(fragile.document(made.findings(**more), texts), encoding="utf-8", newline="\n")
    return file.as_uri()


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    folder = tmp_path_factory.mktemp("page")
    long = made.long_words(np.random.default_rng(0), 10_000)
    cases = [made.case(0, objectives=("lom", "l2")), made.case(1, m=10), made.case(2, text=HEBREW, m=4, swap=lambda word, m: "מילה"),
             made.case(3, text=EMOJI, m=3), made.case(4, text=long, m=60), made.case(5, text="w" * 5000 + " and " + "v" * 5000, m=1),
             made.case(6, text=f"so <script>window.ran = 1</script> {' '.join(HOSTILE)}", m=3, swap=lambda word, m: HOSTILE[m],
                       name=HOSTILE[1], label_name=HOSTILE[2])]
    return saved(folder, fragile.shown(made.run(folder / "run", cases)))


def test_nothing_outside_is_asked_for_nothing_runs_and_nothing_is_complained_of(browser, address):
    browser.open(address)
    browser.run(OPEN)
    assert browser.run("typeof window.ran") == "undefined"
    assert browser.run("document.scripts.length") == 0
    assert browser.requests() == [address]
    assert browser.complaints() == []


@pytest.mark.parametrize("words", HOSTILE)
def test_hostile_words_are_shown_wherever_they_come_from_and_do_not_run(browser, tmp_path, words):
    one = fragile.fooled(*made.case(text=f"so {words} and on", m=1, swap=lambda word, m: words, name=words, label_name=words), words)
    there = saved(tmp_path, [one], question=words, answer=[words], notes=[words], settings={words: words})
    shown = words.replace("\u202e", r"\u202e")
    browser.open(there)
    assert browser.run("typeof window.ran") == "undefined"
    assert browser.run("document.querySelector('#answer li').textContent") == shown
    assert browser.run("document.querySelector('#text-1 h3 bdi').textContent") == shown
    assert browser.run("document.querySelector('.sentence .traded.latest b').textContent") == fragile.cut(shown, 40)
    assert browser.requests() == [there]
    assert browser.complaints() == []


def test_even_markup_that_slipped_in_could_not_run_nor_ask(browser, tmp_path):
    whole = fragile.document(made.findings(), [fragile.fooled(*made.case())])
    evil = '<script>window.ran = 1</script><img src="https://example.invalid/x.png" onerror="window.ran = 2">'
    file = tmp_path / "evil.html"
    file.write_text(whole.replace("</main>", evil + "</main>"), encoding="utf-8")
    browser.open(file.as_uri())
    assert browser.run("typeof window.ran") == "undefined"
    assert any("Content Security Policy" in words for words in browser.complaints())


@pytest.mark.parametrize("width", [320, 360, 700, 901, 1100])
def test_no_width_makes_the_page_scroll_sideways_nor_cuts_a_sentence(browser, address, width):
    browser.open(address, width=width)
    browser.run(OPEN)
    assert browser.run("document.documentElement.scrollWidth") <= width
    beyond = browser.run("""Array.from(document.querySelectorAll('.sentence, .level, .number')).filter(e => e.getClientRects().length
      && (e.scrollWidth > e.clientWidth + 1 || e.getBoundingClientRect().right > document.documentElement.clientWidth)).length""")
    assert beyond == 0


@pytest.mark.parametrize("scripts", [True, False])
def test_what_is_folded_opens_by_keyboard_and_shows_the_swaps_by_chance(browser, address, scripts):
    browser.open(address, scripts=scripts)
    control = "Array.from(document.querySelectorAll('#text-1 > details.path')).at(-1)"
    seen = f"{control}.querySelector('.sentence').getBoundingClientRect().height"
    assert browser.run(f"{control}.open") is False
    assert browser.run(f"{control}.querySelector('.sentence').checkVisibility({{contentVisibilityAuto: true}})") is False
    browser.run(f"{control}.querySelector('summary').focus()")
    browser.press("Enter")
    assert browser.run(f"{control}.open") is True
    assert browser.run(seen) > 10
    assert "chance" in browser.run(f"{control}.querySelector('summary').textContent")


def test_levels_that_are_folded_open_with_a_click(browser, address):
    browser.open(address)
    browser.run("document.querySelectorAll('details.path details').forEach((d, i) => { d.id = 'folded-' + i; })")
    assert browser.run("document.querySelectorAll('#folded-0').length") == 1
    browser.click("#folded-0 > summary")
    assert browser.run("document.querySelector('#folded-0').open") is True
    assert browser.run("Array.from(document.querySelectorAll('#folded-0 .sentence')).every(s => s.getBoundingClientRect().height > 10)")


def test_a_swapped_word_is_underlined_and_the_one_before_it_struck_out(browser, address):
    browser.open(address)
    assert "line-through" in browser.run("getComputedStyle(document.querySelector('.sentence .traded s')).textDecorationLine")
    assert browser.run("getComputedStyle(document.querySelector('.sentence .traded b')).borderBottomStyle") == "solid"
    sizes = browser.run("['s', 'b'].map(tag => parseFloat(getComputedStyle(document.querySelector('.sentence .traded ' + tag)).fontSize))")
    assert sizes[0] < sizes[1]


def test_colour_never_stands_alone(browser, address):
    browser.open(address)
    signs = browser.run("""Array.from(document.querySelectorAll('.sentence mark')).map(m => [m.className[0],
      getComputedStyle(m, '::after').content])""")
    assert {tuple(one) for one in signs} == {("p", '"+"'), ("n", '"−"')}


def test_letters_are_told_from_their_colour(browser, address):
    """At least 4.5 to 1, as the Web Content Accessibility Guidelines ask."""
    browser.open(address)
    pairs = browser.run("""Array.from(new Set(Array.from(document.querySelectorAll('.sentence mark')).map(m => JSON.stringify(
      [getComputedStyle(m).color, getComputedStyle(m).backgroundColor]))))""")
    assert len(pairs) == 20

    def light(colour):
        c = np.array([int(part) for part in colour[4:-1].split(",")]) / 255
        return float(np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4) @ [0.2126, 0.7152, 0.0722])

    for pair in pairs:
        dark, bright = sorted(light(colour) for colour in json.loads(pair))
        assert (bright + 0.05) / (dark + 0.05) >= 4.5


def test_a_text_from_right_to_left_begins_at_the_right_and_the_page_does_not(browser, address):
    browser.open(address)
    sides = browser.run("""Array.from(document.querySelectorAll('.sentence')).filter(s => s.textContent.includes('הסרט')
      && s.getClientRects().length).map(s => getComputedStyle(s).direction)""")
    assert sides
    assert set(sides) == {"rtl"}
    assert browser.run("getComputedStyle(document.querySelector('.levels')).direction") == "ltr"


def test_on_a_telephone_every_number_has_its_name(browser, address):
    browser.open(address, width=360)
    names = browser.run("""Array.from(document.querySelectorAll('#text-1 tbody td.number')).filter(c => c.getClientRects().length)
      .map(c => getComputedStyle(c, '::before').content)""")
    assert names
    assert not {"none", "normal", '""'} & set(names)
    assert '"order, anew"' in names


def test_on_paper_everything_is_opened_and_fits(browser, address):
    browser.open(address, width=700)
    browser.ask("Emulation.setEmulatedMedia", media="print")
    try:
        assert browser.run("Array.from(document.querySelectorAll('.sentence')).every(s => s.getBoundingClientRect().height > 0)")
        assert browser.run("document.documentElement.scrollWidth") <= 700
    finally:
        browser.ask("Emulation.setEmulatedMedia", media="")


def test_the_first_step_leads_to_the_answer_and_links_lead_to_their_texts(browser, address):
    browser.open(address)
    browser.press("Tab")
    assert browser.run("document.activeElement.getAttribute('href')") == "#answer"
    assert browser.run("Array.from(document.querySelectorAll('a')).every(a => document.querySelector(a.getAttribute('href')))")
