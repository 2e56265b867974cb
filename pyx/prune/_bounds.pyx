"""Typed bounds out of the texts of statistics.

Every value becomes a 64-bit key that sorts as SQL sorts the values: integers, dates (days),
timestamps (microseconds), unscaled decimals and booleans as themselves, doubles by their ordered
bits; strings have a module of their own. What is not provably the spelling of a value of the
column's type is *unknown*: it leaves its place in the output alone and says so in ``known``.

A text is read as a bound, so it may only be moved outwards: an upper timestamp of millisecond
precision rises by 999 microseconds, a decimal with too many digits is rounded away from the
middle, a double that may have been written as a float covers both readings.
"""

from libc.math cimport INFINITY, fabs, isinf, nextafterf
from libc.stdint cimport INT64_MAX, INT64_MIN
from libc.string cimport memchr, memcmp

from indextables.native._cursor cimport Cursor, cursor_over
from indextables.native._typedefs cimport float32_t, float64_t, int32_t, int64_t, uint8_t

cdef extern from "Python.h":
    double PyOS_string_to_double(const char* s, char** end, void* overflow) except? -1.0

cdef enum Kind:
    INTEGER, DECIMAL, DATE, INSTANT, WALL_CLOCK, BOOLEAN, PARTITION_TIME

cdef enum:
    LONGEST_NUMBER = 1200
    FLOAT_DIGITS = 9            # a float's shortest text never has more
    EXACT_DIGITS = 15           # below 2**53, so that one multiplication rounds once

KINDS = {
    "integer": INTEGER, "decimal": DECIMAL, "date": DATE, "instant": INSTANT,
    "wall_clock": WALL_CLOCK, "boolean": BOOLEAN, "partition_time": PARTITION_TIME,
}

cdef float64_t[23] POWERS_OF_TEN
cdef int _p
for _p in range(23):
    POWERS_OF_TEN[_p] = float(f"1e{_p}")


# -- numbers ------------------------------------------------------------------------------------

cdef inline bint is_digit(uint8_t byte) noexcept nogil:
    return c"0" <= byte <= c"9"


cdef inline bint push_digit(int64_t* value, uint8_t byte) noexcept nogil:
    """Append a digit to a number kept below zero, where there is room for one more value."""
    cdef int64_t digit = byte - c"0"
    if value[0] < (INT64_MIN + digit) // 10:
        return False
    value[0] = value[0] * 10 - digit
    return True


cdef bint parse_decimal(Text t, int32_t scale, bint upper, int64_t* out) noexcept nogil:
    """``[+-]digits[.digits]`` at ``scale``; excess digits round down, or up for an upper end."""
    cdef int64_t i = 0, value = 0
    cdef int32_t fraction = -1
    cdef bint negative = False, excess = False, seen = False
    if t.size > 0 and (t.at[0] == c"-" or t.at[0] == c"+"):
        negative = t.at[0] == c"-"
        i = 1
    while i < t.size:
        if t.at[i] == c"." and fraction < 0:
            fraction = 0
        elif not is_digit(t.at[i]):
            return False
        elif fraction >= 0 and fraction == scale:
            seen = True
            excess = excess or t.at[i] != c"0"
        else:
            seen = True
            if not push_digit(&value, t.at[i]):
                return False
            if fraction >= 0:
                fraction += 1
        i += 1
    if fraction < 0:
        fraction = 0
    while fraction < scale:
        if not push_digit(&value, c"0"):
            return False
        fraction += 1
    if not seen:
        return False
    return close_number(value, negative, excess, upper, out)


cdef bint close_number(
    int64_t value, bint negative, bint excess, bint upper, int64_t* out
) noexcept nogil:
    """Give the sign back; ``excess`` moves the bound outwards by one."""
    if not negative:
        if value == INT64_MIN:
            return False
        value = -value
    if excess and upper and not negative:
        if value == INT64_MAX:
            return False
        value += 1
    elif excess and not upper and negative:
        if value == INT64_MIN:
            return False
        value -= 1
    out[0] = value
    return True


cdef bint parse_integer(Text t, int64_t* out) noexcept nogil:
    if t.size == 0 or memchr(t.at, c".", t.size) != NULL:
        return False
    return parse_decimal(t, 0, False, out)


