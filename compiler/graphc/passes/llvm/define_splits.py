# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions that share the ranges of a loop among threads."""

from __future__ import annotations

from graphc.ir.diagnostics import fail
from graphc.ir.helpers import declared
from graphc.ir.walk import symbol_of
from graphc.library.helpers import Split
from graphc.library.pool import SIZES, decision
from graphc.passes import Pass
from graphc.passes.llvm._kernel import SHARE, function, is_glue, split_call
from graphc_dialects._mlir import ir

# On a `@main` that calls loops without others in them.
SINGLE = "graphc.single"
# Blocks of a function with one loop: entry, head, body, end.
_ONE_LOOP = 4


class DefineSplits(Pass):
    """Defines `@graphc_split_<n>`, which parallel-loops has declared, and `@graphc_range_<n>`.

    The first is inlined: it compares the work with a threshold, and either calls the loop's body, or puts
    what the body captures into memory and has the pool (`graphc_share`) call the second for ranges of the
    loop, which calls the body. So the body is compiled once. What a body captures and does not read is left
    out. The second runs once a range and is not optimised.

    A `@main` that does little but call such loops is left as it is, too: inlined into the wrapper of the
    kernel, which LLVM then does not optimise. Of `x + 1`, that was a third of LLVM's time for the kernel. If
    none of the loops has another one in it, `@main` says so (`graphc.single`): LLVM's lower levels make the
    same code of single loops, but not of nests, where moving conditions out of loops counts.

    Products of matrices for each position of a batch are not shared where they are so large that they are
    better divided themselves.
    """

    stage = "llvm"

    def run(self, module: ir.Module) -> None:
        splits = [helper for helper in declared(module).values() if isinstance(helper, Split)]
        if not splits:
            return
        functions = {symbol_of(op.operation): op.operation for op in _functions(module)}
        for split in splits:
            if split.body not in functions:
                fail(module.operation, f"there is no function @{split.body}, which a split asks for")
        sharing = [_Sharing(split, functions[split.body]) for split in splits]
        text = [
            SHARE,
            *(f(each) for f in (_Sharing.body, _Sharing.range, _Sharing.split) for each in sharing),
        ]
        bodies = {split.body for split in splits}
        made = ir.Module.parse("\n".join(text))
        for split in splits:
            functions.pop(split.symbol).erase()
            self.count("splits")
        for op in [op.operation for op in _functions(made)]:
            if symbol_of(op) not in bodies:
                op.detach_from_parent()
                module.body.append(op)
        main = functions.get("main")
        if main is not None and "no_inline" not in main.attributes and is_glue(main):
            main.attributes["always_inline"] = ir.UnitAttr.get()
            if all(_is_short(op) for name, op in functions.items() if name not in ("main", "shapes")):
                main.attributes[SINGLE] = ir.UnitAttr.get()
            self.count("plain kernels")


def _is_short(function: ir.Operation) -> bool:
    """True if a function has one loop at most."""
    return len(list(function.regions[0].blocks)) <= _ONE_LOOP


def _functions(module: ir.Module) -> list[ir.Operation]:
    return [op for op in module.body.operations if op.operation.name == "llvm.func"]


class _Sharing:
    """The two functions around a body.

    Args:
        split: what is to be defined.
        body: the function of the loop, which takes a context, a range and what is captured.
    """

    def __init__(self, split: Split, body: ir.Operation) -> None:
        self._split = split
        captured = list(body.regions[0].blocks[0].arguments)[3:]
        self._types = [str(value.type) for value in captured]
        self._used = [any(True for _ in value.uses) for value in captured]
        # Words in the frame; pairs of numbers take two.
        self._places: dict[int, int] = {}
        self._words = 0
        for number, kind in enumerate(self._types):
            if self._used[number]:
                self._places[number] = self._words
                self._words += 2 if kind.startswith("!llvm.struct") else 1

    def body(self) -> str:
        """The declaration of the body, which has its definition already."""
        return f"llvm.func @{self._split.body}({self._kinds()}) -> i64"

    def _kinds(self) -> str:
        return ", ".join(["!llvm.ptr", "i64", "i64", *self._types])

    def split(self) -> str:
        """The text of the function that compares the work with a threshold."""
        parameters = [f"%{name}: i64" for name in SIZES]
        parameters += [f"%c{number}: {kind}" for number, kind in enumerate(self._types)]
        stores = [
            f"llvm.store %c{number}, %p{number} : {self._types[number]}, !llvm.ptr" for number in self._places
        ]
        return function(
            f"internal @{self._split.symbol}({', '.join(parameters)}) attributes {{always_inline}}",
            f"%words = llvm.mlir.constant({max(self._words, 1)} : i64) : i64",
            "%frame = llvm.alloca %words x i64 {alignment = 16 : i64} : (i64) -> !llvm.ptr",
            *decision(self._split),
            "llvm.cond_br %large, ^share, ^alone",
            "^alone:",
            *self._call(),
            "^share:",
            *self._addresses(),
            *stores,
            *split_call(self._split),
        )

    def range(self) -> str:
        """The text of the function that threads call."""
        loads = [
            f"%c{number} = llvm.load %p{number} : !llvm.ptr -> {self._types[number]}"
            for number in self._places
        ]
        head = (
            f"internal @{self._split.range}(%frame: !llvm.ptr, %lower: i64, %upper: i64) "
            "attributes {no_inline, optimize_none, no_unwind}"
        )
        return function(head, *self._addresses(), *loads, *self._call())

    def _addresses(self) -> list[str]:
        return [
            f"%p{number} = llvm.getelementptr %frame[{place}] : (!llvm.ptr) -> !llvm.ptr, i64"
            for number, place in self._places.items()
        ]

    def _call(self) -> list[str]:
        """The call of the body, and the end of the function."""
        unread = [
            f"%c{number}.unread = llvm.mlir.poison : {kind}"
            for number, kind in enumerate(self._types)
            if not self._used[number]
        ]
        passed = [f"%c{number}{'' if used else '.unread'}" for number, used in enumerate(self._used)]
        operands = ", ".join(["%nothing", "%lower", "%upper", *passed])
        return [
            "%nothing = llvm.mlir.zero : !llvm.ptr",
            *unread,
            f"%status = llvm.call @{self._split.body}({operands}) {{no_inline}} : ({self._kinds()}) -> i64",
            "llvm.return",
        ]
