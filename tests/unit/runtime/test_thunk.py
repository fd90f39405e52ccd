# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Thunks over registers and flags."""

import pytest

from graphc_runtime import FunctionThunk, Thunk, value_thunk


def registers(*values):
    return [[value] for value in values]


def test_the_base_is_not_lazy_and_has_no_call():
    class Nothing(Thunk):
        pass

    assert Nothing().lazy is False
    with pytest.raises(NotImplementedError, match="Nothing must define __call__"):
        Nothing()()


@pytest.mark.parametrize("count", [0, 1, 2, 3, 5])
def test_functions_of_any_number_of_inputs(count):
    given, out, flag = registers(*range(1, count + 1)), [None], [False]
    thunk = value_thunk(lambda *xs: sum(xs), given, out, flag)
    assert thunk() is None and not thunk.lazy
    assert out == [sum(range(count + 1))] and flag == [True]


def test_functions_of_several_outputs():
    out, flags = registers(None, None), [[False], [False]]
    assert FunctionThunk(divmod, registers(17, 5), out, flags)() is None
    assert out == [[3], [2]] and flags == [[True], [True]]
    with pytest.raises(ValueError):
        FunctionThunk(lambda x: (x,), registers(1), out, flags)()
