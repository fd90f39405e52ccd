# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Special functions of complex numbers."""

import numpy as np
import pytest
import scipy.special

import graphc
import graphc.tensor as pt

RNG = np.random.default_rng(0)
Z = RNG.normal(size=(2, 3)) + 1j * RNG.normal(size=(2, 3))
NAMES = ("erf", "erfc", "erfcx", "erfi")


@pytest.mark.parametrize("mode", ["fast_run", "reference"])
def test_values_and_derivatives(mode):
    z, i = pt.zmatrix("z"), pt.iscalar("i")
    functions = [getattr(pt, name) for name in NAMES]
    values = [function(z) for function in functions]
    slopes = [graphc.grad(pt.real(y).sum(), z) for y in values]
    tangents = [graphc.gradient.pushforward(y, z, pt.ones_like(z)) for y in values]
    rows = graphc.scan(pt.erf, sequences=[z], return_updates=False)
    f = graphc.function([z, i], [*values, *slopes, *tangents, rows, pt.abs(pt.erf(z[i]))], mode=mode)
    found = f(Z, 1)
    step = 1e-6
    for k, name in enumerate(NAMES):
        reference = getattr(scipy.special, name)
        np.testing.assert_allclose(found[k], reference(Z), rtol=1e-14)
        derivative = (reference(Z + step) - reference(Z - step)) / (2 * step)
        np.testing.assert_allclose(found[4 + k], derivative.conj(), rtol=1e-8)
        np.testing.assert_allclose(found[8 + k], derivative, rtol=1e-8)
    np.testing.assert_array_equal(found[12], found[0])
    np.testing.assert_allclose(found[13], np.abs(found[0][1]), rtol=1e-15)


def test_dtypes_and_batches():
    assert [pt.erf(pt.vector(dtype=d)).dtype for d in ("complex64", "float32", "int64")] == [
        *("complex64", "float32", "float64")
    ]
    c = pt.vector("c", dtype="complex64")
    got = graphc.function([c], pt.erf(c))(Z[0].astype("complex64"))
    np.testing.assert_allclose(got, scipy.special.erf(Z[0]), rtol=1e-6)
    z = pt.zmatrix("z")
    np.testing.assert_allclose(pt.vectorize(pt.erf, signature="()->()")(z).eval({z: Z}), scipy.special.erf(Z))
    assert graphc.clone_replace(pt.erf(c), {c: c + 1}).type == pt.erf(c).type


SEVERAL = {"airy": 4, "sici": 2, "shichi": 2, "fresnel": 2, "wofz": 1, "airye": 2}


@pytest.mark.parametrize("name", SEVERAL)
def test_functions_with_several_results(name):
    """Derivatives are those of analytic functions; scales by sizes of exponentials are not."""
    z = pt.zmatrix("z")
    results = getattr(pt.special, name)(z)
    results = list(results) if isinstance(results, tuple) else [results]
    slopes = [graphc.grad(pt.real(y).sum(), z) for y in results[: SEVERAL[name]]]
    found = graphc.function([z], [*results, *slopes])(Z)

    def reference(z):
        values = getattr(scipy.special, name)(z)
        return values if isinstance(values, tuple) else [values]

    step = 1e-6
    for k, value in enumerate(reference(Z)):
        np.testing.assert_array_equal(found[k], value)
        if k < SEVERAL[name]:
            derivative = (reference(Z + step)[k] - reference(Z - step)[k]) / (2 * step)
            np.testing.assert_allclose(found[len(results) + k], derivative.conj(), rtol=1e-7)
    if name == "airye":
        with pytest.raises(graphc.errors.NullTypeGradError, match="size of an exponential"):
            graphc.grad(pt.real(results[2]).sum(), z)
