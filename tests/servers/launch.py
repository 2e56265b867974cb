"""How each server is started, made ready and described to ``open_store``."""

from __future__ import annotations

import base64
import sys
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from servers.install import program
from servers.processes import Server, accepts, free_port

S3_ENDPOINT = "spark.indextables.s3.endpoint"
GCS_ENDPOINT = "spark.indextables.gcs.endpoint"
AZURE_ENDPOINT = "spark.indextables.azure.endpoint"
_ENDPOINTS = (S3_ENDPOINT, GCS_ENDPOINT, AZURE_ENDPOINT)
_LIMITS = {
    "spark.indextables.storage.timeoutSeconds": "10",
    "spark.indextables.storage.connectTimeoutSeconds": "5",
}
AZURITE_ACCOUNT = "devstoreaccount1"


class Backend(NamedTuple):
    """A bucket on a running server: ``open_store(f"{uri}/table", options)``."""

    uri: str
    options: dict[str, Any]

    @property
    def endpoint(self) -> str:
        return next(str(self.options[name]) for name in _ENDPOINTS if name in self.options)

    def through(self, port: int) -> Backend:
        """The same bucket reached through a proxy on another loopback port."""
        host_and_port = self.endpoint.partition("://")[2].partition("/")[0]
        options = {
            name: value.replace(host_and_port, f"127.0.0.1:{port}") if name in _ENDPOINTS else value
            for name, value in self.options.items()
        }
        return Backend(self.uri, options)

    def fresh(self) -> str:
        """A uri below the bucket that no other test uses."""
        return f"{self.uri}/t-{uuid.uuid4().hex[:12]}"


class Running(NamedTuple):
    server: Server
    backend: Backend
    port: int


def start_ministack(programs: Path, work: Path) -> Running:
    port = free_port()
    environment = {"BIND_HOST": "127.0.0.1", "GATEWAY_PORT": str(port), "SERVICES": "s3"}
    server = Server([str(program(programs, "ministack"))], environment, work / "ministack.log")
    return _ready_s3(server, port, "AKIAMINISTACKTESTKEY", "ministack-secret-value")


def start_seaweed(programs: Path, work: Path) -> Running:
    ports = {name: free_port() for name in ("s3", "master", "volume", "filer", "admin")}
    folder = work / "seaweed"
    folder.mkdir(exist_ok=True)
    command = [
        str(program(programs, "weed")),
        f"-logdir={work}",
        "mini",
        f"-dir={folder}",
        "-ip=127.0.0.1",
        "-ip.bind=127.0.0.1",
        *(f"-{name}.port={port}" for name, port in ports.items()),
        "-master.telemetry=false",
        "-webdav=false",
        "-admin.ui=false",
        "-s3.port.iceberg=0",
        "-s3.port.lance=0",
    ]
    key, secret = "SEAWEEDTESTKEY", "seaweed-secret-value"
    environment = {"AWS_ACCESS_KEY_ID": key, "AWS_SECRET_ACCESS_KEY": secret}
    server = Server(command, environment, work / "seaweed.log")
    return _ready_s3(server, ports["s3"], key, secret)


def _ready_s3(server: Server, port: int, key: str, secret: str) -> Running:
    options = {
        S3_ENDPOINT: f"http://127.0.0.1:{port}",
        "spark.indextables.aws.accessKey": key,
        "spark.indextables.aws.secretKey": secret,
        "spark.indextables.aws.region": "us-east-1",
        "spark.indextables.s3.pathStyleAccess": "true",
        **_LIMITS,
    }
    server.wait_until(lambda: accepts(port))
    server.wait_until(lambda: _succeeds(lambda: _make_bucket(options, key, secret)))
    return Running(server, Backend("s3://tables", options), port)


def _make_bucket(options: dict[str, str], key: str, secret: str) -> None:
    from botocore.config import Config
    from botocore.session import Session

    client = Session().create_client(
        "s3",
        endpoint_url=options[S3_ENDPOINT],
        aws_access_key_id=key,
        aws_secret_access_key=secret,
        region_name="us-east-1",
        config=Config(connect_timeout=2, read_timeout=5, retries={"max_attempts": 0}),
    )
    client.create_bucket(Bucket="tables")
    client.put_object(Bucket="tables", Key="ready", Body=b"ready")
    client.close()


def start_counting(work: Path, *, delay_s: float = 0.0) -> Running:
    """Our S3 server that counts; ``counting_s3.Remote`` asks it what it counted."""
    port = free_port()
    script = Path(__file__).with_name("counting_s3.py")
    command = [sys.executable, str(script), "--port", str(port), "--delay-ms", str(delay_s * 1000)]
    server = Server(command, {}, work / f"counting-{port}.log")
    return _ready_s3(server, port, "AKIACOUNTINGTESTKEY", "counting-secret-value")


def start_azurite(programs: Path, work: Path) -> Running:
    port = free_port()
    command = [
        str(program(programs, "azurite-blob")),
        "--blobHost=127.0.0.1",
        f"--blobPort={port}",
        "--silent",
        "--skipApiVersionCheck",
        "--disableTelemetry",
        "--inMemoryPersistence",
    ]
    secret = base64.b64encode(b"azurite-secret-value-of-the-test").decode()
    environment = {"AZURITE_ACCOUNTS": f"{AZURITE_ACCOUNT}:{secret}"}
    server = Server(command, environment, work / "azurite.log")
    options = {
        AZURE_ENDPOINT: f"http://127.0.0.1:{port}/{AZURITE_ACCOUNT}",
        "spark.indextables.azure.accountName": AZURITE_ACCOUNT,
        "spark.indextables.azure.accountKey": secret,
        **_LIMITS,
    }
    server.wait_until(lambda: accepts(port))
    server.wait_until(lambda: _succeeds(lambda: _make_container(options[AZURE_ENDPOINT], secret)))
    return Running(server, Backend("az://tables", options), port)


def _make_container(endpoint: str, secret: str) -> None:
    from azure.storage.blob import BlobServiceClient

    with BlobServiceClient(endpoint, credential=secret, retry_total=0) as client:
        client.create_container("tables")


def start_gcs(work: Path, *, ignore_conditions: bool = False) -> Running:
    port = free_port()
    script = Path(__file__).with_name("gcs_server.py")
    command = [sys.executable, str(script), "--port", str(port), "--bucket", "tables"]
    if ignore_conditions:
        command.append("--ignore-conditions")
    log = work / f"gcs-{port}.log"
    server = Server(command, {}, log)
    options = {
        GCS_ENDPOINT: f"http://127.0.0.1:{port}",
        "spark.indextables.gcs.projectId": "test",
        "token": "anon",
        **_LIMITS,
    }
    server.wait_until(lambda: accepts(port))
    return Running(server, Backend("gs://tables", options), port)


def _succeeds(action: Callable[[], None]) -> bool:
    try:
        action()
    except Exception:
        return False
    return True
