# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From a `FunctionGraph` to a native executable."""

# The tensor package imports this one at its end; whichever is asked for first, it has to come first.
import graphc.tensor  # noqa: F401
from graphc.compile.ops import as_op as as_op
from graphc.compile.ops import wrap_py as wrap_py
