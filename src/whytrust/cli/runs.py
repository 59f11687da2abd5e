"""`whytrust audit` and what is done with its runs: `report`, `gate`, `plan`, `diff`."""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, NamedTuple

from whytrust import auditing, integrity, stats
from whytrust.cli import explaining
from whytrust.cli.engines import add_engine_options, chosen
from whytrust.cli.screen import complain
from whytrust.fooling import Fooled, is_fooled
from whytrust.judging import Tried, is_metrics
from whytrust.picking import is_pick
from whytrust.progress import duration
from whytrust.report import compare, gates
from whytrust.report.audit import Audit
from whytrust.report.export import export
from whytrust.shards import NAME
from whytrust.store import Store
from whytrust.studies import reproductions, spec
from whytrust.studies.presets import PRESETS
from whytrust.trusting import Trust, is_trust


def add_to(commands: Any) -> None:
    """The commands and their options."""
    audit = commands.add_parser("audit", help="put explanations of a model on trial, and get a verdict on each explainer")
    audit.add_argument("spec", metavar="SPEC", help=f"a preset ({', '.join(PRESETS)}) or a .toml file")
    audit.add_argument("--out", help="the run's folder (default runs/NAME)")
    add_engine_options(audit)
    audit.add_argument("--seed", type=int, help="outweighs the spec's")
    audit.add_argument("--limit", type=int, help="so many inputs, evenly spread; outweighs the spec's")
    audit.add_argument("--explainers", metavar="A,B,C",
                       help="instead of the spec's, also file.py:attribute; all13 for the thirteen of Hoedt et al.")
    audit.add_argument("--keep", choices=("maps", "scores"), help="what is kept of each input: maps, for pictures (the "
                       "default), or scores alone; outweighs the spec's")
    audit.add_argument("--dry-run", action="store_true", help="work on the first input or a stretch of the first song, and "
                       "keep nothing: how many model calls, and about how long, would all of it take?")
    audit.add_argument("--device", help="where the model runs, such as cpu or cuda")
    audit.add_argument("--trust-pickle", action="store_true", help="read the model even if it is a pickle (runs any code)")
    audit.set_defaults(run=_audit)
    report = commands.add_parser("report", help="the verdicts of a run, and its page")
    report.add_argument("folder", metavar="RUN")
    report.add_argument("--html", help="write the page here")
    report.set_defaults(run=_report)
    check = commands.add_parser("check", help="is every byte of a run as it was written? exit 0 it is, 1 something is damaged")
    check.add_argument("folder", metavar="RUN")
    check.set_defaults(run=_check)
    export = commands.add_parser("export", help="a run's numbers as one table, for other tools")
    export.add_argument("folder", metavar="RUN")
    export.add_argument("table", metavar="TABLE.parquet")
    export.set_defaults(run=_export)
    gate = commands.add_parser("gate", help="does a run meet a requirement? exit 0 it does, 1 it does not, 2 it cannot tell, "
                                             "or is not finished")
    gate.add_argument("folder", metavar="RUN")
    gate.add_argument("--require", action="append", required=True, metavar="RULE",
                      help="such as 'lime.flip@3 > random' or 'lime.recovery > 0.5'; may be given several times")
    gate.set_defaults(run=_gate)
    plan = commands.add_parser("plan", help="how many inputs a verdict needs")
    plan.add_argument("--effect", type=float, default=0.05, help="the difference of rates that must be found (default .05)")
    plan.add_argument("--power", type=float, default=0.8, help="how often it must be found (default .8)")
    plan.add_argument("--discordant", type=float, help="share of inputs on which the two differ at all (default: several)")
    plan.add_argument("--tests", type=int, default=1, help="comparisons that share the 5 %% (explainers × baselines)")
    plan.set_defaults(run=_plan)
    diff = commands.add_parser("diff", help="two runs, or two saved explanations of the same parts, side by side")
    diff.add_argument("first", metavar="FIRST", help="a run's folder, or an explanation saved as .json")
    diff.add_argument("second", metavar="SECOND")
    diff.add_argument("--out", help="explanations: write an .html, .png or .json file with both and their difference")
    diff.set_defaults(run=_diff)


