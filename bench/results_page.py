"""``bench/RESULTS.md``: every ratio of the kept results beside its goal, and the plots."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from ratios import Line, line_of, read_suite

TITLES = {
    "substring": "Substrings of messages (DuckDB, Lance)",
    "table": "Whole queries (one split; DuckDB, Lance, Parquet)",
    "planner": "Planning (deltalake, pyiceberg, fixed bars)",
    "curves": "Planning by number of splits",
    "log": "The transaction log (deltalake, fastavro)",
    "xref": "Cross-references (budgets)",
    "keymap": "Key maps (budgets)",
    "native": "Kernels (the reference C library of pyxorfilter)",
    "rows": "Rows of a split (Lance, Parquet)",
    "columnindex": "Column indexes (pyarrow, DuckDB, tantivy)",
    "spark": "Spark (Parquet)",
    "xref_spark": "Spark with cross-references on and off",
    "maintenance": "Maintenance",
    "storage": "Object stores (s3fs)",
    "remote": "Whole queries over an object store (Lance, Delta)",
}
NOTES = {
    "table": "Processor time of the whole process, all threads added up. DuckDB and pyarrow use "
    "every processor, so by the clock they are faster than shown, up to twice on two.",
    "curves": "The file list is in memory for us and deltalake; pyiceberg reads its manifests for "
    "every plan.",
    "planner": "The file list is in memory and the same question is asked again and again, so its "
    "text is parsed once; the next section asks a new one each time.",
    "log": "Processor time in fresh processes, imports not counted.",
    "remote": "Every request waits 30 ms for its first byte, every query runs in a fresh process; "
    "seconds by the clock, imports not counted. Depth is the longest chain of requests that had to "
    "wait for each other.",
    "spark": "By the clock, since Spark works in other processes.",
    "xref_spark": "By the clock, since Spark works in other processes.",
}
PLOTS = {
    "planning.svg": "Planning time by number of splits",
    "funnel.svg": "Splits left after each stage of pruning",
    "needle.svg": "Latency of a needle query",
    "xref-probe.svg": "One term against the filters of many splits",
    "ingest.svg": "Time to write",
}
HEAD = """# Measured results

Written by `make bench`; do not edit. A ratio is ours / peer, both measured in the same run, so the
machine cancels out. For costs (times, bytes) smaller is better; for units that end in `/s` larger
is. The goal is the worst ratio that satisfies; **no** marks a goal that is not met.
"""


def page(folder: Path, plots: Sequence[Path]) -> str:
    """The whole page."""
    suites = {path.stem: read_suite(path) for path in sorted(folder.glob("*.json"))}
    ordered = [name for name in TITLES if name in suites]
    ordered += [name for name in suites if name not in TITLES]
    parts = [HEAD, summary(suites), machine(suites), *pictures(plots)]
    parts += [section(name, suites[name]) for name in ordered]
    return "\n".join(parts).rstrip() + "\n"


def lines_of(suite: dict[str, Any]) -> list[Line]:
    return [line_of(row) for row in suite.get("lines", [])]


def summary(suites: dict[str, dict[str, Any]]) -> str:
    judged = [line for suite in suites.values() for line in lines_of(suite)]
    met = [line.meets_goal for line in judged if line.goal is not None]
    return (
        f"{len(judged)} ratios in {len(suites)} suites; {sum(map(bool, met))} of {len(met)} goals "
        "are met.\n"
    )


def machine(suites: dict[str, dict[str, Any]]) -> str:
    contexts = [s["context"] for s in suites.values() if "context" in s]
    if not contexts:
        return ""
    latest = max(contexts, key=lambda c: c["when"])
    versions = ", ".join(f"{name} {version}" for name, version in latest["versions"].items())
    return (
        f"Machine: {latest['machine']}, {latest['memory_gb']} GB, {latest['system']}.\n\n"
        f"Versions: {versions}.\n"
    )


def pictures(plots: Sequence[Path]) -> Iterable[str]:
    for path in plots:
        yield f"![{PLOTS.get(path.name, path.stem)}](plots/{path.name})\n"


def section(name: str, suite: dict[str, Any]) -> str:
    rows = [f"## {TITLES.get(name, name)}", ""]
    context = suite.get("context", {})
    chosen = ", ".join(f"`{k}={v}`" for k, v in context.get("settings", {}).items())
    if context:
        load = f"; load {context['load']} at the end" if "load" in context else ""
        chosen = f"; {chosen}" if chosen else ""
        rows += [f"`bench/test_{name}.py`, {context['when']}{chosen}{load}", ""]
    else:
        rows += [f"`bench/test_{name}.py`, kept without its date", ""]
    rows += [text + "\n" for text in (NOTES.get(name), context.get("note")) if text]
    lines = lines_of(suite)
    if not lines:
        return "\n".join([*rows, "Points of the plots only.", ""])
    rows += ["| what | ours | peer | ratio | goal | met |", "|---|---:|---:|---:|---:|---|"]
    rows += [row(line) for line in lines]
    return "\n".join([*rows, ""])


def row(line: Line) -> str:
    goal = "" if line.goal is None else f"{'≥' if line.is_rate else '≤'} {line.goal:.3g}"
    met = {None: "", True: "yes", False: "**no**"}[line.meets_goal]
    ours, unit = spelled(line.ours, line.unit)
    peer, _ = spelled(line.peer, line.unit, unit)
    name = line.name.replace("|", "\\|")
    what = f"| {name} | {ours} {unit} | {peer} {unit} ({line.peer_name}) "
    return f"{what}| {line.ratio:.3g} | {goal} | {met} |"


def spelled(value: float, unit: str, wanted: str | None = None) -> tuple[str, str]:
    """A figure in a unit that suits it: seconds as s, ms or µs."""
    head, _, rest = unit.partition(" ")
    if head != "s":
        return f"{value:,.4g}", unit
    tail = f" {rest}" if rest else ""
    for name, scale in (("s", 1.0), ("ms", 1e3), ("µs", 1e6)):
        fits = wanted == name + tail if wanted is not None else value * scale >= 1 or name == "µs"
        if fits:
            return f"{value * scale:,.4g}", name + tail
    return f"{value:,.4g}", unit
