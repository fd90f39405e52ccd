# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``vectorize_graph``: graphs with any number of leading batch axes added to some variables.

One axis after the other is added by `graphc.ops.batching`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, overload

from graphc.graph.basic import Variable
from graphc.graph.replace import checked_constants, checked_replacements, rebuild
from graphc.graph.tensor.type import TensorType
from graphc.graph.traversal import toposort
from graphc.ops.batching import batch_some, rank_of
from graphc.ops.shape import Shape, Shape_i

if TYPE_CHECKING:
    from graphc.graph.tensor.variable import TensorVariable
    from graphc.graph.type import Type


@overload
def vectorize_graph(outputs: TensorVariable, replace: Mapping[Variable, Variable]) -> TensorVariable: ...
@overload
def vectorize_graph(outputs: Variable, replace: Mapping[Variable, Variable]) -> Variable: ...
@overload
def vectorize_graph(
    outputs: Sequence[Variable], replace: Mapping[Variable, Variable]
) -> Sequence[Variable]: ...
def vectorize_graph(
    outputs: Variable | Sequence[Variable], replace: Mapping[Variable, Variable]
) -> Variable | Sequence[Variable]:
    """The graph of ``outputs`` for batches of values of some variables.

    Args:
        outputs: variable, or list or tuple of variables.
        replace: variables of the graph, and what stands for each: a variable with any number of leading
            axes added. These batch axes are aligned at their right ends and broadcast as NumPy's do: those of
            static size 1 are repeated, the others must have equal sizes. A variable without further axes is
            the same for all elements of the batch.

    Returns:
        The outputs in the container that they came in. Each has the batch axes of what it depends on; one
        that depends on no batch has none.

    Raises:
        ValueError: something else than variables is given; a replacement has fewer dimensions than what it
            replaces, or batch axes have different static sizes.
        VectorizeError: a value that is no tensor depends on the batch.

    Source: PyTensor's ``vectorize_graph``.

    Examples:
        >>> x, xs = pt.vector("x"), pt.matrix("xs")
        >>> sums = graphc.vectorize_graph(x.sum(), {x: xs})
        >>> sums.eval({xs: [[1.0, 2.0], [3.0, 4.0]]})
        array([3., 7.])
    """
    listed = [outputs] if isinstance(outputs, Variable) else list(outputs)
    for old, new in replace.items():
        if not (isinstance(old, Variable) and isinstance(new, Variable)):
            raise ValueError(f"vectorize_graph replaces variables by variables, got {old!r} by {new!r}")
    depth = {old: rank_of(new) - rank_of(old) for old, new in replace.items()}
    for old, extra in depth.items():
        if extra < 0:
            raise ValueError(
                f"the batch for {old} of type {old.type} must have at least as many dimensions, "
                f"got {replace[old]} of type {replace[old].type}"
            )
    unchecked = {old: (old, new) for old, new in replace.items()}
    replace = checked_replacements(listed, replace)
    unchecked = {old: pair for old, pair in unchecked.items() if replace[old] is not pair[1]}
    depth.update((v, 0) for v in replace if v not in depth)
    same = {old: new for old, new in replace.items() if not depth[old]}
    # A batch of another dtype is one of rows of that dtype: loops over batches have bodies of fixed dtypes.
    retyped = {old: _retyped(old, new) for old, new in replace.items() if depth[old]}
    rows = rebuild(listed, {**same, **retyped}, copy_nodes=False, strict=False)
    unchecked = {retyped.get(old, old): pair for old, pair in unchecked.items()}
    batch = _Batch(rows, {row: replace[old] for old, row in retyped.items()}, unchecked)
    result = batch.build()
    if isinstance(outputs, Variable):
        return result[0]
    return tuple(result) if isinstance(outputs, tuple) else result


