# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``Variable.eval``: compile and run in one step."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from graphc.function.function import function
from graphc.graph.basic import Variable
from graphc.graph.traversal import get_var_by_name

if TYPE_CHECKING:
    from graphc.graph.tensor.variable import TensorVariable


def evaluate(variable: Variable, given: Mapping[Any, Any], options: dict[str, Any]) -> Any:
    """The value of ``variable``, see `Variable.eval`.

    Raises:
        ValueError: a name in ``given`` fits no variable of the graph, or several.
        TypeError: ``given`` is no mapping from variables or names.
    """
    if not isinstance(given, Mapping):
        raise TypeError(f"eval() takes a dict from variables to values, got {given!r}")
    if options.get("on_unused_input") == "ignore":
        given = {k: value for k, value in given.items() if isinstance(k, Variable) or _named(variable, k)}
    inputs = [_resolve(variable, key) for key in given]
    compiled = variable.__dict__.setdefault("_compiled", {})
    key = (tuple(inputs), tuple(sorted(options.items())))
    try:
        known = compiled.get(key)
    except TypeError:
        # What the options hold may change, and its text need not tell one value from another.
        warnings.warn(
            f"eval() compiles each time, since its options cannot be hashed: {', '.join(options)}; "
            "give givens= as a tuple of pairs, or compile once with graphc.function",
            UserWarning,
            stacklevel=3,
        )
        return function(inputs, variable, **options)(*given.values())
    if known is None:
        known = compiled[key] = function(inputs, variable, **options)
    return known(*given.values())


def _named(variable: Variable, name: str) -> Sequence[Variable]:
    return get_var_by_name([variable], name) if isinstance(name, str) else ()


def _resolve(variable: Variable, key: TensorVariable) -> Variable:
    if isinstance(key, Variable):
        return key
    if not isinstance(key, str):
        raise TypeError(f"the keys of eval()'s argument must be variables or names, got {key!r}")
    found = _named(variable, key)
    if len(found) != 1:
        count = "no variable" if not found else f"{len(found)} variables"
        raise ValueError(
            f"{count} named {key!r} in the graph of {variable}; pass the variable itself as the key"
        )
    return found[0]
