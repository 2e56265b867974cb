"""The Java side as compiled classes, made once for each Spark and kept for the next session.

The Janino compiler that Spark ships needs a second or two for our sources, in every new
session. So the classes are kept as a jar in the user's cache, named by what they were made of:
our sources, and version and revision of Spark. A jar is made under another name and renamed, so it
is whole or not there, and never written again.

A user who can write that jar runs code in the driver. It is therefore only used, and only kept,
where the folder and the file belong to this user and no other user may write them. Anywhere else
the classes are compiled into a folder of this session, which the JVM removes when it ends.
"""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
import zipfile
from pathlib import Path
from typing import Any

from indextables.errors import IndexTablesError
from indextables.spark import compat
from indextables.storage import workfolders
from indextables.storage.deleting import remove_file
from indextables.storage.paths import temporary_name

PROVIDERS = "META-INF/services/org.apache.spark.sql.sources.DataSourceRegister"
PROVIDER = "io.indextables.IndexTablesProvider\n"


class ShimUnavailableError(IndexTablesError):
    """The Java side cannot be installed in this session; layer 1 serves."""

    code = "ITX-6000"


def class_path(jvm: Any, gateway: Any, version: str) -> str:
    """Where the classes for this JVM are: a jar that is kept, or a folder that goes with it."""
    folder = private_cache()
    if folder is None:
        made = tempfile.mkdtemp(prefix="indextables-shim-")
        compile_sources(jvm, gateway, made, version)
        _goes_with_the_jvm(jvm, made)
        return made
    jar = folder / jar_name(version, _revision(jvm))
    if not is_private(jar):
        build(jar, jvm, gateway, version)
    return str(jar)


def build(jar: Path, jvm: Any, gateway: Any, version: str) -> None:
    """Compile with the compiler of this JVM and keep the result."""
    folder = workfolders.new_folder("shim")
    try:
        compile_sources(jvm, gateway, folder, version)
        pack(Path(folder), jar)
    finally:
        workfolders.release(folder)


def compile_sources(jvm: Any, gateway: Any, folder: str, version: str) -> None:
    """Compile the sources for this Spark into an empty folder, with the service file beside."""
    files = compat.java_sources(version)
    if not files:
        raise ShimUnavailableError(f"Spark {version} is older than 4.0")
    array = gateway.new_array(jvm.java.io.File, len(files))
    for i, path in enumerate(files):
        array[i] = jvm.java.io.File(str(path))
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    compiler = jvm.org.codehaus.janino.Compiler()
    compiler.setIClassLoader(jvm.org.codehaus.janino.ClassLoaderIClassLoader(loader))
    compiler.setSourceVersion(8)
    compiler.setTargetVersion(8)
    compiler.setDestinationDirectory(jvm.java.io.File(folder), False)
    compiler.compile(array)
    service = Path(folder) / PROVIDERS
    service.parent.mkdir(parents=True)
    service.write_text(PROVIDER)


def jar_name(version: str, revision: str) -> str:
    """The name of the jar of these sources for this Spark."""
    digest = hashlib.sha256(f"{version} {revision}".encode())
    for source in compat.java_sources(version):
        digest.update(source.read_bytes())
    return f"indextables-spark-{digest.hexdigest()[:16]}.jar"


def private_cache() -> Path | None:
    """Our folder in the user's cache; none where others may write it or it cannot be made."""
    root = os.environ.get("XDG_CACHE_HOME")
    try:
        folder = (Path(root) if root else Path.home() / ".cache") / "indextables"
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except (OSError, RuntimeError):
        return None
    return folder if is_private(folder) and os.access(folder, os.W_OK) else None


def is_private(path: Path) -> bool:
    """Is it there, this user's own, and not writable for others?"""
    try:
        found = os.lstat(path)
    except OSError:
        return False
    mine = found.st_uid == os.geteuid() and not stat.S_ISLNK(found.st_mode)
    return mine and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def pack(folder: Path, jar: Path) -> None:
    """The classes of a folder as a jar that is whole or not there."""
    made = jar.with_name(temporary_name())
    try:
        with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
            for path in sorted(p for p in folder.rglob("*") if p.is_file()):
                archive.write(path, path.relative_to(folder).as_posix())
        made.chmod(0o600)
        os.replace(made, jar)
    finally:
        remove_file(made, jar.parent)


def _revision(jvm: Any) -> str:
    """Which build of Spark this is: vendors change classes under the same version."""
    return str(jvm.org.apache.spark.SparkBuildInfo.spark_revision())


def _goes_with_the_jvm(jvm: Any, folder: str) -> None:
    """The classes are the JVM's, which may outlive this process: it removes them when it ends."""
    for path in (Path(folder), *sorted(Path(folder).rglob("*"))):
        jvm.java.io.File(str(path)).deleteOnExit()
