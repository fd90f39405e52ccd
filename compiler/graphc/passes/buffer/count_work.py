# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Counts of arithmetic and of memory traffic, for ``f.report.roofline()``.

Each element that a kernel reads or writes counts once.

Counts are a tree of blocks, which sizes are put into later.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from graphc.ir import plain
from graphc.ir.diagnostics import node_of
from graphc.ir.helpers import callee_of, declared
from graphc.ir.lifetimes import VIEWS
from graphc.ir.walk import blocks_of, definition, functions, incoming, symbol_of, walk
from graphc.ir.work import Block, Kernel, Place, Work, parts_of
from graphc.library.helpers import BlockProduct, Draws, Gemm, Helper, KernelCall, ScalarCall
from graphc.lowering.math import expansions
from graphc.passes import Pass
from graphc.passes.buffer._expressions import Expressions
from graphc.passes.buffer._workspace import item_size
from graphc.passes.buffer.expand_math import ExpandMath
from graphc_dialects._mlir import ir
from graphc_dialects.signatures import SIGNATURES

_ONE = frozenset(
    f"arith.{name}" for name in "addf subf mulf divf maximumf minimumf maxnumf minnumf".split()
) | {"math.sqrt"}
_COMPLEX = {"add": 2, "sub": 2, "mul": 6, "div": 11}
_COMPLEX_FUNCTIONS = frozenset("exp expm1 log log1p sin cos tan tanh sqrt rsqrt pow atan2 abs angle".split())
# Neither arithmetic nor a function worth counting: signs and roundings.
_FREE = frozenset(f"math.{name}" for name in "absf copysign floor ceil trunc round roundeven".split())
_WIDTHS = {"f64": "f64", "f32": "f32", "f16": "f32"}
_MOVES = {"memref.load": "read", "memref.store": "written"}
LETTERS = {"s": ("f32", 1), "d": ("f64", 1), "c": ("f32", 4), "z": ("f64", 4)}


class Arithmetic:
    """Counts the arithmetic of blocks.

    Args:
        expressions: gains sizes and bounds; its variables are those of loops.
        helpers: by name, what the module declares.
    """

    def __init__(self, expressions: Expressions, helpers: Mapping[str, Helper]) -> None:
        self._expressions, self._helpers = expressions, helpers

    def block(self, operations: Sequence[ir.Operation]) -> Block:
        """The record of operations that run one after the other."""
        flops: dict[str, int] = {}
        functions: dict[str, int] = {}
        moved: dict[str, int] = {}
        parts: list[Block] = []
        for op in operations:
            if op.name in _MOVES:
                _add(moved, _MOVES[op.name], item_size(_memref_of(op).type.element_type) or 0)
            elif op.name == "memref.copy":
                parts.append(self._copy(op))
            if op.name == "func.call":
                self._call(op, functions, parts)
            elif op.name == "scf.for":
                parts.append(self._loop(op))
            elif len(op.regions):
                parts.append(self._regions(op))
            elif len(op.results):
                _count(op, flops, functions)
        return {"flops": flops, "functions": functions, "moved": moved, "parts": parts}

    def _copy(self, op: ir.Operation) -> Block:
        source = op.operands[0]
        sizes = [self._expressions.size(source, axis) for axis in range(source.type.rank)]
        item = item_size(source.type.element_type) or 0
        return {"times": sizes, "moved": {"read": item, "written": item}, "parts": []}

    def _loop(self, op: ir.Operation) -> Block:
        block = op.regions[0].blocks[0]
        variables = self._expressions.variables
        number = variables.setdefault(block.arguments[0], len(variables))
        bounds = [self._expressions.number(bound) for bound in list(op.operands)[:3]]
        return {"loop": number, "bounds": bounds, "body": self.block(operations_of(block))}

    def _regions(self, op: ir.Operation) -> Block:
        if op.name == "scf.while":
            return {"repeated": self.block([x for block in blocks_of(op) for x in operations_of(block)])}
        return {"either": [self.block(operations_of(block)) for block in blocks_of(op)]}

    def _call(self, op: ir.Operation, functions: dict[str, int], parts: list[Block]) -> None:
        helper = self._helpers.get(callee_of(op))
        if isinstance(helper, Gemm | BlockProduct):
            element, factor = LETTERS[helper.letter]
            sizes = [self._expressions.number(size) for size in product_sizes(op, helper)]
            parts.append({"times": sizes, "flops": {element: 2 * factor}, "functions": {}, "parts": []})
        elif isinstance(helper, ScalarCall):
            _add(functions, f"{helper.name} f64")
        elif isinstance(helper, KernelCall):
            parts.append({"unknown": helper.name})
        elif isinstance(helper, Draws):
            parts.append({"unknown": helper.symbol})


