# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The short form, both ways: every module of the lit tests comes back as it was."""

from __future__ import annotations

import doctest
import io
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from graphc_dialects._mlir import ir
from graphc_dialects.diagnostics import collect
from graphc_dialects.dialect import new_context, operation_classes
from graphc_tools import short_form as writer
from graphc_tools import short_reader as reader
from graphc_tools._driver import split_source
from graphc_tools.opt import main
from graphc_tools.short_form import short_form
from graphc_tools.short_reader import SHORT_NAMES, ShortFormError, to_mlir

LIT = Path(__file__).resolve().parents[2] / "lit"
CONTEXT = new_context(allow_unregistered=True)
SHORT = """// graphc short form
func @main(%x: f64[?], %y: f64[?,3]) -> (f64[?], f64[]) {
  %two = 2.0: f64[1]
  %0 = exp(%x): f64[?]
  %1 = mul(%0, %two): f64[?]  // a comment
  %2 = reduce_sum(%1, axes=[0]): f64[]
  return(%1, %2)
}
"""


def modules() -> Iterator[tuple[str, ir.Module]]:
    """The valid modules of the lit tests."""
    for file in sorted(LIT.rglob("*.mlir")):
        for number, part in enumerate(split_source(file.read_text(encoding="utf-8"))):
            with collect(CONTEXT):
                try:
                    module = ir.Module.parse(part, context=CONTEXT)
                except (ir.MLIRError, RuntimeError):
                    continue
            yield f"{file.relative_to(LIT)}:{number}", module


def lines(module: ir.Module) -> list[str]:
    """Everything about a module, also where operations come from; without the module's own place."""
    text = module.operation.get_asm(print_generic_op_form=True, enable_debug_info=True, use_local_scope=True)
    return [line for line in text.splitlines() if not line.startswith("}) : () -> ()")]


def test_every_module_of_the_lit_tests_comes_back() -> None:
    count = 0
    for name, module in modules():
        text = short_form(module, locations=True)
        again = ir.Module.parse(to_mlir(text), context=CONTEXT)
        assert lines(again) == lines(module), name
        assert short_form(again, locations=True) == text, name
        count += 1
    assert count > 300


def test_types_of_operands_prefixes_and_quotes_are_left_out() -> None:
    _, short, _ = run(run(SHORT)[1], "--short")
    assert "graphc." not in short and '"' not in short and "tensor<" not in short
    assert len(short) < 0.7 * len(run(SHORT)[1])


def test_short_names_are_free() -> None:
    taken = {name.partition(".")[2] for name in operation_classes()}
    assert not taken & {*SHORT_NAMES.values(), "func"}
    assert not any("." in name for name in taken)


def run(source: str, *arguments: str) -> tuple[int, str, str]:
    stdout, stderr = io.StringIO(), io.StringIO()
    return main(list(arguments), io.StringIO(source), stdout, stderr), stdout.getvalue(), stderr.getvalue()


def test_graphc_opt_reads_and_writes_it() -> None:
    code, mlir, errors = run(SHORT)
    assert code == 0, errors
    assert '"graphc.reduce_sum"' in mlir and "dense<2.000000e+00>" in mlir
    code, short, _ = run(mlir, "--short")
    assert code == 0 and "  %3 = reduce_sum(%2, axes=[0]): f64[]\n" in short
    assert run(short, "--short")[1] == short
    code, out, _ = run(f"{SHORT}// -----\n{SHORT}", "--split-input-file", "--short", "--cse")
    assert code == 0 and out.count("reduce_sum") == 2


def test_errors_have_their_place_in_the_short_form() -> None:
    code, _, errors = run(SHORT.replace("exp(%x): f64[?]", "exp(%x): f64[?,2]"))
    assert code == 1 and errors.startswith("-:4:3: error: 'graphc.exp' op")
    assert "  %0 = exp(%x): f64[?,2]\n  ^" in errors


@pytest.mark.parametrize(
    ("given", "instead", "message"),
    [
        ("mul(%0, %two)", "mul(%0, %three)", "-:5:16: error: no value %three is defined here"),
        ("exp(%x): f64[?]", "exp(%x)", "-:4:3: error: graphc.exp has 1 results and 0 types"),
        ("axes=[0]", "axes=[0", "-:6:28: error: '[' is not closed in axes"),
        ("%1 = mul", "%0 = mul", "-:5:3: error: %0 is defined twice"),
        ("return(%1, %2)\n}", "return(%1, %2)\n", "a region has no '}'"),
        ("func @main", "func main", "-:2:6: error: expected a symbol after func, got 'm'"),
        ("%0 = exp(%x)", "%0 = exp(%x", "-:4:14: error: expected ',' or ')' in graphc.exp(...)"),
        ("%y: f64[?,3]", "%x: f64[?,3]", "%x is defined twice"),
    ],
)
def test_what_is_malformed(given: str, instead: str, message: str) -> None:
    assert given in SHORT
    code, _, errors = run(SHORT.replace(given, instead))
    assert code == 1 and message in errors, errors


def test_damaged_texts_are_read_or_refused() -> None:
    generator = random.Random(1)
    texts = [short_form(module) for _, module in modules()][::60]
    refused = 0
    for text in texts:
        for _ in range(40):
            place = generator.randrange(len(text))
            damaged = text[:place] + generator.choice('%@^(){}[]<>,:="x1 \n') + text[place + 1 :]
            try:
                to_mlir(damaged)
            except ShortFormError as error:
                refused += 1
                assert error.line >= 1 and error.column >= 1
    assert refused > 100


@pytest.mark.parametrize("module", [writer, reader])
def test_examples_run(module) -> None:
    failed, tried = doctest.testmod(module)
    assert not failed and tried
