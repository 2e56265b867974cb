"""The Spark tests on every minor of Spark that we serve, and the page that says so.

``matrix.py`` runs ``tests/spark`` in a virtualenv for each minor, prints one table, and writes it
to ``docs/compatibility.md``. ``--smoke`` runs ``tests/spark/smoke.py`` on the minors that the
project's own virtualenv does not have. ``--page`` only writes the page again from what was measured
last.

A virtualenv of a minor has PySpark of its own and everything else from the project's: making one
takes as long as one download.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import sysconfig
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from indextables.spark import compat  # noqa: E402

MEASURED = ROOT / "tests" / "release" / "matrix.json"
PAGE = ROOT / "docs" / "compatibility.md"
AREAS = {
    "corpus": ("corpus", "random", "upstream"),
    "leaks": ("leaks", "crossings"),
    "pushdown": ("pushdown", "expressions", "computing", "quick", "columnindex"),
    "writes": ("writes", "overwrites", "write_failures"),
    "streams": ("streams",),
    "SQL": (
        "catalog",
        "commands",
        "names",
        "search",
        "text",
        "ranking",
        "properties",
        "maintenance",
    ),
    "DML": ("dml", "merge", "update", "delete"),
    "Connect, cluster": ("outside",),
}
REST = "the rest"


def minors() -> list[str]:
    return ["{}.{}".format(*minor) for minor in compat.TESTED]


def virtualenv(minor: str, folder: Path) -> Path:
    """The Python of a virtualenv with this minor of PySpark."""
    home = folder / f"spark-{minor}"
    python = home / "bin" / "python"
    done = home / ".ready"
    if not done.exists():
        subprocess.run([sys.executable, "-m", "venv", "--clear", "--without-pip", home], check=True)
        pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet"]
        subprocess.run([*pip, "--disable-pip-version-check", f"pyspark=={minor}.*"], check=True)
        version = f"python{sys.version_info.major}.{sys.version_info.minor}"
        site = home / "lib" / version / "site-packages"
        (site / "zz_project.pth").write_text(f"{ROOT}\n{sysconfig.get_path('purelib')}\n")
        done.touch()
    return python


def environment(python: Path) -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if k not in ("SPARK_HOME", "PYTHONPATH")}
    return {**kept, "PYSPARK_PYTHON": str(python), "PYTHONPATH": str(ROOT)}


def version_of(python: Path) -> str:
    text = "from importlib.metadata import version; print(version('pyspark'))"
    done = subprocess.run([python, "-c", text], capture_output=True, text=True, check=True)
    return done.stdout.strip()


# -- the smoke ----------------------------------------------------------------------------------


def smoke(names: list[str], folder: Path) -> int:
    """The shortest proof on each minor; how many failed."""
    failed = 0
    for minor in names:
        start = time.perf_counter()
        python = virtualenv(minor, folder)
        made = time.perf_counter() - start
        script = [str(python), str(ROOT / "tests" / "spark" / "smoke.py")]
        env = environment(python)
        done = subprocess.run(script, capture_output=True, text=True, env=env, check=False)
        lines = [x for x in done.stdout.splitlines() if x.startswith("SMOKE")]
        took = f"virtualenv {made:.0f} s, run {time.perf_counter() - start - made:.0f} s"
        if done.returncode or not lines:
            failed += 1
            print(f"FAILED Spark {minor} ({took})\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}")
        else:
            print(f"{lines[-1]} ({took})", flush=True)
    return failed


# -- the whole ----------------------------------------------------------------------------------


def area_of(test: str) -> str:
    """The column of the table that a test file belongs to."""
    name = test.rsplit(".", 1)[-1].removeprefix("test_spark_")
    found = (area for area, parts in AREAS.items() if any(name.startswith(p) for p in parts))
    return next(found, REST)


def counted(report: Path) -> dict[str, list[int]]:
    """Passed, failed and skipped tests of each area, from pytest's report."""
    areas = {area: [0, 0, 0] for area in (*AREAS, REST)}
    for case in ElementTree.parse(report).iter("testcase"):
        bad = case.find("failure") is not None or case.find("error") is not None
        where = 1 if bad else 2 if case.find("skipped") is not None else 0
        areas[area_of(case.get("classname", "").split(".Test")[0])][where] += 1
    return areas


def measure(minor: str, folder: Path, more: list[str]) -> bool:
    """Run the Spark tests on one minor and note the result; did all pass?"""
    python = virtualenv(minor, folder)
    with tempfile.TemporaryDirectory() as reports:
        report = Path(reports) / "report.xml"
        tests = [str(python), "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/spark"]
        command = [*tests, f"--junitxml={report}", *more]
        done = subprocess.run(command, cwd=ROOT, env=environment(python), check=False)
        if report.exists():
            noted = noted_results()
            noted[minor] = {
                "spark": version_of(python),
                "python": platform.python_version(),
                "date": f"{datetime.now(UTC):%Y-%m-%d}",
                "areas": counted(report),
            }
            MEASURED.write_text(json.dumps(noted, indent=1, sort_keys=True) + "\n")
    return done.returncode == 0


def noted_results() -> dict[str, dict[str, object]]:
    found: dict[str, dict[str, object]] = json.loads(MEASURED.read_text())
    return found


def table() -> str:
    """What was measured last, one line for each minor."""
    head = ["Spark", "Python", "date", *AREAS, REST]
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for _, result in sorted(noted_results().items()):
        areas = result["areas"]
        assert isinstance(areas, dict)
        cells = [cell(areas.get(area, [0, 0, 0])) for area in (*AREAS, REST)]
        row = [f"{result['spark']}", f"{result['python']}", f"{result['date']}", *cells]
        lines.append("| " + " | ".join(row) + " |")
    return "\n".join(lines)


def cell(counts: list[int]) -> str:
    passed, failed, _ = counts
    if not passed and not failed:
        return "-"
    return f"{passed}" if not failed else f"{passed}, **{failed} failed**"


def differences() -> str:
    lines = ["| since | what | difference | where it is handled |", "|---|---|---|---|"]
    for d in compat.DIFFERENCES:
        lines.append(f"| {d.since[0]}.{d.since[1]} | {d.name} | {d.what} | `{d.done}` |")
    return "\n".join(lines)


def page() -> str:
    text = (ROOT / "tests" / "release" / "compatibility.md.in").read_text()
    return text.replace("@TABLE@", table()).replace("@DIFFERENCES@", differences())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("minors", nargs="*", help="such as 4.0 4.2; all of them if none is named")
    parser.add_argument("--smoke", action="store_true")
    parser.add_argument("--page", action="store_true")
    parser.add_argument("--folder", default=str(ROOT / ".venvs"))
    given, more = parser.parse_known_args()
    folder = Path(given.folder)
    if given.smoke:
        own = "{}.{}".format(*compat.minor_of(version_of(Path(sys.executable))))
        return smoke(given.minors or [m for m in minors() if m != own], folder)
    wanted = [] if given.page else given.minors or minors()
    failed = [m for m in wanted if not measure(m, folder, more)]
    PAGE.write_text(page())
    print(table())
    return len(failed)


if __name__ == "__main__":
    sys.exit(main())