cdef bint parse_boolean(Text t, int64_t* out) noexcept nogil:
    if t.size == 4 and memcmp(t.at, b"true", 4) == 0:
        out[0] = 1
    elif t.size == 5 and memcmp(t.at, b"false", 5) == 0:
        out[0] = 0
    else:
        return False
    return True


# -- time ---------------------------------------------------------------------------------------

cdef int64_t two_digits(Text t, int64_t i) noexcept nogil:
    if i + 2 > t.size or not is_digit(t.at[i]) or not is_digit(t.at[i + 1]):
        return -1
    return 10 * (t.at[i] - c"0") + (t.at[i + 1] - c"0")


cdef int64_t days_from_civil(int64_t year, int64_t month, int64_t day) noexcept nogil:
    """Days since 1970-01-01 in the proleptic Gregorian calendar, years 0 to 9999."""
    cdef int64_t y = year - (1 if month <= 2 else 0) + 400
    cdef int64_t era = y // 400
    cdef int64_t in_era = y - era * 400
    cdef int64_t in_year = (153 * (month + (9 if month <= 2 else -3)) + 2) // 5 + day - 1
    return (era - 1) * 146097 + in_era * 365 + in_era // 4 - in_era // 100 + in_year - 719468


cdef int64_t month_length(int64_t year, int64_t month) noexcept nogil:
    if month == 2:
        return 29 if (year % 4 == 0 and year % 100 != 0) or year % 400 == 0 else 28
    return 30 if month == 4 or month == 6 or month == 9 or month == 11 else 31


cdef bint parse_date(Text t, int64_t* out) noexcept nogil:
    """Exactly ``yyyy-mm-dd``."""
    cdef int64_t century, rest, month, day
    if t.size != 10 or t.at[4] != c"-" or t.at[7] != c"-":
        return False
    century, rest = two_digits(t, 0), two_digits(t, 2)
    month, day = two_digits(t, 5), two_digits(t, 8)
    if century < 0 or rest < 0 or month < 1 or month > 12 or day < 1:
        return False
    if day > month_length(century * 100 + rest, month):
        return False
    out[0] = days_from_civil(century * 100 + rest, month, day)
    return True


cdef int64_t parse_zone(Text t, int64_t i, int64_t* seconds) noexcept nogil:
    """``Z``, ``+hh:mm`` or ``-hh:mm`` to the end of the text: 1 read, 0 absent, -1 wrong."""
    cdef int64_t hours, minutes
    if i == t.size:
        return 0
    if t.at[i] == c"Z" and i + 1 == t.size:
        seconds[0] = 0
        return 1
    if t.size - i != 6 or t.at[i + 3] != c":" or not (t.at[i] == c"+" or t.at[i] == c"-"):
        return -1
    hours, minutes = two_digits(t, i + 1), two_digits(t, i + 4)
    if hours < 0 or hours > 18 or minutes < 0 or minutes > 59:
        return -1
    seconds[0] = (hours * 60 + minutes) * 60
    if t.at[i] == c"-":
        seconds[0] = -seconds[0]
    return 1


cdef int64_t parse_fraction(
    Text t, int64_t* i, int64_t* micros, bint* excess
) noexcept nogil:
    """Digits after the point as microseconds; how many digits, -1 if there are none."""
    cdef int64_t count = 0
    micros[0] = 0
    excess[0] = False
    if i[0] == t.size or t.at[i[0]] != c".":
        return 0
    i[0] += 1
    while i[0] < t.size and is_digit(t.at[i[0]]):
        if count < 6:
            micros[0] = micros[0] * 10 + (t.at[i[0]] - c"0")
        elif t.at[i[0]] != c"0":
            excess[0] = True
        count += 1
        i[0] += 1
    if count == 0 or count > 9:
        return -1
    for _ in range(count, 6):
        micros[0] *= 10
    return count


