"""The numbers of the set bits of many words, ascending.

There are two ways with one result: eight bits at a time on any processor, and on x86-64 all bits of
a word at once where the processor can press them together (AVX-512 VBMI2). Both store a whole batch
of numbers whether they are there or not, which spares a branch for each: the array has room for
``LIST_SLACK`` more than there are bits.
"""

from indextables.native._rows_bits cimport popcount64
from indextables.native._typedefs cimport uint32_t, uint64_t

cdef extern from *:
    """
    #include <stdint.h>
    #if defined(__x86_64__) && (defined(__clang__) || (defined(__GNUC__) && __GNUC__ >= 8))
    #include <immintrin.h>
    static int it_can_press(void) {
        __builtin_cpu_init();
        return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw")
            && __builtin_cpu_supports("avx512vbmi2") && __builtin_cpu_supports("popcnt");
    }
    #define IT_PRESS __attribute__((target("avx512f,avx512bw,avx512vbmi2,popcnt")))
    IT_PRESS static inline void it_put(uint32_t* out, __m512i base, __m512i bits) {
        const __m512i some = _mm512_cvtepu8_epi32(_mm512_castsi512_si128(bits));
        _mm512_storeu_si512(out, _mm512_add_epi32(base, some));
    }
    IT_PRESS static uint64_t it_list_pressed(const uint64_t* words, uint64_t size, uint32_t* out) {
        uint8_t steps[64];
        uint64_t i, done, at = 0;
        for (i = 0; i < 64; i++) steps[i] = (uint8_t)i;
        const __m512i places = _mm512_loadu_si512(steps);
        for (i = 0; i < size; i++) {
            const uint64_t count = (uint64_t)__builtin_popcountll(words[i]);
            const __m512i base = _mm512_set1_epi32((int)(uint32_t)(i << 6));
            __m512i bits = _mm512_maskz_compress_epi8(words[i], places);
            it_put(out + at, base, bits);
            for (done = 16; done < count; done += 16) {
                bits = _mm512_alignr_epi32(bits, bits, 4);
                it_put(out + at + done, base, bits);
            }
            at += count;
        }
        return at;
    }
    #else
    static int it_can_press(void) { return 0; }
    static uint64_t it_list_pressed(const uint64_t* words, uint64_t size, uint32_t* out) {
        (void)words; (void)size; (void)out; return 0;
    }
    #endif
    """
    int can_press "it_can_press"() noexcept nogil
    uint64_t list_pressed "it_list_pressed"(
        const uint64_t* words, uint64_t size, uint32_t* out
    ) noexcept nogil
    int lowest_bit "__builtin_ctzll"(unsigned long long v) noexcept nogil

cdef enum:
    LIST_LANES = 8
    LIST_SLACK = 16


cdef inline uint64_t list_plainly(
    const uint64_t* words, uint64_t size, uint32_t* out
) noexcept nogil:
    """List the set bits of ``size`` words; how many there are."""
    cdef uint64_t i, word, left, at = 0
    cdef uint64_t top = <uint64_t>1 << 63
    cdef uint32_t base
    cdef int step
    for i in range(size):
        word = words[i]
        left = popcount64(word)
        base = <uint32_t>(i << 6)
        while left:
            for step in range(LIST_LANES):
                out[at + step] = base + <uint32_t>lowest_bit(word | top)
                word &= word - 1
            at += left if left < LIST_LANES else LIST_LANES
            left = left - LIST_LANES if left > LIST_LANES else 0
    return at
