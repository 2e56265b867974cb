"""The compiled kernels of ``pyx/``: hashing, Binary Fuse filters, bundles, decoders."""
