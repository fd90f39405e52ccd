# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""LLVM IR of loops of draws that keep the state of PCG64 in registers.

In the usual case a draw is a few instructions: a step of the generator (a multiplication of 128 bits, which
bounds the speed), a look into a table, a product. In the rare other cases (the tails of the ziggurat, a
number that a bounded draw rejects) the state from before the draw goes to memory, and NumPy's function makes
the whole draw from there.

Source: G. Marsaglia, W. Tsang, "The ziggurat method for generating random variables" (2000), with NumPy's
tables; D. Lemire, "Fast random integer generation in an interval" (2019).

Text, and not in the kernel language: a step needs numbers of 128 bits, and a number that is rejected leaves
the draw from its middle.

LLVM IR of NumPy's bit generators over our state vectors (`graphc_runtime.generators`).

Each generator has `@graphc_<name>_next64(ptr state)`, `_next32` and `_double`, the functions that NumPy's
structure `bitgen_t` points at. 32-bit words come in pairs: of 64 new bits the low half is returned first, the
high half is kept.

Sources: M. O'Neill, "PCG: A Family of Simple Fast Space-Efficient Statistically Good Algorithms for Random
Number Generation" (2014); J. Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (2011).

Text, and not in the kernel language, which has no numbers of 128 bits.
"""

from __future__ import annotations

from collections.abc import Callable

from graphc.library.random.draws import DRAWS, TYPES, DrawWriter, load_parameters
from graphc.native.vector_ir import Writer
from graphc_runtime.record import record

# Words of a state vector, the same as in graphc_runtime.generators; the last two are the spare half.
WORDS = {"pcg64": 6, "philox": 13}
PCG_MULTIPLIER = 0x2360ED051FC65DA44385DF649FCCF645
PHILOX_MULTIPLIERS = (0xD2E7470EE14C6C93, 0xCA5A826395121157)
PHILOX_STEPS = (0x9E3779B97F4A7C15, 0xBB67AE8584CAA73B)
PHILOX_ROUNDS = 10
DOUBLE_UNIT = "0x3CA0000000000000"  # 2**-53


def pcg64_step(w: Writer, state: str, increment: str) -> tuple[str, str]:
    """The next state (i128) and the 64 bits that it stands for: a rotation of its folded halves."""
    product = w.let(f"mul i128 {state}, {PCG_MULTIPLIER}")
    after = w.let(f"add i128 {product}, {increment}")
    high = w.let(f"trunc i128 {w.let(f'lshr i128 {after}, 64')} to i64")
    folded = w.let(f"xor i64 {high}, {w.let(f'trunc i128 {after} to i64')}")
    turn = w.let(f"lshr i64 {high}, 58")
    return after, w.let(f"call i64 @llvm.fshr.i64(i64 {folded}, i64 {folded}, i64 {turn})")


def load_wide(w: Writer, base: str, offset: int) -> str:
    """An i128 of two words, the high one first."""
    high = w.let(f"zext i64 {w.load('i64', base, offset)} to i128")
    low = w.let(f"zext i64 {w.load('i64', base, offset + 8)} to i128")
    return w.let(f"or i128 {w.let(f'shl i128 {high}, 64')}, {low}")


def store_wide(w: Writer, value: str, base: str, offset: int) -> None:
    """The reverse of `load_wide`."""
    high = w.let(f"trunc i128 {w.let(f'lshr i128 {value}, 64')} to i64")
    w.store("i64", high, base, offset)
    w.store("i64", w.let(f"trunc i128 {value} to i64"), base, offset + 8)


def double_of(w: Writer, bits: str) -> str:
    """A number in [0, 1) of the upper 53 of 64 bits."""
    number = w.let(f"uitofp i64 {w.let(f'lshr i64 {bits}, 11')} to double")
    return w.let(f"fmul double {number}, {DOUBLE_UNIT}")


def generator_functions(name: str) -> str:
    """The three functions of a generator.

    Args:
        name: a key of `WORDS`.
    """
    next64 = {"pcg64": _pcg64_next64, "philox": _philox_next64}[name]()
    spare = 8 * (WORDS[name] - 2)
    return next64 + _next32(name, spare) + _double(name)


def _function(kind: str, name: str, w: Writer) -> str:
    return f"define internal {kind} @graphc_{name}(ptr %s) nounwind {{\n{w.text()}}}\n"


def _pcg64_next64() -> str:
    w = Writer()
    after, bits = pcg64_step(w, load_wide(w, "%s", 0), load_wide(w, "%s", 16))
    store_wide(w, after, "%s", 0)
    w.line(f"  ret i64 {bits}")
    return _function("i64", "pcg64_next64", w)


def _philox_next64() -> str:
    """Four words at once: the counter goes up by one and is encrypted with the key."""
    w = Writer()
    position = w.load("i64", "%s", 80)
    w.line(f"  br i1 {w.let(f'icmp ult i64 {position}, 4')}, label %kept, label %block")
    w.label("kept")
    w.store("i64", w.let(f"add i64 {position}, 1"), "%s", 80)
    at = w.let(f"getelementptr i64, ptr {w.address('%s', 48)}, i64 {position}")
    w.line(f"  ret i64 {w.let(f'load i64, ptr {at}')}")
    w.label("block")
    counter = _count_up(w)
    key = [w.load("i64", "%s", 32), w.load("i64", "%s", 40)]
    for number in range(PHILOX_ROUNDS):
        if number:
            key = [w.let(f"add i64 {k}, {step}") for k, step in zip(key, PHILOX_STEPS, strict=True)]
        counter = _philox_round(w, counter, key)
    for i, word in enumerate(counter):
        w.store("i64", word, "%s", 48 + 8 * i)
    w.store("i64", "1", "%s", 80)
    w.line(f"  ret i64 {counter[0]}")
    return _function("i64", "philox_next64", w)


def _count_up(w: Writer) -> list[str]:
    """The 256-bit counter plus one, lowest word first."""
    words, carry = [], "1"
    for i in range(4):
        word = w.let(f"add i64 {w.load('i64', '%s', 8 * i)}, {carry}")
        w.store("i64", word, "%s", 8 * i)
        is_zero = w.let(f"icmp eq i64 {word}, 0")
        # A word that is zero without a carry into it has not just wrapped around.
        wraps = is_zero if i == 0 else w.let(f"and i1 {is_zero}, {w.let(f'icmp ne i64 {carry}, 0')}")
        carry = w.let(f"zext i1 {wraps} to i64")
        words.append(word)
    return words


def _philox_round(w: Writer, counter: list[str], key: list[str]) -> list[str]:
    products = []
    for word, factor in zip((counter[0], counter[2]), PHILOX_MULTIPLIERS, strict=True):
        wide = w.let(f"mul i128 {w.let(f'zext i64 {word} to i128')}, {factor}")
        high = w.let(f"trunc i128 {w.let(f'lshr i128 {wide}, 64')} to i64")
        products.append((high, w.let(f"trunc i128 {wide} to i64")))
    (high0, low0), (high1, low1) = products
    first = w.let(f"xor i64 {w.let(f'xor i64 {high1}, {counter[1]}')}, {key[0]}")
    third = w.let(f"xor i64 {w.let(f'xor i64 {high0}, {counter[3]}')}, {key[1]}")
    return [first, low1, third, low0]


def _next32(name: str, spare: int) -> str:
    w = Writer()
    has = w.load("i64", "%s", spare)
    w.line(f"  br i1 {w.let(f'icmp ne i64 {has}, 0')}, label %kept, label %new")
    w.label("kept")
    w.store("i64", "0", "%s", spare)
    held = w.load("i64", "%s", spare + 8)
    w.line(f"  ret i32 {w.let(f'trunc i64 {held} to i32')}")
    w.label("new")
    bits = w.let(f"call i64 @graphc_{name}_next64(ptr %s)")
    w.store("i64", "1", "%s", spare)
    w.store("i64", w.let(f"lshr i64 {bits}, 32"), "%s", spare + 8)
    w.line(f"  ret i32 {w.let(f'trunc i64 {bits} to i32')}")
    return _function("i32", f"{name}_next32", w)


def _double(name: str) -> str:
    w = Writer()
    bits = w.let(f"call i64 @graphc_{name}_next64(ptr %s)")
    w.line(f"  ret double {double_of(w, bits)}")
    return _function("double", f"{name}_double", w)


_FLOAT_UNIT = "0x3E70000000000000"  # 2**-24
_SIGN, _MANTISSA = 1, 0x000FFFFFFFFFFFFF


@record()
class Registers:
    """Values that stand for the state while a draw is made: the wide state, and the spare half."""

    state: str
    has: str
    spare: str


class FastWriter:
    """Writes one draw.

    Args:
        w: the function.
        before: the state before the draw.
        increment: what each step of the generator adds.
    """

    def __init__(self, w: DrawWriter, before: Registers, increment: str) -> None:
        self.w, self.now, self._increment = w, before, increment

    def next64(self) -> str:
        """64 new bits."""
        self.now.state, bits = pcg64_step(self.w, self.now.state, self._increment)
        return bits

    def next32(self) -> str:
        """32 bits, as an i64: the spare half, or the low half of new ones."""
        w, before = self.w, self.now
        here = w.block
        w.line(f"  br i1 {w.let(f'icmp ne i64 {before.has}, 0')}, label %half, label %whole")
        w.label("whole")
        state, bits = pcg64_step(w, before.state, self._increment)
        low, high = w.let(f"and i64 {bits}, 4294967295"), w.let(f"lshr i64 {bits}, 32")
        w.line("  br label %half")
        w.label("half")
        word = w.let(f"phi i64 [ {before.spare}, %{here} ], [ {low}, %whole ]")
        spare = w.let(f"phi i64 [ {before.spare}, %{here} ], [ {high}, %whole ]")
        has = w.let(f"phi i64 [ 0, %{here} ], [ 1, %whole ]")
        after = w.let(f"phi i128 [ {before.state}, %{here} ], [ {state}, %whole ]")
        self.now = Registers(after, has, spare)
        return word

    def accept(self, condition: str) -> None:
        """Leaves the draw to NumPy where the condition does not hold."""
        w = self.w
        likely = w.let(f"call i1 @llvm.expect.i1(i1 {condition}, i1 true)")
        block = f"go{likely[1:]}"
        w.line(f"  br i1 {likely}, label %{block}, label %slow")
        w.label(block)

    def table(self, kind: str, name: str, index: str) -> str:
        """An element of one of NumPy's tables."""
        self.w.declarations.add(f"@npyrandom_{name} = external constant [256 x {kind}]")
        at = self.w.let(f"getelementptr {kind}, ptr @npyrandom_{name}, i64 {index}")
        return self.w.let(f"load {kind}, ptr {at}")


