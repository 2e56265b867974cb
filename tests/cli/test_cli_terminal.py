"""A terminal obeys what it is sent, so nothing from data reaches it as it is."""

from __future__ import annotations

import contextlib
import io
import json
import subprocess
import sys
import unicodedata
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pyarrow as pa
import pytest

import indextables
from indextables.cli.main import main
from indextables.expr.lexer import quoted_name
from indextables.printable import on_one_line, printable, printable_json
from indextables.progress import progress

EVIL = "x\x1b[31m\x1b]0;title\x07\x9b2J\x7f\u202egnp\u2066\rover\x08\u2028end"
COLUMN = f"col {EVIL}"
OBEYED = {"Cc", "Cs", "Zl", "Zp"}


def is_harmless(text: str) -> bool:
    bidi = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
    return not any((unicodedata.category(c) in OBEYED and c != "\n") or c in bidi for c in text)


def screen(*words: str) -> str:
    out = io.StringIO()
    with redirect_stdout(out), redirect_stderr(out), contextlib.suppress(SystemExit):
        main(list(words))
    return out.getvalue()


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    place = str(tmp_path_factory.mktemp("terminal") / "tab\x1b[31mle\u202e")
    for i in range(2):
        data = pa.table(
            {
                "id": [i, i + 10],
                "message": [f"disk {EVIL}", "plain"],
                COLUMN: [EVIL, "b\nc"],
                "tags": [[EVIL], []],
                "inner": [{EVIL: EVIL}, None],
                "part": [EVIL, EVIL],
            }
        )
        indextables.write(data, place, partition_by=["part"], text=["message"])
    table = indextables.open(place)
    table.create_index(COLUMN)
    table.refresh().build_xref(force=True)
    return place


LITERAL = "'" + EVIL + "'"
COMMANDS: list[tuple[str, ...]] = [
    ("describe", "P"), ("schema", "P"), ("history", "P"), ("splits", "P"), ("head", "P"),
    ("head", "P", "id = 0"), ("head", "P", "--columns", COLUMN),
    ("count", "P", f"part = {LITERAL}"),
    ("search", "P", "disk"), ("search", "P", f"disk {EVIL}"),
    ("search", "P", EVIL, "--fields", EVIL),
    ("explain", "P", f"{quoted_name(COLUMN)} = {LITERAL} AND part = {LITERAL}"),
    ("explain", "P", f"message TEXTSEARCH 'disk' OR {quoted_name(COLUMN)} LIKE '{EVIL}%'"),
    ("explain", "P", f"{quoted_name(COLUMN)} = {LITERAL}", "--format", "json"),
    ("explain", "P", f"{quoted_name(COLUMN)} = {LITERAL}", "--format", "html"),
    ("explain", "P", "id = 0", "--why", EVIL),
    ("stats", "P"), ("doctor", "P"), ("xref", "list", "P"), ("xref", "coverage", "P"),
    ("xref", "build", "P"), ("index", "list", "P"), ("index", "build", "P", "--dry-run"),
    ("index", "create", "P", EVIL), ("index", "drop", "P", EVIL), ("index", "drop", "P", COLUMN),
    ("index", "create", "P", COLUMN), ("checkpoint", "P"), ("compact", "P"),
    ("purge", "P", "--dry-run"),
    ("delete", "P", f"{quoted_name(COLUMN)} = 'none{EVIL}'", "--dry-run"),
    ("drop-partitions", "P", f"part = 'none{EVIL}'"),
    ("merge", "P", "--where", f"part = {LITERAL}"),
    ("restore", "P", "1"), ("truncate-time-travel", "P", "--dry-run"), ("repair", "P", f"P{EVIL}"),
    ("sql", "DESCRIBE INDEXTABLES TRANSACTION LOG 'P'"), ("sql", f"MERGE SPLITS {LITERAL}"),
    ("sql", f"MERGE SPLITS 'x' {EVIL}"), ("sql", "DESCRIBE INDEXTABLES COMPONENT SIZES 'P'"),
    ("count", f"P{EVIL}"), ("count", "P", f"{EVIL} = 1"), ("count", "P", f"id = {LITERAL}"),
    ("count", "P", f"nope{EVIL}(id)"), ("head", "P", "--columns", EVIL), (EVIL,),
    ("count", f"--{EVIL}"),
    ("count", "P", "--set", EVIL), ("count", "P", "--set", f"{EVIL}=1"), ("config", EVIL),
    ("count", "P", "--storage-option", EVIL), ("head", "P", "--limit", EVIL),
    ("merge", "P", "--target-size", EVIL), ("describe", "P", "--timestamp", EVIL),
    ("count", "P", "id = '\udcff'"), ("count", "P\udcff"), ("sql", "MERGE SPLITS 'P\\ud800'"),
]  # fmt: skip


