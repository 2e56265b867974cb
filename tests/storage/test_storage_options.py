"""Options from three sources in order; secrets in no text that leaves a store."""

from __future__ import annotations

import logging
import pickle
import subprocess
import sys
import traceback

import pytest

from indextables.errors import ConfigError, IndexTablesError, UnsupportedStoreError
from indextables.storage import open_store, redact, resolve_options
from indextables.storage.client_options import scheme_of
from indextables.storage.redaction import is_clean, secrets_of

S3_CONF = {
    "spark.indextables.aws.accessKey": "conf-key",
    "spark.indextables.aws.secretKey": "conf-secret",
    "spark.indextables.s3.endpoint": "http://conf:9000",
    "spark.indextables.s3.pathStyleAccess": "true",
}
S3_ENV = {
    "AWS_ACCESS_KEY_ID": "env-key",
    "AWS_SECRET_ACCESS_KEY": "env-secret",
    "AWS_SESSION_TOKEN": "env-token",
    "AWS_ENDPOINT_URL": "http://env:9000",
    "AWS_REGION": "eu-west-1",
}


def test_the_environment_serves_when_nothing_else_does() -> None:
    assert resolve_options("s3://b/t", None, None, S3_ENV) == {
        "key": "env-key",
        "secret": "env-secret",
        "token": "env-token",
        "endpoint_url": "http://env:9000",
        "client_kwargs": {"region_name": "eu-west-1"},
    }


def test_configuration_wins_over_the_environment_and_credentials_are_one_unit() -> None:
    resolved = resolve_options("s3a://b/t", None, S3_CONF, S3_ENV)
    assert (resolved["key"], resolved["secret"]) == ("conf-key", "conf-secret")
    assert "token" not in resolved
    assert resolved["endpoint_url"] == "http://conf:9000"
    assert resolved["client_kwargs"] == {"region_name": "eu-west-1"}
    assert resolved["config_kwargs"] == {"s3": {"addressing_style": "path"}}


def test_storage_options_win_in_either_spelling() -> None:
    raw = {"key": "raw-key", "secret": "raw-secret", "config_kwargs": {"read_timeout": 7}}
    resolved = resolve_options("s3://b/t", raw, S3_CONF, S3_ENV)
    assert (resolved["key"], resolved["secret"]) == ("raw-key", "raw-secret")
    assert resolved["config_kwargs"] == {"read_timeout": 7, "s3": {"addressing_style": "path"}}
    assert raw == {"key": "raw-key", "secret": "raw-secret", "config_kwargs": {"read_timeout": 7}}
    spelled = {"spark.indextables.s3.endpoint": "http://option:1"}
    assert resolve_options("s3://b/t", spelled, S3_CONF, {})["endpoint_url"] == "http://option:1"


def test_keys_are_compared_without_case_and_hosts_get_a_scheme() -> None:
    lowered = {name.lower(): value for name, value in S3_CONF.items()}
    assert resolve_options("s3://b/t", lowered, None, {}) == resolve_options(
        "s3://b/t", None, S3_CONF, {}
    )
    bare = {"fs.s3a.endpoint": "minio.internal:9000"}
    assert resolve_options("s3://b", None, bare, {}) == {
        "endpoint_url": "https://minio.internal:9000"
    }


@pytest.mark.parametrize("uri", ["s3://b/t", "gs://b/t", "az://c/t", "abfss://c@a.dfs.x/t", "/t"])
def test_resolving_twice_changes_nothing(uri: str) -> None:
    conf = S3_CONF | {
        "spark.indextables.gcs.projectId": "p",
        "spark.indextables.gcs.endpoint": "http://g:1",
        "spark.indextables.azure.accountName": "a",
        "spark.indextables.azure.accountKey": "azure-secret",
        "spark.indextables.azure.endpoint": "http://z:1/a",
        "spark.indextables.storage.fsync": "false",
        "spark.indextables.storage.timeoutSeconds": "3",
        "spark.indextables.unrelated": "ignored",
    }
    once = resolve_options(uri, None, conf, S3_ENV)
    assert resolve_options(uri, once, None, {}) == once
    assert resolve_options(uri, once, conf, S3_ENV) == once
    assert "spark.indextables.unrelated" not in once
    assert once["spark.indextables.storage.fsync"] is False


def test_bad_values_are_named() -> None:
    with pytest.raises(ConfigError, match="pathStyleAccess"):
        resolve_options("s3://b", {"spark.indextables.s3.pathStyleAccess": "perhaps"}, {}, {})
    with pytest.raises(ConfigError, match="timeoutSeconds"):
        resolve_options("s3://b", {"spark.indextables.storage.timeoutSeconds": "-1"}, {}, {})


def test_schemes_have_aliases() -> None:
    expected = {
        "/a/b": "file",
        "relative/path": "file",
        "file:///x": "file",
        "S3A://b": "s3",
        "gcs://b": "gs",
        "abfss://c@a/x": "az",
        "memory://x": "memory",
        "hdfs://n/x": "hdfs",
    }
    assert {uri: scheme_of(uri) for uri in expected} == expected


SECRET = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
TEXTS = [
    f"s3://AKIAIOSFODNN7EXAMPLE:{SECRET}@bucket/x",
    f"AccountName=a;AccountKey={SECRET};EndpointSuffix=x",
    f"https://a.blob.core.windows.net/c?sv=2024&sig={SECRET}&se=1",
    f"https://b.s3.amazonaws.com/k?X-Amz-Credential={SECRET}&X-Amz-Signature={SECRET}",
    f"Authorization: AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/x, Signature={SECRET}",
    f"headers {{'Authorization': 'Bearer {SECRET}'}}",
    f"<Error><AWSAccessKeyId>{SECRET}</AWSAccessKeyId></Error>",
    f"{{'secret': '{SECRET}', 'token': \"{SECRET}\"}}",
    f"aws_secret_access_key={SECRET}",
    f"client_secret: {SECRET}",
]


