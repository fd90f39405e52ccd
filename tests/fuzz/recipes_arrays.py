# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Recipes of arrays: joins, views, indices, updates, sizes."""

from __future__ import annotations

from fitting import to_dtype, to_shape
from growing import Builder, Unfit
from numpy_space import space as numpy_space
from recipes import axis_of, is_float, is_number, is_real, recipe, with_rank

# Joins ----------------------------------------------------------------------------------------------


@recipe(7)
def join(b: Builder) -> None:
    x = b.operand(with_rank)
    shape, axis = b.shape(x), axis_of(b, x)
    at = axis % len(shape)
    rest = shape[:at] + shape[at + 1 :]
    alike = [n for n, v in b.values.items() if v.dtype == b.dtype(x) and v.ndim == len(shape)]
    same = [n for n in alike if b.shape(n)[:at] + b.shape(n)[at + 1 :] == rest]
    others = [b.pick(same) for _ in range(b.pick([1, 1, 2]))]
    if b.chance(4):
        size = b.pick([1, 2, 0])
        others.append(
            to_shape(b, to_dtype(b, b.operand(), str(b.dtype(x))), (*shape[:at], size, *shape[at + 1 :]))
        )
    if b.chance(4):
        others.append(f"{x}[{', '.join([':'] * at + [b.pick(['::-1', ':1', '::2'])])}]")
    parts = [x, *others]
    b.r.shuffle(parts)
    b.add(f"pt.concatenate([{', '.join(parts)}], axis={axis})", "join")


@recipe(2)
def stack(b: Builder) -> None:
    x = b.operand(lambda v: v.ndim < 3)
    same = [n for n, v in b.values.items() if v.shape == b.shape(x) and v.dtype == b.dtype(x)]
    parts = [x, *(b.pick(same) for _ in range(b.pick([1, 2])))]
    b.add(f"pt.stack([{', '.join(parts)}], axis={b.r.randint(0, len(b.shape(x)))})", "stack")


@recipe(2)
def pad(b: Builder) -> None:
    x = b.operand(with_rank)
    widths = tuple((b.pick([0, 0, 1, 2]), b.pick([0, 1, 3])) for _ in b.shape(x))
    modes = ["constant", "constant", "edge", "symmetric", "reflect", "wrap"]
    b.add(f"pt.pad({x}, {widths}, mode='{b.pick(modes)}')", "pad", numpy=None)


@recipe(2)
def fill_parts(b: Builder) -> None:
    """Slices of a new array are set, one after the other."""
    x = b.operand(lambda v: v.ndim > 0 and v.dtype.kind in "fi")
    shape = b.shape(x)
    axis = b.r.randrange(len(shape))
    y = to_shape(b, to_dtype(b, b.operand(), str(b.dtype(x))), shape)
    total = (*shape[:axis], 2 * shape[axis], *shape[axis + 1 :])
    lead, n = ", ".join([":"] * axis), shape[axis]
    start, stop = (f"{lead}, :{n}", f"{lead}, {n}:") if axis else (f":{n}", f"{n}:")
    if b.chance(3) and n:
        start, stop = (f"{lead}, ::2", f"{lead}, 1::2") if axis else ("::2", "1::2")
    empty = b.one(f"pt.zeros({total}, dtype='{b.dtype(x)}')", "fill_parts")
    first = b.one(*_set(empty, start, x, "set", "fill_parts"))
    b.one(*_set(first, stop, y, "set", "fill_parts"))


def _set(x: str, index: str, y: str, kind: str, name: str) -> tuple[str, str]:
    return f"pt.{kind}_subtensor({x}[{index}], {y})", name


# Views ----------------------------------------------------------------------------------------------


