"""From what a user writes, in Python or in a TOML file, to a study; what nobody knows is an error that names its neighbour."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from whytrust import files, loading
from whytrust import inputs as reading
from whytrust.attacks import CATALOGUE as ATTACKS
from whytrust.checked import CheckedModel, DifferentiableModel
from whytrust.core import LayeredParts, Parts, generator, near
from whytrust.measures import METRIC_NAMES, Flips, Recovery
from whytrust.measures import NAMES as TRIALS
from whytrust.measures.flips import BASELINES
from whytrust.studies import admitting, contenders, judged_cases, sounds, text_cases, text_swaps
from whytrust.studies.adversaries import ByGradient, NearestRow, Saved
from whytrust.studies.audit import BLOCK, AuditStudy
from whytrust.studies.data import Data, gather, is_sound, saved_adversaries, target_list
from whytrust.studies.described import described
from whytrust.studies.excerpts import EXCERPTS, OfSongs, brief, drawn, song_attack, songs_in
from whytrust.studies.metrics_cases import settings as settings_of
from whytrust.studies.presets import EXPLAINERS, OF_TEXTS, PRESETS, THIRTEEN, WITHOUT_GRADIENTS

KEYS = {
    "model": "MODEL as on the command line", "model_options": "options of wt.model", "inputs": "a folder, an .npy file, a .csv "
    "file with a background or a column of texts, a .txt file with a text a line, or demo",
    "column": "texts: the column of a .csv file that holds them", "limit": "so many inputs, evenly spread",
    "size": "images: pixels of the middle square",
    "resize": "images: pixels of the shorter side before that", "rate": "sounds: samples a second", "seconds": "sounds: their "
    "middle, so long", "explain_on": "input, or preprocessed: what the model's preprocess makes of it",
    "excerpts": "songs: how many excerpts of either answer from each", "groups": "folder, or a .txt file with a name an input",
    "labels": "a .txt file with a class an input", "parts": "as in explain", "fill": "what hidden parts show",
    "background": "a .csv file of training rows", "explainers": "names, file.py:attribute, or tables with a method and options",
    "attack": "a name, or a table with a method, targets, strengths and the attack's options", "trials": "which trials",
    "adversaries": "instead of an attack, a .npy, .npz, .csv or .txt file with an adversary for each input",
    "targets": "a class for each input that the attack must lead to, in a list or a .txt file",
    "ks": "recovery: how many parts are kept", "draws": "random orders a case", "cut_on": "clean or adversarial",
    "batch_size": "inputs a model call gets", "seed": "a whole number", "block": "inputs worked on together",
    "keep": "maps (inputs, adversaries and cuts beside the scores, for pictures) or scores alone",
}
"""What a spec may say."""
NEAREST, SAVED = "nearest", "saved adversaries"


def from_toml(path: str | Path) -> dict[str, Any]:
    """What a spec file says, with its paths taken from where the file lies."""
    file = Path(path)
    if not file.is_file():
        hint = " which does not exist" if file.suffix == ".toml" else near(str(path), PRESETS)
        raise ValueError(f"SPEC must be a preset ({', '.join(PRESETS)}) or a .toml file, got {str(path)!r}{hint}")
    spec = files.toml(file)
    check_keys(spec, str(path))
    for key in ("inputs", "background", "labels", "adversaries", "targets"):
        spec[key] = _beside(file, spec[key]) if isinstance(spec.get(key), str) else spec.get(key)
    if isinstance(spec.get("groups"), str) and spec["groups"] != "folder":
        spec["groups"] = _beside(file, spec["groups"])
    if isinstance(spec.get("attack"), dict) and "candidates" in spec["attack"]:
        spec["attack"]["candidates"] = _words_beside(file, spec["attack"]["candidates"])
    if "explainers" in spec:
        spec["explainers"] = contenders.located(spec["explainers"], lambda place: _beside(file, place))
    place, colon, attribute = str(spec.get("model", "")).rpartition(":")
    if place.endswith(".py"):
        spec["model"] = f"{_beside(file, place)}{colon}{attribute}"
    return {key: value for key, value in spec.items() if value is not None}


def _beside(file: Path, name: str) -> str:
    return name if name == "demo" or Path(name).is_absolute() else str(file.parent / name)


def _words_beside(file: Path, given: Any) -> Any:
    """Sources of words with their files taken from where the spec lies; a name on a hub stays one."""
    if isinstance(given, list):
        return [_words_beside(file, one) for one in given]
    kind, _, place = str(given).partition(":")
    return f"{kind}:{file.parent / place}" if place and (file.parent / place).exists() else given


def check_keys(spec: Mapping[str, Any], where: str) -> None:
    """Refuse a key that means nothing, and say which is near."""
    for key in spec:
        if key not in KEYS:
            raise ValueError(f"{where} has the key {key[:60]!r}{near(key[:60], KEYS)}, and a spec has {', '.join(KEYS)}")
    if "model" not in spec:
        raise ValueError(f"{where} must say which model, such as model = \"demo:digits\"")


def listed(names: str, preset: str) -> dict[str, Any]:
    """Explainers as a,b,c, or all13; those that a preset has options for keep them."""
    own = PRESETS.get(preset, {}).get("explainers", {})
    chosen = THIRTEEN if names == "all13" else [name.strip() for name in names.split(",")]
    return {name: own.get(name, {}) if isinstance(own, Mapping) else {} for name in chosen}


def load(preset_or_path: str, changes: Mapping[str, Any] | None = None, rehearsed: bool = False, **of_model: Any) -> AuditStudy:
    """The study of a preset or a spec file; `changes` outweigh what it says, `of_model` goes to the model's loader.

    One that is `rehearsed` is for auditing.estimate alone: it is content with what stands in for a demo's net that is not
    trained yet, and of songs it reads but the first.
    """
    spec = dict(PRESETS[preset_or_path]) if preset_or_path in PRESETS else from_toml(preset_or_path)
    spec.update(changes or {})
    check_keys(spec, preset_or_path)
    modules: dict[str, Any] = {}
    loaded = loading.load(str(spec["model"]), modules=modules, trained=not rehearsed, **of_model,
                          **spec.get("model_options", {}))
    given = {key: value for key, value in spec.items() if key not in ("model", "model_options", "inputs", "column", "limit",
                                                                      "size", "resize", "groups", "labels", "background",
                                                                      "targets")}
    if "explainers" in given:
        given["explainers"], code = contenders.from_files(given["explainers"], modules)
        spec |= {"code of explainers": code} if code else {}
    if loaded.detector is not None:
        return _of_songs(spec, loaded, given, rehearsed)
    background = spec.get("background", loaded.explain_options.get("background"))
    if isinstance(background, str):
        background = files.table(background)
    whole = _data({**spec, "limit": None}, loaded, background)
    if "adversaries" in spec:
        given["adversaries"] = _saved(spec["adversaries"], spec.get("column"), background)
    given.update(one_for_each({**given, "targets": _lines(spec.get("targets"))}, len(whole.items)))
    data = whole.limited(spec.get("limit"))
    if background is not None:
        given["background"] = background
    return settle(loaded.model, data, spec={**spec, "seed": given.get("seed", 0)}, **given)


def one_for_each(given: Mapping[str, Any], count: int) -> dict[str, Any]:
    """The attack, adversaries and targets of a call, the latter two with one for each of so many inputs."""
    attack, targets, saved = (given.get(name) for name in ("attack", "targets", "adversaries"))
    if isinstance(attack, Mapping) and "targets" in attack and targets is not None:
        raise TypeError("targets were given twice, beside the attack and in it; leave one out")
    if isinstance(attack, Mapping) and np.ndim(attack.get("targets", "random")) == 1:
        targets, attack = attack["targets"], {key: value for key, value in attack.items() if key != "targets"}
    if saved is not None and attack is not None:
        raise TypeError(f"adversaries were given, so nothing is attacked: leave attack out, got {attack!r:.60}")
    return {"attack": attack, "targets": None if targets is None else target_list(targets, count),
            "adversaries": None if saved is None else saved_adversaries(saved, count)}


def _saved(place: Any, column: Any, background: Any) -> Any:
    """Adversaries as a spec has them: rows and texts of a table are taken from the columns that inputs are taken from."""
    if not str(place).endswith(".csv"):
        return place
    table = files.table(place)
    return _rows(table, background, place) if column is None else _texts(table, column)


def _of_songs(spec: Mapping[str, Any], loaded: loading.Loaded, given: dict[str, Any], rehearsed: bool) -> AuditStudy:
    """The study of a detector of singing: of the demo's songs, a folder of songs, or the test songs of an annotated set."""
    wrong = [key for key in ("column", "size", "resize", "groups", "labels", "background", "rate", "seconds", "explain_on",
                             "block", "adversaries", "targets")
             if key in spec]
    if wrong:
        raise ValueError(f"{wrong[0]} cannot be said of songs: a detector of singing knows its rate and its excerpts")
    inputs = spec.get("inputs", "demo")
    embedded = None if loaded.demo is None else loaded.demo.songs
    songs = embedded if inputs == "demo" else songs_in(inputs)
    if songs is None:
        raise ValueError("inputs must name songs: a folder of sound files, or of audio with .lab files and split lists")
    songs = songs.limited(spec.get("limit"))
    signal, attack, margins = song_attack(given.pop("attack", None))
    detector, excerpts = loaded.detector, given.pop("excerpts", EXCERPTS)
    seed = given.get("seed", 0)
    of_each = f"{excerpts} excerpt{'' if excerpts == 1 else 's'} of either answer from each of {len(songs)} songs"
    what = f"{of_each} of {spec['model'] if inputs == 'demo' else Path(str(inputs)).name}"
    made = OfSongs(songs, detector.hearing, detector.threshold, attack, signal, strengths_of(margins))
    if rehearsed:
        data, made = brief(made, excerpts, seed, what)
    else:
        data = drawn(songs, detector.hearing, detector.threshold, excerpts, seed, what)
    return settle(loaded.model, data, spec={**spec, "seed": seed}, attack=made, **{**loaded.explain_options, **given})


