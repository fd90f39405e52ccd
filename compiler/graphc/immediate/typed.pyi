# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# What type checkers know of names that environments find at run time. Functions that give one tensor are the
# rule, and here are the others. tests/unit/test_types.py holds this against the functions.
from collections.abc import Callable
from typing import Any, Literal, overload

import numpy as np

from graphc.immediate.namespace import Grid, Namespace
from graphc.immediate.tensor import Tensor

_Some = Callable[..., tuple[Tensor, ...]]
_Two = Callable[..., tuple[Tensor, Tensor]]
_Three = Callable[..., tuple[Tensor, Tensor, Tensor]]
_Four = Callable[..., tuple[Tensor, Tensor, Tensor, Tensor]]
_List = Callable[..., list[Tensor]]
_Either = Callable[..., Tensor | list[Tensor]]
_Any = Callable[..., Any]

class Special(Namespace):
    airy: _Four
    airye: _Four
    ellipj: _Four
    fresnel: _Two
    shichi: _Two
    sici: _Two

class Linalg(Namespace):
    cho_factor: Callable[..., tuple[Tensor, bool]]
    eig: _Two
    eigh: _Two
    eigh_tridiagonal: Callable[..., Tensor | tuple[Tensor, Tensor]]
    expm_frechet: Callable[..., Tensor | tuple[Tensor, Tensor]]
    hessenberg: Callable[..., Tensor | tuple[Tensor, Tensor]]
    ldl: _Three
    lstsq: _Four
    lu: _Some
    lu_factor: _Two
    ordqz: _Some
    polar: _Two
    qr: _Some
    qz: _Some
    rsf2csf: _Two
    schur: _Two
    slogdet: _Two
    tridiagonal_lu_factor: _Some

    @overload
    def svd(
        self, a: object, full_matrices: bool = True, compute_uv: Literal[True] = True
    ) -> list[Tensor]: ...
    @overload
    def svd(self, a: object, full_matrices: bool = True, *, compute_uv: Literal[False]) -> Tensor: ...

class Nn(Namespace):
    batch_norm: _Three
    dropout: Callable[..., Tensor]

class Typed:
    name: str
    target: str
    lazy: bool
    mode: str
    fft: Namespace
    fourier: Namespace
    linalg: Linalg
    nn: Nn
    optimize: Namespace
    signal: Namespace
    special: Special
    mgrid: Grid
    ogrid: Grid
    e: float
    inf: float
    nan: float
    newaxis: None
    pi: float

    airy: _Four
    airye: _Four
    array_split: _List
    atleast_1d: _Either
    atleast_2d: _Either
    atleast_3d: _Either
    broadcast_arrays: _List
    broadcast_shape: _Some
    diag_indices: _Some
    diag_indices_from: _Some
    divmod: _Two
    dsplit: _List
    ellipj: _Four
    fori_loop: _Any
    fresnel: _Two
    frexp: _Two
    get_scalar_constant_value: Callable[..., np.ndarray]
    get_vector_length: Callable[..., int]
    gradient: Callable[..., Tensor | tuple[Tensor, ...]]
    grad: _Any
    hessian: _Any
    histogram: _Two
    histogram2d: _Three
    histogramdd: Callable[..., tuple[Tensor, list[Tensor]]]
    hsplit: _List
    ifelse: _Any
    indices: _Any
    interpolate1d: Callable[..., Callable[[object], Tensor]]
    is_flat: Callable[..., bool]
    is_weak_scalar: Callable[..., bool]
    ix_: _Some
    jacobian: _Any
    max_and_argmax: _List
    meshgrid: _List
    modf: _Two
    pack: Callable[..., tuple[Tensor, list[Tensor]]]
    scan: _Any
    shape_tuple: _Some
    shichi: _Two
    sici: _Two
    slice_at_axis: Callable[..., tuple[object, ...]]
    split: _List
    topk_and_argtopk: _List
    transfer: _Any
    tril_indices: _Two
    tril_indices_from: _Two
    triu_indices: _Two
    triu_indices_from: _Two
    unique: _Any
    unpack: _List
    unravel_index: _List
    unstack: _Some
    vectorize: _Any
    vmap: _Any
    vsplit: _List
    while_loop: _Any

    @overload
    def linspace(
        self, start: object, stop: object, num: object = 50, endpoint: bool = True, *, retstep: Literal[True]
    ) -> tuple[Tensor, Tensor]: ...
    @overload
    def linspace(
        self,
        start: object,
        stop: object,
        num: object = 50,
        endpoint: bool = True,
        retstep: Literal[False] = False,
        dtype: object = None,
        axis: int = 0,
    ) -> Tensor: ...
    @overload
    def logsumexp(
        self, x: object, axis: object = None, *, b: object = None, return_sign: Literal[True]
    ) -> tuple[Tensor, Tensor]: ...
    @overload
    def logsumexp(
        self, x: object, axis: object = None, keepdims: bool = False, *, b: object = None
    ) -> Tensor: ...
    @overload
    def nonzero(self, a: object) -> tuple[Tensor, ...]: ...
    @overload
    def nonzero(self, a: object, return_matrix: Literal[True]) -> Tensor: ...
    @overload
    def where(self, condition: object) -> tuple[Tensor, ...]: ...
    @overload
    def where(self, condition: object, x: object, y: object) -> Tensor: ...
