# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Convolutions of sequences and images."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from graphc.graph.basic import Variable
from graphc.graph.tensor.convert import operand
from graphc.ops.elementwise import cast_to
from graphc.ops.math import maximum
from graphc.ops.pooling import Conv2d, Conv2dInput
from graphc.ops.shape import known_size, size_of, sizes_of
from graphc.ops.shaping import dimshuffle, reshape, specify_shape
from graphc.tensor.nn.windows import Window, folded, known, parse_padding, per_axis, sides, window
from graphc.tensor.padding import pad
from graphc.tensor.rearranging import flip as flip_

if TYPE_CHECKING:
    from graphc.graph.tensor import TensorLike
    from graphc.graph.tensor.variable import TensorVariable

__all__ = ["conv1d", "conv1d_transpose", "conv2d", "conv2d_transpose"]

Padding = str | int | Sequence[int] | Sequence[Sequence[int]]


def conv2d(
    x: TensorLike,
    filters: TensorLike,
    stride: int | Sequence[int] = 1,
    padding: Padding = "valid",
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
    flip: bool = False,
    name: str | None = None,
) -> TensorVariable:
    """Cross-correlation of images with filters, or their convolution.

    Args:
        x: images (n, c, h, w).
        filters: (o, c / groups, p, q).
        stride: steps of the filters along both axes.
        padding: zeros around the images. ``"valid"``: none; ``"same"``: so many that there are
            ``ceil(h / stride)`` results, one more after where the number is odd; ``"full"``: every place
            where filter and image overlap; ``"half"``: p // 2 on each side; or a number, one for each axis,
            or for each axis a pair (before, after).
        dilation: distances of the elements of the filters along both axes.
        groups: channels of input and output are divided into so many groups, which do not mix.
        flip: turn the filters around, so that this is the convolution of mathematics.
        name: of the result.

    Returns:
        (n, o, r, s), in the dtype that the operands have in common; integers become float64.

    Raises:
        ValueError: numbers of dimensions or static sizes do not fit, or options are out of range.

    Examples:
        >>> pt.nn.conv2d(np.ones((1, 1, 3, 3)), np.ones((1, 1, 2, 2))).eval()
        array([[[[4., 4.],
                 [4., 4.]]]])
    """
    x, f = _operands("conv2d", x, filters, 4, flip)
    strides, dilations = per_axis(stride, 2, "conv2d: stride"), per_axis(dilation, 2, "conv2d: dilation")
    x = _with_channels("conv2d", x, f, groups)
    windows = [
        window(x, axis, size_of(f, axis), strides[axis - 2], rule, dilations[axis - 2])
        for axis, rule in zip((2, 3), parse_padding(padding, 2, "conv2d"), strict=True)
    ]
    result = correlated(x, f, windows, dilations, groups)
    result.name = name
    return result


def correlated(
    x: TensorLike,
    f: TensorLike,
    windows: Sequence[Window],
    dilations: Sequence[int] = (1, 1),
    groups: int = 1,
) -> TensorVariable:
    """Cross-correlation at the places of two windows (with their strides and zeros around the images).

    Args:
        x: images (n, c, h, w).
        f: filters (o, c / groups, p, q).
        windows: of the last two axes; their ends may be symbolic.
        dilations: of the filters.
        groups: of the channels.
    """
    lows = [known(w.low) for w in windows]
    if any(low is None for low in lows):
        # How many zeros there are before the image is known to the graph only, so it puts them there.
        x = _padded(x, windows, lows)
    pads = [0 if low is None else low for low in lows]
    strides = tuple(w.stride for w in windows)
    op = Conv2d(strides, (pads[0], pads[1]), tuple(dilations), groups)  # type: ignore[arg-type]
    return _result(op(x, f, *(w.count for w in windows)), x, f)


def _operands(
    what: str, x: TensorLike, filters: TensorLike, ndim: int, flip: bool
) -> tuple[TensorVariable, TensorVariable]:
    takes = f"{what} takes {ndim}-d images and filters (number, channels, ...)"
    x, f = (operand(v, takes, ndim, ndim) for v in (x, filters))
    return x, (flip_(f, tuple(range(2, ndim))) if flip else f)