def _audit(options: argparse.Namespace) -> int:
    changes = {key: getattr(options, key) for key in ("seed", "limit", "keep") if getattr(options, key) is not None}
    if options.explainers is not None:
        changes["explainers"] = spec.listed(options.explainers, options.spec)
    study = spec.load(options.spec, changes, options.dry_run, trust_pickle=options.trust_pickle, device=options.device)
    folder = options.out or f"runs/{_name(options.spec)}"
    if options.dry_run:
        expected = auditing.estimate(study, chosen(options))
        print(json.dumps(expected) if options.json else _expectation(expected))
        return 0
    words = ["whytrust", "audit", options.spec, "--out", str(folder), *(f"--{k}={v}" for k, v in changes.items()
                                                                        if k != "explainers")]
    words += [f"--explainers={options.explainers}"] if options.explainers is not None else []
    study = replace(study, command=shlex.join(words))
    try:
        found = auditing.run(study, folder, chosen(options))
    except KeyboardInterrupt:
        complain(f"interrupted; {safe(folder)}")
        return 130
    page = found.save_html(Path(folder) / "report.html")
    if options.json:
        print(json.dumps(found.to_json()))
    else:
        print(f"{found}\nThe page with pictures: {page.resolve()}")
    return 1 if found.findings["counts"]["failed"] else 0


def _name(spec: str) -> str:
    """What a run is called that was given no folder."""
    name = Path(spec).stem
    if not NAME.fullmatch(name):
        raise ValueError(f"a run is called as its spec, and {name!r} is no name of letters, digits, _ . -; say --out FOLDER")
    return name


def safe(folder: str) -> str:
    """What is left of a run that was interrupted."""
    if not (Path(folder) / "manifest.json").is_file():
        return "nothing had been done yet"
    return f"{Store.open(folder).kept()} in {folder}, and the same command goes on from there"


def _expectation(expected: dict[str, Any]) -> str:
    jobs = f"{expected['jobs']} job{'s' if expected['jobs'] > 1 else ''}"
    failed = f", {expected['failed']} failed" if expected["failed"] else ""
    tried = "input" if expected["tried"] == 1 else f"{expected['tried']} inputs"
    inputs = f"{expected['inputs']} input{'s' if expected['inputs'] > 1 else ''}"
    costs = f"fooled: {expected['fooled']}{failed}; an input that is not fooled costs less"
    if expected["brief"]:
        inputs = f"up to {inputs}"
        costs = f"of a stretch of one song{failed}; all are taken as fooled, and one that is not costs less"
    first = f" Before that, {expected['training']}." if expected["training"] else ""
    return (f"{inputs} in blocks of up to {expected['block']}: about {expected['calls']:,} model calls and "
            f"{duration(max(expected['seconds'], 1))} with {jobs}, judging by the first {tried} ({costs}, one on which "
            f"more trials of recovery are possible costs more).{first} Nothing was written.")


def _report(options: argparse.Namespace) -> int:
    folder = Path(options.folder)
    reproduced = reproductions.report_of(folder)
    if reproduced is not None:
        print(reproduced(folder, options.json, "all"))
        return 0
    kind = _kind(folder)
    if kind is not None and kind.opens is None:
        raise ValueError(f"a report is for runs that have one, and {folder} is one of {kind.name}; {kind.advice}")
    found: Any = Audit.open(folder) if kind is None else kind.opens.open(folder)
    if options.html:
        page_place(Path(options.html))
        print(found.save_html(options.html), file=sys.stderr if options.json else sys.stdout)
    if options.json:
        print(json.dumps(found.to_json()))
    elif not options.html:
        print(found)
    return 0


