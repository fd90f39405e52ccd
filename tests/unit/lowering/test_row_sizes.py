# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""New rows of a loop whose size an iteration finds out are refused before they are stored.

They were computed in the memory of a row of the size that the state had, and the test of the size came after:
a larger row was written past the end of the array.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import graphc
import graphc.tensor as pt

Step = Callable[[Any, Any, Any, Any], Any]

STEPS: dict[str, Step] = {
    "elementwise": lambda k, h, big, w: pt.exp(big[:k]),
    "product": lambda k, h, big, w: pt.dot(w[:k], h),
    "cumulative": lambda k, h, big, w: pt.cumsum(big[:k]),
    "kernel": lambda k, h, big, w: pt.sort(big[:k]),
    "join": lambda k, h, big, w: pt.concatenate([pt.exp(big[: k - 1]), h[:1]]),
    "view": lambda k, h, big, w: big[:k][::-1],
    "updates": lambda k, h, big, w: pt.set_subtensor(pt.set_subtensor(pt.exp(big[:k])[0], 1.0)[1], 2.0),
    "conditional": lambda k, h, big, w: graphc.ifelse(k > 3, pt.exp(big), pt.exp(h)),
    "conditional, joined": lambda k, h, big, w: pt.concatenate(
        [graphc.ifelse(k > 3, pt.exp(big[1:]), pt.exp(h[1:])), h[:1]]
    ),
}
# What the heap holds after a row cannot be missed.
LARGE = 300_000


@pytest.mark.parametrize("keeps_all", [False, True])
@pytest.mark.parametrize("mode", ["fast_run", "fast_compile"])
@pytest.mark.parametrize("step", STEPS)
def test_a_larger_row_is_an_error_and_nothing_is_written(step: str, mode: str, keeps_all: bool) -> None:
    z, big, w, ks = pt.vector("z"), pt.vector("big"), pt.matrix("w"), pt.lvector("ks")
    rows = graphc.scan(
        lambda k, h: STEPS[step](k, h, big, w), sequences=[ks], outputs_info=[z], return_updates=False
    )
    result = rows if keeps_all else rows[-1]
    f = graphc.function([z, big, w, ks], result, mode=mode, on_unused_input="ignore")
    ones = np.ones(3)
    assert f(ones, ones, np.ones((3, 3)), np.full(4, 3)).shape == ((4, 3) if keeps_all else (3,))
    for counts in ([LARGE, 3], [3, LARGE, 3]):
        with pytest.raises(ValueError, match=f"start with size 3 in dimension 0, but go on with {LARGE}"):
            f(ones, np.ones(LARGE), np.ones((LARGE, 3)), np.array(counts))


def test_a_check_of_the_new_row_itself_comes_after_it() -> None:
    """The row is then computed apart, and copied when all is known."""
    x, n = pt.vector("x"), pt.lscalar("n")

    def step(h: Any) -> Any:
        new = pt.cumsum(h) * 0.5
        return pt.take(new, pt.arange(new.shape[0]) + pt.cast(new[0] > 100, "int64")) + new

    rows = graphc.scan(step, outputs_info=[x], n_steps=n, return_updates=False)
    wanted = graphc.function([x, n], rows, mode="reference")(np.ones(3), 5)
    for mode in ("fast_run", "fast_compile"):
        f = graphc.function([x, n], [rows, rows[-1]], mode=mode)
        np.testing.assert_allclose(f(np.ones(3), 5)[0], wanted, rtol=1e-12)
        np.testing.assert_allclose(f(np.ones(3), 5)[1], wanted[-1], rtol=1e-12)
        with pytest.raises(IndexError):
            f(np.full(3, 1000.0), 5)
