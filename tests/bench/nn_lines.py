# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Contractions, convolutions and Fourier transforms."""

from __future__ import annotations

from typing import Any

import numpy as np
from cases import Case


def _normal(*shapes: tuple[int, ...], dtype: str = "float64") -> Any:
    def make() -> tuple[Any, ...]:
        rng = np.random.default_rng(5)
        return tuple(rng.standard_normal(shape).astype(dtype) for shape in shapes)

    return make


_IMAGES = ((8, 16, 32, 32), (32, 16, 3, 3))

CASES = [
    Case(
        "einsum",
        "einsum bij,jk,bkl->bil, 32 x 64 x 48, 48 x 64, 32 x 64 x 16",
        "us",
        _normal((32, 64, 48), (48, 64), (32, 64, 16)),
        lambda m, a, b, c: m.einsum("bij,jk,bkl->bil", a, b, c),
    ),
    Case(
        "conv2d",
        "conv2d of 8 x 16 x 32 x 32 with 32 filters 3 x 3, float32",
        "us",
        _normal(*_IMAGES, dtype="float32"),
        lambda m, x, f: m.conv2d(x, f),
    ),
    Case(
        "conv2d_grad",
        "the same, float64, and its derivatives",
        "us",
        _normal(*_IMAGES),
        lambda m, x, f: (m.conv2d(x, f) ** 2).sum(),
        wrt=(0, 1),
    ),
    Case(
        "rfft",
        "power spectra of 100 signals of 1024",
        "us",
        _normal((100, 1024)),
        lambda m, x: abs(m.rfft(x)) ** 2,
        series=(),
    ),
    Case(
        "rfft_odd",
        "the same of 100 signals of 999",
        "us",
        _normal((100, 999)),
        lambda m, x: abs(m.rfft(x)) ** 2,
        series=(),
    ),
]


def _conv2d(x: Any, f: Any) -> Any:
    patches = np.lib.stride_tricks.sliding_window_view(x, f.shape[2:], (2, 3))
    n, c, r, s, p, q = patches.shape
    columns = patches.transpose(0, 1, 4, 5, 2, 3).reshape(n, c * p * q, r * s)
    return (f.reshape(len(f), -1) @ columns).reshape(n, len(f), r, s)


def numpy_networks() -> dict[str, Any]:
    """NumPy's functions, and a convolution made of them."""
    return {
        "einsum": lambda *args: np.einsum(*args, optimize=True),
        "conv2d": _conv2d,
        "rfft": np.fft.rfft,
    }


def symbolic_networks(tensor: Any) -> dict[str, Any]:
    """graphc's functions; PyTensor has no convolution of several channels, and no complex spectra."""
    if hasattr(tensor, "nn"):
        return {"einsum": tensor.einsum, "conv2d": tensor.nn.conv2d, "rfft": tensor.fft.rfft}
    return {"einsum": tensor.einsum, "conv2d": _not_offered, "rfft": _not_offered}


def _not_offered(*args: Any) -> Any:
    from libraries import NotOffered

    raise NotOffered("there is no such function")


def jax_networks() -> dict[str, Any]:
    """JAX's functions."""
    import jax
    import jax.numpy as jnp

    def conv2d(x: Any, f: Any) -> Any:
        return jax.lax.conv(x, f, (1, 1), "VALID")

    return {"einsum": jnp.einsum, "conv2d": conv2d, "rfft": jnp.fft.rfft}
