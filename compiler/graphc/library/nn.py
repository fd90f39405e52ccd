# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels on images: convolutions, and maxima and sums of windows that move over a matrix.

Convolutions are matrix products of filters with patches (im2col); so are the two adjoints. All three work on
one image at a time and, where images are large, on some rows of the result at a time, so that patches stay in
the cache. What cores share are parts of the result: blocks of rows, or of channels for
the adjoints. Each part is computed from all that it depends on, so that no sums of several cores have to be
added, and blocks depend on sizes only.

Few filters for each group (depthwise convolutions) are done by loops along rows instead, since a product with
few rows costs more to pack than to compute.
"""

# mypy: ignore-errors

from __future__ import annotations

import numpy as np

from graphc.library import kernel
from graphc.native.builtins import call, cast, isnan, ref, type_of, view


def _windows(attributes, h, w, r, s):
    """For each place in the window: rows and columns of the matrix, and whether they are inside of it."""
    for i in range(attributes["window_h"]):
        for j in range(attributes["window_w"]):
            rows = np.arange(r) * attributes["stride_h"] + i - attributes["pad_h"]
            columns = np.arange(s) * attributes["stride_w"] + j - attributes["pad_w"]
            inside = ((rows >= 0) & (rows < h))[:, None] & ((columns >= 0) & (columns < w))
            yield np.clip(rows, 0, h - 1)[:, None], np.clip(columns, 0, w - 1), inside


def _reference_max(attributes, x, r, s):
    *batch, h, w = x.shape
    best = np.zeros((*batch, int(r), int(s)), x.dtype)
    where = np.full(best.shape, -1, np.int64)
    for rows, columns, inside in _windows(attributes, h, w, int(r), int(s)) if best.size and h * w else ():
        value = x[..., rows, columns]
        more = inside & ((where < 0) | (value > best) | ((value != value) & (best == best)))
        best = np.where(more, value, best)
        where = np.where(more, rows * w + columns, where)
    return best, np.maximum(where, 0)


def _reference_sum(attributes, x, r, s):
    *batch, h, w = x.shape
    total = np.zeros((*batch, int(r), int(s)), x.dtype)
    for rows, columns, inside in _windows(attributes, h, w, int(r), int(s)) if total.size and h * w else ():
        total = total + np.where(inside, x[..., rows, columns], 0)
    return total


def _reference_spread(attributes, g, h, w):
    *batch, r, s = g.shape
    out = np.zeros((*batch, int(h), int(w)), g.dtype)
    for rows, columns, inside in _windows(attributes, int(h), int(w), r, s) if g.size and h * w else ():
        at = (
            ...,
            np.broadcast_to(rows, inside.shape)[inside],
            np.broadcast_to(columns, inside.shape)[inside],
        )
        np.add.at(out, at, g[..., inside])
    return out


@kernel("max_pool", _reference_max)
def max_pool(x, out, where, h, w, r, s, *, window_h, window_w, stride_h, stride_w, pad_h, pad_w):
    for y in range(r):
        top = y * stride_h - pad_h
        first, last = max(top, 0), min(top + window_h, h)
        for z in range(s):
            left = z * stride_w - pad_w
            begin, end = max(left, 0), min(left + window_w, w)
            # Windows never lie outside, but an empty matrix has no elements at all.
            at = min(first * w + begin, h * w - 1)
            if at >= 0:
                best = x[at]
                for i in range(first, last):
                    for j in range(begin, end):
                        value = x[i * w + j]
                        if value > best or (isnan(value) and not isnan(best)):
                            best = value
                            at = i * w + j
                out[y * s + z] = best
                where[y * s + z] = at
            else:
                out[y * s + z] = 0
                where[y * s + z] = 0


@kernel("window_sum", _reference_sum)
def window_sum(x, out, h, w, r, s, *, window_h, window_w, stride_h, stride_w, pad_h, pad_w):
    for y in range(r):
        top = y * stride_h - pad_h
        first, last = max(top, 0), min(top + window_h, h)
        for z in range(s):
            left = z * stride_w - pad_w
            total = cast(0, type_of(x))
            for i in range(first, last):
                for j in range(max(left, 0), min(left + window_w, w)):
                    total += x[i * w + j]
            out[y * s + z] = total


@kernel("window_spread", _reference_spread)
def window_spread(g, out, r, s, h, w, *, window_h, window_w, stride_h, stride_w, pad_h, pad_w):
    for k in range(h * w):
        out[k] = 0
    for y in range(r):
        top = y * stride_h - pad_h
        for z in range(s):
            left = z * stride_w - pad_w
            for i in range(max(top, 0), min(top + window_h, h)):
                for j in range(max(left, 0), min(left + window_w, w)):
                    out[i * w + j] += g[y * s + z]


# Elements of the patches that are held at a time, and their columns, if those are more.
PATCHES, COLUMNS = 1 << 15, 128
# How many parts a convolution of few images is divided into (the adjoint in the filters: PRODUCTS), if they
# have as many channels or filters: smaller products take long for what they compute.
PARTS, PRODUCTS, CHANNELS, FILTERS = 16, 4, 8, 16
# Groups of up to so many filters are done by loops.
FEW = 3


def _slices(attributes, sizes, filters):
    """For each element of a filter: its position, and the slices of image and result that meet there."""
    h, w, r, s = sizes
    for i in range(filters[0]):
        for j in range(filters[1]):
            parts = []
            for at, size, count, name in ((i, h, r, "h"), (j, w, s, "w")):
                stride = attributes[f"stride_{name}"]
                start = at * attributes[f"dilation_{name}"] - attributes[f"pad_{name}"]
                first = max(0, -(start // stride))
                last = min(count, (size - 1 - start) // stride + 1)
                last = max(first, last)
                begin = start + first * stride
                inside = (
                    slice(begin, begin + (last - first - 1) * stride + 1, stride)
                    if last > first
                    else slice(0, 0)
                )
                parts.append((inside, slice(first, last)))
            yield i, j, (..., parts[0][0], parts[1][0]), (..., parts[0][1], parts[1][1])


def _grouped(x, axis, groups):
    """With the axis of channels split into groups."""
    axis = axis % x.ndim
    return x.reshape(*x.shape[:axis], groups, x.shape[axis] // groups, *x.shape[axis + 1 :])


def _product(equation, a, b):
    return np.einsum(equation, a, b, optimize=False) if a.dtype.kind in "iub" else np.einsum(equation, a, b)


def _reference(attributes, x, f, r, s):
    groups = attributes["groups"]
    out = np.zeros((*x.shape[:-3], f.shape[-4], int(r), int(s)), x.dtype)
    xs, fs, outs = _grouped(x, -3, groups), _grouped(f, -4, groups), _grouped(out, -3, groups)
    for i, j, image, result in _slices(attributes, (*x.shape[-2:], int(r), int(s)), f.shape[-2:]):
        outs[result] += np.einsum("...ngchw,...goc->...ngohw", xs[image], fs[..., i, j])
    return out


def _reference_input(attributes, g, f, c, h, w):
    groups = attributes["groups"]
    out = np.zeros((*g.shape[:-3], int(c), int(h), int(w)), g.dtype)
    gs, fs, outs = _grouped(g, -3, groups), _grouped(f, -4, groups), _grouped(out, -3, groups)
    for i, j, image, result in _slices(attributes, (int(h), int(w), *g.shape[-2:]), f.shape[-2:]):
        outs[image] += np.einsum("...ngohw,...goc->...ngchw", gs[result], fs[..., i, j])
    return out


def _reference_filters(attributes, x, g, d, p, q):
    groups = attributes["groups"]
    out = np.zeros((*x.shape[:-4], g.shape[-3], int(d), int(p), int(q)), x.dtype)
    xs, gs, outs = _grouped(x, -3, groups), _grouped(g, -3, groups), _grouped(out, -4, groups)
    for i, j, image, result in _slices(attributes, (*x.shape[-2:], *g.shape[-2:]), (int(p), int(q))):
        outs[..., i, j] += np.einsum("...ngchw,...ngohw->...goc", xs[image], gs[result])
    return out


def _scratch(sizes):
    # Sizes are at most those of complex128.
    return (sizes["d"] * sizes["p"] * sizes["q"] * (sizes["s"] + COLUMNS) + PATCHES) * 16


def _cost(sizes):
    work = 60
    for dim in "nodpqrs":
        work = sizes[dim] * work
    return work


# -- patches -------------------------------------------------------------------------------------------------


def rows_at_once(taps, s, r):
    """Number of rows of the result whose patches fit."""
    return max(1, min(r, max(PATCHES // max(taps * s, 1), (COLUMNS - 1) // max(s, 1) + 1)))


def first_inside(start, stride):
    """The first k >= 0 with start + k * stride >= 0."""
    return 0 if start >= 0 else (stride - 1 - start) // stride


def end_inside(start, stride, size, count):
    """The first k after those with start + k * stride < size, at most count."""
    return 0 if start >= size else min(count, (size - 1 - start) // stride + 1)


def over_rows(act, x, to, f, d, h, w, p, q, s, top, rows, by):
    """Does something for each row of an image that rows top, top + 1, ... of the result read a tap of.

    Args:
        act: takes the numbers of the row that are read, `to`, `f`, the tap, the row of the result, the first
            of its s places inside the image, their end, s, `rows`, the stride, and if there is such a row.
        by: strides, padding and dilation.
    """
    for c in range(d):
        for i in range(p):
            for j in range(q):
                start = j * by.dilation_w - by.pad_w
                first = min(first_inside(start, by.stride_w), s)
                end = max(first, end_inside(start, by.stride_w, w, s))
                for y in range(rows):
                    at = (top + y) * by.stride_h + i * by.dilation_h - by.pad_h
                    have = x[(c * h + at) * w + start + first * by.stride_w :]
                    inside = at >= 0 and at < h
                    act(have, to, f, (c * p + i) * q + j, y, first, end, s, rows, by.stride_w, inside)


def gather(x, patches, f, tap, y, first, end, s, rows, stride, inside):
    """Patches: a matrix (d * p * q, rows * s)."""
    row = patches[(tap * rows + y) * s :]
    begin, past = first if inside else s, end if inside else s
    for k in range(begin):
        row[k] = 0
    for k in range(past - begin):
        row[begin + k] = x[k * stride]
    for k in range(past, s):
        row[k] = 0


def scatter(x, patches, f, tap, y, first, end, s, rows, stride, inside):
    """Adds patches to the places that `gather` takes them from."""
    if inside:
        row = patches[(tap * rows + y) * s + first :]
        for k in range(end - first):
            x[k * stride] += row[k]


def weigh(x, out, f, tap, y, first, end, s, rows, stride, inside):
    """Adds a tap of one filter to the result."""
    if inside:
        weight = f[tap]
        row = out[y * s + first :]
        for k in range(end - first):
            row[k] += weight * x[k * stride]


def product(a, b, out, m, n, k, lda, ldb, ldc, transpose_a, transpose_b, accumulate):
    """The (m, n) product of row-major matrices of k inner elements; row strides are given."""
    one, more = ref(1, type_of(out)), ref(1 if accumulate else 0, type_of(out))
    ways = ref("T" if transpose_b else "N"), ref("T" if transpose_a else "N")
    call("blas_?gemm", *ways, ref(n), ref(m), ref(k), one, b, ref(ldb), a, ref(lda), more, out, ref(ldc))


# -- kernels -------------------------------------------------------------------------------------------------


def rows_of_part(n, taps, r, s):
    """Rows of the result in one part."""
    fair, least = (n * r + PARTS - 1) // PARTS, (COLUMNS - 1) // max(s, 1) + 1
    return min(rows_at_once(taps, s, r), max(fair, least))


def conv2d_parts(n, d, p, q, r, s):
    rows = rows_of_part(n, d * p * q, r, s)
    return n * ((r + rows - 1) // rows)


@kernel("conv2d", _reference, scratch=_scratch, flags="contract", cost=_cost, parts=conv2d_parts)
def conv2d(x, f, out, scratch, n, c, h, w, o, d, p, q, r, s, part, *, attributes):
    patches = view(scratch, type_of(x))
    each, taps = o // attributes.groups, d * p * q
    step = rows_of_part(n, taps, r, s)
    blocks = (r + step - 1) // step
    image = part // blocks
    top = (part - image * blocks) * step
    rows = min(step, r - top)
    for group in range(attributes.groups):
        have = x[(image * c + group * d) * h * w :]
        want = out[((image * o + group * each) * r + top) * s :]
        weights = f[group * each * taps :]
        if each <= FEW:
            for m in range(each):
                for k in range(rows * s):
                    want[m * r * s + k] = 0
                over_rows(
                    weigh, have, want[m * r * s :], weights[m * taps :],
                    d, h, w, p, q, s, top, rows, attributes,
                )  # fmt: skip
        else:
            over_rows(gather, have, patches, None, d, h, w, p, q, s, top, rows, attributes)
            product(
                weights, patches, want, each, rows * s, taps,
                max(taps, 1), max(rows * s, 1), max(r * s, 1),
                False, False, False,
            )  # fmt: skip


def channels_of_part(count, d):
    """Channels in one part, where there are `count` independent sets of d channels."""
    return max(1, min(d, max(CHANNELS, (count * d + PARTS - 1) // PARTS)))


def conv2d_input_parts(n, d, *, groups):
    block = channels_of_part(n * groups, d)
    return n * groups * ((d + block - 1) // block)


@kernel(
    "conv2d_input", _reference_input, scratch=_scratch, flags="contract", cost=_cost, parts=conv2d_input_parts
)
def conv2d_input(g, f, out, scratch, n, o, r, s, d, p, q, c, h, w, part, *, attributes):
    groups = attributes.groups
    patches = view(scratch, type_of(g))
    block = channels_of_part(n * groups, d)
    blocks = (d + block - 1) // block
    # Images and their groups are one axis.
    group = part // blocks
    first = (part - group * blocks) * block
    channels = min(block, d - first)
    each, taps = o // groups, channels * p * q
    want = out[(group * d + first) * h * w :]
    have = g[group * each * r * s :]
    weights = f[(group % groups * each * d + first) * p * q :]
    for k in range(channels * h * w):
        want[k] = 0
    step = rows_at_once(taps, s, r)
    top = 0
    while top < r:
        rows = min(step, r - top)
        product(
            weights, have[top * s :], patches, taps, rows * s, each,
            max(d * p * q, 1), max(r * s, 1), max(rows * s, 1),
            True, False, False,
        )  # fmt: skip
        over_rows(scatter, want, patches, None, channels, h, w, p, q, s, top, rows, attributes)
        top += step


def filters_of_part(sets, each):
    """Filters in one part, where there are so many sets of channels."""
    wanted = (PRODUCTS + sets - 1) // max(sets, 1)
    return max(1, min(each, max(FILTERS, (each + wanted - 1) // max(wanted, 1))))


def conv2d_filters_parts(o, d, *, groups):
    block = channels_of_part(groups, d)
    sets = groups * ((d + block - 1) // block)
    each = o // groups
    filters = filters_of_part(sets, each)
    return sets * ((each + filters - 1) // filters)


@kernel(
    "conv2d_filters",
    _reference_filters,
    scratch=_scratch,
    flags="contract",
    cost=_cost,
    parts=conv2d_filters_parts,
)
def conv2d_filters(x, g, out, scratch, n, c, h, w, o, r, s, d, p, q, part, *, attributes):
    groups = attributes.groups
    patches = view(scratch, type_of(x))
    block = channels_of_part(groups, d)
    blocks = (d + block - 1) // block
    each, filter = o // groups, d * p * q
    most = filters_of_part(groups * blocks, each)
    own = part // (groups * blocks) * most
    part = part % (groups * blocks)
    group = part // blocks
    first = (part - group * blocks) * block
    channels, filters = min(block, d - first), min(most, each - own)
    taps = channels * p * q
    want = out[(group * each + own) * filter + first * p * q :]
    for m in range(filters):
        for k in range(taps):
            want[m * filter + k] = 0
    step = rows_at_once(taps, s, r)
    for image in range(n):
        have = x[(image * c + group * d + first) * h * w :]
        from_result = g[(image * o + group * each + own) * r * s :]
        top = 0
        while top < r:
            rows = min(step, r - top)
            over_rows(gather, have, patches, None, channels, h, w, p, q, s, top, rows, attributes)
            product(
                from_result[top * s :], patches, want, filters, taps, rows * s,
                max(r * s, 1), max(rows * s, 1), max(filter, 1),
                False, True, True,
            )  # fmt: skip
            top += step
