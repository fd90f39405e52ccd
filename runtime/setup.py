# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The runtime alone has the repository's version; in an archive of its own sources, the archive's, whatever
repository that was unpacked in. As in ../setup.py, every build starts from nothing.
"""

import shutil
from pathlib import Path

from setuptools import setup

shutil.rmtree("build/lib", ignore_errors=True)
root = "." if Path("PKG-INFO").exists() else ".."
setup(use_scm_version={"root": root, "fallback_version": "0.0"})
