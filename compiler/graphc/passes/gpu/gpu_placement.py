# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Placement of operations on the host and on the device: what has no kernel, and why, and what goes with it,
so that few values are moved; and products of halves, which kernels have and CPUs do not.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import TypeAlias, TypeVar

import numpy as np

from graphc.ir import build, plain
from graphc.ir.build import dtype_of
from graphc.ir.constants import CONSTANTS
from graphc.ir.diagnostics import node_of
from graphc.ir.kinds import PRODUCTS, flags_of, matrix_product
from graphc.ir.rewrite import Rewriter, tensor_type
from graphc.ir.traits import EXPENSIVE, SEQUENTIAL
from graphc.ir.value import converted
from graphc.ir.views import MOVES_AXES, REPEATS, order_of, transposed_order
from graphc.ir.walk import copy_with, definition, functions, inputs_of, named_attributes, symbol_of, walk
from graphc.lowering.device_code.draws import have_kernel
from graphc.lowering.random import LIBRARY, OPERATION
from graphc.passes import Pass
from graphc_dialects._mlir import ir
from graphc_dialects.check import raises
from graphc_dialects.elementwise import ELEMENTWISE
from graphc_dialects.signatures import SIGNATURES
from graphc_runtime.record import record

# The beginning of the names of functions of the host, and the attribute that they have.
HOST = "graphc_host"
WORK = "graphc.host"
_SCALAR = ("arith.", "tensor.dim", "tensor.from_elements", *CONSTANTS)


def outline(
    main: ir.Operation, operations: Sequence[ir.Operation], name: str, reasons: Sequence[str]
) -> None:
    """Replaces operations of a function by a call of a new one, in the place of the first one.

    Args:
        main: the function around them.
        operations: in an order in which they can run; all values from outside exist before the first one,
            and all users come after it.
        name: of the new function.
        reasons: why each has no kernel; empty for those that have one.
    """
    body = _Body(operations)
    inside = {inner for op in operations for inner in [op, *walk(op)]}
    results = [result for op in operations for result in op.results]
    wanted = [r for r in results if any(use.owner.operation not in inside for use in r.uses)]
    arguments = list(body.arguments)

    def copies(given: list[ir.Value]) -> list[ir.Value]:
        new = dict(zip(arguments, given, strict=True))
        for op in body.operations:
            copy_with(op, new)
        return [new[x] for x in wanted]

    work = [(op, reason) for op, reason in zip(operations, reasons, strict=True) if reason]
    _called(main, operations[0], name, arguments, wanted, work, copies)
    for op in reversed(operations):
        op.erase()


def outline_alone(main: ir.Operation, op: ir.Operation, name: str, reason: str) -> None:
    """Replaces an operation that a library may compute, and that has no kernel for a reason, by a call of a
    new function, which is marked with what it stands for.
    """
    operands, table = list(op.operands), _table_of(op)
    if table is not None:
        # Without the library it is made, or known, where it is read.
        del operands[1]
        operands += [table.operands[2]] if table.name == _TABLE else []

    def copy(given: list[ir.Value]) -> list[ir.Value]:
        if table is not None:
            given.insert(1, _table(op, table, given))
        made = op.clone()
        for place, argument in enumerate(given[: len(op.operands)]):
            made.operands[place] = argument
        return list(made.results)

    said = {**named_attributes(op), OPERATION: ir.StringAttr.get(op.name.removeprefix("graphc."))}
    call = _called(main, op, name, operands, list(op.results), [(op, reason)], copy)
    call.attributes[LIBRARY] = ir.DictAttr.get(said)
    op.erase()


def _called(
    main: ir.Operation,
    where: ir.Operation,
    name: str,
    arguments: Sequence[ir.Value],
    results: Sequence[ir.Value],
    work: Sequence[tuple[ir.Operation, str]],
    body: Callable[[list[ir.Value]], list[ir.Value]],
) -> ir.Operation:
    """A call of a new function of the host with some arguments, instead of some results, before an operation.

    Args:
        work: operations without a kernel, and why.
        body: makes the function's results of its arguments.
    """
    types, kinds = [x.type for x in arguments], [x.type for x in results]
    attributes = {
        "sym_name": ir.StringAttr.get(name),
        "function_type": ir.TypeAttr.get(ir.FunctionType.get(types, kinds)),
        WORK: plain.write([(op.name, reason, node_of(op)) for op, reason in work]),
    }
    with ir.InsertionPoint(main), main.location:
        function = ir.Operation.create("func.func", attributes=attributes, regions=1)
    block = ir.Block.create_at_start(function.regions[0], types)
    with where.location:
        with ir.InsertionPoint(where):
            callee = ir.FlatSymbolRefAttr.get(name)
            call = build.create("func.call", kinds, arguments, callee=callee).operation
        with ir.InsertionPoint(block):
            build.create("func.return", [], body(list(block.arguments)))
    for old, new in zip(results, call.results, strict=True):
        old.replace_all_uses_with(new)
    return call


