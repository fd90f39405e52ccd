# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Every public name has a docstring with an example that runs.

Examples run op by op in NumPy: other tests compare the compiler with that.
"""

from __future__ import annotations

import doctest
import inspect

import numpy as np
import pytest

import graphc
import graphc.tensor as pt
from graphc.ops.elementwise import Elementwise
from graphc_tools.docs_reference import example_of
from graphc_tools.public_names import PublicName, public_names

NAMES = [each for names in public_names().values() for each in names]
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
# The names that examples use.
GLOBALS = {"np": np, "graphc": graphc, "pt": pt}


def lacks(each: PublicName) -> list[str]:
    """What the documentation of a name has not."""
    if isinstance(each.value, Elementwise):  # the reference writes their examples
        return [] if each.value.row.doc and example_of(each) else ["example"]
    text = inspect.getdoc(each.value) or ""
    found = [] if text else ["docstring"]
    return found if ">>> " in text else [*found, "example"]


def with_examples() -> list[PublicName]:
    return [
        each for each in NAMES if not isinstance(each.value, Elementwise) and ">>> " in each.value.__doc__
    ]


def test_every_name_has_a_docstring_with_an_example():
    assert {each.shown: what for each in NAMES if (what := lacks(each))} == {}


@pytest.mark.parametrize("namespace", sorted({each.namespace for each in with_examples()}))
def test_examples_run(namespace):
    parser, report = doctest.DocTestParser(), []
    with graphc.config.change_flags(mode="reference"):
        for each in with_examples():
            if each.namespace != namespace:
                continue
            text = inspect.getdoc(each.value) or ""
            test = parser.get_doctest(text, dict(GLOBALS), each.shown, None, 0)
            doctest.DocTestRunner(optionflags=FLAGS).run(test, out=report.append)
    assert not report, "".join(report)
