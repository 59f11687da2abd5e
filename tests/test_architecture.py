"""The shape of the code base, held by machine: imports point down, the public face is pinned."""

import ast
from pathlib import Path

import pytest

import whytrust

SOURCE = Path(whytrust.__file__).parent
MODULES = sorted(SOURCE.rglob("*.py"))
# Lower layers first; a module may import its own layer's unit and anything below, never above nor a sibling.
LAYERS = [
    {"legible", "limits", "logits", "memory"},
    {"checked"},
    {"core", "manifests"},
    {"batches", "files"},
    {"question"},
    {"views", "progress"},
    {"components", "coverage", "descriptors", "designs", "neighbours", "pictures", "saved", "shards", "stats", "surroundings"},
    {"folders"},
    {"journal", "packs"},
    {"store"},
    {"verdicts", "engine", "integrity"},
    {"moments", "explanation"},
    {"planting", "readers", "rehearsal", "surrogate"},
    {"local"},
    {"backends"},
    {"domains", "explainers", "attacks", "models", "measures", "report"},
    {"language"},
    {"features", "inputs", "lab", "swapping"},
    {"api", "picked"},
    {"loading", "attacking"},
    {"reporting", "studies"},
    {"auditing", "fooling", "judging", "picking", "trusting"},
    {"measuring"},
    {"retraining", "twinning", "universes"},
    {"", "cli", "compat", "demo"},
    {"__main__"},
]
LEVEL = {unit: level for level, units in enumerate(LAYERS) for unit in units}


def unit(path):
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return "" if parts == ("__init__",) else parts[0]


def imported(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "whytrust":
            names = node.module.split(".")
            yield from ([names[1]] if len(names) > 1 else [n.name if n.name in LEVEL else "" for n in node.names])
        elif isinstance(node, ast.Import):
            yield from ([*n.name.split("."), ""][1] for n in node.names if n.name.split(".")[0] == "whytrust")


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_imports_point_down(path):
    here = unit(path)
    for other in imported(path):
        above = LEVEL[other] >= LEVEL[here] and not (here in ("cli", "demo") and other == "")
        assert other == here or not above, f"{here} imports {other}"


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_torch_is_imported_only_where_it_belongs(path):
    names = {a.name for n in ast.walk(ast.parse(path.read_text())) if isinstance(n, ast.Import) for a in n.names}
    names |= {n.module for n in ast.walk(ast.parse(path.read_text())) if isinstance(n, ast.ImportFrom) and n.module}
    assert not any(n.split(".")[0] == "torch" for n in names)  # even there: through `need`, when it is used
    if 'need("torch"' in path.read_text():
        assert unit(path) in ("backends", "models")


def test_core_imports_numpy_alone():
    tree = ast.parse((SOURCE / "core.py").read_text() + (SOURCE / "checked.py").read_text().replace("from __future__", "#"))
    tops = {a.name.split(".")[0] for n in ast.walk(tree) if isinstance(n, ast.Import) for a in n.names}
    tops |= {n.module.split(".")[0] for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) and n.module}
    assert tops <= {"__future__", "collections", "contextlib", "dataclasses", "difflib", "hashlib", "importlib", "numpy", "re",
                    "typing", "whytrust", "zlib"}


def test_the_public_face_is_these_names():
    assert sorted(whytrust.__all__) == ["Attacked", "Audit", "Explanation", "Fooled", "Gallery", "Measured", "MissingExtra", "Multiverse", "Picked",
                                        "Retrained", "SomeFailed", "Tried", "Trust", "Twins", "attack", "audit", "explain", "fool", "measure", "methods", "metrics", "model", "multiverse", "pick", "roar", "trust", "twins"]


def test_importing_whytrust_loads_no_optional_library():
    import subprocess
    import sys
    code = ("import sys, whytrust; "
            "print([m for m in ('torch', 'transformers', 'onnxruntime', 'shap', 'skimage', 'PIL', 'matplotlib', 'soundfile', 'soxr') if m in sys.modules])")
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"