def _normal(f: FastWriter) -> str:
    w, bits = f.w, f.next64()
    index, rest = w.let(f"and i64 {bits}, 255"), w.let(f"lshr i64 {bits}, 8")
    size = w.let(f"and i64 {w.let(f'lshr i64 {rest}, 1')}, {_MANTISSA}")
    f.accept(w.let(f"icmp ult i64 {size}, {f.table('i64', 'ki_double', index)}"))
    x = w.let(f"fmul double {w.let(f'sitofp i64 {size} to double')}, {f.table('double', 'wi_double', index)}")
    negative = w.let(f"icmp ne i64 {w.let(f'and i64 {rest}, {_SIGN}')}, 0")
    return w.let(f"select i1 {negative}, double {w.let(f'fneg double {x}')}, double {x}")


def _exponential(f: FastWriter) -> str:
    w = f.w
    bits = w.let(f"lshr i64 {f.next64()}, 3")
    index, size = w.let(f"and i64 {bits}, 255"), w.let(f"lshr i64 {bits}, 8")
    f.accept(w.let(f"icmp ult i64 {size}, {f.table('i64', 'ke_double', index)}"))
    return w.let(
        f"fmul double {w.let(f'sitofp i64 {size} to double')}, {f.table('double', 'we_double', index)}"
    )


