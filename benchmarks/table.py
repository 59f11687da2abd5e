"""Results as tables to read, in Markdown."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from benchmarks.calls import TARGET_RATIO


def calls_table(results: Sequence[dict[str, Any]]) -> str:
    """A row a domain, peer and number of samples."""
    head = ("case", "peer", "N", "peer's error", "ours at the same calls", "calls we need", "ratio [95 %]", "single inputs",
            f"≤ {TARGET_RATIO}")
    rows = [(f"{row['domain']}, d {result['parts']}", row["peer"], str(row["samples"]), _short(row["error"]),
             _short(row["ours_at_same_calls"]), _calls(row["calls_we_need"]),
             f"**{row['ratio']:.2f}** [{row['ratio_low']:.2f}, {row['ratio_high']:.2f}]",
             f"{min(row['ratio_of_each_input']):.2f} – {max(row['ratio_of_each_input']):.2f}",
             "yes" if row["reached"] else "**no**")
            for result in results for row in result["rows"]]
    return _markdown(head, rows)


def speed_table(rows: Sequence[dict[str, Any]]) -> str:
    """A row a job, a column a method, and whether whytrust's goal is met."""
    jobs = list(dict.fromkeys(row["job"] for row in rows))
    found = {(row["job"], row["method"]): row for row in rows}
    methods = [m for m in dict.fromkeys(row["method"] for row in rows) if sum((job, m) in found for job in jobs) > 1]
    body = [(job, f"{found[job, methods[0]]['bare_seconds']:.3f} s", *(_ratio(found.get((job, m))) for m in methods),
             _goal(found[job, methods[0]])) for job in jobs]
    alone = [f"{row['job']}: {row['method']} {row['ratio']:.3f}" for row in rows if row["method"] not in methods]
    return "\n\n".join([_markdown(("job", "model alone", *methods, "goal"), body), *alone])


def memory_table(rows: Sequence[dict[str, Any]]) -> str:
    """A row a job: peak memory of the bare model, and of each method in units of it."""
    methods = list(dict.fromkeys(m for row in rows for m in row["megabytes"]))
    body = [(row["job"], *(f"{row['megabytes'][m]:.0f} MB ({row['megabytes'][m] / row['megabytes'][methods[0]]:.2f})"
                           if m in row["megabytes"] else "—" for m in methods),
             f"≤ {row['target']:.2f}: {'yes' if row['reached'] else '**no**'}") for row in rows]
    return _markdown(("peak memory", *methods, "goal"), body)


def gradients_table(rows: Sequence[dict[str, Any]]) -> str:
    """A row a job: the ratios to captum and to the bare passes, how often the net was asked, and whether goals are met."""
    shown = (("whytrust/captum", "captum"), ("whytrust/bare", "bare"), ("captum/bare", ""))
    body = [(row["job"], f"{row['seconds']['bare']:.3f} s", *(_of_turns(row["ratios"][name]) for name, _ in shown),
             " / ".join(str(row["calls"][who]) for who in ("whytrust", "captum", "bare")), row["captum"] or "—",
             "; ".join(f"of {to} ≤ {row['goals'][to]:.2f}: "
                       + ("yes" if row["ratios"][name]["median"] <= row["goals"][to] else "**no**")
                       for name, to in shown if to in row["goals"]) or "—") for row in rows]
    return _markdown(("job", "bare passes", "whytrust / captum", "whytrust / bare", "captum / bare",
                      "inputs through the net: whytrust / captum / bare", "captum's faster way", "goal"), body)


def steps_table(rows: Sequence[dict[str, Any]]) -> str:
    """A row a method: peak memory of integrated gradients with few steps and with many."""
    body = [(row["method"], *(f"{peak:.0f} MB" for peak in row["megabytes"]),
             f"{row['megabytes'][1] / row['megabytes'][0]:.2f}", "—" if row["goal"] is None else
             f"≤ {row['goal']:.2f}: {'yes' if row['reached'] else '**no**'}") for row in rows]
    few, many = rows[0]["steps"]
    return _markdown(("peak memory of integrated_gradients", f"{few} steps", f"{many} steps", "ratio", "goal"), body)


def _of_turns(ratio: dict[str, float]) -> str:
    return f"{ratio['median']:.2f} [{ratio['low']:.2f}, {ratio['high']:.2f}]"


def _goal(row: dict[str, Any]) -> str:
    if row["target"] is None:
        return "—"
    return f"≤ {row['target']:.2f}: {'yes' if row['ratio'] <= row['target'] else '**no**'}"


def _ratio(row: dict[str, Any] | None) -> str:
    return "—" if row is None else f"{row['ratio']:.2f} [{row['ratio_low']:.2f}, {row['ratio_high']:.2f}]"


