# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Types of MLIR's `ext` module as far as we use it: fields of op classes are values and attributes."""

from collections.abc import Sequence
from typing import Any, ClassVar, Generic, TypeVar

from graphc_dialects._ir import Module, OpResult, OpView, Value
from graphc_dialects._ir import Type as IrType

_T = TypeVar("_T", bound=IrType)

class Operand(Value, Generic[_T]):
    @property
    def type(self) -> _T: ...

class Result(OpResult, Generic[_T]):
    @property
    def type(self) -> _T: ...

class Operation(OpView):
    OPERATION_NAME: ClassVar[str]
    _op_name: ClassVar[str]
    _fields: ClassVar[list[Any]]
    @classmethod
    def _emit_operation(cls) -> None: ...
    def __init_subclass__(cls, *, name: str = ..., traits: Sequence[object] = ...) -> None: ...

class Type:
    @classmethod
    def _emit_type(cls) -> None: ...

class Dialect:
    DIALECT_NAMESPACE: ClassVar[str]
    types: ClassVar[list[type[Type]]]
    operations: ClassVar[list[type[Operation]]]
    Operation: ClassVar[type[OpView]]
    def __init_subclass__(cls, *, name: str = ...) -> None: ...
    @classmethod
    def load(cls, register: bool = True, reload: bool = False) -> None: ...
    @classmethod
    def _emit_module(cls) -> Module: ...

Pure: object

def __getattr__(name: str) -> Any: ...
