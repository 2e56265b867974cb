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
from indextables.planner.tasks import SplitTask
from indextables.spark.aggregating import Aggregation, gathered
from indextables.spark.options import Access
from indextables.spark.tables import worker_store
from indextables.spark.worker import settled_worker

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
    from indextables.splits.access import matching_rows, read_split
    from indextables.splits.reader import SplitReader

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
    from indextables.splits.access import scored_rows

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
    names = {name.lower(): i for i, name in enumerate(batch.schema.names)}
    arrays = []
    for column in wanted:
        i = names.get(column.name.lower())
        if i is None:
            arrays.append(pa.nulls(batch.num_rows, column.type))
        else:
            arrays.append(fitted(batch.column(i), column.type))
    return pa.RecordBatch.from_arrays(arrays, schema=wanted)


def fitted(array: pa.Array, wanted: pa.DataType) -> pa.Array:
    """The array as a type that differs by left-out struct fields and spelling alone."""
    if array.type == wanted:
        return array
    t = pa.types
    if t.is_struct(wanted):
        return _fitted_struct(array, wanted)
    if t.is_map(wanted):
        return _fitted_map(array, wanted)
    if t.is_list(wanted):
        return _fitted_list(array, wanted)
    return array.cast(wanted)


def _fitted_struct(array: pa.StructArray, wanted: pa.StructType) -> pa.Array:
    names = {array.type.field(i).name.lower(): i for i in range(array.type.num_fields)}
    parts = [
        fitted(array.field(names[inner.name.lower()]), inner.type)
        if inner.name.lower() in names
        else pa.nulls(len(array), inner.type)
        for inner in wanted.fields
    ]
    mask = array.is_null() if array.null_count else None
    return pa.StructArray.from_arrays(parts, fields=list(wanted.fields), mask=mask)


def _fitted_list(array: pa.ListArray, wanted: pa.ListType) -> pa.Array:
    array = _compact(array)
    mask = array.is_null() if array.null_count else None
    values = fitted(array.values, wanted.value_type)
    return pa.ListArray.from_arrays(array.offsets, values, type=wanted, mask=mask)


def _fitted_map(array: pa.MapArray, wanted: pa.MapType) -> pa.Array:
    array = _compact(array)
    mask = array.is_null() if array.null_count else None
    keys = fitted(array.keys, wanted.key_type)
    items = fitted(array.items, wanted.item_type)
    return pa.MapArray.from_arrays(array.offsets, keys, items, type=wanted, mask=mask)


def _compact(array: pa.Array) -> pa.Array:
    """The array at offset zero, which building one from parts with a mask needs."""
    return pa.concat_arrays([array.slice(0, 0), array]) if array.offset else array