def _data(spec: Mapping[str, Any], loaded: loading.Loaded, background: Any) -> Data:
    inputs = spec.get("inputs", "demo" if loaded.inputs is not None else None)
    if inputs is None:
        raise ValueError("a spec must say which inputs: a folder of images, an .npy file, rows.csv, or texts.txt")
    groups, labels = (_column(inputs, spec.get(key)) for key in ("groups", "labels"))
    if inputs == "demo":
        if loaded.inputs is None:
            raise ValueError(f"inputs = \"demo\" is for demo models, got model = {spec['model']!r}; name a folder or a file")
        data = _embedded(loaded, background, groups, labels)
        data = replace(data, what=f"{len(data.items)} inputs of {spec['model']}")
    elif str(inputs).endswith(".csv"):
        table = files.table(inputs)
        if spec.get("column") is not None:
            return gather(_texts(table, spec["column"]), None, groups, labels).limited(spec.get("limit"))
        data = gather(_rows(table, background, inputs), background, groups, labels)
    else:
        data = gather(Path(inputs) if Path(inputs).is_dir() else inputs, background, groups, labels)
    if not data.items:
        raise ValueError(f"an audit needs at least one input, and {inputs} has none")
    return replace(data, size=spec.get("size"), resize=spec.get("resize")).limited(spec.get("limit"))


