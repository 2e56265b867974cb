"""Counts out of the ``stats`` JSON of file entries, without building objects."""
