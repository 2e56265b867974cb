"""What a Spark task does: read its splits, shape the rows as Spark wants them.

Batches must have exactly Spark's Arrow schema, so every column is brought to it: nested fields that
the query does not need are dropped, and a batch without columns keeps its number of rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from indextables.expr.predicate import Predicate, TextMatch, leaves
from indextables.fitting import fitted, matched
from indextables.planner.tasks import SplitTask
from indextables.spark.driver.request import Access
from indextables.spark.driver.tables import worker_store
from indextables.spark.tasks.grouped import Aggregation, gathered
from indextables.spark.tasks.worker import settled_worker

INDEX_ALL = "_indexall"
SCORE = "_score"
FULL_BATCH = 8192


class TaskPartition(InputPartition):  # type: ignore[misc]
    """One task's splits, or a result that was known at planning."""

    def __init__(self, task: SplitTask | None, known: pa.RecordBatch | None = None) -> None:
        super().__init__(None)
        self.task = task
        self.known = known


class TaskReader(DataSourceReader):  # type: ignore[misc]
    """Reads tasks; travels to the workers without them."""

    def __init__(
        self,
        access: Access,
        schema: pa.Schema,
        output: StructType,
        partitions: Sequence[TaskPartition],
        aggregation: Aggregation | None = None,
    ) -> None:
        self.access = access
        self.schema = schema
        self.output = output
        self.aggregation = aggregation
        self._partitions = list(partitions)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_partitions": []}

    def partitions(self) -> list[TaskPartition]:
        return self._partitions

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        with settled_worker():
            if isinstance(partition, TaskPartition):
                yield from self.batches(partition)

    def batches(self, partition: TaskPartition) -> Iterator[pa.RecordBatch]:
        """The partition's rows exactly as Spark wants them."""
        from pyspark.sql.pandas.types import to_arrow_schema

        wanted = to_arrow_schema(self.output, timezone="UTC")
        if partition.known is not None:
            yield shaped(partition.known, wanted)
        if partition.task is None:
            return
        for batch in gathered(self._rows(partition.task), FULL_BATCH):
            yield shaped(batch, wanted)

    def _rows(self, task: SplitTask) -> Iterator[pa.RecordBatch]:
        from indextables.table.execute import count_task, read_task

        store, config = worker_store(self.access), self.access.config
        if SCORE in self.output.fieldNames():
            yield from scored(store, task, self.schema, config)
            return
        aggregation = self.aggregation
        if aggregation is None:
            yield from read_task(store, task, self.schema, config)
        elif aggregation.counts_rows and not aggregation.keys:
            yield from aggregation.counted(count_task(store, task, self.schema, config))
        else:
            yield from aggregation.of(read_task(store, task, self.schema, config))


def scored(store: Any, task: SplitTask, schema: pa.Schema, config: Any) -> Iterator[pa.RecordBatch]:
    """The rows of a task with the relevance of each in ``_score``."""
    from indextables.splits.read.access import matching_rows, read_split
    from indextables.splits.read.reader import SplitReader

    columns = schema.names if task.columns is None else list(task.columns)
    for split in task.splits:
        reader = SplitReader.open(store, split, config=config)
        place = {"schema": schema, "partition_values": split.partition_values}
        rows = matching_rows(reader, task.predicate, **place)
        relevance = scores(reader, task.predicate)[rows]
        at = 0
        for batch in read_split(reader, columns=columns, row_hint=rows, **place):
            part = relevance[at : at + batch.num_rows]
            at += batch.num_rows
            yield _with_column(batch, SCORE, pa.array(part, pa.float32()))


def scores(reader: Any, predicate: Predicate) -> Any:
    """The relevance of every row of a split: the sum over the searches it may satisfy."""
    from indextables.splits.read.access import scored_rows

    total = np.zeros(reader.num_rows, np.float32)
    for leaf in leaves(predicate):
        if isinstance(leaf, TextMatch) and not leaf.negated:
            hits = scored_rows(reader, leaf.query, None)
            if hits.scores is not None:
                total[hits.rows] += hits.scores
    return total


def _with_column(batch: pa.RecordBatch, name: str, values: pa.Array) -> pa.RecordBatch:
    fields = [*batch.schema, pa.field(name, values.type)]
    return pa.RecordBatch.from_arrays([*batch.columns, values], schema=pa.schema(fields))


def shaped(batch: pa.RecordBatch, wanted: pa.Schema) -> pa.RecordBatch:
    """The batch with exactly these columns and types."""
    if not len(wanted):
        return batch.select([])
    places = matched(wanted.names, batch.schema.names)
    arrays = [
        pa.nulls(batch.num_rows, column.type)
        if place is None
        else fitted(batch.column(place), column.type)
        for column, place in zip(wanted, places, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=wanted)
