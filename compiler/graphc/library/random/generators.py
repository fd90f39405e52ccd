# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""LLVM IR of NumPy's bit generators over our state vectors (`graphc_runtime.generators`).

Each generator has `@graphc_<name>_next64(ptr state)`, `_next32` and `_double`, the functions that NumPy's
structure `bitgen_t` points at. 32-bit words come in pairs: of 64 new bits the low half is returned first, the
high half is kept.

Sources: M. O'Neill, "PCG: A Family of Simple Fast Space-Efficient Statistically Good Algorithms for Random
Number Generation" (2014); J. Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (2011).

Text, and not in the kernel language, which has no numbers of 128 bits.
"""

from __future__ import annotations

from graphc.native.vector_ir import Writer

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
