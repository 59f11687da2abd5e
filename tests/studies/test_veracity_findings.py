"""The numbers of Praher et al. (2021) and Hoedt et al. (2022) on sound are the printed ones, and a run's tables are counted right."""

import hashlib
import json
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import hypergeom, mannwhitneyu

from whytrust import stats
from whytrust.store import Block, Result, Store
from whytrust.studies import veracity_published as published
from whytrust.studies import veracity_run
from whytrust.studies.veracity_outcomes import told_apart

PRAHER, HOEDT = "WHYTRUST_PRAHER_2021_TEXT", "WHYTRUST_HOEDT_2022_TEXT"
"""Where an environment says it has the texts of the papers, which are not ours to pass on."""
D = 20


# --- what was printed -------------------------------------------------------------------------------------------------


def test_the_published_numbers_are_those_of_the_tables():
    assert published.FLIPS == {"waveform": {"no sing": 53, "sing": 21}, "magnitude": {"no sing": 41, "sing": 32}}
    assert published.POSITIVE["waveform"]["no sing"] == {"lime": 86, "magnitude": 99}
    assert published.POSITIVE["magnitude"]["sing"] == {"lime": 44, "magnitude": 55}
    assert published.SUCCESS == {"waveform": 60.5, "magnitude": 28.4}
    assert published.DETECTOR["error"] == (11.54, 0.96)
    assert published.LOCALISED == {"1": 52, "3": 146, "5": 215}


def test_the_published_numbers_are_those_that_were_compared_with_the_papers():
    numbers = json.dumps([published.FLIPS, published.POSITIVE, published.SUCCESS, published.DETECTOR, published.SETTINGS,
                          published.LOCALISED, published.THRESHOLD, published.SAMPLES, published.ITERATIONS], sort_keys=True)
    assert hashlib.sha256(numbers.encode()).hexdigest()[:16] == "dc6dd360df429ab3"


def text_of(variable):
    if variable not in os.environ:
        pytest.skip(f"the paper's text is not part of the repository; set {variable} to a file that has it")
    return " ".join(Path(os.environ[variable]).read_text(encoding="utf-8").replace("\xa0", " ").split())


def test_every_published_number_stands_in_praher_et_al():
    text = text_of(PRAHER)
    for direction, words in (("no sing", "“no sing”→ “sing”"), ("sing", "“sing”→ “no sing”")):
        rates = [published.FLIPS[signal][direction] for signal in ("waveform", "magnitude")]
        assert f"{words} {rates[0]} % {rates[1]} %" in text
        every = [published.POSITIVE[signal][direction][name] for signal in ("waveform", "magnitude") for name in ("lime", "magnitude")]
        assert f"{words} " + " ".join(f"{rate} %" for rate in every) in text
    for error in published.DETECTOR.values():
        assert "{:.2f} ± {:.2f}".format(*error) in text
    assert f"{published.SUCCESS['magnitude']}% of all excerpts for attacks on the spectrogram" in text
    assert f"{published.SUCCESS['waveform']}% of excerpts for raw audio" in text
    assert "ε = 0.01, η = 0.0003 and α = 2" in text
    assert "ε = 0.1, η = 0.0005 and α = 15" in text
    assert "equal to 0.51" in text
    assert "Ns = 8192" in text


def test_every_published_number_stands_in_hoedt_et_al():
    text = text_of(HOEDT)
    assert "We look at 52 / 146 / 215 adversaries in total" in text
    assert "3 changes only 32% (‘‘sing’’ ! ‘‘no sing’’) and 41% (‘‘no sing’’ ! ‘‘sing’’)" in text
    assert "15 0.1 0.0005" in text


# --- runs with known answers ------------------------------------------------------------------------------------------


def bits(first):
    """Flips with so many segments or more; 21 for with all alone."""
    return "".join("1" if k >= min(first, D) else "0" for k in range(1, D + 1))