def _table_of(op: ir.Operation) -> ir.Operation | None:
    """The operation that makes the roots of unity for a transform; None if there is none."""
    if op.name.removeprefix("graphc.") not in TRANSFORMS:
        return None
    return definition(op.operands[1], _TABLE, *CONSTANTS)


def _table(op: ir.Operation, table: ir.Operation, arguments: Sequence[ir.Value]) -> ir.Value:
    """The roots of unity for a transform of arguments, at the insertion point."""
    if table.name != _TABLE:
        return table.clone().results[0]
    inverse = op.name.removeprefix("graphc.").startswith("irfft")
    rows, *others, size = arguments
    n = others[0] if inverse else build.dim(rows, len(ir.RankedTensorType(rows.type).shape) - 1)
    word = ir.IntegerType.get_signless(64)
    count = converted(n, word)
    scalar = ir.RankedTensorType.get([], word)
    made = table.clone()
    made.operands[0] = table.operands[0].owner.clone().results[0]
    made.operands[1] = build.create("tensor.from_elements", [scalar], [count]).result
    made.operands[2] = size
    made.move_after(made.operands[1].owner)
    return made.results[0]


class _Body:
    """Body of a function of the host: all its operations in order, with the numbers and constants that they
    need; arguments are values from outside.
    """

    def __init__(self, operations: Sequence[ir.Operation]) -> None:
        self.own = set(operations)
        self.arguments: dict[ir.Value, None] = {}
        self.operations: dict[ir.Operation, None] = {}
        for value in [value for op in operations for value in inputs_of(op)]:
            if isinstance(value.type, ir.RankedTensorType):
                self._need(value)
        for op in operations:
            for value in inputs_of(op):
                self._need(value)
            self.operations[op] = None

    def _need(self, value: ir.Value) -> None:
        owner = definition(value)
        if owner is not None and (owner in self.own or owner in self.operations):
            return
        if owner is None or not self._is_computed(owner):
            self.arguments[value] = None
            return
        for operand in owner.operands:
            self._need(operand)
        self.operations[owner] = None

    def _is_computed(self, op: ir.Operation) -> bool:
        """True if the function computes it itself: constants, and numbers from sizes that it knows."""
        if not op.name.startswith(_SCALAR):
            return False
        if op.name == "tensor.dim":
            made = definition(op.operands[0])
            return (made is not None and made in self.own) or op.operands[0] in self.arguments
        if op.name == "tensor.from_elements":
            return True
        others = map(definition, op.operands)
        return all(other is not None and self._is_computed(other) for other in others)


# What moving a value costs, where placing an operation on the second side costs 1.
_MOVE = 1_000_000
_ALWAYS = 1 << 60
_FIRST, _SECOND = "first", "second"

_Node: TypeAlias = Hashable
_N = TypeVar("_N", bound=Hashable)