cdef bint parse_moment(Text t, Kind kind, bint upper, int64_t* out) noexcept nogil:
    """``yyyy-mm-dd hh:mm:ss[.fraction][zone]``, with a blank or a ``T``.

    An instant needs its zone, a wall clock must have none, a partition's time is UTC or wall
    clock by convention and exact. As an upper statistic a text may have been cut to seconds or
    milliseconds and covers what was cut.
    """
    cdef Text day
    cdef int64_t days, hour, minute, second, zone, count, micros = 0, shift = 0, i = 19
    cdef bint excess = False
    if t.size < 19 or not (t.at[10] == c"T" or t.at[10] == c" "):
        return False
    day.at, day.size = t.at, 10
    hour, minute, second = two_digits(t, 11), two_digits(t, 14), two_digits(t, 17)
    if not parse_date(day, &days) or t.at[13] != c":" or t.at[16] != c":":
        return False
    if hour < 0 or hour > 23 or minute < 0 or minute > 59 or second < 0 or second > 59:
        return False
    count = parse_fraction(t, &i, &micros, &excess)
    if count < 0:
        return False
    zone = parse_zone(t, i, &shift)
    if zone < 0 or (zone == 1) != (kind == INSTANT) and not (kind == PARTITION_TIME and zone == 1):
        return False
    out[0] = ((days * 86400) + hour * 3600 + minute * 60 + second - shift) * 1000000 + micros
    if kind == PARTITION_TIME:
        return not excess
    if upper:
        out[0] += 999999 if count == 0 else 999 if count <= 3 else 1 if excess else 0
    return True


cdef bint parse_value(
    Text t, Kind kind, int32_t scale, bint upper, bint trusted, int64_t* out
) noexcept nogil:
    if kind == INTEGER:
        return parse_integer(t, out)
    if kind == DECIMAL:
        return parse_decimal(t, scale, upper, out)
    if kind == DATE:
        return parse_date(t, out)
    if kind == BOOLEAN:
        return parse_boolean(t, out)
    if trusted and parse_integer(t, out):
        return True
    return parse_moment(t, kind, upper, out)


def parse_keys(
    str kind not None,
    const uint8_t[::1] data not None,
    const int64_t[::1] offsets not None,
    const uint8_t[::1] valid not None,
    int64_t[::1] out not None,
    uint8_t[::1] known not None,
    const uint8_t[::1] trusted not None,
    int32_t scale=0,
    bint upper=False,
):
    """Keys of texts of one exact kind; ``trusted`` rows hold timestamps as plain microseconds."""
    cdef Kind code = KINDS[kind]
    cdef int64_t n = valid.shape[0], i
    cdef Cursor c
    cdef Text t
    cdef int64_t key = 0
    check_lengths(n, offsets.shape[0], out.shape[0], known.shape[0])
    check_lengths(n, n + 1, trusted.shape[0], n)
    cursor_over(&c, data, 0)
    with nogil:
        for i in range(n):
            known[i] = 0
            if valid[i]:
                text_at(&c, offsets, i, &t)
                if parse_value(t, code, scale, upper, trusted[i], &key):
                    out[i] = key
                    known[i] = 1


# -- doubles ------------------------------------------------------------------------------------

cdef struct Number:
    float64_t value
    int64_t digits          # significant digits of the text


cdef bint read_exponent(Text t, int64_t i, int64_t* out) noexcept nogil:
    cdef int64_t value = 0
    cdef bint negative = i < t.size and t.at[i] == c"-"
    if i < t.size and (t.at[i] == c"-" or t.at[i] == c"+"):
        i += 1
    if i == t.size:
        return False
    while i < t.size:
        if not is_digit(t.at[i]) or value > 100000:
            return False
        value = value * 10 + (t.at[i] - c"0")
        i += 1
    out[0] = -value if negative else value
    return True


cdef int scan_number(Text t, int64_t* mantissa, int64_t* exponent, int64_t* digits) noexcept nogil:
    """The shape of ``[+-]digits[.digits][e[+-]digits]``: 1 a number, 0 not one."""
    cdef int64_t i = 0, power = 0
    cdef bint point = False, seen = False
    mantissa[0], exponent[0], digits[0] = 0, 0, 0
    if t.size > 0 and (t.at[0] == c"-" or t.at[0] == c"+"):
        i = 1
    while i < t.size:
        if is_digit(t.at[i]):
            seen = True
            if digits[0] > 0 or t.at[i] != c"0":
                digits[0] += 1
                if digits[0] <= EXACT_DIGITS:
                    mantissa[0] = mantissa[0] * 10 + (t.at[i] - c"0")
            if point:
                exponent[0] -= 1
        elif t.at[i] == c"." and not point:
            point = True
        elif seen and (t.at[i] == c"e" or t.at[i] == c"E"):
            if not read_exponent(t, i + 1, &power):
                return 0
            exponent[0] += power
            return 1
        else:
            return 0
        i += 1
    return 1 if seen else 0


