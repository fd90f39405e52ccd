# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One forward sweep of local rewrites over a function, the base of the graph-stage simplifications.

Wrapping an operation for Python costs about a microsecond, so a pass visits every operation once.
Definitions come before uses, hence each rule sees operands that are simplified already; operations that a
rule creates are visited at once. What the sweep leaves unused is erased at its end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from graphc.ir.constants import CONSTANTS, constant_attribute, element_dtype, read_constant
from graphc.ir.dims import DimKeys, broadcasts
from graphc.ir.scan_view import END, SCAN
from graphc.ir.traits import Marker
from graphc.ir.views import SAME_ELEMENTS, SELECTED, repeated
from graphc.ir.walk import functions, named_attributes, walk
from graphc_dialects._mlir import ir
from graphc_dialects.check import has_checks
from graphc_dialects.conditional_shapes import blocks_of

if TYPE_CHECKING:
    import numpy.typing as npt

Rule = Callable[["Rewriter", ir.Operation], ir.Value | None]
RuleTable = dict[str, list[Rule]]
# Operands, and the names of the operations that make them.
Operands = tuple[list[ir.Value], frozenset[str]]

# Unused operations of these dialects are erased: at the graph stage all with results are pure.
_PURE_DIALECTS = ("graphc.", "arith.", "tensor.", "math.", "complex.")

# Operations that have regions, and their ends.
_AROUND_REGIONS = frozenset({SCAN, END, "scf.if", "scf.yield"})


def is_removable(op: ir.Operation) -> bool:
    """True if an operation without used results may be erased.

    What has no results has an effect, on the caller or on the loop around it, and so has what checks.
    """
    name = op.name
    if name in ("scf.if", SCAN):
        return not has_checks(op)
    if not name.startswith(_PURE_DIALECTS) or not len(op.results):
        return False
    return name.startswith("graphc.") or not len(op.regions)


def erase_unused(operations: list[ir.Operation]) -> int:
    """Erases pure operations whose results have no uses, last first; returns how many."""
    erased = 0
    for op in reversed(operations):
        for result in op.results:
            if next(result.uses, None) is not None:
                break
        else:
            if is_removable(op):
                op.erase()
                erased += 1
    return erased


def erase_unused_between(first: ir.Operation, last: ir.Operation) -> None:
    """Erases what is unused between two operations of a block.

    Work that is built at one place is found by the place. Sets of operations or values do not tell what is
    new: their hashes are made of operands or addresses, and what is created takes the address of what was
    erased.
    """
    operations = [op.operation for op in last.block.operations]
    erase_unused(operations[operations.index(first) + 1 : operations.index(last)])


def tensor_type(shape: Sequence[int], element_type: ir.Type) -> ir.RankedTensorType:
    """`RankedTensorType`; negative sizes are dynamic."""
    dynamic = ir.ShapedType.get_dynamic_size()
    return ir.RankedTensorType.get([size if size >= 0 else dynamic for size in shape], element_type)


def is_tensor(value: ir.Value) -> bool:
    """True if a value is a ranked tensor: not a number, a loop or a buffer."""
    return type(value.type) is ir.RankedTensorType


def apply_rules(
    module: ir.Module, rules: RuleTable, count: Callable[[str, int], None], erase: bool = True
) -> list[Rewriter]:
    """Applies rules to all functions of a module.

    Args:
        module: with the functions. rules: see `Rewriter`.
        count: is called with the name of each rule, in words, and how often it fired.
        erase: whether to erase what becomes unused.
    """
    rewriters = [Rewriter(function, rules) for function in functions(module)]
    for rewriter in rewriters:
        rewriter.run(erase)
        for name, number in rewriter.counts.items():
            count(name.strip("_").replace("_", " "), number)
    return rewriters


