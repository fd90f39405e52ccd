# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions in other processes: pickled with their code, or inherited by a fork."""

import copy
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import graphc
import graphc.tensor as pt


def double_plus_one(x):
    return 2 * x + 1


LOADER = """
import pickle, sys
import numpy as np
{setup}
f, state = pickle.load(open({path!r}, "rb"))
print(f(np.array([1.0, 2.0])).tolist(), f(np.array([1.0, 2.0])).tolist(), state.get_value().tolist())
names = ("llvmlite", "mlir", "torch_mlir")
print([name for name in sys.modules if name.partition(".")[0] in names])
print(f.report.fast_call, bool(f.report.fallbacks))
"""


@pytest.mark.parametrize("kind", ["native", "mixed", "loop"])
def test_a_pickle_needs_no_compiler(kind, tmp_path):
    x = pt.dvector("x")
    state = graphc.shared(np.zeros(2), "state")
    y = pt.exp(x) + state
    if kind == "mixed":
        y = graphc.wrap_py(double_plus_one, [pt.dvector], [pt.dvector])(y) * 2
    if kind == "loop":
        y = graphc.scan(lambda h: pt.tanh(h), outputs_info=y, n_steps=4, return_updates=False)[-1]
    f = graphc.function([x], y, updates={state: state + x})
    path = tmp_path / "f.pickle"
    with open(path, "wb") as file:
        pickle.dump((f, state), file)
    expected = [f(np.array([1.0, 2.0])).tolist() for _ in range(2)]
    # The test module is known to the other process, for the function in it; the disk cache is switched off.
    setup = f"sys.path.insert(0, {os.path.dirname(__file__)!r})"
    environment = {**os.environ, "GRAPHC_CACHE_DIR": ""}
    command = [sys.executable, "-c", LOADER.format(setup=setup, path=str(path))]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    values, modules, report = ran.stdout.splitlines()
    assert values == f"{expected[0]} {expected[1]} [2.0, 4.0]"
    assert modules == "[]", "loading and calling must not import the compiler"
    tier = os.environ.get("GRAPHC_CALL_TIER", "struct")
    assert report == f"{kind != 'mixed' and tier == 'struct'} {kind == 'mixed'}"
    np.testing.assert_array_equal(state.get_value(), [2, 4])


def _in_child(f, state, queue):
    try:
        first = [f(np.ones(3)).tolist(), f(np.ones(3)).tolist(), state.get_value().tolist()]
        x = pt.dvector("x")
        g = graphc.function(
            [x],
            pt.cosh(x * 3).sum()
            + graphc.scan(lambda v: v * x, outputs_info=x, n_steps=3, return_updates=False)[-1],
        )
        queue.put((first, g(np.zeros(2)).tolist()))
    except BaseException as error:
        queue.put(repr(error))


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork.*:DeprecationWarning")
def test_after_a_fork_the_child_calls_and_compiles():
    x = pt.dvector("x")
    state = graphc.shared(np.zeros(3), "state")
    f = graphc.function([x], x @ x + state, updates={state: state + x})
    f(np.ones(3))
    context = multiprocessing.get_context("fork")
    queues = [context.Queue() for _ in range(3)]
    children = [context.Process(target=_in_child, args=(f, state, queue)) for queue in queues]
    with graphc.config.change_flags(cache_dir=""):
        for child in children:
            child.start()
    answers = [queue.get(timeout=60) for queue in queues]
    for child in children:
        child.join(timeout=60)
        assert child.exitcode == 0
    assert answers == [([[4.0] * 3, [5.0] * 3, [3.0] * 3], [2.0, 2.0])] * 3
    np.testing.assert_array_equal(state.get_value(), np.ones(3))
    np.testing.assert_array_equal(f(np.ones(3)), np.full(3, 4.0))


def _child_compiles(env):
    """The exit status of a child of a fork that compiles, by a function and by a tensor: 3 if it works."""
    pid = os.fork()
    if pid == 0:
        status = 9
        try:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(120)
            x = pt.dvector("x")
            status = int(graphc.function([x], x * 3 + pt.exp(x))(np.zeros(1))[0])
            status += int(env.exp(env.as_tensor([0.0, 0.0])).sum())
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork.*:DeprecationWarning")
def test_a_child_compiles_whatever_other_threads_compiled_at_the_fork(no_cache):
    env, stop, compiled = graphc.immediate.Environment(), threading.Event(), []

    def work(eager):
        while not stop.is_set():
            x = pt.dvector("x")
            n = len(compiled)
            if eager:
                env.cache_clear()
                env.as_tensor([1.0, 2.0]).sum()
            else:
                graphc.function([x], pt.exp(x) * n)
            compiled.append(n)

    threads = [threading.Thread(target=work, args=(eager,)) for eager in (False, True)]
    for thread in threads:
        thread.start()
    try:
        statuses = []
        for _ in range(3):
            before = len(compiled)
            statuses.append(_child_compiles(env))
            while len(compiled) == before:
                time.sleep(0.003)
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert statuses == [3] * 3


