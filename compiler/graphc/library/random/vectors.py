# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Draws that depend on a vector, or are one.

Each is a function of `(bitgen, k, scratch, cache, first, out, parameters...)`: k is the length of the
vectors, scratch has room for k numbers, cache is memory that NumPy keeps between draws, `first` says that the
vectors are not those of the draw before.
"""
# mypy: ignore-errors

from __future__ import annotations

from graphc.native import BOOL, BYTE, F64, I64, Routine, Value
from graphc.native.builtins import at, call, inlined, invoke, view
from graphc.native.translate import Translator
from graphc_runtime.record import record

_TYPES = {"d": F64, "q": I64}


@inlined
def running_sum(p, sums, k):
    """The running sum of p, and the last of it."""
    total = 0.0
    for i in range(k):
        total += p[i]
        sums[i] = total
    return total


@inlined
def uniform(bitgen):
    """A number in [0, 1) of a generator, NumPy's `bitgen_t`."""
    words = view(bitgen, "i64")
    return invoke(at(words[3], "u8"), at(words[0], "u8"), returns="f64")


@inlined
def searched(sums, u, k, above):
    """The first position of k at which a sum is not below a number, or `above` it."""
    low, high = 0, k
    while low < high:
        middle = low + ((high - low) >> 1)
        if sums[middle] <= u if above else sums[middle] < u:
            low = middle + 1
        else:
            high = middle
    return low


def categorical(bitgen, k, scratch, cache, first, out, p):
    """The first position at which the running sum of p is not below a uniform number."""
    if first:
        running_sum(p, scratch, k)
    out[0] = min(searched(scratch, uniform(bitgen), k, False), k - 1)


def choice(bitgen, k, scratch, cache, first, out, p):
    """The first position at which the running sum, divided by its last element, is above a uniform number: as
    numpy.random.Generator.choice does.
    """
    if first:
        total = running_sum(p, scratch, k)
        for i in range(k):
            scratch[i] = scratch[i] / total
    out[0] = min(searched(scratch, uniform(bitgen), k, True), k - 1)


def dirichlet(bitgen, k, scratch, cache, first, out, alpha):
    """Gamma draws divided by their sum. Where all of alpha is below 0.1 they could all be 0: pieces are
    broken off a stick instead, by beta draws, with the sums of what follows in the scratch.
    """
    most = 0.0
    for i in range(k):
        # A NaN counts as large.
        if not alpha[i] <= most:
            most = alpha[i]
    if most < 0.1:
        rest = 0.0
        for i in range(k - 1, -1, -1):
            rest += alpha[i]
            scratch[i] = rest
            out[i] = 0.0
        left = 1.0
        for i in range(k - 1):
            piece = call("npyrandom_random_beta", bitgen, alpha[i], scratch[i + 1], returns="f64")
            out[i] = left * piece
            left *= 1.0 - piece
            if scratch[i + 1] == 0.0:
                return
        out[k - 1] = left
        return
    total = 0.0
    for i in range(k):
        x = call("npyrandom_random_standard_gamma", bitgen, alpha[i], returns="f64")
        out[i] = x
        total += x
    share = 1.0 / total
    for i in range(k):
        out[i] *= share


def multinomial(bitgen, k, scratch, cache, first, out, n, p):
    for i in range(k):
        out[i] = 0
    call("npyrandom_random_multinomial", bitgen, n, out, p, k, cache)


def permutation(bitgen, k, scratch, cache, first, out):
    for i in range(k):
        out[i] = i
    for last in range(k - 1, 0, -1):
        other = call("npyrandom_random_interval", bitgen, last, returns="i64")
        x = out[last]
        out[last] = out[other]
        out[other] = x


@record(frozen=True)
class VectorDraw:
    """One draw of a distribution over, or by, vectors.

    Attributes:
        parameters: letters of the types of the parameters; a capital one is a pointer to k of them.
        result: letter of the type of what is drawn; a capital one is k of them.
        function: makes it.
        symbols: what it needs of NumPy's library.
    """

    parameters: str
    result: str
    function: Routine
    symbols: tuple[str, ...] = ()

    def define(self, symbol: str) -> Translator:
        """The definition of a function, internal to its module."""
        t = Translator(prefix=f"{symbol}.routine", apart=False)
        types = [BYTE.to, I64, F64.to, BYTE.to, BOOL, _TYPES[self.result.lower()].to]
        types += [_TYPES[x] if x.islower() else _TYPES[x.lower()].to for x in self.parameters]
        t.define(self.function, symbol, [Value(f"%a{i}", x) for i, x in enumerate(types)], "internal ")
        return t


VECTORS: dict[str, VectorDraw] = {
    "categorical": VectorDraw("D", "q", categorical),
    "choice": VectorDraw("D", "q", choice),
    "dirichlet": VectorDraw("D", "D", dirichlet, ("random_standard_gamma", "random_beta")),
    "multinomial": VectorDraw("qD", "Q", multinomial, ("random_multinomial",)),
    "permutation": VectorDraw("", "Q", permutation, ("random_interval",)),
}
