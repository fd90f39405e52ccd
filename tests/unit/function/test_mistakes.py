# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A hundred mistakes of newcomers: errors say what was given, what was expected, the line, and what to do.

The line is in the message where the error comes when a function is called, and else in Python's traceback,
which shows no frame of graphc between.
"""

from __future__ import annotations

import math
import os
import pickle
import re
import subprocess
import sys
import traceback
from pathlib import Path

import numpy as np
import pytest

import graphc
import graphc.tensor as pt

x, y, m, n = pt.vector("x"), pt.vector("y"), pt.matrix("m"), pt.matrix("n")
r, i = pt.scalar("r"), pt.iscalar("i")
w = graphc.shared(np.zeros(2), name="w")


f = graphc.function([x], x + 1, mode="fast_compile")
dvector = pt.dvector


@graphc.as_op(itypes=[dvector], otypes=[dvector])
def doubled(v):
    return v * 2


@graphc.as_op(itypes=[dvector], otypes=[dvector])
def written(v):
    v[0] = 3.0
    return v * 1


@graphc.as_op(itypes=[dvector], otypes=[dvector])
def narrowed(v):
    return v.astype("float32")


@graphc.as_op(itypes=[dvector], otypes=[pt.dscalar])
def forgetful(v):
    v.sum()


@graphc.as_op(itypes=[dvector], otypes=[dvector])
def doubled_twice(v):
    return [v, v]


def square(size, columns=None):
    return pt.matrix(shape=(size, columns or size))


def call(inputs, outputs, *values, **named):
    graphc.function(inputs, outputs, mode="fast_compile")(*values, **named)


def assign():
    x[0] = 1.0


def condition():
    return r if r > 0 else -r


def loop_while():
    k = r
    while k < 3:
        k = k + 1


def loop(step, **options):
    return graphc.scan(step, return_updates=False, **options)


# The mistake, and pieces of the message: given, expected, what to do.
BUILDING = {
    "if": (condition, "gt.out", "no value before it is run", "switch(condition, a, b)"),
    "while": (loop_while, "lt.out", "cannot be a condition", "`while_loop`"),
    "and": (lambda: (r > 0) and (r < 1), "gt.out", "cannot be a condition", "&, | and ~"),
    "for": (lambda: list(x), "x, whose length is not known", "scan(step, sequences=[...])"),
    "range": (lambda: range(i), "of i", "no value before it is run", "n_steps"),
    "float": (lambda: float(r), "float() of r", "no value before it is run", "eval()"),
    "math": (lambda: math.exp(r), "of r", "no value before it is run", "functions of graphc.tensor"),
    "len": (lambda: len(x), "len() of x", "no value before it is run", "shape[0]"),
    "in": (lambda: 1.0 in x, "`in` has no symbolic meaning", "graphc.tensor.any"),
    "assignment": (assign, "do not change", "x[index].set(value)"),
    "static shapes": (lambda: pt.ones(2) + pt.ones(3), "sizes 2 and 3", "do not broadcast", "shape (2,)"),
    "axis": (lambda: x.sum(axis=1), "axis 1", "1 dimensions", "its axes are -1 to 0"),
    "index": (lambda: x[1.5], "got 1.5", "must be an integer, slice"),
    "dimensions of joined": (lambda: pt.concatenate([x, m]), "x of type", "equal numbers", "x[None]"),
    "branches": (lambda: pt.ifelse(r > 0, x, m), "x of type", "equal numbers of dimensions"),
    "dtype's name": (lambda: pt.vector("v", dtype="float63"), "'float63'", "float32, float64"),
    "sizes of stacked": (lambda: pt.stack([x, pt.ones(2), pt.ones(3)]), "x of type", "one shape", "(3,)"),
    "ranks of stacked": (lambda: pt.stack([x, m]), "x of type", "m of type", "one shape"),
    "sizes of parts": (lambda: pt.split(pt.ones(3), [1, 1], 2), "static shape (3,)", "must be 2"),
    "operand of a power": (lambda: pt.power(x), "pow takes the operands x, y", "'y'"),
    "one operand more": (lambda: pt.power(x, 1, 2), "pow takes the operands x, y"),
    "triangle of a vector": (lambda: pt.tril(x), "tril takes", "at least two dimensions", "got x"),
    "other triangle": (lambda: pt.triu(r), "triu takes", "at least two dimensions", "got r"),
    "weights": (lambda: pt.average(x, weights=m), "must have 1 dimensions", "m of", "axis None"),
    "rows that are combined": (
        lambda: graphc.associative_scan(lambda a, b: m, x),
        *("the function of associative_scan", "1, got m of type"),
    ),
    "name": (lambda: pt.expp, "'expp'", "did you mean 'exp'?"),
    "not an array": (lambda: pt.exp("a"), "'a'", "expected a number, an array or a variable"),
    "gradient of a vector": (lambda: graphc.grad(x * 2, x), "got mul.out", "needs a scalar", ".sum()"),
    "gradient of a number": (lambda: graphc.grad(3.0, x), "got 3.0", "needs a variable"),
    "gradient by another": (lambda: graphc.grad(r**2, x), "respect to x", "does not depend", "'ignore'"),
    "outputs of a step": (
        lambda: loop(lambda a, b: (a, b, a), sequences=[x], outputs_info=[r]),
        *("returns 3 outputs", "outputs_info has 1", "None for each"),
    ),
    "shape of a state": (
        lambda: loop(lambda b: pt.concatenate([b, b]), outputs_info=[pt.ones(2)], n_steps=3),
        *("(4,)", "starts as", "Size 2 of axis 0 must stay the same"),
    ),
    "steps": (lambda: loop(lambda b: b * 2, outputs_info=[r]), "unknown", "give n_steps"),
    "step without result": (lambda: loop(lambda b: None, outputs_info=[r], n_steps=3), "None", "must return"),
    "arguments of a step": (
        lambda: loop(lambda a: a, sequences=[x], outputs_info=[r]),
        *("2 arguments (x[t], r[t-1])", "parameters are (a)", "The order is"),
    ),
    "input forgotten": (lambda: graphc.function([x], x + y), "y of type", "not among the inputs", "Add it"),
    "value forgotten": (lambda: (x + y).eval({x: [1.0]}), "y of type", "not among", "for eval(), with a key"),
    "input of no use": (lambda: graphc.function([x, y], x + 1), "the input y", "remove it"),
    "array as input": (lambda: graphc.function([np.ones(2)], x), "ndarray", "must be a variable", "vector"),
    "no list": (lambda: graphc.function(x, x + 1), "the single x", "must be a list", "write [x]"),
    "mode": (lambda: graphc.function([x], x + 1, mode="FAST"), "'FAST'", "the modes are fast_run"),
    "update of an input": (
        lambda: graphc.function([x], x, updates={x: x + 1}),
        *("got x", "only shared variables", "graphc.shared(value)"),
    ),
    "type of an update": (
        lambda: graphc.function([m], w, updates={w: m}),
        *("got m of type", "must be of its type", "shared variable w"),
    ),
    "call of a variable": (lambda: (x + y)([1.0]), "a call of add.out", "graphc.function([x], y)(value)"),
    "format": (lambda: f"{r:.3f}", "the format '.3f' of r", "no value before it is run", "eval()"),
    "keyword of function": (
        lambda: graphc.function([x], x, update={w: w + 1}),
        *("no keyword 'update'", "did you mean 'updates'?"),
    ),
    "older keyword": (
        lambda: graphc.function([x], x, allow_downcast=True),
        *("'allow_downcast'", "did you mean 'allow_input_downcast'?"),
    ),
    "keyword of nobody": (lambda: graphc.grad(r, r, zzz=1), "no keyword 'zzz'", "the keywords are cost, wrt"),
    "keyword of scan": (lambda: loop(lambda a: a, sequence=x), "'sequence'", "did you mean 'sequences'?"),
    "keyword of a rule": (lambda: graphc.optimizers.adam(w.sum(), w, lr=0.1), "'lr'", "'learning_rate'"),
    "values as inputs": (
        lambda: graphc.function({x: [1.0]}, x + 1),
        *("the key x", "names of arguments as keys", "function([x], y)(value)"),
    ),
    "name of an input": (lambda: graphc.function([x, "y"], x), "got 'y' of type str", 'vector("x")'),
    "dtype by position": (lambda: pt.matrix("a", "float32"), "got 'float32'", "matrix('a', dtype='float32')"),
    "size by position": (lambda: pt.vector("a", 3), "got 3", "vector('a', shape=(3,))"),
    "number as name": (lambda: pt.vector(3), "got 3", "must be a string"),
    "dtype's class": (lambda: pt.vector("v", dtype=list), "<class 'list'>", "float32, float64"),
    "dtype of astype": (lambda: x.astype("flaot32"), "'flaot32'", "tensors hold one of"),
    "shape": (lambda: pt.tensor("t", shape="ab"), "got 'ab'", "tuple of sizes"),
    "gradient of an op": (
        lambda: graphc.grad(doubled(x).sum(), x),
        *("the function doubled", "has no gradient", "gradient=", "vjp="),
    ),
    "gradient of a function": (
        lambda: graphc.value_and_grad(lambda v: v.sum()),
        *("the function <lambda>", "needs a variable", "graphc.jit"),
    ),
    "gradient by nothing": (lambda: graphc.grad(x.sum()), "variables to differentiate by", "grad(cost, x)"),
    "graph for jit": (
        lambda: graphc.jit(x + 1),
        "got add.out",
        "takes a function",
        "graphc.function(inputs, outputs)",
    ),
    "text for jit": (
        lambda: graphc.jit(lambda v, kind: v)(1.0, "sin"),
        *("kind is 'sin'", "arrays and numbers", "static_argnames=['kind']"),
    ),
    "if in jit": (lambda: graphc.jit(lambda v: v if v > 0 else -v)(1.0), "cannot be a condition", "switch"),
    "outputs as one": (
        lambda: graphc.scan(lambda a: [a, a + 1], x) * 2,
        *("has 2 outputs", "needs one of them", "(a, b), updates"),
    ),
    "misspelt function": (lambda: graphc.fucntion, "'fucntion'", "did you mean 'function'?"),
    "function elsewhere": (lambda: graphc.exp, "'exp'", "it is graphc.tensor.exp"),
    "function of the root": (lambda: pt.scan, "'scan'", "it is graphc.scan"),
    "function below": (lambda: pt.relu, "'relu'", "it is graphc.tensor.nn.relu"),
    "misspelt method": (lambda: x.summ(), "'summ'", "did you mean 'sum'?"),
    "function as method": (lambda: x.softplus(), "'softplus'", "graphc.tensor.softplus(x)"),
    "item": (lambda: x.item(), "'item'", "eval()"),
    "numpy": (lambda: x.numpy(), "'numpy'", "eval()"),
    "backward": (lambda: x.sum().backward(), "'backward'", "graphc.grad(cost, x)"),
    "detach": (lambda: x.detach(), "'detach'", "disconnected_grad"),
    "unsqueeze": (lambda: x.unsqueeze(0), "'unsqueeze'", "expand_dims"),
    "append": (lambda: x.append(1.0), "'append'", "concatenate"),
    "misspelt setting": (lambda: graphc.config.flotX, "'flotX'", "did you mean 'floatX'?"),
    "setting's name": (lambda: setattr(graphc.config, "floatx", "float32"), "'floatx'", "'floatX'"),
    "setting's value": (lambda: setattr(graphc.config, "floatX", "float63"), "'float63'", "one of float16"),
    "columns and rows": (lambda: square(2, 3) @ square(4), "(2, 3)", "3 and 4 differ"),
    "no number": (lambda: graphc.shared([1, "a"]), "[1, 'a']", "not an array of numbers"),
    "dimensions of a value": (lambda: w.set_value(np.ones((3, 3))), "expected 1", "got 2 with shape (3, 3)"),
    "two updates": (
        lambda: graphc.function([], [], updates=[(w, w + 1), (w, w + 2)]),
        *("variable w", "updated twice", "one expression"),
    ),
    "update without pairs": (
        lambda: graphc.function([], [], updates=[w, w + 1]),
        *("got [w, add.out]", "a dict or a list of pairs"),
    ),
    "given": (
        lambda: graphc.function([], x, givens={x: np.ones((2, 2))}),
        "given for x",
        "expected 1",
        "got 2",
    ),
    "condition": (lambda: pt.ifelse(x, r, r), "got x of type", "must be a scalar", ".all()"),
    "operands": (lambda: pt.switch(r > 0, x), "takes 3 operands", "got 2"),
    "number as index": (lambda: x[r], "got r", "must be an integer, slice"),
    "operands of stack": (lambda: pt.stack(x, m), "got x", "takes a list or tuple"),
    "operands of concatenate": (lambda: pt.concatenate(x, x), "got x", "takes a list or tuple"),
    "sequence": (
        lambda: loop(lambda a: a, sequences=3.0),
        "sequences[0] is 3.0",
        "at least one dimension",
        "non_sequences",
    ),
    "taps": (
        lambda: loop(lambda a: a, outputs_info={"initial": x, "taps": [1]}, n_steps=3),
        *("taps [1]", "must be below 0"),
    ),
    "step": (lambda: loop(3, sequences=x), "got 3", "needs a function"),
    "hessian": (lambda: graphc.hessian(x, x), "got x", "scalar (0-d) cost"),
    "jacobian": (lambda: graphc.jacobian(x, 3), "got 3", "must be a variable"),
    "donation": (lambda: graphc.function([x], x, donate=x), "the single x", "must be a list", "write [x]"),
    "output": (lambda: graphc.function([x], "x"), "got 'x'", "must be a variable"),
    "inverse of a vector": (lambda: pt.linalg.inv(x), "got x", "takes matrices"),
    "product with a number": (lambda: x @ 3, "at least one dimension", "use mul"),
    "sizes": (lambda: pt.zeros(r), "got r of dtype float64", "must be an integer"),
    "reshape": (lambda: square(2, 3).reshape((4, 2)), "shape (2, 3)", "cannot reshape", "(4, 2)"),
    "axes": (lambda: m.transpose(0, 2), "axis 2", "its axes are -2 to 1"),
    "broadcast": (lambda: pt.broadcast_to(pt.vector(shape=(3,)), (2, 4)), "of size 3", "to 4"),
    "squeeze": (lambda: square(2, 3).squeeze(0), "has size 2, not 1"),
    "function for vmap": (lambda: graphc.vmap(3), "got 3", "takes a function", "vectorize_graph"),
    "function for verify_grad": (lambda: graphc.verify_grad(3, [1.0]), "got 3", "takes a function"),
    "carry": (lambda: graphc.fori_loop(0, 3, lambda k, s: (s, s), r), "starts as *", "(*, *)", "structure"),
    "export": (lambda: graphc.export(3, "a.gcx"), "got int", "must be a compiled graphc.function"),
    "too many indices": (lambda: x[0, 1], "2 indices for x", "1 dimensions"),
    "axis as text": (lambda: pt.mean(x, axis="0"), "got '0'", "must be an integer"),
    "set without index": (lambda: pt.set_subtensor(x, 1), "got x", "an indexed variable such as x[1:]"),
    "guard": (lambda: graphc.function([x], x, nan_guard="yes"), "got 'yes'", "'off', 'warn' or 'raise'"),
    "budget": (lambda: graphc.function([x], x, memory_budget="lots"), "got 'lots'", "'64 MiB'"),
    "new value": (lambda: w.set_value("no"), "got 'no'", "expected a value for TensorType(float64, (?,))"),
    "text as index": (lambda: x["a"], "got 'a'", "must be an integer, slice"),
    "text in a loop's result": (lambda: graphc.scan(lambda a: a, x)["y"], "got 'y'", "must be an integer"),
    "text as tensor": (lambda: pt.constant("a"), "got 'a' of type str", "expected a number, an array"),
    "text as size": (lambda: x.reshape("a"), "got 'a' of type str", "expected a number, an array"),
    "and of floats": (lambda: x & y, "float64, float64", "booleans or integers", "(x > 0) & (y > 0)"),
    "not of floats": (lambda: ~x, "invert is not defined", "float64", "booleans or integers"),
    "shift of floats": (lambda: x << 2, "left_shift", "float64", "astype('int64')"),
    "rest of complex": (lambda: pt.zvector("z") % 2, "mod is", "complex128", "real numbers; x.real"),
    "decorator without types": (
        lambda: graphc.as_op(lambda v: v),
        *("got the function <lambda>", "must be types", "@graphc.as_op(itypes="),
    ),
    "load": (lambda: graphc.load, "'load'", "graphc_runtime.load(path)"),
    "folder": (
        lambda: graphc.export(f, "/no/such/folder/a.gcx"),
        *("'/no/such/folder/a.gcx'", "no folder '/no/such/folder'"),
    ),
    "function of a sparse matrix": (
        lambda: pt.exp(graphc.sparse.csr_matrix("s")),
        *("got s of type SparseCSR", "s.toarray()"),
    ),
    "sparse vector": (lambda: graphc.sparse.as_sparse_variable(np.ones(3)), "got array(", "csr_from_dense"),
    "keyword of a draw": (lambda: pt.random.normal(mean=0), "'mean'", "did you mean 'loc'?"),
    "generator of NumPy": (
        lambda: pt.random.normal(rng=np.random.default_rng(0)),
        *("got one of NumPy", "graphc.shared(generator)"),
    ),
    "gradient through draws": (
        lambda: graphc.grad(pt.random.poisson(r).sum(), r),
        *("with respect to r", "draws of discrete distributions", "disconnected_inputs='ignore'"),
    ),
    "arguments of fori_loop": (
        lambda: graphc.fori_loop(0, 3, lambda s: s + 1, r),
        *("with 2 arguments", "parameters are (s)", "the number of the iteration, the carry"),
    ),
    "ends of arange": (lambda: pt.arange(x), "got x of type", "takes 0-d", "x.shape[0]"),
    "copies": (lambda: pt.tile(x, -1), "tile", "at least 0, got -1"),
    "arguments of vmap": (lambda: graphc.vmap(lambda a, b: a)(x), "with 1 arguments", "argument: 'b'"),
    "arguments of jit": (
        lambda: graphc.jit(lambda a, b: a)(1.0),
        *("<lambda>(a, b)", "missing a required argument: 'b'"),
    ),
    "size in jit": (
        lambda: graphc.jit(lambda v: np.zeros(v.shape[0]))(np.ones(2)),
        *("not known before the call", "graphc.tensor.zeros(n)", "static_shapes=True"),
    ),
}
CALLING = {
    "dtype": (lambda: call([i], i + 1, 1.5), "got 1.5", "type TensorType(int32, ())", "allow_downcast"),
    "complex": (lambda: call([x], x + 1, np.ones(2) * 1j), "complex128", "float64", "astype('float64')"),
    "text": (lambda: call([x], x + 1, "abc"), "got 'abc'", "expected a value for"),
    "dimensions": (lambda: call([x], x + 1, np.ones((2, 2))), "got 2 with shape (2, 2)", "expected 1"),
    "too few": (lambda: call([x, y], x + y, [1.0]), "missing input 1 'y'", "of type"),
    "too many": (lambda: call([x], x + 1, [1.0], [1.0]), "takes 1 input, got 2"),
    "keyword": (lambda: call([x], x + 1, z=[1.0]), "no input named 'z'", "the names are x"),
    "twice": (lambda: call([x], x + 1, [1.0], x=[1.0]), "'x' both by position and by name"),
    "sizes": (lambda: call([x, y], x + y, [1.0, 2.0], [1.0, 2.0, 3.0]), "2 and 3", "must agree", "x, y"),
    "product": (lambda: call([m, x], m @ x, np.ones((2, 3)), [1.0]), "3 columns", "1 rows", "operands: m, x"),
    "join": (
        lambda: call([m, n], pt.concatenate([m, n]), np.ones((2, 3)), np.ones((2, 2))),
        *("has size 2 in dimension 1", "operand 0 has 3", "operands: m, n"),
    ),
    "bounds": (lambda: call([x], x[5], [1.0]), "index 5", "size 1", "operands: x"),
    "reshape": (lambda: call([x], x.reshape((2, 2)), [1.0]), "1 elements", "shape of 4 elements"),
    "variable as value": (lambda: f(x), "symbolic variable x", "expected an array", "givens="),
    "None": (lambda: f(None), "got None", "expected a value for"),
    "ragged": (lambda: f([[1], [2, 3]]), "got [[1], [2, 3]] of type list", "expected a value for"),
    "range of an integer": (
        lambda: call([i], i + 1, 2**40),
        "got 1099511627776",
        "int32",
        "allow_downcast=True",
    ),
    "written argument": (
        lambda: call([x], written(x), [1.0, 2.0]),
        *("written", "may not write into its inputs", "x.copy()", "destroy_map"),
    ),
    "dtype of an op": (
        lambda: call([x], narrowed(x), [1.0]),
        *("narrowed must return", "TensorType(float64", "dtype float32"),
    ),
    "no result": (
        lambda: call([x], forgetful(x), [1.0]),
        *("forgetful must return", "TensorType(float64, ())", "returned None", "`return`"),
    ),
    "two results": (
        lambda: call([x], doubled_twice(x), [1.0]),
        *("doubled_twice must return", "a list of 2 arrays", "as many otypes"),
    ),
    "cholesky": (lambda: call([m], pt.linalg.cholesky(m), -np.eye(2)), "cholesky", "not positive definite"),
    "scale": (lambda: call([r], pt.random.normal(0, r, size=2), -1.0), "normal", "scale < 0"),
    "buffer": (
        lambda: call([x], x + 1, [1.0], out=np.zeros(3)),
        *("out=", "must have shape (1,), got (3,)"),
    ),
    "unknown output": (
        lambda: call([x], x + 1, [1.0], outputs_wanted=[3]),
        "no output 3",
        "its outputs are 0",
    ),
    "container": (
        lambda: call([{"a": x}, y], x + y, [1.0], [2.0]),
        "inputs[0]",
        "a dict with the keys ['a']",
        "got a list",
    ),
    "short sequence": (
        lambda: call([x], loop(lambda a: a * 2, sequences=[x], n_steps=5), [1.0, 2.0]),
        *("runs 5 steps", "'x' has rows for 2 only"),
    ),
}
# What is refused before anything runs: the message has the line where the input was made.
_OF_CALLS = ("too many", "keyword", "twice", "buffer", "unknown output", "container")


@pytest.mark.parametrize("mistake", BUILDING)
def test_building(mistake):
    wrong, *pieces = BUILDING[mistake]
    with pytest.raises(
        (TypeError, ValueError, IndexError, AttributeError, NotImplementedError, OSError)
    ) as caught:
        wrong()
    assert [piece for piece in pieces if piece not in str(caught.value)] == [], caught.value
    assert __file__ in "".join(traceback.format_tb(caught.value.__traceback__))
    assert not re.search(r"0x[0-9a-fA-F]{6}", str(caught.value))


@pytest.mark.parametrize("mistake", CALLING)
def test_calling(mistake):
    wrong, *pieces = CALLING[mistake]
    with pytest.raises((TypeError, ValueError, IndexError)) as caught:
        wrong()
    assert [piece for piece in pieces if piece not in str(caught.value)] == [], caught.value
    if mistake not in _OF_CALLS:
        assert re.search(rf"{re.escape(Path(__file__).name)}:\d+", str(caught.value)), caught.value


def test_a_hundred():
    assert len(BUILDING) + len(CALLING) >= 100


SCRIPT = """
import sys
import graphc
import graphc.tensor as pt