def operations_of(block: ir.Block) -> list[ir.Operation]:
    """The operations of a block."""
    return [op.operation for op in block.operations]


def product_sizes(op: ir.Operation, helper: Gemm | BlockProduct) -> list[ir.Value | int]:
    """Rows and columns of the result of a product, and the length of its sums."""
    return [*op.operands[2:5]] if isinstance(helper, Gemm) else [*helper.sizes]


def _memref_of(op: ir.Operation) -> ir.Value:
    return op.operands[0 if op.name == "memref.load" else 1]


def _add(counts: dict[str, int], key: str, number: int = 1) -> None:
    counts[key] = counts.get(key, 0) + number


def _count(op: ir.Operation, flops: dict[str, int], functions: dict[str, int]) -> None:
    kind = op.results[0].type
    name = op.name
    if isinstance(kind, ir.ComplexType):
        element = _WIDTHS.get(str(kind.element_type))
        short = name.removeprefix("complex.")
        if element is not None and short in _COMPLEX:
            _add(flops, element, _COMPLEX[short])
        elif element is not None and short in _COMPLEX_FUNCTIONS:
            _add(functions, f"complex {short} {element}")
        return
    element = _WIDTHS.get(str(kind))
    if element is None:
        return
    if name in _ONE:
        _add(flops, element)
    elif name == "math.fma":
        _add(flops, element, 2)
    elif name == "arith.remf":
        _add(functions, f"remainder {element}")
    elif name.startswith("math.") and name not in _FREE:
        _add(functions, f"{name.removeprefix('math.')} {element}")
    elif name in ("complex.abs", "complex.angle"):
        _add(functions, f"{name.replace('.', ' ')} {element}")


# Operations that lead from an address to what it points into, by their first operand.
_ADDRESSES = frozenset(
    {
        *VIEWS,
        *("memref.view", "memref.memory_space_cast", "memref.extract_strided_metadata"),
        *("memref.extract_aligned_pointer_as_index", "arith.index_cast", "arith.addi"),
        *("llvm.inttoptr", "llvm.getelementptr"),
    }
)


