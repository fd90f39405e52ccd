# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Demand for nodes, as conditionals put it on what they choose from.

A graph is flat: a branch of an `IfElse` is whatever only that branch needs. The demand of a variable is a
formula over literals ``(condition, side)``, a sum of products: the variable is needed if all literals of one
product hold. Outputs are always needed; the condition of an `IfElse` is needed where its outputs are, the
values of a side where also the condition has this side.

A product remembers the order in which its literals were met, from the outside in: each condition is itself
needed where the literals before it hold, so that evaluating them in this order computes no condition that is
not needed. Sums are simplified by joining complementary products (needed on both sides is needed where the
conditional is) and by dropping products that another one contains. Neither may change which conditions are
looked at: ``a + (not a) b`` stays as it is, because ``b`` may be computed only where ``a`` does not hold.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from graphc.graph.basic import Apply, Variable

# Sums with more products are not followed.
MAX_PRODUCTS = 32

Literal = tuple[Variable, bool]


def is_conditional(node: Apply) -> bool:
    """True if a node is an `IfElse`: inputs are the condition, n values, and n other values."""
    return bool(getattr(node.op, "conditional", False))


def sides(node: Apply, k: int) -> tuple[Variable, Variable]:
    """Both sides of output k of an `IfElse`: if the condition holds and otherwise."""
    n = len(node.outputs)
    return node.inputs[1 + k], node.inputs[1 + n + k]


class Product:
    """Literals that hold together. The products of one analysis are equal only if they are identical.

    Attributes:
        parent: the product without its last literal; None for the empty product.
        literal: the last literal.
        depth: number of literals.
    """

    __slots__ = ("_far", "_set", "depth", "key", "literal", "parent")

    def __init__(self, parent: Product | None, literal: Literal | None, key: int) -> None:
        self.parent = parent
        self.literal = literal
        self.key = key
        self.depth: int = 0 if parent is None else parent.depth + 1
        self._set: frozenset[Literal] | None = None
        # Far ancestors, so that any one is found in steps of the logarithm of the depth (Myers 1983).
        self._far: Product = self
        if parent is not None:
            far = parent._far
            self._far = far._far if parent.depth - far.depth == far.depth - far._far.depth else parent

    def first(self, depth: int) -> Product:
        """The product of its first literals."""
        found = self
        while found.depth > depth:
            assert found.parent is not None
            found = found._far if found._far.depth >= depth else found.parent
        return found

    @property
    def literals(self) -> tuple[Literal, ...]:
        """All literals, the outermost first."""
        found = []
        product: Product | None = self
        while product is not None and product.literal is not None:
            found.append(product.literal)
            product = product.parent
        return tuple(reversed(found))

    @property
    def set(self) -> frozenset[Literal]:
        """All literals."""
        if self._set is None:
            self._set = frozenset(self.literals)
        return self._set


class Demand:
    """The demand for a node. The demands of one analysis are equal only if they are identical.

    Attributes:
        products: the sum; empty if it is never needed.
        unknown: the sum has too many products; the thing may be needed at any time.
    """

    __slots__ = ("products", "unknown")

    def __init__(self, products: tuple[Product, ...], unknown: bool = False) -> None:
        self.products = products
        self.unknown = unknown

    @property
    def always(self) -> bool:
        """Needed in every call."""
        return len(self.products) == 1 and self.products[0].parent is None

    @property
    def never(self) -> bool:
        """Not needed in any call."""
        return not self.products and not self.unknown

    @property
    def literals(self) -> tuple[tuple[Literal, ...], ...]:
        """The literals of each product, the outermost first."""
        return tuple(product.literals for product in self.products)

    def __repr__(self) -> str:
        if self.unknown:
            return "Demand(unknown)"
        text = [" & ".join(f"{'' if side else 'not '}{c}" for c, side in p) for p in self.literals]
        return f"Demand({' | '.join(each or 'always' for each in text) or 'never'})"


