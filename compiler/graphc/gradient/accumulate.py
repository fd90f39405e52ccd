# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The reverse sweep: visit nodes from the outputs to the inputs and add up cotangents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from graphc.gradient.branches import Branches
from graphc.gradient.connectivity import Paths
from graphc.gradient.rules import call_pullback
from graphc.gradient.stable import stable_form, sum_pullback
from graphc.graph.basic import Apply, Constant, Variable
from graphc.graph.demand import Demand, is_conditional
from graphc.graph.undefined import is_disconnected, is_discrete, is_null
from graphc.ops.advanced import Put
from graphc.ops.derivatives import match_dtype, total
from graphc.ops.dimshuffle import DimShuffle
from graphc.ops.shaping import BroadcastTo
from graphc.ops.subtensor import IncSubtensor


def accumulated(terms: Sequence[Variable]) -> Variable | None:
    """The sum of cotangents of one variable. What was put into zeros, as the cotangent of a part is, is put
    into the sum of the others: it costs what it touches, and stays an update in derivatives of higher order.
    """
    if len(terms) < 2:
        return total(terms)
    terms = [as_update(term) for term in terms]
    parts = [term for term in terms if _updated_zeros(term)]
    if not parts:
        return total(terms)
    others = [term for term in terms if not _updated_zeros(term)]
    found = total(others) if others else parts.pop(0)
    for part in parts:
        node = part.owner
        assert node is not None
        if found is not None and found.type == part.type:
            found = node.clone_with_new_inputs([found, *node.inputs[1:]]).outputs[0]
        else:
            found = total([part] if found is None else [found, part])
    return found


def _updated_zeros(g: Variable) -> bool:
    """True if a variable is zeros of which a part was increased."""
    node = g.owner
    if node is None or not isinstance(node.op, IncSubtensor | Put):
        return False
    return not node.op.set_instead_of_inc and is_zeros(node.inputs[0])


def is_zeros(v: Variable) -> bool:
    """True if a variable is known to hold zeros."""
    if isinstance(v, Constant):
        return not np.any(v.data)
    node = v.owner
    return node is not None and isinstance(node.op, BroadcastTo | DimShuffle) and is_zeros(node.inputs[0])


def as_update(g: Variable) -> Variable:
    """An update whose axes are permuted afterwards as an update of what has these axes, as which it is seen.

    The cotangent of a row of a batch of traces has this form: a batch has its axis first, a trace its steps.
    What is no such update is returned as it is.
    """
    node = g.owner
    if node is None or not isinstance(node.op, DimShuffle):
        return g
    inner, order = as_update(node.inputs[0]).owner, node.op.new_order
    if inner is None or not isinstance(inner.op, Put | IncSubtensor):
        return g
    if sorted(map(str, order)) != sorted(map(str, range(inner.outputs[0].type.ndim))):
        return g
    x, y, *others = inner.inputs
    if isinstance(inner.op, Put) and others[0].type.ndim == 1:
        op: Put | IncSubtensor = Put(order.index(inner.op.axis), inner.op.set_instead_of_inc)
    elif isinstance(inner.op, IncSubtensor):
        bounds = iter(others)
        own = [[next(bounds) for _ in range(entry.operands())] for entry in inner.op.idx_list]
        axes = [axis for axis in order if isinstance(axis, int)]
        op = IncSubtensor([inner.op.idx_list[axis] for axis in axes], inner.op.set_instead_of_inc)
        others = [bound for axis in axes for bound in own[axis]]
    else:
        return g
    return op(node.op(x), node.op(y), *others)