def second_side(
    fixed: Mapping[_N, bool],
    values: Iterable[tuple[_N, Iterable[_N]]],
    ties: Iterable[tuple[_N, _N]] = (),
) -> set[_N]:
    """The nodes of the second side; of all ways to move few values, one with few of them.

    A value is moved once in a direction, however many of the other side use it: a minimum cut of a graph in
    which two nodes stand for each value, one for each direction.

    Args:
        fixed: for nodes that have no choice, whether they are on the second side.
        values: what produces each value, and what uses it.
        ties: pairs of nodes that have to be on the same side.

    Source: L. R. Ford and D. R. Fulkerson, "Maximal flow through a network", 1956; augmenting paths of least
    length as in J. Edmonds and R. M. Karp, 1972.
    """
    # Capacities that are left, by where from and where to.
    left: defaultdict[_Node, dict[_Node, int]] = defaultdict(dict)

    def add(a: _Node, b: _Node, capacity: int) -> None:
        left[a][b] = left[a].get(b, 0) + capacity
        left[b].setdefault(a, 0)

    def reached(start: _Node, capacity: Callable[[_Node, _Node], int]) -> dict[_Node, _Node]:
        """Nodes on shortest ways from one over edges with some capacity; and from where each is reached."""
        came, ahead = {start: start}, deque([start])
        while ahead:
            node = ahead.popleft()
            for other in left[node]:
                if other not in came and capacity(node, other):
                    came[other] = node
                    ahead.append(other)
        return came

    nodes: dict[_N, None] = dict.fromkeys(fixed)
    for number, (producer, users) in enumerate(values):
        others = list(dict.fromkeys(users))
        nodes.update(dict.fromkeys([producer, *others]))
        add(producer, ("to", number), _MOVE)
        add(("from", number), producer, _MOVE)
        for user in others:
            add(("to", number), user, _ALWAYS)
            add(user, ("from", number), _ALWAYS)
    for a, b in ties:
        nodes.update(dict.fromkeys([a, b]))
        add(a, b, _ALWAYS)
        add(b, a, _ALWAYS)
    for chosen in nodes:
        place = fixed.get(chosen)
        start, end = (chosen, _SECOND) if place else (_FIRST, chosen)
        add(start, end, 1 if place is None else _ALWAYS)
    while _SECOND in (came := reached(_FIRST, lambda a, b: left[a][b])):
        # As much flows as a shortest way takes.
        way: list[_Node] = [_SECOND]
        while way[-1] != _FIRST:
            way.append(came[way[-1]])
        steps = list(zip(way[1:], way[:-1], strict=True))
        amount = min(left[a][b] for a, b in steps)
        for one, other in steps:
            add(one, other, -amount)
            add(other, one, amount)
    # What still leads to the second side when nothing more flows there.
    cut = reached(_SECOND, lambda a, b: left[b][a])
    return {node for node in nodes if node in cut}


# Functions that SciPy's code computes on CPUs, in C or C++, for which there is none of our own.
SCIPY = frozenset(
    "erfi erfinv erfcinv dawsn ndtri ndtri_exp owens_t j0 j1 jv y0 y1 yv iv ive k0 k1 "
    "kv k0e k1e kve beta betaln poch binom gammainc gammaincc gammaincinv gammainccinv betainc betaincc "
    "betaincinv hyp2f1 hyp2f1_da hyp2f1_dc hyp1f1 expi exp1 ellipk ellipe ellipkm1 ellipkinc "
    "ellipeinc stdtrit ellipj_sn ellipj_cn ellipj_dn ellipj_ph sici_si sici_ci shichi_shi shichi_chi "
    "fresnel_s fresnel_c airy_ai airy_aip airy_bi airy_bip airye_ai airye_aip airye_bi airye_bip".split()
)
# Operations on core arrays (`graphc_dialects.signatures`) that passes make kernels of, and which dtypes of
# their first operand they take.
DEVICE: dict[str, Callable[[np.dtype], bool]] = {
    **dict.fromkeys(("running", "compress", "flatnonzero", "count_true"), lambda dtype: True),
    **dict.fromkeys(("sort", "argsort"), lambda dtype: dtype.kind != "c"),
    **dict.fromkeys(
        ("cholesky", "solve_triangular", "solve", "inv", "det", "slogdet"),
        lambda dtype: dtype.kind == "f" and dtype.itemsize >= 4,
    ),
}


# Operations without a kernel that a library may compute: an array of the host is moved only without it.
TRANSFORMS = frozenset(("fft", "fft_any", "fft_columns", "rfft", "rfft_any", "irfft", "irfft_any"))
BY_LIBRARY = frozenset(("eigh", "eigvalsh", "conv2d", "conv2d_input", "conv2d_filters"))
_TABLE = "graphc.fft_table"


def is_for_library(op: ir.Operation) -> bool:
    """True if a library may compute an operation, of the dtype that it has."""
    name = op.name.removeprefix("graphc.")
    if name in TRANSFORMS or name not in BY_LIBRARY:
        return name in TRANSFORMS
    dtype = dtype_of(ir.RankedTensorType(op.operands[0].type).element_type)
    return dtype.kind == "f" and dtype.itemsize >= 4


