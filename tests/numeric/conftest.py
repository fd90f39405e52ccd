# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`-k NAME` selects the cases of an operation: groups of many cases keep only its own."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

_NO_PARAMETERS = SimpleNamespace(params={})


def of_operation(name: str, operation: str) -> bool:
    """True if the name of a case, such as ``linalg.norm:2``, is of an operation, such as ``norm``."""
    base = name.partition(":")[0]
    return operation in (name, base, base.rpartition(".")[2])


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Before pytest looks at keywords."""
    operation = config.option.keyword
    if not operation.isidentifier():
        return
    for item in items:
        group = getattr(item, "callspec", _NO_PARAMETERS).params.get("group")
        chosen = [case for case in getattr(group, "cases", ()) if of_operation(case.name, operation)]
        if chosen:
            group.cases = chosen
            item.extra_keyword_matches.add(operation)
