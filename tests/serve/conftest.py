"""A console over two small tables, on a free port of this machine."""

from __future__ import annotations

import datetime
import random
import threading
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import indextables
from indextables.serve.http import Console
from indextables.serve.questions import Limits, Questions

START = datetime.datetime(2024, 5, 1, tzinfo=datetime.UTC)
EVIL = "<script>document.title='pwned'</script> timeout &amp; <b>bold</b>"


def events() -> pa.Table:
    rng = random.Random(7)
    count = 600
    words = ["timeout", "disk", "fine", "login", "retry"]
    messages = [" ".join(rng.choices(words, k=4)) for _ in range(count)]
    messages[5] = EVIL
    return pa.table(
        {
            "ts": pa.array(
                [START + datetime.timedelta(minutes=7 * i) for i in range(count)],
                pa.timestamp("us", "UTC"),
            ),
            "host": [f"web-{i % 3}" for i in range(count)],
            "status": [rng.choice([200, 404, 500]) for _ in range(count)],
            "message": messages,
        }
    )


@pytest.fixture(scope="session")
def tables(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    place = tmp_path_factory.mktemp("console")
    rows = events()
    for start in range(0, rows.num_rows, 200):
        indextables.write(rows.slice(start, 200), place / "events", text=["message"])
    indextables.write(pa.table({"n": pa.array([], pa.int64())}), place / "empty")
    return [place / "events", place / "empty"]


@pytest.fixture(scope="session")
def console(tables: list[Path]) -> Iterator[Console]:
    served = Console(Questions.over([str(t) for t in tables], limits=Limits(most_rows=100)))
    thread = threading.Thread(target=served.run, daemon=True)
    thread.start()
    yield served
    served.server.shutdown()
    thread.join(10)
