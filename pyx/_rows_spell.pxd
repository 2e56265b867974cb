# Nothing of this module is used by other kernels; Python sees its .pyi.
