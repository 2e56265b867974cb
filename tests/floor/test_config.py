"""The settings registry: typed, layered, case-insensitive, strict about names."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from indextables.config import SETTINGS, Config, parse_size, render_markdown, settings_page
from indextables.errors import ConfigError


def test_layers_option_over_session_over_default() -> None:
    config = Config.of(
        {"spark.indextables.checkpoint.interval": "3"},
        {"spark.indextables.checkpoint.interval": "7", "spark.app.name": "x"},
    )
    assert config["checkpoint.interval"] == 3
    assert config["state.compaction.maxManifests"] == 20


def test_keys_are_case_insensitive_and_prefix_is_optional() -> None:
    config = Config({"SPARK.INDEXTABLES.Checkpoint.INTERVAL": 5})
    assert config["checkpoint.interval"] == 5
    assert config["spark.indextables.checkpoint.interval"] == 5
    assert config.is_set("checkpoint.interval")
    assert not config.is_set("checkpoint.enabled")


def test_families_keep_the_case_of_their_last_part() -> None:
    config = Config.of({"spark.indextables.INDEXING.TypeMap.UserName": "text"})
    assert config.family("indexing.typemap.") == {"UserName": "text"}


@pytest.mark.parametrize(
    ("key", "value", "word"),
    [
        ("spark.indextables.xref.qery.enabled", "1", "xref.query.enabled"),
        ("spark.indextables.checkpoint.interval", "ten", "not a int"),
        ("spark.indextables.state.format", "xml", "avro, json"),
        ("spark.indextables.checkpoint.enabled", "maybe", "not a bool"),
    ],
)
def test_bad_settings_are_refused_with_help(key: str, value: str, word: str) -> None:
    with pytest.raises(ConfigError, match=word):
        Config.of({key: value})


def test_foreign_options_are_not_ours() -> None:
    assert Config.of({"path": "/a", "header": "true"}).raw() == {}


@pytest.mark.parametrize(
    ("text", "size"), [("512", 512), ("1K", 1024), ("2g", 2 << 30), ("1.5M", 1572864), (7, 7)]
)
def test_sizes(text: str | int, size: int) -> None:
    assert parse_size(text) == size


def test_every_default_has_its_own_type() -> None:
    for setting in SETTINGS:
        if setting.default is not None and not setting.is_family:
            assert setting.parse(setting.default) == setting.default, setting.key


def test_secrets_do_not_show_in_the_repr() -> None:
    config = Config.of({"spark.indextables.aws.secretKey": "hunter2hunter2"})
    assert "hunter2" not in repr(config)


def test_documentation_names_every_setting() -> None:
    page = render_markdown()
    for setting in SETTINGS:
        assert f"`{setting.full_key}`" in page


def test_the_settings_page_is_current() -> None:
    page = (Path(__file__).parents[2] / "docs" / "settings.md").read_text()
    assert settings_page() == page, "run: python -m indextables.config > docs/settings.md"


def test_defaults_are_shown_as_options_that_mean_the_same() -> None:
    for setting in SETTINGS:
        shown = re.search(
            rf"^\| `{re.escape(setting.full_key)}` \| \w+ \| (.*?) \|", render_markdown(), re.M
        )
        assert shown is not None
        if shown[1]:
            assert setting.parse(shown[1].strip("`")) == setting.default
