# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""graphc-opt and mutated modules: a result or diagnostics, whatever the input."""

from __future__ import annotations

import io
from itertools import islice

import pytest
from fuzzing import FUZZING, examples
from mutants import Mutant, corpus, fault, mutant, run
from nested import LONG, NESTED, inputs

from graphc.artifacts.source import mlir_source
from graphc.backends import worker
from graphc_dialects.foreign import early_use, excess
from graphc_tools import _lsp_check
from graphc_tools._reduce import reduce
from graphc_tools._usage import UsageError
from graphc_tools.opt import main, odd_iterators

# A crash or a hang of the helper process is an answer too, and a wrong one.
DAILY, SECONDS = 120, 60


@pytest.mark.fuzz
@pytest.mark.parametrize("part", range(4))
def test_mutants_have_results_or_diagnostics(part):
    count = examples(DAILY, factor=40) // 4
    seeds = range(part * count, (part + 1) * count)
    faults = {seed: found for seed in seeds if (found := fault(*run(mutant(seed), SECONDS)))}
    assert not faults, "\n".join(f"mutant({seed}): {found}" for seed, found in faults.items())


@pytest.mark.fuzz
@pytest.mark.parametrize("part", range(2))
def test_what_is_nested_deeply_or_huge_has_results_or_diagnostics(part):
    """Without a signal, and in ten seconds: a quick subset in ordinary runs."""
    step = 1 if FUZZING else 5
    faults = {}
    for number, (name, text, passes) in enumerate(inputs()):
        if number % 2 == part and (number // 2) % step == 0:
            code, messages = run(Mutant(0, text, passes), 10)
            if found := fault(code, messages):
                faults[name] = found
    assert not faults, "\n".join(f"{name}: {found}" for name, found in faults.items())


@pytest.mark.parametrize(
    "name", [*NESTED, "digits", "decimals", "widths", "minus", "doubled types", "halves of pairs"]
)
def test_every_reader_of_foreign_text_names_the_limit(name, tmp_path):
    """graphc-opt in its own process, the language server, graphc-compile, the reducer."""
    text = (NESTED | LONG)[name](20_000)  # the largest limit is 10,000
    messages = io.StringIO()
    assert main(["-"], io.StringIO(text), io.StringIO(), messages) == 1
    (error,) = _lsp_check.check(text)
    assert (
        f"{error.position}: error: {error.message}" in messages.getvalue() and len(messages.getvalue()) < 5000
    )
    with pytest.raises(ValueError, match="not a module of graphc's graph stage: "):
        mlir_source("main", text, "fast_run")
    with pytest.raises(UsageError):
        reduce(text, "true", io.StringIO())


def test_a_pipeline_and_the_short_form_have_limits():
    pipeline = f"--pass-pipeline=builtin.module({'func.func(' * 20_000}cse{')' * 20_000})"
    for arguments, text in (([pipeline], "module {}"), ([], "fn f(x) = " + "(" * 5000)):
        for more in ([], ["--isolated"]):
            messages = io.StringIO()
            assert main(["-", *arguments, *more], io.StringIO(text), io.StringIO(), messages) == 1
            assert "error: " in messages.getvalue() and fault(1, messages.getvalue()) is None


@pytest.mark.parametrize("name", sorted(NESTED))
def test_what_is_within_the_limits_is_read(name):
    assert excess(NESTED[name](100)) is None


SQUARE = """func.func @main(%x: TYPE) -> TYPE {
  %0 = "graphc.sqr"(%x) : (TYPE) -> TYPE
  return %0 : TYPE
}
"""
LITERAL = """func.func @f() -> TYPE {
  %0 = arith.constant dense<1.0> : TYPE
  return %0 : TYPE
}
"""
DIM = """func.func @f(%x: tensor<?xf64>) -> index {
  %a = arith.constant AXIS : index
  %0 = tensor.dim %x, %a : tensor<?xf64>
  return %0 : index
}
"""
BUFFER_DIM = """func.func @f(%x: memref<?xf64>, %y: memref<?xf64>) {
  %a = arith.constant AXIS : index
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %x, %a : memref<?xf64>
  scf.for %i = %c0 to %n step %c1 {
    %0 = memref.load %x[%i] : memref<?xf64>
    memref.store %0, %y[%i] : memref<?xf64>
  }
  return
}
"""
DRAWS = """func.func @f(%s: tensor<13xui64>, %p: tensor<1xf64>, %n: index)
    -> (tensor<?xi64>, tensor<13xui64>) {
  %x, %next = "graphc.random"(%s, %p, %n) {distribution = "NAME", cores = array<i64: 0>, support = 0 : i64,
    operandSegmentSizes = array<i32: 1, 1, 0, 0, 1>}
    : (tensor<13xui64>, tensor<1xf64>, index) -> (tensor<?xi64>, tensor<13xui64>)
  return %x, %next : tensor<?xi64>, tensor<13xui64>
}
"""
SUM = """func.func @f(%x: tensor<3xf64>) -> tensor<f64> {
  %0 = "graphc.reduce_sum"(%x) {axes = AXES} : (tensor<3xf64>) -> tensor<f64>
  return %0 : tensor<f64>
}
"""


def donating(requests):
    return (
        f"module attributes {{graphc.donate = {requests}}} {{\n{SQUARE.replace('TYPE', 'tensor<3xf64>')}}}\n"
    )


def test_what_was_found_stays_diagnosed():
    """One module for each kind of fault that mutants have shown."""
    cases = [
        (DIM.replace("AXIS", "3"), "graphc-shape-simplification", "asks for the size of dimension 3"),
        (DIM.replace("AXIS", "-1"), "graphc-convert-to-linalg", "asks for the size of dimension -1"),
        (BUFFER_DIM.replace("AXIS", "255"), "graphc-count-work", "dimension 255 of a buffer of 1 dimensions"),
        (SQUARE.replace("TYPE", "tensor<?xindex>"), "graphc-convert-to-linalg", "element type index is not"),
        (DRAWS.replace("NAME", "h"), "graphc-convert-to-linalg{device=true}", "draws of 'h' with this"),
        (SQUARE.replace("TYPE", "tensor<2xbf16>"), "graphc-stabilize", "element type bf16 is not supported"),
        (
            SQUARE.replace("TYPE", "tensor<2xf8E5M2>"),
            "graphc-constant-folding",
            "element type f8E5M2 is not supported",
        ),
        (SQUARE.replace("TYPE", "tensor<9223372036854775807xf64>"), "graphc-fusion", "more than any memory"),
        (
            LITERAL.replace("TYPE", "tensor<4294967296xf64>"),
            "graphc-constant-folding",
            "is a literal of 4294967296",
        ),
        (SUM.replace("AXES", "array<i128: 0>"), "graphc-fusion", "array<i64: ...>"),
        (SUM.replace("AXES", "array<i64: 0>, odd = array<ui8: 1>"), "graphc-fusion", "attribute 'odd'"),
        (
            donating("[{argument = 0, results = array<i64: 7>}]"),
            "graphc-convert-to-linalg",
            "results below 1",
        ),
        (
            donating("[{argument = 9, results = array<i64: 0>}]"),
            "graphc-convert-to-linalg",
            "arguments below 1",
        ),
        (donating("true"), "graphc-convert-to-linalg", "must be a list of {argument = "),
        (donating("[{argument = 0}]"), "graphc-convert-to-linalg", "must be a list of {argument = "),
    ]
    for text, passes, message in cases:
        code, messages = run(Mutant(0, text, passes), SECONDS)
        assert code == 1 and message in messages and fault(code, messages) is None, (text, messages)


ROWS = """func.func @f(%k: tensor<?xi64>, %n: index) -> tensor<?x?xi64> {
  %s = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    %kt = "graphc.scan_seq"(%k, %t) : (tensor<?xi64>, index) -> tensor<i64>
    %number = tensor.extract %kt[] : tensor<i64>
    %steps = arith.index_cast %number : i64 to index
    %inner = "graphc.scan"(%steps) ({
    ^bb0(%u: index):
      "graphc.scan_collect"(%kt) {state = "z", keep = "steps"} : (tensor<i64>) -> ()
      "graphc.scan_end"() : () -> ()
    }) {reverse = false} : (index) -> !graphc.loop
    %y = "graphc.scan_trace"(%inner) {state = "z"} : (!graphc.loop) -> tensor<?xi64>
    "graphc.scan_collect"(%y) {state = "y", keep = "steps"} : (tensor<?xi64>) -> ()
    "graphc.scan_end"() : () -> ()
  }) {ATTRIBUTES} : (index) -> !graphc.loop
  %ys = "graphc.scan_trace"(%s) {state = "y"} : (!graphc.loop) -> tensor<?x?xi64>
  return %ys : tensor<?x?xi64>
}
"""


def test_loops_need_no_names():
    for attributes in ("reverse = false", 'name = "rows", reverse = false'):
        module = ROWS.replace("ATTRIBUTES", attributes)
        code, messages = run(Mutant(0, module, "graphc-scan-row-sizes,graphc-scan-to-map"), SECONDS)
        assert code == 0, messages


ITERATORS = """func.func @f(%x: tensor<?xf64>, %o: tensor<?xf64>) -> tensor<?xf64> {
  %0 = linalg.generic {indexing_maps = [#m, #m], iterator_types = TYPES}
      ins(%x : tensor<?xf64>) outs(%o : tensor<?xf64>) {
  ^bb0(%a: f64, %b: f64):
    linalg.yield %a : f64
  } -> tensor<?xf64>
  return %0 : tensor<?xf64>
}
"""


def test_iterator_types_that_crash_the_parser_have_diagnostics():
    """Without `--isolated` too: such texts are parsed in a helper process, others are not."""
    source = f"#m = affine_map<(i) -> (i)>\n{ITERATORS}"
    assert odd_iterators(source.replace("TYPES", '["parallel", "reduction" ]')) is None
    for types in ("[0]", '["parallel", 1 : i1]', "[unit]"):
        messages = io.StringIO()
        text = source.replace("TYPES", types)
        assert main(["-"], io.StringIO(text), io.StringIO(), messages) == 1
        # The parser reads whatever is there, which need not be the end of the process.
        assert messages.getvalue().startswith("-:") and " error: " in messages.getvalue(), types
        assert "crashed" not in messages.getvalue()
    assert odd_iterators(text) == "3:50"
    generic = io.StringIO()
    assert (
        main(["-", "--mlir-print-op-generic"], io.StringIO(source.replace("TYPES", '["parallel"]')), generic)
        == 0
    )
    again = io.StringIO()
    assert odd_iterators(generic.getvalue())  # in attributes of the dialect
    assert main(["-"], io.StringIO(generic.getvalue()), again) == 0 and "linalg.generic {" in again.getvalue()


# A region whose values an earlier one uses, and of which an error is the end.
EARLY = """func.func @f(%x: memref<?xf32>, %y: memref<?xf32>) {
  "test.op"() ({
    %0 = arith.negf %VALUE : f32
  }) : () -> ()
  linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
                  iterator_types = ["parallel"]}
      ins(%x : memref<?xf32>) outs(%y : memref<?xf32>) {
  ^bb0(%a: f32, %o: f32):
    %b, %c:2 = "test.op"() : () -> (f32, f32, f32)
    ENDING
  }
  return
}
"""


def test_what_a_text_early_use():
    """Arguments and results that are used before their definition, in regions of any operation."""
    for value in ("a", "o", "b", "c#1"):
        assert early_use(EARLY.replace("VALUE", value)), value
    for value in ("x", "y", "nowhere"):
        assert not early_use(EARLY.replace("VALUE", value)), value
    comment = EARLY.replace("%0 = arith.negf %VALUE : f32", '// %a\n"test.op"() {s = "%a"} : () -> ()')
    assert not early_use(comment)
    suspected = [module.text for module in corpus() if module.is_valid and early_use(module.text)]
    assert len(suspected) <= 5, suspected


@pytest.mark.parametrize("value", ["a", "b"])
@pytest.mark.parametrize("ending", ["^bb0(%a: f32, %o: f32):", "%b = arith.negf %a : f32", "nonsense"])
def test_a_process_that_may_be_damaged_is_used_no_more(value, ending):
    """MLIR's parser frees what the region defined, and users of it write there when they are freed."""
    text = EARLY.replace("VALUE", value).replace("ENDING", ending)
    before = worker.call("os:getpid")
    messages = io.StringIO()
    arguments = ["-", "--allow-unregistered-dialect"]
    assert main(arguments, io.StringIO(text), io.StringIO(), messages) == 1
    assert "error: " in messages.getvalue() and fault(1, messages.getvalue()) is None
    assert worker.call("os:getpid") != before
    (error, *_) = _lsp_check.check(f"// RUN: --allow-unregistered-dialect\n{text}")
    assert error.position is not None


def test_index_arithmetic_wraps():
    """A number of rows that passes find out is one that 64 bits hold."""
    text = """func.func @prefix(%n: index, %x: tensor<?xf64>, %h0: tensor<1xf64>) -> tensor<?xf64> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 9223372036854775807 : index
  %c4 = arith.constant 4 : index
  %rows = arith.addi %n, %c1 : index
  %size = arith.minsi %rows, %c4 : index
  %s = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    %x_t = "graphc.scan_seq"(%x, %t) : (tensor<?xf64>, index) -> tensor<f64>
    %h = "graphc.scan_prev"(%t) {state = "h", tap = -1 : i64} : (index) -> tensor<f64>
    %e = "graphc.add"(%h, %x_t) : (tensor<f64>, tensor<f64>) -> tensor<f64>
    "graphc.scan_carry"(%h0, %e) {state = "h", taps = array<i64: -1>, writes = array<i64: 0>, keep = "all"}
        : (tensor<1xf64>, tensor<f64>) -> ()
    "graphc.scan_end"() : () -> ()
  }) {name = "loop", reverse = false} : (index) -> !graphc.loop
  %hs = "graphc.scan_trace"(%s) {state = "h"} : (!graphc.loop) -> tensor<?xf64>
  %0 = "graphc.slice"(%hs, %c0, %size, %c1) : (tensor<?xf64>, index, index, index) -> tensor<?xf64>
  return %0 : tensor<?xf64>
}
"""
    code, messages = run(Mutant(0, text, "graphc-shape-simplification,graphc-scan-save-mem"), SECONDS)
    assert code == 0, messages


def test_mutants_reach_passes():
    """Most mutants are refused by the parser or verifiers; more than an eighth, of a sixth, are not.

    Of so many that the share does not hang on which seeds a corpus gives a result.
    """
    seeds = range(10_000, 10_480)
    taken = (seed for seed in seeds if run(mutant(seed), SECONDS)[0] == 0)
    # No more than are needed.
    enough = len(list(islice(taken, len(seeds) // 8 + 1))) > len(seeds) / 8
    assert (len(corpus()) > 200 and enough) or FUZZING
