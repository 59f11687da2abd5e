"""The documentation does what it says: its code runs, its output is what is printed, its tables are the program's own."""

import argparse
import ast
import contextlib
import dataclasses
import importlib
import io
import itertools
import re
import shlex
from dataclasses import dataclass
from pathlib import Path

import pytest

from whytrust import cli
from whytrust.explainers.lime import DEFAULTS, Lime

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = [p for p in (ROOT / "README.md", *sorted(DOCS.rglob("*.md"))) if "decisions" not in p.parts]
BLOCK = re.compile(r"(?P<skip><!-- not run: [^\n]+ -->\n)?^```(?P<kind>\w+)\n(?P<body>.*?)^```$", re.M | re.S)
NUMBER = re.compile(r"[-+−]?\d+(?:\.\d+)?")


@dataclass(frozen=True)
class Block:
    kind: str
    body: str
    line: int
    skip: bool
    output: str | None  # of the text block that follows at once


def blocks_of(page):
    text = page.read_text(encoding="utf-8")
    found = list(BLOCK.finditer(text))
    blocks = []
    for match, after in itertools.zip_longest(found, found[1:]):
        close = after is not None and after["kind"] == "text" and text[match.end():after.start()].strip() == ""
        line = text.count("\n", 0, match.start("body"))
        blocks.append(Block(match["kind"], match["body"], line, bool(match["skip"]), after["body"] if close else None))
    return blocks


def by_page(pages=PAGES):
    return pytest.mark.parametrize("page", pages, ids=lambda p: str(p.relative_to(ROOT)))


def same_output(printed, shown):
    """The same words, and numbers that are near: the last digits may differ from machine to machine."""
    assert NUMBER.sub("#", printed).split() == NUMBER.sub("#", shown).split(), f"printed:\n{printed}\nthe page shows:\n{shown}"
    pairs = zip(NUMBER.findall(printed), NUMBER.findall(shown), strict=True)
    values = [(float(a.replace("−", "-")), float(b.replace("−", "-"))) for a, b in pairs]
    far = [(a, b) for a, b in values if abs(a - b) > 0.02 + 0.1 * abs(b)]
    assert not far, f"printed {[a for a, _ in far]}, the page shows {[b for _, b in far]}"


@pytest.fixture
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def commands_of(block):
    """(command, the output shown below it), in order."""
    found = []
    for line in block.body.splitlines():
        if line.startswith("$ "):
            found.append([line[2:], ""])
        elif found:
            found[-1][1] += line + "\n"
    return found


@by_page()
def test_commands_exist(page):
    for block in blocks_of(page):
        for command, _ in commands_of(block) if block.kind == "console" else ():
            words = shlex.split(command, comments=True)
            if words[0] != "whytrust" or "--version" in words or "--help" in words:
                continue
            with contextlib.redirect_stderr(io.StringIO()) as errors:
                try:
                    cli._parser().parse_args(words[1:])
                except SystemExit:
                    pytest.fail(f"{page.name}: {command}: {errors.getvalue()}")


@by_page()
def test_page_runs(page, elsewhere):
    """Its Python and its commands, in the order of the page, in one namespace and one empty directory."""
    bring_data(page, elsewhere)
    namespace = {"__name__": "page"}
    for block in blocks_of(page):
        if block.kind == "python":
            # Lines are numbered as in the page, so that a traceback points into it.
            code = compile(ast.parse("\n" * block.line + block.body), str(page), "exec")
            if not block.skip:
                run_python(block, code, namespace, elsewhere)
        elif block.kind == "console" and not block.skip and page.parent == DOCS:
            run_commands(block)


def bring_data(page, folder):
    """Pages on data that may not be passed on say which; they run where it lies beside the project."""
    for name in re.findall(r"^<!-- data: (\w+) -->$", page.read_text(encoding="utf-8"), re.M):
        place = ROOT.parent / "shared" / "data" / name
        if not place.is_dir():
            pytest.skip(f"{page.name} is about {name}, which is not here")
        (folder / name).symlink_to(place)


def run_python(block, code, namespace, folder):
    named = re.match(r"# (\w+\.py)\n", block.body)
    if named:  # a file of the reader's own, for the commands that follow
        (folder / named[1]).write_text(block.body, encoding="utf-8")
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(code, namespace)
    if block.output is not None:
        same_output(printed.getvalue(), block.output)


def run_commands(block):
    for command, shown in commands_of(block):
        assert command.startswith("whytrust"), f"{command}: mark blocks of other commands as not run"
        printed, errors = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(errors):
            code = cli.main(shlex.split(command, comments=True)[1:])
        assert code == 0, f"{command}: exit {code}: {errors.getvalue()}"
        assert printed.getvalue().strip(), command
        if shown.strip():
            same_output(printed.getvalue(), shown)


