#!/usr/bin/env bash
# Run the decoder tests under AddressSanitizer.
#
#   tests/sanitize.sh                 every test of tests/native and every test_*fuzz*.py
#   tests/sanitize.sh PATH...         these tests
#
# The kernels are compiled for the sanitizer in a copy of the source tree, which is removed again;
# the working tree and its build stay as they are. PYTHON names the interpreter (it needs the test
# requirements and Cython); by default that of the virtualenv which `make build` sets up.
set -euo pipefail
root="$(cd "$(dirname "$0")/.." && pwd)"
python="${PYTHON:-$root/.venv/bin/python}"
if [ ! -x "$python" ]; then
    make -C "$root" build
fi
libasan="$(gcc -print-file-name=libasan.so)"
if [ "$libasan" = libasan.so ]; then
    echo "gcc has no libasan here: install the sanitizer runtime of your gcc" >&2
    exit 2
fi

copy="$(mktemp -d)"
trap 'rm -rf "$copy"' EXIT
tar -C "$root" --exclude='*.so' --exclude='__pycache__' -cf - \
    setup.py pyproject.toml README.md LICENSE pyx indextables tests | tar -C "$copy" -xf -
cd "$copy"
echo "== kernels with AddressSanitizer"
INDEXTABLES_SANITIZE=address "$python" setup.py --quiet build_ext --inplace \
    > build.log 2>&1 || { tail -50 build.log >&2; exit 1; }

if [ $# -eq 0 ]; then
    mapfile -t fuzzers < <(find tests -path tests/native -prune -o -name 'test_*fuzz*.py' -print)
    set -- tests/native "${fuzzers[@]}"
fi
echo "== tests: $*"
# Leaks are those of the interpreter; every allocation goes to malloc so that the sanitizer sees it.
export ASAN_OPTIONS="detect_leaks=0:alloc_dealloc_mismatch=0:abort_on_error=0"
export PYTHONMALLOC=malloc PYTHONPATH="$copy" PYTHONDONTWRITEBYTECODE=1
LD_PRELOAD="$libasan" "$python" - <<'PY'
import indextables.native._fuse as kernel
assert kernel.__file__.startswith(__import__("os").environ["PYTHONPATH"]), kernel.__file__
PY
LD_PRELOAD="$libasan" "$python" -m pytest -q -p no:cacheprovider \
    -m "not slow and not spark and not server" \
    -k "not ten_million and not false_positives_of_16 and not structural" "$@"
