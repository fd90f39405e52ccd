# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``graphc.export``: compiled functions as a `.gcx` file.

Names of functions and of shared variables are identifiers, which readers take.
"""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import graphc
from graphc.artifacts.source import Source, sources
from graphc.backends import llvm
from graphc.backends.cpu.object import Machine, this_machine
from graphc.graph.basic import Constant
from graphc_runtime import signing
from graphc_runtime.container import Container, Writer, write_file
from graphc_runtime.cpu import TargetRecord
from graphc_runtime.cuda.code import TRIPLE
from graphc_runtime.errors import Site
from graphc_runtime.package import MAX_NAME, Code, FunctionRecord, Package, StateRecord, Stored
from graphc_runtime.worker import apart

if TYPE_CHECKING:
    from graphc.function.types import Function
    from graphc_runtime.artifact import Artifact


# Keywords of C and C++, whose programs include the headers; what a program has already; and what code may
# call: a function of that name would be called in the library's place.
_RESERVED = frozenset(
    """
    alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t char32_t char8_t
    class co_await co_return co_yield compl concept const const_cast consteval constexpr constinit continue
    decltype default delete do double dynamic_cast else enum explicit export extern false float for friend
    goto if inline int long mutable namespace new noexcept not not_eq nullptr operator or or_eq private
    protected public register reinterpret_cast requires restrict return short signed sizeof static
    static_assert static_cast struct switch template this thread_local throw true try typedef typeid typename
    typeof typeof_unqual union unsigned using virtual void volatile wchar_t while xor xor_eq
    NULL errno linux unix main malloc calloc realloc free memcpy memmove memset memcmp
    """.split()
)
_MATHEMATICAL = frozenset(
    """
    acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh erf erfc exp exp10 exp2 expm1 fabs
    floor fma fmax fmin fmod frexp hypot ldexp lgamma log log10 log1p log2 modf nearbyint pow remainder rint
    round roundeven sin sincos sinh sqrt tan tanh tgamma trunc
    """.split()
)
_PREFIXES = ("graphc_", "GRAPHC_", "blas_", "lapack_", "npyrandom_", "__")


def require_c_names(symbols: Mapping[str, Sequence[str]]) -> None:
    """Refuses functions that C or C++ programs could not declare, or that would stand for other symbols.

    Args:
        symbols: by function, what it defines for C programs.

    Raises:
        ValueError: such a name.
    """
    owners: dict[str, str] = {}
    for name, defined in symbols.items():
        if name in _RESERVED or name.removesuffix("f") in _MATHEMATICAL or name.startswith(_PREFIXES):
            raise ValueError(
                f"a C function cannot be named {name!r}: C, C++, graphc.h or a library has that name; "
                "give another one: emit({'another_name': f}, ...)"
            )
        for symbol in defined:
            other = owners.setdefault(symbol, name)
            if other != name:
                raise ValueError(
                    f"the functions {other!r} and {name!r} would both define {symbol!r}; rename one of them"
                )


class StateNames:
    """The shared variables of all functions in order of first use, under different identifiers.

    Attributes:
        variables: function, position of a cell, and name of each.
    """

    def __init__(self, given: Sequence[Source]) -> None:
        self.variables: list[tuple[Source, int, str]] = []
        self._numbers: dict[int, int] = {}
        for source in given:
            for i, variable in enumerate(source.cells):
                if not isinstance(variable, Constant) and id(variable.container) not in self._numbers:
                    self._numbers[id(variable.container)] = len(self.variables)
                    self.variables.append((source, i, self._new(variable.name)))

    def number(self, variable: Any) -> int:
        """Of a shared variable."""
        return self._numbers[id(variable.container)]

    def of_cells(self, source: Source) -> list[str]:
        """A name for each cell of a function, empty for constants."""
        return [
            "" if isinstance(variable, Constant) else self.variables[self.number(variable)][2]
            for variable in source.cells
        ]

    def _new(self, name: str | None) -> str:
        label = re.sub(r"\W", "_", name or "", flags=re.ASCII) or f"state_{len(self.variables)}"
        label = f"_{label}" if label[0].isdigit() else label
        label = label[: MAX_NAME - len(str(len(self.variables) + 2)) - 1]
        taken = {known for _, _, known in self.variables}
        candidates = [label, *(f"{label}_{i}" for i in range(2, len(taken) + 3))]
        return next(candidate for candidate in candidates if candidate not in taken)


# The levels of the x86-64 psABI: each has the features of those before it.
_LEVELS = {
    "x86-64-v2": "cx16 popcnt sahf sse3 sse4.1 sse4.2 ssse3",
    "x86-64-v3": "avx avx2 bmi bmi2 f16c fma lzcnt movbe xsave",
    "x86-64-v4": "avx512f avx512bw avx512cd avx512dq avx512vl",
}
# Linux, macOS: the latter keeps the register x18 for itself.
_AARCH64 = Machine("aarch64-unknown-linux-gnu", "generic", "+neon,+reserve-x18")
# Devices: what is compiled for an architecture runs on all later ones.
_DEVICES = {"cuda": "sm_90", **{f"cuda-{arch}": arch for arch in ("sm_80", "sm_90", "sm_100")}}
NAMES = ("host", *_LEVELS, "aarch64", *_DEVICES)


def named_target(name: str) -> Machine:
    """The target of a name.

    Raises:
        ValueError: there is none.
    """
    if name == "host":
        return this_machine()
    if name == "aarch64":
        return _AARCH64
    if name in _DEVICES:
        return Machine(TRIPLE, _DEVICES[name], "")
    if name not in _LEVELS:
        raise ValueError(f"target must be one of {', '.join(NAMES)}, got {name!r}")
    levels = list(_LEVELS)
    features = [f for level in levels[: levels.index(name) + 1] for f in _LEVELS[level].split()]
    return Machine("x86_64-unknown-linux-gnu", name, ",".join(f"+{feature}" for feature in features))


def is_device(target: Machine) -> bool:
    """True if it is no CPU."""
    return target.triple == TRIPLE


# Of the C library itself, which every process has.
_PLAIN = frozenset("malloc free realloc memcpy memset memmove memcmp".split())
_RULES = (
    (r"blas_\w+|graphc_share_blas", "BLAS"),
    (r"lapack_\w+", "LAPACK"),
    (r"special_\w+", "SciPy's special functions"),
    (r"npyrandom_\w+", "NumPy's random draws"),
    (r"numpy_sort_\w+", "NumPy's sort functions"),
    (r"_ZGV\w+", "libmvec"),
    (r"graphc_\w+|descr_\w+|str_\w+|_?Py\w+", ""),
    (r"\w+", "libm"),
)


def need_of(symbol: str) -> str:
    """The library that has a symbol; empty for the runtime, Python and the C library."""
    if symbol in _PLAIN:
        return ""
    return next((need for pattern, need in _RULES if re.fullmatch(pattern, symbol)), "")


def needs_of(symbols: Collection[str]) -> tuple[str, ...]:
    """The libraries that have these symbols."""
    return tuple(sorted({need_of(symbol) for symbol in symbols} - {""}))


LICENCE = "Apache-2.0 WITH LLVM-exception"


def export(
    functions: Function | Mapping[str, Function],
    path: str | os.PathLike[str],
    targets: str | Sequence[str] = ("host",),
    *,
    docs: Mapping[str, str] | None = None,
    licences: Sequence[str] = (LICENCE,),
    signing_key: bytes | None = None,
    keep_ir: bool = False,
) -> Path:
    """Writes compiled functions to a file that `graphc_runtime.load` reads without a compiler.

    Functions share constants and the shared variables that several of them use, whose values of now are the
    initial ones. Constants of more than 16 elements and states are kept apart from code, once each.

    Args:
        functions: one, under its own name or ``function``, or several by name.
        path: of the file, by custom ``*.gcx``.
        targets: what to compile for: ``"host"`` (this machine's CPU with all it has), ``"x86-64-v2"``,
            ``"x86-64-v3"``, ``"x86-64-v4"``, ``"aarch64"``; ``"cuda"`` (CUDA devices from sm_90 on),
            ``"cuda-sm_80"``, ``"cuda-sm_100"``. The best one for the CPU is chosen when the file is loaded,
            one for a device if there is no other or `load` is told to.
        docs: descriptions of functions by name.
        licences: of the model, as SPDX expressions or texts.
        signing_key: a private Ed25519 key of 32 bytes to sign the file with (`graphc_runtime.signing`).
        keep_ir: also put the graph of each function, as MLIR, into the file.

    Returns:
        The path.

    Raises:
        TypeError: a function runs partly in Python, or is none.
        ValueError: a name is no identifier, or a target is not known.
        CompileError: something has no kernel for a device.

    Examples:
        >>> import graphc_runtime, os, tempfile
        >>> x = pt.vector("x")
        >>> f = graphc.function([x], x * 2, mode="fast_run")
        >>> path = os.path.join(tempfile.mkdtemp(), "double.gcx")
        >>> written = graphc.export({"double": f}, path)
        >>> graphc_runtime.load(path).double(np.array([1.0, 2.0]))
        array([2., 4.])
    """
    return export_sources(
        sources(functions),
        path,
        [targets] if isinstance(targets, str) else list(targets),
        docs=docs,
        licences=licences,
        signing_key=signing_key,
        keep_ir=keep_ir,
    )


def export_sources(
    given: Sequence[Source],
    path: str | os.PathLike[str],
    targets: Sequence[str],
    *,
    docs: Mapping[str, str] | None = None,
    licences: Sequence[str] = (LICENCE,),
    signing_key: bytes | None = None,
    keep_ir: bool = False,
) -> Path:
    """As `export`."""
    if not targets:
        raise ValueError("export needs at least one target")
    found = {name: named_target(name) for name in targets}
    unknown = sorted(set(docs or ()) - {source.name for source in given})
    if unknown:
        raise ValueError(f"docs describes {', '.join(unknown)}, which are not exported")
    writer = Writer()
    names = StateNames(given)
    records = {
        source.name: apart(_record, source, found, writer, names, (docs or {}).get(source.name, ""))
        for source in given
    }
    texts = {f"mlir:{source.name}": writer.add(source.text.encode()) for source in given if keep_ir}
    package = Package(
        records,
        tuple(_state(writer, *item) for item in names.variables),
        {name: TargetRecord(**target.to_dict()) for name, target in found.items()},
        _producer(),
        tuple(licences),
        texts,
    )
    sign = None if signing_key is None else signing.signer(signing_key)
    data = writer.to_bytes(package.to_json(), sign)
    # Nothing is written that `load` would refuse.
    Package.from_json(Container(data, str(path)).manifest, str(path))
    write_file(path, data)
    return Path(path)


def _record(
    source: Source, targets: Mapping[str, Machine], writer: Writer, names: StateNames, doc: str
) -> FunctionRecord:
    """Compiles a function for all targets."""
    devices = {name: target for name, target in targets.items() if is_device(target)}
    made: dict[str, Artifact] = {}
    sites: tuple[Site, ...] = ()
    if len(devices) < len(targets):
        # Nothing is donated on devices, and all targets of a function have one signature.
        lowered = source.lowered(donate=not devices)
        sites = lowered.sites
        machines = {name: target for name, target in targets.items() if name not in devices}
        made = {name: source.compiled(lowered, target) for name, target in machines.items()}
    for_devices = {name: source.for_device(target, len(sites)) for name, target in devices.items()}
    # Their checks are other ones, but the same for all of them.
    sites += next((artifact.manifest.sites for artifact in for_devices.values()), ())
    made |= for_devices
    code = {
        name: Code(
            writer.add(artifact.code),
            artifact.manifest.symbols,
            artifact.manifest.entries,
            artifact.manifest.tuple_items,
        )
        for name, artifact in made.items()
    }
    made_signature = next(iter(made.values())).manifest.signature
    spares = () if devices else made_signature.spares
    symbols = {symbol for item in code.values() for symbol in item.symbols}
    return FunctionRecord(
        doc,
        replace(source.signature, donated=made_signature.donated, spares=spares),
        source.outputs,
        source.form,
        tuple(
            ("constant", _stored(writer, source.value(i)))
            if isinstance(variable, Constant)
            else ("state", names.number(variable))
            for i, variable in enumerate(source.cells)
        ),
        {i: _stored(writer, value) for i, value in source.defaults.items()},
        # Nodes are positions in a graph that whoever loads this does not have.
        tuple(Site(site.message, site.error) for site in sites),
        code,
        needs_of(symbols),
    )


def _state(writer: Writer, source: Source, cell: int, name: str) -> StateRecord:
    """A shared variable, from a function that has it as a cell."""
    shape, generator = (
        source.signature.cells[cell].shape,
        getattr(source.cells[cell].type, "bit_generator", ""),
    )
    return StateRecord(name, tuple(shape), _stored(writer, source.value(cell)), generator)


def _stored(writer: Writer, array: np.ndarray) -> Stored:
    return Stored(writer.add(array.tobytes()), array.dtype.name, array.shape)


def _producer() -> dict[str, str]:
    """Versions of what makes the file."""
    from importlib import metadata

    return {
        "graphc": graphc.__version__,
        "llvm": str(llvm.version()),
        "mlir": metadata.version("torch-mlir"),
        "numpy": np.__version__,
        "python": platform.python_version(),
    }
