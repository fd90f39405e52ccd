# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Recipes of control flow, random draws and derivatives."""

from __future__ import annotations

import numpy as np
from fitting import to_dtype, to_shape
from growing import Builder, Unfit
from program import NAME
from recipes import axis_of, is_float, is_number, recipe

# Conditionals -----------------------------------------------------------------------------------------


@recipe(3)
def branch(b: Builder) -> None:
    x = b.operand(is_float)
    y = to_shape(b, to_dtype(b, b.operand(is_number), str(b.dtype(x))), b.shape(x))
    sides = [
        f"pt.exp(-{x} * {x})",
        f"{x} * 2",
        f"pt.tanh({y})",
        y,
        x,
        f"{x} + {y}",
        f"{x}[::1] - 1" if b.shape(x) else x,
    ]
    condition = _condition(b)
    inner = (
        f"graphc.ifelse({_condition(b)}, {b.pick(sides)}, {b.pick(sides)})" if b.chance(3) else b.pick(sides)
    )
    b.add(f"graphc.ifelse({condition}, {b.pick(sides)}, {inner})", "branch")


def _condition(b: Builder) -> str:
    c = b.operand(lambda v: v.dtype.kind in "ifb", fresh=False)
    shape = b.shape(c)
    if not shape:
        return f"pt.neq({c}, 0)" if b.dtype(c).kind != "b" else c
    return str(b.pick([f"{c}.shape[0] > 2", f"pt.any({c} > 0)" if b.dtype(c).kind != "b" else f"{c}.any()"]))


# Loops ------------------------------------------------------------------------------------------------

# Of a row r and a state h of the same shape.
BODIES = (
    *("pt.tanh(r + 0.5 * h)", "h + r", "0.5 * h + r * r", "pt.maximum(h, r)", "r * 0.5 - h", "pt.sin(h) * r"),
    *("pt.where(r > 0, h, r)", "graphc.ifelse(r.sum() > 0, h + r, h)"),
    "pt.concatenate([r[..., :1], h[..., 1:]], axis=-1)",
)  # fmt: skip
FREE = (
    "0.6 * h",
    "pt.cos(h)",
    "h * h * 0.5 - 0.3",
    "0.5 * h + 0.25",
    "h[::-1]",
    "h.T",
    "pt.sort(h, axis=-1)",
)


def _rows(b: Builder) -> str:
    return b.operand(lambda v: v.dtype.name in ("float32", "float64") and v.ndim > 0 and v.shape[0] > 0)


@recipe(3)
def scan(b: Builder) -> None:
    """A loop over rows: a state and rows, a map, several taps, outputs beside the state."""
    x = _rows(b)
    row, dtype = b.shape(x)[1:], str(b.dtype(x))
    start = to_shape(b, to_dtype(b, b.operand(is_number), dtype), row)
    if 1 in row or b.chance(3):
        start = b.one(f"pt.specify_shape({start}, {row})", "fit", numpy=f"{start} + 0")
        x = b.one(f"pt.specify_shape({x}, {b.shape(x)})", "fit", numpy=f"{x} + 0")
    body = b.pick([t for t in BODIES if row or "..." not in t])
    back = ", go_backwards=True" if b.chance(4) else ""
    every = ", checkpoint_every=2" if b.chance(5) else ""
    kind = b.pick(["state", "state", "map", "beside", "taps", "until", "nested", "both"])
    mapped = b.pick(["r * w", "r + w", "pt.tanh(r) - w", "pt.exp(w) * r * 0.1"])
    double = "graphc.scan(lambda k: 0.5 * k + r, outputs_info=[h], n_steps=2, return_updates=False)[-1]"
    rows, states = f"sequences=[{x}]", f"outputs_info=[{start}]"
    scans = {
        "state": f"lambda r, h: {body}, {rows}, {states}{back}{every}",
        "map": f"lambda r, w: {mapped}, {rows}, non_sequences=[{start}]{back}",
        "beside": f"lambda r, h: [{body}, h * 2 - r], {rows}, outputs_info=[{start}, None]{every}",
        "taps": f"lambda a, c, h: h * 0.5 + a * c, sequences=[dict(input={x}, taps=[0, 1])], {states}{back}",
        "until": f"lambda r, h: ({body}, graphc.until(pt.sum(r) > 1)), {rows}, {states}{every}",
        "nested": f"lambda r, h: {double}, {rows}, {states}",
        "both": f"lambda r, h, g: [h + r, g * 0.5 + h], {rows}, outputs_info=[{start}, {start}]{back}{every}",
    }
    _parts(b, b.add(f"graphc.scan({scans[kind]}, return_updates=False)", "scan"))


