"""Filters and search strings. Decides what they mean: parsing, binding, evaluation, analyzers."""
