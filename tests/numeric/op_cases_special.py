# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Cases of special functions that are no elementwise rows, of Fourier transforms and of signals."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.signal
import scipy.special as sp
from op_table import COMPLEX, FLOATS, Family, arg, between

POSITIVE, SHAPE = arg("n", "n+1", make=between(0.5, 3)), arg("n", "n+1", make=between(0.6, 2))
X = arg("n", "n+1")

# Special functions --------------------------------------------------------------------------------

case = Family("special", "special", tolerance=100, jax=False)
case("chi2sf", [POSITIVE, SHAPE], reference=lambda x, k: sp.chdtrc(k, x))
case("factorial", [POSITIVE], reference=lambda x: sp.gamma(x + 1), jax=lambda m, x: m.factorial(x))
case("gammal", [SHAPE, POSITIVE], reference=lambda k, x: sp.gammainc(k, x) * sp.gamma(k), gradient=(1,))
case("gammau", [SHAPE, POSITIVE], reference=lambda k, x: sp.gammaincc(k, x) * sp.gamma(k), gradient=(1,))
case("log_expit", [X])
case("loggamma", [POSITIVE], reference=sp.gammaln)
case(
    "multigammaln",
    [arg("n", make=between(2, 4))],
    lambda m, x: m.multigammaln(x, 3),
    lambda x: np.array([sp.multigammaln(a, 3) for a in x], x.dtype),
    jax=True,
)

case = Family("special of several results", "special", tolerance=100, jax=False, sizes=(5, 1, 0))
WIDE, UNIT = arg("n", "n+1", make=between(-6, 6)), arg("n", "n+1", make=between(0.05, 0.95))
for name in ("airy", "fresnel", "shichi", "sici"):
    case(name, [WIDE], reference=lambda x, name=name: _single(getattr(sp, name), x))
    case(f"{name}:of integers", [arg("n", dtype="int64")], gradient=False, dtypes=("float64",))
case("airye", [arg("n", "n+1", make=between(0.1, 9))], reference=lambda x: _single(sp.airye, x))
case("ellipj", [WIDE, UNIT], reference=lambda u, m: _single(sp.ellipj, u, m))
ANGLE, AROUND = arg("n", make=between(0.1, 3)), arg("n", make=between(-3, 3))
for name in ("sph_harm", "sph_harm_y"):
    case(
        name,
        [ANGLE, AROUND],
        lambda m, a, b, name=name: getattr(m, name)(*((3, 4, b, a) if name == "sph_harm" else (4, 3, a, b))),
        lambda a, b: np.asarray(
            sp.sph_harm_y(4, 3, a.astype(float), b.astype(float)), np.result_type(a, "complex64")
        ),
    )

case = Family(
    "complex special",
    "special",
    tolerance=100,
    jax=False,
    sizes=(5, 1, 0),
    python="SciPy computes functions of complex numbers in Python",
)
PAIR = ("complex64", "complex128")
for name in ("airy", "fresnel", "shichi", "sici"):
    case(
        f"{name}:complex",
        [WIDE],
        lambda m, x, name=name: getattr(m, name)(x),
        lambda x, name=name: _single(getattr(sp, name), x),
        dtypes=PAIR,
    )
case("wofz", [X], reference=lambda x: np.asarray(sp.wofz(x), np.result_type(x, "complex64")), dtypes=COMPLEX)


def _single(function: Any, *xs: np.ndarray) -> list[np.ndarray]:
    """Results of double precision, rounded to that of the operands."""
    wide = [x.astype("complex128" if x.dtype.kind == "c" else "float64") for x in xs]
    return [np.asarray(y, xs[0].dtype) for y in function(*wide)]


# Distribution functions ---------------------------------------------------------------------------

case = Family("distribution functions", "special", tolerance=1000, jax=False, sizes=(4, 1))
SHARE, COUNT = arg("n", make=between(0.1, 0.9)), arg("n", make=between(0.5, 4))
SCALE, SIGNED = arg("n", make=between(0.5, 3)), arg("n", make=between(-3, 3))
for name in ("bdtr", "bdtrc"):
    case(
        name,
        [COUNT, SHARE],
        lambda m, k, p, name=name: getattr(m, name)(k, 6, p),
        lambda k, p, name=name: getattr(sp, name)(np.floor(k), 6, p),
        gradient=(1,),
    )