def _normal_f32(f: FastWriter) -> str:
    w, bits = f.w, f.next32()
    index = w.let(f"and i64 {bits}, 255")
    size = w.let(f"trunc i64 {w.let(f'lshr i64 {bits}, 9')} to i32")
    f.accept(w.let(f"icmp ult i32 {size}, {f.table('i32', 'ki_float', index)}"))
    x = w.let(f"fmul float {w.let(f'sitofp i32 {size} to float')}, {f.table('float', 'wi_float', index)}")
    negative = w.let(f"icmp ne i64 {w.let(f'and i64 {bits}, 256')}, 0")
    return w.let(f"select i1 {negative}, float {w.let(f'fneg float {x}')}, float {x}")


def _exponential_f32(f: FastWriter) -> str:
    w = f.w
    bits = w.let(f"lshr i64 {f.next32()}, 1")
    index = w.let(f"and i64 {bits}, 255")
    size = w.let(f"trunc i64 {w.let(f'lshr i64 {bits}, 8')} to i32")
    f.accept(w.let(f"icmp ult i32 {size}, {f.table('i32', 'ke_float', index)}"))
    return w.let(f"fmul float {w.let(f'sitofp i32 {size} to float')}, {f.table('float', 'we_float', index)}")


def _uniform_f32(f: FastWriter) -> str:
    word = f.w.let(f"trunc i64 {f.w.let(f'lshr i64 {f.next32()}, 8')} to i32")
    return f.w.let(f"fmul float {f.w.let(f'sitofp i32 {word} to float')}, {_FLOAT_UNIT}")


