# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Run PyTensor's own tests with PyTensor itself, compiled by graphc through the bridge's linker.

As `run` beside it, with these differences: the interpreter has PyTensor, whose version says which suite is
run; its default mode is ``"GRAPHC"``; ``linked.toml`` says which tests count, ``expected/linked-*.txt`` which
fail and why. ``linked.py pymc`` runs PyMC's own tests, of the version that is installed: those that fail run
in PyTensor's default mode too, and count if they pass there. The source archives of PyPI have the tests of
their outermost folder only; a clone has all (``--clone``, or a folder ``pymc-vVERSION`` in SUITES).
``linked.py pymc-extras`` does the same with that package, whose source archives are whole.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from importlib.metadata import version

import run

# PyTensor's C code for copies ends the process on values without axes.
FLAGS = "cxx=,warn__ignore_bug_before=all,on_opt_error=raise,on_shape_error=raise"
LINKED = run.Way("linked_plugin", "linked.toml", "linked-", {"PYTENSOR_FLAGS": FLAGS})


def of_project(name: str) -> run.Way:
    """Tests of a project that builds on PyTensor."""
    flags = {"PYTENSOR_FLAGS": "cxx="}
    default = run.Way("recording", "pymc.toml", f"{name}-default-", flags, (name, "v{}"), ())
    return replace(default, plugin="linked_plugin", prefix=f"{name}-", wording=True, reference=default)


def suite_of(installed: str) -> str:
    """The suite for an installed version: that of a release of the same series."""
    series = installed.split(".")[:2]
    return next((known for known in run.VERSIONS if known.split(".")[:2] == series), installed)


if __name__ == "__main__":
    if sys.argv[1:2] in (["pymc"], ["pymc-extras"]):
        name = sys.argv.pop(1)
        sys.exit(run.main(of_project(name), version(name)))
    sys.exit(run.main(LINKED, suite_of(version("pytensor"))))
