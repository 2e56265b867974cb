"""One source for all minors of Spark: which Java files go together, where classes are kept."""

from __future__ import annotations

import os
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import indextables
from indextables.spark import compat
from indextables.spark.driver import classes, selftest, shim
from indextables.spark.driver import session as joining

JAVA = compat.JAVA
EDGES = sorted({path.name for path in (JAVA / "since").rglob("*.java")})


def names(version: str) -> dict[str, str]:
    """Which folder each edge comes from."""
    found = [path for path in compat.java_sources(version) if "since" in path.parts]
    return {path.name: path.parent.name for path in found}


@pytest.mark.parametrize("minor", compat.TESTED)
def test_every_minor_has_every_edge_once(minor: tuple[int, int]) -> None:
    version = f"{minor[0]}.{minor[1]}.7"
    assert sorted(names(version)) == EDGES
    files = [str(path).rpartition("since")[2] for path in compat.java_sources(version)]
    assert len(files) == len(set(files))
    assert all(compat.minor_of(since) <= minor for since in names(version).values())


def test_versions_of_vendors_and_of_the_future() -> None:
    assert compat.minor_of("4.2.1-amzn-0") == (4, 2)
    assert compat.minor_of("4.10.0-SNAPSHOT") == (4, 10)
    assert names("4.9.0") == names("4.3.0")
    assert names("5.0.0") == names("4.3.0")
    assert compat.java_sources("3.5.6") == []
    assert not compat.is_tested("4.4.0")
    assert compat.is_tested("4.0.2.7.dbr")


def test_every_edge_is_in_the_list_of_differences() -> None:
    told = " ".join(d.done for d in compat.DIFFERENCES)
    assert [name for name in EDGES if name not in told] == []
    for difference in compat.DIFFERENCES:
        for name in re.findall(r"\w+\.java", difference.done):
            assert (JAVA / "since" / "{}.{}".format(*difference.since) / name).exists()


def test_only_one_module_asks_for_a_version_of_spark() -> None:
    """Checks of versions and names that some PySpark lacks stay in one place."""
    asked = re.compile(r"pyspark\.__version__|minor_of\(|except ImportError")
    found = {
        path.name
        for path in (Path(indextables.__file__).parent / "spark").rglob("*.py")
        if asked.search(path.read_text())
    }
    assert found <= {"compat.py", "connect.py"}


def test_a_cache_that_others_can_write_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    folder = classes.private_cache()
    assert folder == tmp_path / "indextables"
    assert folder.stat().st_mode & 0o077 == 0
    jar = folder / "a.jar"
    assert not classes.is_private(jar)
    jar.write_bytes(b"")
    jar.chmod(0o600)
    assert classes.is_private(jar)
    jar.chmod(0o620)
    assert not classes.is_private(jar)
    (folder / "b.jar").symlink_to(jar)
    assert not classes.is_private(folder / "b.jar")
    folder.chmod(0o770)
    assert classes.private_cache() is None


def test_a_cache_of_someone_else_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    mine = os.geteuid()
    assert classes.private_cache() is not None
    monkeypatch.setattr(classes.os, "geteuid", lambda: mine + 1)
    assert classes.private_cache() is None


def test_a_jar_is_named_by_what_it_is_made_of() -> None:
    first = classes.jar_name("4.3.0", "abc")
    assert first == classes.jar_name("4.3.0", "abc")
    others = {classes.jar_name(*made) for made in (("4.3.0", "abd"), ("4.2.0", "abc"))}
    assert first not in others
    assert len(others) == 2


def test_the_session_loads_the_jar_that_is_kept(spark: Any) -> None:
    place = spark._jvm.java.lang.System.getProperty(shim._MARK)
    revision = classes._revision(spark._jvm)
    assert place.endswith(classes.jar_name(spark.version, revision))
    assert classes.is_private(Path(place))


def test_the_self_test_passes_and_can_fail(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    selftest.run(spark)
    monkeypatch.setattr(selftest, "ROWS", 24)
    monkeypatch.setattr(selftest, "_ids", lambda _: [])
    with pytest.raises(classes.ShimUnavailableError, match="a filter gave"):
        selftest.run(spark)


class Locked:
    """A session whose platform lets nobody into the JVM."""

    version = "4.1.0"
    conf = SimpleNamespace(getAll={})

    @property
    def _jvm(self) -> Any:
        raise AttributeError("[JVM_ATTRIBUTE_NOT_SUPPORTED] Attribute `_jvm` is not supported")


def test_a_locked_session_gets_layer_1_with_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(classes.ShimUnavailableError, match="does not give access to its JVM"):
        shim.install(Locked(), object())
    registered: list[str] = []
    monkeypatch.setattr(joining, "_register_source", lambda _, s: registered.append(s.name()))
    monkeypatch.setattr(joining.sqlfunctions, "register", lambda _: None)
    with pytest.warns(UserWarning, match="does not give access to its JVM"):
        assert indextables.register(Locked()) == 1
    assert registered == ["indextables_python", "indextables"]