@pytest.mark.parametrize("option", ["", "--wide", "--json"])
def test_nothing_a_terminal_obeys_is_printed(path: str, option: str) -> None:
    seen = ""
    for words in COMMANDS:
        placed = [path + w[1:] if w[:1] == "P" else w.replace("'P'", f"'{path}'") for w in words]
        text = screen(*placed, *filter(None, [option]))
        assert text.strip(), words
        assert is_harmless(text), (words, ascii(text))
        assert "Traceback" not in text, (words, text)
        seen += text
    assert ("\\u001b[31m" if option == "--json" else "\\x1b[31m") in seen


def test_json_means_what_is_stored(path: str) -> None:
    (row,) = json.loads(screen("head", path, "id = 0", "--json"))
    assert row[COLUMN] == row["part"] == EVIL
    assert row["inner"] == {EVIL: EVIL}


def test_a_line_break_in_a_value_makes_no_line(path: str) -> None:
    text = screen("explain", path, f"{quoted_name(COLUMN)} = 'b\nc'")
    assert "'b\\nc'" in text


def test_unforeseen_errors_are_shown(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*args: object, **kwargs: object) -> None:
        raise OSError(f"no such thing: {EVIL}")

    monkeypatch.setattr("indextables.open", broken)
    for asked in ("0", "1"):
        monkeypatch.setenv("INDEXTABLES_TRACEBACK", asked)
        text = screen("count", path)
        assert ("Traceback" in text) == (asked == "1")
        assert "\\x1b[31m" in text
        assert is_harmless(text)


def test_log_lines_are_shown() -> None:
    """In a process of its own, where nothing sets up logging."""
    code = (
        "import logging, contextlib\n"
        "from indextables.cli.main import main\n"
        "with contextlib.suppress(SystemExit): main(['--version'])\n"
        f"logging.getLogger('indextables.log').warning('lost: %s', {EVIL!r})\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert "lost: x\\x1b[31m" in done.stderr
    assert is_harmless(done.stderr)


def test_progress_is_shown(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("SPARK_WORKER_REUSE", raising=False)
    for mode in ("lines", "bar"):
        monkeypatch.setenv("INDEXTABLES_PROGRESS", mode)
        with progress(f"index of {EVIL}", 2, clock=iter(range(0, 1000, 20)).__next__) as bar:
            bar.advance(1, f"[red]{EVIL}")
        text = capsys.readouterr().err
        assert "\\x1b[31m" in text
        assert "\x07" not in text
        assert "\u202e" not in text


def test_bytes_that_are_no_text_are_wrong_usage(tmp_path: Path) -> None:
    """Through a real process: the bytes of an argument, not a Python string."""
    for words in ([b"count", b"x", b"id = '\xff'"], [b"count", bytes(tmp_path) + b"/\xff"]):
        command = [sys.executable.encode(), b"-m", b"indextables.cli.main", *words]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
        assert done.returncode == 2
        assert "not UTF-8" in done.stderr
        assert "\\udcff" in done.stderr


def test_what_is_escaped() -> None:
    assert printable("a\nb\tc\x1b") == "a\nb\\tc\\x1b"
    assert on_one_line("a\nb") == "a\\nb"
    assert printable("é 日本 👩\u200d👩 \\x1b") == "é 日本 👩\u200d👩 \\x1b"
    raw = json.dumps(["\x9b\u202e\U000e0041\ud800"], ensure_ascii=False)
    assert json.loads(printable_json(raw)) == json.loads(raw)
    assert is_harmless(printable_json(raw))