def trial(rng, lime=12, magnitude=4, found=(0, 1, 2), flipped=(True, True, True), fidelity=0.5, fills=False, positive=(1, 1, 8)):
    """A trial in which LIME flips with `lime` segments, and finds so many of the k changed ones."""
    names = ("lime", "lime:zero", "lime:min") if fills else ("lime",)
    flip = {**{name: bits(lime) for name in names}, "magnitude": bits(magnitude), "magnitude_mean": bits(magnitude), "oracle": bits(2)}
    recovery = {str(k): {"flipped": True, "found": {"lime": n, "magnitude": k}, "fidelity": {"lime": {"fidelity": fidelity, "fresh": None}}}
                if still else {"flipped": False} for k, n, still in zip((1, 3, 5), found, flipped, strict=True)}
    order = {name: rng.permutation(D).tolist() for name in names}
    return {"k": list(range(1, D + 1)), "flip": {"any": flip}, "random": {"any": [k / D for k in range(1, D + 1)]},
            "scores": {name: rng.normal(size=D).tolist() for name in names}, "order": order, "recovery": recovery,
            "positive": {"lime": {"k": positive[2], "any": {"flip": positive[0], "magnitude": positive[1], "random": positive[2] / D}}},
            "fidelity": {name: {"fidelity": fidelity, "fresh": None} for name in names}}


def planted(folder, make, songs=8, each=5, more=(), kinds=("detector", "excerpts", "drawings", "settling", "tuning"), arrays=None):
    """A run whose trials are make(rng, signal, direction, song, slot)."""
    rng = np.random.default_rng(0)
    results = {}
    for number in range(songs):
        for signal in published.SIGNALS:
            some = []
            for direction in published.DIRECTIONS:
                for slot in range(each):
                    case = f"{signal}.{number:03d}.{direction.replace(' ', '-')}.{slot}"
                    attack = {"iterations": 60, "linf": 0.01, "l2": 1.0, "signal_to_noise": 20.0 + number, "frames": 100,
                              "flipped": 60 if signal == "waveform" else 30, "sung": 40, "sung_flipped": 10,
                              "played_flipped": 60 if signal == "waveform" else number,
                              "at_floor": None if signal == "waveform" else 0.01 * number}
                    record = {"case": case, "kind": "excerpts", "signal": signal, "song": f"song {number}", "direction": direction,
                              "attack": attack, "error": None, "status": "ok", "frame": 100}
                    made = make(rng, signal, direction, number, slot)
                    some.append(Result({**record, "status": "not found"} if made is None else {**record, "trial": made},
                                       {} if arrays is None or slot else arrays(signal, direction)))
            results[f"excerpts-{number:03d}-{signal}"] = some
    for result in more:
        kind = result.record["kind"]
        results[f"{kind}-{result.record['case'].replace('.', '-')}"] = [result]
    blocks = [Block(name, tuple(r.record["case"] for r in some)) for name, some in results.items()]
    spec = {"paper": "veracity", "kinds": list(kinds), "each": each, "samples": 8192, "iterations": 1000, "variant": "authors",
            "threshold": 0.51, "contents": 1, "tuned_iterations": 200, "test": [f"song {n}" for n in range(songs)], "valid": ["v"]}
    store = Store.create(folder, {"study": "veracity", "seed": 0, "blocks": blocks, "spec": spec,
                                  "about": {"data": "planted songs", "detector": {}, "synthesised": True}})
    for block in blocks:
        store.write(block, results[block.id])
    store.close()
    return folder


def told(folder, experiment="all"):
    return json.loads(veracity_run.report(folder, True, experiment))


def verdicts(folder, experiment="all"):
    return {(one["where"], one["said"][:16]): one for one in told(folder, experiment)["claims"]}


def cell(found, section, signal, direction):
    return next(one for one in found[section]["cells"] if (one["signal"], one["direction"]) == (signal, direction))


