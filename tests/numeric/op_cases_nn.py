# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Cases of neural networks: activations, losses, normalisation, convolutions and pooling."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.signal
import scipy.special as sp
from op_table import FLOATS, Family, arg, between, distinct

X = arg("n", "n+1", make=distinct)
PART = arg("n", "n+1", make=between(0.1, 0.9))
OTHER = arg("n", "n+1", make=between(-1, 1))
CLASSES = arg("n", dtype="int64", make=between(0, 1))


def _elu(x: np.ndarray, alpha: float = 1.0) -> np.ndarray:
    return np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0)))


def _softmax(x: np.ndarray) -> np.ndarray:
    return sp.softmax(x, axis=-1)


# Activations --------------------------------------------------------------------------------------

case = Family("activations", "nn", tolerance=10)
case("relu", [X], reference=lambda x: np.maximum(x, 0))
case("relu6", [X], reference=lambda x: np.clip(x, 0, 6))
case("leaky_relu", [X], reference=lambda x: np.where(x > 0, x, x * x.dtype.type(0.01)))
case("elu", [X], reference=_elu)
case(
    "celu",
    [X],
    lambda m, x: m.celu(x, 1.5),
    lambda x: np.where(x > 0, x, 1.5 * np.expm1(np.minimum(x, 0) / 1.5)),
)
case("selu", [X], reference=lambda x: x.dtype.type(1.0507009873554805) * _elu(x, 1.6732632423543772))
case("gelu", [X], lambda m, x: m.gelu(x, approximate=False), lambda x: x * sp.ndtr(x))
case(
    "gelu:tanh",
    [X],
    lambda m, x: m.gelu(x, approximate=True),
    lambda x: 0.5 * x * (1 + np.tanh(x.dtype.type(np.sqrt(2 / np.pi)) * (x + x.dtype.type(0.044715) * x**3))),
)
case("silu", [X], reference=lambda x: x * sp.expit(x))
case("swish", [X], reference=lambda x: x * sp.expit(x))
case("mish", [X], reference=lambda x: x * np.tanh(np.logaddexp(x, 0).astype(x.dtype)))
case("softplus", [X], reference=lambda x: np.logaddexp(x, x.dtype.type(0)))
case("sigmoid", [X], reference=sp.expit)
case("hard_sigmoid", [X], reference=lambda x: np.clip(x / 6 + x.dtype.type(0.5), 0, 1))
case("hard_tanh", [X], reference=lambda x: np.clip(x, -1, 1))
case("softsign", [X], reference=lambda x: x / (1 + np.abs(x)), jax=lambda m, x: m.soft_sign(x))
case("log_sigmoid", [X], reference=sp.log_expit)
case("glu", [arg("n", 4)], reference=lambda x: x[:, :2] * sp.expit(x[:, 2:]))
case(
    "prelu", [arg("n", 3, make=distinct), arg(3)], reference=lambda x, a: np.where(x > 0, x, a * x), jax=False
)
case = Family("softmax", "nn", tolerance=10, sizes=(4, 1))
case("softmax", [X], lambda m, x: m.softmax(x, axis=-1), _softmax)
case("log_softmax", [X], lambda m, x: m.log_softmax(x, axis=-1), lambda x: sp.log_softmax(x, axis=-1))
case(
    "logsoftmax", [X], lambda m, x: m.logsoftmax(x, axis=-1), lambda x: sp.log_softmax(x, axis=-1), jax=False
)
case("logsumexp", [X], lambda m, x: m.logsumexp(x, axis=-1), lambda x: sp.logsumexp(x, axis=-1))
case = Family("special softmax", "special", tolerance=10, sizes=(4, 1), jax=False)
case("softmax", [X], lambda m, x: m.softmax(x, axis=0))
case("log_softmax", [X], lambda m, x: m.log_softmax(x, axis=0))

# Losses -------------------------------------------------------------------------------------------

case = Family("losses", "nn", tolerance=10, jax=False)
case("binary_crossentropy", [PART, OTHER], reference=lambda p, t: -(t * np.log(p) + (1 - t) * np.log1p(-p)))
case(
    "sigmoid_binary_crossentropy", [X, OTHER], reference=lambda x, t: np.logaddexp(x, x.dtype.type(0)) - t * x
)
case("categorical_crossentropy", [PART, OTHER], reference=lambda p, t: -np.sum(t * np.log(p), -1))
case(
    "categorical_crossentropy:classes",
    [PART, CLASSES],
    reference=lambda p, i: -np.log(p[np.arange(len(i)), i]),
)
case(
    "softmax_cross_entropy",
    [X, OTHER],
    reference=lambda x, t: -np.sum(t * sp.log_softmax(x, -1), -1),
    sizes=(4, 1),
)
case(
    "softmax_cross_entropy:classes",
    [X, CLASSES],
    sizes=(4, 1),
    reference=lambda x, i: -sp.log_softmax(x, -1)[np.arange(len(i)), i],
)