def _result(out: TensorVariable, x: Any, f: Any) -> TensorVariable:
    """Half precision is computed in single precision."""
    return cast_to(out, "float16") if x.type.dtype == f.type.dtype == "float16" else out


def _with_channels(what: str, x: TensorVariable, f: TensorVariable, groups: int) -> TensorVariable:
    """The images with as many channels as the filters take, which is checked at run time if need be."""
    (groups,) = per_axis(groups, 1, f"{what}: groups")
    of_x, of_f, filters = x.type.shape[1], f.type.shape[1], f.type.shape[0]
    if of_x is not None and of_f is not None and of_x != of_f * groups:
        raise ValueError(
            f"{what}: {x} has {of_x} channels, but filters {f} of shape {f.type.shape} in {groups} groups "
            f"take {of_f * groups}"
        )
    if filters is None and groups > 1:
        raise ValueError(
            f"{what}: the number of filters of {f} must be known for {groups} groups; use specify_shape"
        )
    if filters is not None and filters % groups:
        raise ValueError(f"{what}: {filters} filters cannot be divided into {groups} groups")
    if of_x is None or of_f is None:
        x = specify_shape(x, (None, size_of(f, 1) * groups, None, None))
    return x


def _padded(x: TensorLike, windows: Sequence[Window], lows: list[int | None]) -> TensorVariable:
    widths: list[tuple[int | TensorVariable, int | TensorVariable]] = [(0, 0), (0, 0)]
    for w, low in zip(windows, lows, strict=True):
        widths.append((w.low, 0) if low is None else (0, 0))
        if low is None:
            w.size, w.low = w.size + w.low, 0
    return pad(x, widths)


def conv2d_transpose(
    x: TensorLike,
    filters: Any,
    stride: int | Sequence[int] = 1,
    padding: Padding = "valid",
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
    output_padding: int | Sequence[int] = 0,
    flip: bool = False,
) -> TensorVariable:
    """The adjoint of `conv2d` in the images: as many images of the size that `conv2d` would make these of.

    Args:
        x: (n, o, r, s).
        filters: (o, c / groups, p, q), as for the convolution from c to o channels.
        stride, dilation, groups, flip: of the convolution.
        padding: of the convolution; with ``"same"`` the result has size ``r * stride``.
        output_padding: added to the sizes of the result, which are not unique for strides above 1.

    Returns:
        (n, c, h, w) with ``h = (r - 1) * stride + (p - 1) * dilation + 1 - padding + output_padding``.

    Raises:
        ValueError: as `conv2d`.
        TypeError: the size of the filters must be known for this padding.

    Examples:
        >>> pt.nn.conv2d_transpose(np.ones((1, 1, 2, 2)), np.ones((1, 1, 2, 2))).shape.eval()
        array([1, 1, 3, 3])
    """
    x, f = _operands("conv2d_transpose", x, filters, 4, flip)
    what = "conv2d_transpose"
    strides, dilations = per_axis(stride, 2, f"{what}: stride"), per_axis(dilation, 2, f"{what}: dilation")
    more = per_axis(output_padding, 2, f"{what}: output_padding", 0)
    (groups,) = per_axis(groups, 1, f"{what}: groups")
    if f.type.shape[0] is not None and f.type.shape[0] % groups:
        raise ValueError(f"{what}: {f.type.shape[0]} filters cannot be divided into {groups} groups")
    sizes: list[TensorVariable] = []
    lows: list[int] = []
    low: Any
    for i, rule in enumerate(parse_padding(padding, 2, what)):
        reach = (size_of(f, i + 2) - 1) * dilations[i] + 1
        count, step = size_of(x, i + 2), strides[i]
        if rule == "same":
            total = maximum(reach - step, 0)
            low, size = total // 2, count * step
        else:
            low, high = sides(rule, None, reach, step)
            size = (count - 1) * step + reach - low - high
        number = known(low)
        if number is None:
            raise TypeError(
                f"{what}: the size of the filters {f} must be known for padding {rule!r}; use specify_shape"
            )
        lows.append(number)
        sizes.append(folded(maximum(size + more[i], 0)))
    op = Conv2dInput(strides, (lows[0], lows[1]), dilations, groups)  # type: ignore[arg-type]
    return _result(op(x, f, folded(size_of(f, 1) * groups), *sizes), x, f)


