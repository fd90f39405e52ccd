# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``Function``: a compiled graph that can be called."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from graphc.function.arguments import ArgumentReader
from graphc.function.io import In, OutputForm
from graphc.function.memory_plan import memory_plan
from graphc.function.rebuild import rebuild_function
from graphc.function.report import CompileReport
from graphc.function.results import Buffers, canonical, own_results
from graphc.function.subset import call_subset
from graphc.function.trace import Trace
from graphc.graph.basic import Constant, Variable
from graphc.graph.function_graph import FunctionGraph
from graphc.graph.printing import debugprint
from graphc.graph.shared import SharedVariable
from graphc.graph.tensor.type import TensorType
from graphc_runtime.callable_type import NativeCallable, enable
from graphc_runtime.commit import attempts, commit, has_turn, snapshot, wait_for_turn
from graphc_runtime.kernel_call import is_owner

if TYPE_CHECKING:
    from graphc.function.memory_plan import MemoryPlan
    from graphc.function.trace import Trace
    from graphc_runtime.executable import Executable


@dataclass
class Signature:
    """How calls of a function look.

    Attributes:
        inputs: the inputs in order.
        form: the form in which results are returned.
        targets: what the outputs after the results replace: shared variables, or the default cells of inputs.
        name: the user's name for the function.
        trust_input: whether inputs are taken as they are.
        allow_downcast: what inputs are filtered with where they do not say so themselves.
    """

    inputs: list[In]
    form: OutputForm
    targets: list[Any]
    name: str | None
    trust_input: bool
    allow_downcast: bool | None


@enable
class FlatCall(NativeCallable):
    """Machine code of a function with nested outputs, for which it returns a list.

    Args:
        fallback: what takes the calls that machine code does not.
    """

    __slots__ = ("__dict__", "__weakref__", "_native_self")

    def __init__(self, fallback: Any) -> None:
        self._fallback = fallback

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._fallback(*args, **kwargs)


