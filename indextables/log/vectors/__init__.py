"""Deletion vectors: their bytes (``codec``), and where a table keeps them (``stored``)."""
