# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions for C programs as one LLVM module, whose only symbols are those of the C interface.

Tables of NumPy's ziggurats are copied into it: in NumPy's library they are local, and cannot be linked.
"""

from __future__ import annotations

import ctypes
import re
import struct
from collections.abc import Callable, Collection, Mapping, Sequence

from graphc.artifacts.c_factors import FACTORS, factors_ir, sort_ir
from graphc.artifacts.c_function import Interface, exports, function_ir
from graphc.artifacts.c_memory import SERIAL, c_memory_ir
from graphc.artifacts.c_products import products_ir
from graphc.artifacts.c_text import TYPES, shared_ir
from graphc.artifacts.c_workspace import DECLARATIONS
from graphc.artifacts.export import need_of, require_c_names
from graphc.artifacts.source import Source
from graphc.backends import llvm
from graphc.backends.cpu.object import (
    UNROLLED_SIZE,
    VECTORISED_SIZE,
    Machine,
    add_vector_variants,
    is_available,
)
from graphc.backends.cpu.pipeline import OPT_LEVEL
from graphc.errors import CompileError
from graphc.library.interrupts import poll_ir, polls
from graphc_runtime import elf, npyrandom
from graphc_runtime.errors import LoadError
from graphc_runtime.record import record

PREFIX = "npyrandom_"
_LENGTH = 256
_KINDS = {"k_double": "i64", "w_double": "double", "k_float": "i32", "w_float": "float"}
_TYPES: dict[str, type[ctypes._SimpleCData[int] | ctypes._SimpleCData[float]]] = {
    "i64": ctypes.c_uint64,
    "double": ctypes.c_double,
    "i32": ctypes.c_uint32,
    "float": ctypes.c_float,
}


def tables_ir(symbols: Collection[str]) -> str:
    """LLVM IR of tables, with the values that NumPy has in this process.

    Args:
        symbols: names such as ``npyrandom_ki_double``.

    Raises:
        CompileError: this NumPy has no such table.
    """
    return "\n".join(map(_table, symbols))


def _table(symbol: str) -> str:
    name = symbol.removeprefix(PREFIX)
    kind = _KINDS.get(name[:1] + name[2:])
    try:
        address = npyrandom.address(name)
    except LoadError as error:
        raise CompileError(f"draws of C programs need a table of NumPy's: {error}") from None
    if kind is None:
        raise CompileError(f"C programs cannot have {symbol}")
    values = (_TYPES[kind] * _LENGTH).from_address(address)
    # Numbers of both widths are written as the bits of a double.
    texts = [
        f"{kind} {value}" if isinstance(value, int) else f"{kind} 0x{struct.pack('>d', value).hex()}"
        for value in values
    ]
    return f"@{symbol} = constant [{_LENGTH} x {kind}] [{', '.join(texts)}]"


# What graphc calls BLAS, LAPACK and NumPy's draws by, and what libraries have after their own name.
_LIBRARY_NAMES = {"blas_": "_", "lapack_": "_", "npyrandom_": ""}
# What C programs can link with: the others are in a Python process only.
_LINKABLE = ("", "BLAS", "LAPACK", "libm", "libmvec")


@record(frozen=True)
class CModule:
    """Code for C programs.

    Attributes:
        code: an ELF object.
        interfaces: of the functions, by name.
        needs: libraries to link with.
        llvm: the optimised module.
        assembly: it as text.
    """

    code: bytes
    interfaces: Mapping[str, Interface]
    needs: tuple[str, ...]
    llvm: str
    assembly: str


def c_module(
    sources: Sequence[Source],
    state_names: Callable[[Source], Sequence[str]],
    machine: Machine,
    *,
    freestanding: bool = False,
    docs: Mapping[str, str] | None = None,
) -> CModule:
    """Compiles functions for C programs.

    Args:
        sources: the functions.
        state_names: gives a name for each cell of a function.
        machine: what code is made for.
        freestanding: call no library but for memcpy, memset and memmove; products are `c_products`,
            factors `c_factors`.
        docs: descriptions by name.

    Raises:
        CompileError: a function calls what is in Python processes only, or, freestanding, any library.
        ValueError: a C program cannot have a function of such a name.
    """
    require_c_names({source.name: exports(source.name) for source in sources})
    texts, interfaces = [], {}
    for source in sources:
        interface = Interface.of(source, state_names(source))
        doc = (docs or {}).get(source.name, "")
        texts.append(_optimised(source, interface, machine, freestanding=freestanding, doc=doc))
        interfaces[source.name] = interface
    level = max(OPT_LEVEL[source.options.mode] for source in sources)
    with (
        llvm.code_generator(machine.triple, machine.cpu, machine.features, level) as generator,
        llvm.parsed(texts[0]) as module,
    ):
        for text in texts[1:]:
            module.link_in(text)
        code = generator.emit_object(module)
        undefined = elf.external_symbols(code)
        _require_linkable(undefined, freestanding=freestanding)
        needs = {_need(symbol) for symbol in undefined} - {""}
        return CModule(code, interfaces, tuple(sorted(needs)), str(module), generator.emit_assembly(module))


def _optimised(
    source: Source, interface: Interface, machine: Machine, *, freestanding: bool, doc: str
) -> str:
    """The module of a function, optimised, as text."""
    lowered = source.lowered(donate=False)
    wrapped = source.wrapped(lowered, machine)
    flush = machine.triple if source.options.flush_denormals else ""
    messages = [site.message for site in lowered.sites]
    around = function_ir(
        source.name, interface, wrapped.signature, messages, lowered.memory, lowered.n_arguments, doc
    )
    declarations = (
        "declare i64 @graphc_run(ptr, ptr, ptr)\ndeclare i64 @graphc_shapes(ptr, ptr, ptr, ptr)\n"
        "declare void @graphc_release(ptr)\ndeclare void @graphc_c_begin(ptr, ptr)\n"
    )
    texts = [
        wrapped.inlined,
        *(piece.text for piece in wrapped.pieces),
        c_memory_ir(lowered.memory) + poll_ir(polls(lowered.helpers), flush),
        SERIAL,
        TYPES + shared_ir() + declarations + DECLARATIONS + around,
        *(part.text for part in wrapped.parts),
        products_ir() if freestanding else "",
        sort_ir(),
    ]
    level = OPT_LEVEL[source.options.mode]
    with (
        llvm.code_generator(machine.triple, machine.cpu, machine.features, level) as generator,
        llvm.parsed(wrapped.text) as module,
    ):
        if level >= 2 and not freestanding and is_available(machine.triple):
            add_vector_variants(module, machine.features)
        layout = llvm.data_layout(machine.triple, machine.cpu, machine.features)
        module.set_target(machine.triple, layout)
        for text in filter(None, texts):
            module.link_in(text)
        factors = {f.name for f in module.functions() if f.is_declaration} & FACTORS
        if freestanding and factors:
            module.link_in(factors_ir(factors))
        tables = [v.name for v in module.variables() if v.is_declaration and v.name.startswith(PREFIX)]
        if tables:
            module.link_in(tables_ir(tables))
        _rename(module)
        kept = set(exports(source.name))
        for symbol in (*module.functions(), *module.variables()):
            if not symbol.is_declaration and symbol.name not in kept and not symbol.name.startswith("llvm."):
                symbol.internalise()
        size = len(wrapped.text)
        generator.optimise(
            module, level, vectorise=level >= 2 and size <= VECTORISED_SIZE, unroll=size < UNROLLED_SIZE
        )
        return str(module)


def _rename(module: llvm.Module) -> None:
    """Gives functions of libraries the names that libraries have."""
    for function in module.functions():
        for prefix, suffix in _LIBRARY_NAMES.items():
            if function.name.startswith(prefix):
                function.rename(function.name.removeprefix(prefix) + suffix)


def _need(symbol: str) -> str:
    """The library of a symbol of a C program."""
    return next((known for pattern, known in _FORTRAN if re.fullmatch(pattern, symbol)), need_of(symbol))


_FORTRAN = (
    (r"[sdcz](gemm|trsm)_", "BLAS"),
    (r"[sdcz]\w+_", "LAPACK"),
    (r"(random|legacy)_\w+", "NumPy's random draws (libnpyrandom.a)"),
)


def _require_linkable(symbols: Collection[str], *, freestanding: bool) -> None:
    bad = [
        s for s in symbols if need_of(s) not in _LINKABLE or s.startswith(("graphc_", "Py", "_Py", "descr_"))
    ]
    if bad:
        raise CompileError(f"a C program does not have what the code calls: {', '.join(sorted(bad))}")
    libraries = [symbol for symbol in symbols if _need(symbol)]
    if freestanding and libraries:
        raise CompileError(
            "freestanding code calls no libraries, but this needs "
            + ", ".join(f"{symbol} of {_need(symbol)}" for symbol in sorted(libraries))
        )
