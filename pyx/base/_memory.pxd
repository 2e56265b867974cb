"""Large blocks of memory for kernels: on huge pages, and one spare block kept for the next use.

A fresh block costs a page fault for every 4 KiB, which for work of some tens of milliseconds is
a fifth of its time. ``borrow`` hands out the spare block where it is large enough; ``give_back``
keeps a block of moderate size as the spare one. Both may be called from any thread, with or
without the GIL: the spare block changes hands by one atomic exchange.
"""

cdef extern from *:
    """
    #include <stdlib.h>
    #ifdef __linux__
    #include <sys/mman.h>
    #endif
    #define IT_HUGE ((size_t)2 << 20)
    #define IT_SPARE_MAX ((size_t)48 << 20)
    #define IT_HEAD ((size_t)64)
    static void* it_spare = NULL;
    static void* it_arena(size_t size) {
    #ifdef MADV_HUGEPAGE
        void* at = NULL;
        if (size >= 2 * IT_HUGE && posix_memalign(&at, IT_HUGE, size) == 0) {
            madvise(at, size, MADV_HUGEPAGE);
            return at;
        }
    #endif
        return malloc(size);
    }
    /* The first IT_HEAD bytes of a borrowed block hold how many follow them. */
    static void* it_borrow(size_t size) {
        char* at = (char*)__atomic_exchange_n(&it_spare, NULL, __ATOMIC_ACQ_REL);
        if (at == NULL || *(size_t*)at < size) {
            free(at);
            at = (char*)it_arena(IT_HEAD + size);
            if (at == NULL) return NULL;
            *(size_t*)at = size;
        }
        return at + IT_HEAD;
    }
    static void it_give_back(void* block) {
        if (block == NULL) return;
        char* at = (char*)block - IT_HEAD;
        if (*(size_t*)at <= IT_SPARE_MAX)
            at = (char*)__atomic_exchange_n(&it_spare, at, __ATOMIC_ACQ_REL);
        free(at);
    }
    """
    void* arena_alloc "it_arena"(size_t size) noexcept nogil
    void* borrow "it_borrow"(size_t size) noexcept nogil
    void give_back "it_give_back"(void* block) noexcept nogil
