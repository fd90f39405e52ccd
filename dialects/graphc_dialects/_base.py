# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The dialect's namespace, and what its op classes share: diagnostics, shape checks and index builders.

Files with op classes do not postpone the evaluation of annotations: the bindings read them to define the
operations.
"""

from typing import TYPE_CHECKING, Any, TypeAlias

from graphc_dialects._mlir import ext, ir

DYNAMIC = ir.ShapedType.get_dynamic_size()


class Graphc(ext.Dialect, name="graphc"):
    """Symbolic tensor graphs."""

    _definition = ""

    @classmethod
    def _emit_module(cls) -> Any:
        """The dialect's definition in the irdl dialect."""
        with ir.Location.unknown():
            cls._definition = cls._definition or cls._written()
            return ir.Module.parse(cls._definition)

    @classmethod
    def _written(cls) -> str:
        """The text of the definition.

        The bindings emit one operation of each form, of which there are some fifty; 200 others differ from
        these in their names.
        """
        forms = {_form(op): op for op in reversed(cls.operations)}
        module = ir.Module.create()
        with ir.InsertionPoint(module.body):
            for kind in cls.types:
                kind._emit_type()
            for op in forms.values():
                op._emit_operation()
        texts = [made.operation.get_asm(print_generic_op_form=True) for made in module.body.operations]
        types, written = texts[: len(cls.types)], dict(zip(forms, texts[len(cls.types) :], strict=True))
        operations = []
        for op in cls.operations:
            form = _form(op)
            name, other = (f'sym_name = "{same._op_name}"' for same in (forms[form], op))
            operations.append(written[form].replace(name, other, 1))
        return "\n".join([f"irdl.dialect @{cls.DIALECT_NAMESPACE} {{", *types, *operations, "}"])


def _form(op: type[ext.Operation]) -> tuple[Any, ...]:
    """Properties that operations of one definition share, but for the name."""
    return tuple((type(f).__name__, f.name, f.variadicity, f.constraint) for f in op._fields)


# The bindings make the base class when the namespace is defined, and read annotations of fields to define
# operations. What the names here say precisely to type checkers, verifiers check, in better words.
if TYPE_CHECKING:
    Operation = ext.Operation
    Bit: TypeAlias = ir.IntegerType
    Tensor: TypeAlias = ir.RankedTensorType
    Flag: TypeAlias = ir.BoolAttr
    Axes: TypeAlias = ir.DenseI64ArrayAttr
else:
    Operation = Graphc.Operation
    Bit = ir.IntegerType[1]
    Tensor = Flag = Axes = Any
_FIRST: dict[Any, type] = {}
# What classes have for themselves; all else of a class that the bindings made follows from its fields.
_OWN = frozenset(("__doc__", "__module__", "__annotations__", "_op_name", "OPERATION_NAME"))


def define(name: str, base: type, fields: dict[str, Any], doc: str, module: str) -> type:
    """The class of a line of a table.

    The bindings make the first class with given fields; the others take its accessors, which is six times
    as fast.

    Args:
        name: of the operation, without the dialect's.
        base: of the class.
        fields: operands, results and attributes, as in annotations of a class.
        doc, module: of the class.
    """
    class_name = "".join(part.capitalize() for part in name.split("_")) + "Op"
    body = {"__doc__": doc, "__module__": module}
    key = base, tuple(fields.items())
    first: Any = _FIRST.get(key)
    if first is None:
        given = {**body, "__annotations__": fields}
        _FIRST[key] = cls = type(class_name, (base,), given, name=name, traits=[ext.Pure])
        return cls
    shared = {key: value for key, value in vars(first).items() if key not in _OWN}
    other: Any = type(class_name, (base,), {**shared, **body})
    other.__annotations__, other._fields, other._traits = fields, first._fields, first._traits
    other._op_name, other.OPERATION_NAME = name, f"{Graphc.DIALECT_NAMESPACE}.{name}"
    Graphc.operations.append(other)
    return other


def fail(op: Any, message: str) -> bool:
    """Reports a verifier failure at the op. The op itself must not be printed here: printing verifies."""
    op.location.emit_error(f"'{op.name}' op {message}")
    return False


def shape_text(shape: Any) -> str:
    """A shape the way types print it: `2x?x3`."""
    return "x".join("?" if size < 0 else str(size) for size in shape) or "scalar"


def tensor_types(op: Any, operands: int | None = None) -> list[Any] | None:
    """Types of the operands and the result, or None after reporting one that is no ranked tensor.

    Args:
        op: the operation being verified.
        operands: how many operands are tensors; None means all.
    """
    if not _check_counts(op):
        return None
    types = [value.type for value in op.operands]
    if operands is not None:
        types = types[:operands]
    types.append(op.results[0].type)
    for position, type_ in enumerate(types):
        if type(type_) is not ir.RankedTensorType:
            which = "result" if position == len(types) - 1 else f"operand #{position}"
            fail(op, f"{which} must be a ranked tensor, but is {type_}")
            return None
    return types


_COUNTS: dict[type, tuple[int, bool]] = {}


