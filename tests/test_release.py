"""The release house: workflows, wheels, the one version, and what an import costs."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests" / "release"))

import check_release  # noqa: E402
import matrix  # noqa: E402

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
PINNED = re.compile(r"^[\w./-]+@[0-9a-f]{40}$")


def loaded(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(path.read_text())
    return found


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda p: p.name)
def test_workflows_pin_what_they_run_and_ask_for_little(path: Path) -> None:
    found = loaded(path)
    assert found["permissions"] == {}
    assert set(found["jobs"])
    for name, job in found["jobs"].items():
        assert job["timeout-minutes"], name
        assert "permissions" in job, name
        for step in job["steps"]:
            assert ("uses" in step) != ("run" in step)
            if "uses" in step:
                assert PINNED.match(step["uses"]), step["uses"]
            else:
                assert "${{" not in step["run"], "expressions belong into env"


def test_zizmor_finds_nothing() -> None:
    command = [shutil.which("zizmor") or f"{Path(sys.executable).parent}/zizmor"]
    done = subprocess.run(
        [*command, "--offline", "--no-progress", "--quiet", str(ROOT / ".github")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout


def test_workflows_call_targets_that_exist() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    called = {
        name for path in WORKFLOWS for name in re.findall(r"run: make ([a-z-]+)", path.read_text())
    }
    assert {"test", "test-matrix", "docs"} <= called <= targets


def test_other_yaml_files_are_read() -> None:
    for path in (*(ROOT / ".github").rglob("*.yml"), ROOT / ".pre-commit-config.yaml"):
        assert loaded(path), path


def wheel(folder: Path, abi: str, parts: bool = True) -> None:
    name = f"indextables-{check_release.version()}-{abi}-manylinux_2_28_x86_64.whl"
    with zipfile.ZipFile(folder / name, "w") as archive:
        if parts:
            archive.writestr("indextables.dist-info/sboms/indextables.cdx.json", "{}")


def test_a_release_is_whole_or_refused(tmp_path: Path) -> None:
    version = check_release.version()
    abis = [f"{i.removesuffix('t')}-{i}" for i in check_release.interpreters()]
    assert "cp314-cp314t" in abis
    for abi in abis:
        wheel(tmp_path, abi)
    assert check_release.problems(tmp_path, f"v{version}") == ["there is no source distribution"]
    (tmp_path / f"indextables-{version}.tar.gz").touch()
    assert check_release.problems(tmp_path, f"v{version}") == []
    assert check_release.problems(tmp_path, "v9.9.9")
    (tmp_path / "indextables-0.0.0.tar.gz").touch()
    wheel(tmp_path, abis[0], parts=False)
    found = check_release.problems(tmp_path, f"v{version}")
    assert any("0.0.0" in text for text in found)
    assert any("list of its parts" in text for text in found)
    next(tmp_path.glob("*cp314t*")).unlink()
    assert "there is no wheel for cp314t" in check_release.problems(tmp_path, f"v{version}")


def test_the_page_of_compatibility_is_what_was_measured() -> None:
    assert (ROOT / "docs" / "compatibility.md").read_text() == matrix.page()
    assert set(matrix.noted_results()) <= set(matrix.minors())


def test_results_are_counted_by_area(tmp_path: Path) -> None:
    report = tmp_path / "r.xml"
    report.write_text(
        "<testsuites><testsuite>"
        "<testcase classname='tests.spark.test_spark_leaks' name='a'/>"
        "<testcase classname='tests.spark.test_spark_leaks' name='b'><failure/></testcase>"
        "<testcase classname='tests.spark.test_spark_case' name='c'><skipped/></testcase>"
        "</testsuite></testsuites>"
    )
    found = matrix.counted(report)
    assert found["leaks"] == [1, 1, 0]
    assert found["the rest"] == [0, 0, 1]
    assert matrix.cell([3, 1, 0]) == "3, **1 failed**"
    assert matrix.cell([0, 0, 2]) == "-"


HEAVY = ("pandas", "pyspark", "py4j", "pyarrow.dataset", "pyarrow.parquet", "sqlglot", "rich")


def test_an_import_loads_little() -> None:
    """Counted in modules: the time of an import is measured by ``bench``, not by tests."""
    text = "import json, sys, indextables; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", text], capture_output=True, text=True, check=True, cwd=ROOT
    )
    modules = json.loads(done.stdout)
    assert [name for name in HEAVY if name in modules] == []
    assert len(modules) < 250


def test_every_dependency_has_its_line() -> None:
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    page = (ROOT / "docs" / "dependencies.md").read_text()
    named = set(re.findall(r"^\| `([\w.-]+)` \|", page, re.MULTILINE))
    tools = {"test", "lint", "docs", "bench", "release"}
    extras = set(project["optional-dependencies"]) - tools
    required = {re.split(r"[ ;<>=]", text)[0] for text in project["dependencies"]}
    assert required | extras == named
