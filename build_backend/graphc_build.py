# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Builds the distribution `graphc`: setuptools, but for the runtime.

The runtime is a distribution of its own, `graphc-runtime`, on which a wheel of graphc depends. An editable
installation takes it from this repository instead: it has the runtime's packages, and its dependencies in
place of the runtime itself. setup.py asks which of both it is.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from setuptools import build_meta
from setuptools.build_meta import *  # noqa: F403

VARIABLE = "GRAPHC_BUILD"


def _together(build: Callable[..., Any]) -> Callable[..., Any]:
    def run(*args: Any, **keywords: Any) -> Any:
        os.environ[VARIABLE] = "editable"
        try:
            return build(*args, **keywords)
        finally:
            del os.environ[VARIABLE]

    return run


get_requires_for_build_editable = _together(build_meta.get_requires_for_build_editable)
prepare_metadata_for_build_editable = _together(build_meta.prepare_metadata_for_build_editable)
build_editable = _together(build_meta.build_editable)
