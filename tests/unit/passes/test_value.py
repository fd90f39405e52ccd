# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Values with operators: what they build, what they fold, and who may not build arithmetic otherwise."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from graphc.ir import build
from graphc.ir.value import all_of, as_index, bits_as, converted, larger, literal, parts_of, smaller
from graphc.lowering.carried import either
from graphc_dialects._base import constant_value
from graphc_dialects._mlir import ir
from graphc_runtime.index_arithmetic import BINARY, COMPARISONS, wrapped

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def block():
    """The block of a function of two sizes and numbers, in which operations are made."""
    with ir.Context(), ir.Location.unknown():
        module = ir.Module.parse("func.func @f(%a: index, %b: index, %x: f64, %i: i8, %p: i1) { return }")
        (function,) = module.body.operations
        inside = function.operation.regions[0].blocks[0]
        with ir.InsertionPoint.at_block_begin(inside):
            yield inside


class TestOperators:
    def test_formulas_are_in_the_order_in_which_they_are_written(self, block):
        a, b, *_ = block.arguments
        (a - b) * 3 + a
        names = [op.operation.name for op in block.operations]
        assert names == ["arith.subi", "arith.constant", "arith.muli", "arith.addi", "func.return"]

    def test_numbers_on_the_left(self, block):
        a, *_ = block.arguments
        assert written_name(7 - a) == "arith.subi"
        assert constant_value((7 - a).owner.operands[0]) == 7

    @pytest.mark.parametrize(
        "neutral", [lambda a: a + 0, lambda a: 0 + a, lambda a: a - 0, lambda a: a * 1, lambda a: 1 * a]
    )
    def test_what_changes_nothing_makes_nothing(self, block, neutral):
        a, *_ = block.arguments
        assert neutral(a) == a
        assert len(list(block.operations)) == 1

    @pytest.mark.parametrize("x", [0, 1, -5, 2**62, -(2**63)])
    @pytest.mark.parametrize("y", [0, 1, -1, 3, 2**62])
    def test_literals_are_folded_as_64_bits_would(self, block, x, y):
        a = as_index(x)
        for name, found in (("addi", a + y), ("subi", a - y), ("muli", a * y)):
            assert constant_value(found) == BINARY[name](x, y)
        assert constant_value(smaller(a, y)) == min(x, y)
        assert constant_value(larger(y, a)) == max(x, y)

    @pytest.mark.parametrize("x", [0, 1, 7, 2**62])
    def test_quotients_of_sizes(self, block, x):
        a, b, *_ = block.arguments
        assert constant_value(as_index(x) // 3) == x // 3
        assert constant_value(as_index(x) % 3) == x % 3
        assert a // 1 == a
        assert [written_name(q) for q in (a // b, a % 2, as_index(x) // 0)] == [
            "arith.divui",
            "arith.remui",
            "arith.divui",
        ]
        assert written_name(parts_of(a, 4)) == "arith.ceildivsi"

    @pytest.mark.parametrize("x", [0, 1, -5, 2**62])
    @pytest.mark.parametrize("y", [0, 1, -1, 3])
    def test_comparisons_of_literals(self, block, x, y):
        a = as_index(x)
        found = [a.equals(y), a.differs(y), a < y, a <= y, a > y, a >= y, a.below(y), a.above(y)]
        names = "eq ne slt sle sgt sge ult ugt".split()
        assert [constant_value(flag) for flag in found] == [COMPARISONS[name](x, y) for name in names]

    def test_flags_that_are_known_choose(self, block):
        a, b, x, _, p = block.arguments
        holds, fails = as_index(2) > 1, as_index(2) < 1
        assert build.select(holds, a, b) == a
        assert constant_value(build.select(fails, a, 7)) == 7
        assert all_of([holds, p]) == all_of([p]) == p
        assert constant_value(all_of([p, fails])) == 0
        assert constant_value(all_of([holds, holds])) == 1
        assert either(holds, [x.type], lambda: [x], lambda: pytest.fail("nothing is made of it")) == [x]
        assert constant_value(parts_of(as_index(7), 4)) == 2
        assert "scf.if" not in [op.operation.name for op in block.operations]

    def test_bits(self, block):
        i = block.arguments[3]
        assert written_name(i ^ 1) == "arith.xori"
        assert [predicate(flag) for flag in (i.below(3), i.above(3), i.differs(3))] == [6, 8, 1]
        x = block.arguments[2]
        # NaN differs from itself.
        assert predicate(x.differs(x)) == 13

    def test_numbers_alone_stay_numbers(self, block):
        assert smaller(3, 4) == 3
        assert larger(3, 4) == 4

    def test_floats_are_not_folded(self, block):
        x = block.arguments[2]
        assert written_name(x + 0.0) == "arith.addf"
        assert written_name(1.0 / x) == "arith.divf"
        assert written_name(-x) == "arith.negf"

    def test_comparisons_are_flags(self, block):
        a, b, x, *_ = block.arguments
        for flag in (a < b, a >= 3, x <= 1.0, x > x, a.equals(b), x.equals(0.0)):
            assert str(flag.type) == "i1"
        # Equality stays that of Python: values are keys.
        assert (a == b) is False
        assert {a: 1}[block.arguments[0]] == 1

    def test_integers_wrap_at_their_width(self, block):
        i = block.arguments[3]
        assert constant_value(literal(255, i.type)) == -1
        assert written_name(i >> 1) == "arith.shrui"

    def test_flags(self, block):
        p = block.arguments[4]
        assert written_name(p & p) == "arith.andi"
        assert written_name(~p) == "arith.xori"

    def test_what_there_is_not_is_named(self, block):
        with pytest.raises(TypeError, match="no truediv of values of type index"):
            block.arguments[0] / 2


class TestElements:
    def test_of_memory(self, block):
        a, b, *_ = block.arguments
        kind = ir.MemRefType.get([4, 5], ir.F32Type.get())
        memory = ir.Operation.create(
            "memref.alloc", [kind], [], {"operandSegmentSizes": no_operands()}
        ).result
        memory[[a, 1]] = memory[a, b]
        names = [op.operation.name for op in block.operations]
        assert names[1:4] == ["memref.load", "arith.constant", "memref.store"]
        with pytest.raises(TypeError, match="not iterable"):
            iter(memory)

    def test_of_tensors_at_integers(self, block):
        i = block.arguments[3]
        kind = ir.RankedTensorType.get([4], ir.F32Type.get())
        tensor = ir.Operation.create("tensor.empty", [kind], []).result
        assert written_name(tensor[i]) == "tensor.extract"
        assert written_name(tensor[i].owner.operands[1]) == "arith.index_cast"

    def test_integers_of_other_widths(self, block):
        a, _, _, i, p = block.arguments
        kinds = [ir.IntegerType.get_signless(width) for width in (1, 8, 64)]
        found = [
            written_name(converted(x, kind)) for x, kind in ((i, kinds[0]), (p, kinds[1]), (a, kinds[2]))
        ]
        assert found == ["arith.trunci", "arith.extui", "arith.index_cast"]
        assert converted(i, kinds[1]) == i

    @pytest.mark.parametrize(
        ("given", "wanted", "name"),
        [
            ("f32", "f64", "extf"),
            ("f64", "f32", "truncf"),
            ("f64", "f16", "truncf"),
            ("i64", "f32", "sitofp"),
            ("i32", "f64", "sitofp"),
            ("f64", "i64", "fptosi"),
            ("f32", "i64", "fptosi"),
        ],
    )
    def test_numbers_of_floating_point(self, block, given, wanted, name):
        x = literal(1, ir.Type.parse(given))
        found = converted(x, ir.Type.parse(wanted))
        assert (written_name(found), str(found.type)) == (f"arith.{name}", wanted)
        assert converted(x, x.type) == x
        assert written_name(bits_as(literal(1.0, ir.F32Type.get()), ir.Type.parse("i32"))) == "arith.bitcast"

    @pytest.mark.parametrize("kind", ["i8", "i64", "f32", "f64", "index"])
    def test_smaller_and_larger_of_any_number(self, block, kind):
        x, y = (ir.Operation.create("arith.constant", [t], [], {"value": v}).result for t, v in two_of(kind))
        suffix = "si" if kind[0] == "i" else "imumf"
        names = {written_name(smaller(x, y)), written_name(larger(x, y))}
        assert names <= {f"arith.min{suffix}", f"arith.max{suffix}", "arith.constant"}
        assert smaller(x, y).type == x.type


def no_operands():
    return ir.DenseI32ArrayAttr.get([0, 0])


def two_of(kind):
    kind = ir.Type.parse(kind)
    make = ir.FloatAttr.get if isinstance(kind, (ir.F32Type, ir.F64Type)) else ir.IntegerAttr.get
    return [(kind, make(kind, x)) for x in (1, 2)]


def predicate(flag):
    return int(flag.owner.attributes["predicate"].value)


def written_name(value):
    return value.owner.name


@pytest.mark.parametrize("name", [name for name in BINARY if "sh" not in name])
@pytest.mark.parametrize("a", [-(2**63), -7, 0, 5, 2**63 - 1])
@pytest.mark.parametrize("b", [-3, 1, 4])
def test_arithmetic_is_that_of_64_bits(name, a, b):
    found = BINARY[name](a, b)
    assert found == wrapped(found)
    text = f"func.func @f() -> index {{ %0 = arith.constant {a} : index %1 = arith.constant {b} : index "
    with ir.Context():
        module = ir.Module.parse(f"{text} %2 = arith.{name} %0, %1 : index return %2 : index }}")
        from graphc_dialects._mlir import passmanager

        passmanager.PassManager.parse("builtin.module(canonicalize)").run(module.operation)
        folded = re.search(r"arith\.constant (-?\d+) : index", str(module))
        # What MLIR leaves alone overflows, or is of a size whose width it does not know.
        if folded is not None and f"arith.{name}" not in str(module):
            assert int(folded[1]) == found


def sources():
    for root in ("compiler", "dialects", "runtime", "tools"):
        for path in (ROOT / root).rglob("*.py"):
            yield path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")


def test_index_arithmetic_is_written_with_operators():
    found = {path: len(re.findall(r'"(?:addi|subi|muli)"', text)) for path, text in sources()}
    assert not {path for path, count in found.items() if count}


def test_device_kernels_are_written_in_one_notation():
    """What is an operator, or a name of the notation, is not built by its name elsewhere."""
    operators = (
        "addi subi muli divui remui andi ori xori shli shrui cmpi cmpf select index_cast extui bitcast"
    )
    names = {
        "_notation.py": r'"(?:gpu\.(?:thread_id|block_id|barrier|shuffle)|vector\.(?:load|store|extract))',
        "value.py": rf'"(?:arith\.(?:{operators.replace(" ", "|")})|memref\.(?:load|store))", \[',
    }
    for path, text in sources():
        if "/passes/gpu/" in path or "/lowering/device_code/" in path:
            for home, pattern in names.items():
                assert path.endswith(home) or not re.search(pattern, text), path


def test_operators_of_values_are_in_one_class():
    """Graphs have their own, and patterns, which are graphs of rules, and symbolic sizes."""
    allowed = {
        *("graphc/graph/basic.py", "graphc/sparse/like.py", "graphc/sparse/type.py"),
        *("graphc/ir/patterns.py", "graphc/ir/size.py", "graphc/native/value.py"),
    }
    found = {
        path.removeprefix("compiler/")
        for path, text in sources()
        for x in ast.walk(ast.parse(text) if "__mul__" in text else ast.Module([], []))
        if isinstance(x, ast.FunctionDef) and x.name == "__mul__"
    }
    assert found <= allowed