def _parts(b: Builder, names: list[str]) -> None:
    """Often only a part of the rows is read."""
    if b.chance(3):
        b.add(f"{b.pick(names)}[{b.pick(['-1', '-2:', '1:', '::-1', ':2'])}]", "scan")


@recipe(2)
def iterate(b: Builder) -> None:
    """A loop without rows: a number of steps that is known, an input, or decided by a condition."""
    x = b.operand(lambda v: v.dtype.name in ("float32", "float64"))
    rank, shape = len(b.shape(x)), b.shape(x)
    bodies = [t for t in FREE if (rank or "[" not in t) and (rank or "sort" not in t)]
    if rank and len(set(shape)) != 1:
        bodies = [t for t in bodies if ".T" not in t]
    body = b.pick(bodies)
    if 1 in shape or b.chance(2):
        x = b.one(f"pt.specify_shape({x}, {shape})", "fit", numpy=f"{x} + 0")
    scalars = [m for m, v in b.values.items() if v.ndim == 0 and v.dtype.kind == "i" and 1 <= v <= 5]
    n = b.pick(["2", "3", "5", *scalars])
    every = b.pick(["", "", ", checkpoint_every=1", ", checkpoint_every=2"])
    kind = b.pick(["plain", "until", "pair", "taps", "fori"])
    end, steps = "graphc.until(h.sum() > 1.5)", f"n_steps={n}{every}, return_updates=False"
    early = f"outputs_info=[dict(initial=pt.stack([{x}, {x} * 2]), taps=[-2, -1])]"
    texts = {
        "plain": f"graphc.scan(lambda h: {body}, outputs_info=[{x}], {steps})",
        "until": f"graphc.scan(lambda h: ({body}, {end}), outputs_info=[{x}], {steps})",
        "pair": f"graphc.scan(lambda h: ([{body}, h.T], {end}), outputs_info=[{x}, None], {steps})",
        "taps": f"graphc.scan(lambda a, c: 0.5 * a - c, {early}, {steps})",
        "fori": f"graphc.fori_loop(0, {n}, lambda i, h: {body}, {x})",
    }
    _parts(b, b.add(texts[kind], "iterate"))


@recipe(3)
def rows_of_results(b: Builder) -> None:
    """A value that is a result, and is among a loop's initial rows; only the last rows are read."""
    x = b.operand(lambda v: v.dtype.name in ("float32", "float64") and v.ndim < 3 and v.size > 0)
    c = b.one(b.pick(["pt.exp({x})", "{x} * 2", "pt.tanh({x})", "{x} + 1"]).format(x=x), "rows_of_results")
    rows = [f"pt.stack([{c} * 0.5, {c}])", f"pt.stack([{c}, {c} * 0.5])", f"pt.stack([{c}, {c}])"]
    rows += [f"pt.concatenate([{c}[None], pt.zeros_like({c})[None]])", f"pt.stack([{c}, {x}, {c}])"]
    initial = b.pick(rows)
    body = "pt.tanh(d) + 0.1 * a" if b.chance(2) else "0.5 * a - 0.25 * d"
    taps, names = (
        ("[-3, -2, -1]", "a, m, d") if initial.count(",") > 1 and x in initial[10:] else ("[-2, -1]", "a, d")
    )
    n = b.pick(["5", "6", "9", f"(5 + pt.as_tensor({c}).size)", f"({c}.size + 4)"])
    loop = f"lambda {names}: {body}, outputs_info=[dict(initial={initial}, taps={taps})], n_steps={n}"
    h = f"graphc.scan({loop}, return_updates=False)[{b.pick(['-1', '-1', '-2:', '-1:'])}]"
    if b.chance(4):
        h = f"graphc.ifelse({_condition(b)}, {h}, {h} * 2)"
    y = b.one(h, "rows_of_results", numpy="")
    same = [
        i.name
        for i in b.inputs
        if i.shared and b.shape(i.name) == b.shape(c) and b.dtype(i.name) == b.dtype(c)
    ]
    b.renewed.update((name, c) for name in same)
    b.kept += [c, y]
    if b.chance(2):
        b.kept.append(b.one(f"graphc.grad(({y} * pt.cos({y})).sum() + {c}.sum(), {x})", "gradient", numpy=""))