def _located(standard: Callable[[FastWriter], str]) -> Callable[..., str]:
    def draw(f: FastWriter, loc: str, scale: str) -> str:
        return f.w.let(f"fadd double {loc}, {f.w.let(f'fmul double {scale}, {standard(f)}')}")

    return draw


def _uniform(f: FastWriter) -> str:
    return double_of(f.w, f.next64())


def _integers(f: FastWriter, low: str, extent: str) -> str:
    """Less than 2**32 numbers: the upper half of a product, if the lower one is not too small."""
    w = f.w
    count = w.let(f"add i64 {extent}, 1")
    # 1 < count < 2**32: neither a constant nor one of NumPy's other cases.
    f.accept(w.let(f"icmp ult i64 {w.let(f'sub i64 {count}, 2')}, 4294967294"))
    product = w.let(f"mul i64 {f.next32()}, {count}")
    f.accept(w.let(f"icmp uge i64 {w.let(f'and i64 {product}, 4294967295')}, {count}"))
    return w.let(f"add i64 {low}, {w.let(f'lshr i64 {product}, 32')}")


FAST: dict[str, Callable[..., str]] = {
    "standard_uniform": _uniform,
    "standard_normal": _normal,
    "standard_exponential": _exponential,
    "standard_uniform_f32": _uniform_f32,
    "standard_normal_f32": _normal_f32,
    "standard_exponential_f32": _exponential_f32,
    "uniform": _located(_uniform),
    "normal": _located(_normal),
    "exponential": lambda f, scale: f.w.let(f"fmul double {scale}, {_exponential(f)}"),
    "integers_64": _integers,
}
# Tables of NumPy's library that they read.
TABLES: dict[str, tuple[str, ...]] = {
    "standard_normal": ("ki_double", "wi_double"),
    "standard_exponential": ("ke_double", "we_double"),
    "standard_normal_f32": ("ki_float", "wi_float"),
    "standard_exponential_f32": ("ke_float", "we_float"),
    "normal": ("ki_double", "wi_double"),
    "exponential": ("ke_double", "we_double"),
}


def fast_fill(w: DrawWriter, distribution: str) -> None:
    """The loop of draws, between `entry` and `done`; the state goes from `%copy` to `%copy`."""
    draw = DRAWS[distribution]
    kind = TYPES[draw.result]
    start = Registers(load_wide(w, "%copy", 0), w.load("i64", "%copy", 32), w.load("i64", "%copy", 40))
    increment = load_wide(w, "%copy", 16)
    w.line(f"  br i1 {w.let('icmp sgt i64 %n, 0')}, label %loop, label %done")
    w.label("loop")
    w.line("  %i = phi i64 [ 0, %entry ], [ %i.next, %put ]")
    w.line(f"  %s = phi i128 [ {start.state}, %entry ], [ %s.next, %put ]")
    w.line(f"  %has = phi i64 [ {start.has}, %entry ], [ %has.next, %put ]")
    w.line(f"  %spare = phi i64 [ {start.spare}, %entry ], [ %spare.next, %put ]")
    values = load_parameters(w, draw.parameters)
    f = FastWriter(w, Registers("%s", "%has", "%spare"), increment)
    x = FAST[distribution](f, *values)
    quick, after = w.block, f.now
    w.line("  br label %put")
    w.label("slow")
    _store_state(w, Registers("%s", "%has", "%spare"))
    y = draw.body(w, *values)
    slow = Registers(load_wide(w, "%copy", 0), w.load("i64", "%copy", 32), w.load("i64", "%copy", 40))
    w.line("  br label %put")
    w.label("put")
    value = w.let(f"phi {kind} [ {x}, %{quick} ], [ {y}, %slow ]")
    for name, type_, a, b in (
        ("s.next", "i128", after.state, slow.state),
        ("has.next", "i64", after.has, slow.has),
        ("spare.next", "i64", after.spare, slow.spare),
    ):
        w.line(f"  %{name} = phi {type_} [ {a}, %{quick} ], [ {b}, %slow ]")
    w.line(f"  store {kind} {value}, ptr {w.let(f'getelementptr {kind}, ptr %out, i64 %i')}")
    w.line("  %i.next = add nuw nsw i64 %i, 1")
    w.line(f"  br i1 {w.let('icmp slt i64 %i.next, %n')}, label %loop, label %stop")
    w.label("stop")
    _store_state(w, Registers("%s.next", "%has.next", "%spare.next"))
    w.line("  br label %done")


def _store_state(w: DrawWriter, state: Registers) -> None:
    store_wide(w, state.state, "%copy", 0)
    w.store("i64", state.has, "%copy", 32)
    w.store("i64", state.spare, "%copy", 40)