class Rewriter:
    """Applies rules to one function, bodies of scans and regions of conditionals included.

    What is found out in a region (sizes, facts of checks that passed) is forgotten after it, because it may
    never run. A rule gets the rewriter and an operation and returns the value that replaces the operation's
    result, or None. The replacement must have the same element type and shape; a type that differs in what
    is static is cast.

    Args:
        function: a `func.func`. rules: rules by operation name, tried in order; those of `"*"` are for
        every operation without an entry.

    Attributes:
        defs: the operation that defines each value seen so far (block arguments are absent).
        counts: how often each rule fired, by the rule's name.
        measured: operations whose sizes rules computed from other sizes.
        promises: what a rule that searches for factors may find, by value.
        notes: what else rules find out, by who asks.
    """

    def __init__(self, function: ir.Operation, rules: RuleTable | None = None) -> None:
        self.function = function
        self.defs: dict[Any, Any] = {}
        self.counts: dict[str, int] = {}
        self.measured: list[ir.Operation] = []
        self.promises: dict[ir.Value, int] = {}
        self.notes: dict[type, object] = {}
        self._moved: dict[ir.Value, ir.Value] = {}
        self.anchor: Any = None
        self._rules = rules or {}
        self._default = self._rules.get("*", [])
        self._operations: list[ir.Operation] = []
        self._constants: dict[ir.Value, int | np.ndarray] = {}
        self._dtypes: dict[ir.Value, np.dtype] = {}
        self._splats: dict[ir.Value, np.generic | None] = {}
        self._read: tuple[ir.Operation, Operands] | None = None
        self._sizes: dict[Any, ir.Value] = {}
        self.reified: dict[Any, ir.Value] = {}
        self._location: Any = None
        self._scopes: list[tuple[dict[Any, Any], dict[Any, Any]]] = []

    # -- the sweep -------------------------------------------------------------------------------------------

    def run(self, erase: bool = True) -> None:
        """Visits every operation once, then erases what became unused (if asked to)."""
        branches: list[int] = []  # regions of conditionals that are still to come, innermost last
        for op in walk(self.function):
            self.anchor = op
            self._location = None
            name = op.name
            if name == SCAN:
                self._enter()
            value = self._visit(op, name)
            if value is not None:
                self.replace(op, value)
            if name not in _AROUND_REGIONS:
                continue
            if name == "scf.if":
                branches.append(len(blocks_of(op)))
                self._enter()
            if name == END:
                self._leave()
            elif name == "scf.yield":
                self._leave()
                branches[-1] -= 1
                if branches[-1]:
                    self._enter()
                else:
                    branches.pop()
        if erase:
            self.erase_unused()

    def erase_unused(self) -> None:
        """Erases what the sweep left unused."""
        erase_unused(self._operations)

    def unused(self) -> list[ir.Operation]:
        """The operations that `erase_unused` would erase, in order."""
        found: set[object] = set()
        for op in reversed(self._operations):
            users = (use.owner.operation for result in op.results for use in result.uses)
            if is_removable(op) and all(user in found for user in users):
                found.add(op)
        return [op for op in self._operations if op in found]

    def _enter(self) -> None:
        self._scopes.append((dict(self._sizes), dict(self.reified)))
        self.dims.enter()

    def _leave(self) -> None:
        self._sizes, self.reified = self._scopes.pop()
        self.dims.leave()

    def _visit(self, op: ir.Operation, name: str) -> ir.Value | None:
        self._read = None
        self._operations.append(op)
        results = op.results
        for number in range(len(results)):  # an iterator ends with an exception, which takes as long again
            self.defs[results[number]] = op
        for rule in self._rules.get(name, self._default):
            value = rule(self, op)
            if value is not None:
                title = rule.__name__
                self.counts[title] = self.counts.get(title, 0) + 1
                return value
        return None

    def replace(self, op: ir.Operation, value: ir.Value) -> None:
        """Uses `value` wherever the operation's result was used."""
        self._read = None
        result = op.results[0]
        result.replace_all_uses_with(self.cast_static(value, result.type))

    # -- reading ---------------------------------------------------------------------------------------------

    def defining(self, value: ir.Value, name: str) -> ir.Operation | None:
        """The defining operation if its name is `name`, else None."""
        op = self.defs.get(value)
        return op if op is not None and op.name == name else None

    def defined_by(self, value: ir.Value, marker: Marker) -> Any:
        """The defining operation if it has a property, else None."""
        op = self.defs.get(value)
        return op if op is not None and op.name in marker else None

    def operand_of(self, value: ir.Value, name: str) -> Any:
        """First operand of the defining operation if its name is `name`, else None."""
        op = self.defining(value, name)
        return None if op is None else op.operands[0]

    def constant(self, value: ir.Value) -> Any:
        """The literal that a value is: an ndarray for tensors, an int for index values, else None."""
        op = self.defs.get(value)
        if op is None or op.name not in CONSTANTS:
            return None
        if value not in self._constants:
            self._constants[value] = read_constant(op)
        return self._constants[value]

    def operands(self, op: ir.Operation) -> Operands:
        """The operands of an operation, and the names of the operations that make them: wrapped once for all
        rules that look at it in turn.
        """
        if self._read is None or self._read[0] is not op:
            values = list(op.operands)
            makers = (self.defs.get(value) for value in values)
            self._read = op, (values, frozenset(maker.name for maker in makers if maker is not None))
        return self._read[1]

    def behind_views(self, value: ir.Value) -> str:
        """The name of the operation whose elements a value consists of, as they are; "" if there is none."""
        op = self.defs.get(value)
        while op is not None and op.name in SELECTED:
            op = self.defs.get(op.operands[0])
        return "" if op is None else op.name

    def moved_operand(self, value: ir.Value, name: str) -> ir.Value | None:
        """x in the place of a value that views make of f(x), f the operation of a name, else None."""
        if value not in self._moved:
            op = self.defs.get(value)
            if op is None or op.name not in SELECTED:
                return op.operands[0] if op is not None and op.name == name else None
            if self.behind_views(value) != name:
                return None
            x = self.moved_operand(op.operands[0], name)
            if x is None or x.type.element_type != value.type.element_type:
                return None
            attributes = named_attributes(op)
            x = self.cast_static(x, op.operands[0].type)
            self._moved[value] = self.create(op.name, [x, *list(op.operands)[1:]], value.type, **attributes)
        return self._moved[value]

    def splat(self, value: ir.Value) -> Any:
        """The one NumPy scalar all elements equal, seen through views, else None. Empty tensors give None."""
        found: Any = self._splats.get(value, self)
        if found is self:
            op = self.defs.get(value)
            if op is None:
                return None
            found = self._splats[value] = self._find_splat(value, op)
        return found

    def _find_splat(self, value: ir.Value, op: ir.Operation | None) -> np.generic | None:
        while op is not None and ((name := op.name) in SAME_ELEMENTS or name == "graphc.second"):
            value = op.operands[name == "graphc.second"]
            op = self.defs.get(value)
        array = None if op is None or name not in CONSTANTS else self.constant(value)
        if not isinstance(array, np.ndarray) or array.size == 0:
            return None
        first = array.flat[0]
        return first if array.size == 1 or np.all(array == first) else None

    def dtype(self, value: ir.Value) -> np.dtype:
        """NumPy dtype of a tensor value."""
        found = self._dtypes.get(value)
        if found is None:
            found = self._dtypes[value] = element_dtype(value.type.element_type)
        return found

    @cached_property
    def dims(self) -> DimKeys:
        """Known equalities of dimensions. Facts about operations that are replaced later stay true."""
        return DimKeys(self.defs)

    def can_replace(self, op: ir.Operation, value: ir.Value) -> bool:
        """True if `value` has the shape of the op's result, and dropping the op drops no shape check."""
        if value.type == op.results[0].type and len(op.operands) == 1:
            return True
        operands = list(op.operands)
        shapes = [self.dims.shape(x) for x in operands]
        return all(
            all(key == want or broadcasts(x, axis) for key, x in zip(keys, operands, strict=True))
            and want in keys
            for axis, (want, *keys) in enumerate(zip(self.dims.shape(value), *shapes, strict=True))
        )

    # -- writing ---------------------------------------------------------------------------------------------

    def create(self, name: str, operands: Sequence[Any], type_: ir.Type, **attributes: Any) -> Any:
        """The result of a new operation before the visited one, simplified by the rules."""
        op = self._created(name, operands, [type_], attributes)
        value = self._visit(op, name)
        return op.result if value is None else self.cast_static(value, type_)

    def move_after(self, value: ir.Value) -> object:
        """Creates what is next behind the operation that computes a value; returns what `move_to` takes.

        Rules that do so must not ask for sizes: these are computed once, for what is visited later.
        """
        before, op = self.anchor, self.defs.get(value)
        if op is not None:
            self.move_to(ir.InsertionPoint.after(op).ref_operation)
        return before

    def move_to(self, anchor: Any) -> None:
        """Creates what is next before an operation."""
        self.anchor, self._location = anchor, None

    def create_all(self, name: str, operands: Sequence[Any], types: Sequence[Any], **attributes: Any) -> Any:
        """The results of a new operation with several before the visited one."""
        op = self._created(name, operands, types, attributes)
        self._visit(op, name)
        return list(op.results)

    def _created(
        self, name: str, operands: Sequence[Any], types: Sequence[Any], attributes: dict[str, Any]
    ) -> ir.Operation:
        if self._location is None:
            self._location = self.anchor.location
        ip = ir.InsertionPoint(self.anchor)
        return ir.Operation.create(name, list(types), list(operands), attributes, loc=self._location, ip=ip)

    def literal(self, array: npt.ArrayLike, type_: ir.Type) -> ir.Value:
        """A constant of a ranked tensor type with static shape; the array is cast and broadcast to it."""
        full = np.broadcast_to(np.asarray(array, element_dtype(type_.element_type)), type_.shape)
        name, attribute = constant_attribute(full, type_)
        return self.create(name, [], type_, value=attribute)

    def scalar_like(self, number: float | np.generic, like: ir.Value) -> ir.Value:
        """A constant of the rank and element type of `like`, of size 1 along each axis."""
        type_ = like.type
        return self.literal(number, tensor_type([1] * len(type_.shape), type_.element_type))

    def full_like(self, number: float | np.generic, like: ir.Value) -> Any:
        """A splat with the type and shape of the tensor `like`."""
        type_ = like.type
        shape = type_.shape
        if all(size == 1 for size in shape):
            return self.literal(number, type_)
        one = self.literal(number, tensor_type([], type_.element_type))
        sizes = [self.dim(like, axis) for axis in range(len(shape))]
        return repeated(one, sizes, type_, self.create)

    def dim(self, value: ir.Value, axis: int) -> ir.Value:
        """Index value with the size of a dimension, named by where the size comes from."""
        key = self.dims.shape(value)[axis]
        if key not in self._sizes:
            self._sizes[key] = self._size_value(key, value, axis)
        return self._sizes[key]

    def _size_value(self, key: Any, value: ir.Value, axis: int) -> ir.Value:
        if isinstance(key, int):
            return self.index(key)
        if key[0] == "dim":
            _, value, axis = key
        elif key in self.dims.witness:
            return self.dims.witness[key]
        elif key[0] == "index":
            # Its witness was forgotten at the end of a region in which the size was first asked for.
            return key[1]
        elif key[0] == "element":
            number = self.create("tensor.extract", [key[1]], key[1].type.element_type)
            return self.create("arith.index_cast", [number], ir.IndexType.get())
        return self.create("tensor.dim", [value, self.index(axis)], ir.IndexType.get())

    def adopt(self, value: ir.Value) -> ir.Value:
        """Makes operations known that `reify` created; returns the value after simplification."""
        if self._is_known(value):
            return value
        new = None
        # Operations with the number of operands that were looked at; chains of them may be long.
        stack = [(value.owner.operation, 0)]
        while stack:
            op, done = stack.pop()
            if done < len(op.operands):
                stack.append((op, done + 1))
                operand = op.operands[done]
                if not self._is_known(operand):
                    stack.append((operand.owner.operation, 0))
                continue
            # What a rule creates for this operation must come before it, not only before the visited one.
            anchor, self.anchor = self.anchor, op
            new = self._visit(op, op.name)
            self.anchor = anchor
            if new is not None:
                self.replace(op, new)
        return value if new is None else new

    def _is_known(self, value: ir.Value) -> bool:
        return value in self.defs or isinstance(value.owner, ir.Block)

    def index(self, number: int) -> Any:
        """A constant of index type."""
        type_ = ir.IndexType.get()
        return self.create("arith.constant", [], type_, value=ir.IntegerAttr.get(type_, number))

    def cast_static(self, value: ir.Value, type_: ir.Type) -> ir.Value:
        """`tensor.cast` where the types differ in what is static."""
        return value if value.type == type_ else self.create("tensor.cast", [value], type_)

    def build(self, formula: Callable[..., ir.Value], *operands: ir.Value | int) -> ir.Value:
        """The result of a formula of index values before the visited operation, simplified by the rules."""
        if self._location is None:
            self._location = self.anchor.location
        with ir.InsertionPoint(self.anchor), self._location:
            return self.adopt(formula(*operands))

    def index_op(self, name: str, *operands: Any) -> ir.Value:
        """`arith.<name>` on index values."""
        return self.create(f"arith.{name}", operands, ir.IndexType.get())