# Of a position t, a row r of the written values, a state h of n elements.
WRITES = (
    *("pt.set_subtensor(h[t], {r})", "pt.inc_subtensor(h[t], {r})", "pt.inc_subtensor(h[k[t]], {r})"),
    "pt.set_subtensor(h[t + 1], h[t] * 0.5 + {r})",
    *("pt.inc_subtensor(h[t + 1], h[t] * {r})", "pt.set_subtensor(h[-1 - t], {r})"),
    "pt.inc_subtensor(h[-t - 1], {r})",
    *("pt.set_subtensor(h[(t * 2) % {n}], {r} + h[0])", "pt.inc_subtensor(h[h.argmax() % {n}], {r})"),
    "pt.set_subtensor(pt.set_subtensor(h[t], h[t + 1])[t + 1], h[t] + {r})",
    *("pt.inc_subtensor(h[t : t + 2], {r})", "pt.set_subtensor(h[: t + 1], {r})"),
    *("pt.set_subtensor(h[k[t]], h[k[t + 1]] * {r})", "pt.set_subtensor(h[t], pt.tanh(h.sum()) * {r})"),
)  # fmt: skip
READS = ("h[t]", "g[t]", "h[t] * g[t]", "h.sum()", "g[-1]", "(g - h).sum()", "h[t + 1] + g[t + 1]", "g")


@recipe(4)
def carried_parts(b: Builder) -> None:
    """A loop that writes a part of a carried array, which is read before and after; and its gradients."""
    n, dtype = b.pick([3, 4, 6]), b.pick(["float64", "float64", "float32"])
    h = (
        b.add_input((n,), dtype)
        if b.chance(2)
        else to_shape(b, to_dtype(b, b.operand(is_float), dtype), (n,))
    )
    x = b.add_input((n - 1,), dtype)
    k = b.add_input(value=np.array([b.r.randint(-n, n - 1) for _ in range(n)]))
    write = b.pick(WRITES).format(r=b.pick(["r", "r", "r * r", "pt.sin(r)"]), n=n)
    read = b.pick(READS)
    info = f"sequences=[pt.arange({n - 1}), {x}], outputs_info=[{h}, None], non_sequences=[{k}]"
    if b.chance(3):
        h = b.one(f"pt.specify_shape({h}, ({n},))", "fit", numpy=f"{h} + 0")
    every = b.pick(["", "", ", checkpoint_every=2"])
    loop = f"lambda t, r, h, k: (lambda g: [g, {read}])({write}), {info}{every}"
    made = b.add(f"graphc.scan({loop}, return_updates=False)", "carried_parts", numpy="")
    last = b.one(f"{made[0]}[{b.pick(['-1', '-1', '-1', '-2:', '::2'])}]", "carried_parts")
    chosen = b.pick([[last], [last, made[1]], [last, h], [made[1]], made])
    b.kept += chosen
    if b.chance(1.3):
        cost = " + ".join(f"({y} * pt.cos({y})).sum()" for y in chosen)
        b.kept += b.add(
            f"graphc.grad({cost}, [{h}, {x}], disconnected_inputs='ignore')", "gradient", numpy=""
        )


