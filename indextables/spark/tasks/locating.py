"""Tasks that change rows: rows that know where they are, and writers that say which rows go.

A target row comes with the path of its split and its number there. A task that gets joined rows
writes the new forms to splits and answers with one row: the splits it wrote, and for each split of
the target the rows that go. Nothing of that is in the table before the driver commits.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from indextables.log.actions import AddFile
from indextables.planner.tasks import SplitTask
from indextables.spark.driver.request import Access
from indextables.spark.driver.tables import worker_store
from indextables.spark.tasks.reading import shaped
from indextables.spark.tasks.worker import settled_worker
from indextables.table.evolution import conform
from indextables.table.execute import open_scan
from indextables.table.order import WriteOrder

SPLIT, ROW, CLAUSE = "_split", "_row", "__clause"
ANSWER = pa.schema([("answer", pa.binary())])


@dataclass
class Answer:
    """What one task did."""

    updated: tuple[AddFile, ...] = ()
    inserted: tuple[AddFile, ...] = ()
    gone: dict[str, list[Any]] = field(default_factory=dict)
    """Rows that go, by split: a list of (rows, whether they come back)."""
    counts: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Locator:
    """Reads target rows with their places; ``output`` is Spark's Arrow schema of the result."""

    access: Access
    schema: pa.Schema
    output: pa.Schema

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with settled_worker():
            store = worker_store(self.access)
            for batch in batches:
                for blob in batch.column(0).to_pylist():
                    yield from self._rows(store, pickle.loads(blob))

    def _rows(self, store: Any, task: SplitTask) -> Iterator[pa.RecordBatch]:
        config = self.access.config
        for split in task.splits:
            scan = open_scan(store, task, split, self.schema, config)
            for rows, batch in scan.pieces(self.schema.names, config["read.batchRows"]):
                places = [
                    pa.repeat(pa.scalar(split.path), len(rows)),
                    pa.array(rows.astype(np.int64)),
                ]
                fields = [*batch.schema, pa.field(SPLIT, pa.string()), pa.field(ROW, pa.int64())]
                located = pa.RecordBatch.from_arrays(
                    [*batch.columns, *places], schema=pa.schema(fields)
                )
                yield shaped(located, self.output)


@dataclass(frozen=True)
class Changer:
    """Writes the new forms of rows; ``kinds`` says for each clause: update, delete or insert."""

    order: WriteOrder
    kinds: tuple[str, ...]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from indextables.naming import stored_batch
        from indextables.spark.driver.writing import task_label

        schema, answer = self.order.schema, Answer()
        store = self.order.store()
        writers = {kind: self.order.writer(store, task_label()) for kind in ("update", "insert")}
        try:
            with settled_worker():
                for batch in batches:
                    for number, kind in enumerate(self.kinds, 1):
                        chosen = batch.filter(pc.equal(batch.column(CLAUSE), number))
                        if not chosen.num_rows:
                            continue
                        answer.counts[kind] = answer.counts.get(kind, 0) + chosen.num_rows
                        if kind != "insert":
                            _note(answer, chosen, kind == "update")
                        if kind in writers:
                            rows = conform(_columns(chosen, schema), schema)
                            writers[kind].write(stored_batch(rows, schema))
                answer.updated = tuple(writers["update"].finish())
                answer.inserted = tuple(writers["insert"].finish())
        except BaseException:
            for writer in writers.values():
                writer.abort()
            raise
        yield pa.RecordBatch.from_arrays([pa.array([pickle.dumps(answer)])], schema=ANSWER)


def _columns(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The columns of the table, which come after clause and place, by their order."""
    arrays = batch.columns[3:]
    return pa.RecordBatch.from_arrays(arrays, names=schema.names)


def _note(answer: Answer, batch: pa.RecordBatch, updated: bool) -> None:
    paths = batch.column(SPLIT).dictionary_encode()
    codes = paths.indices.to_numpy(zero_copy_only=False)
    rows = batch.column(ROW).to_numpy(zero_copy_only=False).astype(np.uint32)
    for code, path in enumerate(paths.dictionary.to_pylist()):
        answer.gone.setdefault(path, []).append((rows[codes == code], updated))