def _rows(table: Any, background: Any, file: Any) -> Any:
    """The columns that the background has; a label column, say, is no input."""
    known = list(background.columns) if hasattr(background, "iloc") else []
    missing = [str(column) for column in known if column not in table]
    if missing:
        raise ValueError(f"{file} must have every column of the background: it lacks {', '.join(missing)[:400]}, and its "
                         f"columns are {', '.join(map(str, table))[:400]}; change the file, or leave these columns out of the "
                         "background")
    return table[[column for column in table if background is None or column in background]]


def _texts(table: Any, column: Any) -> list[Any]:
    """A column of a table; what is no text there is told when its turn comes."""
    if column not in table:
        raise ValueError(f"column must be one of the file's ({', '.join(map(str, table))}), got {column!r}"
                         f"{near(str(column), map(str, table))}")
    return list(table[column])


def _embedded(loaded: loading.Loaded, background: Any, groups: Any, labels: Any) -> Data:
    """A demo's inputs, with what is known of them."""
    demo = loaded.demo
    assert demo is not None
    if demo.audited is None:
        return gather(demo.inputs, background, groups, demo.truths if labels is None else labels)
    values, names, sources = zip(*demo.audited(), strict=True)
    found = gather(list(values), background, sources if groups is None else groups, labels)
    return replace(found, items=tuple(replace(item, name=name) for item, name in zip(found.items, names, strict=True)))


def _column(inputs: Any, given: Any) -> Any:
    """Sources or labels: a column of the .csv file, or what `_lines` reads."""
    if isinstance(given, str) and str(inputs).endswith(".csv") and Path(inputs).is_file():
        table = files.table(inputs)
        name = Path(given).name  # a path was made of it, in case it was a file
        if name in table:
            return table[name].tolist()
    return _lines(given)


