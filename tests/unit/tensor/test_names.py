# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Names of `graphc.tensor` are found when they are asked for, and listed before."""

from __future__ import annotations

import builtins
import subprocess
import sys
from inspect import ismodule

import graphc.tensor as pt


def test_all_names_are_listed_before_any_is_used():
    """Of a process of its own: what others have asked for is there."""
    command = "import graphc.tensor as pt; print(*dir(pt))"
    done = subprocess.run([sys.executable, "-c", command], capture_output=True, text=True, check=True)
    listed = set(done.stdout.split())
    assert {"cross", "vecdot", "grad", "ifelse", "einsum", "sum", "linalg"} <= listed
    # Modules beside it are attributes once somebody has imported them.
    here = [name for name in dir(pt) if not name.startswith("_") and not ismodule(getattr(pt, name))]
    assert [name for name in here if name not in listed] == []


def test_misspelt_names_are_compared_with_all():
    """Also with those that nobody has asked for yet."""
    command = "import graphc.tensor as pt; pt.concatenat"
    done = subprocess.run([sys.executable, "-c", command], capture_output=True, text=True, check=False)
    assert "did you mean 'concatenate'?" in done.stderr


def test_all_public_names_are_imported_at_once():
    """With an asterisk; in a process of its own, where no name has been asked for."""
    command = (
        "import builtins; from graphc.tensor import *; print(*{*globals()} - {*dir(builtins), 'builtins'})"
    )
    done = subprocess.run([sys.executable, "-c", command], capture_output=True, text=True, check=True)
    given = set(done.stdout.split())
    public = [name for name in dir(pt) if not name.startswith("_") and not ismodule(getattr(pt, name))]
    assert {*public} - {"Any", "TYPE_CHECKING", *dir(builtins)} <= given
    assert {"vector", "exp", "concatenate", "linalg", "random", "special", "grad", "TensorType"} <= given
    names: dict[str, object] = {}
    exec("from graphc.tensor import *", names)
    assert names["sum"] is pt.sum and names["abs"] is pt.abs
    # Names of Python, and modules in which names are kept, stay what they were.
    assert not {"type", "math", "Any", "TYPE_CHECKING", "arithmetic"} & names.keys()


def test_each_name_that_is_listed_can_be_imported():
    """Also those that are found when they are asked for."""
    assert [name for name in pt.__all__ if not hasattr(pt, name)] == []
    assert len(set(pt.__all__)) == len(pt.__all__) > 600
