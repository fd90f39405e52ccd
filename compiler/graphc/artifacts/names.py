# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Names of exported functions and of their shared variables: the identifiers that readers take."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from graphc.artifacts.source import Source
from graphc.graph.basic import Constant
from graphc_runtime.package import MAX_NAME

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
