# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Makes operands of any size, dtype and domain of what a program has: every operation feeds every other.

Sizes change by slices with steps, joins, pads, gathers, transposes, new axes; domains by bounded functions.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from growing import Builder, Unfit
from op_table import Argument


def to_dtype(b: Builder, name: str, dtype: str) -> str:
    """The operand converted; numbers that the dtype does not have are clipped."""
    old, new = b.dtype(name), np.dtype(dtype)
    if old == new:
        return name
    if old.kind == "c" and new.kind != "c":
        name = b.one(f"{name}.real", "fit")
        return to_dtype(b, name, dtype)
    if old.kind == "f" and new.kind in "iu":
        low = 0 if new.kind == "u" else -100
        return b.one(f"pt.clip(pt.where(pt.isnan({name}), 0.5, {name}), {low}, 100).astype('{dtype}')", "fit")
    return b.one(f"{name}.astype('{dtype}')", "fit")


def to_rank(b: Builder, name: str, rank: int) -> str:
    """The operand with another number of axes."""
    shape = b.shape(name)
    while len(shape) > rank:
        if rank == 1 and b.chance(2):
            name = b.one(b.pick([f"{name}.ravel()", f"pt.reshape({name}, (-1,))"]), "fit")
        elif shape[0]:
            name = b.one(f"{name}[{b.pick([0, -1])}]", "fit")
        else:
            name = b.one(f"{name}.sum(axis=0)" if b.dtype(name).kind != "b" else f"{name}.any(axis=0)", "fit")
        shape = b.shape(name)
    while len(shape) < rank:
        axis = b.r.randint(0, len(shape))
        name = b.one(f"pt.expand_dims({name}, {axis})", "fit")
        shape = b.shape(name)
    return name


def to_shape(b: Builder, name: str, shape: Sequence[int]) -> str:
    """The operand with other sizes."""
    name = to_rank(b, name, len(shape))
    if len(shape) == 2 and b.shape(name) == tuple(shape)[::-1] and shape[0] != shape[1]:
        return b.one(f"{name}.T", "fit")
    cuts = [_cut(b, old, new) for old, new in zip(b.shape(name), shape, strict=True)]
    if any(cut != ":" for cut in cuts):
        name = b.one(f"{name}[{', '.join(cuts)}]", "fit")
    for axis, new in enumerate(shape):
        if b.shape(name)[axis] < new:
            name = _grown(b, name, axis, new)
    return name


def _cut(b: Builder, old: int, new: int) -> str:
    if old <= new:
        return ":" if old < 2 or not b.chance(6) else "::-1"
    options = [f":{new}", f"{old - new}:", f"{old - 1 - (old - new)}::-1" if new else ":0"]
    options += [f"::{step}" for step in (2, 3) if -(-old // step) == new]
    options += [f"::-{step}" for step in (2, 3) if -(-old // step) == new]
    return str(b.pick(options))


def _grown(b: Builder, name: str, axis: int, new: int) -> str:
    old, rank = b.shape(name)[axis], len(b.shape(name))
    widths = tuple((0, new - old) if i == axis else (0, 0) for i in range(rank))
    options = [f"pt.pad({name}, {widths})"]
    if old:
        part = ", ".join([":"] * axis + [f":{new - old}"])
        if new <= 2 * old:
            options += [f"pt.concatenate([{name}, {name}[{part}]], axis={axis})"] * 2
            options.append(f"pt.concatenate([{name}[{part}], {name}], axis={axis})")
        options.append(f"pt.pad({name}, {widths}, mode='edge')")
        indices = [b.r.randint(-old, old - 1) for _ in range(new)]
        options.append(f"pt.take({name}, {indices}, axis={axis})")
    if old == 1:
        options.append(f"pt.repeat({name}, {new}, axis={axis})")
    return b.one(b.pick(options), "fit")


def to_domain(b: Builder, name: str, argument: Argument) -> str:
    """The operand within the domain of a case's argument.

    Raises:
        Unfit: the domain is made by a function that has no counterpart here.
    """
    make = argument.make.__name__
    kind, dtype, shape = b.dtype(name).kind, b.dtype(name), b.shape(name)
    if make in ("uniform", "distinct", "with_nan", "spread"):
        return name
    if make.startswith("between_"):
        low, high = (float(part) for part in make.split("_")[1:])
        if kind == "b":
            return name
        if kind in "iu":
            least = max(int(np.ceil(low)), 0) if kind == "u" else int(np.ceil(low))
            return b.one(f"({name} % {max(int(high), least) - least + 1} + {least}).astype('{dtype}')", "fit")
        if kind == "c":
            return name
        return (
            b.one(f"pt.clip({name}, {low}, {high})", "fit")
            if b.chance(3)
            else b.one(f"({round(high - low, 6)} * pt.sigmoid({name}) + {low}).astype('{dtype}')", "fit")
        )
    if make == "positions":
        return b.one(f"{name} % 8 - 4", "fit")
    if make == "order":
        return b.one(f"pt.argsort({name}, axis=-1)", "fit")
    if make == "polygamma_order":
        return b.one(f"pt.floor(pt.sigmoid({name}) * 3) + 1" if kind == "f" else f"{name} % 3 + 1", "fit")
    if kind not in "fc" or len(shape) < 2 or shape[-1] != shape[-2]:
        raise Unfit
    bounded = f"pt.tanh({name})" if kind == "f" else f"({name} / (1 + abs({name})))"
    n = shape[-1]
    if make == "regular":
        return b.one(f"({bounded} + {3 * n} * pt.eye({n})).astype('{dtype}')", "fit")
    if make == "upper":
        return b.one(f"pt.triu({bounded} + {3 * n} * pt.eye({n})).astype('{dtype}')", "fit")
    if make == "positive_definite":
        half = b.one(bounded, "fit")
        turned = f"pt.swapaxes({half}, -1, -2)" + (".conj()" if kind == "c" else "")
        text = f"(({half} + {turned}) / 4 + pt.diag(pt.arange({n}) * 3.0 + 4)).astype('{dtype}')"
        return b.one(text, "fit")
    raise Unfit
