"""Sorts the rows of an array, several rows at a time: a network compares whole vectors, and nothing branches.

Called from Python `sort_rows` is the Python that stands here; numba compiles what `overload` gives.
"""

import functools
from collections.abc import Iterator
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, overload

from theorybench.envs.core.compiled.fused.statements import ROWS

#: Longer rows are sorted by insertion: networks for them would take long to compile.
NETWORK = 40
_BYTES = 64  # of a vector


def network(width: int) -> Iterator[tuple[int, int]]:
    """Yield the comparisons of Batcher's odd-even merge sort: each puts the smaller of two elements first."""
    part = 1
    while part < width:
        step = part
        while step:
            for start in range(step % part, width - step, 2 * step):
                for first in range(start, start + min(step, width - start - step)):
                    if first // (2 * part) == (first + step) // (2 * part):
                        yield first, first + step
            step //= 2
        part *= 2


def sort_rows(a, width, count):  # type: ignore[no-untyped-def]
    """Sort each of the first `count` rows of `width` integers; rows up to a multiple of `ROWS` may be sorted, too."""
    a[: count * width].reshape(count, width).sort(axis=1)


@overload(sort_rows, prefer_literal=True)
def _sort_rows(a, width, count):  # type: ignore[no-untyped-def]
    if isinstance(width, types.IntegerLiteral) and width.literal_value <= NETWORK:
        sort = _sorting(width.literal_value)
        return lambda a, width, count: sort(a, count)

    def inserted(a, width, count):  # type: ignore[no-untyped-def]
        for row in range(count):
            start = row * width
            for i in range(start + 1, start + width):
                x, j = a[i], i - 1
                while j >= start and a[j] > x:
                    a[j + 1] = a[j]
                    j -= 1
                a[j + 1] = x

    return inserted


@functools.cache
def _sorting(width: int) -> Any:
    """Make the function that sorts rows of a width."""

    @intrinsic
    def sort(typing, array, count):  # type: ignore[no-untyped-def]
        def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
            data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
            kind = context.get_data_type(array.dtype)
            rows = min(ROWS, _BYTES * 8 // kind.width)
            vector, index = ir.VectorType(kind, rows), arguments[1].type
            pick = {
                name: cgutils.get_or_insert_function(
                    builder.module, ir.FunctionType(vector, [vector] * 2), f"llvm.{name}.v{rows}i{kind.width}"
                )
                for name in ("smin", "smax")
            }
            ends = index(0), arguments[1], index(rows)
            with cgutils.for_range_slice(builder, *ends, intp=index) as (first, _):
                held, start = [], builder.gep(data, [builder.mul(first, index(width))])
                places = [[builder.gep(start, [index(r * width + e)]) for r in range(rows)] for e in range(width)]
                for each in places:
                    value = ir.Constant(vector, ir.Undefined)
                    for row, place in enumerate(each):
                        value = builder.insert_element(value, builder.load(place), ir.IntType(32)(row))
                    held.append(value)
                for i, j in network(width):
                    pair = held[i], held[j]
                    held[i], held[j] = builder.call(pick["smin"], pair), builder.call(pick["smax"], pair)
                for value, each in zip(held, places, strict=True):
                    for row, place in enumerate(each):
                        builder.store(builder.extract_element(value, ir.IntType(32)(row)), place)
            return context.get_dummy_value()

        return types.void(array, types.intp), generate

    return sort