def _lines(given: Any) -> Any:
    """The lines of a text file; a list, or the word folder, as it is."""
    if not isinstance(given, str) or given == "folder":
        return given
    if not Path(given).is_file():
        raise ValueError(f"groups and labels must be lists or text files with a line an input: {given} does not exist")
    return [int(line) if line.isascii() and line.isdecimal() else line for line in files.text(given).splitlines()]


def settle(model: CheckedModel, data: Data, *, explainers: Any = None, parts: Any = None, attack: Any = None,
           trials: Any = None, seed: int = 0, ks: Any = (1, 3, 5), draws: int = 10, cut_on: str = "clean",
           batch_size: int | None = None, block: int = BLOCK, keep: str = "maps", explain_on: str = "input",
           adversaries: list[Any] | None = None, targets: list[Any] | None = None,
           spec: Mapping[str, Any] | None = None, **of_parts: Any) -> AuditStudy:
    """A study, every choice checked before the first model call; `attack` may be adversaries of songs, ready-made."""
    generator(seed)
    if not data.items:
        raise ValueError("an audit needs at least one input, got none")
    _check_targets(model, targets)
    wrong = [name for name in of_parts if not any(name in names for names in reading.OPTIONS.values())]
    if wrong:
        known = {name for names in reading.OPTIONS.values() for name in names} | set(KEYS)
        raise TypeError(f"an audit has no option {wrong[0]!r}{near(wrong[0], known)}")
    chosen, judges = _trials(trials)
    domain = _domain(data, parts, of_parts)
    _check_parts(parts, data, of_parts)
    attacked = None
    if domain == "text":
        parts = text_swaps.check(parts, of_parts, cut_on)
    if domain == "audio":
        data = replace(data, rate=sounds.rate_of(model, of_parts.get("rate")))
        if data.rate is None and is_sound(data.items[0].value):
            raise ValueError("sound files must be brought to the rate that the model was made for: pass rate=, in samples a "
                             "second")
        heard = reading.for_sounds(model, data.items, parts, of_parts, data.read)
        model, attacked, of_parts = sounds.settled(heard, data.rate, of_parts, explain_on)
        parts = "tf:5x4" if parts is None else parts
    settled = reading.prepare(dict(of_parts))
    strengths, made, told = (
        ((), saved(attacked or model, adversaries, targets, settled, domain), SAVED) if adversaries is not None else
        _adversaries(attacked or model, attack, settled, of_parts.get("background"), data.items[0].value, domain, targets))
    if cut_on not in ("clean", "adversarial") or (cut_on == "adversarial" and strengths):
        raise ValueError(f"cut_on must be 'clean' or, with one attack strength only, 'adversarial', got {cut_on!r} and "
                         f"{len(strengths)} further strengths")
    for what, number in (("block", block), ("batch_size", 1 if batch_size is None else batch_size)):
        if isinstance(number, bool) or not isinstance(number, int) or number < 1:
            raise ValueError(f"{what} must be a whole number >= 1, got {number!r}")
    if keep not in ("maps", "scores"):
        raise ValueError(f"keep must be 'maps' (inputs, adversaries and cuts too) or 'scores' (numbers alone), got {keep!r}")
    for metric in judges:
        if (why := judged_cases.usable(metric, domain)) is not None:
            raise ValueError(why)
    kept = (ks,) if isinstance(ks, int) else tuple(ks)
    named = _explainers(model, explainers, of_parts.get("background"), domain)
    cut = f"{len(parts)} ready-made parts" if isinstance(parts, list | tuple) else parts
    settings = {"parts": cut, "rate": data.rate, "seconds": data.seconds, "explain_on": explain_on,
                "trials": [*chosen, *settings_of(judges).values()], "ks": list(kept), "draws": draws, "cut_on": cut_on,
                "block": block,
                "batch_size": batch_size, "keep": keep, "size": data.size, "resize": data.resize}
    plain = dict(spec or {}) or described(attacked or model, named, told, of_parts, settings)
    if adversaries is not None:
        plain["attack"] = SAVED
    study = AuditStudy(model, data, named, made, parts, settled, strengths, chosen,
                      Flips(draws, "all_positive" in chosen), Recovery(kept), cut_on, batch_size, int(seed), block, plain,
                      keep, domain=domain, attacked=attacked, by_source=isinstance(attack, OfSongs),
                      metrics=judges)
    if not judges:
        return study
    cut_of_lab = admitting.cut_like(study.some_parts()) if domain == "image" else None
    return replace(study, admissions=tuple(one.__dict__ for one in admitting.admitted(judges, domain, cut_of_lab)))


