"""A file in memory that costs no descriptor."""


cdef class MappedFile:
    cdef void* _at
    cdef Py_ssize_t _size