def _calls(calls: float) -> str:
    return "more than tried" if math.isinf(calls) else f"{calls:.0f}"


def _short(error: float) -> str:
    return f"{error:.2e}"


def _markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    lines = [head, ["-" * width for width in widths], *rows]
    padded = ([cell.ljust(width) for cell, width in zip(line, widths, strict=True)] for line in lines)
    return "\n".join(f"| {' | '.join(cells)} |" for cells in padded)


def flips_table(rows: Sequence[dict[str, Any]]) -> str:
    """A row a net: flip curves in units of the bare passes of the different inputs."""
    body = [(row["job"], f"{row['asked']} ({row['distinct']} different)", f"{row['bare_seconds']:.3f} s",
             f"{row['ratios']['naive loop']:.2f}", f"**{row['ratios']['whytrust']:.2f}**",
             "—" if row["goal"] is None else f"≤ {row['goal']:.2f}: {'yes' if row['reached'] else '**no**'}") for row in rows]
    head = ("flip curves of 18 orders, all k", "sets asked about", "model alone", "naive loop", "whytrust", "goal")
    return _markdown(head, body)


def flipping_table(found: dict[str, Any]) -> str:
    """A row a net: pixel flipping in units of the bare passes; and memory of few and of many steps."""
    body = [(row["job"], f"{row['bare_seconds']:.3f} s",
             f"{row['ratios']['quantus']:.2f}" if "quantus" in row["ratios"] else "—", f"**{row['ratios']['whytrust']:.2f}**",
             "—" if row["goal"] is None else f"≤ {row['goal']:.2f}: {'yes' if row['reached'] else '**no**'}")
            for row in found["times"]]
    memory = found["memory"]
    peaks = ", ".join(f"{steps} steps {megabytes:.0f} MB" for steps, megabytes in memory["megabytes"].items())
    flat = (f"Memory, 224 × 224 pixels: {peaks} (goal: no more than {memory['target']:.2f} ×: "
            f"{'yes' if memory['reached'] else '**no**'}).")
    return _markdown(("pixel flipping", "model alone", "quantus", "whytrust", "goal"), body) + "\n\n" + flat


def fragile_table(rows: Sequence[dict[str, Any]]) -> str:
    """A row a way to search and objective: forward time and calls beside the naive loop, paths kept, sentences an hour."""
    body = [(row["way"], row["objective"], str(row["sentences"]),
             f"**{row['ratio']:.2f}** ({row['least']:.2f} – {row['most']:.2f})",
             f"{row['calls']:.2f}", "—" if row["same_paths"] is None else f"{row['same_paths']:.0%} of {row['raced']}",
             f"{row['an_hour']:.0f}",
             f"≤ {row['goal']:.2f}: {'yes' if row['reached'] else '**no**'}") for row in rows]
    return _markdown(("attack on LIME-500", "objective", "sentences", "forward time / naive", "calls / naive", "same path",
                      "sentences an hour", "goal"), body)


def stability_table(rows: Sequence[dict[str, Any]]) -> str:
    """A row a model and way to explain: how far seeds agree on ten words, and how near these are to what they aim at."""
    body = [(f"{row['corpus']}, {row['model']}", row["way"],
             f"**{row['jaccard']:.2f}** [{row['interval'][0]:.2f}, {row['interval'][1]:.2f}]",
             "—" if row["way"] == "lime" else f"{row['above lime'][0]:+.2f} to {row['above lime'][1]:+.2f}",
             f"{row['overlap']:.2f}", "—" if row["exact"] is None else f"{row['exact']:.2f}", f"{row['fidelity']:.2f}",
             f"{row['calls']:.0f}") for row in rows]
    return _markdown(("texts, model", "explained by", "Jaccard of two seeds [95 %]", "above lime [95 %]",
                      "overlap with its truth", "with the contributions", "R² on unseen masks", "calls"), body)


def picks_table(rows: Sequence[dict[str, Any]]) -> str:
    """A row a job: seconds of lime's loop and ours, or ours alone with the memory that it takes."""
    body = [(row["job"], "—" if row["lime_seconds"] is None else f"{row['lime_seconds']:.2f} s", f"{row['seconds']:.4f} s",
             "—" if row["times"] is None else f"**{row['times']:.0f}×**", "—" if row["same"] is None else
             "yes" if row["same"] else "**no**", f"{row['megabytes']:.0f} MB" if "megabytes" in row else "—",
             "—" if row["goal"] is None else f"{'≥ {:.0f}×' if row['times'] else '≤ {:.0f} s'}: ".format(row["goal"])
             + ("yes" if row["reached"] else "**no**")) for row in rows]
    return _markdown(("submodular pick", "lime", "whytrust", "faster", "same picks", "memory", "goal"), body)
