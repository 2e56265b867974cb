"""The plots of ``bench/RESULTS.md``, drawn from the kept results: SVG, repeatable."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ratios import Line

OURS = "indextables"
COLOURS = {
    OURS: "#0b6e4f",
    "ours": "#0b6e4f",
    "indextables, asked again": "#7fbf9f",
    "grouped": "#0b6e4f",
    "deltalake": "#1f77b4",
    "pyiceberg": "#9467bd",
    "duckdb": "#e0a100",
    "lance": "#d95f02",
    "parquet": "#7f7f7f",
    "pyarrow": "#7f7f7f",
}
NEEDLE = ("needle request_id", "One row of a table by its id", 1e3, "ms CPU")
INGEST = ("write with indices", "Writing the rows, with indices but for Parquet", 1.0, "s CPU")
Points = Sequence[dict[str, Any]]


def draw_all(folder: Path, lines: Sequence[Line], points: Points) -> list[Path]:
    """Every plot there are figures for."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams.update({"svg.hashsalt": "indextables", "font.size": 9})
    folder.mkdir(exist_ok=True)
    drawn = [
        planning(folder / "planning.svg", points),
        probe(folder / "xref-probe.svg", points),
        funnel(folder / "funnel.svg", points),
        bars(folder / "needle.svg", lines, NEEDLE),
        bars(folder / "ingest.svg", lines, INGEST),
    ]
    return [path for path in drawn if path is not None]


def _figure() -> tuple[Any, Any]:
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(6.4, 3.6))
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes


def _save(figure: Any, path: Path) -> Path:
    from matplotlib import pyplot

    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None, "Creator": "indextables bench"})
    pyplot.close(figure)
    text = path.read_text(encoding="utf-8")
    path.write_text("\n".join(row.rstrip() for row in text.splitlines()) + "\n", encoding="utf-8")
    return path


def _curves(path: Path, points: Points, plot: str, labels: tuple[str, str, str]) -> Path | None:
    chosen = [p for p in points if p["plot"] == plot]
    if not chosen:
        return None
    figure, axes = _figure()
    for name in dict.fromkeys(p["line"] for p in chosen):
        curve = sorted((p["x"], p["y"]) for p in chosen if p["line"] == name)
        xs, ys = zip(*curve, strict=True)
        axes.plot(xs, ys, "o-", label=name, color=COLOURS.get(name), markersize=4)
    axes.set(xscale="log", yscale="log", title=labels[0], xlabel=labels[1], ylabel=labels[2])
    axes.grid(True, which="major", alpha=0.3)
    axes.legend(frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return _save(figure, path)


def planning(path: Path, points: Points) -> Path | None:
    title = "Planning one query: which splits may hold id = k?"
    return _curves(path, points, "planning", (title, "splits of the table", "ms of processor time"))


def probe(path: Path, points: Points) -> Path | None:
    title = "One term against the filters of n splits"
    return _curves(path, points, "probe", (title, "filters", "µs"))


def funnel(path: Path, points: Points) -> Path | None:
    chosen = [p for p in points if p["plot"] == "funnel"]
    if not chosen:
        return None
    figure, axes = _figure()
    stages = [p["x"] for p in chosen][::-1]
    left = [p["y"] for p in chosen][::-1]
    drawn = axes.barh(stages, left, color=COLOURS[OURS], height=0.6)
    axes.bar_label(drawn, [f"{count:,.0f}" for count in left], padding=4)
    axes.set(title="Splits left after each stage", xlabel="splits")
    return _save(figure, path)


def bars(path: Path, lines: Sequence[Line], what: tuple[str, str, float, str]) -> Path | None:
    """Ours beside every peer of one comparison of the table suite."""
    name, title, scale, unit = what
    chosen = [line for line in lines if line.suite == "table" and line.name.startswith(name)]
    if not chosen:
        return None
    figure, axes = _figure()
    names = [OURS, *(line.peer_name for line in chosen)]
    values = [chosen[0].ours * scale, *(line.peer * scale for line in chosen)]
    colours = [COLOURS.get(n, "#7f7f7f") for n in names]
    drawn = axes.barh(names[::-1], values[::-1], color=colours[::-1], height=0.6)
    axes.bar_label(drawn, [f"{value:.3g} {unit}" for value in values[::-1]], padding=4)
    axes.set(title=title, xlabel=unit)
    axes.margins(x=0.15)
    return _save(figure, path)
