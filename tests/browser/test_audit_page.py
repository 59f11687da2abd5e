"""The audit's page in a real browser: it works by keyboard, on a telephone, without scripts, and reaches for nothing outside."""

from __future__ import annotations

from itertools import pairwise

import pytest

from browser.devtools import program
from report import made
from whytrust.report import page

pytestmark = pytest.mark.skipif(program() is None, reason="no chromium on this machine: the page was not looked at in a browser")


@pytest.fixture(scope="module")
def records():
    return made.digit_cases(2)


@pytest.fixture(scope="module")
def address(tmp_path_factory, records):
    folder = tmp_path_factory.mktemp("page")
    found = made.findings(n=40)
    return page.save(folder / "audit.html", found, [page.shown(*case) for case in records]).as_uri()


# What a reader sees of each figure of the first case: name -> (numbers that are visible, which of the two words is visible).
SEEN = """Object.fromEntries(Array.from(document.querySelectorAll('#case-0 figure.who')).map(f => [
  f.querySelector('figcaption b').textContent,
  [Array.from(f.querySelectorAll('.part text')).filter(t => getComputedStyle(t).visibility === 'visible').map(t => Number(t.textContent)),
   Array.from(f.querySelectorAll('.yes, .no')).filter(s => getComputedStyle(s).display !== 'none').map(s => s.className).join()]]))"""


def expected(records, k):
    trial = records[0][0]["trials"][0]
    return {name: [list(range(1, k + 1)), "yes" if bits[k - 1] == "1" else "no"] for name, bits in trial["flip"]["any"].items()}


def focus(browser, name, most=60):
    """Step with the Tab key until an element has the focus; how many steps it took."""
    for steps in range(1, most + 1):
        browser.press("Tab")
        if browser.run(f"document.activeElement.id === {name!r}"):
            return steps
    raise AssertionError(f"{most} steps with Tab do not reach {name}")


def test_nothing_outside_is_asked_for_and_nothing_is_complained_of(browser, address):
    browser.open(address)
    browser.run("document.querySelectorAll('details').forEach(d => { d.open = true; })")
    assert browser.requests() == [address]
    assert browser.complaints() == []


def test_the_slider_is_reached_by_tab_and_moved_by_arrows_and_marks_follow_the_record(browser, address, records):
    browser.open(address)
    assert browser.run(SEEN) == expected(records, 3)
    focus(browser, "k")
    for key, k in (("ArrowRight", 4), ("ArrowRight", 5), ("Home", 1), ("End", 16), ("ArrowLeft", 15)):
        browser.press(key)
        assert browser.run("document.querySelector('output').textContent") == str(k)
        assert browser.run(SEEN) == expected(records, k)
    assert browser.run("document.querySelector('[data-chances]').textContent") == (
        browser.run("document.querySelector('[data-chances]').dataset.chances.split(' ')[14]"))


