# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Maxima and sums of windows that move over a matrix."""
# mypy: ignore-errors

from __future__ import annotations

import numpy as np

from graphc.library.registry import kernel
from graphc.native.builtins import cast, isnan, type_of


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
    for rows, columns, inside in _windows(attributes, h, w, int(r), int(s)) if h * w else ():
        value = x[..., rows, columns]
        more = inside & ((where < 0) | (value > best) | ((value != value) & (best == best)))
        best = np.where(more, value, best)
        where = np.where(more, rows * w + columns, where)
    return best, np.maximum(where, 0)


def _reference_sum(attributes, x, r, s):
    *batch, h, w = x.shape
    total = np.zeros((*batch, int(r), int(s)), x.dtype)
    for rows, columns, inside in _windows(attributes, h, w, int(r), int(s)) if h * w else ():
        total = total + np.where(inside, x[..., rows, columns], 0)
    return total


def _reference_spread(attributes, g, h, w):
    *batch, r, s = g.shape
    out = np.zeros((*batch, int(h), int(w)), g.dtype)
    for rows, columns, inside in _windows(attributes, int(h), int(w), r, s) if h * w else ():
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
