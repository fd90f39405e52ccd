# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Every build starts from nothing: setuptools would pack what `build/lib` holds of an older one, and
operations and passes are found by their files. pyproject.toml has all the rest.
"""

import shutil

from setuptools import setup

shutil.rmtree("build/lib", ignore_errors=True)
setup()
