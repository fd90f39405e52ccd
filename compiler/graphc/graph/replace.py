# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Copying graphs, with and without replacing parts of them.

Source of the equality of graphs: PyTensor's ``equal_computations``.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from graphc.graph.basic import Apply, Constant, Variable, Variables, describe, reads_of, remember
from graphc.graph.shared import SharedVariable
from graphc.graph.tensor.type import TensorType
from graphc.graph.tensor.variable import TensorVariable
from graphc.graph.traversal import ancestors, graph_inputs, orphans_between, read_by, toposort

if TYPE_CHECKING:
    from graphc.graph.tensor import TensorLike


def equal_computations(
    xs: Sequence[TensorLike],
    ys: Sequence[TensorLike],
    in_xs: Sequence[Variable] | None = None,
    in_ys: Sequence[Variable] | None = None,
    strict_dtype: bool = True,
) -> bool:
    """True if two lists of variables are computed by equal ops from the same variables.

    Args:
        xs, ys: variables, or arrays, which stand for constants.
        in_xs, in_ys: variables of the first graphs and those of the second that stand for them; each pair
            must have one type.
        strict_dtype: compare dtypes of constants, not only values.

    Raises:
        ValueError: the lists have different lengths.

    Examples:
        >>> x = pt.vector("x")
        >>> graphc.graph.equal_computations([pt.exp(x)], [pt.exp(x)])
        True
    """
    if len(xs) != len(ys) or len(in_xs or ()) != len(in_ys or ()):
        raise ValueError(f"equal_computations takes lists of equal lengths, got {len(xs)} and {len(ys)}")
    same = {(x, y) for x, y in zip(in_xs or (), in_ys or (), strict=True) if x.type == y.type}
    given = {*(in_xs or ()), *(in_ys or ())}
    todo: list[tuple[TensorLike, TensorLike]] = list(zip(xs, ys, strict=True))
    seen: set[tuple[Variable, Variable]] = set()
    while todo:
        x, y = todo.pop()
        if x is y:
            continue
        if not isinstance(x, Variable) or not isinstance(y, Variable):
            if not _equal_values(x, y, strict_dtype):
                return False
            continue
        if (x, y) in same or (x, y) in seen:
            continue
        seen.add((x, y))
        if x in given or y in given:
            return False
        if isinstance(x, Constant) or isinstance(y, Constant):
            if not _equal_values(x, y, strict_dtype):
                return False
        elif (
            x.owner is None
            or y.owner is None
            or x.owner.op != y.owner.op
            or x.index != y.index
            or len(x.owner.inputs) != len(y.owner.inputs)
        ):
            return False
        else:
            todo.extend(zip(x.owner.inputs, y.owner.inputs, strict=True))
    return True


def _equal_values(x: TensorLike, y: TensorLike, strict_dtype: bool) -> bool:
    if any(isinstance(v, Variable) and not isinstance(v, Constant) for v in (x, y)):
        return False
    if isinstance(x, Constant) and isinstance(y, Constant):
        if x.type.in_same_class(y.type) or not strict_dtype:
            return bool(np.array_equal(x.data, y.data)) if hasattr(x.data, "dtype") else x.data == y.data
        return False
    a, b = (np.asarray(v.data if isinstance(v, Constant) else v) for v in (x, y))
    return (not strict_dtype or a.dtype == b.dtype) and bool(np.array_equal(a, b))


def same_graph(
    in_xs: Sequence[Variable], xs: Sequence[TensorLike], in_ys: Sequence[Variable], ys: Sequence[TensorLike]
) -> bool:
    """True if two graphs, each with inputs of its own, compute the same from inputs of the same types."""
    if len(in_xs) != len(in_ys) or len(xs) != len(ys):
        return False
    if any(x.type != y.type for x, y in zip(in_xs, in_ys, strict=True)):
        return False
    return equal_computations(xs, ys, in_xs, in_ys)


Replacements: TypeAlias = "Mapping[Variable, TensorLike] | Iterable[tuple[Variable, TensorLike]] | None"


def _as_dict(replace: Replacements) -> dict[Variable, Variable]:
    """Replacements as a dict of variables; other values become constants of the old one's type."""
    if replace is None:
        return {}
    pairs = replace.items() if isinstance(replace, Mapping) else replace
    result: dict[Variable, Variable] = {}
    for pair in pairs:
        try:
            old, new = pair
        except (TypeError, ValueError):
            raise ValueError(f"replace must be a dict or pairs (old, new), got the entry {pair!r}") from None
        if not isinstance(old, Variable):
            raise TypeError(f"only variables can be replaced, got {old!r} of type {type(old).__name__}")
        result[old] = new if isinstance(new, Variable) else old.type.filter_variable(new)
    return result


