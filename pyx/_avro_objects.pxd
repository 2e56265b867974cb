"""Containers and small values as objects; nothing of it is shared with other kernels."""