def _check(options: argparse.Namespace) -> int:
    folder = Path(options.folder)
    parts = [] if (folder / "manifest.json").exists() else sorted(path.parent for path in folder.rglob("manifest.json"))
    found = {str(one): integrity.check(Store.open(one)) for one in parts or [folder]}  # a paper's run is several
    if options.json:
        print(json.dumps({name: asdict(one) for name, one in found.items()}))
    else:
        print("\n".join(f"{name}: {one}" if parts else str(one) for name, one in found.items()))
    return 1 if any(one.damaged for one in found.values()) else 0


def _export(options: argparse.Namespace) -> int:
    store = Store.open(options.folder)
    rows = export(store, options.table)
    for problem in store.problems:
        complain(problem)
    print(json.dumps({"table": options.table, "rows": rows}) if options.json else f"{options.table}: {rows:,} rows")
    return 0


class _Kind(NamedTuple):
    """What made a run, what opens it (None where nothing does), and what to do instead of what is for audits."""

    name: str
    opens: Any
    advice: str


def _kind(folder: str | Path) -> _Kind | None:
    """What kind of run is in a folder; None where it is an audit's."""
    if is_pick(folder):
        again = f"give its command again, `whytrust pick … --run {folder} --out pick.html`, which makes its page"
        return _Kind("wt.pick", None, again)
    kinds = (("wt.trust", Trust, is_trust), ("wt.fool", Fooled, is_fooled), ("wt.metrics", Tried, is_metrics))
    return next((_Kind(name, form, f"see `whytrust report {folder}`") for name, form, is_one in kinds if is_one(folder)), None)


PAPER = _Kind("a paper's", reproductions.report_of, "see `whytrust report`")


def page_place(path: Path) -> None:
    """Refuse a page that could not be written."""
    if path.suffix.lower() not in (".html", ".htm") or not path.parent.is_dir():
        raise ValueError(f"--html must name an .html file in a folder that exists, got {str(path)!r}")


def _gate(options: argparse.Namespace) -> int:
    if reproductions.report_of(options.folder) is not None:
        raise ValueError(f"a gate is for the run of an audit, and {options.folder} is a paper's, whose findings are tested "
                         "already; see `whytrust report`")
    kind = _kind(options.folder)
    if kind is not None:
        raise ValueError(f"a gate is for the run of an audit, and {options.folder} is one of {kind.name}; {kind.advice}")
    store = Store.open(options.folder)
    results = gates.check(store, options.require)
    for problem in store.problems:
        complain(problem)
    if options.json:
        print(json.dumps([one.to_json() for one in results]))
    else:
        print("\n".join(f"{one.text}: {one.words}" for one in results))
    return gates.exit_code(results)


def _plan(options: argparse.Namespace) -> int:
    shares = [options.discordant] if options.discordant is not None else [s for s in (0.1, 0.25, 0.5) if s >= options.effect]
    shares = shares or [options.effect]
    found = {share: stats.plan(options.effect, options.power, share, options.tests) for share in shares}
    if options.json:
        print(json.dumps({"effect": options.effect, "power": options.power, "tests": options.tests,
                          "inputs": {str(share): n for share, n in found.items()}}))
        return 0
    many = f", with the 5 % shared among {options.tests} tests" if options.tests > 1 else ""
    print(f"To find a difference of {options.effect:g} between two rates {options.power:.0%} of the time{many}:")
    for share, n in found.items():
        print(f"  {n:>6,} adversaries, where the two differ on {share:.0%} of the inputs")
    print("Count only inputs that are fooled, and inputs from one source as little more than one.")
    return 0


def _diff(options: argparse.Namespace) -> int:
    if not Path(options.first).is_dir() and not Path(options.second).is_dir():
        return explaining.diff(options)
    for folder in (options.first, options.second):
        kind = PAPER if reproductions.report_of(folder) is not None else _kind(folder)
        if kind is not None:
            pages = "`whytrust report FOLDER --html page.html`" if kind.opens is not None else kind.advice
            raise ValueError(f"diff is for two runs of audits, or two saved explanations, and {folder} is one of {kind.name}; "
                             f"lay their pages side by side: {pages}")
    found = compare.compared(Store.open(options.first), Store.open(options.second))
    print(json.dumps(found) if options.json else compare.told(found))
    return 0