def with_sizes_of(old: Variable, new: Variable) -> Variable:
    """``new`` as a replacement of ``old``: with the static sizes of ``old``, which are checked at run time.

    A graph is built with the numbers that it knows (the length that a mean divides by, say), so what replaces
    a variable must have them too.

    Args:
        old: variable of a graph.
        new: what replaces it; it may have more leading axes.

    Raises:
        TypeError: the static sizes contradict each other.
    """
    unknown = _unknown_sizes(old, new)
    if not unknown:
        return new
    shape = [unknown.get(axis, size) for axis, size in enumerate(new.type.shape)]
    # `specify_shape` alone is dropped where nothing but sizes are read, which are known then.
    return _known_while(TensorType(new.type.dtype, shape).filter_variable(new), {old: new})


def _unknown_sizes(old: Variable, new: Variable) -> dict[int, int]:
    """By axis of ``new``: the static sizes of ``old`` that it is not known to have."""
    if not isinstance(old.type, TensorType) or not isinstance(new.type, TensorType):
        return {}
    extra = new.type.ndim - old.type.ndim
    if extra < 0:
        return {}
    wanted = {axis: size for axis, size in enumerate(old.type.shape, extra) if size is not None}
    if any(new.type.shape[axis] not in (None, size) for axis, size in wanted.items()):
        raise TypeError(
            f"{new} of type {new.type}{describe(new.location)} cannot replace {old} of type "
            f"{old.type}{describe(old.location)}: the graph was built for sizes {old.type.shape}. Build it "
            "from a variable whose sizes are unknown (shape=None)"
        )
    return {axis: size for axis, size in wanted.items() if new.type.shape[axis] is None}


def of_type(old: Variable, new: Variable) -> Variable:
    """``new`` as a variable of the type of ``old``, but for static sizes, which `checked_replacements` adds.

    Raises:
        TypeError: it does not fit.
    """
    converted = old.type.filter_variable(new)
    return new if isinstance(new, Variable) and _unknown_sizes(old, new) else converted


def checked_replacements(
    outputs: Sequence[Variable], replace: Mapping[Variable, Variable]
) -> dict[Variable, Variable]:
    """Replacements that have the static sizes of what they replace, and constants of the graph that are known
    from these sizes (see `graphc.graph.basic.remember`), which then depend on the check, too.

    Args:
        outputs: the graph in which variables are replaced.
        replace: old and new variables.

    Raises:
        TypeError: static sizes contradict each other.
    """
    result = {old: with_sizes_of(old, new) for old, new in replace.items()}
    changed = {old: (old, new) for old, new in replace.items() if result[old] is not new}
    return result | checked_constants(outputs, changed, set(replace))


def checked_constants(
    outputs: Variables, changed: Mapping[Variable, tuple[Variable, Variable]], blockers: Collection[Variable]
) -> dict[Variable, Variable]:
    """Replacements of constants that are known from sizes: they depend on the check of these sizes.

    Args:
        outputs: the graph with the constants.
        changed: for each variable whose sizes are to be checked what was replaced, and by what.
        blockers: variables beyond which there are no such constants.
    """
    if not changed:
        return {}
    result: dict[Variable, Variable] = {}
    for v in list(ancestors(outputs, blockers)):
        if isinstance(v, Constant) and v not in blockers and reads_of(v):
            read = [changed[x] for x in read_by([v]) if x in changed]
            if read:
                result[v] = _known_while(v, dict(read))
    return result


def _known_while(v: Variable, replaced: Mapping[Variable, Variable]) -> Variable:
    """``v``, which raises where a replacement has other sizes than what it replaces."""
    sizes = [
        (new, axis, size) for old, new in replaced.items() for axis, size in _unknown_sizes(old, new).items()
    ]
    names = ", ".join(f"{new} replaces {old} of type {old.type}" for old, new in replaced.items())
    assert isinstance(v, TensorVariable)
    return v._where_sizes(sizes, f"{names}, but has another shape")