def reason(op: ir.Operation) -> str:
    """Reason for which an operation of the graph stage, or its contents, has no kernel; else empty."""
    for inner in [op, *walk(op)]:
        name = inner.name.removeprefix("graphc.")
        if name in SCIPY:
            return f"{name} is code of SciPy"
        if name in SIGNATURES:
            if name not in DEVICE:
                return f"{name} has no kernel"
            dtype = dtype_of(ir.RankedTensorType(inner.operands[0].type).element_type)
            if not DEVICE[name](dtype):
                return f"{name} of {dtype} has no kernel"
        if inner.name in SEQUENTIAL and not have_kernel(inner):
            return "draws follow one stream of bits"
    return ""


def is_movable(op: ir.Operation) -> bool:
    """True if an operation is so cheap that it may run on the host, to save a transfer."""
    if not op.name.startswith("graphc.") or not len(op.results) or len(op.regions):
        return False
    is_expensive = EXPENSIVE.get(op.name)
    if is_expensive is not None and op.name.removeprefix("graphc.") not in ELEMENTWISE and is_expensive(op):
        return False
    return all(isinstance(result.type, ir.RankedTensorType) for result in op.results)


# Arrays that need not be moved.
_EVERYWHERE = (*CONSTANTS, "tensor.from_elements")


@record()
class GpuPlacement(Pass):
    """Moves operations that have no kernel to functions of the host, `@graphc_host_0` and so on.

    That is done in `@main`, and in `@shapes`, where sizes of results depend on values. Arguments and results
    are on the device. An operation without a kernel (a factorization, SciPy's code, a
    random draw), a loop or a conditional that contains one, runs on the host. Others run there, too, where
    that saves transfers: elementwise work between two factorizations, for instance, but neither products nor
    loops. What a library may compute on the device is a function of its own, and saves nothing. Which do is a
    minimum cut: each array that is needed on both sides is moved once.

    A function takes as many operations as it can: its number is that of the changes of side on the longest
    way to it. What comes after a check in the program stays after it. Numbers are passed as numbers; sizes of
    arrays that a function is given, or makes itself, are computed in it.

    The attribute `graphc.host` of a function lists its operations that have no kernel, the reasons, and the
    nodes of the graph.
    """

    stage = "graph"

    def run(self, module: ir.Module) -> None:
        count = 0
        for function in functions(module):
            if symbol_of(function) in ("main", "shapes"):
                count += self._place(function, count)

    def _place(self, function: ir.Operation, first: int) -> int:
        """Divides a function; gives how many functions of the host are new, numbered from `first`."""
        block = function.regions[0].blocks[0]
        operations = [op.operation for op in block.operations]
        reasons = {op: reason(op) for op in operations}
        alone = [op for op in operations if is_for_library(op)]
        tables = [op for op in operations if op.name == _TABLE and _is_read_by(op, alone)]
        bound = {op for op in operations if reasons[op] and len(op.results)}.difference(alone, tables)
        if not bound and not alone:
            return 0
        host = _host_side(operations, bound, [*alone, *tables]) if bound else set()
        stages = _stages(operations, host)
        # A stable order by stage: what an operation needs is of its own stage, or of an earlier one.
        *rest, end = operations
        for op in sorted(rest, key=stages.__getitem__):
            op.move_before(end)
        groups: dict[int, list[tuple[ir.Operation, str]]] = {}
        for op in rest:
            if op in host:
                groups.setdefault(stages[op], []).append((op, reasons[op]))
        # Before a call becomes an operand of any: keys are found by what operations hold.
        calls = [(op, reasons[op]) for op in alone]
        for number, stage in enumerate(sorted(groups), first):
            own, whys = zip(*groups[stage], strict=True)
            outline(function, own, f"{HOST}_{number}", whys)
        for number, (op, why) in enumerate(calls, first + len(groups)):
            outline_alone(function, op, f"{HOST}_{number}", why)
        for op in tables:
            op.erase()
        self.count("operations of libraries", len(alone))
        self.count("functions of the host", len(groups))
        self.count("operations of the host", len(host))
        return len(groups) + len(alone)


def _is_read_by(op: ir.Operation, others: Sequence[ir.Operation]) -> bool:
    """True if nothing but some operations uses an operation's results."""
    return all(use.owner.operation in others for result in op.results for use in result.uses)


