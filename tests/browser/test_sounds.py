"""Sounds of the audit's page in a real browser: what is played is what was cut, and it is reached by mouse and by keyboard."""

from __future__ import annotations

import time

import numpy as np
import pytest

from browser.devtools import program
from report import made
from whytrust.report import page

pytestmark = pytest.mark.skipif(program() is None, reason="no chromium on this machine: the page was not listened to in a browser")
PLAYING = "whytrustListen.playing()"
PRESSED = "Array.from(document.querySelectorAll('[aria-pressed=true]')).map(b => b.textContent)"
PLAY = "#case-0 .controls + .controls .play"


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    file = tmp_path_factory.mktemp("page") / "audit.html"
    return page.save(file, made.findings(n=40, d=20, kind="audio"), [page.shown(*case) for case in made.sound_cases(2)]).as_uri()


def heard(browser, mode, parts, source, case=0):
    return np.array(browser.run(f"whytrustListen.samples({case}, {mode!r}, {parts}, {source!r})"))


def masked(wave, parts, keep=True):
    """The reference: windowed spectra whose cells outside of these parts (or inside) are silenced, put together again."""
    n, size, hop = len(wave), 1024, 256
    window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(size) / size)
    starts = np.arange(0, n + 1, hop)
    padded = np.pad(np.asarray(wave, float), (size // 2, size))
    spectra = np.fft.rfft([padded[s: s + size] * window for s in starts])
    rows = np.minimum(49, starts / 8000 * 50).astype(int)
    band = np.searchsorted(made.SOUND["hertz"], np.arange(size // 2 + 1) * 8000 / size, side="right") - 1
    known = (band >= 0) & (band < 40)
    inside = np.isin(made.SOUND_LABELS[rows][:, np.where(known, band, 0)], parts) & known
    pieces = np.fft.irfft(np.where(inside == keep, spectra, 0)) * window
    total, weight = np.zeros(len(padded)), np.zeros(len(padded))
    for start, piece in zip(starts, pieces, strict=True):
        total[start: start + size] += piece
        weight[start: start + size] += window ** 2
    return (total / np.where(weight, weight, 1))[size // 2: size // 2 + n]


# --- what is computed -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("part", [0, 7, 14, 19])
def test_a_part_and_the_rest_are_what_numpy_cuts_out_of_either_sound(browser, address, part):
    browser.open(address)
    for source, wave in zip(("clean", "adversarial"), made.sound_waves(1), strict=True):
        np.testing.assert_allclose(heard(browser, "alone", part, source, case=1), masked(wave, [part]), atol=1e-4)
        np.testing.assert_allclose(heard(browser, "rest", part, source, case=1), masked(wave, [part], keep=False), atol=1e-4)


def test_several_parts_are_heard_together_and_with_the_rest_make_the_whole(browser, address):
    browser.open(address)
    clean = made.sound_waves()[0]
    several = heard(browser, "alone", [3, 8, 14], "clean")
    np.testing.assert_allclose(several, masked(clean, [3, 8, 14]), atol=1e-4)
    np.testing.assert_allclose(several + heard(browser, "rest", [3, 8, 14], "clean"), clean, atol=1e-4)
    np.testing.assert_allclose(heard(browser, "whole", [], "clean"), clean, atol=1e-4)


def test_a_tone_is_heard_in_its_own_part_and_in_no_other(browser, address):
    browser.open(address)
    # 1500 Hz is in bands 30 to 39, the highest of four ranges; from 0.6 to 0.8 s it is in the fourth stretch.
    own, lower, earlier = (heard(browser, "alone", part, "clean") for part in (15, 13, 3))
    assert np.std(own[5200:6000]) == pytest.approx(0.4 / 2 ** 0.5, rel=0.05)
    assert np.abs(own[:4000]).max() < 0.01
    assert np.std(lower) < 0.005
    assert np.std(earlier) < 0.005


def test_the_change_is_heard_as_the_difference_of_the_waves(browser, address):
    browser.open(address)
    clean, adversarial = (wave.astype(float) for wave in made.sound_waves())
    change = heard(browser, "whole", [], "change")
    assert np.corrcoef(change, adversarial - clean)[0, 1] > 0.9999
    assert np.abs(change).max() == pytest.approx(0.5, rel=0.06)
    part = heard(browser, "alone", 14, "change")  # the change lies in this part alone
    assert (part ** 2).sum() > 0.8 * (change ** 2).sum()


# --- how it is played -------------------------------------------------------------------------------------------------


def wait(browser, condition, most=4.0):
    end = time.monotonic() + most
    while not browser.run(condition):
        assert time.monotonic() < end, condition
        time.sleep(0.02)


def test_nothing_plays_by_itself_and_nothing_outside_is_asked_for(browser, address):
    browser.open(address)
    assert browser.run(PLAYING) is None
    assert browser.run("document.querySelectorAll('[autoplay]').length") == 0
    for number in range(3):
        browser.click(f"#case-0 .controls .play:nth-of-type({number + 1})")
        wait(browser, f"{PLAYING} && {PLAYING}.time > 0")
    browser.click(PLAY)
    wait(browser, f"{PLAYING} && {PLAYING}.time > 0")
    assert browser.requests() == [address]
    assert browser.complaints() == []


def test_a_button_shows_that_it_plays_another_takes_over_and_the_end_ends_it(browser, address):
    browser.open(address)
    browser.click("#case-0 .controls .play")
    assert browser.run(PRESSED) == ["before"]
    assert not browser.run("document.querySelector('#case-0 .stop').disabled")
    browser.click("#case-1 .controls .play:nth-of-type(2)")
    assert browser.run(PRESSED) == ["after"]
    assert browser.run("document.querySelector('#case-0 .stop').disabled")
    assert browser.run("document.querySelector('#case-1 .said').textContent") == "Playing: after"
    wait(browser, f"{PLAYING} && !{PLAYING}.paused && {PLAYING}.time > 0")
    wait(browser, f"{PLAYING} === null")  # the sound lasts one second
    assert browser.run(PRESSED) == []
    assert browser.run("document.querySelectorAll('.playing, .playhead').length") == 0


@pytest.mark.parametrize("how", ["Escape", "the stop button", "the same button again"])
def test_what_plays_can_be_stopped(browser, address, how):
    browser.open(address)
    browser.click("#case-0 .controls .play")
    assert browser.run(PLAYING) is not None
    if how == "Escape":
        browser.press("Escape")
    else:
        browser.click("#case-0 .stop" if how == "the stop button" else "#case-0 .controls .play")
    assert browser.run(PLAYING) is None
    assert browser.run(PRESSED) == []


@pytest.mark.parametrize("where", [".cut", ".who .view"])
def test_a_click_on_a_part_plays_it_and_marks_it(browser, address, where):
    browser.open(address)
    for across, down, part in ((0.5, 0.9, 8), (0.99, 0.02, 19), (0.01, 0.6, 1)):  # five stretches across, four ranges upwards
        browser.click(f"#case-0 {where}", across, down)
        assert browser.run(PLAYING)["parts"] == [part]
        assert browser.run("Array.from(new Set(Array.from(document.querySelectorAll('.playing')).map(u => u.getAttribute('href'))))") == [
            f"#p0-{part}"]
        assert browser.run("document.querySelector('#case-0 select').value") == str(part)
        assert f"stretch {part // 4}, range {part % 4}" in browser.run("document.querySelector('#case-0 .said').textContent")
    assert browser.run(PRESSED) == ["play the part"]


def test_parts_are_chosen_and_played_by_keyboard_alone(browser, address):
    browser.open(address)
    browser.run("document.querySelector('#case-0 select').focus()")
    browser.press("ArrowDown", times=2)
    browser.press("Tab")
    browser.press("ArrowDown")
    browser.press("Tab", times=2)
    assert browser.run(f"document.activeElement === document.querySelector({PLAY!r})")
    assert browser.run("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    browser.press("Enter")
    assert browser.run(PLAYING)["parts"] == [2]
    assert browser.run("document.querySelector('#case-0 .said').textContent") == (
        "Playing: all but stretch 0, range 2, from the sound after the attack")
    browser.press("Enter")
    assert browser.run(PLAYING) is None


def test_an_explainers_best_parts_are_heard_together_and_follow_k(browser, address):
    record = made.sound_cases(1)[0][0]
    browser.open(address)
    name = browser.run("document.querySelector('#case-0 .who b').textContent")
    for k in (3, 5):
        browser.run(f"(s => {{ s.value = {k}; s.dispatchEvent(new Event('input')); }})(document.getElementById('k'))")
        browser.click("#case-0 .who .play")
        assert browser.run(PLAYING)["parts"] == record["trials"][0]["order"][name][:k]
        browser.press("Escape")


def test_every_control_has_a_name(browser, address):
    browser.open(address)
    names = browser.run("Array.from(document.querySelectorAll('.case button, .case select')).map("
                        "b => b.getAttribute('aria-label') || b.textContent)")
    assert len(names) > 20
    assert all(names)
    assert browser.run("Array.from(document.querySelector('#case-0 select').options).map(o => o.textContent)") == (
        made.sound_cases(1)[0][0]["parts"])


# --- on a telephone, on paper, without scripts, without sounds --------------------------------------------------------


@pytest.mark.parametrize("width", [320, 390, 700, 1100])
def test_no_width_makes_the_page_scroll_sideways_also_while_it_plays(browser, address, width):
    browser.open(address, width=width)
    browser.click("#case-0 .cut")
    assert browser.run("document.documentElement.scrollWidth") <= width


def test_on_a_telephone_what_is_touched_is_large_enough(browser, address):
    browser.open(address, width=390)
    sides = browser.run("""Array.from(document.querySelectorAll('.case button, .case select')).map(b => {
      const r = b.getBoundingClientRect(); return Math.min(r.width, r.height); })""")
    assert min(sides) >= 44
    wide, tall = browser.run("(r => [r.width, r.height])(document.querySelector('.cut').getBoundingClientRect())")
    assert wide / 5 >= 44
    assert tall / 4 >= 40


def test_without_scripts_players_stand_there_and_no_button_does(browser, address):
    browser.open(address, scripts=False)
    sizes = browser.run("Array.from(document.querySelectorAll('#case-0 audio[controls]')).map(a => a.getBoundingClientRect().height)")
    assert len(sizes) == 3
    assert min(sizes) > 20
    assert browser.run("document.querySelectorAll('button, select').length") == 0


def test_with_scripts_the_plain_players_give_way(browser, address):
    browser.open(address)
    assert browser.run("Array.from(document.querySelectorAll('audio')).every(a => a.getClientRects().length === 0)")


def test_on_paper_there_is_nothing_to_press(browser, address):
    browser.open(address)
    browser.ask("Emulation.setEmulatedMedia", media="print")
    try:
        assert browser.run("Array.from(document.querySelectorAll('button, select')).every(b => b.getClientRects().length === 0)")
    finally:
        browser.ask("Emulation.setEmulatedMedia", media="")


def test_without_frequencies_the_whole_is_played_and_parts_are_not(browser, tmp_path):
    (first, arrays), (second, silent) = made.sound_cases(2)
    first = {**first, "sound": {**first["sound"], "hertz": None}}
    silent = {name: array for name, array in silent.items() if not name.endswith("wave")}
    file = page.save(tmp_path / "a.html", made.findings(n=10, d=20), [page.shown(first, arrays), page.shown(second, silent)])
    browser.open(file.as_uri())
    assert browser.run("document.querySelectorAll('select').length") == 0
    assert browser.run("document.querySelectorAll('.play').length") == 3
    browser.click("#case-0 .cut")
    assert browser.run(PLAYING) is None
    browser.click(".play")
    wait(browser, f"{PLAYING} && {PLAYING}.time > 0")
    assert browser.complaints() == []


def test_a_part_without_a_cell_is_not_offered(browser, tmp_path):
    record, arrays = made.sound_cases(1)[0]
    arrays["labels"] = np.where(made.SOUND_LABELS == 7, 6, made.SOUND_LABELS)
    file = page.save(tmp_path / "a.html", made.findings(n=10, d=20), [page.shown(record, arrays)])
    browser.open(file.as_uri())
    offered = browser.run("Array.from(document.querySelector('select').options).map(o => Number(o.value))")
    assert offered == [part for part in range(20) if part != 7]


def test_hostile_names_are_shown_and_do_not_run(browser, tmp_path):
    words = [*made.HOSTILE, *["x"] * 20][:20]
    record, arrays = made.sound_cases(1)[0]
    record |= {"parts": words, "source": words[0], "name": words[1], "sound": {**record["sound"], "moment": words[2]}}
    file = page.save(tmp_path / "a.html", made.findings(n=10, d=20), [page.shown(record, arrays)])
    browser.open(file.as_uri())
    browser.click(".cut", 0.1, 0.9)
    assert browser.run("Array.from(document.querySelector('select').options).map(o => o.textContent)") == [word.replace("\u202e", r"\u202e") for word in words]
    assert words[0] in browser.run("document.querySelector('.said').textContent")
    assert browser.run("typeof window.ran") == "undefined"
    assert browser.requests() == [file.as_uri()]
    assert browser.complaints() == []