def rebuild(
    outputs: Sequence[Variable], memo: dict[Variable, Variable], *, copy_nodes: bool, strict: bool
) -> list[Variable]:
    """Copies of ``outputs`` in which the keys of ``memo`` are replaced by its values.

    Args:
        outputs: what to copy.
        memo: replacements; gains an entry for each variable that is copied.
        copy_nodes: copy every node, not only those that a replacement changes.
        strict: keep every type, converting replacements where needed.
    """
    for node in toposort(outputs, blockers=set(memo)):
        new_inputs = [memo.get(v, v) for v in node.inputs]
        if not copy_nodes and all(new is old for new, old in zip(new_inputs, node.inputs, strict=True)):
            continue
        new_node = node.clone_with_new_inputs(new_inputs, strict=strict)
        for old, new in zip(node.outputs, new_node.outputs, strict=True):
            memo.setdefault(old, new)
            if reads_of(old):
                remember(new, *(memo.get(v, v) for v in graph_inputs(reads_of(old))))
    return [memo.get(v, v) for v in outputs]


def clone_replace(
    output: Variable | Sequence[Variable] | Mapping[Hashable, Variable],
    replace: Replacements = None,
    copy_inputs_over: bool = True,
    **kwargs: bool,
) -> Any:
    """Copy the graph of ``output``, replacing variables; the replacements themselves are not searched.

    Args:
        output: a variable, or a list or dict of them; the result has the same form.
        replace: old and new variables; a new one may have another type when the ops accept it, but for
            static sizes: those of the old one are checked at run time.
        copy_inputs_over: keep the roots; otherwise they are copied too, those of the replacements included. A
            copy of a shared variable has the value of the original.
        kwargs: ``rebuild_strict=True`` demands that types stay the same, which is the default.

    Raises:
        TypeError: a replacement does not fit (with ``rebuild_strict``).

    Examples:
        >>> x, y = pt.scalar("x"), pt.scalar("y")
        >>> z = graphc.clone_replace(x * 2, {x: y + 1})
        >>> float(z.eval({y: 3.0}))
        8.0
    """
    strict = kwargs.pop("rebuild_strict", True)
    if kwargs:
        raise TypeError(f"clone_replace() got unknown arguments {', '.join(kwargs)}")
    outputs = _listed(output)
    memo = _as_dict(replace)
    if strict:
        memo = {old: of_type(old, new) for old, new in memo.items()}
    memo = checked_replacements(outputs, memo)
    result = rebuild(outputs, memo, copy_nodes=True, strict=False)
    if not copy_inputs_over:
        roots = {v: v.clone() for v in graph_inputs(result) if not isinstance(v, Constant)}
        result = rebuild(result, dict(roots), copy_nodes=False, strict=True)
    return _like(output, result)


def graph_replace(
    outputs: Variable | Sequence[Variable] | Mapping[Hashable, Variable],
    replace: Replacements = None,
    *,
    strict: bool = True,
) -> Any:
    """Replace variables of a graph, keeping whatever does not depend on them.

    Replacements are applied together, and chains are followed: with ``{a: b, b: c}`` the result depends on c
        where it
    depended on a or b.

    Args:
        outputs: a variable, or a list or dict of them; the result has the same form.
        replace: old and new variables; the static sizes of old ones are checked at run time.
        strict: raise when a key is not part of the graph.

    Raises:
        ValueError: a key is not part of the graph (with ``strict``), or the replacements form a cycle.
        TypeError: static sizes contradict each other.

    Examples:
        >>> x, y = pt.scalar("x"), pt.scalar("y")
        >>> z = graphc.graph_replace(x * 2, {x: y + 1})
        >>> float(z.eval({y: 3.0}))
        8.0
    """
    memo = _as_dict(replace)
    listed = _listed(outputs)
    if strict:
        present = set(ancestors(listed)) | set(ancestors(memo.values()))
        for old in memo:
            if old not in present:
                raise ValueError(
                    f"{old} is not part of the graph, so it cannot be replaced; strict=False ignores it"
                )
    resolved = checked_replacements(listed, _resolve(memo))
    return _like(outputs, rebuild(listed, resolved, copy_nodes=False, strict=False))