def test_a_focused_control_shows_that_it_is(browser, address):
    browser.open(address)
    focus(browser, "k")
    assert browser.run("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    assert browser.run("parseFloat(getComputedStyle(document.activeElement).outlineWidth)") >= 2


def test_the_first_step_leads_past_everything_to_the_verdict(browser, address):
    browser.open(address)
    browser.press("Tab")
    assert browser.run("document.activeElement.getAttribute('href')") == "#verdicts"
    assert browser.run("document.activeElement.getBoundingClientRect().left") >= 0


@pytest.mark.parametrize("scripts", [True, False])
def test_the_choice_of_judge_shows_one_panel_at_a_time(browser, address, scripts):
    browser.open(address, scripts=scripts)
    shown = ("Array.from(document.querySelectorAll('.panel')).filter(p => getComputedStyle(p).display !== 'none')"
             ".map(p => p.classList[1]).join()")
    assert browser.run(shown) == "any"
    focus(browser, "judge-any")
    browser.press("ArrowRight")
    assert browser.run(shown) == "target"
    browser.press("ArrowLeft")
    assert browser.run(shown) == "any"


def test_a_line_in_focus_stands_out_from_all_others(browser, address):
    browser.open(address)
    focus(browser, "judge-any")
    browser.press("Tab")
    opacities = browser.run("Array.from(document.activeElement.closest('svg').querySelectorAll('.line'))"
                            ".map(l => [l === document.activeElement, Number(getComputedStyle(l).opacity)])")
    assert len(opacities) == 12
    assert all((opacity == 1) == own for own, opacity in opacities)


@pytest.mark.parametrize("width", [320, 390, 700, 1100])
def test_no_width_makes_the_page_scroll_sideways(browser, address, width):
    browser.open(address, width=width)
    browser.run("document.querySelectorAll('details').forEach(d => { d.open = true; })")
    assert browser.run("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("width", [390, 1100])
def test_names_at_the_ends_of_lines_do_not_overlap_and_are_not_cut_off(browser, address, width):
    browser.open(address, width=width)
    boxes = browser.run("""Array.from(document.querySelectorAll('.lines')).filter(s => s.getClientRects().length).map(s => [
      s.getBoundingClientRect().right, Array.from(s.querySelectorAll('.line text')).map(t => {
        const b = t.getBoundingClientRect(); return [b.top, b.bottom, b.right]; })])""")
    assert len(boxes) == 2  # the curves and the strengths
    for edge, texts in boxes:
        assert len(texts) == 12
        assert all(right <= edge + 0.5 for _, _, right in texts)
        # A line's box is taller than its letters; what must not meet are the letters.
        middles = sorted((top + bottom) / 2 for top, bottom, _ in texts)
        tall = 0.55 * max(bottom - top for top, bottom, _ in texts)
        assert all(b - a >= tall for a, b in pairwise(middles))


def test_without_scripts_the_page_shows_three_parts_and_hides_the_slider(browser, address, records):
    browser.open(address, scripts=False)
    assert browser.run(SEEN) == expected(records, 3)
    assert browser.run("document.getElementById('k-control').getClientRects().length") == 0
    assert browser.run("document.querySelector('.k-words .k-shown').textContent") == "3"


def test_print_opens_what_is_folded_and_shows_both_judges(browser, address):
    browser.open(address, width=700)
    browser.ask("Emulation.setEmulatedMedia", media="print")
    try:
        assert browser.run("Array.from(document.querySelectorAll('.panel, details table')).every(e => e.getBoundingClientRect().height > 0)")
        assert browser.run("document.documentElement.scrollWidth") <= 700
    finally:
        browser.ask("Emulation.setEmulatedMedia", media="")


def test_hostile_words_are_shown_and_do_not_run(browser, tmp_path):
    for number, words in enumerate(made.HOSTILE):
        found = made.findings(n=10, names={"lime": 0.3, "edges": 9.0})
        record, arrays = made.digit_cases(1, names={"lime": 0.3, "edges": 9.0})[0]
        record |= {"name": words, "clean_name": words, "label_name": words}
        found |= {"title": words, "caveats": [words], "spec": {words: words}, "failures": [{"case": words, "error": words}]}
        found["contenders"][0]["about"], shown = words, words.replace("\u202e", r"\u202e")
        file = page.save(tmp_path / f"{number}.html", found, [page.shown(record, arrays)])
        browser.open(file.as_uri())
        assert browser.run("typeof window.ran") == "undefined"
        assert browser.run("document.title.trim()") == shown.strip()
        assert browser.run("document.querySelector('h1').textContent") == shown
        assert browser.requests() == [file.as_uri()]
        assert browser.complaints() == []


def test_even_markup_that_slipped_in_could_not_run_nor_ask(browser, tmp_path):
    """What the page's own policy is for: here the escaping is gone round on purpose."""
    text = page.document(made.findings(n=10, names={"lime": 0.3}))
    evil = '<script>window.ran = 1</script><img src="https://example.invalid/x.png" onerror="window.ran = 2">'
    file = tmp_path / "evil.html"
    file.write_text(text.replace("</main>", evil + "</main>"), encoding="utf-8")
    browser.open(file.as_uri())
    assert browser.run("typeof window.ran") == "undefined"
    assert any("Content Security Policy" in words for words in browser.complaints())


# --- texts ------------------------------------------------------------------------------------------------------------

NAMES = {"lime": 0.3, "edges": 9.0}
# Of each figure of the first case: name -> (ranks of the words that are framed, their words, which of the two words is visible).
FRAMED = """Object.fromEntries(Array.from(document.querySelectorAll('#case-0 figure.who')).map(f => {
  const on = Array.from(f.querySelectorAll('.part')).filter(p => getComputedStyle(p).outlineStyle === 'solid');
  return [f.querySelector('figcaption b').textContent, [
    on.map(p => Number(p.querySelector('.rank').innerText)).sort((a, b) => a - b),
    Array.from(f.querySelectorAll('.rank')).filter(r => r.getClientRects().length).length,
    Array.from(f.querySelectorAll('.yes, .no')).filter(s => getComputedStyle(s).display !== 'none').map(s => s.className).join()]]; }))"""


def text_page(folder, cases, **found):
    findings = {**made.findings(n=20, names=NAMES, kind="text", kinds=("better_than_random", "undecided")), **found}
    return page.save(folder / "texts.html", findings, [page.shown(*case) for case in cases]).as_uri()


def test_the_slider_frames_as_many_words_and_marks_follow_the_record(browser, tmp_path):
    cases = made.text_cases(2, NAMES)
    browser.open(text_page(tmp_path, cases))
    bits = {name: cases[0][0]["trials"][0]["flip"]["any"][name] for name in NAMES}
    focus(browser, "k")
    for key, k in ((None, 3), ("ArrowRight", 4), ("Home", 1), ("End", 12)):
        if key:
            browser.press(key)
        seen = browser.run(FRAMED)
        assert {name: seen[name] for name in NAMES} == {
            name: [list(range(1, k + 1)), k, "yes" if bits[name][k - 1] == "1" else "no"] for name in NAMES}
    assert browser.run("document.getElementById('k').getAttribute('aria-valuetext')") == "12 words"
    assert browser.complaints() == []


@pytest.mark.parametrize("width", [320, 1100])
def test_texts_of_any_script_and_length_do_not_make_the_page_scroll_sideways(browser, tmp_path, width):
    words = [*made.HOSTILE, "שלום", "مرحبا", "👩\u200d👩\u200d👧", "\ud800", "Donaudampfschifffahrtsgesellschaft" * 9]
    record, _ = made.text_cases(1, NAMES, words=len(words), swapped=())[0]
    arrays = {**made.bytes_of("clean", words), **made.bytes_of("adversarial", [f"{word}!" for word in words])}
    address = text_page(tmp_path, [(record, arrays)])
    browser.open(address, width=width)
    assert browser.run("document.documentElement.scrollWidth") <= width
    assert browser.run("typeof window.ran") == "undefined"
    assert browser.run("document.querySelector('#case-0 .text').textContent.startsWith('<script>window.ran')")
    assert browser.requests() == [address]
    assert browser.complaints() == []
