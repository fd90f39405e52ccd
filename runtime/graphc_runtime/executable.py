# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A compiled function in memory, and Python callables made from it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Protocol, Self

import numpy as np

from graphc_runtime.artifact import Artifact
from graphc_runtime.errors import Origin, status_error
from graphc_runtime.kernel import Kernel, OnError
from graphc_runtime.kernel_call import KernelCall
from graphc_runtime.manifest import Signature
from graphc_runtime.thunk import Register

Where = Callable[[str], Origin]


class ReadyCall(Protocol):
    """Takes calls like one before."""

    def __call__(self, args: Sequence[object], outs: Sequence[object] = ()) -> Sequence[object] | None:
        """A list of the outputs; None where the call has to go another way.

        Args:
            args: by position.
            outs: arrays for the outputs, None for new ones; empty where all are new.
        """


class Executable(ABC):
    """An artifact that a target has loaded. Pickles as the artifact's bytes; many threads may call what it
    binds.

    Args:
        artifact: manifest and code.

    Attributes:
        gives_numpy: whether what `bind` gives returns arrays of NumPy.
    """

    gives_numpy: ClassVar[bool] = True

    def __init__(self, artifact: Artifact) -> None:
        self.artifact = artifact
        self.manifest = artifact.manifest

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Loads `Artifact.to_bytes`.

        Raises:
            ArtifactError: damaged bytes.
            LoadError: the code cannot run here.
        """
        return cls(Artifact.from_bytes(data))

    def __reduce__(self) -> tuple[object, ...]:
        # By a function of a module: cloudpickle takes bound methods by value, with all that their module has.
        return _from_bytes, (type(self), self.artifact.to_bytes())

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        """Itself: code does not change."""
        return self

    @abstractmethod
    def make_kernel(self, on_error: OnError) -> Kernel:
        """The kernel; failed checks call `on_error` with status, given and expected."""

    def bind(
        self,
        cells: Sequence[list[Any]] = (),
        fallback: Callable[..., Any] | None = None,
        on_error: OnError | None = None,
        *,
        where: Where | None = None,
        name: str | None = None,
        doc: str = "",
    ) -> Callable[..., Any]:
        """A callable `f(*inputs, out=None)`.

        Args:
            cells: one-element lists, one for each cell of the manifest. A call reads them when it begins;
                updates replace the items after everything else has succeeded.
            fallback: takes the arguments of calls that are out of the ordinary (other types, layouts,
                keywords); without it they are converted by `graphc_runtime.marshal`.
            on_error: called with (status, given, expected) when a check fails; raises. Without it, the
                manifest's message is raised.
            where: gives what is known of a node of the graph, for errors.
            name: name of the callable, where that is a builtin function.
            doc: its docstring.

        Returns:
            The callable. With `out=` (an array, or a tuple or list of them), results go there; after a failed
            call their content is undefined.

        Raises:
            TypeError: the cells do not fit the manifest.
        """
        return self._python_call(cells, fallback, on_error or self.handler(where))

    def native_self(
        self,
        cells: Sequence[list[Any]] = (),
        fallback: Callable[..., Any] | None = None,
        on_error: OnError | None = None,
        *,
        where: Where | None = None,
    ) -> tuple[Any, ...]:
        """The tuple that native entries work with; it keeps the code alive. Arguments as in `bind`."""
        raise TypeError(f"{self.manifest.signature.name} has no native entry")

    def vectorcall_address(self) -> int | None:
        """Address for `callable_type.install` with `native_self`; None where calls go through Python."""
        return None

    def kernel_call(self, signature: Signature, *, where: Where | None = None) -> KernelCall:
        """A Python callable for another form of call of the same kernels.

        Args:
            signature: the same arguments and results as the manifest's, in the same order; none of them cells
                or updates.
            where: gives what is known of a node of the graph, for errors.
        """
        return KernelCall(self.make_kernel(self.handler(where)), signature, reuse=False)

    def array_call(self, signature: Signature, *, where: Where | None = None) -> Callable[..., object]:
        """As `kernel_call`, for arrays where the kernels are, which `hold` moves there."""
        return self.kernel_call(signature, where=where)

    def ready_call(self, cells: Sequence[Register], *, where: Where | None = None) -> ReadyCall | None:
        """A call that takes calls like one before, where machine code does not and that is worth while.

        Args:
            cells: one for each cell of the manifest.
            where: gives what is known of a node of the graph, for errors.

        Returns:
            What takes them; None if nothing does.
        """
        return None

    def hold(self, cells: Sequence[Register]) -> None:
        """Moves the values of the manifest's cells to where kernels are, if that is another memory."""
        return

    def arguments(self, inputs: Sequence[np.ndarray], cells: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Values of inputs and cells as arrays that kernels take.

        Raises:
            TypeError, ValueError: one cannot be converted without loss.
        """
        return self.kernel_call(self.manifest.signature).arrays(inputs, cells)

    def _python_call(
        self, cells: Sequence[list[object]], fallback: Callable[..., object] | None, on_error: OnError
    ) -> Callable[..., Any]:
        expected = len(self.manifest.signature.cells)
        if len(cells) != expected or not all(type(cell) is list and len(cell) == 1 for cell in cells):
            raise TypeError(
                f"expected {expected} cells, each a list of one array; given {len(cells)}: {cells!r:.200}"
            )
        return KernelCall(self.make_kernel(on_error), self.manifest.signature, tuple(cells), fallback)

    def handler(self, where: Where | None) -> OnError:
        """Raises what a status stands for."""
        sites = self.manifest.sites

        def raise_status(status: int, given: int, expected: int) -> None:
            raise status_error(sites, status, given, expected, where)

        return raise_status


def _from_bytes(kind: type[Executable], data: bytes) -> Executable:
    return kind.from_bytes(data)
