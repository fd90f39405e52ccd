# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""LLVM IR of one draw of each distribution.

Most are one call of NumPy's C function of that name (`graphc_runtime.npyrandom`). Types are letters: d and f
are double and float, q, l, h and b integers of 64, 32, 16 and 8 bits.

Text, and not in the kernel language: a draw is one line, a call, whose narrow numbers are extended as C asks
for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from graphc.native.vector_ir import Writer
from graphc_runtime.record import record

TYPES = {"d": "double", "f": "float", "q": "i64", "l": "i32", "h": "i16", "b": "i8"}
# How the calling convention passes numbers that are narrower than a register.
_PASSED = {**TYPES, "h": "i16 zeroext", "b": "i8 zeroext", "t": "i1 zeroext", "p": "ptr"}


class DrawWriter(Writer):
    """A writer of draws: the generator is `%bitgen`, and `%scratch` a small cleared memory for one call."""

    def __init__(self) -> None:
        super().__init__()
        self.declarations: set[str] = set()

    def numpy(self, result: str, name: str, kinds: str, *arguments: str) -> str:
        """A call of NumPy's function `random_<name>` on the generator; gives the name of the result."""
        return self._call(result, f"npyrandom_random_{name}", f"p{kinds}", ("%bitgen", *arguments))

    def libm(self, name: str, *arguments: str) -> str:
        """A call of a function of the C library on doubles."""
        return self._call("d", name, "d" * len(arguments), arguments)

    def uniform(self) -> str:
        """A number in [0, 1)."""
        state = self.let("load ptr, ptr %bitgen")
        function = self.let(f"load ptr, ptr {self.address('%bitgen', 24)}")
        return self.let(f"call double {function}(ptr {state})")

    def _call(self, result: str, name: str, kinds: str, arguments: Sequence[str]) -> str:
        kind, types = TYPES[result], [_PASSED[k] for k in kinds]
        extension = "zeroext " if result in "bh" else ""
        self.declarations.add(f"declare {extension}{kind} @{name}({', '.join(types)}) nounwind")
        given = ", ".join(f"{t} {x}" for t, x in zip(types, arguments, strict=True))
        return self.let(f"call {extension}{kind} @{name}({given})")


Body = Callable[..., str]


@record(frozen=True)
class Draw:
    """The method by which one number is drawn.

    Attributes:
        parameters: letters of the types of the parameters.
        result: letter of the type of the number.
        body: writes it: (writer, *parameters) -> value.
        symbols: what it needs of NumPy's library, for those who ask before anything is compiled.
    """

    parameters: str
    result: str
    body: Body
    symbols: tuple[str, ...]


def _plain(name: str, parameters: str, result: str = "d") -> Draw:
    return Draw(
        parameters, result, lambda w, *xs: w.numpy(result, name, parameters, *xs), (f"random_{name}",)
    )


def _composed(parameters: str, result: str, *names: str) -> Callable[[Body], Draw]:
    return lambda body: Draw(parameters, result, body, tuple(f"random_{name}" for name in names))


def _affine(w: DrawWriter, loc: str, scale: str, x: str) -> str:
    """loc + scale * x, rounded twice, as NumPy does."""
    return w.let(f"fadd double {loc}, {w.let(f'fmul double {scale}, {x}')}")


@_composed("qd", "q", "binomial")
def _binomial(w: DrawWriter, n: str, p: str) -> str:
    return w.numpy("q", "binomial", "dqp", p, n, "%scratch")


@_composed("d", "q", "binomial")
def _bernoulli(w: DrawWriter, p: str) -> str:
    return w.numpy("q", "binomial", "dqp", p, "1", "%scratch")


@_composed("qdd", "q", "beta", "binomial")
def _betabinom(w: DrawWriter, n: str, a: str, b: str) -> str:
    return w.numpy("q", "binomial", "dqp", w.numpy("d", "beta", "dd", a, b), n, "%scratch")


@_composed("dd", "d", "standard_normal")
def _halfnormal(w: DrawWriter, loc: str, scale: str) -> str:
    x = w.numpy("d", "standard_normal", "")
    return _affine(w, loc, scale, w.let(f"call double @llvm.fabs.f64(double {x})"))


@_composed("dd", "d", "standard_cauchy")
def _cauchy(w: DrawWriter, loc: str, scale: str) -> str:
    return _affine(w, loc, scale, w.numpy("d", "standard_cauchy", ""))


@_composed("dd", "d", "standard_cauchy")
def _halfcauchy(w: DrawWriter, loc: str, scale: str) -> str:
    x = w.numpy("d", "standard_cauchy", "")
    return _affine(w, loc, scale, w.let(f"call double @llvm.fabs.f64(double {x})"))