def _huber(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    d = np.abs(x - y)
    return np.where(d <= 1, 0.5 * d * d, d - 0.5).astype(x.dtype)


case("huber_loss", [X, OTHER], reference=_huber)
case(
    "one_hot",
    [CLASSES],
    lambda m, i: m.one_hot(i, 3),
    lambda i: np.eye(3)[i],
    gradient=False,
    dtypes=("float64",),
)

# Normalisation ------------------------------------------------------------------------------------


def _standard(x: np.ndarray, axes: Any, eps: float = 1e-5) -> np.ndarray:
    mean = x.mean(axes, keepdims=True)
    return (x - mean) / np.sqrt(x.var(axes, keepdims=True) + x.dtype.type(eps))


case = Family("normalisation", "nn", tolerance=40, sizes=(4,), jax=False)
IMAGES = arg("n", 4, "n+1")
GAIN = arg(4, make=between(0.5, 1.5))
case("layer_norm", [IMAGES], reference=lambda x: _standard(x, -1))
case("layer_norm:scaled", [arg("n", 4), GAIN, arg(4)], reference=lambda x, g, b: _standard(x, -1) * g + b)
case(
    "rms_norm",
    [IMAGES],
    reference=lambda x: x / np.sqrt(np.mean(x * x, -1, keepdims=True) + x.dtype.type(1e-6)),
)
case(
    "group_norm",
    [IMAGES],
    lambda m, x: m.group_norm(x, 2),
    lambda x: _standard(x.reshape(len(x), 2, -1), -1).reshape(x.shape),
)
case(
    "batch_norm",
    [arg("n", 4), GAIN, arg(4)],
    lambda m, x, g, b: m.batch_norm(x, g, b)[0],
    lambda x, g, b: _standard(x, 0) * g + b,
)
case(
    "batch_normalization",
    [arg("n", 4), arg(4), GAIN],
    reference=lambda x, mean, v: (x - mean) / np.sqrt(v + x.dtype.type(1e-5)),
)

# Convolutions and pooling -------------------------------------------------------------------------


def _conv2d(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    sizes = (len(x), len(w), x.shape[2] - w.shape[2] + 1, x.shape[3] - w.shape[3] + 1)
    if 0 in sizes:  # SciPy would swap picture and filter
        return np.zeros(sizes, x.dtype)
    rows = [[sum(scipy.signal.correlate(c, f, "valid") for c, f in zip(image, filters, strict=True))
             for filters in w] for image in x]  # fmt: skip
    return np.array(rows, x.dtype).reshape(sizes)


def _windows(x: np.ndarray, size: int, reduce: Any, step: int) -> np.ndarray:
    view = np.lib.stride_tricks.sliding_window_view(x, size, axis=-1)[..., ::step, :]
    return reduce(view, axis=-1).astype(x.dtype)


def _windows2d(x: np.ndarray, size: int, reduce: Any) -> np.ndarray:
    view = np.lib.stride_tricks.sliding_window_view(x, (size, size), axis=(-2, -1))[..., ::size, ::size, :, :]
    return reduce(view, axis=(-2, -1)).astype(x.dtype)


case = Family("convolution", "nn", tolerance=20, sizes=(5, 3), dtypes=FLOATS, jax=False)
PICTURES, FILTERS = arg(2, 3, "n", "n+1"), arg(4, 3, 2, 3)
LINES = arg(2, 3, "n")
case("conv2d", [PICTURES, FILTERS], reference=_conv2d)
case(
    "conv2d:strided",
    [PICTURES, FILTERS],
    lambda m, x, w: m.conv2d(x, w, stride=2, padding=1),
    lambda x, w: _conv2d(np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1))), w)[:, :, ::2, ::2],
)
case(
    "conv2d:flipped",
    [PICTURES, FILTERS],
    lambda m, x, w: m.conv2d(x, w, flip=True),
    lambda x, w: _conv2d(x, w[:, :, ::-1, ::-1]),
)
case("conv1d", [LINES, arg(4, 3, 2)], reference=lambda x, w: _conv2d(x[:, :, None], w[:, :, None])[:, :, 0])
case(
    "conv1d_transpose",
    [LINES, arg(3, 2, 2)],
    reference=lambda x, w: np.array(
        [[sum(np.convolve(c, f[o]) for c, f in zip(image, w, strict=True)) for o in range(2)] for image in x],
        x.dtype,
    ),
)
case(
    "conv2d_transpose",
    [PICTURES, arg(3, 2, 2, 2)],
    reference=lambda x, w: np.array(
        [
            [sum(scipy.signal.convolve(c, f[o]) for c, f in zip(image, w, strict=True)) for o in range(2)]
            for image in x
        ],
        x.dtype,
    ),
)
SHUFFLED = arg(2, 3, "n", "n+1", make=distinct)
LINE = arg(2, 3, "n", make=distinct)
case("max_pool2d", [SHUFFLED], lambda m, x: m.max_pool2d(x, 2), lambda x: _windows2d(x, 2, np.max))
case("avg_pool2d", [SHUFFLED], lambda m, x: m.avg_pool2d(x, 2), lambda x: _windows2d(x, 2, np.mean))
case("max_pool1d", [LINE], lambda m, x: m.max_pool1d(x, 2, 1), lambda x: _windows(x, 2, np.max, 1))
case("avg_pool1d", [LINE], lambda m, x: m.avg_pool1d(x, 2, 1), lambda x: _windows(x, 2, np.mean, 1))