def _host_side(
    operations: list[ir.Operation], bound: set[ir.Operation], alone: Sequence[ir.Operation]
) -> set[ir.Operation]:
    """The operations that run on the host."""
    fixed: dict[ir.Operation | ir.Block, bool] = {}
    users: dict[ir.Value, list[ir.Operation | ir.Block]] = {}
    for op in operations:
        if op in bound or op in alone or not is_movable(op):
            # What reads the results of a loop is where the loop is.
            if not any(map(_is_loop, op.operands)):
                fixed[op] = op in bound
        for value in inputs_of(op):
            users.setdefault(value, []).append(op)
    arrays = {value: found for value, found in users.items() if _is_array(value)}
    values = [(_producer(value), found) for value, found in arrays.items()]
    fixed.update((producer, False) for producer, _ in values if isinstance(producer, ir.Block))
    ties = [(_producer(x), user) for x, found in users.items() if _is_loop(x) for user in found]
    return {op for op in second_side(fixed, values, ties) if isinstance(op, ir.Operation)}


def _producer(value: ir.Value) -> ir.Operation | ir.Block:
    return definition(value) or value.owner


def _is_loop(value: ir.Value) -> bool:
    """True if a value stands for a loop that has run, whose results are asked for."""
    return str(value.type) == "!graphc.loop"


def _is_array(value: ir.Value) -> bool:
    """True if a value would have to be moved: constants are on both sides."""
    return isinstance(value.type, ir.RankedTensorType) and definition(value, *_EVERYWHERE) is None


def _stages(operations: list[ir.Operation], host: set[ir.Operation]) -> dict[ir.Operation, int]:
    """The number of changes of side on the longest way to each operation; those of the host are odd.

    Numbers and constants, which both sides may have, are where their operands are.
    """
    stages: dict[ir.Operation, int] = {}
    after = 0
    for op in operations:
        made = map(definition, inputs_of(op))
        least = max((stages[other] for other in made if other is not None and other in stages), default=0)
        if any(map(_is_loop, op.operands)):
            stage = least
        elif op in host:
            stage = max(least, after)
            stage += stage % 2 == 0
        elif raises(op) or any(_is_array(r) or _is_loop(r) for r in op.results):
            stage = max(least, after)
            stage += stage % 2
        else:
            stage = least
        if raises(op):
            after = stage
        stages[op] = stage
    return stages


# -- products of halves -------------------------------------------------------------------------------------


class GpuHalfProducts(Pass):
    """Makes `matmul(cast(a), cast(b))` of halves with sums in float32 one product, which tensor cores do.

    Products of halves are exact in float32. On CPUs both sides are converted to float32 first; on a device
    that would take more memory than the product, and its units for halves would have nothing to do. A side
    that is the transpose of an array becomes a flag of the product.
    """

    stage = "graph"

    def run(self, module: ir.Module) -> None:
        for function in functions(module):
            rewriter = Rewriter(function, {name: [_of_halves] for name in PRODUCTS})
            rewriter.run()
            self.count("products", sum(rewriter.counts.values()))


def _of_halves(rewriter: Rewriter, op: ir.Operation) -> ir.Value | None:
    if not all(_is_of_halves(rewriter, value) for value in op.operands):
        return None
    (a, across_a), (b, across_b) = (_side(rewriter, _halves(rewriter, value)) for value in op.operands)
    transpose_a, transpose_b = flags_of(op)
    flags = transpose_a ^ across_a, transpose_b ^ across_b
    return matrix_product(a, b, flags, op.results[0].type, rewriter.create)


def _is_of_halves(rewriter: Rewriter, value: ir.Value) -> bool:
    """True if a matrix of float32 is made of halves."""
    op = rewriter.defs.get(value)
    if op is not None and op.name == "graphc.cast":
        return [str(x.type.element_type) for x in (op.operands[0], value)] == ["f16", "f32"]
    if op is None or not (op.name in MOVES_AXES or op.name in REPEATS):
        return False
    return _is_of_halves(rewriter, op.operands[0])


def _halves(rewriter: Rewriter, value: ir.Value) -> ir.Value:
    """These halves, moved as the matrix is."""
    op = rewriter.defs[value]
    if op.name == "graphc.cast":
        return op.operands[0]
    source = _halves(rewriter, op.operands[0])
    kind = tensor_type(list(value.type.shape), source.type.element_type)
    return rewriter.create(op.name, [source, *list(op.operands)[1:]], kind, **named_attributes(op))


def _side(rewriter: Rewriter, halves: ir.Value) -> tuple[ir.Value, bool]:
    """The array that halves are the transpose of, or they themselves, and which of the two."""
    moved = rewriter.defs.get(halves)
    rank = len(halves.type.shape)
    if moved is not None and order_of(moved) == transposed_order(rank):
        inner = moved.operands[0]
        if len(inner.type.shape) == rank:
            return inner, True
    return halves, False