def test_flips_at_three_and_along_the_curve_are_those_of_a_count(tmp_path):
    need = {("waveform", "no sing"): 2, ("waveform", "sing"): 9, ("magnitude", "no sing"): 3, ("magnitude", "sing"): 20}
    found = told(planted(tmp_path / "run", lambda rng, signal, direction, song, slot:
                         trial(rng, need[signal, direction] if song < 6 else 20, 5)))
    for (signal, direction), k in need.items():
        one = cell(found, "flips", signal, direction)
        assert one["rates"]["lime"]["value"] == pytest.approx(0.75 if k <= 3 else 0)
        assert one["rates"]["lime"] | {"n": 40, "sources": 8} == one["rates"]["lime"]
        expected = [1.0 if at == 20 else 0.75 * (at >= k) for at in range(1, 21)]
        assert one["curves"]["lime"]["value"] == pytest.approx(expected)
        assert one["curves"]["random"]["value"] == pytest.approx(np.arange(1, 21) / 20)
        assert one["enough"] == {"lime": 20, "magnitude": 5, "oracle": 2}
    assert cell(found, "flips", "waveform", "no sing")["above"] == 15  # from 5 to 19 the norm flips all
    assert cell(found, "flips", "waveform", "no sing")["below"] == 3  # from 2 to 4 LIME alone flips some


def test_songs_not_excerpts_are_counted(tmp_path):
    def half(rng, signal, direction, song, slot):
        return trial(rng, 1 if song % 2 else 20)

    few, many = (cell(told(planted(tmp_path / str(each), half, each=each)), "flips", "waveform", "sing")["rates"]["lime"]
                 for each in (1, 8))
    assert (few["n"], many["n"]) == (8, 64)
    assert many["high"] - many["low"] >= 0.9 * (few["high"] - few["low"])


