"""Canonical text of doubles; the Python face is in ``_f64.pyx``."""
