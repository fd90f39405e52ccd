# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""lit configuration: `lit tests/lit` from the root of the repository."""

import os
import sys

import lit.formats  # noqa: F401  (lit needs it to be imported before a format is subclassed)

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SOURCES = [os.path.join(ROOT, name) for name in ("compiler", "dialects", "runtime", "tools")]
sys.path[:0] = [path for path in SOURCES if path not in sys.path]

from graphc_tools.lit_format import InProcessTest  # noqa: E402

config.name = "graphc"  # noqa: F821  (lit defines `config`)
config.test_format = InProcessTest()  # noqa: F821
config.suffixes = [".mlir"]  # noqa: F821
config.test_source_root = os.path.dirname(os.path.abspath(__file__))  # noqa: F821
config.test_exec_root = os.path.join(ROOT, "build", "lit")  # noqa: F821
config.environment["PYTHONPATH"] = os.pathsep.join([*SOURCES, os.environ.get("PYTHONPATH", "")])  # noqa: F821

# The interpreter that runs lit is the one that has the packages.
config.substitutions += [  # noqa: F821
    (r"\bgraphc-opt\b", f'"{sys.executable}" -m graphc_tools.opt'),
    (r"\bfilecheck\b", f'"{sys.executable}" -m filecheck'),
]