def targets_of(page):
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    return re.findall(r"\]\(([^)\s]+)\)", text) + re.findall(r'src="([^"]+)"', text)


@by_page()
def test_links_resolve(page):
    for target in targets_of(page):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        linked = (page.parent / name).resolve() if name else page
        assert linked.exists(), f"{page.name} links to {target}"
        if anchor:
            heads = re.findall(r"^#+ (.+)$", linked.read_text(encoding="utf-8"), re.M)
            assert anchor in {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in heads}, target


def test_index_lists_every_page():
    listed = {target for target in targets_of(DOCS / "README.md") if "/" not in target}
    assert listed == {p.name for p in DOCS.glob("*.md")} - {"README.md"}


@by_page()
def test_pages_are_for_any_machine(page):
    text = page.read_text(encoding="utf-8")
    wrong = re.findall(r"(?<![\w.])(?:/(?:home|root|work|tmp|Users|usr|opt|var|mnt)/|[A-Z]:\\)\S*", text)
    assert not wrong, f"{page.name} names paths of a machine: {wrong}"


@by_page([p for p in PAGES if p.parent == DOCS])
def test_lines_are_not_long(page):
    long = [i for i, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1) if len(line) > 128]
    assert not long, f"{page.name} has lines over 128 characters: {long}"


# --- tables that must be the program's own ----------------------------------------------------------------------------


def table_after(text, mark):
    """The rows of the table that follows a mark, as lists of cells without code ticks; the header is the first row."""
    lines = text.partition(mark)[2].lstrip("\n").splitlines()
    assert lines, f"the page has no {mark}"
    start = next(i for i, line in enumerate(lines) if line.startswith("|"))
    end = next((i for i in range(start, len(lines)) if not lines[i].startswith("|")), len(lines))
    rows = [[cell.strip().replace("`", "") for cell in line.strip("|").split("|")] for line in lines[start:end]]
    return [rows[0], *rows[2:]]


@pytest.mark.parametrize("variant", DEFAULTS)
def test_table_of_defaults(variant):
    header, *rows = table_after((DOCS / "lime.md").read_text(encoding="utf-8"), f"<!-- defaults: {variant} -->")
    shown = {(domain, row[0]): cell for row in rows for domain, cell in zip(header[1:], row[1:], strict=True)}
    assert shown == {(domain, name): str(value) for domain, names in DEFAULTS[variant].items() for name, value in names.items()}


def test_table_of_other_options():
    _, *rows = table_after((DOCS / "lime.md").read_text(encoding="utf-8"), "<!-- other options -->")
    by_variant = set(next(iter(DEFAULTS["paper"].values())))
    assert {row[0]: row[1] for row in rows} == {
        f.name: str(f.default) for f in dataclasses.fields(Lime) if f.name not in by_variant}


def test_table_of_constants():
    _, *rows = table_after((DOCS / "lime.md").read_text(encoding="utf-8"), "<!-- constants -->")
    assert rows
    for name, value, _ in rows:
        module, _, constant = name.rpartition(".")
        assert float(value) == getattr(importlib.import_module(f"whytrust.{module}"), constant), name


def test_messages_exist():
    """Every message that the page of errors quotes is one that the code can give."""
    code = "\n".join(p.read_text(encoding="utf-8") for p in (ROOT / "src").rglob("*.py"))
    quoted = re.findall(r"^- `([^`]+)`:$", (DOCS / "errors.md").read_text(encoding="utf-8"), re.M)
    assert quoted
    for message in quoted:
        missing = [piece for piece in message.split("…") if piece.strip() not in code]
        assert not missing, f"no error says {missing[0]!r}"


def parsers():
    parser = cli._parser()
    (commands,) = (a for a in parser._actions if isinstance(a, argparse._SubParsersAction))
    return commands.choices


def test_page_has_every_command():
    text = (DOCS / "command-line.md").read_text(encoding="utf-8")
    assert re.findall(r"^## whytrust (\w+)$", text, re.M) == list(parsers())


@pytest.mark.parametrize("command", parsers())
def test_table_of_options(command):
    text = (DOCS / "command-line.md").read_text(encoding="utf-8")
    _, *rows = table_after(text, f"## whytrust {command}\n")
    actions = [a for a in parsers()[command]._actions if a.dest != "help"]
    assert [row[0].split()[0] for row in rows] == [a.option_strings[0] if a.option_strings else a.metavar for a in actions]
    for row, action in zip(rows, actions, strict=True):
        for choice in action.choices or ():
            assert choice in row[1], f"{row[0]} may be {choice}"

