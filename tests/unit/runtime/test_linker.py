# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Eager and lazy programs: order, demand, release of values, errors, re-entrancy."""

import gc
import pickle
import threading
import weakref

import pytest

from graphc_runtime import EagerLinker, FunctionThunk, Layout, LazyLinker, Step, Thunk, make_linker
from graphc_runtime.errors import LinkError

LINKERS = [EagerLinker, LazyLinker]


class Value:
    """Something that can be referred to weakly."""

    def __init__(self, n):
        self.n = n


class Select(Thunk):
    """Output is the input with the number that input 0 has."""

    lazy = True

    def __init__(self, known, computed, inputs, outputs):
        self.known, self.computed, self.inputs, self.outputs = known, computed, inputs, outputs

    def __call__(self):
        if not self.known[0][0]:
            return [0]
        chosen = 1 + self.inputs[0][0]
        if not self.known[chosen][0]:
            return [chosen]
        self.outputs[0][0] = self.inputs[chosen][0]
        self.computed[0][0] = True
        return []


def step(function, reads, writes, log=None, **kwargs):
    """A step that calls a function of its inputs and notes its name."""

    def run(*values):
        if log is not None:
            log.append(kwargs.get("name"))
        result = function(*values)
        return result if len(writes) > 1 else [result]

    def make(known, computed, inputs, outputs):
        return FunctionThunk(run, inputs, outputs, computed)

    return Step(make, tuple(reads), tuple(writes), **kwargs)


def pickled_step(known, computed, inputs, outputs):
    return FunctionThunk(lambda x: [x + 1], inputs, outputs, computed)


@pytest.mark.parametrize("linker", LINKERS)
def test_runs_steps_over_values_and_constants(linker):
    layout = Layout(
        [step(lambda a, b: (a + b, a - b), [0, 1], [2, 3]), step(lambda x, y: x * y, [2, 3], [4])],
        inputs=[0],
        outputs=[4, 0, 1, 4],
        constants={1: 3},
    )
    run = linker(layout)
    assert run([5]) == [16, 5, 3, 16] and run([7]) == [40, 7, 3, 40]
    assert run([5], [1, 0]) == [5, 16]
    with pytest.raises((TypeError, ValueError)):
        run([])


def test_the_linker_is_chosen_by_what_thunks_are():
    plain = Layout([step(lambda x: x, [0], [1])], [0], [1])
    lazy = Layout([Step(Select, (0, 1), (2,), name="pick")], [0, 1], [2])
    assert type(make_linker(plain)) is EagerLinker and type(make_linker(lazy)) is LazyLinker
    with pytest.raises(LinkError, match="the thunk of pick is lazy"):
        EagerLinker(lazy)([0, 5])


def selection():
    """out = [a(x), b(x), c(x)][n], where b and c share s(x)."""
    log = []
    layout = Layout(
        [
            step(lambda x: x, [1], [2], log, name="s"),
            step(lambda x: x + 1, [1], [3], log, name="a"),
            step(lambda x: x + 2, [2], [4], log, name="b"),
            step(lambda x: x + 3, [2], [5], log, name="c"),
            Step(Select, (0, 3, 4, 5), (6,), name="pick"),
            step(lambda x: -x, [1], [7], log, name="other"),
        ],
        inputs=[0, 1],
        outputs=[6, 7],
    )
    return make_linker(layout), log


@pytest.mark.parametrize("n, ran", [(0, ["a"]), (1, ["s", "b"]), (2, ["s", "c"])])
def test_a_lazy_program_computes_what_is_asked_for(n, ran):
    run, log = selection()
    assert run([n, 10]) == [[11, 12, 13][n], -10]
    assert log == [*ran, "other"]
    log.clear()
    assert run([n, 10], [1]) == [-10] and log == ["other"]


def test_a_thunk_runs_once_however_many_need_it():
    log = []
    wide = [step(lambda x: x + 1, [1], [2 + i], log, name="w") for i in range(50)]
    layout = Layout(
        [step(lambda x: x, [0], [1], log, name="root"), *wide, step(lambda *x: sum(x), range(2, 52), [99])],
        [0],
        [99],
    )
    assert LazyLinker(layout)([1]) == [100] and log.count("root") == 1 and log.count("w") == 50


def test_chains_do_not_recurse():
    n = 5001
    steps = [Step(Select, (0, i + 1, i), (i + 2,)) for i in range(1, n + 1)]
    run = make_linker(Layout(steps, [0, 1, 2], [n + 2]))
    assert run([0, "x", "y"]) == ["y"]
    # The other side of each is two back.
    assert run([1, "x", "y"]) == ["x"]


@pytest.mark.parametrize("linker", LINKERS)
def test_values_are_released_when_nobody_needs_them(linker):
    alive = []

    def make(*_):
        value = Value(1)
        alive.append(weakref.ref(value))
        return value

    def count(*_):
        gc.collect()
        return sum(ref() is not None for ref in alive)

    steps = [step(make, [0], [1]), step(make, [1], [2]), step(make, [2], [3]), step(count, [3], [4])]
    result = linker(Layout(steps, [0], [4]))([0])
    assert result == [1] and all(ref() is None for ref in alive)
    # What an output needs stays until the end, and no longer.
    alive.clear()
    run = linker(Layout(steps, [0], [1, 4]))
    kept, counted = run([0])
    assert counted == 2 and alive[0]() is kept
    del kept
    assert alive[0]() is None