@enable
class Function(NativeCallable):
    """A compiled graph.

    ``f(*args, out=None, **kwargs)`` takes values by position or by the names of the inputs, and returns new
    arrays, or writes into ``out``: arrays in the form of the outputs, with None for those to be made. Each
    has to be writeable, aligned and C-contiguous, with the dtype and shape of its result; then a call
    allocates nothing. When a call fails, shared variables keep their values.

    ``f(..., outputs_wanted=[...])`` computes some of the outputs: a list of positions in a list of outputs,
    of keys of a dict of outputs, or of names of output variables. The others come back as None, in the form
    of the outputs; updates happen all the same. The function for a choice of outputs is compiled when it is
    first asked for, and kept. ``output_subset`` is another name of it.

    Where possible a call goes straight to machine code; ``__call__`` below is the way for everything else:
    arguments that need a conversion, errors, and graphs that run in Python.

    Attributes:
        name: the user's name, or None.
        fgraph: the graph: inputs, then shared variables and large constants, to results, then updates.
        report: what the compiler did.
    """

    # The name and place of the first slot are known to machine code; see NativeCallable.
    __slots__ = ("__dict__", "__weakref__", "_native_self")

    def __init__(
        self, signature: Signature, fgraph: FunctionGraph, executor: Any, report: CompileReport
    ) -> None:
        self.signature = signature
        self.name = signature.name
        self.fgraph = fgraph
        self.executor = executor
        # What calls go to: the executor, or what records them.
        self._runner = executor
        self.report = report
        self.trust_input = signature.trust_input
        self._n_results = signature.form.count
        self._cell_variables: list[Variable] = fgraph.inputs[len(signature.inputs) :]
        self._cells = [_container(v) for v in self._cell_variables]
        self._targets = [_container(target) for target in signature.targets]
        self._reader = ArgumentReader(signature.inputs, report.name, signature.allow_downcast)
        self._donated = [i for i, item in enumerate(signature.inputs) if item.mutable]
        destroyers = fgraph.destruction.destroyers
        self._destroyed = [i for i, v in enumerate(fgraph.inputs) if v in destroyers]
        self._subsets: dict[tuple[int, ...], Function] = {}
        self._tracer: Trace | None = None
        self._op_schedule: Any = None
        # Machine code only: it can lend memory, and has no effects but its results.
        self._lends = hasattr(executor, "bind")
        is_plain = signature.form.is_single or signature.form.is_list
        self._flat = None if is_plain else FlatCall(self._call_flat)
        self._is_native = self._bind()
        report.fast_call = self._is_native and is_plain
        if self._donated and not self._lends:
            report.donations.append("no input is overwritten: calls go through Python")

    def _bind(self) -> bool:
        """Let calls go straight to machine code, if every part of the signature has a native form."""
        signature = self.signature
        if not hasattr(self.executor, "bind") or "out" in self._reader.positions:
            return False
        if any(not isinstance(target, SharedVariable) for target in signature.targets):
            return False
        if not all(isinstance(v.type, TensorType) for v in self.fgraph.inputs):
            return False
        cells = self._cells.copy()
        updates = []
        for target in self._targets:
            index = next((i for i, cell in enumerate(cells) if cell is target), len(cells))
            if index == len(cells):
                cells.append(target)
            updates.append(index)
        return bool(
            self.executor.bind(
                self if self._flat is None else self._flat,
                fallback=self._call_python if self._flat is None else self._call_flat,
                cells=cells,
                n_cells=len(self._cells),
                n_results=self._n_results,
                single=signature.form.is_single,
                updates=updates,
                donated=self._donated,
            )
        )

    def _call_python(self, *args: Any, **kwargs: Any) -> Any:
        out = None
        if kwargs:
            positions = self._reader.positions
            for keyword in ("outputs_wanted", "output_subset"):
                if keyword in kwargs and keyword not in positions:
                    return call_subset(self, kwargs.pop(keyword), args, kwargs)
            out = None if "out" in positions else kwargs.pop("out", None)
        form = self.signature.form
        if self._flat is not None and self._is_native:
            if out is not None:
                kwargs["out"] = self._buffers(out).arrays
            return form.build(self._flat(*args, **kwargs))
        values = self._values(args, kwargs)
        exact = self._exact(values, args) if self._is_native else None
        if exact is not None:
            return self(*exact) if out is None else self(*exact, out=out)
        return form.build(self._run(values, None if out is None else self._buffers(out)))

    def _values(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        """One checked value for each input."""
        if not kwargs and self._reader.are_exact(args):
            return list(args)
        return self._reader.read(args, kwargs, self.trust_input)

    def _call_flat(self, *args: Any, out: list[Any] | None = None, **kwargs: Any) -> list[Any]:
        """What `_call_python` does, with flat lists of buffers and results."""
        values = self._values(args, kwargs)
        exact = self._exact(values, args) if self._is_native else None
        if exact is not None and self._flat is not None:
            results: list[Any] = self._flat(*exact) if out is None else self._flat(*exact, out=out)
            return results
        return self._run(values, None if out is None else self._buffers(out, flat=True))

    def _buffers(self, out: Any, *, flat: bool = False) -> Buffers:
        form = OutputForm.plain(self._n_results) if flat else self.signature.form
        return Buffers(out, form, self.outputs, self.report.name)

    def _exact(self, values: list[Any], args: tuple[Any, ...]) -> list[Any] | None:
        """The values as machine code takes them; None if it does not, or has declined just these."""
        exact = [canonical(value) for value in values]
        if len(args) == len(exact) and all(new is old for new, old in zip(exact, args, strict=True)):
            return None
        for i in self._donated:
            default = self.signature.inputs[i].default
            if default is not None and exact[i] is default[0]:
                exact[i] = exact[i].copy()
        return exact

    def _run(self, given: list[Any], buffers: Buffers | None) -> list[Any]:
        """Run the executor on checked values, store the results and then the updates.

        If another thread has replaced a value meanwhile that was read for updates, everything runs again;
        Python ops once, as they may have effects of their own.
        """
        if not self._targets:
            return self._attempt(list(given), buffers, last=True) or []
        results = None
        for last in attempts(in_python=not self._lends):
            results = self._attempt(list(given), buffers, last)
            if results is not None:
                break
        assert results is not None
        return results

    def _attempt(self, values: list[Any], buffers: Buffers | None, last: bool) -> list[Any] | None:
        lent = self._lent(values) if self._lends and buffers is None else []
        if self._targets and (lent or self._destroyed):
            # It cannot start anew.
            wait_for_turn()
        read = snapshot(self._cells)
        values += read
        kept = values
        if self._destroyed or lent:
            for i in self._destroyed:
                values[i] = self._own(i, values)
            overwritten = {*self._destroyed, *lent}
            kept = [value for i, value in enumerate(values) if i not in overwritten]
        run = self._runner.run
        computed = own_results(run(values, lent) if lent else run(values), kept, self.signature.form.borrowed)
        if not self._targets:
            return computed if buffers is None else buffers.store(computed)
        results, new_values = computed[: self._n_results], computed[self._n_results :]
        if buffers is not None:
            results = buffers.store(results)
        new = [canonical(value) if isinstance(value, np.ndarray) else value for value in new_values]
        if commit(self._targets, new, self._cells, read):
            return results
        # The last call to end wins where what was read has been overwritten, and where only an op of this
        # very call can have stored something.
        if last or self._destroyed or lent or (not self._lends and has_turn()):
            commit(self._targets, new, (), ())
            return results
        return None

    def _lent(self, values: list[Any]) -> list[int]:
        """Positions of the values whose memory machine code may use for results."""
        defaults = [self.signature.inputs[i].default for i in self._donated]
        pairs = zip(self._donated, defaults, strict=True)
        inputs = [i for i, default in pairs if default is None or values[i] is not default[0]]
        first = len(self.signature.inputs)
        return inputs + [first + k for k, cell in enumerate(self._cells) if is_owner(cell)]

    def _own(self, i: int, values: list[Any]) -> Any:
        """The value of an input that Python ops overwrite, or a copy if it is not the caller's alone."""
        value, default = values[i], self.signature.inputs[i].default
        if not isinstance(value, np.ndarray):
            return value
        others = [x for k, x in enumerate(values) if k != i and isinstance(x, np.ndarray)]
        is_default = default is not None and value is default[0]
        if is_default or not value.flags.writeable or any(np.may_share_memory(value, x) for x in others):
            return value.copy()
        return value

    __call__ = _call_python

    # Inspection --------------------------------------------------------------------------------------------

    @property
    def maker(self) -> Function:
        """The function itself, so that ``f.maker.fgraph`` works as in PyTensor."""
        return self

    @property
    def inputs(self) -> list[In]:
        """The inputs in order."""
        return self.signature.inputs

    @property
    def outputs(self) -> list[Variable]:
        """The results, flattened."""
        return self.fgraph.outputs[: self._n_results]

    @property
    def updates(self) -> dict[SharedVariable, Variable]:
        """The new values of shared variables."""
        pairs = zip(self.signature.targets, self.fgraph.outputs[self._n_results :], strict=True)
        return {target: v for target, v in pairs if isinstance(target, SharedVariable)}

    def get_shared(self) -> list[SharedVariable]:
        """The shared variables that are read or updated."""
        variables = [*self._cell_variables, *self.signature.targets]
        return list(dict.fromkeys(v for v in variables if isinstance(v, SharedVariable)))

    def machine_code(self) -> tuple[Executable, list[list[Any]]] | None:
        """Code and cells of a function that is compiled as a whole and updates nothing, else None."""
        executable: Any = getattr(self.executor, "executable", None)
        in_python = executable is None or self.report.fallbacks or self.signature.targets
        return None if in_python else (executable, self._cells)

    def ir_stages(self) -> dict[str, str]:
        """The IR at each stage of compilation by the stage's name, from the dialect to assembly.

        A graph that runs partly in Python has the stages of each native segment, numbered.
        """
        if hasattr(self.executor, "ir_stages"):
            return dict(self.executor.ir_stages())
        segments = [s.executable for s in getattr(self.executor, "steps", []) if hasattr(s, "executable")]
        return {
            f"segment {number}: {name}": text
            for number, segment in enumerate(segments)
            for name, text in segment.ir_stages()
        }

    def memory_plan(self, *args: Any) -> MemoryPlan:
        """Where intermediate values are kept: every buffer, its lifetime, its bytes and its place.

        Args:
            args: for inputs in order: example values, or their shapes as tuples of int. Sizes that depend on
                inputs left out are shown as expressions.

        Returns:
            The plan, to ``print`` or to draw (``to_svg``). It has ``buffers``, ``copies``, ``steps``, and
            in bytes ``peak``, ``alive`` (the most in use at once), ``total`` (without reuse). It is empty for
            functions in reference mode.

        Raises:
            TypeError: an example has another number of dimensions than its input.
        """
        return memory_plan(self, args)

    def trace(self, *, per_op: bool = False) -> Trace:
        """Records what calls do: ``with f.trace() as t: f(x)``, then ``print(t)`` or ``t.save(path)``.

        The finest grain is a thunk: a native segment, or an op that runs in Python. A function that is one
        executable has one event a call. Tracing costs nothing when it is not on; functions that run as
        machine code take the way through Python while it is.

        Args:
            per_op: run each op for itself, compiled where it can be, to see where time goes. Ops are not
                fused then, so that the sum is more than what a call takes otherwise.
        """
        return Trace(self, per_op=per_op)

    def dprint(self, **kwargs: Any) -> Any:
        """Print the graph; arguments as in `graphc.dprint`."""
        return debugprint(self, **kwargs)

    def __repr__(self) -> str:
        inputs = ", ".join(str(item.variable) for item in self.inputs)
        return f"<graphc.Function {self.report.name}({inputs}), {self.report.mode}>"

    # Copies ------------------------------------------------------------------------------------------------

    def copy(
        self,
        share_memory: bool = False,
        swap: dict[SharedVariable, SharedVariable] | None = None,
        delete_updates: bool = False,
        name: str | None = None,
        profile: Any = None,
    ) -> Function:
        """The same function with changes; it shares its code where that is the same.

        Args:
            share_memory: accepted for compatibility; each function has memory of its own.
            swap: shared variables to replace by others of the same type.
            delete_updates: leave shared variables as they are; where there are updates, this compiles again.
            name: name of the copy.
            profile: accepted for compatibility.
        """
        return rebuild_function(self, swap or {}, delete_updates, name)

    def __copy__(self) -> Function:
        return self.copy(name=self.name)

    def __reduce__(self) -> tuple[Any, ...]:
        signature = replace(self.signature, trust_input=self.trust_input)
        return Function, (signature, self.fgraph, self.executor, self.report)


def _container(target: Any) -> list[Any]:
    """The cell that holds a value: of a shared variable, of a constant, or an input's default itself."""
    if isinstance(target, SharedVariable):
        return target.container
    return [target.data] if isinstance(target, Constant) else target


__all__ = ["Function", "Signature"]
