"""A file in memory that costs no descriptor.

``mmap.mmap`` keeps a duplicate of the descriptor it was given for as long as it lives, so that a
thousand mapped files are a thousand descriptors. The mapping itself needs none: this one keeps only
where it lies. It is read-only, shared, and unmapped when the last view of it is gone.
"""

from cpython.buffer cimport PyBuffer_FillInfo
from cpython.exc cimport PyErr_SetFromErrno
from posix.mman cimport MAP_FAILED, MAP_SHARED, PROT_READ, mmap, munmap


cdef class MappedFile:
    """The first ``size`` bytes of an open file; it may be closed at once."""

    def __cinit__(self, int fd, Py_ssize_t size):
        self._at = NULL
        self._size = 0
        if size < 0:
            raise ValueError("a file has no negative size")
        if size == 0:
            return
        cdef void* at = mmap(NULL, <size_t>size, PROT_READ, MAP_SHARED, fd, 0)
        if at == MAP_FAILED:
            PyErr_SetFromErrno(OSError)
        self._at = at
        self._size = size

    def __dealloc__(self):
        if self._at != NULL:
            munmap(self._at, <size_t>self._size)

    def __len__(self):
        return self._size

    def __getbuffer__(self, Py_buffer* view, int flags):
        cdef void* at = self._at if self._at != NULL else <void*>&self._size
        PyBuffer_FillInfo(view, self, at, self._size, 1, flags)

    def __releasebuffer__(self, Py_buffer* view):
        pass
