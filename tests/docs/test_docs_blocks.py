"""Every code block of README.md and docs/ is executed, page by page.

The table ``logs`` of the five-minute start is made once; each other page finds a copy of it in its
folder, and the names that the start defined.
"""

from __future__ import annotations

import os
import shutil
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from docs.blocks import DOCS, NOT_RUN, ROOT, Block, Runner, blocks_of, needs_spark, pages

START = DOCS / "start.md"
MOST_NOT_RUN = 3


def with_code() -> list[Path]:
    return [p for p in pages() if p != START and any(b.runs for b in blocks_of(p))]


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.fixture(scope="session")
def started(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """The folder and the names that the five-minute start leaves behind, before its Spark part."""
    place = tmp_path_factory.mktemp("start")
    names: dict[str, Any] = {"__name__": "docs"}
    before = Path.cwd()
    os.chdir(place)
    try:
        Runner(names, None, f"{place}/").run_page(START)
    finally:
        os.chdir(before)
    return place, names


@pytest.fixture
def runner(
    started: tuple[Path, dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Runner]:
    import indextables

    place, names = started
    shutil.copytree(place / "logs", tmp_path / "logs")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    own = {**names, "table": indextables.open("logs")}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield Runner(own, None, f"{tmp_path}/")


def test_the_five_minute_start(started: tuple[Path, dict[str, Any]]) -> None:
    place, _ = started
    assert (place / "logs" / "_transaction_log").is_dir()


@pytest.mark.parametrize("page", [p for p in with_code() if not needs_spark(p)], ids=name_of)
def test_pages_run(page: Path, runner: Runner) -> None:
    runner.run_page(page)


@pytest.mark.spark
@pytest.mark.parametrize("page", [p for p in with_code() if needs_spark(p)], ids=name_of)
def test_pages_with_spark_run(page: Path, runner: Runner, spark: Any) -> None:
    runner.spark = runner.names["spark"] = spark
    runner.run_page(page)


def every_block() -> list[Block]:
    return [block for page in pages() for block in blocks_of(page)]


def test_every_block_says_what_it_is() -> None:
    odd = [block.where for block in every_block() if block.odd]
    assert not odd, f"these fences have no kind, an unknown one, or stand indented: {odd}"


def test_what_is_not_run_does_not_grow() -> None:
    idle = [block.where for block in every_block() if block.title in NOT_RUN]
    assert len(idle) <= MOST_NOT_RUN, idle


def test_most_blocks_run() -> None:
    running = [block for block in every_block() if block.runs]
    assert len(running) >= 60
    assert {block.kind for block in running} == {"python", "sql", "console", "grammar"}


def test_a_wrong_block_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "p.md"
    runner = Runner({}, None, "")
    monkeypatch.setattr("docs.blocks.ROOT", tmp_path)
    for text, word in (
        ('```python\nprint("a")\n```\n```text title="output"\nb\n```\n', "but this was printed"),
        ("```console\n$ indextables describe nowhere\n```\n", "ended with 1"),
        ("```grammar\nMERGE SPLITS t [SIDEWAYS]\n```\n", "SIDEWAYS"),
    ):
        page.write_text(text)
        with pytest.raises(Exception, match=word):
            runner.run_page(page)
