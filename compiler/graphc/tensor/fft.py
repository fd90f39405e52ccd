# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Discrete Fourier transforms, by the names and arguments of ``numpy.fft``.

Single precision gives single precision. Compiled code does transforms itself, fastest where the size is
static, a multiple of 4, and has small prime factors only.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from graphc.graph.basic import Variable
from graphc.graph.tensor.convert import as_tensor_variable, constant, operand
from graphc.hooks import publish
from graphc.ops.checks import required
from graphc.ops.create import arange
from graphc.ops.dimshuffle import normalize_axis
from graphc.ops.fourier import (
    COMPLEX,
    REAL,
    Fft,
    FftAny,
    FftColumns,
    Irfft,
    IrfftAny,
    Rfft,
    RfftAny,
    algorithm,
    columns_table,
    table,
)
from graphc.ops.math import cast, conj, lt, switch
from graphc.ops.shape import as_size, known_size, product_of, size_of, sizes_of
from graphc.ops.shaping import moveaxis, reshape, specify_shape
from graphc.tensor.padding import pad
from graphc.tensor.rearranging import roll

if TYPE_CHECKING:
    from collections.abc import Callable

    from graphc.graph.tensor import Lengths, TensorLike
    from graphc.graph.tensor.variable import TensorVariable


def _positive(n: TensorLike, what: str) -> TensorVariable:
    return required(as_size(n, what), lambda n: n >= 1, f"{what}: n must be at least 1")