def _check_parts(parts: Any, data: Data, of_parts: Mapping[str, Any]) -> None:
    """Ready-made parts come one for each input, and were hidden as they were cut."""
    if isinstance(parts, Parts) and not isinstance(parts, str | np.ndarray):
        raise TypeError("an audit has several inputs, so ready-made parts must come as a list with one for each, got one")
    if not isinstance(parts, list | tuple):
        return
    least = 1 + max(int(item.id) for item in data.items)
    if len(parts) < least or not all(isinstance(one, LayeredParts) for one in parts):
        raise TypeError(f"parts must be a text such as 'tf:5x4', or a list of parts with one for each input: expected {least} "
                        f"that can be laid over one another, got {len(parts)}")
    if any(name != "rate" for name in of_parts):
        raise TypeError(f"parts were given ready-made, so {', '.join(of_parts)} cannot be set; set it where they are cut")


def _domain(data: Data, parts: Any, of_parts: Mapping[str, Any]) -> str:
    """image, audio, text or tabular, by the first input that is one; whatever else is told when it is cut."""
    if of_parts.get("background") is not None:
        return "tabular"
    first: Any = next((item.value for item in data.items if not isinstance(item.value, Exception)), None)
    if isinstance(parts, list | tuple):
        return str(parts[0].domain) if parts and isinstance(parts[0], LayeredParts) else "image"
    if any(text_cases.is_text(item.value) for item in data.items):
        return "text"
    own = [name for name in reading.SPECS["audio"] if name not in reading.SPECS["image"]]
    units = any(of_parts.get(name) is not None for name in ("rate", "hop_seconds", "band_edges_hz"))
    heard = units or (isinstance(parts, str) and parts.partition(":")[0] in own)
    waves = np.ndim(first) == 1 and np.size(first) >= reading.WHOLE_SOUND and not isinstance(first, dict)
    return "audio" if heard or is_sound(first) or waves else "image"


def _trials(given: Any) -> tuple[tuple[str, ...], tuple[Any, ...]]:
    """(trials, metrics); metrics alone come beside every trial."""
    listed = isinstance(given, Iterable) and not isinstance(given, str)
    chosen: list[Any] = [] if given is None else list(given) if listed else [given]
    known = {name: metric for name, metric in METRIC_NAMES.items() if name not in TRIALS}
    metrics = [known[one] if isinstance(one, str) else one for one in chosen
               if (isinstance(one, str) and one in known) or hasattr(one, "about")]
    names = [one for one in chosen if not (isinstance(one, str) and one in known) and not hasattr(one, "about")]
    for name in names:
        if name not in TRIALS:
            raise ValueError(f"trials must be among {', '.join(TRIALS)}, or metrics ({', '.join(known)}), got {name!r}"
                             f"{near(str(name), (*TRIALS, *known))}")
    kept = tuple(TRIALS) if not names else tuple(name for name in TRIALS if name in names or name == "flip")
    return kept, tuple(metrics)


def _check_targets(model: CheckedModel, targets: list[Any] | None) -> None:
    """Refuse a class that the model does not have, where its classes are named."""
    for target in targets or ():
        if model.classes is not None:
            model.class_index(target, len(model.classes))


def _explainers(model: CheckedModel, given: Any, background: Any, domain: str) -> dict[str, Any]:
    """{label: explainer}; baselines are there in any case."""
    with_gradients = OF_TEXTS if domain == "text" else EXPLAINERS
    usual = with_gradients if isinstance(model, DifferentiableModel) else WITHOUT_GRADIENTS
    return contenders.named(usual if given is None else given, background, BASELINES, "an audit")


def saved(model: CheckedModel, adversaries: list[Any], targets: list[Any] | None, of_parts: Mapping[str, Any],
          domain: str) -> Any:
    """What gives every input the adversary that was saved for it."""
    if domain == "text":
        return text_swaps.SavedTexts(adversaries, targets)
    rows = of_parts["background"] if domain == "tabular" else None
    return Saved(adversaries, targets, model.layout if domain == "image" else None, rows)


