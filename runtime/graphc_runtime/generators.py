# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""States of generators as vectors of 64-bit words, and as NumPy's generators.

PCG64: state and increment (each its high, then its low word). Philox: counter (4), key (2), buffer (4),
position in the buffer. Both end with NumPy's spare half word: whether there is one, and its value.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

_MASK = (1 << 64) - 1


def _wide(value: int) -> list[int]:
    return [value >> 64 & _MASK, value & _MASK]


def _pcg64_words(state: dict[str, Any]) -> list[int]:
    inner = state["state"]
    return [*_wide(inner["state"]), *_wide(inner["inc"])]


def _pcg64_state(words: list[int]) -> dict[str, object]:
    return {"state": {"state": words[0] << 64 | words[1], "inc": words[2] << 64 | words[3]}}


def _philox_words(state: dict[str, Any]) -> list[int]:
    inner = state["state"]
    words = [*inner["counter"], *inner["key"], *state["buffer"], state["buffer_pos"]]
    return [int(word) for word in words]


def _philox_state(words: list[int]) -> dict[str, object]:
    numbers = np.array(words, np.uint64)
    return {
        "state": {"counter": numbers[:4], "key": numbers[4:6]},
        "buffer": numbers[6:10],
        "buffer_pos": int(numbers[10]),
    }


_WORDS: dict[str, Callable[[dict[str, Any]], list[int]]] = {"PCG64": _pcg64_words, "Philox": _philox_words}
_STATES: dict[str, Callable[[list[int]], dict[str, Any]]] = {"PCG64": _pcg64_state, "Philox": _philox_state}
# Lengths of the vectors by the names of NumPy's bit generators.
LENGTHS = {"PCG64": 6, "Philox": 13}
_NAMES = {length: name for name, length in LENGTHS.items()}


def bit_generator_name(generator: object) -> str:
    """The name of the bit generator of a ``numpy.random.Generator``, or of one itself.

    Raises:
        TypeError: it is neither, or of a kind other than PCG64 and Philox.
    """
    bits = getattr(generator, "bit_generator", generator)
    name = type(bits).__name__
    if not hasattr(bits, "state") or name not in LENGTHS:
        raise TypeError(
            f"random draws need a numpy.random.Generator over PCG64 or Philox, got {generator!r:.80}; "
            "np.random.default_rng(seed) makes one"
        )
    return name


def state_of(generator: Any) -> np.ndarray:
    """The state of a generator as a vector; the generator itself is not changed.

    Examples:
        >>> pt.random.state_of(np.random.default_rng(3)).dtype
        dtype('uint64')
    """
    name = bit_generator_name(generator)
    state = getattr(generator, "bit_generator", generator).state
    words = [*_WORDS[name](state), state["has_uint32"], state["uinteger"]]
    return np.array(words, np.uint64)


def generator_of(state: np.ndarray) -> np.random.Generator:
    """A new generator that goes on from a state vector.

    Raises:
        ValueError: no generator has a state of that length.

    Examples:
        >>> state = pt.random.state_of(np.random.default_rng(3))
        >>> pt.random.generator_of(state).integers(9) == np.random.default_rng(3).integers(9)
        np.True_
    """
    name = _NAMES.get(len(state))
    if name is None:
        raise ValueError(f"a state has {' or '.join(map(str, _NAMES))} words, got {len(state)}")
    generator = np.random.Generator(getattr(np.random, name)(0))
    set_state(generator, state)
    return generator


def set_state(generator: np.random.Generator, state: np.ndarray) -> None:
    """Has a generator of that kind go on from a state vector."""
    words = [int(word) for word in state]
    name = _NAMES[len(words)]
    rest = {"bit_generator": name, "has_uint32": words[-2], "uinteger": words[-1]}
    generator.bit_generator.state = {**_STATES[name](words[:-2]), **rest}
