# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Recipes of control flow, random draws and derivatives."""

from __future__ import annotations

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
