# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``Emitter``: the nodes of one function as text of the graphc dialect.

Sizes and offsets are folded where they are known; small constants are part of the code.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from graphc.errors import CompileError
from graphc.graph.basic import Apply, Constant, SourceLocation, Variable, describe
from graphc.graph.tensor.type import TensorType
from graphc.graph.tensor.variable import TensorConstant
from graphc_runtime.index_arithmetic import BINARY, COMPARISONS, addi, muli, subi

NAMES: dict[str, str] = {
    "bool": "i1",
    **{f"int{bits}": f"i{bits}" for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": f"ui{bits}" for bits in (8, 16, 32, 64)},
    "float16": "f16",
    "float32": "f32",
    "float64": "f64",
    "complex64": "complex<f32>",
    "complex128": "complex<f64>",
}
# Of what IR moves only: arithmetic of bfloat16 is that of float32 (`graphc.ops.table.floats`).
ELEMENTS = {**NAMES, "bfloat16": "ui16"}


_BITS = {2: np.uint16, 4: np.uint32, 8: np.uint64}


def tensor_type(dtype: str, shape: Sequence[int | None]) -> str:
    """Text of a ranked tensor type, ``tensor<2x?xf64>``."""
    sizes = "".join(f"{'?' if size is None else size}x" for size in shape)
    return f"tensor<{sizes}{ELEMENTS[dtype]}>"


def dense(array: np.ndarray) -> str:
    """Text of a dense elements attribute without its type, ``dense<[1, 2]>``."""
    if array.size == 0:
        return "dense<>"
    first = array.reshape(-1)[:1]
    if array.tobytes() == first.tobytes() * array.size:
        return f"dense<{_element(first[0])}>"
    return f"dense<{_nested(array)}>"


def _nested(array: np.ndarray) -> str:
    if array.ndim == 0:
        return _element(array[()])
    return f"[{', '.join(_nested(part) for part in array)}]"


def _element(value: np.ndarray) -> str:
    kind = value.dtype.kind
    if kind == "V":
        return str(int(value.view(np.uint16)))
    if kind == "b":
        return "true" if value else "false"
    if kind in "iu":
        return str(int(value))
    if kind == "c":
        return f"({_element(value.real)}, {_element(value.imag)})"
    if np.isfinite(value):
        return f"{float(value):.17e}"
    # Infinities and NaN only exist as bit patterns.
    return f"0x{int(value.view(_BITS[value.dtype.itemsize])):0{2 * value.dtype.itemsize}X}"


def quoted(text: str) -> str:
    """A string literal."""
    if text.isascii() and text.isprintable() and not {'"', "\\"} & set(text):
        return f'"{text}"'
    out = []
    for byte in text.encode():
        char = chr(byte)
        out.append(char if 32 <= byte < 127 and char not in '"\\' else f"\\{byte:02X}")
    return f'"{"".join(out)}"'


def location(name: str, where: SourceLocation | None) -> str:
    """Text of a location that carries a name and, where known, the user's line."""
    if where is None:
        return f"loc({quoted(name)})"
    return f"loc({quoted(name)}({quoted(where.file)}:{where.line}:0))"


# Larger constants are arguments, so that code depends on the structure of a graph and not on data.
MAX_LITERAL = 16


def is_hidden_argument(v: Variable) -> bool:
    """True if a constant is passed to native code as an argument instead of being part of the code."""
    return isinstance(v, TensorConstant) and v.data.size > MAX_LITERAL


def why_not_native(node: Apply) -> str | None:
    """Reason for which a node cannot be compiled, or None when it can."""
    obstacle = getattr(node.op, "body_obstacle", None)
    if obstacle is not None:
        return str(obstacle)
    if node.op.emit is None:
        return "the op has no emit method"
    for v in (*node.inputs, *node.outputs):
        if not isinstance(v.type, TensorType):
            return f"{v.type} is not a tensor type"
    return None


ADD, SUBTRACT, MULTIPLY = addi.__name__, subi.__name__, muli.__name__
_DIVISIONS = frozenset("divsi divui floordivsi ceildivsi remsi remui".split())
# Right operands that change nothing.
_NEUTRAL = {ADD: 0, SUBTRACT: 0, MULTIPLY: 1, "floordivsi": 1, "ceildivsi": 1}


class IndexCode:
    """Mixin of `Emitter`. Values of index type are SSA names; known ones are remembered and folded."""

    raw: Callable[[str], str]
    _literals: dict[str, int | bool]
    _names: dict[tuple[str, int | str | bytes] | str, str]

    def const_index(self, value: int) -> str:
        """A constant of index type."""
        return self._constant(value, f"arith.constant {value} : index")

    def _constant(self, value: int | bool, text: str) -> str:
        name = self._names.get(text)
        if name is None:
            name = self._names[text] = self.raw(text)
            self._literals[name] = value
        return name

    def known(self, operand: str) -> int | None:
        """The value of an index operand that is a constant."""
        value = self._literals.get(operand)
        return None if value is None else int(value)

    def arith(self, name: str, a: str, b: str) -> str:
        """Integer arithmetic on index operands; ``name`` is an operation of the arith dialect, such as
        ``addi``.
        """
        x, y = self.known(a), self.known(b)
        if x is not None and y is not None and name in BINARY and not (y == 0 and name in _DIVISIONS):
            return self.const_index(BINARY[name](x, y))
        if y is not None and y == _NEUTRAL.get(name):
            return a
        if x is not None and x == _NEUTRAL.get(name) and name in (ADD, MULTIPLY):
            return b
        return self.raw(f"arith.{name} {a}, {b} : index")

    def add(self, a: str, b: str) -> str:
        """``a + b`` of index operands."""
        return self.arith(ADD, a, b)

    def subtract(self, a: str, b: str) -> str:
        """``a - b`` of index operands."""
        return self.arith(SUBTRACT, a, b)

    def multiply(self, a: str, b: str) -> str:
        """``a * b`` of index operands."""
        return self.arith(MULTIPLY, a, b)

    def compare(self, predicate: str, a: str, b: str) -> str:
        """An ``i1`` from two index operands; ``predicate`` is one of eq, ne, slt, sle, sgt, sge."""
        x, y = self.known(a), self.known(b)
        if x is not None and y is not None:
            return self.truth(bool(COMPARISONS[predicate](x, y)))
        return self.raw(f"arith.cmpi {predicate}, {a}, {b} : index")

    def truth(self, value: bool) -> str:
        """A constant ``i1``."""
        return self._constant(value, f"arith.constant {'true' if value else 'false'}")

    def both(self, a: str, b: str) -> str:
        """Logical and of two ``i1``."""
        for x, other in ((a, b), (b, a)):
            if x in self._literals:
                return other if self._literals[x] else x
        return self.raw(f"arith.andi {a}, {b} : i1")

    def select(self, condition: str, a: str, b: str) -> str:
        """``a`` if the ``i1`` condition holds, else ``b``; both of index type."""
        if condition in self._literals:
            return a if self._literals[condition] else b
        return self.raw(f"arith.select {condition}, {a}, {b} : index")


# The file of `node_line`.
NODES_FILE = "graph"


def node_line(number: int) -> SourceLocation:
    """The line that stands for a node where lines are all that a tool keeps, such as LLVM's."""
    return SourceLocation(NODES_FILE, number + 1, "")


class Emitter(IndexCode):
    """Writes the operations of one function. Operands and results are SSA names."""

    def __init__(self, nodes: Sequence[Apply] = (), *, numbered: bool = False) -> None:
        self._numbered = numbered
        self._numbers = {node: number for number, node in enumerate(nodes)}
        self.lines: list[str] = []
        self.locations: dict[str, None] = {}
        self.values: dict[Variable, str] = {}
        self._types: dict[tuple[str, tuple[int | None, ...]], str] = {}
        self._names: dict[tuple[str, int | str | bytes] | str, str] = {}
        self._literals: dict[str, int | bool] = {}
        self._indices: dict[str, str] = {}
        self._location = ""
        self._count = 0

    def at(self, number: int, node: Apply) -> None:
        """Make node ``number`` the location of what follows."""
        place = node_line(number) if self._numbered else node.location
        line = f"#n{number} = {location(f'n{number}', place)}"
        self.locations[line] = None
        self._location = f" loc(#n{number})"

    def at_node(self, node: Apply) -> None:
        """Make a node the location of what follows."""
        self.at(self._numbers[node], node)

    def node(self, node: Apply) -> None:
        """Emit a node whose inputs are emitted; its outputs get values.

        Raises:
            CompileError: its op has no ``emit``.
        """
        emit = getattr(node.op, "emit", None)
        if emit is None:
            raise CompileError(
                f"{node.op}{describe(node.location)} has no emit method, so it cannot be compiled"
            )
        self.at_node(node)
        results = emit(node, [self.operand(x) for x in node.inputs], self)
        self.values.update(zip(node.outputs, results, strict=True))

    @contextmanager
    def body(self) -> Iterator[list[str]]:
        """Collects the lines of a region. What is defined inside is unknown again afterwards."""
        outer = (self.lines, self.values, self._names, self._indices, self._location)
        self.lines, self.values = [], dict(self.values)
        self._names, self._indices = dict(self._names), dict(self._indices)
        try:
            yield self.lines
        finally:
            self.lines, self.values, self._names, self._indices, self._location = outer

    def fresh(self) -> str:
        """A new SSA name, for a block argument."""
        name = f"%{self._count}"
        self._count += 1
        return name

    def statement(self, text: str) -> None:
        """An operation without results."""
        self.lines.append(f"    {text}{self._location}")

    def type_of(self, variable: Variable) -> str:
        """Text of the MLIR type of a tensor variable."""
        type_ = variable.type
        if not isinstance(type_, TensorType):
            raise CompileError(f"{variable} of type {type_} has no representation in compiled code")
        key = type_.dtype, type_.shape
        if key not in self._types:
            self._types[key] = tensor_type(*key)
        return self._types[key]

    def raw(self, text: str) -> str:
        """An operation with one result, without the result; returns its name."""
        name = self.fresh()
        self.lines.append(f"    {name} = {text}{self._location}")
        return name

    def several(self, text: str, count: int) -> list[str]:
        """An operation with ``count`` results, without the results; returns their names."""
        name = self.fresh()
        self.lines.append(f"    {name}:{count} = {text}{self._location}")
        return [f"{name}#{i}" for i in range(count)]

    def op(
        self, name: str, operands: Sequence[str], in_types: Sequence[str], out_type: str, attrs: str = ""
    ) -> str:
        """An operation with one result, in generic form.

        Args:
            name: full name, such as ``graphc.add``.
            operands: SSA names.
            in_types: their types.
            out_type: type of the result.
            attrs: attributes without the braces, such as ``axis = 0 : i64``.

        Returns:
            The SSA name of the result.
        """
        braces = f" {{{attrs}}}" if attrs else ""
        return self.raw(f'"{name}"({", ".join(operands)}){braces} : ({", ".join(in_types)}) -> {out_type}')

    def ops(
        self,
        name: str,
        operands: Sequence[str],
        in_types: Sequence[str],
        out_types: Sequence[str],
        attrs: str = "",
    ) -> list[str]:
        """As `op`, for an operation with several results."""
        if len(out_types) == 1:
            return [self.op(name, operands, in_types, out_types[0], attrs)]
        result = self.fresh()
        braces = f" {{{attrs}}}" if attrs else ""
        types = f"({', '.join(in_types)}) -> ({', '.join(out_types)})"
        text = f'"{name}"({", ".join(operands)}){braces} : {types}'
        self.lines.append(f"    {result}:{len(out_types)} = {text}{self._location}")
        return [f"{result}#{i}" for i in range(len(out_types))]

    def check(
        self, condition: str, given: str, expected: str, message: str, error: str = "ValueError"
    ) -> None:
        """Raise at run time unless the ``i1`` condition holds.

        Args:
            condition: SSA name.
            given: index operand that replaces ``{given}`` in the message.
            expected: index operand that replaces ``{expected}``.
            message: text of the exception.
            error: name of the exception class.
        """
        if self._literals.get(condition):
            return
        self.lines.append(
            f'    "graphc.check"({condition}, {given}, {expected}) '
            f"{{message = {quoted(message)}, error = {quoted(error)}}} : (i1, index, index) -> "
            f"(){self._location}"
        )

    def dim(self, operand: str, type_text: str, axis: int) -> str:
        """The size of a dimension, of index type."""
        size = type_text[len("tensor<") :].split("x")[axis]
        if size != "?":
            return self.const_index(int(size))
        key: tuple[str, int | str | bytes] = (operand, axis)
        if key not in self._names:
            self._names[key] = self.raw(f"tensor.dim {operand}, {self.const_index(axis)} : {type_text}")
        return self._names[key]

    def dim_of(self, variable: Variable, operand: str, axis: int) -> str:
        """The size of a dimension of a variable."""
        return self.dim(operand, self.type_of(variable), axis)

    def index(self, variable: Variable, operand: str) -> str:
        """A 0-d integer tensor as an index."""
        if isinstance(variable, Constant):
            return self.const_index(int(variable.data))
        if operand not in self._indices:
            type_ = variable.type
            if type_.ndim or type_.kind != "i":
                raise CompileError(
                    f"expected a 0-d signed integer as a size or index, got {variable} of type {type_}"
                )
            element = self.raw(f"tensor.extract {operand}[] : {self.type_of(variable)}")
            self._indices[operand] = self.raw(
                f"arith.index_cast {element} : {ELEMENTS[type_.dtype]} to index"
            )
        return self._indices[operand]

    def truth_of(self, variable: Variable, operand: str) -> str:
        """A 0-d bool tensor as an ``i1``."""
        key = ("truth", operand)
        if key not in self._names:
            self._names[key] = self.raw(f"tensor.extract {operand}[] : {self.type_of(variable)}")
        return self._names[key]

    def from_index(self, index: str) -> str:
        """An index as a 0-d int64 tensor."""
        element = self.raw(f"arith.index_cast {index} : index to i64")
        operand = self.raw(f"tensor.from_elements {element} : tensor<i64>")
        self._indices[operand] = index
        return operand

    @staticmethod
    def tensor_type(dtype: str, shape: Sequence[int | None]) -> str:
        """Text of a tensor type."""
        return tensor_type(dtype, shape)

    def broadcast(self, operand: str, given: str, sizes: Sequence[str], wanted: str) -> str:
        """A tensor broadcast to index sizes of equal number; itself where its static shape already is the
        wanted one.
        """
        if given == wanted and "?" not in wanted:
            return operand
        types = [given] + ["index"] * len(sizes)
        return self.op("graphc.broadcast_to", [operand, *sizes], types, wanted)

    def cast_type(self, operand: str, given: str, wanted: str) -> str:
        """A tensor with another static shape, which nothing checks."""
        return operand if given == wanted else self.raw(f"tensor.cast {operand} : {given} to {wanted}")

    def literal(self, constant: Constant) -> str:
        """A constant of at most ``MAX_LITERAL`` elements."""
        data, type_text = constant.data, self.type_of(constant)
        key = (type_text, data.tobytes())
        if key not in self._names:
            value = f"{dense(np.ascontiguousarray(data).reshape(data.shape))} : {type_text}"
            if data.dtype.kind in "uV":
                self._names[key] = self.op("graphc.constant", (), (), type_text, f"value = {value}")
            else:
                self._names[key] = self.raw(f"arith.constant {value}")
        return self._names[key]

    def operand(self, variable: Variable) -> str:
        """The SSA name of a variable that an earlier node computed, of an argument, or of a literal."""
        name = self.values.get(variable)
        if name is not None:
            return name
        assert isinstance(variable, Constant)
        return self.literal(variable)
