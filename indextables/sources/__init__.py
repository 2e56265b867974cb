"""Tables of others that a companion indexes: Delta, Iceberg and folders of Parquet files.

``base`` says what a snapshot of such a table is; ``delta``, ``iceberg`` and ``parquet`` read one.
"""