class Traffic:
    """The places that one kernel reads and writes.

    A place is a buffer with an address in it that is used again and again. It counts as many elements as the
    address has values: one for each iteration of those loops that it depends on. What a kernel has written
    before costs nothing to read, nor do buffers on the stack.

    Args:
        expressions: see `graphc.passes.buffer.count_work.Arithmetic`.
        helpers: the same.
        roots: gains the buffers, by number.

    Attributes:
        places: by what is the same for equal ones.
    """

    def __init__(
        self, expressions: Expressions, helpers: Mapping[str, Helper], roots: dict[ir.Value, int]
    ) -> None:
        self._expressions, self._helpers, self._roots = expressions, helpers, roots
        self._loops: list[ir.Operation] = []
        self._written: set[ir.Value] = set()
        self._depends: dict[ir.Value, frozenset[int]] = {}
        self.places: dict[tuple[object, ...], Place] = {}

    def visit(self, op: ir.Operation) -> None:
        """Adds what an operation, or one in it, reads and writes."""
        if op.name == "memref.load":
            self._element(op.operands[0], list(op.operands), write=False)
        elif op.name == "memref.store":
            self._element(op.operands[1], list(op.operands)[1:], write=True)
        elif op.name == "memref.copy":
            self._whole(op.operands[0], write=False)
            self._whole(op.operands[1], write=True)
        elif op.name == "func.call":
            self._call(op)
        else:
            loop = op.name in ("scf.for", "scf.while")
            if loop:
                self._loops.append(op)
            for block in blocks_of(op):
                for inner in block.operations:
                    self.visit(inner.operation)
            if loop:
                self._loops.pop()

    def _element(self, memref: ir.Value, address: list[ir.Value], *, write: bool) -> None:
        self._place(memref, item_size(memref.type.element_type) or 0, [], address, write=write)

    def _whole(self, memref: ir.Value, *, write: bool) -> None:
        sizes = [self._expressions.size(memref, axis) for axis in range(memref.type.rank)]
        self._place(memref, item_size(memref.type.element_type) or 0, sizes, [memref], write=write)

    def _call(self, op: ir.Operation) -> None:
        helper = self._helpers.get(callee_of(op))
        if isinstance(helper, Gemm | BlockProduct):
            m, n, k = (self._expressions.number(size) for size in product_sizes(op, helper))
            item = {"s": 4, "d": 8, "c": 8, "z": 16}[helper.letter]
            first = 5 if isinstance(helper, Gemm) else 0
            a, b, c = list(op.operands)[first : first + 6 : 2]
            self._place(a, item, [m, k], [a], write=False)
            self._place(b, item, [k, n], [b], write=False)
            accumulates = op.operands[first + 6].owner.operation.attributes["value"]
            if ir.BoolAttr(accumulates).value:
                self._place(c, item, [m, n], [c], write=False)
            self._place(c, item, [m, n], [c], write=True)
        elif isinstance(helper, KernelCall):
            self._kernel(op, helper)

    def _kernel(self, op: ir.Operation, helper: KernelCall) -> None:
        """Operands and results of a kernel, for each element of its batch."""
        signature = SIGNATURES[helper.name]
        cores = [*signature.operands, *signature.results]
        values = list(op.operands)
        sizes = dict(zip(signature.dims, values[len(values) - len(signature.dims) :], strict=True))
        batch = values[len(values) - len(signature.dims) - 3]
        for number, core in enumerate(cores):
            count = [self._expressions.number(size) for size in (batch, *(sizes[dim] for dim in core))]
            item = _ITEMS.get(helper.types[number], 8)
            pointer = values[number]
            self._place(pointer, item, count, [pointer], write=number >= len(signature.operands))

    def _place(
        self, source: ir.Value, item: int, count: list[int], address: list[ir.Value], *, write: bool
    ) -> None:
        root = root_of(source)
        if write:
            self._written.add(root)
        elif root in self._written:
            return
        if definition(root, "memref.alloca") is not None:
            return
        depends = frozenset[int]().union(*map(self._dependencies, address))
        key = (root, write, tuple(address), tuple(count))
        loops = [self._loop(loop) for i, loop in enumerate(self._loops) if i in depends]
        number = self._roots.setdefault(root, len(self._roots))
        place: Place = {"root": number, "written": write, "item": item, "count": count, "loops": loops}
        self.places.setdefault(key, place)

    def _loop(self, loop: ir.Operation) -> list[int]:
        """A loop as a variable and bounds; one of unknown length has bounds that nobody knows."""
        if loop.name == "scf.while":
            return [-1, *(self._expressions.number(None) for _ in range(3))]
        variables = self._expressions.variables
        variable = loop.regions[0].blocks[0].arguments[0]
        number = variables.setdefault(variable, len(variables))
        return [number, *(self._expressions.number(bound) for bound in list(loop.operands)[:3])]

    def _dependencies(self, value: ir.Value) -> frozenset[int]:
        """Positions in the loops around of those that a value changes with."""
        stack = [value]
        while stack:
            current = stack[-1]
            if current in self._depends:
                stack.pop()
                continue
            own, operands = self._direct(current)
            missing = [x for x in operands if x not in self._depends and x not in stack]
            if missing:
                stack += missing
                continue
            known = (self._depends.get(x, frozenset()) for x in operands)
            self._depends[current] = own.union(*known)
            stack.pop()
        return self._depends[value]

    def _direct(self, value: ir.Value) -> tuple[frozenset[int], list[ir.Value]]:
        """The loop that a value is an argument of, and the values that it is computed from."""
        if isinstance(value.owner, ir.Block):
            owner = value.owner.owner.operation
            if owner not in self._loops:
                return frozenset(), []
            position = self._loops.index(owner)
            if owner.name == "scf.while":
                return frozenset({position}), []
            first = value.arg_number
            more = list(owner.operands)[:3] if first == 0 else [owner.operands[2 + first]]
            return frozenset({position}), more
        return frozenset(), list(_inputs(value.owner.operation))


_ITEMS = {"float": 4, "double": 8, "i64": 8, "i32": 4, "i16": 2, "i8": 1, "i1": 1, "cfloat": 8, "cdouble": 16}


def _inputs(op: ir.Operation) -> Iterator[ir.Value]:
    yield from op.operands
    if op.name == "scf.if":
        for block in blocks_of(op):
            yield from block.operations[-1].operands


def root_of(value: ir.Value) -> ir.Value:
    """The buffer that an address points into: an argument, an allocation, or what a call or a conditional
    gave.
    """
    while True:
        op = (definition(value) or value.owner.owner).operation
        entering = incoming(value) if op.name in ("scf.for", "arith.select") else []
        if entering:
            value = entering[0]
        elif op.name in _ADDRESSES:
            value = op.operands[0]
        else:
            return value


def weights(functions: Iterable[str]) -> dict[str, int]:
    """By name as `exp f64`, the floating-point operations of functions that are no calls."""
    known = expansions()
    found = {}
    for function in functions:
        name, _, element = function.rpartition(" ")
        if f"math.{name}" in known:
            found[function] = _weight(name, element)
    return found