def _resolve(replace: dict[Variable, Variable]) -> dict[Variable, Variable]:
    """Apply the replacements to each other's new values, so that the result needs a single pass."""
    resolved: dict[Variable, Variable] = {}
    open_: set[Variable] = set()

    def inside(old: Variable) -> list[Variable]:
        new = replace[old]
        return [v for v in ancestors([new]) if v in replace and v is not old]

    def visit(old: Variable) -> None:
        if old in resolved:
            return
        if old in open_:
            raise ValueError(f"the replacement of {old} depends on itself through other replacements")
        open_.add(old)
        needed = inside(old)
        for other in needed:
            visit(other)
        memo = {other: resolved[other] for other in needed}
        resolved[old] = (
            rebuild([replace[old]], memo, copy_nodes=False, strict=False)[0] if memo else replace[old]
        )
        open_.discard(old)

    for old in replace:
        visit(old)
    return resolved


def _listed(outputs: Variable | Sequence[Variable] | Mapping[Hashable, Variable]) -> list[Variable]:
    if isinstance(outputs, Variable):
        return [outputs]
    return list(outputs.values()) if isinstance(outputs, Mapping) else list(outputs)


def _like(form: Any, variables: list[Variable]) -> Any:
    if isinstance(form, Variable):
        return variables[0]
    if isinstance(form, Mapping):
        return dict(zip(form, variables, strict=True))
    return tuple(variables) if isinstance(form, tuple) else variables


def clone_with_inputs(inputs: Variables, outputs: Variables) -> tuple[list[Variable], list[Variable]]:
    """Copy the graph between ``inputs`` and ``outputs``, with fresh inputs; other roots are shared."""
    memo = {v: fresh_root(v) for v in inputs}
    return list(memo.values()), rebuild(outputs, dict(memo), copy_nodes=True, strict=True)


def fresh_root(v: Variable) -> Variable:
    """A root variable of the same type, name and place."""
    copy = v.type.make_variable(v.name)
    copy._location = v.location
    copy.take_test_value(v)
    return copy


def clone(
    inputs: Variables, outputs: Variables, copy_inputs: bool = True, copy_orphans: bool | None = None
) -> tuple[Collection[Variable], Collection[Variable]]:
    """Copy the graph between ``inputs`` and ``outputs``.

    Args:
        inputs: variables at which the copy ends.
        outputs: variables to copy.
        copy_inputs: make new inputs; otherwise the copy reads the given ones.
        copy_orphans: copy other roots too; by default the same as ``copy_inputs``.

    Returns:
        The inputs and outputs of the copy.

    Examples:
        >>> x = pt.vector("x")
        >>> inputs, outputs = graphc.graph.clone([x], [pt.exp(x)])
        >>> inputs[0] is x, outputs[0].owner.op
        (False, exp)
    """
    copy_orphans = copy_inputs if copy_orphans is None else copy_orphans
    memo = _fresh(inputs, outputs, copy_inputs, copy_orphans)
    new_inputs = [memo[v] for v in inputs]
    return new_inputs, rebuild(outputs, memo, copy_nodes=True, strict=True)


def _fresh(
    inputs: Sequence[Variable], outputs: Sequence[Variable], copy_inputs: bool, copy_orphans: bool
) -> dict[Variable, Variable]:
    """Replacements of a graph's roots in a copy. Constants are never copied: nothing changes them."""
    memo = {v: v.clone() if copy_inputs and not isinstance(v, Constant) else v for v in inputs}
    if copy_orphans:
        for v in orphans_between(inputs, outputs):
            if not isinstance(v, Constant) and not isinstance(v, SharedVariable):
                memo[v] = v.clone()
    return memo


def clone_get_equiv(
    inputs: Sequence[Variable],
    outputs: Sequence[Variable],
    copy_inputs: bool = True,
    copy_orphans: bool = False,
    memo: dict[object, object] | None = None,
) -> dict[Variable | Apply, Variable | Apply]:
    """Copy a graph and return which variable and node became which.

    Args:
        inputs, outputs, copy_inputs, copy_orphans: as in `clone`.
        memo: copies that exist already; gains the others.
    """
    known: dict[Any, Any] = {} if memo is None else memo
    given = {v: copy for v, copy in known.items() if isinstance(v, Variable)}
    found = {**_fresh(inputs, outputs, copy_inputs, copy_orphans), **given}
    rebuild(outputs, found, copy_nodes=True, strict=True)
    result = known
    result.update(found)
    result.update({v: v for v in ancestors(outputs, set(inputs)) if isinstance(v, Constant)})
    for old, new in found.items():
        if old.owner is not None and new.owner is not None and old not in given and old not in set(inputs):
            result[old.owner] = new.owner
    return result