class _Batch:
    """Several batch axes, which are added one after the other. Level 0 is the rightmost of them.

    Args:
        rows: outputs without the batch.
        given: what replaces variables, all with at least one more axis.
        unchecked: of those whose sizes are checked, what was replaced, and by what before the check.
    """

    def __init__(
        self,
        rows: list[Variable],
        given: dict[Variable, Variable],
        unchecked: Mapping[Variable, tuple[Variable, Variable]],
    ) -> None:
        self.rows, self.given, self.unchecked = rows, given, unchecked
        self.depth = {old: rank_of(new) - rank_of(old) for old, new in given.items()}
        self.levels = range(max(self.depth.values(), default=0))
        # For each level the variables that vary along it, and its size.
        self.varying: list[list[Variable]] = []
        self.sizes: list[Variable] = []
        for level in self.levels:
            self._add_level(level)

    def _add_level(self, level: int) -> None:
        have = {
            old: new.type.shape[self.depth[old] - 1 - level]
            for old, new in self.given.items()
            if self.depth[old] > level
        }
        wide = {old: size for old, size in have.items() if size != 1} or have
        known = {size for size in wide.values() if size is not None}
        if len(known) > 1:
            texts = ", ".join(f"{self.given[old]} has {size}" for old, size in wide.items() if size)
            raise ValueError(
                f"batch axes must have equal sizes, or 1, but in the batch axis {level + 1} from the right "
                f"{texts}"
            )
        old = next(iter(wide))
        axis = self.depth[old] - 1 - level
        self.sizes.append(known.pop() if known else self.given[old].shape[axis])
        self.varying.append(list(wide))

    def build(self) -> list[Variable]:
        """The outputs with their batch axes."""
        result, current = self.rows, {old: old for old in self.given}
        checked: dict[Variable, tuple[Variable, Variable]] = {}
        present: list[list[int]] = [[] for _ in result]
        for level in self.levels:
            grown = {old: self._grown(current[old], level) for old in self.varying[level]}
            replace = {current[old]: new for old, new in grown.items()}
            result, batched = batch_some(result, replace, self.sizes[level])
            current.update(grown)
            checked.update((new, self.unchecked[old]) for old, new in grown.items() if old in self.unchecked)
            for levels, is_batched in zip(present, batched, strict=True):
                levels += [level] * is_batched
        memo = {current[old]: self._narrowed(old) for old in self.given}
        memo.update(checked_constants(result, checked, set(memo)))
        result = rebuild(result, memo, copy_nodes=False, strict=False)
        wanted = self._wanted()
        return [
            self._widened(y, levels, wanted.get(row, 0))
            for y, levels, row in zip(result, present, self.rows, strict=True)
        ]

    def _grown(self, x: Variable, level: int) -> Variable:
        size = self.sizes[level]
        return _plain(x.type, (size if isinstance(size, int) else None, *x.type.shape))

    def _narrowed(self, old: Variable) -> Variable:
        """The replacement without the axes of size 1 along which others vary."""
        new: Any = self.given[old]
        depth = self.depth[old]
        kept = [axis for axis in range(depth) if old in self.varying[depth - 1 - axis]]
        return new if len(kept) == depth else new.dimshuffle(*kept, *range(depth, new.type.ndim))

    def _wanted(self) -> dict[Variable, int]:
        """Number of batch axes of each variable by what it depends on; sizes depend on no elements."""
        wanted = dict(self.depth)
        for node in toposort(self.rows, blockers=set(self.given)):
            most = max((wanted.get(x, 0) for x in node.inputs), default=0)
            if most and not isinstance(node.op, Shape | Shape_i):
                wanted.update(dict.fromkeys(node.outputs, most))
        return wanted

    @staticmethod
    def _widened(y: Any, levels: list[int], wanted: int) -> Variable:
        """The output with axes of size 1 where it lacks some between those that it has."""
        if not levels or len(levels) == wanted:
            return y
        found = {level: axis for axis, level in enumerate(reversed(levels))}
        front = [found.get(level, "x") for level in reversed(range(wanted))]
        return y.dimshuffle(*front, *range(len(levels), y.type.ndim))


def _retyped(old: Variable, new: Variable) -> Variable:
    """A row of a batch in the dtype of the batch; the variable itself where it has that."""
    if not (isinstance(old.type, TensorType) and isinstance(new.type, TensorType)):
        return old
    return old if old.type.dtype == new.type.dtype else _plain(new.type, old.type.shape)


def _plain(type_: Type, shape: Sequence[int | None]) -> Variable:
    return TensorType(type_.dtype, shape).make_variable()
