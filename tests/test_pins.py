"""What pyproject.toml promises about other packages agrees with what is imported and installed."""

from __future__ import annotations

import ast
import sys
import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, packages_distributions, version
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
RUNTIME = (
    "spark", "s3", "gcs", "azure", "metrics", "pandas", "polars", "duckdb", "mcp", "sigma",
    "iceberg",
)  # fmt: skip
ENTAILED = {
    "py4j": "pyspark",
    "botocore": "s3fs",
    "google": "gcsfs",
    "aiohttp": "gcsfs",
    "azure": "adlfs",
    "gcsfs": "gcsfs",
}
UNIMPORTED = {
    "backports-zstd": "fastavro's codec needs it",
    "pandas": "PySpark's Arrow readers need it",
    "pysigma": "its modules are loaded by name where a rule is read",
}


def requirements(*extras: str) -> list[Requirement]:
    texts = list(PROJECT["dependencies"]) if not extras else []
    for extra in extras:
        texts += PROJECT["optional-dependencies"][extra]
    return [Requirement(text) for text in texts]


@cache
def owners_of_names() -> Mapping[str, list[str]]:
    return packages_distributions()


@cache
def imported() -> frozenset[str]:
    """Top-level names of other packages that ours imports, or loads by name."""
    found: set[str] = set()
    for file in (ROOT / "indextables").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Import):
                found.update(alias.name.split(".")[0] for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                found.add(node.module.split(".")[0])
            elif isinstance(node, ast.Call) and "import_module" in ast.unparse(node.func):
                found.update(
                    str(arg.value).split(".")[0]
                    for arg in node.args
                    if isinstance(arg, ast.Constant)
                )
    return frozenset(found - set(sys.stdlib_module_names) - {"indextables", "__future__"})


def test_everything_imported_is_declared() -> None:
    declared = {canonicalize_name(r.name) for r in [*requirements(), *requirements(*RUNTIME)]}
    homes = owners_of_names()
    for name in imported():
        owners = {canonicalize_name(owner) for owner in homes.get(name, [name])}
        owners.add(canonicalize_name(ENTAILED.get(name, name)))
        assert owners & declared, f"'{name}' is imported but not declared"


def test_everything_declared_is_imported() -> None:
    homes = owners_of_names()
    used = {canonicalize_name(owner) for name in imported() for owner in homes.get(name, [name])}
    text = "".join(f.read_text() for f in (ROOT / "indextables" / "storage").glob("*.py"))
    for requirement in [*requirements(), *requirements(*RUNTIME)]:
        name = canonicalize_name(requirement.name)
        known = name in used or name in UNIMPORTED or f'"{requirement.name}"' in text
        assert known, f"{requirement.name} is declared but never imported"


@pytest.mark.parametrize("extra", ["", *PROJECT["optional-dependencies"]])
def test_what_is_installed_fits_the_bounds(extra: str) -> None:
    for requirement in requirements(extra) if extra else requirements():
        if requirement.marker is not None and not requirement.marker.evaluate():
            continue
        try:
            installed = version(requirement.name)
        except PackageNotFoundError:
            assert extra not in ("", "test", "spark"), f"{requirement} is not installed"
            continue
        assert requirement.specifier.contains(installed, prereleases=True), (requirement, installed)


def test_every_requirement_has_a_lower_bound_and_formats_an_upper_one() -> None:
    groups = [requirements(), *([r] for r in requirements(*PROJECT["optional-dependencies"]))]
    for requirement in (r for group in groups for r in group):
        assert any(s.operator in (">=", "==", "~=") for s in requirement.specifier), requirement
    bounded = {r.name: r for r in [*requirements(), *requirements("spark")]}
    for name in ("tantivy", "pyspark"):
        assert any(s.operator == "<" for s in bounded[name].specifier), name
