"""Build of the native kernels: every ``pyx/**/*.pyx`` becomes ``indextables.native.<name>``.

What Cython would put into each of them for typed memoryviews is compiled once, as
``indextables.native._shared``: half the time to build, less than half the size.

``INDEXTABLES_DEBUG=1`` turns bounds checks, ``None`` checks and assertions on.
``INDEXTABLES_SANITIZE=address`` compiles for AddressSanitizer (see ``tests/sanitize.sh``).
"""

import json
import multiprocessing
import os
import shutil
import sys
from pathlib import Path

import Cython
from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_ext import build_ext
from setuptools.errors import CompileError, ExecError, LinkError, PlatformError

ROOT = Path(__file__).resolve().parent
DEBUG = os.environ.get("INDEXTABLES_DEBUG", "0") not in ("", "0")
SANITIZE = os.environ.get("INDEXTABLES_SANITIZE", "")

C_FILES = "build/cython" + ("-debug" if DEBUG else "")
SHARED = "indextables.native._shared"

NO_COMPILER = """indextables could not be compiled. It needs a C compiler and Python's headers:
    Debian, Ubuntu     apt install build-essential python3-dev
    Fedora, RHEL       dnf install gcc python3-devel
    Alpine             apk add build-base python3-dev
    macOS              xcode-select --install
Then run pip again. On Linux, pip install --only-binary indextables indextables takes a wheel that
is compiled already, if there is one for this Python."""

DIRECTIVES = {
    "language_level": 3,
    "boundscheck": DEBUG,
    "wraparound": False,
    "initializedcheck": DEBUG,
    "nonecheck": DEBUG,
    "cdivision": True,
    "embedsignature": True,
    "freethreading_compatible": True,
    "show_performance_hints": False,
}


def compile_args() -> list[str]:
    if sys.platform == "win32":
        return ["/O2"]
    args = ["-O1", "-g"] if (DEBUG or SANITIZE) else ["-O3", "-g0"]
    args += ["-Wall", "-Wno-unused-function", "-Wno-unreachable-code", "-fno-strict-aliasing"]
    if SANITIZE:
        args += [f"-fsanitize={SANITIZE}", "-fno-omit-frame-pointer"]
    return args


def cython_processes() -> int:
    """As many as there are cores, where a process can simply be forked."""
    return (os.cpu_count() or 0) if multiprocessing.get_start_method() == "fork" else 0


def extensions() -> list[Extension]:
    kernels = sorted((ROOT / "pyx").rglob("*.pyx"), key=lambda kernel: kernel.stem)
    return [extension(SHARED, "pyx/_shared.c")] + [
        extension(f"indextables.native.{kernel.stem}", str(kernel.relative_to(ROOT)))
        for kernel in kernels
    ]


def extension(name: str, source: str) -> Extension:
    return Extension(
        name,
        [source],
        extra_compile_args=compile_args(),
        extra_link_args=[f"-fsanitize={SANITIZE}"] if SANITIZE else [],
        define_macros=[] if DEBUG else [("CYTHON_WITHOUT_ASSERTIONS", "1")],
    )


def header_tree() -> str:
    """Lay the ``.pxd`` files out as the package they describe, so that cimports resolve."""
    tree = ROOT / "build" / "pxd"
    package = tree / "indextables" / "native"
    package.mkdir(parents=True, exist_ok=True)
    for folder in (package.parent, package):
        (folder / "__init__.pxd").touch()
    for header in (ROOT / "pyx").rglob("*.pxd"):
        shutil.copy2(header, package / header.name)
    return str(tree.relative_to(ROOT))


class BuildNative(build_ext):
    """Compile on every core; put the type stubs of ``pyx/`` beside the compiled modules."""

    def finalize_options(self) -> None:
        super().finalize_options()
        self.parallel = self.parallel or os.cpu_count()

    def run(self) -> None:
        try:
            super().run()
        except (CompileError, ExecError, LinkError, PlatformError) as error:
            raise SystemExit(f"\n{error}\n\n{NO_COMPILER}") from None
        target = ROOT if self.inplace else Path(self.build_lib)
        for stub in (ROOT / "pyx").rglob("*.pyi"):
            shutil.copy2(stub, target / "indextables" / "native" / stub.name)


class WheelWithParts(bdist_wheel):
    """A wheel that lists its parts as PEP 770 wants it, in ``.dist-info/sboms``."""

    def write_wheelfile(self, wheelfile_base: str, *args: object, **kwargs: object) -> None:
        super().write_wheelfile(wheelfile_base, *args, **kwargs)
        folder = Path(wheelfile_base) / "sboms"
        folder.mkdir(exist_ok=True)
        parts = json.dumps(self.parts(), indent=1, sort_keys=True)
        (folder / "indextables.cdx.json").write_text(parts + "\n")

    def parts(self) -> dict[str, object]:
        """The package, what is compiled into it, and what it requires at run time."""
        meta = self.distribution.metadata
        me = f"pkg:pypi/{meta.get_name()}@{meta.get_version()}"
        compiled = f"pkg:pypi/cython@{Cython.__version__}"
        license_of = [{"license": {"id": "Apache-2.0"}}]
        components: list[dict[str, object]] = [
            {
                "type": "library",
                "name": "cython",
                "version": Cython.__version__,
                "purl": compiled,
                "bom-ref": compiled,
                "licenses": license_of,
                "description": "its utility code is compiled into indextables.native",
            }
        ]
        components += [
            {
                "type": "library",
                "name": str(text).split(";")[0].strip(),
                "bom-ref": f"requires {text}",
                "scope": "required",
                "description": "installed beside the package, not part of it",
            }
            for text in self.distribution.install_requires
        ]
        package = {"type": "library", "name": meta.get_name(), "version": meta.get_version()}
        return {
            "bomFormat": "CycloneDX",
            "specVersion": "1.6",
            "version": 1,
            "metadata": {
                "component": {**package, "purl": me, "bom-ref": me, "licenses": license_of}
            },
            "components": components,
            "dependencies": [{"ref": me, "dependsOn": [str(c["bom-ref"]) for c in components]}],
        }


setup(
    cmdclass={"build_ext": BuildNative, "bdist_wheel": WheelWithParts},
    ext_modules=cythonize(
        extensions(),
        include_path=[header_tree()],
        compiler_directives=DIRECTIVES,
        build_dir=C_FILES,
        shared_utility_qualified_name=SHARED,
        annotate=DEBUG,
        nthreads=cython_processes(),
        quiet=True,
    ),
)
