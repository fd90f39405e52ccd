# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Run libraries written for the array API standard on tensors of immediate mode, and compare with NumPy.

``make conformance-clients`` calls it in an environment of its own. The clients are array-api-extra, SciPy
with ``SCIPY_ARRAY_API=1`` and scikit-learn with array API dispatch, all from PyPI. Each line of
``clients/*.txt`` is an expression that is evaluated twice, on NumPy's arrays and on tensors; the results must
agree. Expected
failures are in ``expected/clients.txt``, with reasons: a failure that is not listed and a listed check that
passes are errors.
"""

from __future__ import annotations

import argparse
import os
import sys
import traceback
import warnings
from pathlib import Path
from typing import Any

os.environ["SCIPY_ARRAY_API"] = "1"  # before SciPy is loaded

import array_api_compat.numpy
import array_api_extra
import numpy as np
import scipy
import sklearn
from array_api import expected_failures, problems

import graphc

HERE = Path(__file__).resolve().parent
CLIENTS = {"array-api-extra": array_api_extra, "scipy": scipy, "scikit-learn": sklearn}


class Modules(dict):
    """The names of an expression: modules and estimators are found by name, where they are needed."""

    def __missing__(self, name: str) -> Any:
        import importlib

        for prefix in ("scipy.", "sklearn.", ""):
            try:
                return importlib.import_module(prefix + name)
            except ImportError:
                continue
        from sklearn.utils import all_estimators

        return dict(all_estimators())[name]


def names(xp: Any) -> Modules:
    """What expressions are made of: the namespace, functions that make arrays, and arrays."""
    rng = np.random.default_rng(5)

    def array(x: Any, dtype: Any = None) -> Any:
        return xp.asarray(np.asarray(x, dtype))

    features = rng.normal(size=(40, 4)) @ np.diag([3.0, 2.0, 1.0, 0.5]) + 0.3
    labels = (features[:, 0] + 0.3 * rng.normal(size=40) > 0).astype(int)
    square = rng.normal(size=(4, 4))
    return Modules(
        xp=xp,
        xpx=array_api_extra,
        A=array,
        fitted=fitted,
        default_rng=np.random.default_rng,
        p=array(rng.uniform(0.1, 0.9, (4, 3))),
        q=array(rng.uniform(0.1, 0.9, (4, 3))),
        x=array(rng.normal(size=(4, 3))),
        y=array(rng.normal(size=(4, 3))),
        n=array(rng.integers(1, 6, (4, 3)).astype(float)),
        i=array(rng.integers(0, 9, 12)),
        j=array(rng.integers(0, 9, 7)),
        holes=array(np.where(rng.random((4, 3)) < 0.4, np.nan, rng.normal(size=(4, 3)))),
        z=array(rng.normal(size=8) + 1j * rng.normal(size=8)),
        s=array(rng.normal(size=30)),
        t=array(rng.normal(size=30) + 0.2),
        wave=array(np.sin(np.arange(64) * 0.7) + 0.1 * rng.normal(size=64)),
        image=array(rng.normal(size=(9, 10))),
        spd=array(square @ square.T + np.eye(4)),
        X=array(features),
        Y=array(labels),
        Y3=array(np.digitize(features[:, 0], [-1.5, 1.5])),
        T=array(features @ [1.0, -2.0, 0.5, 0.0] + 0.1),
        T2=array(features @ rng.normal(size=(4, 2)) + 0.2),
        score=array(rng.uniform(0.05, 0.95, 40)),
        guess=array(np.where(rng.random(40) < 0.3, 1 - labels, labels)),
        near=array(np.abs(features @ [1.0, -2.0, 0.5, 0.0]) + 0.5 + 0.1 * rng.random(40)),
        true=array(np.abs(features @ [1.0, -2.0, 0.5, 0.0]) + 0.5),
    )


def fitted(estimator: Any, X: Any, y: Any = None, attributes: str = "", calls: str = "") -> list[Any]:
    """Fit an estimator: its attributes, and what methods give for the same X."""
    estimator.fit(X, y)
    return [
        *(getattr(estimator, name) for name in attributes.split()),
        *(getattr(estimator, name)(X) for name in calls.split()),
    ]


def flat(x: Any) -> list[Any]:
    """A result as a list of arrays and other values."""
    if isinstance(x, dict):
        x = [x[key] for key in sorted(x, key=str)]
    if isinstance(x, list | tuple) or (hasattr(x, "_fields") and hasattr(x, "__iter__")):
        return [each for item in x for each in flat(item)]
    if isinstance(x, str | bool | None.__class__):
        return [x]
    fields = [
        name for name in ("statistic", "pvalue", "df", "dfdx", "integral", "estimate") if hasattr(x, name)
    ]
    if fields and not hasattr(x, "shape"):
        return [each for name in fields for each in flat(getattr(x, name))]
    return [np.asarray(x)]


def check(text: str) -> str | None:
    """Evaluate an expression on both; None if they agree, else what is wrong."""
    code = compile(text, "<check>", "eval")
    with warnings.catch_warnings(), sklearn.config_context(array_api_dispatch=True):
        warnings.simplefilter("ignore")
        try:
            wanted = flat(eval(code, names(array_api_compat.numpy)))
        except Exception as error:
            return f"with NumPy {type(error).__name__}: {error}"
        try:
            found = flat(eval(code, names(XP)))
        except Exception as error:
            where = traceback.extract_tb(error.__traceback__)
            theirs = [f for f in where if "site-packages" in f.filename and "graphc" not in f.filename]
            last = (
                f" at {Path(theirs[-1].filename).name}:{theirs[-1].lineno}: {theirs[-1].line}"
                if theirs
                else ""
            )
            return f"{type(error).__name__}: {str(error)[:300]}{last}"
    if len(found) != len(wanted):
        return f"{len(found)} results, NumPy has {len(wanted)}"
    for a, b in zip(found, wanted, strict=True):
        if not isinstance(b, np.ndarray) or b.dtype.kind in "OUS":
            if not np.array_equal(a, b):
                return f"{a!r:.80}, NumPy has {b!r:.80}"
            continue
        if np.shape(a) != b.shape:
            return f"shape {np.shape(a)}, NumPy has {b.shape}"
        if not np.allclose(a, b, rtol=1e-6, atol=1e-9, equal_nan=True):
            return f"differs by {np.nanmax(np.abs(np.asarray(a, complex) - b)):.2g}"
    return None


XP = graphc.immediate.Environment(name="graphc").array_api


def checks(client: str) -> list[str]:
    """The expressions of a client."""
    lines = (HERE / "clients" / f"{client}.txt").read_text().splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--client", choices=CLIENTS, action="append")
    parser.add_argument("--only", help="part of the expressions to run")
    options = parser.parse_args()
    expected = expected_failures(HERE / "expected" / "clients.txt")
    outcomes: dict[str, str] = {}
    for client in options.client or CLIENTS:
        listed = [f"{client}: {text}" for text in checks(client) if (options.only or "") in text]
        for name in listed:
            wrong = check(name.partition(": ")[2])
            outcomes[name] = "failed" if wrong else "passed"
            if wrong and name not in expected:
                print(f"{name}\n    {wrong}", flush=True)
        passed = sum(outcomes[name] == "passed" for name in listed)
        print(f"{client} {CLIENTS[client].__version__}: {passed} of {len(listed)} checks pass", flush=True)
    found = problems(outcomes, expected, whole=not (options.only or options.client))
    print(*found, sep="\n")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