def fftfreq(n: TensorLike, d: TensorLike = 1.0) -> TensorVariable:
    """Frequencies of `fft` in cycles per unit of the sample spacing d: 0, 1, ..., -2, -1 over d * n.

    Examples:
        >>> pt.fft.fftfreq(4, 0.5).eval()
        array([ 0. ,  0.5, -1. , -0.5])
    """
    size = _positive(n, "fftfreq")
    at = arange(size)
    return switch(lt(at, (size + 1) // 2), at, at - size) / (size * as_tensor_variable(d))


def rfftfreq(n: TensorLike, d: TensorLike = 1.0) -> TensorVariable:
    """Frequencies of `rfft` in cycles per unit of the sample spacing d.

    Examples:
        >>> pt.fft.rfftfreq(4, 0.5).eval()
        array([0. , 0.5, 1. ])
    """
    size = _positive(n, "rfftfreq")
    return arange(size // 2 + 1) / (size * as_tensor_variable(d))


def _shifted(x: TensorLike, axes: int | Sequence[int] | None, what: str, sign: int) -> TensorVariable:
    moved = as_tensor_variable(x)
    if axes is None:
        axes = range(moved.type.ndim)
    chosen = [axes] if isinstance(axes, int) else list(axes)
    for axis in (normalize_axis(a, moved.type.ndim, what) for a in chosen):
        size = size_of(moved, axis)
        known = known_size(size)
        half = size // 2 if known is None else known // 2
        moved = roll(moved, half * sign, axis)
    return moved


def fftshift(x: TensorLike, axes: int | Sequence[int] | None = None) -> TensorVariable:
    """The frequency 0 in the middle of the axes, all of them by default.

    Examples:
        >>> pt.fft.fftshift([0, 1, -2, -1]).eval()
        array([-2, -1,  0,  1])
    """
    return _shifted(x, axes, "fftshift", 1)


def ifftshift(x: TensorLike, axes: int | Sequence[int] | None = None) -> TensorVariable:
    """Inverse of `fftshift`.

    Examples:
        >>> pt.fft.ifftshift([-2, -1, 0, 1]).eval()
        array([ 0,  1, -2, -1])
    """
    return _shifted(x, axes, "ifftshift", -1)


# The size of a transformed axis; None keeps the one it has.
Length: TypeAlias = "TensorLike | None"


_NORMS = (None, "backward", "ortho", "forward")


def _operand(a: TensorLike, what: str, real: bool = False) -> TensorVariable:
    """An operand in the dtype that it is transformed in."""
    x = operand(a, f"{what} needs at least one dimension", 1)
    if real:
        x = operand(x, f"{what} takes real numbers", kinds="biuf", error=TypeError)
    dtype = x.type.dtype
    if dtype == "float16":
        return cast(x, "float32")
    return x if dtype in COMPLEX or dtype in REAL else cast(x, "float64")


def _complex(x: TensorVariable) -> TensorVariable:
    return cast(x, COMPLEX[x.type.dtype]) if x.type.dtype in COMPLEX else x


def _check_norm(norm: str | None, what: str) -> None:
    if norm not in _NORMS:
        raise ValueError(f'{what}: norm must be "backward", "ortho" or "forward", got {norm!r}')


def _scaled(x: TensorVariable, n: TensorVariable, norm: str | None, inverse: bool) -> TensorVariable:
    """A transform of size n divided by n, by its root, or by nothing."""
    if norm == "ortho":
        power = -0.5
    elif (norm in (None, "backward")) == inverse:
        power = -1.0
    else:
        return x
    dtype = REAL.get(x.type.dtype, x.type.dtype)
    known = known_size(n)
    if known is not None:
        return x * constant(float(max(known, 1)) ** power, dtype=dtype)
    return x * cast(cast(n, "float64") ** power, dtype)


def _resized(x: TensorVariable, axis: int, n: TensorVariable) -> TensorVariable:
    """Cut off, or filled up with zeros, so that an axis has size n."""
    have, want = known_size(size_of(x, axis)), known_size(n)
    if have is not None and have == want:
        return x
    if have is None or want is None or want < have:
        at = (*[slice(None)] * axis, slice(None, n if want is None else want))
        x = x[at]
    if have is None or want is None or want > have:
        widths: list[tuple[int | TensorVariable, int | TensorVariable]] = [(0, 0)] * x.type.ndim
        widths[axis] = (0, n - size_of(x, axis))
        x = pad(x, widths)
    if want is not None and x.type.shape[axis] != want:
        x = specify_shape(x, [want if i == axis else None for i in range(x.type.ndim)])
    return x


def _as_n(n: TensorLike | None, default: TensorVariable, what: str) -> TensorVariable:
    if n is None:
        return default
    message = f"{what}: invalid number of data points; it must be at least 1"
    return required(as_size(n, what), lambda n: n >= 1, message)


def _on_rows(
    x: TensorVariable, axis: int, transform: Callable[[TensorVariable], TensorVariable]
) -> TensorVariable:
    """Applies a function of matrices to an axis."""
    last = moveaxis(x, axis, -1)
    *lead, n = sizes_of(last)
    rows = last if len(lead) == 1 else reshape(last, [product_of(lead), n])
    out = transform(rows)
    out = out if len(lead) == 1 else reshape(out, [*lead, size_of(out, 1)])
    return moveaxis(out, -1, axis)


def _on_columns(x: TensorVariable, axis: int, inverse: bool) -> TensorVariable | None:
    """Complex numbers along an axis that is not the last one; None if that is better done on rows."""
    n, dtype = size_of(x, axis), REAL[x.type.dtype]
    roots = columns_table(n, dtype)
    if roots is None:
        return None
    sizes = sizes_of(x)
    matrices = reshape(x, [product_of(sizes[:axis]), n, product_of(sizes[axis + 1 :])])
    out: TensorVariable = FftColumns(inverse, algorithm(n, n, dtype, False)[2])(matrices, roots)
    return reshape(out, sizes)


def _transform(rows: TensorVariable, inverse: bool) -> TensorVariable:
    """Complex rows, not scaled."""
    n, dtype = size_of(rows, 1), REAL[rows.type.dtype]
    in_row, mode, radices = algorithm(n, size_of(rows, 0), dtype, False)
    op = (Fft if in_row else FftAny)(inverse, mode, radices)
    return op(rows, table(n, dtype, False))


def _complex_transform(
    a: TensorLike, n: TensorLike | None, axis: int, norm: str | None, inverse: bool, what: str
) -> TensorVariable:
    _check_norm(norm, what)
    x = _complex(_operand(a, what))
    axis = normalize_axis(axis, x.type.ndim, what)
    size = _as_n(n, size_of(x, axis), what)
    x = _resized(x, axis, size)
    out = None if axis == x.type.ndim - 1 else _on_columns(x, axis, inverse)
    if out is None:
        out = _on_rows(x, axis, lambda rows: _transform(rows, inverse))
    return _scaled(out, size, norm, inverse)


def fft(a: TensorLike, n: Length = None, axis: int = -1, norm: str | None = None) -> TensorVariable:
    """Discrete Fourier transform along an axis.

    Args:
        a: array-like, real or complex.
        n: size of the transform: the input is cut off or filled up with zeros; by default that of the axis.
        axis: the axis.
        norm: where it is divided by n: ``"backward"`` (the default; by the inverse), ``"ortho"`` (both by the
            root of n) or ``"forward"``.

    Raises:
        ValueError: 0-d input, n below 1, or an unknown norm.

    Examples:
        >>> pt.fft.fft([1.0, 0.0]).eval()
        array([1.+0.j, 1.+0.j])
    """
    return _complex_transform(a, n, axis, norm, False, "fft")


def ifft(a: TensorLike, n: Length = None, axis: int = -1, norm: str | None = None) -> TensorVariable:
    """Inverse of `fft`, with the same arguments.

    Examples:
        >>> pt.fft.ifft([1.0, 1.0]).eval()
        array([1.+0.j, 0.+0.j])
    """
    return _complex_transform(a, n, axis, norm, True, "ifft")


def rfft(a: TensorLike, n: Length = None, axis: int = -1, norm: str | None = None) -> TensorVariable:
    """`fft` of real numbers: the ``n // 2 + 1`` frequencies that are not negative.

    Examples:
        >>> pt.fft.rfft([1.0, 0.0, 0.0]).eval()
        array([1.+0.j, 1.+0.j])
    """
    _check_norm(norm, "rfft")
    x = _operand(a, "rfft", real=True)
    axis = normalize_axis(axis, x.type.ndim, "rfft")
    size = _as_n(n, size_of(x, axis), "rfft")
    return _scaled(_on_rows(_resized(x, axis, size), axis, _real_rows), size, norm, False)


def _real_rows(rows: TensorVariable) -> TensorVariable:
    n, dtype = size_of(rows, 1), rows.type.dtype
    in_row, mode, radices = algorithm(n, size_of(rows, 0), dtype, True)
    known = known_size(n)
    op = (Rfft if in_row else RfftAny)(mode, radices)
    return op(rows, table(n, dtype, True), (n if known is None else known) // 2 + 1)


def irfft(a: TensorLike, n: Length = None, axis: int = -1, norm: str | None = None) -> TensorVariable:
    """Inverse of `rfft`: n real numbers, ``2 * (size of the axis - 1)`` by default.

    Examples:
        >>> pt.fft.irfft([1.0, 1.0]).eval()
        array([1., 0.])
    """
    _check_norm(norm, "irfft")
    x = _complex(_operand(a, "irfft"))
    axis = normalize_axis(axis, x.type.ndim, "irfft")
    size = _as_n(n, (size_of(x, axis) - 1) * 2, "irfft")
    x = _resized(x, axis, size // 2 + 1)
    return _scaled(_on_rows(x, axis, lambda rows: _inverse_rows(rows, size)), size, norm, True)


def _inverse_rows(rows: TensorVariable, n: TensorVariable) -> TensorVariable:
    dtype = REAL[rows.type.dtype]
    in_row, mode, radices = algorithm(n, size_of(rows, 0), dtype, True)
    known = known_size(n)
    op = (Irfft if in_row else IrfftAny)(mode, radices)
    return op(rows, table(n, dtype, True), n if known is None else known)


def hfft(a: TensorLike, n: Length = None, axis: int = -1, norm: str | None = None) -> TensorVariable:
    """Transform of a signal that is symmetric in conjugation, of which one half is given: n real numbers.

    Examples:
        >>> pt.fft.hfft([1.0, 1.0]).eval()
        array([2., 0.])
    """
    x = _operand(a, "hfft")
    return irfft(conj(x), n, axis, _swapped(norm, "hfft"))


def ihfft(a: TensorLike, n: Length = None, axis: int = -1, norm: str | None = None) -> TensorVariable:
    """Inverse of `hfft`.

    Examples:
        >>> pt.fft.ihfft([3.0, 1.0, 1.0]).eval().real.round(6)
        array([1.666667, 0.666667])
    """
    return conj(rfft(a, n, axis, _swapped(norm, "ihfft")))


def _swapped(norm: str | None, what: str) -> str:
    _check_norm(norm, what)
    return {"backward": "forward", "forward": "backward"}.get(norm or "backward", "ortho")


# -- several axes --------------------------------------------------------------------------------------------


def _axes(x: Variable, s: Any, axes: Any, what: str) -> list[tuple[int, Any]]:
    """Pairs of axis and size."""
    if axes is None:
        axes = range(x.type.ndim) if s is None else range(x.type.ndim - len(s), x.type.ndim)
    numbers = [normalize_axis(axis, x.type.ndim, what) for axis in axes]
    sizes = [None] * len(numbers) if s is None else list(s)
    if len(sizes) != len(numbers):
        raise ValueError(f"{what}: {len(sizes)} sizes are given for {len(numbers)} axes")
    # NumPy lets -1 stand for the size of the axis.
    sizes = [None if isinstance(n, int) and n == -1 else n for n in sizes]
    return list(zip(numbers, sizes, strict=True))


def fftn(
    a: TensorLike, s: Lengths = None, axes: Sequence[int] | None = None, norm: str | None = None
) -> TensorVariable:
    """`fft` along several axes, all of them by default; ``s`` has their sizes.

    Examples:
        >>> pt.fft.fftn(np.eye(2)).eval()
        array([[2.+0.j, 0.+0.j],
               [0.+0.j, 2.+0.j]])
    """
    x = _operand(a, "fftn")
    for axis, n in reversed(_axes(x, s, axes, "fftn")):
        x = fft(x, n, axis, norm)
    return _complex(x)


def ifftn(
    a: TensorLike, s: Lengths = None, axes: Sequence[int] | None = None, norm: str | None = None
) -> TensorVariable:
    """Inverse of `fftn`.

    Examples:
        >>> pt.fft.ifftn([[2.0, 0.0], [0.0, 2.0]]).eval().real.tolist()
        [[1.0, 0.0], [0.0, 1.0]]
    """
    x = _operand(a, "ifftn")
    for axis, n in reversed(_axes(x, s, axes, "ifftn")):
        x = ifft(x, n, axis, norm)
    return _complex(x)


def rfftn(
    a: TensorLike, s: Lengths = None, axes: Sequence[int] | None = None, norm: str | None = None
) -> TensorVariable:
    """`rfft` along the last of the axes, `fft` along the others.

    Examples:
        >>> pt.fft.rfftn([[1.0, 2.0], [3.0, 4.0]]).eval().real.tolist()
        [[10.0, -2.0], [-4.0, 0.0]]
    """
    x = _operand(a, "rfftn", real=True)
    *others, (last, n) = _axes(x, s, axes, "rfftn")
    x = rfft(x, n, last, norm)
    for axis, size in reversed(others):
        x = fft(x, size, axis, norm)
    return x


def irfftn(
    a: TensorLike, s: Lengths = None, axes: Sequence[int] | None = None, norm: str | None = None
) -> TensorVariable:
    """Inverse of `rfftn`.

    Examples:
        >>> pt.fft.irfftn([[10.0, -2.0], [-4.0, 0.0]]).eval().tolist()
        [[1.0, 2.0], [3.0, 4.0]]
    """
    x = _operand(a, "irfftn")
    *others, (last, n) = _axes(x, s, axes, "irfftn")
    for axis, size in others:
        x = ifft(x, size, axis, norm)
    return irfft(x, n, last, norm)


def fft2(
    a: TensorLike, s: Lengths = None, axes: Sequence[int] = (-2, -1), norm: str | None = None
) -> TensorVariable:
    """`fftn` along two axes.

    Examples:
        >>> pt.fft.fft2([[1.0, 2.0], [3.0, 4.0]]).eval().real.tolist()
        [[10.0, -2.0], [-4.0, 0.0]]
    """
    return fftn(a, s, axes, norm)


def ifft2(
    a: TensorLike, s: Lengths = None, axes: Sequence[int] = (-2, -1), norm: str | None = None
) -> TensorVariable:
    """`ifftn` along two axes.

    Examples:
        >>> pt.fft.ifft2([[10.0, -2.0], [-4.0, 0.0]]).eval().real.tolist()
        [[1.0, 2.0], [3.0, 4.0]]
    """
    return ifftn(a, s, axes, norm)


def rfft2(
    a: TensorLike, s: Lengths = None, axes: Sequence[int] = (-2, -1), norm: str | None = None
) -> TensorVariable:
    """`rfftn` along two axes.

    Examples:
        >>> pt.fft.rfft2([[1.0, 2.0], [3.0, 4.0]]).eval().real.tolist()
        [[10.0, -2.0], [-4.0, 0.0]]
    """
    return rfftn(a, s, axes, norm)


def irfft2(
    a: TensorLike, s: Lengths = None, axes: Sequence[int] = (-2, -1), norm: str | None = None
) -> TensorVariable:
    """`irfftn` along two axes.

    Examples:
        >>> pt.fft.irfft2([[10.0, -2.0], [-4.0, 0.0]]).eval().tolist()
        [[1.0, 2.0], [3.0, 4.0]]
    """
    return irfftn(a, s, axes, norm)


# -- frequencies ---------------------------------------------------------------------------------------------


publish(globals())