@_composed("ddd", "d", "standard_t")
def _student(w: DrawWriter, df: str, loc: str, scale: str) -> str:
    return _affine(w, loc, scale, w.numpy("d", "standard_t", "d", df))


@_composed("dd", "d", "pareto")
def _pareto(w: DrawWriter, shape: str, scale: str) -> str:
    x = w.let(f"fadd double 1.0, {w.numpy('d', 'pareto', 'd', shape)}")
    return w.let(f"fmul double {scale}, {x}")


@_composed("dd", "d", "standard_gamma")
def _invgamma(w: DrawWriter, shape: str, scale: str) -> str:
    return w.let(f"fdiv double {scale}, {w.numpy('d', 'standard_gamma', 'd', shape)}")


@_composed("ddd", "d", "standard_gamma")
def _gengamma(w: DrawWriter, alpha: str, p: str, scale: str) -> str:
    x = w.numpy("d", "standard_gamma", "d", w.let(f"fdiv double {alpha}, {p}"))
    return w.let(f"fmul double {scale}, {w.libm('pow', x, w.let(f'fdiv double 1.0, {p}'))}")


@_composed("ddd", "d")
def _truncexpon(w: DrawWriter, b: str, loc: str, scale: str) -> str:
    """The inverse of the distribution function, -log(1 - u (1 - exp(-b)))."""
    share = w.libm("expm1", w.let(f"fneg double {b}"))
    x = w.libm("log1p", w.let(f"fmul double {w.uniform()}, {share}"))
    return _affine(w, loc, scale, w.let(f"fneg double {x}"))


@_composed("", "d")
def _standard_uniform(w: DrawWriter) -> str:
    return w.uniform()


def _bounded(kind: str) -> Draw:
    """Integers from `low` to `low + extent`, unsigned; narrow ones share words, counted in the scratch."""
    bits = {"q": 64, "l": 32, "h": 16, "b": 8}[kind]
    buffered = "" if kind == "q" else "buffered_"
    name = f"{buffered}bounded_uint{bits}"

    def body(w: DrawWriter, low: str, extent: str) -> str:
        counters = ("%scratch", w.address("%scratch", 8)) if buffered else ()
        return w.numpy(kind, name, f"{kind * 3}t{'p' * len(counters)}", low, extent, "0", "false", *counters)

    return Draw(kind * 2, kind, body, (f"random_{name}",))


DRAWS: dict[str, Draw] = {
    **{name: _plain(name, "") for name in ("standard_normal", "standard_exponential", "standard_cauchy")},
    **{
        name: _plain(name, "d")
        for name in (
            "standard_gamma",
            "exponential",
            "chisquare",
            "weibull",
            "power",
            "rayleigh",
            "standard_t",
        )
    },
    **{
        name: _plain(name, "dd")
        for name in ("normal", "uniform", "gamma", "beta", "f", "laplace", "gumbel", "logistic", "lognormal")
    },
    **{name: _plain(name, "dd") for name in ("noncentral_chisquare", "wald", "vonmises")},
    **{name: _plain(name, "ddd") for name in ("noncentral_f", "triangular")},
    **{name: _plain(name, "d", "q") for name in ("poisson", "geometric", "logseries", "zipf")},
    "negative_binomial": _plain("negative_binomial", "dd", "q"),
    "hypergeometric": _plain("hypergeometric", "qqq", "q"),
    "standard_uniform": _standard_uniform,
    "standard_uniform_f32": _plain("standard_uniform_f", "", "f"),
    "standard_normal_f32": _plain("standard_normal_f", "", "f"),
    "standard_exponential_f32": _plain("standard_exponential_f", "", "f"),
    "standard_gamma_f32": _plain("standard_gamma_f", "f", "f"),
    "lomax": _plain("pareto", "d"),
    "binomial": _binomial,
    "bernoulli": _bernoulli,
    "betabinom": _betabinom,
    "halfnormal": _halfnormal,
    "cauchy": _cauchy,
    "halfcauchy": _halfcauchy,
    "t": _student,
    "pareto": _pareto,
    "invgamma": _invgamma,
    "gengamma": _gengamma,
    "truncexpon": _truncexpon,
    "integers_64": _bounded("q"),
    "integers_32": _bounded("l"),
    "integers_16": _bounded("h"),
    "integers_8": _bounded("b"),
}


def load_parameters(w: DrawWriter, kinds: str) -> list[str]:
    """The parameters of draw `%i`."""
    values = []
    for number, kind in enumerate(kinds):
        at = w.let(f"mul i64 %i, %step{number}")
        pointer = w.let(f"getelementptr {TYPES[kind.lower()]}, ptr %p{number}, i64 {at}")
        values.append(pointer if kind.isupper() else w.let(f"load {TYPES[kind]}, ptr {pointer}"))
    return values
