"""Build wheels, repair them, and prove that they install where there is no compiler.

``wheels.py PYTHON...`` does for each interpreter what the release workflow does with cibuildwheel
in its containers: builds a wheel, lets auditwheel find the oldest Linux it runs on, installs it
into an empty virtualenv in which a C compiler cannot be found and sources are refused, and runs
``examples/first_answer.py`` there, from another folder. ``--spark VERSION`` installs PySpark too.
Prints one line for each interpreter with the tag and the seconds from ``pip install`` to the first
answer; fails if any step does.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
NEWEST_GLIBC = (2, 28)
"""Wheels may need no newer C library than this: it is that of RHEL 8 and its kind."""


def run(command: list[str], **kwargs: object) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, **kwargs)  # type: ignore[call-overload]
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}")
    return str(done.stdout)


def build(python: str, dist: Path) -> Path:
    """The repaired wheel of one interpreter."""
    with tempfile.TemporaryDirectory() as raw:
        run([python, "-m", "pip", "wheel", "-q", "--no-deps", "-w", raw, "."], cwd=ROOT)
        (made,) = Path(raw).glob("*.whl")
        with tempfile.TemporaryDirectory() as repaired:
            run([sys.executable, "-m", "auditwheel", "repair", "-w", repaired, str(made)])
            (wheel,) = Path(repaired).glob("*.whl")
            dist.mkdir(exist_ok=True)
            return Path(shutil.copy2(wheel, dist))


def check(wheel: Path) -> str:
    """The platform tag; refuses a wheel that needs a newer Linux or lacks the list of its parts."""
    tag = wheel.stem.split("-")[-1]
    found = [(int(a), int(b)) for a, b in re.findall(r"manylinux_(\d+)_(\d+)_", tag)]
    if not found or min(found) > NEWEST_GLIBC:
        raise SystemExit(f"{wheel.name} needs a newer C library than {NEWEST_GLIBC}")
    names = zipfile.ZipFile(wheel).namelist()
    for wanted in (
        r"\.dist-info/sboms/.*\.cdx\.json$",
        r"java/since/4\.0/",
        r"native/_hash.*\.so$",
    ):
        if not any(re.search(wanted, name) for name in names):
            raise SystemExit(f"{wheel.name} has no file like {wanted}")
    return tag


def prove(python: str, wheel: Path, spark: str | None) -> tuple[float, str]:
    """Seconds from ``pip install`` to the first answer in an empty virtualenv, and what it said."""
    with tempfile.TemporaryDirectory() as folder:
        venv = Path(folder) / "venv"
        run([python, "-m", "venv", str(venv)])
        tools = Path(folder) / "bin"
        tools.mkdir()
        for name in ("java", "sh", "bash", "dirname", "env", "ps", "uname", "nice", "cat", "ls"):
            place = shutil.which(name)
            if place:
                (tools / name).symlink_to(place)
        kept = ("HOME", "LANG", "JAVA_HOME", "PIP_INDEX_URL", "PIP_CERT", "SSL_CERT_FILE")
        env = {k: v for k, v in os.environ.items() if k in kept or k.startswith("PIP_")}
        env |= {"PATH": f"{venv}/bin:{tools}", "CC": "no-compiler-here"}
        wanted = [str(wheel)] + ([f"pyspark=={spark}.*", "pandas"] if spark else [])
        start = time.perf_counter()
        pip = [f"{venv}/bin/python", "-m", "pip", "install", "-q", "--only-binary", "indextables"]
        run([*pip, *wanted], env=env, cwd=folder)
        example = str(ROOT / "examples" / "first_answer.py")
        said = run([f"{venv}/bin/python", example], env=env, cwd=folder)
        return time.perf_counter() - start, said


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pythons", nargs="+")
    parser.add_argument("--spark", help="also install this PySpark, such as 4.1")
    parser.add_argument("--dist", default=str(ROOT / "wheelhouse"))
    given = parser.parse_args()
    for python in given.pythons:
        start = time.perf_counter()
        wheel = build(python, Path(given.dist))
        built = time.perf_counter() - start
        tag = check(wheel)
        seconds, said = prove(python, wheel, given.spark)
        answers = "; ".join(re.findall(r"first answer.*", said))
        print(f"{wheel.name.split('-')[2]} {tag}: built in {built:.0f} s, ", end="")
        print(f"{seconds:.1f} s from pip install to: {answers}", flush=True)


if __name__ == "__main__":
    main()