def _adversaries(model: CheckedModel, attack: Any, of_parts: Mapping[str, Any], background: Any, first: Any,
                 domain: str, targets: list[Any] | None) -> tuple[tuple[str, ...], Any, Any]:
    """(further strengths, what makes adversaries, what is told of it)"""
    if isinstance(attack, OfSongs):
        return attack.strengths, attack, attack
    if targets is not None and (domain == "text" or background is not None):
        raise ValueError("targets are for attacks that follow gradients and for saved adversaries: words are swapped until the "
                         "label is any other one, and a row is led to the nearest training row of any other class")
    if domain == "text":
        return (), *text_swaps.adversaries_of(attack)
    if targets is not None:
        attack = {**attack, "targets": targets} if isinstance(attack, Mapping) else {"method": attack, "targets": targets}
    rows = hasattr(first, "iloc") or isinstance(first, dict) or (np.ndim(first) == 1 and domain != "audio")
    strengths, made = _attack(model, attack, of_parts, background, rows, domain)
    return strengths, made, NEAREST if isinstance(made, NearestRow) else attack


def _attack(model: CheckedModel, given: Any, of_parts: Mapping[str, Any], background: Any, rows: bool,
            domain: str) -> tuple[tuple[str, ...], Any]:
    """(further strengths, what makes adversaries); `rows` is whether the inputs look like those of a table."""
    tabular = background is not None
    options = dict(given) if isinstance(given, Mapping) else {"method": given}
    method, targets, strengths = options.pop("method", None), options.pop("targets", "random"), options.pop("strengths", ())
    if method is None:
        method = NEAREST if tabular else "carlini_wagner" if domain == "audio" else "pgd"
    if method == NEAREST:
        if not tabular:
            raise ValueError("attack 'nearest' takes the nearest training row of another class; pass background= training rows")
        if options or strengths:
            raise TypeError(f"attack 'nearest' has no option {next(iter(options), 'strengths')!r}")
        if not hasattr(background, "iloc") and not isinstance(background, np.ndarray):
            raise TypeError("attack 'nearest' needs the training rows themselves as background, a DataFrame or an array, got "
                            f"{type(background).__name__}")
        return (), NearestRow(of_parts["background"], background)
    if tabular:
        raise ValueError(f"table rows are audited with attack='nearest', got {method!r}")
    if not isinstance(model, DifferentiableModel) and rows:
        raise ValueError("table rows are audited against training rows, of which one is the adversary: pass background=, a "
                         "DataFrame or an array (in a spec: background = \"train.csv\")")
    attack = _attack_of(method, options)
    if isinstance(targets, str) and targets == "none":
        targets = None  # TOML has no other word for it
    if not isinstance(model, DifferentiableModel):
        raise TypeError(f"attack {method!r} follows gradients, and {model.name} has none; pass the torch module itself")
    return strengths_of(strengths), ByGradient(attack, targets)


def _attack_of(method: Any, options: dict[str, Any]) -> Any:
    known = {name: made for name, made, *_ in ATTACKS}
    make: Callable[..., Any]
    if isinstance(method, str):
        if method not in known:
            raise ValueError(f"attack must be one of {', '.join(known)}, {NEAREST}, got {method!r}{near(method, known)}")
        make, allowed = known[method], {f.name for f in fields(known[method])}
        options.setdefault("stop", "never") if "stop" in allowed else None
    elif is_dataclass(method) and not isinstance(method, type):
        make, allowed = lambda **more: replace(method, **more), {f.name for f in fields(method)}
        if getattr(method, "stop", None) == "success":  # its default, with which every explainer looks alike
            options.setdefault("stop", "never")
    else:
        raise TypeError(f"attack must be a name, a table with a method, or an attack such as PGD(…), got "
                        f"{type(method).__name__}")
    for name in options:
        if name not in allowed:
            raise TypeError(f"{method if isinstance(method, str) else type(method).__name__} has no option {name!r}"
                            f"{near(name, allowed | {'targets', 'strengths'})}; it has {', '.join(sorted(allowed))}")
    made: Any = make
    return made(**{k: tuple(v) if isinstance(v, list) else v for k, v in options.items()})


def strengths_of(margins: Any) -> tuple[str, ...]:
    """Further strengths of an attack, by the margins at which it stops."""
    several = [margins] if isinstance(margins, int | float) else margins
    return tuple(dict.fromkeys(_strength(one) for one in several))


def _strength(margin: Any) -> str:
    if isinstance(margin, bool) or not isinstance(margin, int | float) or not margin >= 0:
        raise ValueError(f"strengths must be margins, numbers >= 0, at which the attack stops, got {margin!r}")
    return f"margin {float(margin):g}"
