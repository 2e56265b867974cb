"""Refuse to publish what does not belong together: ``check_release.py FOLDER TAG``.

The tag has to name the version in ``indextables/__init__.py``, every file that version and no
other, and wheels for all the interpreters of ``[tool.cibuildwheel]`` and a source distribution have
to be there. Needs nothing but Python.
"""

import re
import sys
import tomllib
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[2]


def version() -> str:
    """The version of the package, from the one place that has it."""
    text = (ROOT / "indextables" / "__init__.py").read_text()
    found = re.search(r'^__version__ = "([^"]+)"$', text, re.MULTILINE)
    if found is None:
        raise SystemExit("indextables/__init__.py has no __version__")
    return found[1]


def interpreters() -> list[str]:
    """The tags of the interpreters that wheels are built for."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    return [name.split("-")[0] for name in project["tool"]["cibuildwheel"]["build"].split()]


def problems(folder: Path, tag: str) -> list[str]:
    """Why these files cannot be released under this tag."""
    expected = version()
    found = [] if tag == f"v{expected}" else [f"the tag is {tag}, the package is {expected}"]
    files = sorted(folder.iterdir())
    head = f"indextables-{expected}"
    found += [
        f"{f.name} is not of version {expected}"
        for f in files
        if not re.match(rf"{re.escape(head)}(-|\.tar\.gz$)", f.name)
    ]
    if not any(f.name == f"{head}.tar.gz" for f in files):
        found.append("there is no source distribution")
    wheels = [f for f in files if f.suffix == ".whl"]
    for wanted in interpreters():
        abi = f"-{wanted.removesuffix('t')}-{wanted}-"
        if not any(abi in wheel.name for wheel in wheels):
            found.append(f"there is no wheel for {wanted}")
    for wheel in wheels:
        names = zipfile.ZipFile(wheel).namelist()
        if not any(re.search(r"\.dist-info/sboms/.*\.cdx\.json$", name) for name in names):
            found.append(f"{wheel.name} has no list of its parts (.dist-info/sboms)")
    return found


if __name__ == "__main__":
    wrong = problems(Path(sys.argv[1]), sys.argv[2])
    print("\n".join(wrong) or f"{sys.argv[2]}: everything is there")
    sys.exit(bool(wrong))
