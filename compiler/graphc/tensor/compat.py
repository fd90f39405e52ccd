# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compatibility: names of PyTensor and NumPy for what has another name here.

Elementwise functions of ``graphc.tensor`` are builders of ``graphc.ops.math``; here are their other names.
Who reads the other modules does not meet them.
"""

from __future__ import annotations

import numpy as np

from graphc.hooks import publish as _publish
from graphc.ops import math
from graphc.ops.math import *  # noqa: F403

# Names of PyTensor and NumPy for builders that have another one.
subtract = math.sub
multiply = math.mul
divide = true_divide = math.true_div
int_div = floor_divide = math.floor_div
remainder = math.mod
power = math.pow
negative = math.neg
absolute = math.abs
sgn = math.sign
square = math.sqr
neq = not_equal = math.ne
equal = math.eq
less = math.lt
less_equal = math.le
greater = math.gt
greater_equal = math.ge
and_ = math.bitwise_and
or_ = math.bitwise_or
bitwise_not = bitwise_invert = math.invert
bitwise_left_shift = math.left_shift
bitwise_right_shift = math.right_shift
acos = math.arccos
acosh = math.arccosh
asin = math.arcsin
asinh = math.arcsinh
atan = math.arctan
atan2 = math.arctan2
atanh = math.arctanh
conjugate = math.conj
expit = math.sigmoid
log1pexp = math.softplus
psi = math.digamma
tri_gamma = math.trigamma
lgamma = math.gammaln
jn = math.jv
yn = math.yv
kn = math.kv
fill = math.second
degrees = math.rad2deg
radians = math.deg2rad
rint = math.round_half_to_even
around = math.round
xor = math.bitwise_xor

pi, e, inf, nan, newaxis = np.pi, np.e, np.inf, np.nan, None

_publish(globals(), imported=True)