@pytest.mark.parametrize("text", TEXTS)
def test_shapes_of_secrets_are_recognised(text: str) -> None:
    cleaned = redact(text)
    assert SECRET not in cleaned
    assert "AKIAIOSFODNN7EXAMPLE" not in cleaned
    assert "***" in cleaned
    assert not is_clean(OSError(text), ())


@pytest.mark.parametrize(
    "text",
    [
        "no such object (path: s3://bucket/key=5/part.split)",
        "Connection refused by http://127.0.0.1:9000/tables/_log/0.json",
        "The specified blob already exists. RequestId:14df1d1b",
        "abfss://container@account.dfs.core.windows.net/t",
        "tokenised column: title",
    ],
)
def test_ordinary_text_is_left_alone(text: str) -> None:
    assert redact(text) == text


def test_mappings_are_masked_by_name_and_values_by_value() -> None:
    options = {
        "key": "k-123456",
        "client_kwargs": {"region_name": "eu", "aws_session_token": "tok-123456"},
        "endpoint_url": "http://x:1",
        "connection_string": "AccountKey=abc123456",
    }
    shown = redact(options)
    for secret in ("k-123456", "tok-123456", "abc123456"):
        assert secret not in shown
    assert "http://x:1" in shown
    assert "eu" in shown
    assert secrets_of(options) == {"k-123456", "tok-123456", "AccountKey=abc123456"}
    assert redact("it said tok-123456!", secrets_of(options)) == "it said ***!"


def test_a_dirty_cause_is_not_chained() -> None:
    from indextables.storage.s3 import S3Store

    store = S3Store("s3://bucket/t", {"key": "my-key-id", "secret": "very-secret-value"})
    quoting = OSError("signature mismatch")
    quoting.__cause__ = ValueError("computed with very-secret-value")
    failure = store._translate(quoting, "x", "write")
    assert failure.__cause__ is None
    clean = OSError("connection reset")
    assert store._translate(clean, "x", "write").__cause__ is clean


URIS = {
    "s3://bucket/t": {
        "key": "SECRETVALUE-key",
        "secret": "SECRETVALUE-secret",
        "token": "SECRETVALUE-token",
        "endpoint_url": "http://127.0.0.1:9",
    },
    "gs://bucket/t": {"token": "SECRETVALUE.json", "endpoint_url": "http://127.0.0.1:9"},
    "az://container/t": {
        "account_name": "a",
        "account_key": "U0VDUkVUVkFMVUU=",
        "endpoint": "http://127.0.0.1:9/a",
    },
    "abfss://container@acct.dfs.core.windows.net/t": {
        "connection_string": "AccountName=a;AccountKey=U0VDUkVUVkFMVUU=;BlobEndpoint=http://127.0.0.1:9/a"
    },
}


@pytest.mark.parametrize("uri", URIS)
def test_no_secret_in_repr_errors_or_logs(uri: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, logger="indextables")
    attempts = {"spark.indextables.storage.attempts": "1"}
    store = open_store(uri, URIS[uri] | attempts)
    shown = [repr(store), str(store), store.uri, store.identity]
    for call in (
        lambda: store.read("x"),
        lambda: store.put("x", b""),
        lambda: store.put_if_absent("x", b""),
        lambda: list(store.list()),
        lambda: store.delete(["x"]),
    ):
        with pytest.raises(IndexTablesError) as raised:
            call()
        shown += [
            str(raised.value),
            repr(raised.value),
            "".join(traceback.format_exception(raised.value)),
        ]
    shown += [record.getMessage() for record in caplog.records if "indextables" in record.name]
    for text in shown:
        assert "SECRETVALUE" not in text
        assert "U0VDUkVUVkFMVUU" not in text


@pytest.mark.parametrize(
    "uri", ["s3://key:secret-word@bucket/t", "gs://bucket?token=secret-word/t"]
)
def test_secrets_inside_a_uri_are_refused_without_quoting_them(uri: str) -> None:
    with pytest.raises(ConfigError) as raised:
        open_store(uri)
    assert "secret-word" not in str(raised.value)


def test_uris_are_canonical_and_pickles_carry_options() -> None:
    store = open_store("s3a://bucket/a/b/", {"key": "k"})
    assert store.uri == "s3://bucket/a/b"
    assert pickle.loads(pickle.dumps(store))._options == store._options
    azure = open_store("abfss://c@acct.dfs.core.windows.net/t")
    assert azure.uri == "az://c/t"
    assert pickle.loads(pickle.dumps(azure)).identity == azure.identity == "acct|az://c/t"
    assert open_store("s3://bucket").uri == "s3://bucket"


@pytest.mark.parametrize(
    ("uri", "library", "extra"),
    [("s3://b/t", "s3fs", "s3"), ("gs://b/t", "gcsfs.core", "gcs"), ("az://c/t", "adlfs", "azure")],
)
def test_a_missing_client_library_says_what_to_install(
    uri: str, library: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    store = open_store(uri, {"token": f"never-seen-{extra}"} if extra == "s3" else {})
    with pytest.raises(UnsupportedStoreError, match=rf"pip install 'indextables\[{extra}\]'"):
        store.read("x")


def test_importing_the_package_loads_no_client_library() -> None:
    heavy = "fsspec, s3fs, gcsfs, adlfs, aiohttp, botocore, azure"
    code = (
        "import sys, indextables.storage, indextables.storage.s3\n"
        f"print([name for name in {heavy.split(', ')!r} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