def model(x):
    if "own" in sys.argv:
        raise KeyError("mine")
    return pt.sum(x, dim=0) if "keyword" in sys.argv else graphc.grad(x, x)

graphc.scan(model, pt.matrix("x"))
"""


@pytest.mark.parametrize("setting", ["user", "full"])
@pytest.mark.parametrize("kind", ["grad", "own", "keyword"])
def test_uncaught_errors_end_at_the_users_line(kind, setting, tmp_path):
    script = tmp_path / "model.py"
    script.write_text(SCRIPT, encoding="utf-8")
    environment = {**os.environ, "GRAPHC_TRACEBACK": setting}
    ran = subprocess.run([sys.executable, script, kind], env=environment, capture_output=True, text=True)
    assert ran.returncode == 1
    files = re.findall(r'File "([^"]+)", line', ran.stderr)
    package = str(Path(graphc.__file__).parent)
    ours = [file for file in files if file.startswith(package)]
    assert files.count(str(script)) == 2 and bool(ours) == (setting == "full")
    assert ("frames of graphc are hidden" in ran.stderr) == (setting == "user")
    text = {"grad": "grad needs a scalar", "own": "KeyError: 'mine'", "keyword": "did you mean 'axis'?"}[kind]
    assert text in ran.stderr


NOTEBOOK = """
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance(colors="nocolor", history_length=0)
shell.run_cell("import numpy as np, graphc, graphc.tensor as pt")
shell.run_cell("x = pt.vector('x'); f = graphc.function([x], pt.exp(x).sum(), mode='reference')")
print(shell.run_cell("f").result._repr_html_().startswith("<"), x := shell.user_ns["x"], x._repr_svg_())
shell.run_cell("f(np.ones((2, 2)))")
print("----- all")
shell.run_cell("graphc.config.traceback = 'full'")
shell.run_cell("f(np.ones((2, 2)))")
"""


def test_uncaught_errors_end_at_the_users_line_in_notebooks(tmp_path):
    """And what notebooks ask values for is there: docs/guide/getting-started.md."""
    pytest.importorskip("IPython", reason="the shell of notebooks comes with the extra `test`")
    environment = {**os.environ, "IPYTHONDIR": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", NOTEBOOK], env=environment, capture_output=True, text=True, timeout=100
    )
    short, _, full = done.stdout.partition("----- all")
    assert "True x None" in short and done.returncode == 0, done.stdout + done.stderr
    assert (
        "----> 1 f(np.ones((2, 2)))" in short and "expected 1 for TensorType(float64, (?,)), got 2" in short
    )
    assert os.sep + "graphc" + os.sep not in short and "are hidden" in short
    assert f"graphc{os.sep}function{os.sep}calls.py" in full and "are hidden" not in full


def test_formats_without_a_specification():
    assert f"{x}" == "x" and f"{x!r:>3}" == "  x"
    assert not hasattr(x, "no_such_name") and getattr(x, "item", None) is None
    assert type(pickle.loads(pickle.dumps(_missing(x)))) is AttributeError


def _missing(v):
    try:
        return v.no_such_name
    except AttributeError as error:
        return error


def test_none_is_in_no_shape():
    """Code for static shapes and for symbolic ones asks whether a size is unknown."""
    matrix, known = pt.matrix(), pt.tensor(shape=(None, 3))
    for shape in (matrix.shape, known.shape, pt.constant([1, 2]), pt.vector()):
        assert None not in shape and "2" not in shape
    assert None in known.type.shape and None not in pt.constant([1]).type.shape


@pytest.mark.parametrize(
    "warned",
    [
        lambda x, y: graphc.function([x, y], x, on_unused_input="warn"),
        lambda x, y: graphc.grad(x.sum(), y, disconnected_inputs="warn"),
        lambda x, y: graphc.value_and_grad(x.sum(), [y], disconnected_inputs="warn"),
        lambda x, y: graphc.scan(lambda v: v, x)[0],
    ],
)
def test_warnings_name_the_users_line(warned):
    """However many frames of graphc are between, such as those that look at keywords."""
    with pytest.warns(UserWarning) as caught:
        warned(*pt.vectors("x", "y"))
    assert [each.filename for each in caught] == [__file__]