def test_the_papers_findings_hold_where_they_are_planted(tmp_path):
    """As in the papers: LIME flips late, finds little, is below the norm, and its fidelity says nothing."""
    def papers(rng, signal, direction, song, slot):
        return trial(rng, 19, 4, (0, 1, 1) if song % 5 else (1, 2, 2), fidelity=song // 5 % 8 / 8, fills=True, positive=(0, 1, 11))

    found = verdicts(planted(tmp_path / "run", papers, songs=80, each=1))
    for key in (("Table 1", "in most cases 3 "), ("Fig. 2", "segments chosen "), ("Table 2", "as many segments"),
                ("Fig. 3", "the one changed "), ("Fig. 3", "not all of the 3"), ("§ 4.4", "what hidden segm"),
                ("Fig. 4", "fidelity does no"), ("§ 4.3", "attacks on the w")):
        assert found[key]["verdict"] == "holds", key
    assert found["ours", "LIME’s segments "]["verdict"] == "does not hold"
    assert found["Fig. 1", "LIME finds what "]["verdict"] == "no data yet"


def test_the_papers_findings_do_not_hold_where_the_opposite_is_planted(tmp_path):
    def opposite(rng, signal, direction, song, slot):
        hit = (song + slot) % 2
        return trial(rng, 1, 10, (hit, 3, 5), fidelity=0.2 + 0.6 * hit + rng.normal(0, 0.02), positive=(1, 0, 6))

    found = verdicts(planted(tmp_path / "run", opposite, songs=40, each=2))
    for key in (("Table 1", "in most cases 3 "), ("Fig. 2", "segments chosen "), ("Table 2", "as many segments"),
                ("Fig. 3", "not all of the 3"), ("Fig. 4", "fidelity does no")):
        assert found[key]["verdict"] == "does not hold", key
    assert found["Fig. 3", "the one changed "]["verdict"] == "undecided"  # half of them are
    assert found["ours", "LIME’s segments "]["verdict"] == "holds"
    assert found["Fig. 4", "fidelity does no"]["tests"]["all"]["value"] == pytest.approx(0.7 - 1.0)


def test_contents_that_differ_are_called_so_and_few_excerpts_prove_nothing(tmp_path):
    def differs(rng, signal, direction, song, slot):
        made = trial(rng, 12, fills=slot == 0)
        if slot == 0:
            made["flip"]["any"]["lime:zero"] = bits(1)
            made["order"]["lime:zero"] = made["order"]["lime"][:3] + made["order"]["lime:zero"]
        return made

    folder = planted(tmp_path / "run", differs, songs=12, each=2)
    tests = verdicts(folder)["§ 4.4", "what hidden segm"]["tests"]
    assert tests["zero beside mean, flips at k = 3"]["call"] == "below"
    assert tests["zero beside mean, flips at k = 3"]["value"] == pytest.approx(1)
    assert tests["min beside mean, flips at k = 3"]["call"] == "undecided"  # all are alike, but they are few
    fills = told(folder)["contents"]
    assert fills["excerpts"] == 12 * 4  # those that were explained in each way
    assert fills["fills"]["zero"]["shared"]["value"] == pytest.approx(1)
    assert fills["fills"]["min"]["shared"]["value"] < 0.4


def test_recovery_counts_what_was_found_beside_chance(tmp_path):
    def some(rng, signal, direction, song, slot):
        return trial(rng, found=(song % 2, slot % 4, slot % 6), flipped=(song < 4, True, direction == "sing"))

    found = told(planted(tmp_path / "run", some, songs=6, each=4))
    one = cell(found, "recovery", "magnitude", "no sing")["k"]
    assert (one["1"]["n"], one["3"]["n"], one["5"]["n"]) == (16, 24, 0)
    assert one["1"]["counts"] == [8, 8]
    assert one["3"]["counts"] == [6, 6, 6, 6]
    assert one["3"]["all"]["value"] == pytest.approx(0.25)
    assert one["3"]["share"]["value"] == pytest.approx(0.5)
    for k in (1, 3, 5):
        assert one[str(k)]["random"] == pytest.approx(hypergeom(20, k, k).pmf(range(k + 1)))
    assert found["recovery"]["spectrogram"]["1"] == {"still": 32, "excerpts": 48}
    assert found["recovery"]["spectrogram"]["5"] == {"still": 24, "excerpts": 48}


def test_an_excerpt_that_was_not_found_still_counts_its_song_s_attack(tmp_path):
    found = told(planted(tmp_path / "run", lambda *args: None))
    assert found["attack"]["signals"]["waveform"]["success"]["value"] == pytest.approx(0.6)
    assert found["attack"]["signals"]["waveform"]["sing"]["value"] == pytest.approx(10 / 40)
    assert found["attack"]["signals"]["magnitude"]["no sing"]["value"] == pytest.approx(20 / 60)
    assert found["attack"]["signals"]["waveform"]["signal_to_noise"] == {"n": 8, "median": 23.5, "least": 20.0, "most": 27.0}
    assert found["attack"]["signals"]["waveform"]["at_floor"] == {"n": 0}
    floor = found["attack"]["signals"]["magnitude"]["at_floor"]
    assert (floor["n"], floor["median"], floor["most"]) == (8, pytest.approx(0.035), pytest.approx(0.07))
    assert found["attack"]["signals"]["magnitude"]["played"]["value"] == pytest.approx(0.035)  # 0 + 1 + … + 7 of 800 frames
    assert found["attack"]["signals"]["waveform"]["played"]["value"] == pytest.approx(0.6)
    assert "| 3.5 (0.0 to 7.0) |" in veracity_run.report(tmp_path / "run", False, "attack")
    assert {one["verdict"] for one in found["claims"] if one["experiment"] == "flips"} == {"no data yet"}
    assert "| “no sing” → “sing” (waveform) | – |" in veracity_run.report(tmp_path / "run", False, "positive")


def test_a_block_that_failed_is_counted_and_told(tmp_path):
    broken = Result({"case": "settling.000", "kind": "settling", "status": "failed", "error": "ValueError: too quiet"})
    planted(tmp_path / "run", lambda rng, *case: trial(rng), songs=2, each=1, more=[broken])
    assert "; 1 failed (the first: settling.000, ValueError: too quiet)" in veracity_run.report(tmp_path / "run")


def settling(number, top):
    sizes = [64 * 2**i for i in range(len(top))]
    return Result({"case": f"settling.{number:03d}", "kind": "settling", "song": f"song {number}", "status": "ok", "error": None,
                   "sizes": sizes, "repeats": [4] * len(top), "spread": [0.5] * len(top), "order": [0.5] * len(top), "top": top})


@pytest.mark.parametrize(("top", "enough"), [([0.2, 0.96, 0.9, 0.97, 1.0], 512), ([1.0, 1.0, 1.0], 64), ([0.5, 0.9], None)])
def test_enough_samples_are_those_from_which_on_explanations_agree(tmp_path, top, enough):
    found = told(planted(tmp_path / "run", lambda *args: None, songs=1, each=1, more=[settling(n, top) for n in range(3)]), "settling")
    assert found["settling"]["enough"] == enough
    text = veracity_run.report(tmp_path / "run", False, "settling")
    assert (f"from {enough:,} samples on" if enough else "from more than 128 samples on") in text


def test_stable_explanations_of_enough_songs_are_called_so(tmp_path):
    for name, top, verdict in (("stable", 1.0, "holds"), ("shaky", 0.5, "does not hold")):
        more = [settling(n, [0.3, top]) for n in range(30)]
        made = verdicts(planted(tmp_path / name, lambda *args: None, songs=1, each=1, more=more), "settling")
        assert {one["verdict"] for one in made.values()} == {verdict}


def test_the_setting_that_turns_the_most_frames_is_the_best_one(tmp_path):
    turned = {0.005: 10, 0.01: 70}
    more = [Result({"case": f"tuning.waveform.{i:03d}", "kind": "tuning", "status": "ok", "error": None, "signal": "waveform",
                    "settings": {"epsilon": epsilon, "step": 0.0003, "alpha": 2.0}, "variant": "authors", "songs": 2, "frames": 100,
                    "flipped": flipped, "sung": 50, "sung_flipped": 5, "signal_to_noise": 20.0})
            for i, (epsilon, flipped) in enumerate(turned.items())]
    planted(tmp_path / "run", lambda *args: None, songs=1, each=1, more=more)
    found = told(tmp_path / "run", "tuning")["tuning"]["signals"]
    assert found["waveform"]["best"]["epsilon"] == 0.01
    assert found["magnitude"]["best"] is None
    text = veracity_run.report(tmp_path / "run", False, "tuning")
    assert "| 0.01 | 0.0003 | 2 | 70.0 | 20.0 | most |" in text
    assert "No grid was tried for the spectrogram" in text


def drawing(number, hits, fidelity):
    return Result({"case": f"drawing.{number:03d}", "kind": "drawings", "song": f"song {number}", "status": "ok", "error": None,
                   "frame": 60, "shape": "wave", "tries": 3, "prediction_before": 0.1, "prediction": 0.9, "fidelity": fidelity,
                   "order": list(range(20)), "touched": [0, 1, 2, 3, 4], "share": [0.2] * 5 + [0.0] * 15, "hits": hits,
                   "hits_before": 1, "order_before": list(range(20)), "expected": 0.75}, {"clean": np.zeros((115, 80)), "drawn": np.ones((115, 80))})


def test_drawings_that_are_found_with_high_fidelity_are_called_so_and_others_not(tmp_path):
    for name, hits, fidelity, verdict in (("found", 3, 0.9, "holds"), ("missed", 0, 0.1, "does not hold")):
        more = [drawing(n, hits, fidelity) for n in range(20)]
        folder = planted(tmp_path / name, lambda rng, *case: trial(rng, fidelity=0.5), songs=20, each=1, more=more)
        made = [one for one in told(folder)["claims"] if one["experiment"] == "drawings"]
        assert [one["verdict"] for one in made] == [verdict] * 3
        found = told(folder)["drawings"]
        assert found["found"]["value"] == pytest.approx(hits / 3)
        assert found["expected"]["value"] == pytest.approx(0.25)
        assert found["before"]["value"] == pytest.approx(1 / 3)
        assert found["covered"]["value"] == pytest.approx(0.6)


def test_a_run_of_which_nothing_is_done_is_reported_too(tmp_path):
    folder = planted(tmp_path / "run", lambda rng, *case: trial(rng), songs=1, each=1)
    for path in (folder / "records").glob("*.jsonl"):
        path.unlink()
    assert "0 of 4 cases are done, 4 are not" in veracity_run.report(folder)
    assert {one["verdict"] for one in told(folder)["claims"]} == {"no data yet"}


# --- a number that may tell hits from misses ---------------------------------------------------------------------------


def test_the_area_is_that_of_mann_and_whitney(rng):
    values, hits = rng.normal(size=60).round(1), (rng.random(60) < 0.4).astype(float)
    found = told_apart(values, hits, [f"song {i % 12}" for i in range(60)])
    expected = mannwhitneyu(values[hits == 1], values[hits == 0]).statistic / (hits.sum() * (1 - hits).sum())
    assert found.value == pytest.approx(expected)
    assert found.sources == 12


def test_where_each_case_is_a_source_the_interval_is_hardly_wider_than_for_independent_cases(rng):
    values, hits = rng.normal(size=80), (rng.random(80) < 0.5).astype(float)
    alone, plain = told_apart(values, hits, list(range(80))), stats.auc(values[hits == 1], values[hits == 0])
    assert alone.low <= plain.low
    assert plain.high <= alone.high
    assert alone.high - alone.low <= 1.1 * (plain.high - plain.low)


def test_copies_of_a_case_are_no_more_evidence(rng):
    values, hits = rng.normal(size=24), np.tile([1.0, 0.0], 12)
    values += hits  # some difference, so that the interval is not of .5 alone
    one = told_apart(values, hits, list(range(24)))
    ten = told_apart(np.repeat(values, 10), np.repeat(hits, 10), np.repeat(np.arange(24), 10).tolist())
    assert ten.value == pytest.approx(one.value)
    assert ten.high - ten.low >= 0.85 * (one.high - one.low)
    plain = stats.auc(np.repeat(values[hits == 1], 10), np.repeat(values[hits == 0], 10))
    assert ten.high - ten.low > 2 * (plain.high - plain.low)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.floats(0, 1), st.sampled_from([0.0, 1.0, float("nan")]), st.integers(0, 5)), min_size=1, max_size=30))