def _check_counts(op: Any) -> bool:
    """True if the op has as many operands as its class defines, and one result.

    Verifiers run before the checks generated from the definition, so they cannot rely on these.
    """
    cls = type(op)
    if cls not in _COUNTS:
        fields = [field for field in cls._fields if type(field).__name__ == "OperandDef"]
        single = [field for field in fields if field.variadicity.name == "single"]
        _COUNTS[cls] = len(single), len(single) < len(fields)
    expected, more = _COUNTS[cls]
    given = len(op.operands)
    if given < expected or (given > expected and not more):
        return fail(op, f"expects {'at least ' if more else ''}{expected} operands, but has {given}")
    return len(op.results) == 1 or fail(op, f"expects 1 result, but has {len(op.results)}")


def check_shape(op: Any, shape: list[int], expected: list[int]) -> bool:
    """True if a result shape does not contradict the one inferred (dynamic sizes contradict nothing)."""
    if shape == expected:
        return True
    if len(shape) != len(expected):
        return fail(op, f"result must have rank {len(expected)}, but has rank {len(shape)}")
    for axis, (have, want) in enumerate(zip(shape, expected, strict=True)):
        if have != want and have >= 0 and want >= 0:
            return fail(op, f"result dimension {axis} must be {want}, but is {have}")
    return True


def is_signless(type_: Any, width: int) -> bool:
    """True if an element type is the signless integer of that width. (Verifiers have no current context.)"""
    return isinstance(type_, ir.IntegerType) and type_.width == width and type_.is_signless


def attribute_of(op: Any, name: str) -> Any:
    """An attribute; None where there is none, or one that the bindings cannot wrap, like `array<i128: 0>`."""
    try:
        return op.attributes.get(name)
    except TypeError:
        return None


def check_axis(op: Any, name: str, rank: int) -> int | None:
    """The integer attribute `name` as a normalised axis, or None after reporting that it is not one."""
    given = attribute_of(op, name)
    if not isinstance(given, ir.IntegerAttr):
        fail(op, f"needs an integer attribute '{name}'")
        return None
    axis = int(given.value)
    if not 0 <= axis < rank:
        fail(op, f"{name} {axis} is out of range for rank {rank}")
        return None
    return axis


def array(op: Any, name: str) -> list[int] | None:
    """The values of an `array<i64: ...>` attribute, or None after reporting that it is missing."""
    given = attribute_of(op, name)
    if not isinstance(given, ir.DenseI64ArrayAttr):
        fail(op, f"needs an attribute '{name}' of the form array<i64: ...>")
        return None
    return list(given)


def check_bool(op: Any, name: str) -> bool:
    """True if the attribute is present and true or false; reports it otherwise."""
    if isinstance(attribute_of(op, name), ir.BoolAttr):
        return True
    return fail(op, f"needs a boolean attribute '{name}'")


# -- index code ------------------------------------------------------------------------------------


def wrapped(value: int) -> int:
    """The number that 64 bits hold, which is what arithmetic of the IR would have given."""
    return (value + (1 << 63)) % (1 << 64) - (1 << 63)


def const_index(value: int) -> Any:
    """`arith.constant` of index type at the current insertion point; numbers wrap like index arithmetic."""
    index = ir.IndexType.get()
    attributes = {"value": ir.IntegerAttr.get(index, wrapped(value))}
    return ir.Operation.create("arith.constant", results=[index], attributes=attributes).result


def constant_value(value: Any) -> int | None:
    """The number that an index or integer value has that is a literal; an int is its own."""
    if not isinstance(value, ir.Value):
        return value if isinstance(value, int) else None
    owner = value.owner
    if isinstance(owner, ir.Block) or owner.name != "arith.constant":
        return None
    attribute = owner.attributes["value"]
    return int(attribute.value) if isinstance(attribute, ir.IntegerAttr | ir.BoolAttr) else None


def dim_of(value: Any, axis: int) -> Any:
    """The size of a tensor along an axis: a constant if it is static, else `tensor.dim`."""
    size = value.type.shape[axis]
    if size >= 0:
        return const_index(size)
    index = ir.IndexType.get()
    return ir.Operation.create("tensor.dim", results=[index], operands=[value, const_index(axis)]).result


def add_index(a: Any, b: Any) -> Any:
    """`arith.addi` on index values."""
    return ir.Operation.create("arith.addi", results=[ir.IndexType.get()], operands=[a, b]).result


class GraphcOp(Operation):
    """Base of the dialect's operations with tensor results."""

    def reify(self, dim: int, result: int = 0) -> Any:
        """Index value with the size of result dimension `dim`, built at the current insertion point.

        Args:
            dim: axis of the result, not negative.
            result: which result.
        """
        size = self.results[result].type.shape[dim]
        if size >= 0:
            return const_index(size)
        return self.reify_result(dim, result) if result else self.reify_dynamic(dim)

    def reify_dynamic(self, dim: int) -> Any:
        """`reify` for a dimension of the first result whose size is not static."""
        raise NotImplementedError(f"{self.name} does not say how large its result is")

    def reify_result(self, dim: int, result: int) -> Any:
        """The same for another result."""
        raise NotImplementedError(f"{self.name} does not say how large its result {result} is")
