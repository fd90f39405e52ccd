# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Computing some of a function's outputs: ``f(..., outputs_wanted=[...])``.

Copies of functions: with other shared variables, or without updates. Code is shared where it can be.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from graphc.function.compiled import Program
from graphc.function.io import OutputForm
from graphc.function.modes import build_program
from graphc.graph.basic import Constant, Variable
from graphc.graph.function_graph import FunctionGraph
from graphc.graph.replace import rebuild
from graphc.graph.shared import SharedVariable
from graphc.graph.traversal import ancestors

if TYPE_CHECKING:
    from graphc.function.base import AnyFunction
    from graphc.function.io import In


Swap = dict[SharedVariable, SharedVariable]


def rebuild_function(f: AnyFunction, swap: Swap, delete_updates: bool, name: str | None) -> AnyFunction:
    """See `Function.copy`.

    Raises:
        ValueError: a key of ``swap`` is not used by the function.
        TypeError: a swapped variable has another type.
    """
    _check(f, swap)
    inputs, targets = _own_defaults(f, swap)
    if delete_updates:
        targets = []
    signature = replace(f.signature, name=name, targets=targets, inputs=inputs, trust_input=f.trust_input)
    if (delete_updates and f.signature.targets) or not _keeps_roles(f, swap):
        return _compiled_again(f, swap, delete_updates, signature)
    # Code takes the values of shared variables as arguments: it does not know which variables they are of.
    fgraph = f.fgraph if not swap else _swapped(f, swap, len(f.fgraph.outputs))
    report = copy.copy(f.report)
    report.name = name or "function"
    return type(f)(signature, Program(fgraph, f.executor, report))


def _check(f: AnyFunction, swap: Swap) -> None:
    used = f.get_shared()
    for old, new in swap.items():
        if old not in used:
            raise ValueError(f"cannot swap {old}: the function does not use it; it uses {used}")
        if not isinstance(new, SharedVariable) or old.type != new.type:
            raise TypeError(
                f"cannot swap {old} of type {old.type} for {new}; give a shared variable of the same type"
            )


def _keeps_roles(f: AnyFunction, swap: Swap) -> bool:
    """True if different variables stay different, so that the swapped graph has as many inputs."""
    after = [swap.get(v, v) for v in f.get_shared()]
    return (
        len({id(v.container) for v in after}) == len({id(v.container) for v in f.get_shared()}) == len(after)
    )


def _swapped(f: AnyFunction, swap: Swap, n_outputs: int) -> FunctionGraph:
    memo: dict[Variable, Variable] = dict(swap.items())
    outputs = rebuild(f.fgraph.outputs[:n_outputs], dict(memo), copy_nodes=False, strict=True)
    given = [item.variable for item in f.inputs]
    cells = [memo.get(v, v) for v in f.fgraph.inputs[len(given) :]]
    return FunctionGraph([*given, *dict.fromkeys(cells)], outputs)


def _compiled_again(f: AnyFunction, swap: Swap, delete_updates: bool, signature: Any) -> AnyFunction:
    fgraph = _swapped(f, swap, f.signature.form.count if delete_updates else len(f.fgraph.outputs))
    program = build_program(fgraph, signature, f.report.again(signature.name or "function"))
    return type(f)(signature, program)


def _own_defaults(f: AnyFunction, swap: Swap) -> tuple[list[In], list[Any]]:
    """Inputs whose default values are independent of the original's, and targets that name their cells."""
    inputs = [copy.copy(item) for item in f.inputs]
    for item in inputs:
        item.default = copy.deepcopy(item.default)
    originals = {id(old.default): new.default for old, new in zip(f.inputs, inputs, strict=True)}
    targets: list[Any] = [swap.get(t, t) if isinstance(t, SharedVariable) else t for t in f.signature.targets]
    return inputs, [originals.get(id(t), t) for t in targets]


def call_subset(f: AnyFunction, wanted: object, args: tuple[object, ...], kwargs: dict[str, object]) -> Any:
    """A call that computes only some outputs, see `Function`.

    Args:
        f: the function.
        wanted: what to compute; None stands for everything.
        args, kwargs: the other arguments of the call.
    """
    if wanted is None:
        return f.call_flat(args, kwargs)
    positions = _positions(f, wanted)
    form = f.signature.form
    out = None if "out" in f.calls.reader.positions else kwargs.pop("out", None)
    if out is not None:
        flat = form.flatten(out, f"out= of {f.report.name}")
        kwargs["out"] = [flat[i] for i in positions]
    found: list[object] = [None] * form.count
    for i, value in zip(positions, subset_function(f, positions)(*args, **kwargs), strict=True):
        found[i] = value
    return form.build(found)


def subset_function(f: AnyFunction, positions: tuple[int, ...]) -> AnyFunction:
    """The function of the same inputs, shared variables and updates that returns a list of some outputs.

    Args:
        f: the function.
        positions: the outputs, as positions among the flattened ones.
    """
    found = f.subsets.get(positions)
    if found is None:
        found = f.subsets[positions] = _build(f, positions)
    if f.tracer is not None:
        f.tracer.attach(found)
    return found


def _build(f: AnyFunction, positions: tuple[int, ...]) -> AnyFunction:
    old = f.fgraph
    form = f.signature.form
    outputs = [old.outputs[i] for i in positions] + old.outputs[form.count :]
    given = old.inputs[: len(f.inputs)]
    reached = set(ancestors(outputs, given))
    cells = [v for v in old.inputs[len(given) :] if v in reached]
    fgraph = FunctionGraph([*given, *cells], outputs)
    part = OutputForm.plain(len(positions))
    part.borrowed = [form.borrowed[i] for i in positions]
    signature = replace(f.signature, form=part, arguments=None)
    return type(f)(signature, build_program(fgraph, signature, f.report.again()))


def _positions(f: AnyFunction, wanted: object) -> tuple[int, ...]:
    """Positions among the flattened outputs.

    Raises:
        TypeError: ``wanted`` is no list, or something in it can name no output.
        ValueError: it names none.
    """
    if isinstance(wanted, str | int) or not isinstance(wanted, Sequence | set | frozenset):
        raise TypeError(
            f"outputs_wanted of {f.report.name} must be a list of positions, keys or names of outputs, got "
            f"{wanted!r}" + (f"; write [{wanted!r}]" if isinstance(wanted, str | int) else "")
        )
    found: set[int] = set()
    for item in wanted:
        found.update(_find(f, item))
    return tuple(sorted(found))


def _find(f: AnyFunction, item: object) -> list[int]:
    form, outputs = f.signature.form, f.outputs
    if hasattr(item, "__index__") and not isinstance(item, bool | Variable):
        item = int(item)
    try:
        leaves = form.leaves(item)
    except TypeError:
        raise TypeError(
            f"outputs_wanted of {f.report.name} takes positions, keys and names of outputs, got {item!r} of "
            f"type {type(item).__name__}"
        ) from None
    if leaves is not None:
        return leaves
    named = [i for i, v in enumerate(outputs) if v.name == item and isinstance(item, str)]
    if named:
        return named
    names = [v.name for v in outputs if v.name is not None and not isinstance(v, Constant)]
    known = ", ".join(map(repr, dict.fromkeys([*form.items(), *names]))) or "none"
    raise ValueError(f"{f.report.name} has no output {item!r}; its outputs are {known}")
