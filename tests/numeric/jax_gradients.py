# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Values and gradients of the cases that JAX has, too, against JAX. Needs no MLIR: the reference mode runs.

    .venv-peers/bin/python tests/numeric/jax_gradients.py

`test_op_gradients.py` compares compiled gradients with those of the reference mode, so that they agree too.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
if __name__ == "__main__":
    sys.path[:0] = [
        str(ROOT / name) for name in ("compiler", "dialects", "runtime", "tools", "tests/numeric")
    ]

from op_runner import differentiable, free_positions, gradient_point  # noqa: E402
from op_table import CASES, Case, space  # noqa: E402

# Cases in which JAX's function is another one, and what differs.
_TRIANGLE = "JAX halves the gradient between both triangles, of which only one is read"
OTHERWISE = {
    "gamma": "JAX's has no derivative at negative numbers",
    "spence": "JAX's derivative is NaN near 1",
    **dict.fromkeys(("linalg.eigh", "linalg.eigvalsh", "linalg.solve:pos", "linalg.solve:sym"), _TRIANGLE),
}


class NotInJax(Exception):
    """JAX has no such function, or not with these arguments."""


def load_cases() -> list[Case]:
    """The cases that are compared."""
    import op_cases_arrays
    import op_cases_elementwise
    import op_cases_indexing
    import op_cases_linalg
    import op_cases_nn
    import op_cases_reductions
    import op_cases_special

    modules = (op_cases_arrays, op_cases_elementwise, op_cases_indexing, op_cases_linalg, op_cases_nn)
    assert all((*modules, op_cases_reductions, op_cases_special))
    return [c for c in CASES if c.jax and free_positions(c) and c.name not in OTHERWISE]


def in_jax(case: Case) -> tuple[list[Any], list[Any]]:
    """Values, and gradients of the sum of their squares, by JAX.

    Raises:
        NotInJax: it has no such function.
    """
    import jax

    free = free_positions(case)
    point = gradient_point(case)
    fixed = [np.asarray(x) for x in _arguments(case)]
    call = case.jax if callable(case.jax) else case.call

    def values(*xs: Any) -> list[Any]:
        arguments: list[Any] = [jax.numpy.asarray(x) for x in fixed]
        for position, x in zip(free, xs, strict=True):
            arguments[position] = x
        found = call(space(case.where, 2), *arguments)
        listed = list(found) if isinstance(found, tuple | list) else [found]
        return [y for y in listed if y.dtype.kind in "fc"]

    def cost(*xs: Any) -> Any:
        return sum((abs(y) ** 2).sum() if y.dtype.kind == "c" else (y * y).sum() for y in values(*xs))

    try:
        return values(*point), list(jax.grad(cost, argnums=tuple(range(len(free))))(*point))
    except (AttributeError, NotImplementedError, TypeError, ValueError) as error:
        raise NotInJax(f"{type(error).__name__}: {error}") from error


def _arguments(case: Case) -> list[np.ndarray]:
    n = max(min(case.sizes, key=lambda size: abs(size - 3)), 1)
    return [a.array("float64", n) for a in case.arguments]


def in_graphc(case: Case) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """The same by graphc, in the reference mode."""
    import graphc
    import graphc.tensor as pt

    variables = [case.arguments[i].variable("float64") for i in free_positions(case)]
    results = differentiable(case)(*variables)
    terms = [(abs(y) ** 2).sum() if y.type.dtype[0] == "c" else (y * y).sum() for y in results]
    cost = pt.add(*terms) if len(terms) > 1 else terms[0]
    gradients = graphc.grad(cost, variables, disconnected_inputs="ignore")
    f = graphc.function(variables, [*results, *gradients], mode="reference", on_unused_input="ignore")
    found = f(*gradient_point(case))
    return found[: len(results)], found[len(results) :]


def differences(case: Case) -> Iterator[str]:
    """What differs by more than rounding.

    Raises:
        NotInJax: there is nothing to compare with.
    """
    theirs, ours = in_jax(case), in_graphc(case)
    for what, xs, ys in zip(("value", "gradient"), ours, theirs, strict=True):
        for i, (x, y) in enumerate(zip(xs, ys, strict=False)):
            want = np.asarray(y)
            if x.shape != want.shape:
                yield f"{case.name}: {what} {i} has shape {x.shape}, JAX's {want.shape}"
                continue
            scale = max(1.0, float(np.abs(want).max(initial=0.0)))
            if not np.allclose(x, want, rtol=1e-6, atol=1e-8 * scale * case.tolerance, equal_nan=True):
                yield f"{case.name}: {what} {i} is\n{x}\nJAX's\n{want}"


def main() -> int:
    """Compare all; the exit status is 1 where something differs."""
    import jax

    jax.config.update("jax_enable_x64", True)
    compared, missing, found = 0, [], []
    for case in load_cases():
        try:
            found += list(differences(case))
            compared += 1
        except NotInJax as reason:
            missing.append(f"{case.name}: {str(reason).splitlines()[0]}")
    print("\n".join(found))
    print("not compared:", "\n  ".join(["", *missing]))
    print(f"{compared} cases compared, {len(found)} differences, {len(missing)} that JAX does not have")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
