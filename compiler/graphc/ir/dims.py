# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tensor dimensions that are known to have equal sizes.

Every dimension of every value gets a *key*: an int for a static size, else a hashable name of the place the
size comes from. Equal keys mean equal sizes; different keys mean nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from graphc.ir.constants import CONSTANTS
from graphc.ir.traits import SIZES, Sizes
from graphc_dialects._mlir import ir
from graphc_dialects.conditional_shapes import read_results
from graphc_dialects.elementwise import ELEMENTWISE
from graphc_dialects.signatures import SIGNATURES
from graphc_dialects.walk import is_inside

Key = Any
_KEEP_SIGN = frozenset(f"arith.{name}" for name in "addi muli divsi floordivsi ceildivsi remsi minsi".split())
# Their operands have equal ranks.
_ELEMENTWISE = frozenset(f"graphc.{name}" for name in ELEMENTWISE)


def broadcasts(value: ir.Value, axis: int) -> bool:
    """True if a dimension of an operand broadcasts: where its type says that it has size 1.

    A size that is only found out to be 1 (by its key, or at run time) has to agree with the others, as in
    the graph, where it was not known. Passes never give an operand a type that knows more: what replaces a
    value is cast to its type.
    """
    return bool(value.type.shape[axis] == 1)


class DimKeys:
    """Keys of the dimensions of a function's values, computed on demand and remembered.

    Args:
        defs: the operation that defines each value; values that are missing are arguments.

    Attributes:
        witness: for keys of index values, the first value that has the key.
    """

    def __init__(self, defs: dict[Any, Any]) -> None:
        self._defs = defs
        self._shapes: dict[ir.Value, list[Key]] = {}
        self._sizes: dict[ir.Value, Key] = {}
        self._leader: dict[Key, Key] = {}
        self._visited: set[ir.Value] = set()
        self._scopes: list[tuple[dict[Key, Key], dict[Key, Any]]] = []
        self.witness: dict[Key, ir.Value] = {}

    def enter(self) -> None:
        """Begins a region: what is assumed and witnessed in it holds in it only."""
        self._scopes.append((dict(self._leader), dict(self.witness)))

    def leave(self) -> None:
        """Ends a region."""
        self._leader, self.witness = self._scopes.pop()

    def shape(self, value: ir.Value) -> list[Key]:
        """One key per dimension of a tensor value."""
        known = self._shapes.get(value)
        if known is None:
            static = value.type.shape
            if value not in self._visited and min(static, default=0) < 0:
                self._resolve_operands(value)
            known = self._shapes[value] = self._find_shape(value, static)
        return [self.find(key) for key in known] if self._leader else known

    def size(self, value: ir.Value) -> Key:
        """The key of an index value."""
        known = self._key(value)
        self.witness.setdefault(known, value)
        return self.find(known)

    def _key(self, value: ir.Value) -> Key:
        """The key of an index value, also of a region that ended: nothing later may use that value."""
        known = self._sizes.get(value)
        if known is None:
            self._resolve_operands(value)
            known = self._sizes[value] = self._everywhere(self._size, value)
        return known

    def same(self, a: Key, b: Key) -> bool:
        """True if two keys are known to stand for equal sizes."""
        return bool(self.find(a) == self.find(b))

    def is_size(self, value: ir.Value, depth: int = 8) -> bool:
        """True if an index value is certainly not negative: sizes, their sums, products and quotients."""
        key = self.size(value)
        if isinstance(key, int):
            return key >= 0
        if key[0] == "dim":
            return True
        op = self._defs.get(key[1]) if key[0] == "index" and depth else None
        if op is None:
            return False
        if op.name == "arith.maxsi":
            return any(self.is_size(operand, depth - 1) for operand in op.operands)
        return op.name in _KEEP_SIGN and all(self.is_size(operand, depth - 1) for operand in op.operands)

    def assume_equal(self, a: Key, b: Key) -> None:
        """Records that two sizes are equal from here on, because a check has just passed. Of two different
        numbers none has passed: nothing runs from here on, and numbers stay what they are.
        """
        a, b = self.find(a), self.find(b)
        if a != b and not (isinstance(a, int) and isinstance(b, int)):
            if isinstance(a, int):
                a, b = b, a
            self._leader[a] = b

    def find(self, key: Key) -> Key:
        """The representative of the keys that are equal to `key`."""
        while key in self._leader:
            key = self._leader[key]
        return key

    def count(self, keys: Iterable[Key]) -> tuple[int, tuple[Key, ...]]:
        """The product of sizes in a normal form: a number, and the other factors in an order of their own."""
        number, factors = 1, []
        pending = list(keys)
        while pending:
            key = self.find(pending.pop())
            if isinstance(key, int):
                number *= key
                continue
            op = self._defs.get(key[1]) if key[0] == "index" else None
            if op is not None and op.name == "arith.muli":
                pending.extend(self.size(operand) for operand in op.operands)
            else:
                factors.append(key)
        return number, tuple(sorted(factors, key=hash))

    def _everywhere(self, derive: Callable[..., object], *arguments: ir.Value | list[int]) -> Any:
        """Derives without assumptions: what is remembered of a value outlasts the region that asked first."""
        if not self._leader:
            return derive(*arguments)
        leader, self._leader = self._leader, {}
        try:
            return derive(*arguments)
        finally:
            self._leader = leader

    def _resolve_operands(self, value: ir.Value) -> None:
        """Resolves what a value is computed from, operands first, without recursion: programs are long."""
        visited = self._visited
        visited.add(value)
        # In most cases they have been asked for before.
        stack = [(source, False) for source in self._sources(value) if source not in visited]
        while stack:
            top, ready = stack.pop()
            if not ready:
                if top in visited:
                    continue
                visited.add(top)
                if self._defs.get(top) is not None:
                    stack.append((top, True))
                    stack += [(source, False) for source in self._sources(top) if source not in visited]
            else:
                type_ = top.type
                if isinstance(type_, ir.RankedTensorType):
                    if top not in self._shapes:
                        self._shapes[top] = self._find_shape(top, type_.shape)
                elif isinstance(type_, ir.IndexType):
                    self._key(top)

    def _sources(self, value: ir.Value) -> Iterable[ir.Value]:
        """Values from which a value is computed."""
        op = self._defs.get(value)
        if op is None:
            return ()
        return op.operands if op.name != "scf.if" else read_results(value)

    def _find_shape(self, value: ir.Value, static: list[int]) -> list[Key]:
        """The keys of a value whose operands are resolved."""
        if min(static, default=0) >= 0:
            return static
        keys: list[Key] = self._everywhere(self._dynamic, value, static)
        return keys

    # -- how each operation derives its sizes ----------------------------------------------------------------

    def _size(self, value: ir.Value) -> Key:
        op = self._defs.get(value)
        if op is None:
            return ("index", value)
        if op.name in CONSTANTS:
            return int(op.attributes["value"].value)
        if op.name == "tensor.dim":
            axis = self._key(op.operands[1])
            if isinstance(axis, int) and 0 <= axis < len(op.operands[0].type.shape):
                return self.shape(op.operands[0])[axis]
        if op.name == "arith.index_cast":
            return self._through_integers(value, op)
        return ("index", value)

    def _through_integers(self, value: ir.Value, op: ir.Operation) -> Key:
        """Sees through `index_cast` of an i64 that was cast from index, also through a 0-d tensor."""
        source = self._defs.get(op.operands[0])
        if source is None:
            return ("index", value)
        if source.name == "arith.index_cast":
            return self._key(source.operands[0])
        if source.name == "arith.constant":
            return int(source.attributes["value"].value)
        if source.name == "tensor.extract" and len(source.operands) == 1:
            tensor = source.operands[0]
            made = self._defs.get(tensor)
            if made is not None and made.name == "tensor.from_elements":
                inner = self._defs.get(made.operands[0])
                if inner is not None and inner.name == "arith.index_cast":
                    return self._key(inner.operands[0])
            return ("element", tensor)
        return ("index", value)

    def _dynamic(self, value: ir.Value, static: list[int]) -> list[Key]:
        op = self._defs.get(value)
        derived = None if op is None else self._derive(value, op, static)
        if derived is None:
            derived = [("dim", value, axis) for axis in range(len(static))]
        return [size if size >= 0 else key for size, key in zip(static, derived, strict=True)]

    def _derive(self, value: ir.Value, op: ir.Operation, static: list[int]) -> list[Key] | None:
        name, operands = op.name, list(op.operands)
        if name in _ELEMENTWISE:
            return self._joint(operands)
        if name in ("scf.if", "arith.select"):
            return self._either(value, op)
        if name[7:] in SIGNATURES:
            return self._kernel(value, op)
        rule = SIZES.get(name)
        if rule is not None:
            return self._as_long_as(value, static, rule(op))
        if name.startswith("graphc.") and len(operands) and self._is_elementwise(operands, len(static)):
            return self._joint(operands)
        return None

    def _as_long_as(self, value: ir.Value, static: list[int], sizes: Sizes) -> list[Key]:
        """The keys of dimensions that are as long as others."""
        keys: list[Key] = []
        for axis, (known, equal) in enumerate(zip(static, sizes, strict=True)):
            if known >= 0 or not equal:
                keys.append(known if known >= 0 else ("dim", value, axis))
            else:
                x, place = equal[0]
                keys.append(self._key(x) if place < 0 else self.shape(x)[place])
        return keys

    def _either(self, value: ir.Value, op: ir.Operation) -> list[Key]:
        """Common facts about both possible values, where they are known before the operation."""
        values = read_results(value) if op.name == "scf.if" else list(op.operands)[1:]
        keys: list[Key] = []
        for axis, (first, *others) in enumerate(zip(*map(self.shape, values), strict=True)):
            inside = not isinstance(first, int) and is_inside(first[1], op)
            agree = not inside and all(key == first for key in others)
            keys.append(first if agree else ("dim", value, axis))
        return keys

    def _kernel(self, value: ir.Value, op: ir.Operation) -> list[Key]:
        """Batch sizes of the first operand, then the sizes that the signature names."""
        signature, operands = SIGNATURES[op.name[7:]], list(op.operands)
        core = signature.results[value.result_number]
        keys = self.shape(operands[0])[: len(value.type.shape) - len(core)]
        for dim in core:
            place = signature.place(dim)
            if place is None:
                keys.append(self._key(operands[len(signature.operands) + signature.given.index(dim)]))
            else:
                keys.append(self.shape(operands[place[0]])[place[1]])
        return keys

    def _is_elementwise(self, operands: list[ir.Value], rank: int) -> bool:
        types = [operand.type for operand in operands]
        return all(isinstance(type_, ir.RankedTensorType) and type_.rank == rank for type_ in types)

    def _joint(self, operands: list[ir.Value]) -> list[Key]:
        """Per axis a static size if one does not broadcast, else the first that does not."""
        shapes = [self.shape(operand) for operand in operands]
        first = shapes[0]
        if shapes.count(first) == len(shapes):
            return first
        joint = []
        for axis, keys in enumerate(zip(*shapes, strict=True)):
            # A type that says 1 makes the key 1; other keys need no look at the type.
            wide = [k for k, x in zip(keys, operands, strict=True) if k != 1 or not broadcasts(x, axis)] or [
                1
            ]
            joint.append(next((key for key in wide if isinstance(key, int)), wide[0]))
        return joint
