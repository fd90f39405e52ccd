# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Recipes at the limits: infinities, integers at the ends of their dtypes, half precision, sizes found late,
loops that are differentiated twice, graphs that are transformed.
"""

from __future__ import annotations

import numpy as np
from fitting import to_dtype, to_shape
from growing import Builder, Unfit
from recipes import axis_of, is_float, recipe
from recipes_control import upstream

INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
OF_INTEGERS = (
    *("pt.isclose({x}, {y})", "pt.allclose({x}, {y})", "pt.fmod({x}, {y})", "{x} // {y}", "{x} % {y}"),
    *("pt.minimum({x}, {y})", "{x} < {y}", "pt.eq({x}, {y})", "{x} + {y}", "{x} * {y}", "{x} / {y}"),
    *("abs({x})", "-{x}", "{x}.sum()", "{x}.mean()", "{x}.max()", "{x} ** 2", "pt.sign({x})", "~{x}"),
    *("pt.clip({x}, {y}, {x})", "pt.sort({x})", "pt.argmax({x})", "{x}.astype('float32')", "{x} >> 3"),
    *("pt.ceil_intdiv({x}, abs({y}) + 1)", "pt.cumsum({x})", "pt.bitwise_xor({x}, {y})", "{x} - {y}"),
    *("{x}.astype('int8')", "{x}.astype('uint32')", "{x}.astype('float16')", "pt.prod({x})", "pt.diff({x})"),
    *("pt.median({x})", "pt.ptp({x})", "pt.argsort({x})", "pt.unique({x})", "pt.dot({x}, {y})", "{x} << 1"),
    *("pt.maximum({x}, 0) - pt.minimum({x}, 0)", "pt.square({x})", "pt.gcd({x}, {y})", "pt.hypot({x}, {y})"),
    *("pt.searchsorted(pt.sort({x}), {y})", "pt.where({x} > {y}, {x}, {y} + 1)", "pt.sqrt({x})", "{x} > 0.5"),
    "graphc.scan(lambda r, h: h + r, sequences=[{x}], outputs_info=[{x}[0]], return_updates=False)",
)
OF_INFINITIES = (
    *("({x} - {x}).sum()", "pt.mean({x} - {x})", "pt.sum({x} * {y} - {x} * {y})", "{x} - {y}", "{x} * 0"),
    *("pt.sum(pt.exp({x}) - pt.exp({x}), axis=-1)", "({x} - {y}).sum(axis=-1)", "{x} ** 0.5", "{x} ** {y}"),
    *("pt.sum({x} * 0)", "pt.var({x})", "pt.max({x}, axis=-1)", "pt.argmin({x}, axis=-1)", "pt.sqrt({x})"),
    *("pt.sort({x}, axis=-1)", "pt.cumsum({x}, axis=-1)", "pt.prod({x})", "pt.fmax({x}, {y})", "{x} / {y}"),
    *("pt.minimum({x}, {y})", "pt.sign({x})", "pt.softmax({x}, axis=-1)", "pt.logsumexp({x}, axis=-1)"),
    *("pt.where({x} > {y}, {x} - {x}, {y})", "pt.logaddexp({x}, {y})", "pt.maximum({x}, 0) - {x}"),
    *(
        "pt.fmin({x}, {y})",
        "pt.log1p(pt.exp({x}))",
        "pt.floor_divide({x}, {y})",
        "{x} % {y}",
        "1 / {x}",
        "pt.floor({x})",
    ),
    *("pt.nansum({x})", "pt.nan_to_num({x})", "pt.clip({x}, {y}, 2)", "pt.round({x})", "pt.expm1({x})"),
    *("pt.arctan2({x}, {y})", "pt.hypot({x}, {y})", "pt.copysign({x}, {y})", "pt.argsort({x}, axis=-1)"),
    *("pt.median({x}, axis=-1)", "pt.diff({x}, axis=-1)", "pt.cumprod({x}, axis=-1)", "pt.trunc({x}) - {x}"),
    *(
        "pt.where(pt.isinf({x}), 0, {x}).sum(axis=0)",
        "pt.cos({x}) * 0",
        "pt.ptp({x})",
        "pt.std({x}, axis=-1)",
    ),
    *("{x}.sum(axis=0) - {y}.sum(axis=0)", "pt.signbit({x} * 0)", "pt.complex({x}, {y}) * 2", "pt.modf({x})"),
    *(
        "pt.logaddexp2({x}, {y})",
        "pt.ldexp({x}, 3)",
        "pt.frexp({x})",
        "pt.nextafter({x}, {y})",
        "pt.all({x})",
    ),
    "graphc.scan(lambda r, h: h * 0.5 + r, sequences=[{x}], outputs_info=[{x}[0]], return_updates=False)",
    "graphc.scan(lambda h: h * h - h, outputs_info=[{x}], n_steps=3, return_updates=False)[-1]",
    *("pt.dot({x}, {y})", "{x} * 1 + 0", "{x} / {x}", "pt.tanh({x}) - pt.tanh({x})", "pt.isclose({x}, {y})"),
)
NO_NUMPY = ("softmax", "logsumexp", "ceil_intdiv")


@recipe(2)
def integers_at_their_limits(b: Builder) -> None:
    shape = (b.pick([1, 3, 4]),)
    x = b.add_input(value=b.numbers(shape, b.pick(INTEGERS), "special"))
    y = b.add_input(value=b.numbers(shape, b.pick([str(b.dtype(x)), *INTEGERS]), "special"))
    _apply(b, b.pick(OF_INTEGERS), x, y, "integers_at_their_limits")


@recipe(2)
def infinities(b: Builder) -> None:
    calm, b.calm = b.calm, False
    try:
        shape = tuple(b.pick([3, 5, 8, 17]) for _ in range(b.pick([1, 1, 2])))
        dtype = b.pick(["float64", "float64", "float32", "float16"])
        x = b.add_input(value=b.numbers(shape, dtype, "special"))
        y = b.add_input(value=b.numbers(shape, dtype, b.pick(["special", "many"])))
        _apply(b, b.pick(OF_INFINITIES), x, y, "infinities")
    finally:
        b.calm = calm


def _apply(b: Builder, text: str, x: str, y: str, kind: str) -> None:
    numpy = "" if any(word in text for word in NO_NUMPY) else None
    b.add(text.format(x=x, y=y), kind, numpy=numpy, may_fail=b.chance(3))


@recipe(0.7)
def half_product(b: Builder) -> None:
    """Long sums of half precision, of which some cancel."""
    k = b.pick([3, 40, 200])
    x, y = b.numbers((1, k), "float16", "few"), b.numbers((k, b.pick([1, 2])), "float16", "few")
    if b.chance(2):
        x = np.where(np.arange(k) % 2, np.float16(-60000), np.float16(60000))[None]
    b.add(f"{b.add_input(value=x)} @ {b.add_input(value=y)}", "half_product", numpy="")


@recipe(1.5)
def size_found_late(b: Builder) -> None:
    """A part whose size is 1, but not for the graph, beside one of another size; indices that are sizes."""
    x = b.operand(lambda v: is_float(v) and v.ndim > 0 and v.shape[0] > 0)
    y = b.operand(lambda v: is_float(v) and v.ndim == 1)
    z = b.operand(lambda v: v.ndim > 0)
    n = f"{z}.shape[0]"
    row = f"{x}.ravel()" if len(b.shape(x)) > 1 else x
    options = [f"{y} * {row}[{n} : {n} + 1]", f"{row}[:{n}] + {row}[:1]", f"{row}[{n} - 1 :]"]
    options += [f"{y} + {row}[-{n}:]", f"pt.concatenate([{row}[:{n}], {y}]) * 2", f"{y} - {row}[:{n}].sum()"]
    b.add(b.pick(options), "size_found_late", may_fail=b.chance(2))


# Of n elements x, a matrix m, an integer k, a number q, and integers i.
OF_DOMAINS = (
    *("pt.delete({x}, {k})", "pt.insert({x}, {k}, 9)", "{x}[{k}]", "pt.take({x}, {k})", "{m}[:, {k}]"),
    "{x}[{i}]",
    *("pt.quantile({x}, {q})", "pt.percentile({x}, {q} * 100)", "pt.arange(0, 5, {k})", "pt.take({x}, {i})"),
    *("pt.repeat({x}, {i})", "pt.bincount({i})", "pt.unravel_index({i}, (2, 3))", "pt.digitize({x}, {x})"),
    *("pt.tril({m}, {k})", "pt.triu({m}, {k})", "pt.reshape({x}, ({k}, 2))", "pt.take({m}, {i}, axis=1)"),
    *("pt.ravel_multi_index([{i}, {i}], (2, 3))", "pt.choose({i}, [{x}[0], {x}[1], {x}[0]])"),
    *("pt.roll({x}, {k})", "pt.diag({x}, 1)[{k}]"),
    *("pt.take_along_axis({x}, {i}, axis=0)", "pt.split({x}, [2, 1, {k}], n_splits=3, axis=0)"),
)  # fmt: skip
UNKNOWN_TO_NUMPY = ("pt.split", "pt.digitize")


@recipe(2)
def outside_of_domains(b: Builder) -> None:
    """Arguments that are found at run time, and are at the ends of their domain or outside of it."""
    n = b.pick([3, 4, 6])
    x, m = b.add_input((n,), "float64"), b.add_input((2, n), "float64")
    at_ends = [-n - 1, -n, -1, 0, 1, n - 1, n, n + 1]
    huge = [2**31, 2**63 - 1, -(2**63), -(2**63) + 1]
    text = b.pick(OF_DOMAINS)
    ends = at_ends + [e for e in huge if "reshape" not in text and "diag" not in text]
    k = b.add_input(value=np.asarray(b.pick(ends)), dtype="int64")
    q = b.add_input(value=np.asarray(b.pick([-0.1, 0.0, 0.3, 1.0, 1.1, -1e-12, 1 + 1e-9, np.inf])))
    i = b.add_input(value=np.array([b.pick([-1, 0, 0, 1, 1, 2, n - 1, n]) for _ in range(n)]))
    numpy = "" if text.startswith(UNKNOWN_TO_NUMPY) else None
    b.add(text.format(x=x, m=m, k=k, q=q, i=i), "outside_of_domains", numpy=numpy, may_fail=True)


# Loops ------------------------------------------------------------------------------------------------


@recipe(1.5)
def loop_differentiated_twice(b: Builder) -> None:
    x = b.operand(lambda v: v.dtype == "float64" and v.ndim in (1, 2) and 0 < v.size < 20)
    if len(b.shape(x)) == 2:
        n = min(b.shape(x))
        x = to_shape(b, x, (n, n))
    if b.chance(2):
        x = b.one(f"pt.specify_shape({x}, {b.shape(x)})", "fit", numpy=f"{x} + 0")
    every = b.pick(["", ", checkpoint_every=1", ", checkpoint_every=2"])
    end = b.pick(["", "", ", graphc.until(h.sum() > 1.5)"])
    steps = f"n_steps={b.pick(['1', '2', '3'])}{every}, return_updates=False"
    inner = "graphc.scan(lambda k: 0.5 * k * k + h, outputs_info=[h], n_steps=2, return_updates=False)[-1]"
    form, kind = b.pick(["state", "pair", "nested", "taps"]), "loop_differentiated_twice"
    if form == "taps":
        info = f"outputs_info=[dict(initial=pt.stack([{x}, {x} * 2]), taps=[-2, -1])]"
        made = b.add(f"graphc.scan(lambda a, h: (0.5 * a * h{end}), {info}, {steps})", kind)
    elif form == "pair":
        made = b.add(
            f"graphc.scan(lambda h: ([0.6 * h * h, h.T]{end}), outputs_info=[{x}, None], {steps})", kind
        )
    else:
        body = inner if form == "nested" else "pt.sin(h) * h"
        made = b.add(f"graphc.scan(lambda h: ({body}{end}), outputs_info=[{x}], {steps})", kind)
    y = b.pick(made)
    b.kept.append(y)
    g = b.one(f"graphc.grad(({y} * {y} * 0.5).sum(), {x})", "gradient", numpy="")
    b.kept.append(b.one(f"graphc.grad(({g} * pt.cos({g})).sum(), {x})", "gradient", numpy=""))


@recipe(1.5)
def loop_that_ends_early(b: Builder) -> None:
    """Its gradient by its rows and its start, where not all states are kept."""
    x = b.operand(lambda v: v.dtype == "float64" and v.ndim in (1, 2) and 0 < v.size < 40)
    start = to_shape(b, to_dtype(b, b.operand(lambda v: v.dtype.kind == "f"), "float64"), b.shape(x)[1:])
    start = b.one(f"pt.specify_shape({start}, {b.shape(x)[1:]})", "fit", numpy=f"{start} + 0")
    x = b.one(f"pt.specify_shape({x}, {b.shape(x)})", "fit", numpy=f"{x} + 0")
    every = b.pick(["", ", checkpoint_every=1", ", checkpoint_every=2", ", checkpoint_every=3"])
    end = b.pick(["pt.sum(r) > 1", "h.sum() > 0.5", "pt.any(h < -1)", "pt.all(r > -9)"])
    body = b.pick(["pt.tanh(r + 0.5 * h)", "h * r", "0.5 * h + r * r", "pt.where(r > h, h, r) + 0.1 * h"])
    info, kind = f"sequences=[{x}], outputs_info=[{start}]", "loop_that_ends_early"
    loop = f"lambda r, h: ({body}, graphc.until({end})), {info}{every}"
    y = b.one(f"graphc.scan({loop}, return_updates=False)", kind)
    if b.chance(2):
        y = b.one(f"{y}[{b.pick(['-1', '-2:', '::-1', '0'])}]", kind)
    b.kept.append(y)
    if b.chance(1.5):
        wrt = f"[{x}, {start}], disconnected_inputs='ignore'"
        b.kept += b.add(f"graphc.grad(({y} * pt.cos({y})).sum(), {wrt})", "gradient", numpy="")


# Of a row r and a state h: what an iteration makes of a check c of its condition.
CHECKED = (
    *(
        "{c}(r, {k}) * 2",
        "{c}(h, {k}) + r",
        "{c}(h + r, {k})",
        "{c}(r, {k}) * 0 + h",
        "pt.exp({c}(r, {k})) + h",
    ),
    *(
        "graphc.ifelse((r > 0).all(), {c}(r, {k}), h)",
        "{c}({c}(r, {k}), h < 100)",
        "{c}(pt.dot(r, r) + h, {k})",
    ),
)
CONDITIONS = (
    "r > -1",
    "h > -3",
    "r + h < 2",
    "pt.isfinite(h)",
    "False",
    "(r > -9).all()",
    "pt.eq(r, r)",
    "h < 1",
)
ROWS_READ = (
    "{y}",
    "{y}[-1]",
    "{y}[0]",
    "{y}[:2]",
    "{y}[::-1]",
    "{y}.sum()",
    "{y}.shape[0]",
    "{y}.max(axis=0)",
)


@recipe(2)
def checked_in_loop(b: Builder) -> None:
    """A check is an effect of each iteration, whatever is read of the loop."""
    dtype = b.pick(["float64", "float64", "float32"])
    x = b.add_input((b.pick([1, 3, 5]), *b.pick([(), (2,)])), dtype)
    start = b.one(f"{x}[0] * {b.pick(['0', '0.5', '1'])}", "fit")
    check = b.pick(["graphc.raise_op.Assert('m')", "graphc.raise_op.CheckAndRaise(ValueError, 'm')"])
    condition = b.pick(CONDITIONS)
    body = b.pick(CHECKED).format(c=check, k=condition if condition == "False" else f"pt.all({condition})")
    form = b.pick(["state", "state", "map", "beside", "nested", "until"])
    rows, states = f"sequences=[{x}]", f"outputs_info=[{start}]"
    again = f"graphc.scan(lambda h: {body}, outputs_info=[h], n_steps=2, return_updates=False)[-1]"
    forms = {
        "state": f"graphc.scan(lambda r, h: {body}, {rows}, {states}, return_updates=False)",
        "map": f"graphc.scan(lambda r, h: {body}, {rows}, non_sequences=[{start}], return_updates=False)",
        "beside": f"graphc.scan(lambda r, h: [h * 0.5, {body}], {rows}, outputs_info=[{start}, None], "
        f"return_updates=False)[{b.pick([0, 1])}]",
        "nested": f"graphc.scan(lambda r, h: {again}, {rows}, {states}, return_updates=False)",
        "until": f"graphc.scan(lambda r, h: ({body}, graphc.until(pt.all(h > 5))), {rows}, {states}, "
        "return_updates=False)",
    }
    y = b.pick(ROWS_READ).format(y=forms[form])
    if b.chance(5):
        y = f"graphc.grad((({y}) * 0.5).sum().astype('float64'), {x}, disconnected_inputs='ignore')"
    b.kept.append(b.add(y, "checked_in_loop", numpy="", may_fail=True)[0])


@recipe(1.5)
def shared_in_loop(b: Builder) -> None:
    """A shared variable that a loop reads and updates in each step."""
    shape = (b.pick([3, 2, 1]), *b.pick([(), (3,)]))
    s = b.add_input(value=b.numbers(shape, b.pick(["float64", "float32"]), "few"), shared=True)
    x = to_dtype(b, b.operand(lambda v: v.ndim > 0 and is_float(v) and v.shape[0] > 0), str(b.dtype(s)))
    news = [f"{s} * 0.5 + r.sum()", f"{s}[::-1]", f"pt.concatenate([{s}[1:], {s}[:1] + r.sum()])", f"{s} + 1"]
    news += [f"pt.inc_subtensor({s}[0], r.sum())", f"pt.tanh({s})", f"pt.where({s} > 0, {s}, r.sum())"]
    new, every = b.pick(news), b.pick(["", "", ", checkpoint_every=2"])
    end = b.pick(["", "", f", graphc.until({s}.sum() > 3)"])
    forms = [f"lambda r: (r.sum() + {s}.sum(), {{{s}: {new}}}{end}), sequences=[{x}]{every}"]
    forms.append(f"lambda r: ({s} * 2, {{{s}: {new}}}{end}), sequences=[{x}]{every}")
    forms.append(
        f"lambda r, h: (h + {s} + r.sum(), {{{s}: {new}}}{end}), sequences=[{x}], outputs_info=[{s}]{every}"
    )
    text = f"(lambda found: [found[0], found[1][{s}]])(graphc.scan({b.pick(forms)}, return_updates=True))"
    y, last = b.add(text, "shared_in_loop", numpy="")
    b.kept.append(y)
    b.renewed[s] = last


# Graphs that are transformed --------------------------------------------------------------------------


@recipe(1)
def replaced(b: Builder) -> None:
    """A value computed from another one in the place of what it was made from."""
    y = b.operand(fresh=False)
    names = [n for n in upstream(b, y) if b.dtype(n).kind != "b"]
    old = b.pick(names)
    new = b.one(b.pick(["{x} + {x}", "{x}[...]", "pt.abs({x})"]).format(x=old), "replaced")
    if b.variables[new].type != b.variables[old].type:
        raise Unfit
    b.add(f"graphc.graph_replace({y}, {{{old}: {new}}})", "replaced", numpy="")


@recipe(1)
def vectorized(b: Builder) -> None:
    """A graph with another axis in one of the values that it was made from."""
    y = b.operand(lambda v: v.size < 60, fresh=False)
    inputs = {x.name for x in b.inputs if not x.generator and not x.shared}
    old = b.pick([n for n in upstream(b, y) if n in inputs and b.values[n].dtype.kind == "f"])
    batch = b.one(f"pt.stack([{old}, {old} * 0.5])", "vectorized")
    b.add(f"graphc.vectorize_graph({y}, {{{old}: {batch}}})", "vectorized", numpy="")


@recipe(1)
def shared_state(b: Builder) -> None:
    """A shared variable and its new value, often a part of the old one or a sum with others."""
    value = b.numbers((b.pick([3, 2, 5]), *b.pick([(), (3,)])), b.pick(["float64", "float32", "int64"]))
    x = b.add_input(value=value, shared=True)
    y = to_shape(b, to_dtype(b, b.operand(lambda v: v.dtype.kind != "b"), str(b.dtype(x))), b.shape(x))
    texts = [
        "{x} + {y}",
        "{x}[::-1]",
        "pt.set_subtensor({x}[1:], {y}[1:])",
        "pt.inc_subtensor({x}[0], {y}[0])",
    ]
    texts += ["pt.concatenate([{x}[1:], {y}[:1]])", "{x} * 2", f"pt.sort({{x}}, axis={axis_of(b, x)})", "{y}"]
    text = b.pick(texts).format(x=x, y=y)
    b.kept.append(b.one(text, "shared_state", numpy="" if "subtensor" in text else None))
    b.renewed[x] = b.kept[-1]
