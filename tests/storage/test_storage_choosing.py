"""Which client talks to a service, and what obstore must not take from its surroundings."""

from __future__ import annotations

import os
import pickle
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from servers.launch import Backend

from indextables.errors import ConfigError, UnsupportedStoreError
from indextables.storage import choosing, open_store
from indextables.storage.obstore import ObstoreS3Store
from indextables.storage.s3 import S3Store

CLIENT = "spark.indextables.storage.client"
GIVEN: dict[str, Any] = {
    "key": "AKIDEXAMPLE",
    "secret": "very-secret-value",
    "endpoint_url": "http://127.0.0.1:9",
}


@pytest.fixture(autouse=True)
def bare_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith(("AWS_", "AZURE_")):
            monkeypatch.delenv(name)


def kind(options: dict[str, Any], uri: str = "s3://b/t") -> str:
    return type(open_store(uri, options)).__name__


def test_a_setting_chooses(monkeypatch: pytest.MonkeyPatch) -> None:
    """``storage.client``: auto takes obstore where it knows everything, the others insist."""
    assert kind(GIVEN) == kind(GIVEN | {CLIENT: "obstore"}) == "ObstoreS3Store"
    assert kind(GIVEN | {CLIENT: "FSSPEC"}) == "S3Store"
    with pytest.raises(ConfigError, match="is not one of auto, obstore, fsspec"):
        open_store("s3://b/t", GIVEN | {CLIENT: "curl"})
    monkeypatch.setattr(choosing, "find_spec", lambda name: None)
    assert kind(GIVEN) == "S3Store"
    with pytest.raises(UnsupportedStoreError, match="not installed"):
        open_store("s3://b/t", GIVEN | {CLIENT: "obstore"})


@pytest.mark.parametrize(
    "options",
    [
        GIVEN | {"profile": "work"},
        GIVEN | {"client_kwargs": {"verify": False}},
        {"endpoint_url": "http://127.0.0.1:9"},
        {"key": "k", "secret": "s"},
    ],
    ids=["raw option", "nested raw option", "no credentials", "no region"],
)
def test_what_obstore_does_not_know_goes_to_the_other_client(options: dict[str, Any]) -> None:
    assert kind(options) == "S3Store"
    with pytest.raises(ConfigError, match=r"but (it has no option|no)"):
        open_store("s3://b/t", options | {CLIENT: "obstore"})


def test_a_variable_that_only_obstore_follows_is_not_followed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT", "http://elsewhere")
    assert kind(GIVEN) == "S3Store"


@pytest.fixture
def listener() -> Iterator[tuple[int, list[bytes]]]:
    """A port that keeps what it is sent and refuses it."""
    heard: list[bytes] = []
    server = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                connection, _ = server.accept()
            except OSError:
                return
            with connection:
                heard.append(connection.recv(1 << 16))
                connection.sendall(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")

    threading.Thread(target=serve, daemon=True).start()
    yield server.getsockname()[1], heard
    server.close()


def test_credentials_are_of_one_source(
    listener: tuple[int, list[bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither the token nor the endpoint of the environment joins what was given."""
    port, heard = listener
    monkeypatch.setenv("AWS_SESSION_TOKEN", "token-of-another")
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "http://127.0.0.1:1")
    given = GIVEN | {"endpoint_url": f"http://127.0.0.1:{port}"}
    store = open_store("s3://b/t", given)
    assert isinstance(store, ObstoreS3Store)
    with pytest.raises(Exception, match="cannot read") as failure:
        store.read("x")
    assert b"AKIDEXAMPLE" in heard[0]
    assert b"token-of-another" not in heard[0]
    assert "very-secret-value" not in f"{failure.value!r} {failure.value.__cause__!r}"
    assert "Debug source" not in str(failure.value)


def test_a_pickle_chooses_again(monkeypatch: pytest.MonkeyPatch) -> None:
    data = pickle.dumps(open_store("s3://b/t", GIVEN))
    assert isinstance(pickle.loads(data), ObstoreS3Store)
    monkeypatch.setattr(choosing, "find_spec", lambda name: None)
    assert isinstance(pickle.loads(data), S3Store)


FORKED = """
import os, sys
from indextables.storage import open_store
store = open_store(sys.argv[1] + "/forked", eval(sys.argv[2]))
assert type(store).__name__ == "ObstoreS3Store"
store.put("a", b"1")
child = os.fork()
if child == 0:
    try:
        assert store.read("a") == b"1"
        assert store.read_ranges("a", [(0, 1)]) == [b"1"]
        assert [i.path for i in store.list_folder().files] == ["a"]
        store.put_if_absent("b", b"2")
        os._exit(0)
    finally:
        os._exit(1)
assert os.waitpid(child, 0)[1] == 0
assert store.read("b") == b"2"
"""


def test_a_forked_child_uses_the_other_client(s3_counting: Backend) -> None:
    """obstore would wait for ever in the child of a process that has used it."""
    command = [sys.executable, "-c", FORKED, s3_counting.uri, repr(s3_counting.options)]
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
    subprocess.run(command, check=True, timeout=60, env=environment)


def test_a_cold_read_imports_no_slow_client(s3_counting: Backend) -> None:
    script = (
        "import sys; from indextables.storage import open_store\n"
        f"store = open_store({s3_counting.fresh()!r}, {s3_counting.options!r})\n"
        "store.put('a', b'1'); store.list_folder(); store.read_ranges('a', [(0, 1)])\n"
        "slow = {'s3fs', 'botocore', 'aiohttp', 'asyncio', 'fsspec'} & set(sys.modules)\n"
        "assert not slow, slow"
    )
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60, env=environment)


def test_a_folder_is_listed_past_its_subfolders(
    s3_counting: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pages of a tree give what pages of a folder give, for every place where a page may end."""
    quick = open_store(s3_counting.fresh(), s3_counting.options)
    slow = open_store(quick.uri, s3_counting.options | {CLIENT: "fsspec"})
    names = [f"log/{i:02d}.json" for i in range(7)]
    names += [f"log/deep/{i}/x" for i in range(5)] + ["log/deep-er", "log/z/1", "log/zz", "other"]
    for name in names:
        quick.put(name, b"")
    for page in (1, 2, 3, 5, 50):
        monkeypatch.setattr(ObstoreS3Store, "page", page)
        for after in (None, "log/03", "log/deep", "log/zz"):
            found, wanted = quick.list_folder("log", after), slow.list_folder("log", after)
            assert [i.path for i in found.files] == [i.path for i in wanted.files]
            assert set(wanted.folders) <= set(found.folders) | {"log/deep", "log/z"}
            assert found.complete
        cut = quick.list_folder("log", None, 1)
        assert cut.complete == (page == 50)