def _image(x: Variable) -> TensorVariable:
    """A sequence (n, c, w) as images of height 1."""
    return dimshuffle(x, (0, 1, "x", 2))


def _pair(value: int, default: int, what: str, least: int = 1) -> tuple[int, int]:
    return (default, *per_axis(value, 1, what, least))  # type: ignore[return-value]


def _line_padding(padding: Any, what: str) -> Any:
    if isinstance(padding, list | tuple) and len(padding) == 2 and all(isinstance(p, int) for p in padding):
        padding = [tuple(padding)]
    (rule,) = parse_padding(padding, 1, what)
    return rule


def conv1d(
    x: Any,
    filters: Any,
    stride: int = 1,
    padding: Padding = "valid",
    dilation: int = 1,
    groups: int = 1,
    flip: bool = False,
) -> TensorVariable:
    """Cross-correlation of sequences (n, c, w) with filters (o, c / groups, q); options as `conv2d`.

    ``padding`` may be a pair of numbers (before, after).

    Examples:
        >>> pt.nn.conv1d(np.arange(4.0).reshape(1, 1, 4), np.ones((1, 1, 2))).eval()
        array([[[1., 3., 5.]]])
    """
    x, f = _operands("conv1d", x, filters, 3, flip)
    strides, dilations = _pair(stride, 1, "conv1d: stride"), _pair(dilation, 1, "conv1d: dilation")
    x = _with_line_channels(x, f, groups)
    w = window(x, 2, size_of(f, 2), strides[1], _line_padding(padding, "conv1d"), dilations[1])
    low = known(w.low)
    if low is None:
        x = pad(x, [(0, 0), (0, 0), (w.low, 0)])
        w.size, w.low = w.size + w.low, 0
    op = Conv2d(strides, (0, low or 0), dilations, groups)
    return _result(dimshuffle(op(_image(x), _image(f), 1, w.count), (0, 1, 3)), x, f)


def _with_line_channels(x: TensorVariable, f: TensorVariable, groups: int) -> TensorVariable:
    image = _with_channels("conv1d", _image(x), _image(f), groups)
    return dimshuffle(image, (0, 1, 3))


def conv1d_transpose(
    x: TensorLike,
    filters: TensorLike,
    stride: int = 1,
    padding: Padding = "valid",
    dilation: int = 1,
    groups: int = 1,
    output_padding: int = 0,
    flip: bool = False,
) -> TensorVariable:
    """The adjoint of `conv1d`: (n, o, s) with filters (o, c / groups, q); options as `conv2d_transpose`.

    Examples:
        >>> pt.nn.conv1d_transpose(np.ones((1, 1, 2)), np.ones((1, 1, 2))).eval()
        array([[[1., 2., 1.]]])
    """
    x, f = _operands("conv1d_transpose", x, filters, 3, flip)
    rule = _line_padding(padding, "conv1d_transpose")
    reach = known_size(size_of(f, 2))
    if isinstance(rule, str):
        if reach is None and rule != "valid":
            raise TypeError(
                f"conv1d_transpose: the size of the filters {f} must be known for padding {rule!r}; use "
                "specify_shape"
            )
        rules: Any = rule
    else:
        rules = [(0, 0), rule]
    what = "conv1d_transpose"
    out = conv2d_transpose(
        _image(x),
        _image(f),
        _pair(stride, 1, f"{what}: stride"),
        rules,
        _pair(dilation, 1, f"{what}: dilation"),
        groups,
        _pair(output_padding, 0, f"{what}: output_padding", 0),
    )
    sizes = sizes_of(out)
    return reshape(out, [*sizes[:2], sizes[3]])
