# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The error of the command line tools.

It has a module of its own because `python -m` loads the tool's module under another name.
"""

from __future__ import annotations


class UsageError(Exception):
    """The command line, an input file or a pipeline text is wrong; the message says how."""