class Demands:
    """The demands of all nodes and variables of a graph.

    Args:
        nodes: the nodes, each after those it needs.
        outputs: variables that are always needed.

    Attributes:
        always, never, unknown: the demands of these names.
    """

    def __init__(self, nodes: Sequence[Apply], outputs: Iterable[Variable]) -> None:
        root = Product(None, None, 0)
        self._root = root
        self._products: dict[tuple[int, int], list[Product]] = {}
        self._last: dict[Variable, list[Product]] = {}
        self._extended: dict[tuple[Product, Literal], Product | None] = {}
        self.always = Demand((root,))
        self.never = Demand(())
        self.unknown = Demand((), unknown=True)
        self._interned: dict[frozenset[Product], Demand] = {
            frozenset((root,)): self.always,
            frozenset(): self.never,
        }
        self._sums: dict[frozenset[Demand], Demand] = {}
        self._uses: dict[Variable, dict[Demand, None]] = {v: {self.always: None} for v in outputs}
        self._variables: dict[Variable, Demand] = {}
        self._nodes: dict[Apply, Demand] = {}
        for node in reversed(nodes):
            self._visit(node)

    def of(self, v: Variable) -> Demand:
        """The demand of a variable: that of the node that computes it, but each output of an `IfElse` has its
        own.
        """
        found = self._variables.get(v)
        if found is None:
            found = self._variables[v] = self.sum(self._uses.get(v, ()))
        return found

    def of_node(self, node: Apply) -> Demand:
        """The demand of a node."""
        return self._nodes[node]

    def _visit(self, node: Apply) -> None:
        if is_conditional(node):
            for k, v in enumerate(node.outputs):
                needed = self.of(v)
                self._use(node.inputs[0], needed)
                for x, side in zip(sides(node, k), (True, False), strict=True):
                    self._use(x, self.where(needed, node.inputs[0], side))
            self._nodes[node] = self.sum(self.of(v) for v in node.outputs)
            return
        needed = self.sum(use for v in node.outputs for use in self._uses.get(v, ()))
        self._nodes[node] = needed
        self._variables.update(dict.fromkeys(node.outputs, needed))
        for x in node.inputs:
            self._use(x, needed)

    def _use(self, x: Variable, demand: Demand) -> None:
        if not demand.never:
            self._uses.setdefault(x, {})[demand] = None

    def side(self, product: Product, condition: Variable) -> bool | None:
        """The side that a condition has where a product holds; None if that is open."""
        for each in self._last.get(condition, ()):
            if each.depth <= product.depth and product.first(each.depth) is each:
                assert each.literal is not None
                return each.literal[1]
        return None

    # -- the algebra -----------------------------------------------------------------------------------------

    def where(self, demand: Demand, condition: Variable, side: bool) -> Demand:
        """The demand where also a condition has a side."""
        if demand.unknown:
            return demand
        products = (self._extend(product, (condition, side)) for product in demand.products)
        return self._intern([product for product in products if product is not None])

    def sum(self, demands: Iterable[Demand]) -> Demand:
        """The demand where one of several is."""
        distinct = dict.fromkeys(demand for demand in demands if not demand.never)
        if self.always in distinct:
            return self.always
        if len(distinct) <= 1:
            return next(iter(distinct), self.never)
        if self.unknown in distinct:
            return self.unknown
        key = frozenset(distinct)
        found = self._sums.get(key)
        if found is None:
            products = dict.fromkeys(product for demand in distinct for product in demand.products)
            found = self._sums[key] = self._simplified(products)
        return found

    def _intern(self, products: Iterable[Product]) -> Demand:
        ordered = tuple(dict.fromkeys(products))
        return self._interned.setdefault(frozenset(ordered), Demand(ordered))

    def _extend(self, product: Product, literal: Literal) -> Product | None:
        """The product with one more literal; None if it cannot hold."""
        key = (product, literal)
        if key not in self._extended:
            self._extended[key] = self._new(product, literal)
        return self._extended[key]

    def _new(self, product: Product, literal: Literal) -> Product | None:
        known = self.side(product, literal[0])
        if known is not None:
            return product if known is literal[1] else None
        made = Product(product, literal, product.key ^ hash(literal))
        same = self._products.setdefault((made.key, made.depth), [])
        for other in same:
            # Equal but for the order, unless hashes collide.
            if other.set == made.set:
                return other
        same.append(made)
        self._last.setdefault(literal[0], []).append(made)
        return made

    def _simplified(self, products: dict[Product, None]) -> Demand:
        self._join_siblings(products)
        _absorb(products)
        if len(products) > MAX_PRODUCTS:
            return self.unknown
        return self._intern(self._joined(list(products)))

    def _join_siblings(self, products: dict[Product, None]) -> None:
        """Joins products that differ in the side of their last literal, in linear time."""
        work = list(products)
        while work:
            product = work.pop()
            if product not in products or product.parent is None or product.literal is None:
                continue
            condition, side = product.literal
            other = self._extended.get((product.parent, (condition, not side)))
            if other is not None and other in products:
                del products[product], products[other]
                products[product.parent] = None
                work.append(product.parent)

    def _joined(self, products: list[Product]) -> list[Product]:
        """Joins all pairs that differ in the side of any one literal, and drops what others contain."""
        kept: list[Product] = []
        work = list(reversed(products))
        while work:
            product = work.pop()
            for other in kept:
                joined = self._pair(product, other)
                if joined is not None:
                    kept.remove(other)
                    work.append(joined)
                    break
            else:
                kept.append(product)
        return kept

    def _pair(self, p: Product, q: Product) -> Product | None:
        """One product for the sum of two, if there is one."""
        if p.depth > q.depth:
            p, q = q, p
        difference = p.set - q.set
        if not difference:
            return p
        if len(difference) > 1 or p.depth != q.depth:
            return None
        ((condition, side),) = difference
        if (condition, not side) not in q.set:
            return None
        result = self._root
        for literal in p.literals:
            if literal[0] is not condition:
                extended = self._extend(result, literal)
                assert extended is not None
                result = extended
        return result


def _absorb(products: dict[Product, None]) -> None:
    """Drops products whose beginning is another one of them."""
    contained: dict[Product, bool] = {}
    shortest = min((product.depth for product in products), default=0)
    for product in list(products):
        chain: list[Product] = []
        each = product.parent if product.depth > shortest else None
        while each is not None and each.depth >= shortest and each not in contained and each not in products:
            chain.append(each)
            each = each.parent
        found = each is not None and (each in products or contained.get(each, False))
        contained.update(dict.fromkeys(chain, found))
        if found:
            del products[product]
            # What lies beyond it lies beyond the other one, too.
            contained[product] = True
