# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Every build starts from nothing: setuptools would pack what `build/lib` holds of an older one, and
operations and passes are found by their files. An archive of sources has the version that it says itself,
whatever git says, or has written into `.git_archival.txt`, where it is unpacked. pyproject.toml has all the
rest.
"""

import os
import shutil
from email.parser import Parser
from pathlib import Path

from setuptools import setup

shutil.rmtree("build/lib", ignore_errors=True)
if Path("PKG-INFO").exists():
    told = Parser().parsestr(Path("PKG-INFO").read_text(encoding="utf-8"), headersonly=True)
    os.environ.setdefault("SETUPTOOLS_SCM_PRETEND_VERSION_FOR_GRAPHC", str(told["Version"]))
setup()