@recipe(2)
def rows_read_in_loops(b: Builder) -> None:
    """Rows of a table at positions that are values, steps or windows; the gradient by the table."""
    n, dtype = b.pick([3, 4, 6]), b.pick(["float64", "float32"])
    table = b.add_input((n, *b.pick([(), (2,), (3,)])), dtype)
    k = b.add_input(value=np.array([b.r.randint(-n, n - 1) for _ in range(b.pick([2, 5]))]))
    part = b.pick(["E[k]", "E[k]", "E[k] * E[0]", "E[k % 2 : k % 2 + 2].sum(axis=0)", "E[k] + E[::-1][k]"])
    body = b.pick([f"pt.tanh(h + {part})", f"h + {part} * {part}", f"0.5 * h * {part}"])
    loop = f"lambda k, h, E: {body}, sequences=[{k}], outputs_info=[{table}[{b.pick(['0', '-1'])}]]"
    h = b.one(f"graphc.scan({loop}, non_sequences=[{table}], return_updates=False)", "rows_read_in_loops")
    y = b.one(f"{h}[-1]", "rows_read_in_loops") if b.chance(2) else h
    g = b.one(
        f"graphc.grad(({y} * {y}).sum(){b.pick(['', f' + {table}.sum()'])}, {table})", "gradient", numpy=""
    )
    b.kept += [y, g]


# Draws ------------------------------------------------------------------------------------------------


@recipe(1.5)
def draw(b: Builder) -> None:
    """Random numbers, whose parameters or sizes are values of the program."""
    x = b.operand(lambda v: v.dtype == "float64" and v.ndim > 0, fresh=False)
    rng = b.add_generator()
    n = f"{x}.shape[0]"
    options = [
        f"pt.random.uniform(-1, 1, size=({n}, 2), rng={rng})",
        f"pt.random.integers(0, 5, size=({n},), rng={rng})",
        f"pt.random.normal(pt.tanh({x}), 1.0, rng={rng})",
        f"pt.random.exponential(abs({x}) + 1, rng={rng})",
        f"pt.random.gamma(2.0, 1.0, size=(3,), rng={rng})",
        f"pt.random.permutation({x}, rng={rng})",
    ]
    b.add(b.pick(options), "draw", numpy="")


# Derivatives ------------------------------------------------------------------------------------------


@recipe(5)
def gradient(b: Builder) -> None:
    """Of a cost in inputs, or in values on its way."""
    y = b.operand(lambda v: is_float(v) and v.size > 0, fresh=False)
    names = upstream(b, y)
    wrt = [n for n in names if b.values[n].dtype.kind == "f"]
    if not wrt:
        raise Unfit
    chosen = sorted({b.pick(wrt) for _ in range(b.pick([1, 1, 2, 3]))})
    weight = f"pt.cos({y})" if b.chance(3) else y
    cost = b.pick([f"{y}.sum()", f"({y} * {weight}).sum()", f"pt.sum({y} ** 2)", f"{y}.mean()"])
    b.add(f"graphc.grad({cost}, [{', '.join(chosen)}], disconnected_inputs='ignore')", "gradient", numpy="")


@recipe(1.5)
def derivative(b: Builder) -> None:
    """Products with Jacobians, forward and reverse, and whole Jacobians."""
    y = b.operand(lambda v: v.dtype == "float64" and 0 < v.size < 20, fresh=False)
    wrt = [n for n in upstream(b, y) if b.values[n].dtype == "float64" and b.values[n].size < 20]
    if not wrt:
        raise Unfit
    x = b.pick(wrt)
    options = [
        f"graphc.pushforward({y}, {x}, pt.ones_like({x}), disconnected_outputs='ignore')",
        f"graphc.pullback({y}, {x}, pt.ones_like({y}), disconnected_inputs='ignore')",
    ]
    if len(b.shape(y)) == 1:
        options.append(f"graphc.jacobian({y}, {x}, disconnected_inputs='ignore')")
    b.add(b.pick(options), "derivative", numpy="")


def upstream(b: Builder, name: str) -> list[str]:
    """Names that a value is computed from, the value's own first lines included."""
    steps = {n: step for step in b.steps for n in step.names}
    found, stack = [], [name]
    while stack:
        current = stack.pop()
        if current in steps:
            for other in NAME.findall(steps[current].text):
                if other not in found and other in b.values:
                    found.append(other)
                    stack.append(other)
    return found


__all__ = ["axis_of"]
