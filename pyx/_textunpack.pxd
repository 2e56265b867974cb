"""Skeletons and slots back to texts; nothing of it is shared with other kernels."""
