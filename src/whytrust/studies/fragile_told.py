"""What runs of fragile explanations have found, in tables and sentences, with the published numbers beside ours."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from whytrust import stats
from whytrust.store import plain
from whytrust.studies import fragile_published as published
from whytrust.studies import fragile_twins
from whytrust.studies.fragile_findings import number
from whytrust.studies.fragile_tables import MOST_CHANGED, OBJECTIVES, SPANS, WHOLE, Run, summary
from whytrust.studies.trust_findings import p_words
from whytrust.swapping.search import RANDOM

EXPLAINERS = {"integrated_gradients": "integrated gradients", "lime": "LIME"}
CHOSEN = {"l2": "L2", "lom": "ΔLOM", RANDOM: "random"}
CALLED = {"rank": "rank correlation, clipped at 0", "top": "overlap of the top halves (top-50 %)",
          "raw": "rank correlation, not clipped"}
KINDS = ("rank", "top", "perplexity", "confidence", "grammar")
"""What tables there are; figures are drawn apart from them."""
QUALITIES = {"perplexity": ("perplexity",), "grammar": ("error_difference", "new_errors", "similarity")}
Found = Mapping[str, Any]
Table = dict[str, Any]


def findings(runs: Sequence[Run], kinds: Sequence[str] = KINDS) -> dict[str, Any]:
    """All that the runs have found so far: plain data, with tables and sentences for a reader."""
    each = {run.key: summary(run) for run in runs}
    found = list(each.values())
    failures = [{"case": f"{run.key} {record['case']}", "error": record["error"]} for run in runs for record in run.records
                if record["status"] == "failed"]
    pairs = [(pair, _where(pair.plain.dataset, pair.plain.explainer)) for pair in fragile_twins.twins(runs)]
    data = {
        "experiment": "fragile", "paper": published.CITATION,
        "question": "A few words are swapped for others that mean much the same, and the model decides as before. Does its "
                    "explanation stay the same?",
        "answer": [*(_said(one) for one in found if one["texts"]["ok"]), *(fragile_twins.said(*pair, CHOSEN) for pair in pairs)]
                  or ["Nothing can be said yet."],
        "tables": [*_tables(found, kinds), *(fragile_twins.table(*pair, CHOSEN) for pair in pairs if "rank" in kinds)],
        "twins": [{"dataset": pair.plain.dataset, "explainer": pair.plain.explainer, "model": pair.plain.model,
                   "twin": pair.twin.model, "rows": pair.compared()} for pair, _ in pairs],
        "charts": [], "notes": _notes(runs, found),
        "cases": {"done": sum(one["texts"]["tried"] for one in found), "of": sum(one["texts"]["of"] for one in found),
                  "failed": len(failures)},
        "failures": failures, "runs": each,
        "settings": {run.key: {"seed": run.manifest["seed"], **run.manifest["spec"], **run.manifest["about"]} for run in runs}}
    return dict(plain(data))


def _tables(found: Sequence[Found], kinds: Sequence[str]) -> Iterator[Table]:
    groups: dict[tuple[str, str], list[Found]] = {}
    for one in found:
        groups.setdefault((one["dataset"], one["explainer"]), []).append(one)
    for (dataset, explainer), some in groups.items():
        for measure in ("rank", "top"):
            if measure in kinds:
                yield _agreement(dataset, explainer, measure, some)
                yield _beside(dataset, explainer, measure, some)
        if "rank" in kinds:
            yield _blame(dataset, explainer, some)
            yield _simple(dataset, explainer, "raw", some)
            if not all(one["deterministic"] for one in some):
                yield _as_seen(dataset, explainer, some)
    for kind, whats in QUALITIES.items():
        if kind in kinds and any(one["quality"] for one in found):
            yield from (_quality(found, what) for what in whats)
    if "confidence" in kinds:
        yield _confidence(found)


# --- cells ----------------------------------------------------------------------------------------------------------------


def _cell(one: Found | None) -> str:
    """Mean ± standard deviation (95 % interval; texts)."""
    if one is None:
        return "–"
    spread = "" if one["sd"] is None else f" ± {number(one['sd'])}"
    return f"{number(one['mean'])}{spread} ({number(one['low'])} to {number(one['high'])}; {one['texts']:,})"


def _test(one: Found | None) -> str:
    if one is None:
        return "–"
    reach = f"{number(one['low'], True)} to {number(one['high'], True)}"
    return f"{number(one['value'], True)} ({reach}), {'undecided' if one['p'] > stats.LEVEL else p_words(one['p'])}"


def _where(dataset: str, explainer: str) -> str:
    return f"{published.TITLES.get(dataset, dataset)}, {EXPLAINERS.get(explainer, explainer)}"


def _called(one: Found) -> str:
    return f"{_where(one['dataset'], one['explainer'])}, {one['model']}"


def _rows(some: Sequence[Found], names: Sequence[str], spans: int, cells: Callable[[Found, str, int], list[str]],
          theirs: Callable[[str, int], list[str]] = lambda name, span: []) -> list[list[str]]:
    """A row for each share of words and each way of choosing: cells of every model, then the published ones."""
    return [[SPANS[span], CHOSEN[name], *(cell for one in some for cell in cells(one, name, span)), *theirs(name, span)]
            for span in range(spans) for name in names]


# --- Tables 1 to 4 and 8 to 13 ----------------------------------------------------------------------------------------------


def _agreement(dataset: str, explainer: str, measure: str, some: Sequence[Found]) -> Table:
    table = published.table_of(dataset, explainer, measure)
    models = published.MODELS if table is not None else ()

    def theirs(name: str, span: int) -> list[str]:
        return [number(table.value(model, name, span)) if table is not None and span < WHOLE else "–" for model in models]

    rows = _rows(some, (*OBJECTIVES, RANDOM), len(SPANS), lambda one, name, span: [_cell(one["cells"][measure][name][span])],
                 theirs)
    steady = ["1, for it draws nothing" if one["deterministic"] else _cell(one["noise"][measure]) for one in some]
    again = ["none", "the same text again", *steady, *("–" for _ in models)]
    about = ("Mean ± standard deviation over levels (95 % interval by text; texts). Each text counts with every number of "
             "words swapped. Judged under fresh masks; random is the mean over draws, its deviation that of single draws. "
             + ("" if table is not None else "Nothing was published of these. ")
             + (table.oddity if table is not None else ""))
    head = f"Table {table.number}" if table is not None else "Not in the paper"
    return {"title": f"{head}: {_where(dataset, explainer)}, {CALLED[measure]}", "rows": [*rows, again],
            "columns": ["words swapped", "chosen by", *(one["model"] for one in some), *(f"{m}, published" for m in models)],
            "about": about.strip()}


def _simple(dataset: str, explainer: str, measure: str, some: Sequence[Found]) -> Table:
    rows = _rows(some, (*OBJECTIVES, RANDOM), len(SPANS), lambda one, name, span: [_cell(one["cells"][measure][name][span])])
    return {"title": f"{_where(dataset, explainer)}, {CALLED[measure]}", "rows": rows,
            "columns": ["words swapped", "chosen by", *(one["model"] for one in some)],
            "about": "As above, with correlations below 0 as they are: clipping lifts means, the more the lower they are."}


def _beside(dataset: str, explainer: str, measure: str, some: Sequence[Found]) -> Table:
    def cells(one: Found, name: str, span: int) -> list[str]:
        below = one["below"][measure]
        return [_test(below[against][name][span] if name in below[against] else None) for against in ("chance", "noise")]

    columns = [column for one in some for column in (f"{one['model']}: than after random swaps",
                                                     f"{one['model']}: than the same text again")]
    return {"title": f"{_where(dataset, explainer)}: how much less explanations agree than …, {measure}",
            "columns": ["words swapped", "chosen by", *columns], "rows": _rows(some, (*OBJECTIVES, RANDOM), len(SPANS), cells),
            "about": "Paired by text and number of words swapped (95 % interval by text), p after Holm's correction over the "
                     "column. Above 0 swaps that were chosen change explanations more. A drop that random swaps or the "
                     "explainer's own noise bring about as well is no fragility that the attack has found."}


def _blame(dataset: str, explainer: str, some: Sequence[Found]) -> Table:
    def cells(one: Found, name: str, span: int) -> list[str]:
        model, said = one["model_agreement"][name][span], one["cells"]["rank"][name][span]
        both = "–" if model is None or said is None else f"{number(said['mean'])}; {number(model['mean'])}"
        return [both, _test(one["below_model"][name][span])]

    columns = [column for one in some for column in (f"{one['model']}: explanation; model", "difference")]
    return {"title": f"{_where(dataset, explainer)}: is it the explanation that changed, or the model?",
            "columns": ["words swapped", "chosen by", *columns],
            "rows": _rows(some, (*OBJECTIVES, RANDOM), len(SPANS), cells),
            "about": "Rank correlations, clipped at 0: of the explanations before and after, and of how far the model's own "
                     "score falls without each word, before and after. Where both fall alike the model reasons otherwise, and "
                     "an explanation that says so is right; what it falls further is the explainer's."}


def _as_seen(dataset: str, explainer: str, some: Sequence[Found]) -> Table:
    def cells(one: Found, name: str, span: int) -> list[str]:
        seen, judged = one["seen"]["rank"][name][span], one["cells"]["rank"][name][span]
        return ["–" if seen is None or judged is None else f"{number(seen['mean'])}; {number(judged['mean'])}"]

    return {"title": f"{_where(dataset, explainer)}: as the attack saw it; as judged under fresh masks, rank correlation",
            "columns": ["words swapped", "chosen by", *(one["model"] for one in some)],
            "rows": _rows(some, OBJECTIVES, len(SPANS), cells),
            "about": "The attack compares candidates under the same masks as the original, so that it sees a drop without "
                     "noise; judged anew, the explainer's noise comes on top, as it would for a reader."}


# --- Tables 5 to 7 ----------------------------------------------------------------------------------------------------------

_ORDER = ("original", "candidates", "lom", "l2", RANDOM)
_HEADS = {"original": "originals", "candidates": "all candidates", "lom": "ΔLOM", "l2": "L2", RANDOM: "random"}
_TITLES = {
    "perplexity": "Table 5: perplexity (lower is more fluent)",
    "error_difference": "Table 7: grammar errors more or fewer than in the original",
    "new_errors": "Not in the paper: new grammar errors", "similarity": "Not in the paper: likeness of meaning to the original"}


def _quality(found: Sequence[Found], what: str) -> Table:
    columns = [name for name in _ORDER if what == "perplexity" or name != "original"]
    rows = []
    for one in (one for one in found if one["quality"]):
        values = one["quality"][what]
        rows.append([_called(one), *(_wide(values[name]) for name in columns)])
    for dataset in dict.fromkeys(one["dataset"] for one in found):
        rows += _published_quality(dataset, what, columns)
    by = {"perplexity": " Published: by a small GPT-2.", "error_difference": " Published: by LanguageTool."}.get(what, "")
    return {"title": _TITLES[what], "columns": ["", *(_HEADS[name] for name in columns)], "rows": rows,
            "about": "Mean (95 % interval by text; median) over all levels; of all candidates a few of each level stand for "
                     f"the rest. Another judge gives other numbers: compare along a row, not down a column.{by}"}


def _published_quality(dataset: str, what: str, columns: Sequence[str]) -> list[list[str]]:
    tables = {"perplexity": published.PERPLEXITY, "error_difference": published.GRAMMAR}.get(what, {})
    rows = []
    for model, (candidates, lom, l2) in tables.get(dataset, {}).items():
        told = {"original": published.ORIGINAL_PERPLEXITY.get(dataset), "candidates": candidates, "lom": lom, "l2": l2}
        rows.append([f"{published.TITLES[dataset]}, {model}, published",
                     *("–" if (value := told.get(name)) is None else f"{value:,.2f}" for name in columns)])
    return rows


def _wide(one: Found | None) -> str:
    """A number of any size with its interval and its median."""
    if one is None:
        return "–"
    reach = "" if one["low"] is None else f"{_figure(one['low'])} to {_figure(one['high'])}; "
    return f"{_figure(one['mean'])} ({reach}{_figure(one['median'])})"


def _figure(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def _confidence(found: Sequence[Found]) -> Table:
    told = {"attack": "chosen swaps", "attack, far": f"… texts with {MOST_CHANGED} of them",
            RANDOM: "random swaps", f"{RANDOM}, far": f"… texts with {MOST_CHANGED} of them"}
    rows = [[_called(one), words, *(_sure(cell) for cell in one["confidence"][who])] for one in found
            for who, words in told.items()]
    for dataset in dict.fromkeys(one["dataset"] for one in found):
        rows += [[f"{published.TITLES[dataset]}, {model}, published", "", *(number(value) for value in values)]
                 for model, values in published.CONFIDENCE.get(dataset, {}).items()]
    return {"title": "Table 6: the model's score of the label, by number of words swapped",
            "columns": ["", "", *(str(m) for m in range(MOST_CHANGED + 1))], "rows": rows,
            "about": "Mean (95 % interval by text; texts). The longer a text, the more of its words can be swapped: only texts "
                     f"that have {MOST_CHANGED} swaps are the same in every column."}


def _sure(one: Found | None) -> str:
    if one is None:
        return "–"
    reach = "" if one["low"] is None else f"{number(one['low'])} to {number(min(one['high'], 1.0))}; "
    return f"{number(one['mean'])} ({reach}{one['texts']:,})"


# --- words ------------------------------------------------------------------------------------------------------------------


def _said(one: Found) -> str:
    """One run in a sentence or two."""
    left, below = one["cells"]["rank"], one["below"]["rank"]
    chosen = " and ".join(f"{number(left[name][WHOLE]['mean'])} ({CHOSEN[name]})" for name in OBJECTIVES if left[name][WHOLE])
    by_chance = left[RANDOM][WHOLE]
    head = (f"{_called(one)}: over {one['texts']['ok']} texts and all shares of words explanations keep a rank correlation of "
            f"{chosen}")
    beside = "" if by_chance is None else f", with random swaps of as many words {number(by_chance['mean'])}"
    verdict = ". ".join(_call(CHOSEN[name], test) for name in OBJECTIVES if (test := below["chance"][name][WHOLE]) is not None)
    noise, model = one["noise"]["rank"], one["model_agreement"]
    own = [number(model[name][WHOLE]["mean"]) for name in OBJECTIVES if model[name][WHOLE]]
    steady = ("The explainer draws nothing, and says the same of the same text" if one["deterministic"] else
              f"Asked twice about the same text the explainer agrees with itself at {number(noise['mean'])}")
    return (f"{head}{beside}. {verdict or 'There is nothing random to hold it against'}. {steady}; the model's own answers "
            f"without each word keep {' and '.join(own)}.")


def _call(name: str, test: Found) -> str:
    """Does an objective change explanations more than chance?"""
    told = f"{number(test['value'], True)} ({number(test['low'], True)} to {number(test['high'], True)})"
    if test["p"] <= stats.LEVEL:
        what = "fragility above chance" if test["value"] > 0 else "less than chance does"
        return f"{name}: {what}, {told}, {p_words(test['p'])}"
    if stats.equivalent(stats.Difference(**test)) <= stats.LEVEL:
        return f"{name}: no fragility above chance, {told}, within {number(stats.MARGIN)}"
    return f"{name}: undecided whether above chance, {told}"


def _notes(runs: Sequence[Run], found: Sequence[Found]) -> list[str]:
    notes = [*GENERAL]
    notes += [table.oddity for table in published.TABLES
              if table.oddity and any((one["dataset"], one["explainer"]) == (table.dataset, table.explainer) for one in found)]
    for dataset, model in dict.fromkeys((run.dataset, run.model) for run in runs):
        there = {run.explainer for run in runs if (run.dataset, run.model) == (dataset, model)}
        if model.startswith("tfidf") and "integrated_gradients" not in there:
            notes.append(f"{published.TITLES.get(dataset, dataset)}, {model}: it has no gradients, and so no integrated "
                         "gradients; LIME alone.")
    notes += [words for one in found for words in _cautions(one)]
    notes += [_settings(run) for run in runs]
    return notes + [f"{run.key}: {problem}" for run in runs if run.store is not None for problem in run.store.problems]


GENERAL = (
    "Texts are in lower case, those of two words or fewer are dropped, and the first 500 are used (LIME on IMDB: 100), or the "
    "share of them that --scale says. LIME's scores are divided by their length (L2); the centre of mass (LOM) is over all "
    "positions, special tokens included where gradients are taken of a transformer.",
    "Our models are not the paper's, which were DistilBERT, RoBERTa and an adversarially trained BERT, and neither are "
    "candidates and judges of quality its counter-fitted vectors, GPT-2 and LanguageTool, unless the settings say so: "
    "published numbers stand beside ours to compare how they fall, not how high they are.",
    "The published tables have no intervals and no tests against random selection. Their authors' code followed the centre of "
    "mass of integrated gradients on every path and let L2, ΔLOM and chance choose from its candidates (variant 'authors'); "
    "otherwise each objective follows its own path here, as the paper's Algorithm 1 says.")
_STATUS = {"nothing to swap": "had nothing to swap", "failed": "failed",
           "wrong": "are not given their true label, which the authors' variant keeps"}


def _settings(run: Run) -> str:
    """How a run was set, in a line."""
    spec, about = run.manifest["spec"], run.manifest["about"]
    return (f"{run.key}: {about['inputs']} Candidates: {about['candidates']}; constraints: {', '.join(about['constraints'])}; "
            f"{spec['controls']} draws of random swaps; variant {spec['variant']}; texts judged by: "
            f"{about.get('quality') or 'nobody'}; {spec.get('victim', run.explainer)}")


def _cautions(one: Found) -> Iterator[str]:
    """What of a run is in no table, and where its objective measures something else."""
    left = [f"{one['texts'][status]} {words}" for status, words in _STATUS.items() if one["texts"][status]]
    if left:
        yield f"{_called(one)}: of {one['texts']['tried']} texts {', '.join(left)}; they are in no table."
    if (one["outside"] or 0) > 0.05:
        yield (f"{_called(one)}: scores have signs, and where they nearly cancel out their centre of mass lies outside of the "
               f"text, as in {one['outside']:.0%} of the originals: there ΔLOM measures cancellation more than place.")