def _weight(name: str, element: str) -> int:
    text = f"""
        func.func @f(%x: {element}) -> {element} {{
          %y = math.{name} %x : {element}
          return %y : {element}
        }}"""
    module = ir.Module.parse(text)
    ExpandMath().run(module)
    (function,) = (op for op in walk(module.operation) if op.name == "func.func")
    counted = Arithmetic(Expressions(), {}).block(operations_of(function.regions[0].blocks[0]))
    return sum(counted["flops"].values())


WORK = "graphc.work"
_LOOPS = ("scf.for", "scf.while", "scf.parallel")
_CALLS = (Gemm, BlockProduct, KernelCall, Draws)


class CountWork(Pass):
    """Counts what each loop nest and each call of `@main` computes and moves.

    The module attribute `graphc.work` gets a record of each, in the order of the code: floating-point
    operations by element type, functions such as `exp` by name, and the elements that are read and written.
    Counts are trees of loops, whose bounds are expressions of the sizes of arguments; what runs between
    loops is a record of its own.

    * An addition, a multiplication, a division, a comparison that gives a number and a square root are one
      operation, a fused multiply-add two, a product of sizes m, n, k has 2 m n k.
    * An element that a kernel reads or writes many times counts once, and one that it reads after writing it
      only as written: the least that has to be moved if caches are large enough.
    * `weights` says how many operations the inline code of a function has.

    Changes nothing else. Runs before places in the workspace are decided, when a buffer is an allocation.

    Source: Williams, Waterman and Patterson, "Roofline: an insightful visual performance model" (2009).
    """

    stage = "buffer"

    def run(self, module: ir.Module) -> None:
        main = next((f for f in functions(module) if symbol_of(f) == "main"), None)
        if main is None:
            return
        work = _Work(declared(module))
        work.visit(operations_of(main.regions[0].blocks[0]))
        module.operation.attributes[WORK] = plain.write(work.record())
        self.count("kernels", len(work.kernels))


def attached(module: ir.Module) -> list[Work]:
    """The counts of a module; none where nobody asked for them."""
    attributes = module.operation.attributes
    return [plain.read(attributes[WORK])] if WORK in attributes else []


class _Work:
    """Records of all kernels of a function."""

    def __init__(self, helpers: Mapping[str, Helper]) -> None:
        self._helpers = helpers
        self._expressions = Expressions()
        self._roots: dict[ir.Value, int] = {}
        self._arithmetic = Arithmetic(self._expressions, helpers)
        self.kernels: list[Kernel] = []

    def visit(self, operations: list[ir.Operation]) -> None:
        """Adds the kernels among operations, also of conditionals, and one of what stands between them."""
        between = []
        for op in operations:
            if self._is_kernel(op):
                what = "loop" if op.name in _LOOPS else callee_of(op) or "copy"
                self._add(what, [op])
            elif op.name == "scf.if":
                for block in blocks_of(op):
                    self.visit(operations_of(block))
            else:
                between.append(op)
        self._add("scalars", [op for op in between if node_of(op)])

    def _is_kernel(self, op: ir.Operation) -> bool:
        if op.name == "func.call":
            return isinstance(self._helpers.get(callee_of(op)), _CALLS)
        return op.name in _LOOPS or op.name == "memref.copy"

    def _add(self, what: str, operations: list[ir.Operation]) -> None:
        traffic = Traffic(self._expressions, self._helpers, self._roots)
        for op in operations:
            traffic.visit(op)
        body = self._arithmetic.block(operations)
        places = list(traffic.places.values())
        if places or body["flops"] or body["functions"] or body["parts"]:
            nodes = dict.fromkeys(filter(None, map(node_of, _all(operations))))
            self.kernels.append({"what": what, "nodes": list(nodes), "body": body, "places": places})

    def record(self) -> Work:
        """Reads the module's attribute."""
        roots = [
            [self._expressions.size(root, axis) for axis in range(root.type.rank)]
            if isinstance(root.type, ir.MemRefType)
            else [self._expressions.number(None)]
            for root in self._roots
        ]
        named = {name for kernel in self.kernels for name in _functions(kernel["body"])}
        return {
            "expressions": self._expressions.nodes,
            "roots": roots,
            "kernels": self.kernels,
            "weights": weights(sorted(named)),
        }


def _all(operations: list[ir.Operation]) -> Iterator[ir.Operation]:
    for op in operations:
        yield op
        yield from walk(op)


def _functions(block: Block) -> Iterator[str]:
    """The functions in a record and in all of its parts."""
    yield from block.get("functions", ())
    for part in parts_of(block):
        yield from _functions(part)
