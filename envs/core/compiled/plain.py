"""Writes the Python function that moves one environment by one step, from what the tracer has recorded.

Numbers are Python's, and arrays of few elements are tuples of them; longer ones are NumPy's. An int64 that may have
left its range is brought back, as wrap-around arithmetic does, where its upper bits begin to matter.
"""

import bisect
import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from theorybench.envs.core.compiled.graph import Graph, Node, Untraceable
from theorybench.envs.core.compiled.symbolic import Array

#: Arrays of at most so many elements are worked out element by element.
UNROLLED = 24
#: Tables of at most so many elements are held as lists, which are read faster.
LISTED = 2**18


class Value(NamedTuple):
    """An expression without operators outside of brackets, and the integers between which it lies."""

    text: str
    low: int = -(2**200)
    high: int = 2**200

    @property
    def known(self) -> int | None:
        """Its value, where that is known."""
        return self.low if self.low == self.high else None


Index = tuple[Value, ...]


def number(value: int) -> Value:
    """Return an integer that is known."""
    return Value(f"({value})" if value < 0 else str(value), value, value)


def _bounds(dtype: np.dtype) -> tuple[int, int]:
    if dtype == bool:
        return 0, 1
    return (int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)) if dtype.kind == "i" else Value("")[1:]


class Plain:
    """Writes a function body; see `text`.

    Attributes:
        globals: what its text names, beside the arguments.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph, self._lines = graph, list[str]()
        self._scopes: list[dict[Any, Any]] = [{}]
        self._names = itertools.count()
        self.globals: dict[str, Any] = {"np": np, "cast": _cast, "divide": _divide}

    # Statements.

    def line(self, text: str) -> None:
        """Write a statement."""
        self._lines.append("    " * len(self._scopes) + text)

    @contextmanager
    def _block(self, head: str) -> Iterator[None]:
        self.line(head)
        self._scopes.append({})
        yield
        self._scopes.pop()

    def _assign(self, text: str, low: int = Value("").low, high: int = Value("").high) -> Value:
        name = f"v{next(self._names)}"
        self.line(f"{name} = {text}")
        return Value(name, low, high)

    def _known(self, key: Any) -> Any:
        return next((scope[key] for scope in reversed(self._scopes) if key in scope), None)

    def _global(self, prefix: str, value: Any) -> str:
        name = next((name for name, held in self.globals.items() if held is value), None)
        if name is None:
            name = f"{prefix}{len(self.globals)}"
            self.globals[name] = value
        return name

    def text(self, head: str, last: str) -> str:
        """Return the function, its globals as defaults of arguments, which are found faster."""
        given = "".join(f", {name}={name}" for name in self.globals)
        return "\n".join([head.format(given), *self._lines, f"    {last}", ""])

    # What is asked for.

    def exact(self, node: Node, index: Index = ()) -> Value:
        """Return an element as it is in memory: within the range of its type."""
        value = self.element(node, index)
        low, high = _bounds(node.dtype)
        if node.dtype.kind != "i" or low <= value.low and value.high <= high:
            return value
        wrapped = f"(({value.text} + {-low}) & {high - low}) - {-low}"
        value = self._assign(f"{value.text} if {low} <= {value.text} <= {high} else {wrapped}", low, high)
        self._scopes[-1][node.serial, tuple(i.text for i in index)] = value
        return value

    def elements(self, node: Node) -> list[str]:
        """Return all elements, the last axis first."""
        return [self.exact(node, tuple(map(number, at))).text for at in np.ndindex(*node.shape)]

    def held(self, node: Node) -> str:
        """Return a field of a state: a number, a tuple of numbers or an array."""
        if not node.shape:
            return self.exact(node).text
        if node.size > UNROLLED:
            return self.array(node)
        return "(" + "".join(f"{text}, " for text in self.elements(node)) + ")"

    def fresh(self, node: Node) -> str:
        """Return an array that nothing else holds."""
        if node.size > UNROLLED:
            return f"{self.array(node)}.copy()"
        made = f"np.array([{', '.join(self.elements(node))}], {self._global('kind', node.dtype)})"
        return made if len(node.shape) == 1 else f"{made}.reshape({node.shape})"

    def element(self, node: Node, index: Index) -> Value:
        """Return an element of a node; an int64 may have left its range, as in an endless type."""
        key = (node.serial, tuple(i.text for i in index))
        found = self._known(key)
        if found is None:
            found = getattr(self, f"_{node.op}", self._computed)(node, index)
            self._scopes[-1][key] = found
        return found  # type: ignore[no-any-return]

    # Leaves.

    def _input(self, node: Node, index: Index) -> Value:
        name, bounds = node.attr, _bounds(node.dtype)
        if not node.shape:
            return Value(name, *bounds)
        flat = self._flat(node.shape, index).text
        return self._assign(f"{name}.item({flat})" if node.size > UNROLLED else f"{name}[{flat}]", *bounds)

    _scalar = _input

    def _table(self, node: Node, index: Index) -> Value:
        table = self.graph.tables[node.attr]
        whole = table.dtype.kind == "i" and table.size
        bounds = (int(table.min()), int(table.max())) if whole else _bounds(table.dtype)
        flat = self._flat(node.shape, index).text
        if table.size > LISTED:
            return self._assign(f"{self._global('table', table)}.item({flat})", *bounds)
        name = f"list{node.attr}"
        self.globals.setdefault(name, table.ravel().tolist())
        return self._assign(f"{name}[{flat}]", *bounds)

    def _const(self, node: Node, index: Index) -> Value:
        value = node.attr
        if node.dtype.kind == "i":
            return number(int(value))
        if node.dtype.kind == "b":
            return Value(str(bool(value)), int(value), int(value))
        return Value(f"({value!r})") if np.isfinite(value) else Value(self._global("float", float(value)))

    def _count(self, node: Node, index: Index) -> Value:
        return index[-1]

    def _row(self, node: Node, index: Index) -> Value:
        return number(0)

    # Structure: where an element comes from.

    def _flat(self, shape: tuple[int, ...], index: Index) -> Value:
        """Return the place of an element in memory; an index of the first axis may count from the end."""
        known, texts, stride = 0, [], 1
        for axis in reversed(range(len(shape))):
            at = index[axis]
            if at.known is not None:
                known += (at.known % shape[axis]) * stride
            else:
                at = at if axis == 0 else self._from_front(at, shape[axis])
                texts.append(at.text if stride == 1 else f"{at.text} * {stride}")
            stride *= shape[axis]
        return Value(" + ".join([*texts, str(known)] if known else texts)) if texts else number(known)

    def _from_front(self, index: Value, width: int) -> Value:
        if index.known is not None:
            return number(index.known % width)
        if index.low >= 0:
            return index
        return self._assign(f"{index.text} + {width} if {index.text} < 0 else {index.text}", 0, max(index.high, width))

    def _reshape(self, node: Node, index: Index) -> Value:
        source = node.args[0]
        wide = [at for at, n in zip(index, node.shape, strict=True) if n > 1]
        if [n for n in source.shape if n > 1] == [n for n in node.shape if n > 1]:
            rest = iter(wide)
            return self.element(source, tuple(next(rest) if n > 1 else number(0) for n in source.shape))
        flat = self._flat(node.shape, index)
        if flat.known is not None:
            return self.element(source, tuple(map(number, map(int, np.unravel_index(flat.known, source.shape)))))
        flat, parts = self._assign(flat.text, 0), list[Value]()
        for n in reversed(source.shape[1:]):
            parts.append(self._assign(f"{flat.text} % {n}", 0, n - 1))
            flat = self._assign(f"{flat.text} // {n}", 0)
        return self.element(source, (flat, *reversed(parts))[: len(source.shape)])

    def _slice(self, node: Node, index: Index) -> Value:
        return self.element(
            node.args[0],
            tuple(
                number(first + step * at.known)
                if at.known is not None
                else self._assign(f"{first} + {step} * {at.text}", first + step * at.low, first + step * at.high)
                for at, first, step in zip(index, *node.attr, strict=True)
            ),
        )

    def _spread(self, node: Node, index: Index) -> Value:
        return self.element(node.args[0], _narrowed(index, node.args[0].shape))

    def _concat(self, node: Node, index: Index) -> Value:
        at = index[node.attr].known
        if at is None:
            return self._picked(node, index)
        for part in node.args:
            if at < part.shape[node.attr]:
                return self.element(part, (*index[: node.attr], number(at), *index[node.attr + 1 :]))
            at -= part.shape[node.attr]
        raise Untraceable("an index out of range")

    def _picked(self, node: Node, index: Index) -> Value:
        """Read an element at an index that is not known out of all of them."""
        flat = self._flat(node.shape, index).text
        if node.size > UNROLLED:
            return self._assign(f"{self.array(node)}.item({flat})", *_bounds(node.dtype))
        return self._assign(f"({', '.join(self.elements(node))},)[{flat}]", *_bounds(node.dtype))

    def _gather(self, node: Node, index: Index) -> Value:
        source, places = node.args
        axis, count = node.attr, len(places.shape)
        at = self.exact(places, index[axis : axis + count])
        return self.element(source, (*index[:axis], at, *index[axis + count :]))

    def _along(self, node: Node, index: Index) -> Value:
        source, places = node.args
        return self.element(source, (*index[:-1], self._from_front(self.exact(places, index), source.shape[-1])))

    def _put(self, node: Node, index: Index) -> Value:
        source, new, *places = node.args
        ats = [self._from_front(self.exact(place), n) for place, n in zip(places, node.shape, strict=True)]
        if all(at.known is not None and i.known is not None for at, i in zip(ats, index, strict=True)):
            same = all(at.known == i.known for at, i in zip(ats, index, strict=True))
            return self.element(new, ()) if same else self.element(source, index)
        value, old = self.exact(new), self.exact(source, index)
        test = " and ".join(f"{at.text} == {i.text}" for at, i in zip(ats, index, strict=True))
        return self._assign(f"{value.text} if {test} else {old.text}", *_bounds(node.dtype))

    def _branch(self, node: Node, index: Index) -> Value:
        condition, new, old = node.args
        test = self.exact(condition, _narrowed(index, condition.shape)).text
        value = self._assign(self.exact(old, _narrowed(index, old.shape)).text, *_bounds(node.dtype))
        with self._block(f"if {test}:"):
            self.line(f"{value.text} = {self.exact(new, _narrowed(index, new.shape)).text}")
        return value

    def _view(self, node: Node, index: Index) -> Value:
        source, last = node.args[0], index[-1]
        old, new = source.dtype.itemsize, node.dtype.itemsize
        if last.known is None:
            return self._picked(node, index)
        if old >= new:
            place, part = divmod(last.known * new, old)
            whole = self.element(source, (*index[:-1], number(place))).text
            bits, top = 8 * new, 1 << 8 * new - 1
            whole = f"({whole} >> {8 * part})" if part else whole
            if node.dtype == bool:
                return self._assign(f"({whole} & 255) != 0", 0, 1)
            return self._assign(f"(({whole} + {top}) & {(1 << bits) - 1}) - {top}", -top, top - 1)
        ratio = new // old
        parts = [self.exact(source, (*index[:-1], number(last.known * ratio + i))).text for i in range(ratio)]
        texts = [f"(({text} & {(1 << 8 * old) - 1}) << {8 * old * i})" for i, text in enumerate(parts)]
        return self._assign(" | ".join(texts), 0, (1 << 8 * new) - 1)

    # Along the last axis.

    def _sort(self, node: Node, index: Index) -> Value:
        return self._picked_of(node, index, "sorted((%s,))")

    def _picked_of(self, node: Node, index: Index, form: str) -> Value:
        key = (node.serial, "row", tuple(i.text for i in index[:-1]))
        row = self._known(key)
        if row is None:
            if node.size > UNROLLED:
                return self._assign(f"{self.array(node)}.item({self._flat(node.shape, index).text})")
            each = [self.exact(node.args[0], (*index[:-1], number(i))).text for i in range(node.shape[-1])]
            row = self._scopes[-1][key] = self._assign(form % ", ".join(each))
        return self._assign(f"{row.text}[{index[-1].text}]", *_bounds(node.dtype))

    def _reduce(self, node: Node, index: Index) -> Value:
        source, name = node.args[0], node.attr
        if source.size > UNROLLED:
            key = (node.serial, "whole")
            if self._known(key) is None:
                self._scopes[-1][key] = self._assign(f"np.{name}({self.array(source)}, -1)").text
            return self._assign(f"{self._known(key)}.item({self._flat(node.shape, index).text})", *_bounds(node.dtype))
        read = self.element if name == "sum" else self.exact
        each = [read(source, (*index, number(i))) for i in range(source.shape[-1])]
        texts = [value.text for value in each]
        if name == "sum":
            return self._assign(" + ".join(texts), sum(v.low for v in each), sum(v.high for v in each))
        if len(texts) == 1:
            return each[0]
        if name in ("any", "all"):
            return self._assign({"any": " or ", "all": " and "}[name].join(texts), 0, 1)
        return self._assign(f"{name}({', '.join(texts)})", *_bounds(node.dtype))

    def _search(self, node: Node, index: Index) -> Value:
        table, x = node.args
        if table.op != "table":
            raise Untraceable("a search in what is no table")
        self.globals.setdefault(f"list{table.attr}", self.graph.tables[table.attr].ravel().tolist())
        name = self._global("search", getattr(bisect, f"bisect_{node.attr}"))
        return self._assign(f"{name}(list{table.attr}, {self.exact(x, index).text})", 0, table.size)

    # Element by element.

    def _call(self, node: Node, index: Index) -> Value:
        function = _function(node.attr, self.graph.functions[node.attr])
        value = self.element(node.args[0], index)
        if value.known is not None:
            return number(function(value.known))
        name = self._global(node.attr, function)
        return self._assign(f"{name}({value.text})", *_bounds(node.dtype))

    def _computed(self, node: Node, index: Index) -> Value:
        ring = node.op in _RING and node.dtype.kind == "i"
        read = self.element if ring else self.exact
        values = [read(arg, _narrowed(index, arg.shape)) for arg in node.args]
        return self._written(node, values)

    def _written(self, node: Node, values: list[Value]) -> Value:
        op, dtype = node.op, node.dtype
        texts = [value.text for value in values]
        a, b, c = (*texts, "", "")[:3]
        if dtype.kind == "i":
            if all(v.known is not None for v in values) and op in ("add", "sub", "mul"):
                return number(
                    {"add": int.__add__, "sub": int.__sub__, "mul": int.__mul__}[op](values[0].low, values[1].low)
                )
            low, high = _range(op, values, *_bounds(dtype))
        else:
            low, high = _bounds(dtype)
        if op in ("lshift", "rshift"):
            shift = values[1].known
            if shift is None:
                beyond = "0" if op == "lshift" else f"(-1 if {a} < 0 else 0)"
                sign = _SIGNS[op]
                return self._assign(f"{a} {sign} {b} if 0 <= {b} < {8 * dtype.itemsize} else {beyond}", low, high)
            if not 0 <= shift < 8 * dtype.itemsize:
                raise Untraceable("a shift of all bits")
        if op == "div":
            return self._assign(f"{a} / {b} if {b} else divide({a}, {b})")
        if op in ("floordiv", "mod"):
            if dtype.kind != "i":
                raise Untraceable(f"{op} of {dtype}")
            sure = not values[1].low <= 0 <= values[1].high
            text = f"{a} {_SIGNS[op]} {b}"
            return self._assign(text if sure else f"({text} if {b} else 0)", low, high)
        if op in _SIGNS:
            return self._assign(f"{a} {_SIGNS[op]} {b}", low, high)
        if op == "cast":
            return self._converted(node, values[0])
        forms = {
            "where": f"{b} if {a} else {c}",
            "minimum": f"{a} if {a} < {b} else {b}",
            "maximum": f"{a} if {a} > {b} else {b}",
            "clip": f"{b} if {a} < {b} else {c} if {a} > {c} else {a}",
            "neg": f"-{a}",
            "invert": f"~{a}",
            "not": f"not {a}",
            "abs": f"abs({a})",
        }
        if op not in forms:
            raise Untraceable(f"the operation {op}")
        return self._assign(forms[op], low, high)

    def _converted(self, node: Node, value: Value) -> Value:
        old, new, text = node.args[0].dtype, node.dtype, value.text
        if old == new:
            return value
        if new == bool:
            return self._assign(f"{text} != 0", 0, 1)
        if new.kind == "f":
            return self._assign(f"float({text})")
        if old == bool:
            return self._assign(f"1 if {text} else 0", 0, 1)
        if old.kind == "f":
            low, high = _bounds(new)
            inside = (
                f"int({text}) if {low // 2} <= {text} <= {high // 2} else cast({text}, {self._global('kind', new)})"
            )
            return self._assign(inside, low, high)
        return value  # brought into its range where that matters

    # Longer arrays.

    def array(self, node: Node) -> str:
        """Return a node as a NumPy array, or a NumPy number where it has no axis; neither is written into."""
        key = (node.serial, "array")
        found = self._known(key)
        if found is None:
            found = self._scopes[-1][key] = self._arrayed(node)
        return found  # type: ignore[no-any-return]

    def _arrayed(self, node: Node) -> str:
        op, args, shape = node.op, node.args, node.shape
        kind = self._global("kind", node.dtype)
        if op == "table":
            return self._global("table", self.graph.tables[node.attr])
        if op == "input" and node.size > UNROLLED:
            return str(node.attr)
        if not shape:
            return self._assign(f"{self._global('type', node.dtype.type)}({self.exact(node).text})").text
        if op == "const":
            return self._global("filled", np.full(shape, node.attr, node.dtype))
        if op == "count":
            return self._global("count", np.broadcast_to(np.arange(shape[-1], dtype=node.dtype), shape))
        if node.size <= UNROLLED:
            made = f"np.array(({', '.join(self.elements(node))},), {kind})"
            return self._assign(made if len(shape) == 1 else f"{made}.reshape({shape})").text
        if op == "branch":
            return self._branched(node)
        texts = [self.array(arg) for arg in args]
        a, b, c = (*texts, "", "", "")[:3]
        if op == "slice":
            keys = (
                slice(s, s + n * t if s + n * t >= 0 else None, t) for s, t, n in zip(*node.attr, shape, strict=True)
            )
            return self._assign(f"{a}[{self._global('part', tuple(keys))}]").text
        if op == "put":
            value = self._assign(f"{a}.copy()").text
            self.line(f"{value}[{', '.join(texts[2:])}] = {b}")
            return value
        if op == "call":
            function = self.graph.functions[node.attr]
            return self._assign(f"{self._global('whole', function)}({a})").text
        if op in _SIGNS:
            return self._assign(f"{a} {_SIGNS[op]} {b}").text
        forms = {
            "reshape": f"{a}.reshape({shape})",
            "spread": f"np.broadcast_to({a}, {shape})",
            "concat": f"np.concatenate(({', '.join(texts)}), {node.attr})",
            "gather": f"np.take({a}, {b}, {node.attr})",
            "along": f"np.take_along_axis({a}, {b}, -1)",
            "view": f"np.ascontiguousarray({a}).view({kind})",
            "sort": f"np.sort({a})",
            "reduce": f"np.{node.attr}({a}, -1)",
            "search": f"np.searchsorted({a}, {b}, {node.attr!r})",
            "where": f"np.where({a}, {b}, {c})",
            "minimum": f"np.minimum({a}, {b})",
            "maximum": f"np.maximum({a}, {b})",
            "clip": f"np.clip({a}, {b}, {c})",
            "neg": f"-{a}",
            "invert": f"~{a}",
            "not": f"~{a}",
            "abs": f"np.abs({a})",
            "cast": f"{a}.astype({kind})",
        }
        if op not in forms:
            raise Untraceable(f"the operation {op}")
        return self._assign(forms[op]).text

    def _branched(self, node: Node) -> str:
        condition, new, old = node.args
        if condition.shape:
            raise Untraceable("a branch of arrays")
        value = self._assign(self.array(old)).text
        with self._block(f"if {self.exact(condition).text}:"):
            self.line(f"{value} = {self.array(new)}")
        return value


#: Operations whose lower bits depend on the lower bits of what they take alone.
_RING = ("add", "sub", "mul", "and", "or", "xor", "neg", "invert")
_SIGNS = {
    **{"add": "+", "sub": "-", "mul": "*", "div": "/", "floordiv": "//", "mod": "%", "and": "&", "or": "|"},
    **{"xor": "^", "eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "lshift": "<<"},
    "rshift": ">>",
}


def _range(op: str, values: list[Value], low: int, high: int) -> tuple[int, int]:
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


def _narrowed(index: Index, shape: tuple[int, ...]) -> Index:
    """Return the index of an array that is broadcast to a larger shape."""
    own = index[len(index) - len(shape) :]
    return tuple(number(0) if n == 1 else at for at, n in zip(own, shape, strict=True))


_FUNCTIONS: dict[Any, Any] = {}


def _function(name: str, function: Callable[[Any], Any]) -> Any:
    """Write a function of one int64, and compile it."""
    if function not in _FUNCTIONS:
        graph = Graph()
        made = function(Array(graph, graph.node("scalar", (), "z", (), np.int64), False)).node
        plain = Plain(graph)
        value = plain.exact(made).text
        _FUNCTIONS[function] = run(plain.text(f"def {name}(z{{}}):", f"return {value}"), name, plain.globals)
    return _FUNCTIONS[function]


def run(text: str, name: str, known: dict[str, Any]) -> Any:
    """Compile a function and return it."""
    names = dict(known)
    exec(compile(text, f"<theorybench {name}>", "exec"), names)
    return names[name]


def _cast(value: float, kind: np.dtype) -> int:
    """Return a float as an integer as C does, beyond the range of the type too."""
    with np.errstate(invalid="ignore"):
        return int(np.float64(value).astype(kind))


def _divide(a: float, b: float) -> float:
    """Divide by zero as NumPy does."""
    with np.errstate(all="ignore"):
        return float(np.float64(a) / np.float64(b))