def test_an_unselected_branch_holds_nothing():
    seen = []

    def make(x):
        value = Value(x)
        seen.append(weakref.ref(value))
        return value

    layout = Layout(
        [
            step(make, [1], [2]),
            step(lambda v: v.n + 1, [2], [3]),
            step(lambda v: v.n + 2, [2], [4]),
            Step(Select, (0, 3, 4), (5,)),
            # Runs after the choice: by then only the branch that was not chosen could have read the value.
            step(lambda x: (x, seen[-1]() is None), [5], [6, 7]),
        ],
        [0, 1],
        [6, 7],
    )
    assert make_linker(layout)([0, 10]) == [11, True]
    assert make_linker(layout)([1, 10]) == [12, True]


@pytest.mark.parametrize("linker", LINKERS)
def test_errors_leave_nothing_behind(linker):
    held = []

    def make(x):
        value = Value(x)
        held.append(weakref.ref(value))
        return value

    def fail(value):
        if value.n < 0:
            raise ValueError("negative")
        return value.n

    run = linker(Layout([step(make, [0], [1]), step(fail, [1], [2])], [0], [2]))
    for _ in range(3):
        with pytest.raises(ValueError, match="negative"):
            run([-1])
        assert run([4]) == [4]
    gc.collect()
    assert all(ref() is None for ref in held)
    assert len(run._pool) == 1


@pytest.mark.parametrize("linker", LINKERS)
def test_programs_are_linked_for_calls_at_the_same_time(linker):
    barrier = threading.Barrier(8)
    run = linker(
        Layout(
            [
                step(lambda x: x * 2, [0], [1]),
                step(lambda x: (barrier.wait(), x)[1], [1], [2]),
                step(lambda x: x + 1, [2], [3]),
            ],
            [0],
            [3],
        )
    )
    results = {}

    def work(i):
        for k in range(20):
            results[i, k] = run([100 * i + k])

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {(i, k): [2 * (100 * i + k) + 1] for i in range(8) for k in range(20)}
    assert len(run._pool) == 8


def test_a_thunk_may_call_its_own_program():
    def fib(n):
        return n if n < 2 else run([n - 1])[0] + run([n - 2])[0]

    run = EagerLinker(Layout([step(fib, [0], [1])], [0], [1]))
    assert run([12]) == [144]


def test_memory_is_overwritten_after_its_readers_or_copied():
    log = []

    def add(values):
        log.append("add")
        values.append(1)
        return values

    def build(after):
        log.clear()
        overwrite = step(add, [2], [4], overwrites=(0,), readers=(2,), after=after)
        return make_linker(
            Layout(
                [
                    step(list, [1], [2]),
                    overwrite,
                    step(len, [2], [3], log, name="len"),
                    # Asks for the overwritten list first.
                    Step(Select, (0, 4, 3), (5,)),
                    step(lambda x, y: (x, y), [5, 3], [6]),
                ],
                [0, 1],
                [5, 3],
            )
        )

    assert build(())([0, (7,)]) == [[7, 1], 1] and log == ["add", "len"]
    assert build((2,))([0, (7,)]) == [[7, 1], 1] and log == ["len", "add"]
    assert build((2,))([1, (7,)]) == [1, 1] and log == ["len"]


def test_a_thunk_may_compute_one_output_and_need_more_for_another():
    class Parts(Thunk):
        lazy = True

        def __init__(self, known, computed, inputs, outputs):
            self.known, self.computed, self.inputs, self.outputs = known, computed, inputs, outputs

        def __call__(self):
            for i in (0, 1):
                if not self.known[i][0]:
                    return [i]
                self.outputs[i][0], self.computed[i][0] = self.inputs[i][0], True

    log = []
    steps = [
        step(lambda x: x, [0], [1], log, name="first"),
        step(lambda x: x, [0], [2], log, name="second"),
        Step(Parts, (1, 2), (3, 4)),
    ]
    run = make_linker(Layout(steps, [0], [3, 4]))
    assert run([5], [0]) == [5] and log == ["first"]
    assert run([5]) == [5, 5] and log == ["first", "first", "second"]


def test_broken_contracts_are_named():
    class Greedy(Thunk):
        lazy = True

        def __call__(self):
            return [0]

    layout = Layout([Step(lambda *_: Greedy(), (0,), (1,), name="greedy")], [0], [1])
    with pytest.raises(LinkError, match=r"greedy asks for its inputs \[0\], which are computed"):
        make_linker(layout)([1])
    with pytest.raises(LinkError, match=r"no step computes the values \[7\]"):
        LazyLinker(Layout([step(abs, [7], [1])], [0], [1]))([1])


@pytest.mark.parametrize("linker", LINKERS)
def test_linkers_pickle_without_their_programs(linker):
    run = linker(Layout([Step(pickled_step, (0,), (1,))], [0], [1]))
    assert run([1]) == [2]
    again = pickle.loads(pickle.dumps(run))
    assert again._pool == [] and again([2]) == [3]
