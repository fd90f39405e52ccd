# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Recipes of what is around a library: users' functions, graphs as operations, integers of several dtypes.

They are lines of one seed in `USERS_IN`, so that the programs of other seeds stay what they are.
"""

from __future__ import annotations

import inspect
import re
import textwrap

import numpy as np
from fitting import to_dtype, to_shape
from growing import Builder, Unfit
from recipes import is_float, is_number, recipe

USERS_IN = 5
# How often, in programs of these seeds; recipes of complex numbers have chances of their own.
CHANCES = {
    "mixed_integers": 3,
    "graph_in_loop": 3,
    "nested_graphs": 2,
    "users_function": 2,
    "users_in_loop": 2,
    "late_batches": 3,
    "transforms_in_a_row": 2,
}

# Integers ---------------------------------------------------------------------------------------------

# Of integers and truth values of any two dtypes, which wrap around.
BINARY = (
    *("x + y", "x - y", "x * y", "x & y", "x | y", "x ^ y", "x * x - y", "-x + y", "pt.maximum(x, y)"),
    *("x < y", "x >= y", "pt.eq(x, y)", "pt.where(x > y, x, y)", "pt.minimum(x, y) * y", "x * y + x"),
    *("pt.where(y > 0, x // pt.where(y > 0, y, 1), y)", "x % pt.where(pt.eq(y, 0), 3, y)", "abs(x) - y"),
    *("pt.switch(x.astype('bool'), y, -y)", "x / 3 + y", "pt.sqrt(abs(x) * 1.0) + y", "pt.clip(x, 0, 5) - y"),
)
WHOLE = (
    *("{v}.sum()", "{v}.sum(axis=-1)", "{v}.prod(axis=0)", "pt.cumsum({v}, axis=0)", "{v}.max() - {v}.min()"),
    *("{v}.mean(axis=0)", "pt.cumprod({v}, axis=-1)", "{v}.sum(dtype='int64')", "{v}.astype('int8') * 3"),
    *("{v}.astype('uint8') - 1", "{v}.any(axis=0)", "pt.dot({v}, {v}.T)", "pt.sort({v}, axis=0)[::-1]"),
    *("pt.argsort({v}, axis=-1)", "pt.diff({v}, axis=0)", "~{v}", "({v} > 1).sum(axis=0)", "{v} << 3"),
)


@recipe(0)
def mixed_integers(b: Builder) -> None:
    """Arithmetic that wraps around, and what is made of it."""
    x, y = (b.operand(lambda v: v.dtype.kind in "iub") for _ in range(2))
    if b.chance(2):
        y = b.add_input(b.shape(x), b.pick(["int8", "uint8", "int16", "uint32", "uint64", "bool", "int64"]))
    y = to_shape(b, y, b.shape(x))
    swap = {"x": x, "y": y}
    text = re.sub(r"\b[xy]\b", lambda found: swap[found[0]], b.pick(BINARY))
    made = b.one(text, "mixed_integers")
    if b.values[made].ndim and b.values[made].dtype.kind in "iub" and b.chance(1.5):
        b.one(b.pick(WHOLE).format(v=made), "mixed_integers")


# Graphs as operations -----------------------------------------------------------------------------------

INNER = (
    "p * 0.5 + pt.tanh(q)",
    "p - q * p",
    "pt.sin(p) + q",
    "pt.where(p > q, p, q * 0.5)",
    "p[::-1] * 0.5 + q",
)


def _operation(b: Builder, dtype: str, rank: int, body: str) -> str:
    """The text of an OpFromGraph of two arrays of a dtype and rank."""
    made = ", ".join(f"pt.tensor(dtype='{dtype}', shape={(None,) * rank})" for _ in "pq")
    inline = b.pick(["", ", inline=True"])
    return f"(lambda p, q: graphc.OpFromGraph([p, q], [{body}]{inline}))({made})"


def _bodies(rank: int) -> list[str]:
    return [body for body in INNER if rank or "[" not in body]


@recipe(0)
def graph_in_loop(b: Builder) -> None:
    """A loop whose step is an operation made of a graph, its gradient, and a shared variable's update."""
    x = b.operand(lambda v: v.dtype.name in ("float32", "float64") and v.ndim > 0 and v.shape[0] > 0)
    dtype, row = str(b.dtype(x)), b.shape(x)[1:]
    start = to_shape(b, to_dtype(b, b.operand(is_number), dtype), row)
    body = b.pick(_bodies(len(row)))
    op = _operation(b, dtype, len(row), body)
    rows = f"sequences=[{x}], outputs_info=[{start}], return_updates=False"
    text = f"(lambda f: graphc.scan(lambda q, p: f(p, q), {rows}))({op})"
    if b.chance(3):
        text = f"graphc.grad(({text} * 0.5).sum().astype('float64'), {x})"
        b.add(text, "graph_in_loop", numpy="")
        return
    if b.chance(3):
        s = b.add_input(value=b.numbers(row, dtype, "few"), shared=True) if row else ""
        if not s:
            raise Unfit
        step = f"lambda q: (f({s}, q), {{{s}: f(q, {s})}})"
        loop = f"graphc.scan({step}, sequences=[{x}], return_updates=True)"
        text = f"(lambda f: (lambda found: [found[0], found[1][{s}]])({loop}))({op})"
        y, last = b.add(text, "graph_in_loop", numpy="")
        b.kept.append(y)
        b.renewed[s] = last
        return
    b.add(text, "graph_in_loop", numpy=f"graphc.scan(lambda q, p: {body}, {rows})")