@recipe(5)
def view(b: Builder) -> None:
    x = b.operand(with_rank)
    shape = b.shape(x)
    rank = len(shape)
    options = [
        f"{x}.T",
        f"{x}.ravel()",
        f"{x}[::-1]",
        f"{x}[None]",
        f"pt.expand_dims({x}, {b.r.randint(0, rank)})",
    ]
    options += [f"{x}[{', '.join(b.pick([':', '::-1', '::2', '1:', ':-1', '-2:']) for _ in shape)}]"] * 3
    options += [f"pt.flip({x}, {axis_of(b, x)})", f"pt.reshape({x}, {_reshaped(b, shape)})"]
    if rank > 1:
        axes = list(range(rank))
        b.r.shuffle(axes)
        options += [
            f"pt.transpose({x}, {tuple(axes)})",
            f"pt.swapaxes({x}, 0, -1)",
            f"pt.moveaxis({x}, 0, -1)",
        ]
        options += [f"pt.diagonal({x})"]
    if shape[0]:
        options += [f"{x}[0]", f"{x}[-1]", f"{x}[{b.r.randint(-shape[0], shape[0] - 1)}:]"]
    if 1 in b.variables[x].type.shape:
        options.append(f"pt.squeeze({x}, axis={b.variables[x].type.shape.index(1)})")
    b.add(b.pick(options), "view")


