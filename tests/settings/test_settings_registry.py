"""Settings act or do not exist: each key is read somewhere, and each has a test that sees it act.

A key that is accepted without an effect says so in the registry, is read by nothing, and leaves one
line in the log when it is set.
"""

from __future__ import annotations

import ast
import logging
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from settings_tests import TESTS

from indextables import config
from indextables.config import PREFIX, SETTINGS, Config, Setting

ROOT = Path(__file__).parents[2]
TESTED = ROOT / "tests"
REGISTRY = ("settings.py", "config.py")
ACTING = [s for s in SETTINGS if not s.is_inert]
INERT = [s for s in SETTINGS if s.is_inert]


@cache
def read_keys() -> frozenset[str]:
    """Every text in the package, outside the registry, that is used as a key, in lower case.

    Text with the prefix is a word to the user, except where options of a store are named. A key of
    a dictionary is set, not read.
    """
    found: set[str] = set()
    for path in (ROOT / "indextables").rglob("*.py"):
        if path.relative_to(ROOT / "indextables").as_posix() in REGISTRY:
            continue
        named = path.name == "client_options.py"
        for text in _texts(ast.parse(path.read_text())):
            if named:
                found.add(text.lower().removeprefix(PREFIX))
            elif not text.lower().startswith(PREFIX):
                found.add(text.lower())
    return frozenset(found)


def _texts(tree: ast.AST) -> Iterator[str]:
    written = {id(k) for n in ast.walk(tree) if isinstance(n, ast.Dict) for k in n.keys if k}
    for node in ast.walk(tree):
        text = node.value if isinstance(node, ast.Constant) else None
        if isinstance(text, str) and id(node) not in written:
            yield text


def is_read(setting: Setting) -> bool:
    key = setting.key.lower()
    if setting.is_family:
        return any(text.startswith(key[:-1]) for text in read_keys())
    return key in read_keys()


@pytest.mark.parametrize("setting", ACTING, ids=lambda s: s.key)
def test_every_setting_is_read(setting: Setting) -> None:
    assert is_read(setting), f"nothing reads {setting.full_key}: let it act, or mark it inert"


def test_a_key_that_is_only_mentioned_is_not_read() -> None:
    """Neither a hint, nor a docstring, nor a key that is set counts."""
    tree = ast.parse('''
"""About made.up.key."""
HINT = "raise spark.indextables.made.up.key"
config.updated({"made.up.key": 1})
''')
    assert "made.up.key" not in set(_texts(tree))
    assert "made.up.key" in set(_texts(ast.parse('config["made.up.key"]')))
    assert not is_read(Setting("made.up.key", "int", 1, "Never read."))
    assert not is_read(Setting("made.up.*", "str", None, "Never read."))


@pytest.mark.parametrize("setting", INERT, ids=lambda s: s.key)
def test_what_has_no_effect_is_read_by_nothing_and_says_so(setting: Setting) -> None:
    assert not is_read(setting), f"{setting.full_key} acts: it is not inert"
    assert setting.doc.startswith("No effect: ")


@pytest.mark.parametrize("setting", INERT, ids=lambda s: s.key)
def test_setting_what_has_no_effect_is_told_once(
    setting: Setting, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(config, "_told", set())
    key = setting.full_key.replace("*", "something")
    value = "x" if setting.default is None and not setting.is_number else setting.default
    with caplog.at_level(logging.WARNING, "indextables.config"):
        for _ in range(2):
            Config({key: 1 if value is None else value})
    (record,) = caplog.records
    assert key.lower() in record.getMessage().lower()
    assert "No effect: " in record.getMessage()


def test_setting_what_acts_is_told_by_nobody(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(config, "_told", set())
    with caplog.at_level(logging.DEBUG):
        Config({s.key: s.default for s in ACTING if s.default is not None})
    assert caplog.records == []


# -- the table of tests --------------------------------------------------------------------------


def test_the_table_of_tests_is_complete() -> None:
    assert sorted(TESTS) == sorted(s.key for s in ACTING)


@cache
def module(path: str) -> tuple[str, dict[str, str]]:
    """The text of a test module, and that of each test in it."""
    text = (TESTED / path).read_text()
    tests = {
        node.name: ast.get_source_segment(text, node) or ""
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef)
    }
    return text, tests


@pytest.mark.parametrize("key", TESTS)
def test_the_test_of_a_setting_is_there_and_sets_it(key: str) -> None:
    path, _, name = TESTS[key].partition("::")
    text, tests = module(path)
    assert name in tests, TESTS[key]
    plain = key.removesuffix("*").lower()
    shown = text.lower()
    spellings = (plain, plain.replace(".", "__"))
    if key.startswith("write.optimizeWrite."):
        spellings = (plain.rpartition(".")[2],)
    assert any(s in shown for s in spellings), f"{path} never sets {key}"
