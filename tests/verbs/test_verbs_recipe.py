"""The recipe of CONTRIBUTING: one class is a verb, as SQL and on the command line."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from click.testing import CliRunner

import indextables
from indextables.cli.app import Context
from indextables.cli.verbs import command
from indextables.verbs import REGISTRY, Target, Verb
from indextables.verbs.base import parameter, verb

ROOT = Path(__file__).parents[2]


@pytest.fixture
def new_verb() -> Iterator[type[Verb[Any]]]:
    """A verb that is nowhere else."""

    @verb
    class CountLive(Verb["list[rows.Finding]"]):
        """Count the live splits of a table."""

        SQL = "COUNT LIVE SPLITS OF {table} [LIMIT {most:int}]"
        CLI, METHOD = "count-live", "count_live"

        most: int = parameter(default=100, doc="Count no further.")

        def apply(self, on: Target) -> Any:
            from indextables.maintenance.rows import Finding

            count = min(self.most, on.log.snapshot().num_files)
            return [Finding(on.log.path, "info", "live", None, str(count), "")]

    yield CountLive
    REGISTRY.remove(CountLive)


def test_one_class_is_a_command_in_sql_and_in_the_shell(
    new_verb: type[Verb[Any]], tmp_path: Path
) -> None:
    path = str(tmp_path / "t")
    indextables.write(pa.table({"a": [1, 2, 3]}), path, rows_per_split=1)
    for tail, count in (("", "3"), (" limit 2", "2")):
        found: Any = indextables.sql.execute(f"COUNT live SPLITS OF '{path}'{tail}")
        assert found["detail"].to_pylist() == [count]
    done = CliRunner().invoke(command(new_verb), [path, "--most", "1"], obj=Context({}, {}))
    assert done.exit_code == 0, done.output
    assert "live" in done.output


def test_the_commits_that_serve_as_examples_exist() -> None:
    """Where the history is at hand; a shallow clone has none of it."""
    text = (ROOT / "CONTRIBUTING.md").read_text()
    commits = re.findall(r"Commit `?([0-9a-f]{7})`?", text)
    subjects = re.findall(r'git log --grep "([^"]+)"', text)
    assert len(commits) >= 3
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.skip("no history here")

    def git(*words: str) -> str:
        command = ["git", *words]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        return done.stdout.strip()

    if git("rev-parse", "--is-shallow-repository") != "false":
        pytest.skip("no whole history here")
    for commit in commits:
        assert git("merge-base", commit, "HEAD").startswith(commit), f"{commit} is no ancestor"
    for subject in subjects:
        assert git("log", "--format=%h", "--grep", subject), f"no commit says {subject!r}"
