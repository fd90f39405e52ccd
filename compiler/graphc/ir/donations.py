# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arguments that lend their memory to results, as attributes of modules.

`graphc.donate` offers arguments: ``[{argument = 0 : i64, results = array<i64: 0, 1>, keeps_on_failure}]``.
`graphc.donated` says what became of them: ``{pairs = [array<i64: 0, 1>], spares = [array<i64: 2, 0>],
kept = [{argument = 3 : i64, reason = "..."}]}``, pairs of an argument and a result.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from graphc_runtime.record import record

if TYPE_CHECKING:
    from graphc_dialects._mlir import ir

OFFERED, DONATED = "graphc.donate", "graphc.donated"


@record(frozen=True)
class Donation:
    """An argument that results may be computed in.

    Attributes:
        argument: its position.
        results: positions of the results that may have its memory; the first that can has it.
        keeps_on_failure: whether it must be as before if a check fails.
    """

    argument: int
    results: tuple[int, ...]
    keeps_on_failure: bool = False


@record(frozen=True)
class Donated:
    """Outcome of donations.

    Attributes:
        pairs: an argument and the result that is computed in its memory.
        spares: an argument that nothing reads and the result that may be computed in its memory.
        kept: an argument that stays as it is and the reason why.
    """

    pairs: tuple[tuple[int, int], ...] = ()
    spares: tuple[tuple[int, int], ...] = ()
    kept: tuple[tuple[int, str], ...] = ()

    def to_text(self) -> str:
        """The attribute."""
        import json

        kept = [f"{{argument = {i} : i64, reason = {json.dumps(reason)}}}" for i, reason in self.kept]
        pairs, spares = (", ".join(map(_numbers, each)) for each in (self.pairs, self.spares))
        return f"{{pairs = [{pairs}], spares = [{spares}], kept = [{', '.join(kept)}]}}"


def with_donations(text: str, donations: Iterable[Donation]) -> str:
    """Emitted text, which begins with ``module``, with an attribute that offers arguments."""
    offered = ", ".join(map(_offer, donations))
    if not offered:
        return text
    return f"module attributes {{{OFFERED} = [{offered}]}}{text.removeprefix('module')}"


def _offer(donation: Donation) -> str:
    keeps = ", keeps_on_failure" if donation.keeps_on_failure else ""
    return f"{{argument = {donation.argument} : i64, results = {_numbers(donation.results)}{keeps}}}"


def _numbers(numbers: Iterable[int]) -> str:
    listed = ", ".join(map(str, numbers))
    return f"array<i64: {listed}>" if listed else "array<i64>"


def offered(module: ir.Module) -> list[Donation]:
    """The arguments that a module offers.

    Raises:
        ValueError: the attribute is not as described above.
    """
    attributes = module.operation.attributes
    if OFFERED not in attributes:
        return []
    try:
        return [
            Donation(
                _integer(item["argument"]), tuple(_integers(item["results"])), "keeps_on_failure" in item
            )
            for item in attributes[OFFERED]
        ]
    except (AttributeError, KeyError, TypeError):
        raise ValueError(
            f"'{OFFERED}' must be a list of {{argument = n : i64, results = array<i64: n, ...>}}, but is "
            f"{attributes[OFFERED]}"
        ) from None


def donated(module: ir.Module) -> Donated:
    """Outcome of the donations.

    Raises:
        ValueError: the attribute is not as described above.
    """
    attributes = module.operation.attributes
    if DONATED not in attributes:
        return Donated()
    try:
        found = attributes[DONATED]
        pairs, spares = (tuple(_pair(item) for item in found[name]) for name in ("pairs", "spares"))
        kept = tuple((_integer(item["argument"]), str(item["reason"].value)) for item in found["kept"])
        return Donated(pairs, spares, kept)
    except (AttributeError, KeyError, TypeError, ValueError):
        raise ValueError(
            f"'{DONATED}' must be {{pairs = [array<i64: n, n>, ...], spares = [...], kept = [{{argument = "
            f"n : i64, reason = text}}, ...]}}, but is {attributes[DONATED]}"
        ) from None


def _pair(item: ir.Attribute) -> tuple[int, int]:
    argument, result = _integers(item)
    return argument, result


def _integers(attribute: ir.Attribute) -> list[int]:
    return [int(number) for number in attribute]


def _integer(attribute: ir.Attribute) -> int:
    value = attribute.value
    if not isinstance(value, int):
        raise TypeError(f"{attribute} is no integer")
    return value
