"""What a Spark task does: read its splits, shape the rows as Spark wants them.

Batches must have exactly Spark's Arrow schema, so every column is brought to it: nested fields that
the query does not need are dropped, and a batch without columns keeps its number of rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from indextables.fitting import fitted, matched
from indextables.planner.tasks import SplitTask
from indextables.spark.compat import arrow_schema
from indextables.spark.driver.request import Access
from indextables.spark.driver.tables import worker_store
from indextables.spark.tasks.grouped import Aggregation
from indextables.spark.tasks.stamped import Stamped
from indextables.spark.tasks.worker import settled_worker
from indextables.splits.read.aggregate import gathered
from indextables.table.execute import SCORE

FULL_BATCH = 8192


class TaskPartition(InputPartition):  # type: ignore[misc]
    """One task's splits, or a result that was known at planning."""

    def __init__(self, task: SplitTask | None, known: pa.RecordBatch | None = None) -> None:
        super().__init__(None)
        self.task = task
        self.known = known


class TaskReader(Stamped, DataSourceReader):  # type: ignore[misc]
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
        wanted = arrow_schema(self.output)
        if partition.known is not None:
            yield shaped(partition.known, wanted)
        if partition.task is None:
            return
        for batch in gathered(self._rows(partition.task), FULL_BATCH):
            yield shaped(batch, wanted)

    def _rows(self, task: SplitTask) -> Iterator[pa.RecordBatch]:
        from indextables.table import execute

        what = worker_store(self.access), task, self.schema, self.access.config
        aggregation = self.aggregation
        if SCORE in self.output.fieldNames():
            yield from execute.scored_task(*what)
        elif aggregation is None:
            yield from execute.read_task(*what)
        elif aggregation.counts_rows and not aggregation.keys:
            yield from aggregation.counted(execute.count_task(*what))
        elif aggregation.columnar is not None:
            yield from aggregation.finished(execute.aggregate_task(*what, aggregation.columnar))
        else:
            yield from aggregation.of(execute.read_task(*what))


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