cdef float64_t slow_double(Text t) except? -1.0 nogil:
    """Correctly rounded, whatever the length; independent of the locale."""
    with gil:
        text = t.at[:t.size]
        return PyOS_string_to_double(text, NULL, NULL)


cdef int named_number(Text t, float64_t* out) noexcept nogil:
    """Infinity in the spellings of Java, Rust and Python. NaN is never a bound."""
    cdef int64_t i = 1 if t.size > 0 and (t.at[0] == c"-" or t.at[0] == c"+") else 0
    cdef int64_t left = t.size - i
    if (left == 8 and memcmp(t.at + i, b"Infinity", 8) == 0) or (
        left == 3 and (memcmp(t.at + i, b"inf", 3) == 0 or memcmp(t.at + i, b"Inf", 3) == 0)
    ):
        out[0] = -INFINITY if t.at[0] == c"-" else INFINITY
        return 1
    return 0


cdef int read_double(Text t, Number* out) except -1 nogil:
    """1 and the number, or 0 when the text is no finite or infinite number."""
    cdef int64_t mantissa, exponent
    out.digits = 0
    if t.size > LONGEST_NUMBER:
        return 0
    if not scan_number(t, &mantissa, &exponent, &out.digits):
        return named_number(t, &out.value)
    if out.digits <= EXACT_DIGITS and -22 <= exponent <= 22:
        out.value = <float64_t>mantissa
        if exponent < 0:
            out.value /= POWERS_OF_TEN[-exponent]
        else:
            out.value *= POWERS_OF_TEN[exponent]
        if t.at[0] == c"-":
            out.value = -out.value
        return 1
    out.value = slow_double(t)
    return 0 if isinf(out.value) else 1


cdef float64_t outward_single(float64_t value, bint upper) noexcept nogil:
    """The float a text stands for; between two floats, the outer one."""
    cdef float32_t near = <float32_t>value
    cdef float32_t other
    if isinf(near) or <float64_t>near == value:
        return near
    other = nextafterf(near, INFINITY if value > near else -INFINITY)
    if fabs(value - near) != fabs(value - other):
        return near
    if upper:
        return max(<float64_t>near, <float64_t>other)
    return min(<float64_t>near, <float64_t>other)


cdef float64_t outward_double(Number number, bint upper) noexcept nogil:
    """A short text may be a float's, from before the column was widened: cover both readings."""
    cdef float64_t single
    if number.digits > FLOAT_DIGITS or isinf(number.value):
        return number.value
    if isinf(<float64_t><float32_t>number.value):
        return number.value
    single = outward_single(number.value, upper)
    return max(number.value, single) if upper else min(number.value, single)


def parse_double_keys(
    const uint8_t[::1] data not None,
    const int64_t[::1] offsets not None,
    const uint8_t[::1] valid not None,
    int64_t[::1] out not None,
    uint8_t[::1] known not None,
    bint upper=False,
    bint single=False,
    bint as_bound=True,
):
    """Keys of decimal texts of FLOAT (``single``) or DOUBLE columns; NaN and noise are unknown."""
    cdef int64_t n = valid.shape[0], i
    cdef Cursor c
    cdef Text t
    cdef Number number
    check_lengths(n, offsets.shape[0], out.shape[0], known.shape[0])
    cursor_over(&c, data, 0)
    with nogil:
        for i in range(n):
            known[i] = 0
            if not valid[i]:
                continue
            text_at(&c, offsets, i, &t)
            if not read_double(t, &number):
                continue
            if single:
                number.value = outward_single(number.value, upper)
            elif as_bound:
                number.value = outward_double(number, upper)
            out[i] = ordered_double(number.value)
            known[i] = 1


def double_key(float64_t value):
    """The key of one double, as the columns hold it."""
    return ordered_double(value)