def _reshaped(b: Builder, shape: tuple[int, ...]) -> tuple[int, ...]:
    size = 1
    for n in shape:
        size *= n
    options: list[tuple[int, ...]] = [(size,), (1, size), (size, 1), shape[::-1]]
    options += [(d, size // d) for d in (2, 3, 4) if size % d == 0]
    options += [(-1, d) for d in (2, 3) if size and size % d == 0]
    return tuple(b.pick(options))


@recipe(2)
def broadcast(b: Builder) -> None:
    x = b.operand(lambda v: v.ndim < 3)
    static = b.variables[x].type.shape
    sizes = tuple(3 if known == 1 and b.chance(2) else n for n, known in zip(b.shape(x), static, strict=True))
    lead = b.pick([2, 1, 0, 3])
    options = [f"pt.broadcast_to({x}, {(lead, *sizes)})", f"pt.tile({x}, {b.pick([2, (2, 1), (1, 2)])})"]
    if sizes:
        options.append(f"pt.repeat({x}, {b.pick([2, 0, 3])}, axis={axis_of(b, x)})")
        options.append(f"pt.roll({x}, {b.pick([1, -2, 5])}, axis={axis_of(b, x)})")
    b.add(b.pick(options), "broadcast")


# Indices --------------------------------------------------------------------------------------------


def basic(b: Builder, shape: tuple[int, ...]) -> str:
    """Text of a basic index."""
    items = []
    for n in shape[: b.r.randint(1, len(shape))]:
        low, high = b.r.randint(-1, n), b.r.randint(-2, n + 1)
        options = [
            ":",
            "::-1",
            f"{low}:",
            f":{high}",
            f":{high}:2",
            f"{low}:{high}",
            f"{high}:{low}:-1",
            "::-2",
        ]
        if n:
            options += [str(b.r.randint(-n, n - 1))] * 2
        items.append(b.pick(options))
    return ", ".join(items)


def advanced(b: Builder, shape: tuple[int, ...]) -> str:
    """Text of an index with an array in it."""
    axis = b.r.randrange(len(shape))
    n = shape[axis]
    if not n:
        raise Unfit
    kind = b.pick(["list", "constant", "mask", "input", "matrix"])
    indices = [b.r.randint(-n, n - 1) for _ in range(b.pick([1, 2, 3, 0]))]
    if kind == "constant":
        item = f"pt.constant(np.array({indices}, 'int64'))"
    elif kind == "mask":
        length = n if not b.chance(6) else n + b.pick([-1, 1])
        item = f"pt.constant(np.array({[b.chance(2) for _ in range(length)]}, bool))"
    elif kind == "matrix":
        item = f"np.array({[[0, -1], [n - 1, 0]]})"
    elif kind == "input":
        names = [m for m, v in b.values.items() if v.dtype.kind == "i" and v.ndim == 1]
        item = f"{b.pick(names)} % {n}"
    else:
        item = f"np.array({indices}, 'int64')"
    lead = [b.pick([":", ":", "::-1"]) for _ in range(axis)]
    rest = [b.pick([":", "1:"])] if axis + 1 < len(shape) and b.chance(3) else []
    return ", ".join([*lead, item, *rest])


@recipe(4)
def index(b: Builder) -> None:
    x = b.operand(with_rank)
    text = basic(b, b.shape(x)) if b.chance(2) else advanced(b, b.shape(x))
    b.add(f"{x}[{text}]", "index", may_fail=b.chance(2))


@recipe(2)
def symbolic_index(b: Builder) -> None:
    x = b.operand(lambda v: v.ndim > 0 and v.shape[0] > 0)
    n = f"{x}.shape[0]"
    options = [f"{x}[{n} - 1]", f"{x}[:{n} // 2]", f"{x}[{n} // 3 : {n} - 1]", f"{x}[{n} - 1 :: -1]"]
    scalars = [m for m, v in b.values.items() if v.ndim == 0 and v.dtype.kind in "iu"]
    if scalars:
        i = b.pick(scalars)
        options += [f"{x}[{i} % {n}]", f"{x}[: {i} % {n}]", f"{x}[{i}:]", f"{x}[{i}]"]
    b.add(b.pick(options), "symbolic_index", may_fail=b.chance(3))


@recipe(2)
def mask(b: Builder) -> None:
    x = b.operand(lambda v: is_real(v) and v.ndim > 0)
    chosen = b.pick([f"({x} > 0)", f"({x} >= {x}.mean())" if b.values[x].size else f"({x} > 1)"])
    row = f"{chosen}.any(axis={tuple(range(1, len(b.shape(x))))})" if len(b.shape(x)) > 1 else chosen
    options = [f"{x}[{chosen}]", f"{x}[{row}]", f"pt.nonzero({chosen})[0]", f"pt.flatnonzero({chosen})"]
    options += [f"pt.set_subtensor({x}[{chosen}], 1)", f"pt.inc_subtensor({x}[{chosen}], 1)"]
    text = b.pick(options)
    numpy = f"_put({x}, {chosen}, 1, '{text[3:6]}')" if "_subtensor" in text else None
    b.add(text, "mask", numpy=numpy)


@recipe(1.5)
def take(b: Builder) -> None:
    x = b.operand(lambda v: v.ndim > 0 and v.size > 0)
    i = b.operand(lambda v: v.dtype.kind in "iu")
    axis = axis_of(b, x)
    options = [
        f"pt.take({x}, {i} % {b.shape(x)[axis]}, axis={axis})",
        f"pt.take({x}, {i}, axis={axis}, mode='clip')",
    ]
    options.append(f"pt.repeat({x}, abs({i} % 3), axis={axis})")
    b.add(b.pick(options), "take", may_fail=b.chance(2))


# Updates --------------------------------------------------------------------------------------------


@recipe(6)
def update(b: Builder) -> None:
    x = b.operand(lambda v: v.ndim > 0 and is_number(v))
    text = basic(b, b.shape(x)) if b.chance(1.6) else advanced(b, b.shape(x))
    kind = b.pick(["set", "set", "inc"])
    scope = {**numpy_space(), **b.values}
    try:
        part = eval(f"{x}[{text}]", scope).shape
    except (IndexError, ValueError, OverflowError) as error:
        raise Unfit from error
    y = b.pick(["1", "0", "y", "y", "y", "y"])
    if y == "y":
        source = b.operand(is_number) if not b.chance(4) else x
        y = to_shape(b, to_dtype(b, source, str(b.dtype(x))), part)
    elif kind == "inc" and b.dtype(x).kind == "u":
        raise Unfit
    b.add(
        f"pt.{kind}_subtensor({x}[{text}], {y})", "update", numpy=f"_put({x}, np.s_[{text}], {y}, '{kind}')"
    )


@recipe(1)
def slice_of_update(b: Builder) -> None:
    """A part of what was updated, from which others compute."""
    x = b.operand(lambda v: v.ndim > 0 and v.dtype.kind == "f" and v.shape[0] > 1)
    n = b.shape(x)[0]
    cut = b.r.randint(1, n - 1)
    y = to_shape(b, to_dtype(b, b.operand(is_number), str(b.dtype(x))), (cut, *b.shape(x)[1:]))
    p = b.one(
        f"pt.set_subtensor({x}[:{cut}], {y})",
        "slice_of_update",
        numpy=f"_put({x}, np.s_[:{cut}], {y}, 'set')",
    )
    b.add(b.pick([f"{p}[{cut}:]", f"{p}[:{cut}]", f"{p}[::2]", f"{p}[::-1]"]), "slice_of_update")


@recipe(1)
def sum_with_updated_zeros(b: Builder) -> None:
    """A part that was put into zeros is added, to more than it was put into where a size is 1."""
    x = b.operand(lambda v: v.ndim > 0 and v.dtype.kind == "f" and v.shape[0] > 0)
    shape = tuple(b.pick([n, 1]) for n in b.shape(x))
    zeros, kind, y = f"zeros({shape}, dtype='{b.dtype(x)}')", b.pick(["set", "inc"]), f"{x}.sum()"
    terms = [x, f"pt.{kind}_subtensor(pt.{zeros}[0], {y})"]
    numpy = [x, f"_put(np.{zeros}, np.s_[0], {y}, '{kind}')"]
    order = b.pick([slice(None), slice(None, None, -1)])
    b.add(" + ".join(terms[order]), "sum_with_updated_zeros", numpy=" + ".join(numpy[order]))


# Sizes ----------------------------------------------------------------------------------------------


@recipe(1.5)
def sizes(b: Builder) -> None:
    x = b.operand(with_rank)
    n = f"{x}.shape[{axis_of(b, x)}]"
    options = [
        n,
        f"{x}.size",
        f"pt.arange({n})",
        f"pt.zeros(({n}, 2))",
        f"pt.eye({n})",
        f"pt.full((2, {n}), 0.5)",
    ]
    options += [
        f"pt.linspace(0, 1, {n})" if b.chance(2) else f"pt.ones({n})",
        f"{n} * {n} - 1",
        f"pt.arange({n})[::-1]",
    ]
    if is_number(b.values[x]):
        options += [f"{x} * {n}", f"{x}.sum() / {n}", f"{x}.reshape(({x}.size,))"]
    b.add(b.pick(options), "sizes")


# Reductions of what a mask selects: where= of an array, and of its gradient.
MASKED = (
    *(
        "pt.sum({x}, axis={a}, where={m})",
        "pt.mean({x}, axis={a}, where={m})",
        "pt.prod({x}, {a}, where={m})",
    ),
    "pt.max({x}, axis={a}, where={m}, initial={i})",
    "pt.min({x}, axis={a}, where={m}, initial={i}, keepdims=True)",
    *(
        "pt.var({x}, axis={a}, where={m})",
        "pt.std({x}, axis={a}, where={m})",
        "pt.any({x} > 0, {a}, where={m})",
    ),
    *("pt.sum({x}, axis={a}, where={m}, initial={i})", "pt.all({x} > 0, axis={a}, where={m})"),
    "pt.sum({x}, axis={a}, where={m}, keepdims=True) * {m}",
)


@recipe(2)
def masked_reduction(b: Builder) -> None:
    """What is not selected may be no number."""
    x = b.operand(lambda v: v.dtype.name in ("float64", "float32", "int64") and v.ndim > 0 and v.size > 0)
    shape = b.shape(x)
    masks = [f"({x} > 0)", f"({x} < {x}.mean())", f"pt.isfinite({x})", "np.array(True)", f"({x} * 0 > 1)"]
    if len(shape) > 1:
        masks += [f"({x} > 0)[:1]", f"pt.eq(np.arange({shape[-1]}) % 2, 0)"]
    y = f"pt.log({x})" if b.dtype(x).kind == "f" and b.chance(3) else x
    axis = b.pick(["None", axis_of(b, x)])
    text = b.pick(MASKED).format(x=y, a=axis, m=b.pick(masks), i=b.pick(["0", "2", "-1"]))
    made = b.one(text, "masked_reduction", numpy=None if "eq(" not in text else "")
    b.kept.append(made)
    if is_float(b.values[x]) and y is x and made in b.values and b.dtype(made).kind == "f" and b.chance(2):
        b.kept.append(b.one(f"graphc.grad({made}.sum(), {x})", "gradient", numpy=""))
