# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The one place where IR passes from MLIR's LLVM to llvmlite's, which is older.

Textual IR of the newer version is valid for the older one except for some spellings: attributes that the
older version does not know (hints that it derives itself), and floating-point literals, which the newer
version writes as `+inf`, `-qnan`, `f0x3DFCD6EA` or, for float and half, as decimals that are only correctly
rounded. They become the older version's hexadecimal literals, bit for bit. Masked accesses of memory have
their alignment as an operand before LLVM 22, and the beginning of a lifetime has a size; LLVM 22 reads these
forms, too: the newer ones end the process of an older version.
"""

from __future__ import annotations

import re
import struct

# An attribute of intrinsic declarations that LLVM 22 does not parse.
_UNKNOWN_ATTRIBUTE = " nocreateundeforpoison"
_LIFETIME = "@llvm.lifetime.start.p0("
_KERNELS = ("main", "shapes")
# A call has the alignment and the address behind `ptr`, a declaration an attribute or nothing.
_MASKED = re.compile(
    r"(@llvm\.masked\.(?:load|store)\.[\w.]*\(.*?\bptr)"
    r"(?: align (\d+) ([%@][\w.$-]+)|(?: captures\(none\))?(?=,))"
)
# Texts without any of these have no other literals than finite doubles: looking for them is fast.
_HINTS = ("inf", "nan", "float", "half")
_BITS = re.compile("f0x([0-9A-Fa-f]+)")
# The character before it is part of the match: looking for it is faster than looking back everywhere.
_LITERALS = re.compile(
    r"(?P<before>[ (\[])(?:(?P<bits>f0x[0-9A-Fa-f]+)"
    r"|(?P<special>[+-](?:inf|qnan|s?nan\(0x[0-9A-Fa-f]+\)))"
    r"|(?P<decimal>-?\d+\.\d+e[+-]\d+))"
)
_TYPES = re.compile(r"(?<![\w.%@])(?:double|float|half)\b")
# name -> (bytes, bits of the significand, struct format, unsigned format)
_FORMATS = {"double": (8, 52, "<d", "<Q"), "float": (4, 23, "<f", "<I"), "half": (2, 10, "<e", "<H")}


def to_llvmlite(text: str) -> str:
    """IR text that llvmlite's LLVM parses, with the kernels made internal.

    Args:
        text: what the bindings' translation printed.
    """
    text = text.replace(_UNKNOWN_ATTRIBUTE, "")
    if _LIFETIME in text:
        text = text.replace(
            f"declare void {_LIFETIME}ptr captures(none))", f"declare void {_LIFETIME}i64 immarg, ptr)"
        )
        text = text.replace(f"call void {_LIFETIME}ptr", f"call void {_LIFETIME}i64 -1, ptr")
    if "@llvm.masked." in text:
        text = _MASKED.sub(_with_alignment, text)
    for kernel in _KERNELS:
        text = text.replace(f"define i64 @{kernel}(", f"define internal i64 @{kernel}(")
    if any(hint in text for hint in _HINTS):
        return _translate_literals(text)
    return _BITS.sub(lambda match: f"0x{int(match[1], 16):016X}", text)


def _with_alignment(match: re.Match[str]) -> str:
    before, alignment, address = match.groups()
    return f"{before} {address}, i32 {alignment}" if address else f"{before}, i32"


def _translate_literals(text: str) -> str:
    """Rewrites floating-point literals; a literal has the type that its line names last before it."""

    def replace(match: re.Match[str]) -> str:
        start, token = match.start(), match.group()
        group, literal = match.lastgroup or "", token[1:]
        types = _TYPES.findall(text, text.rfind("\n", 0, start) + 1, start + 1)
        kind = types[-1] if types else "double"
        if group == "decimal" and kind == "double":
            return token
        return token[0] + _hexadecimal(kind, _bits(kind, group, literal))

    return _LITERALS.sub(replace, text)


def _bits(kind: str, group: str, token: str) -> int:
    """The literal's bit pattern in its own format."""
    size, significand, floating, unsigned = _FORMATS[kind]
    if group == "bits":
        return int(token[3:], 16)
    if group == "decimal":
        return int(struct.unpack(unsigned, struct.pack(floating, float(token)))[0])
    sign = 1 << size * 8 - 1 if token[0] == "-" else 0
    infinity = (1 << size * 8 - 1) - (1 << significand)
    quiet = 1 << significand - 1
    name = token[1:]
    if name == "inf":
        return sign | infinity
    if name == "qnan":
        return sign | infinity | quiet
    payload = int(name[name.index("(") + 1 : -1], 16)
    return sign | infinity | payload | (0 if name.startswith("snan") else quiet)


def _hexadecimal(kind: str, bits: int) -> str:
    """LLVM 22's spelling: halves by their own bits, floats by those of the equal double."""
    if kind == "half":
        return f"0xH{bits:04X}"
    if kind == "float":
        sign, exponent, fraction = bits >> 31, bits >> 23 & 0xFF, bits & 0x7FFFFF
        if exponent == 0xFF:  # NaN payloads do not survive a conversion in floating point
            bits = sign << 63 | 0x7FF << 52 | fraction << 29
        else:
            value = struct.unpack("<f", struct.pack("<I", bits))[0]
            bits = struct.unpack("<Q", struct.pack("<d", value))[0]
    return f"0x{bits:016X}"