@recipe(0)
def nested_graphs(b: Builder) -> None:
    """Operations of graphs in graphs of operations, and what they are differentiated to."""
    x = b.operand(lambda v: v.dtype.name in ("float32", "float64") and v.ndim > 0)
    dtype, rank = str(b.dtype(x)), len(b.shape(x))
    y = to_shape(b, to_dtype(b, b.operand(is_number), dtype), b.shape(x))
    inner, outer = b.pick(_bodies(rank)), b.pick(_bodies(rank))
    whole = _operation(b, dtype, rank, f"g(q, g(p, q)) + {outer}")
    text = f"(lambda g: {whole})({_operation(b, dtype, rank, inner)})"
    if b.chance(2):
        b.add(f"{text}({x}, {y})", "nested_graphs", numpy="")
    else:
        b.add(f"graphc.grad({text}({x}, {y}).sum().astype('float64'), [{x}, {y}])", "nested_graphs", numpy="")


# Rows of known sizes ---------------------------------------------------------------------------------------

# Of a row r of n numbers, and their products with what is made of others.
OF_ROWS = (
    *(
        "pt.fft.fft(r).real",
        "pt.fft.ifft(r).imag",
        "abs(pt.fft.rfft(r))",
        "pt.fft.irfft(pt.fft.rfft(r), n=n)",
    ),
    *("pt.fft.fft(r[None], axis=1).real[0]", "pt.fft.hfft(r + 0j, n=n)", "pt.convolve(r, r[:2])", "r[::-1]"),
    *(
        "pt.sort(r)",
        "pt.cumsum(r)",
        "pt.outer(r, r)",
        "r @ r",
        "pt.argmax(r)",
        "pt.median(r)",
        "pt.roll(r, 1)",
    ),
    *("pt.diff(r)", "pt.pad(r, 1)", "pt.linalg.norm(r)", "pt.logsumexp(r)", "pt.searchsorted(pt.sort(r), r)"),
    *("pt.linalg.solve(pt.outer(r, r) + pt.eye(n), r)", "pt.linalg.inv(pt.outer(r, r) + pt.eye(n))"),
    *(
        "pt.linalg.cholesky(pt.outer(r, r) + pt.eye(n))",
        "pt.linalg.eigvalsh(pt.outer(r, r))",
        "pt.tril(r[None])",
    ),
    *(
        "pt.linalg.det(pt.outer(r, r) + pt.eye(n))",
        "pt.stack([r, r * 2]).max(axis=0)",
        "pt.einsum('i,j->ij', r, r)",
    ),
    *("pt.set_subtensor(r[1:], r[:-1])", "pt.repeat(r, 2)", "pt.topk(r, 1)[0]", "pt.dot(pt.outer(r, r), r)"),
    *(
        "pt.cumprod(r)",
        "pt.softmax(r)",
        "r.mean()",
        "r.var()",
        "pt.quantile(r, 0.3)",
        "pt.interp(0.1, pt.sort(r), r)",
    ),
)
SIZES = (1, 2, 3, 5, 6, 7, 8, 12)


@recipe(0)
def late_batches(b: Builder) -> None:
    """What is decided for a row of a known size is right for more: in batches, loops and gradients."""
    n, dtype = b.pick(SIZES), b.pick(["float64", "float64", "float32"])
    lead = b.pick([(1,), (2,), (3,), (5,), (2, 2)])
    x = b.one(f"{b.add_input((*lead, n), dtype)} * 1", "late_batches")
    body = re.sub(r"\bn\b(?!=)", str(n), b.pick(OF_ROWS))
    if b.chance(3):
        body = f"graphc.grad(({body} * 0.5).sum().astype('float64'), r, disconnected_inputs='ignore')"
    row = f"pt.tensor(dtype='{dtype}', shape=({n},))"
    text = f"(lambda r: graphc.vectorize_graph({body}, {{r: {x}}}))({row})"
    if len(lead) == 1 and b.chance(3):
        rows = f"sequences=[pt.specify_shape({x}, (None, {n}))]"
        text = f"graphc.scan(lambda r: {body}, {rows}, return_updates=False)"
    refused = len(b.refused)
    try:
        b.kept += b.add(text, "late_batches", numpy="")
    except Unfit:
        # What can be computed for a row can be for a batch: that none is built is an error.
        assert len(b.refused) == refused, b.refused[-1]
        raise


