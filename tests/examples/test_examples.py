"""The examples run as a reader would run them."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from servers.launch import Backend

EXAMPLES = Path(__file__).parents[2] / "examples"


def load(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_example_is_listed() -> None:
    page = (EXAMPLES / "README.md").read_text()
    for file in EXAMPLES.iterdir():
        if file.suffix in (".py", ".ipynb"):
            assert f"`{file.name}`" in page


@pytest.mark.filterwarnings("ignore")
def test_the_notebook(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    monkeypatch.setenv("PYTHONPATH", str(EXAMPLES.parent))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    notebook = nbformat.read(EXAMPLES / "security_logs.ipynb", as_version=4)
    nbformat.validate(notebook)
    assert not any(cell.get("outputs") for cell in notebook.cells), "outputs would grow stale"
    place = {"metadata": {"path": str(tmp_path)}}
    nbclient.NotebookClient(notebook, timeout=120, resources=place).execute()
    pages = [
        output["data"]["text/html"]
        for cell in notebook.cells
        for output in cell.get("outputs", [])
        if "text/html" in output.get("data", {})
    ]
    assert any("itplan" in page for page in pages), "the plan shows itself"
    assert any("partition" in page for page in pages)


def test_the_table_on_s3(s3_ministack: Backend) -> None:
    uri, options = s3_ministack.fresh(), s3_ministack.options
    environment = {
        **{k: v for k, v in os.environ.items() if not k.startswith("AWS_")},
        "AWS_ACCESS_KEY_ID": options["spark.indextables.aws.accessKey"],
        "AWS_SECRET_ACCESS_KEY": options["spark.indextables.aws.secretKey"],
        "AWS_REGION": options["spark.indextables.aws.region"],
        "AWS_ENDPOINT_URL": options["spark.indextables.s3.endpoint"],
    }
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / "s3.py"), uri],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "13 timeouts" in done.stdout
    assert "splits became 3" in done.stdout
    assert environment["AWS_SECRET_ACCESS_KEY"] not in done.stdout + done.stderr


@pytest.mark.spark
def test_streams(spark: Any, tmp_path: Path) -> None:
    assert load("streaming").main(spark, str(tmp_path), batches=1) == (50, 2)


@pytest.mark.slow
@pytest.mark.spark
def test_streams_that_go_on(spark: Any, tmp_path: Path) -> None:
    assert load("streaming").main(spark, str(tmp_path), batches=3) == (150, 4)


@pytest.mark.slow
def test_the_demo() -> None:
    environment = {**os.environ, "INDEXTABLES_DEMO_ROWS": "20000"}
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / "demo.py")],
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "DIFFERENT" not in done.stdout
    assert "Spark starts" in done.stdout.splitlines()[0]
    assert "WARN" not in done.stderr
    assert "Try next" in done.stdout


def test_the_walk_over_debian(capsys: pytest.CaptureFixture[str]) -> None:
    """Skipped where apt has no index; a part of the packages is enough for every question."""
    pytest.importorskip("duckdb")
    walk = load("debian_packages")
    if not walk.can_run():
        pytest.skip("apt has no package index here")
    assert walk.main(6000) == 0
    assert capsys.readouterr().out.count("ok   ") == 10


def test_the_paragraphs_of_an_index() -> None:
    walk = load("debian_packages")
    lines = ["Package: a\n", "Tag: x,\n", " y\n", "\n", "\n", "Package: b\n", "Size: 7\n"]
    found = list(walk.parsed(lines))
    assert found == [{"Package": "a", "Tag": "x,\ny"}, {"Package": "b", "Size": "7"}]
    assert walk.row(found[1])["size"] == 7
