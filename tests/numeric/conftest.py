# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`-k NAME` selects the cases of an operation, `--operation=NAME` these alone, without names that contain it.

Groups of many cases keep only its own.
"""

from __future__ import annotations

import re
from types import SimpleNamespace

import pytest

_NO_PARAMETERS = SimpleNamespace(params={})


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--operation", default="", help="run the cases of this operation alone")


def of_operation(name: str, operation: str) -> bool:
    """True if the name of a case, such as ``linalg.norm:2``, is of an operation, such as ``norm``."""
    base = name.partition(":")[0]
    return operation in (name, base, base.rpartition(".")[2])


def is_named(item: pytest.Item, operation: str) -> bool:
    """True if the parameters of a test name an operation, as in ``test_gradient[linalg.norm:2]``."""
    _, _, parameters = item.name.partition("[")
    words = re.split(r"[-\], ]", parameters)
    return any(of_operation(word, operation) for word in words)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Before pytest looks at keywords."""
    alone = config.option.operation
    operation = alone or config.option.keyword
    if not (alone or operation.isidentifier()):
        return
    left = []
    for item in items:
        group = getattr(item, "callspec", _NO_PARAMETERS).params.get("group")
        chosen = [case for case in getattr(group, "cases", ()) if of_operation(case.name, operation)]
        if chosen:
            group.cases = chosen
            item.extra_keyword_matches.add(operation)
        elif alone and not (group is None and is_named(item, operation)):
            left.append(item)
    if left:
        config.hook.pytest_deselected(items=left)
        items[:] = [item for item in items if item not in set(left)]
