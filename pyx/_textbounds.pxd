"""Bounds of string columns; nothing of it is used from other kernels."""
