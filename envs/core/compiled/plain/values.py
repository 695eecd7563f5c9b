"""Elements as expressions of Python, and what is written for an operation on them."""

import operator
from typing import NamedTuple

import numpy as np

from theorybench.envs.core.compiled.graph import SIGNS, Node, Untraceable

#: The bounds of what is no integer, or may be any.
UNKNOWN = (-(2**200), 2**200)


class Expression(NamedTuple):
    """An expression without operators outside of brackets, and the integers between which it lies."""

    text: str
    low: int = UNKNOWN[0]
    high: int = UNKNOWN[1]

    @property
    def known(self) -> int | None:
        """Its value, where that is known."""
        return self.low if self.low == self.high else None


Index = tuple[Expression, ...]


def number(value: int) -> Expression:
    """Return an integer that is known."""
    return Expression(f"({value})" if value < 0 else str(value), value, value)


def bounds(dtype: np.dtype) -> tuple[int, int]:
    """Return the smallest and the largest integer of a type."""
    if dtype.kind == "b":
        return 0, 1
    return (int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)) if dtype.kind == "i" else UNKNOWN


#: Operations whose lower bits depend on the lower bits of what they take alone.
RING = ("add", "sub", "mul", "and", "or", "xor", "neg", "invert")


def narrowed(index: Index, shape: tuple[int, ...]) -> Index:
    """Return the index of an array that is broadcast to a larger shape."""
    own = index[len(index) - len(shape) :]
    return tuple(number(0) if n == 1 else at for at, n in zip(own, shape, strict=True))


def written(node: Node, values: list[Expression]) -> Expression:
    """Write an operation on elements: not a name, but an expression that is to have one.

    Raises:
        Untraceable: an operation that is not known here.
    """
    op, kind = node.op, node.dtype.kind
    if kind == "i" and op in _ARITHMETIC and all(value.known is not None for value in values):
        return number(_ARITHMETIC[op](values[0].low, values[1].low))
    low, high = _range(op, values, *bounds(node.dtype)) if kind == "i" else bounds(node.dtype)
    return Expression(_text(node, values), low, high)


def _text(node: Node, values: list[Expression]) -> str:
    op, dtype, bits = node.op, node.dtype, 8 * node.dtype.itemsize
    a, b, c = (*(value.text for value in values), "", "")[:3]
    if op in ("lshift", "rshift"):
        shift = values[1].known
        if shift is None:
            return (
                f"{a} {SIGNS[op]} {b} if 0 <= {b} < {bits} else {'0' if op == 'lshift' else f'(-1 if {a} < 0 else 0)'}"
            )
        if not 0 <= shift < bits:
            raise Untraceable("a shift of all bits")
    if op == "div":
        return f"{a} / {b} if {b} else divide({a}, {b})"
    if op in ("floordiv", "mod"):
        if dtype.kind != "i":
            raise Untraceable(f"{op} of {dtype}")
        sure = not values[1].low <= 0 <= values[1].high
        return f"{a} {SIGNS[op]} {b}" if sure else f"({a} {SIGNS[op]} {b} if {b} else 0)"
    if op in SIGNS:
        return f"{a} {SIGNS[op]} {b}"
    forms = {
        "where": f"{b} if {a} else {c}",
        "minimum": f"{a} if {a} < {b} else {b}",
        "maximum": f"{a} if {a} > {b} else {b}",
        "clip": ("" if dtype.kind == "i" else f"{a} if {a} != {a} else ")
        + f"({a} if {a} < {c} else {c}) if {a} > {b} else ({b} if {b} < {c} else {c})",
        "neg": f"-{a}",
        "invert": f"~{a}",
        "not": f"not {a}",
        "abs": f"abs({a})",
    }
    if op not in forms:
        raise Untraceable(f"the operation {op}")
    return forms[op]


def converted(value: Expression, old: np.dtype, new: np.dtype) -> Expression:
    """Write a value as one of another type; an integer is brought into the range of its type where that matters."""
    text, (low, high) = value.text, bounds(new)
    if new.kind == "b":
        return Expression(f"{text} != 0", 0, 1)
    if new.kind == "f":
        return Expression(f"float({text})")
    if old.kind == "b":
        return Expression(f"1 if {text} else 0", 0, 1)
    inside = f"{low // 2} <= {text} <= {high // 2}"
    return Expression(f"int({text}) if {inside} else cast({text}, 'i{new.itemsize}')", low, high)


def _range(op: str, values: list[Expression], low: int, high: int) -> tuple[int, int]:
    """Return the integers between which the result of an operation lies, in an endless type."""
    (a, b), (c, d) = values[0][1:], (values[1] if len(values) > 1 else values[0])[1:]
    if op == "add":
        return a + c, b + d
    if op == "sub":
        return a - d, b - c
    if op == "mul":
        corners = (a * c, a * d, b * c, b * d)
        return min(corners), max(corners)
    if op == "and" and (a >= 0 or c >= 0):
        return 0, min(top for bottom, top in ((a, b), (c, d)) if bottom >= 0)
    if op in ("and", "or", "xor"):
        bits = max(max(abs(x).bit_length() for x in (a, b, c, d)), 1)
        return (0 if min(a, c) >= 0 else -(1 << bits)), (1 << bits) - 1
    if op == "neg":
        return -b, -a
    if op == "invert":
        return ~b, ~a
    if op == "rshift" and c == d:
        return a >> c, b >> c
    if op == "lshift":
        return (a << c, b << c) if c == d else (-(2**200), 2**200)
    if op == "mod" and c > 0:
        return 0, d - 1
    if op == "where":
        (c, d), (e, f) = values[1][1:], values[2][1:]
        return min(c, e), max(d, f)
    if op in ("minimum", "maximum"):
        pick = min if op == "minimum" else max
        return pick(a, c), pick(b, d)
    if op == "floordiv" and c > 0:
        return min(a, a // c), max(b, b // c)
    if op in ("floordiv", "abs"):
        return low, high + 1
    return low, high


_ARITHMETIC = {"add": operator.add, "sub": operator.sub, "mul": operator.mul}


def cast(value: float, kind: str) -> int:
    """Return a float as an integer as C does, beyond the range of the type too."""
    with np.errstate(invalid="ignore"):
        return int(np.float64(value).astype(kind))


def divide(a: float, b: float) -> float:
    """Divide by zero as NumPy does."""
    with np.errstate(all="ignore"):
        return float(np.float64(a) / np.float64(b))