def _many_functions(mode):
    """Functions of all kinds, with an argument for each."""
    x, s = pt.dvector("x"), graphc.shared(np.ones(3), "s")

    @graphc.as_op([pt.dvector], [pt.dvector])
    def local(v):
        return v + 1

    rng = graphc.shared(np.random.default_rng(3), "rng")
    after, drawn = pt.random.normal(0.0, 1.0, size=(3,), rng=rng).owner.outputs
    loop = graphc.scan(lambda a: pt.tanh(a) * 2, sequences=[x], return_updates=False)
    makers = {
        "plain": (pt.exp(x) * 2, {}),
        "named": ({"a": x + 1, "b": [x, x.sum()]}, {}),
        "state": (pt.exp(x) * s, {"updates": {s: s + 1}}),
        "loop": (loop, {}),
        "op of a local function": (local(x) * 2, {}),
        "branch": (graphc.ifelse(x.sum() > 0, pt.exp(x), -x), {}),
        "draws": (x + drawn, {"updates": {rng: after}}),
        "large constant": (x * np.arange(300.0)[:3] + np.arange(300.0).sum(), {}),
    }
    return {name: graphc.function([x], out, mode=mode, **more) for name, (out, more) in makers.items()}


@pytest.mark.parametrize("mode", ["fast_run", "fast_compile", "tiered", "debug", "reference"])
def test_pickles_by_value(mode, tmp_path):
    """cloudpickle writes functions, and functions of a session that use them; also copies and pickles do."""
    cloudpickle = pytest.importorskip("cloudpickle", reason="graphc[dask] is not installed")
    functions = _many_functions(mode)
    given = np.array([1.0, 2.0, 3.0])
    by_value = {name: cloudpickle.dumps((f, lambda v, f=f: f(3 * v))) for name, f in functions.items()}
    by_name = {
        name: pickle.dumps((f, None)) for name, f in functions.items() if name != "op of a local function"
    }
    copies = {name: copy.deepcopy(f) for name, f in functions.items()}
    path = tmp_path / "functions"
    path.write_bytes(pickle.dumps([*by_value.items(), *by_name.items()]))
    code = (
        "import pickle, sys, numpy as np\n"
        f"found = pickle.load(open({str(path)!r}, 'rb'))\n"
        "given = np.array([1.0, 2.0, 3.0])\n"
        "loaded = [(name, *pickle.loads(data)) for name, data in found]\n"
        "results = [(name, f(given), g and g(given)) for name, f, g in loaded]\n"
        "sys.stdout.buffer.write(pickle.dumps(results))\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True)
    assert ran.returncode == 0, ran.stderr.decode()
    results = pickle.loads(ran.stdout)
    assert len(results) == len(by_value) + len(by_name)
    right = {name: f(given) for name, f in functions.items()}
    thrice = {name: f(3 * given) for name, f in functions.items()}
    for name, first, second in results:
        # The function that came with it has a state of its own, or shares it.
        np.testing.assert_equal(first, right[name], err_msg=name)
        assert second is None or name in ("state", "draws") or str(second) == str(thrice[name])
    for name, f in copies.items():
        np.testing.assert_equal(f(given), right[name], err_msg=name)


def test_modules_are_pickled_by_name():
    """Also those that are functions, and those under PyTensor's names, which cloudpickle looks for itself."""
    cloudpickle = pytest.importorskip("cloudpickle", reason="graphc[dask] is not installed")
    modules = [graphc.scan, graphc.function, sys.modules["graphc.tensor.nlinalg"]]
    modules += [each for name, each in sys.modules.items() if f"{name}.".startswith("graphc.")]
    assert pickle.loads(cloudpickle.dumps(modules)) == modules
    type_of = pickle.loads(cloudpickle.dumps(lambda v: pt.as_tensor(v).type().type))
    assert type_of(1.0).dtype == "float64"


@graphc.jit(static_argnames="n")
def power(x, n=2):
    return x**n


def test_functions_of_jit_are_pickled():
    """Those of a module by name, others by value, which compile where they are called."""
    cloudpickle = pytest.importorskip("cloudpickle", reason="graphc[dask] is not installed")
    power(2.0)
    for write in (pickle.dumps, cloudpickle.dumps):
        assert pickle.loads(write(power))(np.array([1.0, 3.0]), n=3).tolist() == [1, 27]
    assert pickle.loads(pickle.dumps(power)) is copy.deepcopy(power) is power
    of_session = graphc.jit(lambda x, n: pt.exp(x) * n, static_argnums=1, mode="reference")
    again = pickle.loads(cloudpickle.dumps(of_session))
    assert again(0.0, 3) == 3 and again._mode == "reference" and again.static == {"n"}


MAIN = """
import subprocess, sys
import cloudpickle
import graphc, graphc.tensor as pt

@graphc.as_op([pt.dvector], [pt.dvector])
def plus_one(v):
    return v + 1

x = pt.dvector("x")
f = graphc.function([x], plus_one(x) * 2)
data = cloudpickle.dumps(lambda v: f([v]))
code = "import pickle, sys; print(pickle.load(sys.stdin.buffer)(1.0).tolist())"
ran = subprocess.run([sys.executable, "-c", code], input=data, capture_output=True)
print(ran.stdout.decode(), ran.stderr.decode())
"""


def test_ops_of_the_main_module_go_to_other_processes(tmp_path):
    """A worker has another main module."""
    pytest.importorskip("cloudpickle", reason="graphc[dask] is not installed")
    script = tmp_path / "script.py"
    script.write_text(MAIN)
    ran = subprocess.run([sys.executable, str(script)], capture_output=True, text=True)
    assert ran.stdout.strip() == "[4.0]", ran.stdout + ran.stderr
