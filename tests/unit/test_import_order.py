# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Any part of the compiler can be imported first, as unpickling a function does."""

from __future__ import annotations

import os
import subprocess
import sys


def test_first_imports():
    code = """
import sys, traceback, importlib
import numpy
first = ("graphc.function.types graphc.function.shared graphc.function.modes graphc.function.schedule "
         "graphc.emit graphc.emit.emitter graphc.compile.native graphc.compile.fingerprint "
         "graphc.graph.basic graphc.ops.elementwise graphc.gradient graphc.tensor.type graphc.tensor").split()
for name in first:
    for loaded in [m for m in sys.modules if m.partition(".")[0] == "graphc"]:
        del sys.modules[loaded]
    try:
        importlib.import_module(name)
    except ImportError:
        print(name, traceback.format_exc())
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    assert done.returncode == 0 and not done.stdout, done.stdout + done.stderr
