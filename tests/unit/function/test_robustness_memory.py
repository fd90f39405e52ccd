# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions that nobody refers to leave nothing."""

import gc
import os
import sys
import weakref

import numpy as np
import pytest

import graphc
import graphc.tensor as pt

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..", "numeric"))
import leak


def test_code_is_unmapped_when_a_function_dies():
    with leak.mapped() as alive:
        x = pt.dvector("x")
        f = graphc.function([x], pt.exp(x) * 3)
        g = f.copy()
        f(np.ones(2))
        assert alive == [1]
        del f
        gc.collect()
        np.testing.assert_allclose(g(np.zeros(2)), [3, 3])
        assert alive == [1]
        del g
        gc.collect()
        assert alive == [0]


@pytest.mark.parametrize("mode", ["fast_run", "reference"])
def test_graphs_and_values_die_with_their_function(mode):
    step = graphc.wrap_py(lambda x: x + 1, [pt.dvector], [pt.dvector])
    x = pt.dvector("x")
    state = graphc.shared(np.zeros(1000), "state")
    value = weakref.ref(state.get_value(borrow=True))
    f = graphc.function([x], step(x * 2) + state.sum(), updates={state: state + 1}, mode=mode)
    f(np.ones(3))
    parts = [weakref.ref(part) for part in (f, f.fgraph, state, x)]
    del f, state, x
    gc.collect()
    assert [part() for part in parts] == [None] * 4 and value() is None


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="memory is read from /proc")
def test_a_hundred_functions_leave_little():
    """`tests/numeric/leak.py` does a thousand, and as many that are compiled."""
    with graphc.config.change_flags(cache_dir=""), leak.mapped() as alive:
        for number in range(3):
            leak.cycle(number)
        gc.collect()
        assert alive == [0]
    with leak.mapped() as alive:
        for number in range(-10, 20):
            leak.cycle(number)
        left = sum(leak.grown(30, warm_up=10) for _ in range(4)) / 4
        assert alive == [0]
    assert left < 2 * leak.CACHED


def test_results_and_failed_calls_leave_nothing():
    x, i = pt.dvector("x"), pt.lscalar("i")
    state = graphc.shared(np.zeros(1000), "state")
    f = graphc.function([x, i], [x[i], x * 2], updates={state: state + x.sum()})
    values = np.ones(1000)
    references = sys.getrefcount(values)

    def calls():
        for _ in range(200):
            f(values, 1)
            with pytest.raises(IndexError):
                f(values, 5000)

    calls()
    gc.collect()
    blocks = sys.getallocatedblocks()
    calls()
    gc.collect()
    assert sys.getallocatedblocks() - blocks < 50
    assert sys.getrefcount(values) == references