class Cotangents:
    """Cotangents of the variables between ``wrt`` and the outputs.

    Args:
        paths: the nodes to visit.
        seeds: cotangents that are added to what the graph contributes.
        known: cotangents that are used instead of what the graph contributes.
        label: name of the cost, for the names ``(dcost/dx)`` of the results; None names nothing.

    Attributes:
        reached: variables that the outputs depend on.
    """

    def __init__(
        self,
        paths: Paths,
        seeds: Mapping[Variable, Variable],
        known: Mapping[Variable, Variable] | None = None,
        label: str | None = None,
    ) -> None:
        self.paths = paths
        self.known = dict(known or {})
        conditional = any(is_conditional(node) for node in paths.nodes)
        self.branches = Branches(paths.nodes, [*seeds, *self.known]) if conditional else None
        # Each term with its guard, which says where it is valid; None without conditionals.
        always = self.branches.always if self.branches is not None else None
        self.terms: dict[Variable, list[tuple[Variable, Demand | None]]] = {
            v: [(g, always)] for v, g in seeds.items()
        }
        self.done: dict[tuple[Variable, Demand | None], Variable | None] = {}
        self.reached = set(seeds) | {v for v, g in self.known.items() if not is_disconnected(g)}
        self.label = label
        self._kept = paths.ends | set(self.known)

    def run(self) -> None:
        """Visit every node."""
        for node in reversed(self.paths.nodes):
            self.visit(node)

    def of(self, v: Variable) -> Variable | None:
        """The total cotangent of ``v``, None for zero; all nodes that read ``v`` must have been visited."""
        return self._total(v, self.branches.always if self.branches is not None else None)

    def _guarded(self, v: Variable) -> Variable | None:
        """As `of`, but valid only where ``v`` is needed."""
        return self._total(v, self.branches.guard(v) if self.branches is not None else None)

    def _total(self, v: Variable, within: Demand | None) -> Variable | None:
        if (v, within) not in self.done:
            self.done[v, within] = self._sum(v, within)
        return self.done[v, within]

    def _sum(self, v: Variable, within: Demand | None) -> Variable | None:
        if v in self.known:
            return None if is_disconnected(self.known[v]) else self.known[v]
        terms = self.terms.get(v, [])
        null = next((term for term, _ in terms if is_null(term)), None)
        if null is not None or not terms:
            return null
        if self.branches is None or within is None:
            g = accumulated([term for term, _ in terms])
        else:
            guarded = [(term, guard) for term, guard in terms if guard is not None]
            g = self.branches.total(v, guarded, within)
        if g is None:
            return None
        g = match_dtype(v, g)
        # A variable that the user made or that already stands for another gradient keeps its name.
        if self.label is not None and v.name is not None and g.name is None and g.owner is not None:
            g.name = f"(d{self.label}/d{v.name})"
        return g

    def visit(self, node: Apply) -> None:
        """Add the terms that ``node`` contributes to its inputs."""
        pattern, depends = self.paths.patterns[node], self.paths.depends
        live = [y in self.reached and y in depends for y in node.outputs]
        wanted = [x in depends and any(map(_both, pattern[i], live)) for i, x in enumerate(node.inputs)]
        if not any(wanted):
            return
        cotangents = [self._guarded(y) if ok else None for y, ok in zip(node.outputs, live, strict=True)]
        usable = [
            None if is_null(g) or is_discrete(y) else g for y, g in zip(node.outputs, cotangents, strict=True)
        ]
        if usable[0] is not None and self._pass_stably(node, usable[0]):
            return
        terms: Sequence[Variable | None] = [None] * len(node.inputs)
        branches = self.branches
        guards = [None] * len(terms) if branches is None else branches.term_guards(node)
        if is_conditional(node):
            terms = [None, *usable, *usable]
        elif any(g is not None for g in usable):
            terms = call_pullback(node, usable)
        for i, (x, term) in enumerate(zip(node.inputs, terms, strict=True)):
            if not wanted[i]:
                continue
            null = next((g for j, g in enumerate(cotangents) if pattern[i][j] and is_null(g)), None)
            if is_disconnected(term) and null is None:
                continue
            self.reached.add(x)
            term = term if null is None else null
            if term is not None:
                self.terms.setdefault(x, []).append((term, guards[i]))

    def _pass_stably(self, node: Apply, g: Variable) -> bool:
        """Add the terms of an unstable expression that ends with ``node``, if it does."""
        form = stable_form(node, self._kept)
        if form is None:
            return False
        terms: list[Variable | None]
        if form.sums is not None:
            terms = [sum_pullback(form.sums, g)]
        else:
            assert form.value is not None
            # One root may be computed from another: each passes on what it gets itself.
            paths = Paths([form.value], form.roots, blockers=form.roots)
            inner = Cotangents(paths, {form.value: g})
            inner.run()
            terms = [inner.of(root) for root in form.roots]
        guard = None if self.branches is None else self.branches.term_guards(node)[0]
        for root, term in zip(form.roots, terms, strict=True):
            if root in self.paths.depends:
                self.reached.add(root)
                if term is not None:
                    self.terms.setdefault(root, []).append((term, guard))
        return True


def _both(a: bool, b: bool) -> bool:
    return a and b