# Of matrices z of complex numbers of a known size, one after the other.
MATRIX_TO_MATRIX = (
    *("pt.fft.fft(z, axis=-1)", "pt.fft.ifft(z, axis=0)", "pt.fft.fft(z, axis=0)", "pt.fft.fft2(z)", "z.T"),
    *("pt.linalg.inv(z @ pt.conj(z.T) + pt.eye(n))", "pt.linalg.solve(pt.eye(n) * (3 + 0j), z)", "z * 0.5"),
    *(
        "pt.linalg.cholesky(z @ pt.conj(z.T) + pt.eye(n))",
        "z @ z",
        "pt.fft.fftshift(z)",
        "pt.exp(-abs(z)) * z",
    ),
    *(
        "pt.fft.irfft(z, n=n).astype(z.dtype)",
        "pt.fft.rfft(z.real, n=2 * n - 1)",
        "pt.special.j0(z.real) + z",
    ),
)


@recipe(0)
def transforms_in_a_row(b: Builder) -> None:
    """Transforms, factors and products that read what others wrote, with little or nothing in between."""
    n, dtype = b.pick(SIZES[:6]), b.pick(["complex128", "complex64"])
    z = b.add_input(value=b.numbers((n, n), dtype))
    z = b.one(f"pt.specify_shape({z}, ({n}, {n}))", "transforms_in_a_row", numpy=f"{z} + 0")
    for _ in range(b.pick([2, 3, 4])):
        text = re.sub(r"\bn\b(?!=)", str(n), b.pick(MATRIX_TO_MATRIX))
        z = b.one(re.sub(r"\bz\b", z, text), "transforms_in_a_row", numpy="")
    b.kept.append(z)


# Functions of users -------------------------------------------------------------------------------------


def users_op(pt, graphc, dtype, rank, function):
    """An operation of a function of arrays, with the products by which it is differentiated."""
    kind = pt.TensorType(dtype, (None,) * rank)
    functions = {
        "view": (lambda a: a[::-1], lambda a, g: g[::-1]),
        "itself": (lambda a: a, lambda a, g: g),
        "transposed memory": (lambda a: np.asfortranarray(a * 2), lambda a, g: g * 2),
        "repeated": (lambda a: np.broadcast_to(a[:1], a.shape), lambda a, g: np.concatenate(
            [g.sum(axis=0, keepdims=True), np.zeros_like(g[1:])])),
        "read-only": (_read_only, lambda a, g: g * 3),
        "list": (lambda a: (a * 0.5).tolist() if a.size else a, lambda a, g: g * 0.5),
    }  # fmt: skip
    forward, backward = functions[function]
    return graphc.as_op(itypes=[kind], otypes=[kind], vjp=backward)(forward)


def _read_only(a):
    found = a * 3
    found.flags.writeable = False
    return found


_HELPERS = tuple(textwrap.dedent(inspect.getsource(f)) for f in (_read_only, users_op))
FUNCTIONS = ("view", "itself", "transposed memory", "repeated", "read-only", "list")


def _users(b: Builder) -> tuple[str, str, str]:
    x = b.operand(
        lambda v: is_float(v) and v.dtype.name in ("float32", "float64") and v.ndim > 0 and v.shape[0] > 0
    )
    dtype, function = str(b.dtype(x)), b.pick(FUNCTIONS)
    return x, dtype, function


@recipe(0)
def users_function(b: Builder) -> None:
    """A function of arrays as an operation, which gives back what it was given, a view, or odd memory."""
    x, dtype, function = _users(b)
    op = f"users_op(pt, graphc, '{dtype}', {len(b.shape(x))}, '{function}')"
    text = b.pick(
        ["{f}({x})", "{f}({x}) + {x}", "graphc.grad((({f}({x})) ** 2).sum().astype('float64'), {x})"]
    )
    made = b.one(text.format(f=op, x=x), "users_function", numpy="", helpers=_HELPERS)
    b.kept += [made] * b.chance(2) + [x] * (b.chance(4) and x.startswith("v"))


@recipe(0)
def users_in_loop(b: Builder) -> None:
    """The same for the rows of a loop, for its state, or as many times as there are of another axis."""
    x, dtype, function = _users(b)
    rank = len(b.shape(x))
    if rank < 2 or 0 in b.shape(x):
        raise Unfit
    f = f"users_op(pt, graphc, '{dtype}', {rank - 1}, '{function}')"
    kind, states = f"pt.tensor(dtype='{dtype}', shape={(None,) * (rank - 1)})", f"outputs_info=[{x}[0]]"
    rows = f"sequences=[{x}]"
    loops = [
        f"graphc.scan(lambda r: f(r) + r, {rows}, return_updates=False)",
        f"graphc.scan(lambda r, h: f(h) * 0.5 + r, {rows}, {states}, return_updates=False)",
        f"graphc.scan(lambda h: f(h), {states}, n_steps=3, return_updates=False)",
        f"(lambda v: graphc.vectorize_graph(f(v) * 2, {{v: {x}}}))({kind})",
    ]
    b.add(f"(lambda f: {b.pick(loops)})({f})", "users_in_loop", numpy="", helpers=_HELPERS)
