"""The same file list as a Delta table and as an Iceberg table, without any data files."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from planner_tables import ROWS, SIZE, Columns


def delta_table(folder: Path, c: Columns) -> Any:
    """One commit of add actions with the bounds of ``id`` and ``host``."""
    from deltalake import DeltaTable

    fields = [
        {"name": name, "type": kind, "nullable": True, "metadata": {}}
        for name, kind in (("id", "long"), ("host", "string"))
    ]
    meta = {
        "id": "bench",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps({"type": "struct", "fields": fields}),
        "partitionColumns": [],
        "configuration": {},
        "createdTime": 0,
    }
    (folder / "_delta_log").mkdir(parents=True)
    with (folder / "_delta_log" / f"{0:020d}.json").open("w") as log:
        log.write(json.dumps({"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}) + "\n")
        log.write(json.dumps({"metaData": meta}) + "\n")
        for number, entry in enumerate(entries(c)):
            log.write(json.dumps({"add": _delta_add(number, entry)}) + "\n")
    return DeltaTable(str(folder))


def entries(c: Columns) -> Any:
    ids = zip(c.id_low.tolist(), c.id_high.tolist(), strict=True)
    hosts = zip(c.host_low.to_pylist(), c.host_high.to_pylist(), strict=True)
    return zip(ids, hosts, strict=True)


def _delta_add(number: int, entry: Any) -> dict[str, Any]:
    (id_low, id_high), (host_low, host_high) = entry
    stats = {
        "numRecords": ROWS,
        "minValues": {"id": id_low, "host": host_low},
        "maxValues": {"id": id_high, "host": host_high},
        "nullCount": {"id": 0, "host": 0},
    }
    return {
        "path": f"part-{number}.parquet",
        "partitionValues": {},
        "size": SIZE,
        "modificationTime": 0,
        "dataChange": True,
        "stats": json.dumps(stats),
    }


def delta_plan(table: Any, where: str) -> Any:
    """A function that plans a query and says how many files are left."""
    import pyarrow as pa
    from deltalake import QueryBuilder

    query = f"EXPLAIN SELECT * FROM t WHERE {where}"
    engine = QueryBuilder().register("t", table)

    def plan() -> int:
        rows = pa.table(engine.execute(query).read_all()).to_pylist()
        return len(set(re.findall(r"part-\d+", str(rows[-1]["plan"]))))

    return plan


def iceberg_table(folder: Path, c: Columns) -> Any:
    """One appended snapshot whose manifest has the same bounds."""
    from pyiceberg.catalog.sql import SqlCatalog
    from pyiceberg.schema import Schema
    from pyiceberg.types import LongType, NestedField, StringType

    folder.mkdir(parents=True)
    catalog = SqlCatalog(
        "bench", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}"
    )
    catalog.create_namespace("bench")
    schema = Schema(NestedField(1, "id", LongType()), NestedField(2, "host", StringType()))
    table = catalog.create_table("bench.t", schema)
    with table.transaction() as transaction, transaction.update_snapshot().fast_append() as append:
        for number, entry in enumerate(entries(c)):
            append.append_data_file(_data_file(f"file://{folder}/part-{number}.parquet", entry))
    return catalog.load_table("bench.t")


def _data_file(path: str, entry: Any) -> Any:
    from pyiceberg.conversions import to_bytes
    from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
    from pyiceberg.typedef import Record
    from pyiceberg.types import LongType, StringType

    (id_low, id_high), (host_low, host_high) = entry
    found = DataFile.from_args(
        content=DataFileContent.DATA,
        file_path=path,
        file_format=FileFormat.PARQUET,
        partition=Record(),
        record_count=ROWS,
        file_size_in_bytes=SIZE,
        value_counts={1: ROWS, 2: ROWS},
        null_value_counts={1: 0, 2: 0},
        nan_value_counts={},
        lower_bounds={1: to_bytes(LongType(), id_low), 2: to_bytes(StringType(), host_low)},
        upper_bounds={1: to_bytes(LongType(), id_high), 2: to_bytes(StringType(), host_high)},
    )
    found.spec_id = 0
    return found


def iceberg_plan(table: Any, where: str) -> Any:
    def plan() -> int:
        return len(list(table.scan(row_filter=where).plan_files()))

    return plan