def test_an_area_lies_within_its_interval(cases):
    values, hits, sources = (np.array(column) for column in zip(*cases, strict=True))
    found = told_apart(values, hits, sources.tolist())
    if found is None:
        assert not {0.0, 1.0} <= set(hits.tolist())
    else:
        assert 0 <= found.low <= found.value <= found.high <= 1


@pytest.mark.parametrize("of_hits", [1, 2, 3, 8])
def test_hits_of_few_songs_say_little_of_other_songs(of_hits):
    """Songs differ, and fidelity does not know hits from misses: few intervals may leave the coin out."""
    missed = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        songs = np.repeat(np.arange(16), 10)
        hits = ((songs < of_hits) & (rng.random(160) < 0.5)).astype(float)
        found = told_apart(rng.normal(size=16)[songs] + rng.normal(size=160), hits, songs.tolist())
        missed += not found.low <= 0.5 <= found.high
    assert missed <= 20


def test_hits_and_misses_that_are_apart_count_songs_not_excerpts():
    values, hits = np.repeat([1.0, 0.0], 30), np.repeat([1.0, 0.0], 30)
    assert (told_apart(values, hits, ["a"] * 30 + ["b"] * 30).low, told_apart(values, hits, list("abcdef") * 10).value) == (0, 1)
    few, many = (told_apart(values, hits, [i % songs for i in range(60)]) for songs in (3, 30))
    assert few.low < many.low < few.high == many.high == 1


def test_a_small_difference_of_contents_is_not_against_little_difference(tmp_path):
    def close(rng, signal, direction, song, slot):
        made = trial(rng, 12, fills=True)
        made["flip"]["any"]["lime:zero"] = bits(11 if song % 2 else 12)  # a half of a nineteenth, on average
        return made

    test = verdicts(planted(tmp_path / "run", close, songs=40, each=1))["§ 4.4", "what hidden segm"]["tests"]["zero beside mean, mean over k"]
    assert test["p_holm"] < 0.01
    assert test["call"] != "below"


def test_a_song_that_is_sung_throughout_is_no_drawing_that_failed(tmp_path):
    nothing = {"case": "drawing.000", "kind": "drawings", "song": "song 0", "status": "not found", "error": None, "frame": None}
    folder = planted(tmp_path / "run", lambda *given: None, songs=2, each=1, more=[Result(nothing, {})])
    assert {name: told(folder)["drawings"][name] for name in ("tried", "sung", "turned")} == {"tried": 0, "sung": 1, "turned": 0}