for name in ("nbdtr", "nbdtrc"):
    case(
        name,
        [COUNT, SHARE],
        lambda m, k, p, name=name: getattr(m, name)(k, 3, p),
        lambda k, p, name=name: getattr(sp, name)(np.floor(k), 3, p),
        gradient=(1,),
    )
for name in ("pdtr", "pdtrc"):
    case(name, [COUNT, SCALE], gradient=(1,))
for name in ("chdtr", "chdtrc"):
    case(name, [COUNT, SCALE], gradient=(1,))
for name in ("fdtr", "fdtrc", "gdtr", "gdtrc"):
    case(name, [COUNT, SHARE, SCALE], gradient=(2,))
case("stdtr", [COUNT, SIGNED], gradient=(1,))
for name in ("boxcox", "boxcox1p", "inv_boxcox", "inv_boxcox1p"):
    case(name, [SCALE, SHARE])
case("boxcox:zero", [SCALE], lambda m, x: [m.boxcox(x, 0.0), m.inv_boxcox(x, 0.0)], gradient=False)
for name in ("huber", "pseudo_huber"):
    case(name, [SHARE, SIGNED])
case("exp10", [SIGNED])
case("cosm1", [SIGNED])
case("comb", [arg("n", make=between(4, 6)), SHARE], gradient=False)
case("perm", [arg("n", make=between(4, 6)), SHARE], gradient=False)
case("lambertw", [SCALE], reference=lambda x: sp.lambertw(x).real.astype(x.dtype))
case(
    "lambertw:lower branch",
    [arg("n", make=between(-0.35, -0.05))],
    lambda m, x: m.lambertw(x, -1),
    lambda x: sp.lambertw(x, -1).real.astype(x.dtype),
    sizes=(4,),
)

# Fourier transforms -------------------------------------------------------------------------------

case = Family("fft", "fft", dtypes=COMPLEX, tolerance=40, sizes=(4, 1, 7, 12))
LINES, PICTURE = arg(2, "n"), arg("n", "n+1")
for name in ("fft", "ifft"):
    case(name, [LINES])
    case(f"{name}:longer", [PICTURE], lambda m, x, name=name: getattr(m, name)(x, n=9, axis=0, norm="ortho"))
    case(f"{name}2", [arg(2, "n", "n+1")], lambda m, x, name=name: getattr(m, name + "2")(x))
    case(f"{name}n", [PICTURE], lambda m, x, name=name: getattr(m, name + "n")(x, norm="forward"))
case("hfft", [LINES], lambda m, x: m.hfft(x, n=6))
case("irfft", [LINES], lambda m, x: m.irfft(x, n=7))
case("irfft:default", [arg(2, "n+1")])
case("irfft2", [PICTURE], lambda m, x: m.irfft2(x, s=(3, 5)))
case("irfftn", [PICTURE], lambda m, x: m.irfftn(x, s=(4, 4)))
case("fftshift", [PICTURE])
case("ifftshift", [PICTURE], lambda m, x: m.ifftshift(x, axes=1))
case = Family("fft of reals", "fft", dtypes=FLOATS, tolerance=40, sizes=(4, 1, 7, 12))
case("rfft", [LINES])
case("rfft:shorter", [LINES], lambda m, x: m.rfft(x, n=3))
case("rfft2", [PICTURE])
case("rfftn", [PICTURE])
case("ihfft", [LINES])
case("fftfreq", [LINES], lambda m, x: m.fftfreq(x.shape[1], 0.5), gradient=False, same_dtype=False)
case("rfftfreq", [LINES], lambda m, x: m.rfftfreq(x.shape[1]), gradient=False, same_dtype=False)

# Signals ------------------------------------------------------------------------------------------

case = Family("signal", "signal", dtypes=FLOATS, tolerance=40, sizes=(5, 3), jax=False)
for mode in ("full", "valid", "same"):
    case(
        f"convolve1d:{mode}",
        [arg("n"), arg(3)],
        lambda m, x, y, mode=mode: m.convolve1d(x, y, mode=mode),
        lambda x, y, mode=mode: scipy.signal.convolve(x, y, mode, method="direct"),
    )

    def _plane(x: Any, y: Any, mode: str = mode) -> Any:
        return scipy.signal.convolve2d(x, y, mode)

    case(
        f"convolve2d:{mode}",
        [PICTURE, arg(2, 3)],
        lambda m, x, y, mode=mode: m.convolve2d(x, y, mode=mode),
        _plane,
    )
