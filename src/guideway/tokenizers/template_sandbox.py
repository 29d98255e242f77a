"""A Jinja environment for templates from unknown sources, with limits of work and memory.

Jinja's sandbox refuses access to the internals of Python objects. It does not limit what a template computes:
`'x' * 10**10`, nested loops, and lists that contain the same list many times are possible. `TemplateSandbox` counts
work in units: about one for each call and each iteration, and one for every few hundred characters that an operation
reads or writes. The number of units limits the time and, together with `MAX_VALUE`, the memory.

A value such as `[[x, x], [x, x]]` is small in memory but large as a text. Most filters, tests and methods therefore
count the size of their values including all nested values. Those in `_SHALLOW_FILTERS`, `_SHALLOW_METHODS` and
`_SHALLOW_TESTS` do not, because they do not read nested values. For those in `_EACH_FILTERS`, the filter or test that
they call for each item counts.
"""

from __future__ import annotations

import re
import string
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from jinja2 import Template, TemplateError, nodes, pass_context
from jinja2.ext import Extension
from jinja2.runtime import Context, LoopContext
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import Namespace
from jinja2.visitor import NodeTransformer

from guideway.errors import LimitExceededError

__all__ = ["MAX_VALUE", "TemplateSandbox", "bounded", "text_of"]

MAX_VALUE = 1 << 23
"""The maximum size of a value: the number of characters and of items, including nested items."""

MAX_CALLS = 64
"""The maximum nesting of calls, such as macros and recursive loops."""

MAX_NESTING = 200
"""The maximum nesting of a value."""

MAX_WIDTH = 10_000
"""The maximum width in calls of filters and methods that pad or cut a text."""

MAX_FORMAT = 4_000
"""The maximum number of characters of a format string."""

_CHARACTERS = 256  # characters per unit of work
_BITS = 4096  # maximum size of an integer

_TEXT_METHODS = frozenset(
    [
        "capitalize",
        "casefold",
        "center",
        "count",
        "encode",
        "endswith",
        "expandtabs",
        "find",
        "format",
        "format_map",
        "index",
        "isalnum",
        "isalpha",
        "isascii",
        "isdecimal",
        "isdigit",
        "isidentifier",
        "islower",
        "isnumeric",
        "isprintable",
        "isspace",
        "istitle",
        "isupper",
        "join",
        "ljust",
        "lower",
        "lstrip",
        "partition",
        "removeprefix",
        "removesuffix",
        "replace",
        "rfind",
        "rindex",
        "rjust",
        "rpartition",
        "rsplit",
        "rstrip",
        "split",
        "splitlines",
        "startswith",
        "strip",
        "swapcase",
        "title",
        "upper",
        "zfill",
    ]
)
_NUMBER_METHODS = frozenset({"bit_length", "is_integer"})
_PADDING = frozenset({"batch", "center", "expandtabs", "indent", "ljust", "rjust", "slice", "wordwrap", "zfill"})
_SHALLOW_FILTERS = frozenset(
    {"batch", "count", "default", "first", "items", "last", "length", "list", "reverse", "slice"}
)
_EACH_FILTERS = frozenset({"map", "reject", "rejectattr", "select", "selectattr"})  # call another one per item
_SHALLOW_METHODS = frozenset({"copy", "fromkeys", "items", "keys", "values"})
_SHALLOW_TESTS = frozenset(
    [
        "boolean",
        "callable",
        "defined",
        "escaped",
        "false",
        "filter",
        "float",
        "integer",
        "iterable",
        "mapping",
        "none",
        "number",
        "sameas",
        "sequence",
        "string",
        "test",
        "true",
        "undefined",
    ]
)
_PRODUCTS = frozenset({"lstrip", "rfind", "rindex", "rpartition", "rsplit", "rstrip", "strip", "trim"})
"""Methods and filters that may compare each character of a text with each character of the argument."""

_NUMBER_TESTS = frozenset({"divisibleby", "even", "odd"})
_VIEWS: tuple[type[Any], ...] = (type({}.keys()), type({}.values()), type({}.items()))
_LISTS: tuple[type[Any], ...] = (list, tuple, set, frozenset, *_VIEWS)
_CONTAINERS: tuple[type[Any], ...] = (*_LISTS, dict, range)
_SIZED: tuple[type[Any], ...] = (*_CONTAINERS, str, bytes)
_REMOVED_FILTERS = ("pprint", "random", "striptags", "urlencode", "urlize", "xmlattr")
_FORMAT_WIDTH = re.compile(r"%(?:\([^)]*\))?[#0\- +]*(?:\*|\d{5,}|\d*\.(?:\*|\d{5,}))")


class _Work(threading.local):
    """The counters of work in the current thread: units left, nesting of calls, and units at the start."""

    left = 0
    calls = 0
    units = 0


_work = _Work()


@contextmanager
def bounded(units: int) -> Iterator[None]:
    """Limit the work of a template that is rendered in the `with` block, in the current thread.

    Raises:
        LimitExceededError: The template does more than `units` of work.
    """
    before = _work.left, _work.calls, _work.units
    _work.left, _work.calls, _work.units = units, 0, units
    try:
        yield
    finally:
        _work.left, _work.calls, _work.units = before


def _charge(units: int) -> None:
    _work.left -= units
    if _work.left < 0:
        raise LimitExceededError(
            f"the chat template does more work than {_work.units:,} units, the limit for messages of this size"
        )


def _limit(size: int) -> None:
    if size > MAX_VALUE:
        raise LimitExceededError(f"the chat template makes a value of {size:,} items; the limit is {MAX_VALUE:,}")
    _charge(1 + size // _CHARACTERS)


def _size(value: Any) -> int:
    """Return the number of characters or items of a value, without nested items; 1 for other values."""
    return len(value) if isinstance(value, _SIZED) else 1


def _deep_size(value: Any) -> int:
    """Return the number of characters and items of a value, including nested items. This counts as work.

    Raises:
        LimitExceededError: The value is too large or nested too deeply.
    """
    if isinstance(value, (str, bytes)):
        return len(value)
    pending: list[tuple[Iterable[Any], int]] = [((value,), 0)]
    total = 0
    while pending:
        items, depth = pending.pop()
        if depth > MAX_NESTING:
            raise LimitExceededError(f"a value of the chat template is nested deeper than {MAX_NESTING} levels")
        for one in items:
            total += 1
            if isinstance(one, (str, bytes)):
                total += len(one)
            elif isinstance(one, dict):
                pending.append((one, depth + 1))
                pending.append((one.values(), depth + 1))
            elif isinstance(one, _LISTS):
                pending.append((one, depth + 1))
            elif isinstance(one, range):
                total += len(one)
            elif isinstance(one, Namespace):
                pending.append((one._Namespace__attrs.values(), depth + 1))
            if total > MAX_VALUE:
                _limit(total)
        _charge(1 + _size(items) // 16)
    return total


def _charge_deep(*values: Any) -> None:
    """Count the work of an operation that reads values, including all values nested in them."""
    for value in values:
        if isinstance(value, (str, bytes)):
            _charge(len(value) // _CHARACTERS)
        elif isinstance(value, (*_CONTAINERS, Namespace)):
            _charge(_deep_size(value) // 32)


def _counted(items: Iterable[Any]) -> Iterator[Any]:
    for item in items:
        _charge(1)
        yield item


def _checked(value: Any) -> Any:
    """Return the result of an operation after counting its size. The items of an iterator are counted when read."""
    if isinstance(value, Iterator):
        return _counted(value)
    if isinstance(value, int):
        if value.bit_length() > _BITS:
            raise LimitExceededError(f"the chat template makes an integer of more than {_BITS} bits")
        return value
    _limit(_size(value))
    return value


def _check_format(text: str) -> None:
    """Raise `LimitExceededError` for a format string of `str.format` that is too long or has a too large width."""
    _check_format_size(text)
    for _, _, spec, _ in string.Formatter().parse(text):
        if spec and ("{" in spec or re.search(r"\d{5,}", spec)):
            raise LimitExceededError(
                f"a chat template must not use the format {spec[:40]!r}: a width has at most 4 digits"
            )


def _check_percent(text: str) -> None:
    """Raise `LimitExceededError` for a format string of the operator % that is too long or has a too large width."""
    _check_format_size(text)
    if found := _FORMAT_WIDTH.search(text):
        raise LimitExceededError(
            f"a chat template must not use the format {found[0][:40]!r}: a width has at most 4 digits"
        )


def _check_format_size(text: str) -> None:
    if len(text) > MAX_FORMAT:
        raise LimitExceededError(
            f"a format string of the chat template has {len(text):,} characters; limit {MAX_FORMAT:,}"
        )
    _charge(1 + len(text) // 16)


def _check_widths(name: str, arguments: Iterable[Any]) -> None:
    for one in arguments:
        if isinstance(one, int) and abs(one) > MAX_WIDTH:
            raise LimitExceededError(f"the chat template calls {name} with {one}; the limit is {MAX_WIDTH:,}")
        if isinstance(one, str) and len(one) > MAX_WIDTH:
            raise LimitExceededError(f"the chat template calls {name} with a text of {len(one):,} characters")


def _check_number(name: str, value: Any) -> None:
    """Raise `TemplateError` unless a value is a number. With texts and lists, `%` and `*` have other meanings."""
    if not isinstance(value, (int, float)):
        raise TemplateError(f"{name} of a chat template needs a number, got {type(value).__name__}")


def _check_replace(text: str, old: str, new: str) -> None:
    _limit(len(text) + (text.count(old) if old else len(text) + 1) * len(new))


def _check_text_call(name: str, text: str, arguments: tuple[Any, ...], named: Mapping[str, Any]) -> tuple[Any, ...]:
    """Check and count the call of a str method, or of the filter with the same name. Returns the arguments to pass.

    The iterable argument of "join" is returned as a list, because counting reads its items.
    """
    _charge(1 + len(text) // _CHARACTERS)
    values = (*arguments, *named.values())
    _charge_deep(*values)
    if name in _PRODUCTS:
        _charge(len(text) * max((len(one) for one in values if isinstance(one, str)), default=0) // 1024)
    if name in _PADDING:
        _check_widths(name, values)
        most = max(
            (one if isinstance(one, int) else len(one) for one in values if isinstance(one, (int, str))), default=8
        )
        lines = text.count("\n") if name == "indent" else text.count("\t") if name == "expandtabs" else 0
        if name == "wordwrap":
            lines = len(text)
            width = next((one for one in values if isinstance(one, int)), 79)
            _charge(len(text) ** 2 // (4096 * max(width, 1)))  # a long word is copied for each line
        _limit(len(text) + (1 + lines) * max(most, 8))
    elif name == "replace" and len(values) >= 2 and isinstance(values[0], str) and isinstance(values[1], str):
        _check_replace(text, values[0], values[1])
    elif name == "join" and arguments:
        parts = list(_counted(arguments[0]))
        _limit(_deep_size(parts) + len(text) * len(parts))
        return (parts,)
    elif name in ("format", "format_map"):
        _check_format(text)
        _limit(len(text) + sum(map(_deep_size, values)) * (1 + text.count("{")))
    return arguments


def _wrapped_filter(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a filter that counts the work of reading its arguments, calls `function`, and counts the result's size."""
    passed = getattr(function, "jinja_pass_arg", None)

    @pass_context
    def call(context: Context, value: Any = None, /, *arguments: Any, **named: Any) -> Any:
        _charge(1 + _size(value) // (4 if name in _EACH_FILTERS else _CHARACTERS))
        if name not in _SHALLOW_FILTERS and name not in _EACH_FILTERS:
            _charge_deep(value, *arguments, *named.values())
        if name == "dictsort":
            _limit(_deep_size(value) * 8)
        if name == "round":
            _check_number(name, value)
            _check_widths(name, (*arguments, *named.values()))
        if name == "replace":  # the filter converts its arguments to text
            arguments = tuple(one if isinstance(one, (str, int)) else str(one) for one in arguments)
        if name == "format":
            _check_percent(str(value))
            _limit(_deep_size(value) + _deep_size([arguments, named]) * (1 + str(value).count("%")))
        elif name == "tojson":
            indent = named.get("indent", arguments[1] if len(arguments) > 1 else None)
            width = indent if isinstance(indent, int) else _size(indent or "")
            _check_widths("tojson", [indent])
            _limit(_deep_size(value) * 2 * (1 + width * (8 if indent else 0)))
        elif name == "join":
            parts = value = list(_counted(value)) if isinstance(value, Iterable) else [value]
            _limit(_deep_size(parts) + len(parts) * sum(map(_deep_size, (*arguments, *named.values()))))
        elif name == "sum" and not isinstance(
            named.get("start", arguments[1] if len(arguments) > 1 else 0), (int, float)
        ):
            _limit(_deep_size(value) * (1 + _size(value)) // 2)  # each addition of lists copies the list
        elif isinstance(value, str):
            arguments = _check_text_call(name, value, arguments, named)
        elif name in _PADDING:
            _check_widths(name, (*arguments, *named.values()))
        given = {
            "context": (context,),
            "eval_context": (context.eval_ctx,),
            "environment": (context.environment,),
        }.get(getattr(passed, "name", ""), ())
        return _checked(function(*given, value, *arguments, **named))

    return call


def _wrapped_test(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a Jinja test that counts the work of reading its operands, and then calls `function`."""
    if name in _SHALLOW_TESTS:
        return function

    def call(value: Any = None, *arguments: Any, **named: Any) -> Any:
        if name in _NUMBER_TESTS:
            for one in (value, *arguments, *named.values()):
                _check_number(f"the test {name!r}", one)
        _charge_deep(value, *arguments, *named.values())
        return function(value, *arguments, **named)

    return call


def text_of(value: Any) -> str:
    """Return the text of a value. Raises `LimitExceededError` if the value is too large."""
    _limit(_deep_size(value))
    return str(value)


class _Rewriter(NodeTransformer):
    """Inserts calls that count work (`hook_…`) into the syntax tree of a template."""

    def visit_For(self, node: nodes.For) -> nodes.Node:  # a name of Jinja's interface
        self.generic_visit(node)
        if node.test is None:
            node.body.insert(0, nodes.ExprStmt(_hook("count", line=node.lineno)).set_lineno(node.lineno))
        else:  # items for which the test is false are counted, too
            node.test = nodes.And(_hook("count", line=node.lineno), node.test, lineno=node.lineno)
        return node

    def visit_Concat(self, node: nodes.Concat) -> nodes.Node:
        self.generic_visit(node)
        return _hook("joined", *node.nodes, line=node.lineno)

    def visit_Compare(self, node: nodes.Compare) -> nodes.Node:
        self.generic_visit(node)
        if not isinstance(node.expr, nodes.Const):
            node.expr = _hook("compared", node.expr, line=node.lineno)
        for operand in node.ops:
            if not isinstance(operand.expr, nodes.Const):
                operand.expr = _hook("compared", operand.expr, line=node.lineno)
        return node

    def visit_Getitem(self, node: nodes.Getitem) -> nodes.Node:
        self.generic_visit(node)
        if isinstance(node.arg, nodes.Slice) and node.ctx == "load":
            return _hook("checked", node, line=node.lineno)
        return node

    def visit_Tuple(self, node: nodes.Tuple) -> nodes.Node:
        self.generic_visit(node)
        if node.ctx != "load" or all(isinstance(one, nodes.Const) for one in node.items):
            return node
        return _hook("nested", node, line=node.lineno)


def _hook(name: str, *arguments: nodes.Expr, line: int) -> nodes.Call:
    """Return a node that calls the method `hook_<name>` of the environment. Templates cannot call the method."""
    call = nodes.Call(nodes.EnvironmentAttribute(f"hook_{name}"), list(arguments), [], None, None)
    call.set_lineno(line)
    return call


class _NamespaceWithoutPrivate(Namespace):
    """The class `namespace` for templates. As in transformers, an attribute whose name begins with "_" is refused."""

    def __init__(*arguments: Any, **named: Any) -> None:
        self, *rest = arguments
        attributes = dict(*rest, **named)
        for name in attributes:
            _check_name(name)
        Namespace.__init__(self, attributes)

    def __setitem__(self, name: str, value: Any) -> None:
        _check_name(name)
        Namespace.__setitem__(self, name, value)


def _check_name(name: object) -> None:
    if isinstance(name, str) and name.startswith("_"):
        raise TemplateError(f"a chat template must not store the attribute {name!r}: it begins with an underscore")


class TemplateSandbox(ImmutableSandboxedEnvironment):
    """The Jinja environment that counts work. Templates must be compiled and rendered within `bounded`."""

    intercepted_binops = frozenset({"+", "-", "*", "**", "%"})

    def __init__(self, extensions: Iterable[str | type[Extension]] = ()) -> None:
        super().__init__(trim_blocks=True, lstrip_blocks=True, extensions=list(extensions), finalize=self._shown)
        for name in _REMOVED_FILTERS:
            self.filters.pop(name, None)
        self.globals.pop("lipsum", None)
        self.globals["dict"] = _new_dict
        self.globals["namespace"] = _NamespaceWithoutPrivate

    def add_filter(self, name: str, function: Callable[..., Any]) -> None:
        """Add a filter. Call it before `count_work`, because the work of filters added later is not counted."""
        self.filters[name] = function

    def count_work(self) -> None:
        """Replace all filters and tests by functions that count their work."""
        for name, function in self.filters.items():
            self.filters[name] = _wrapped_filter("default" if name == "d" else name, function)
        tests: dict[str, Any] = self.tests
        for name, function in tests.items():
            tests[name] = _wrapped_test(name, function)

    def _generate(self, source: nodes.Template, *arguments: Any, **named: Any) -> str:
        return super()._generate(_Rewriter().visit(source), *arguments, **named)

    def compiled(self, template: str) -> Template:
        """Compile a template."""
        return self.from_string(template)

    # Methods that `_Rewriter` inserts into templates.

    def hook_count(self) -> bool:
        """Return True. The call itself counts as one unit, for an iteration of a loop."""
        return True

    def hook_joined(self, *parts: Any) -> str:
        """Return the parts joined to one text (operator ~), after their size was counted."""
        _limit(sum(map(_deep_size, parts)))
        return "".join(map(str, parts))

    def hook_compared(self, value: Any) -> Any:
        """Count the work of comparing a value. Returns the value."""
        _charge_deep(value)
        return value

    def hook_checked(self, value: Any) -> Any:
        """Count the size of a value that was made by a slice. Returns the value."""
        return _checked(value)

    def hook_nested(self, value: Any) -> Any:
        """Check the size and the nesting of a tuple, because Python computes its hash recursively.

        Returns the tuple.
        """
        _limit(_deep_size(value))
        return value

    @staticmethod
    def _shown(value: Any) -> Any:
        if not isinstance(value, str):
            _limit(_deep_size(value))
        return value

    # Overridden methods of Jinja.

    @staticmethod
    def concat(parts: Iterable[str]) -> str:
        """Join the parts of an output. Their characters count as work; together they are limited to `MAX_VALUE`."""
        found, total = [], 0
        for part in parts:
            total += len(part)
            _limit(total if total > MAX_VALUE else len(part))
            found.append(part)
        return "".join(found)

    def getitem(self, obj: Any, argument: Any) -> Any:
        """Return an item. The argument is counted, because the error message for a missing item contains it."""
        _charge_deep(argument)
        return super().getitem(obj, argument)

    def call(__self, __context: Context, __function: Any, *arguments: Any, **named: Any) -> Any:
        """Call a function or a method, and count its work.

        Methods of texts, bytes and numbers are refused, except those in `_TEXT_METHODS` and `_NUMBER_METHODS`, and
        `bytes.decode`.

        Raises:
            TemplateError: The method is refused.
            LimitExceededError: The template exceeds a limit.
        """
        _charge(1)
        owner = getattr(__function, "__self__", None)
        name = getattr(__function, "__name__", "")
        inner = getattr(__function, "__wrapped__", None)  # the sandbox wraps `str.format`
        if inner is not None and isinstance(getattr(inner, "__self__", None), str):
            owner = inner.__self__
        if isinstance(owner, str):
            if name not in _TEXT_METHODS:
                raise TemplateError(f"a chat template must not call the method {name!r} of a text")
            arguments = _check_text_call(name, owner, arguments, named)
        elif isinstance(owner, bytes) and name != "decode":
            raise TemplateError(f"a chat template must not call the method {name!r} of bytes")
        elif isinstance(owner, (int, float)) and name not in _NUMBER_METHODS:
            raise TemplateError(f"a chat template must not call the method {name!r} of a number")
        elif isinstance(owner, LoopContext):
            _charge_deep(*(arguments if name == "changed" else ()))
        elif isinstance(owner, _CONTAINERS) and name not in _SHALLOW_METHODS:
            _charge_deep(*(() if name == "get" else (owner,)), *arguments, *named.values())
        _work.calls += 1
        try:
            if _work.calls > MAX_CALLS:
                raise LimitExceededError(f"the chat template has more than {MAX_CALLS} calls inside each other")
            result = super().call(__context, __function, *arguments, **named)
        finally:
            _work.calls -= 1
        return result if owner is __self else _checked(result)

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        """Apply an operator. Raises `LimitExceededError` if a limit of size or work is exceeded.

        Concatenations of texts and lists, repetitions, powers and `%` are checked before they run, by an upper bound of
        the size of the result. All results are checked after the operation.
        """
        if operator == "+" and isinstance(left, (str, list, tuple)):
            _limit(_size(left) + _size(right))
        elif operator == "-":  # the operands can be the keys of dicts
            _charge_deep(left, right)
        elif operator == "*":
            for one, count in ((left, right), (right, left)):
                if isinstance(one, (str, list, tuple, bytes)) and isinstance(count, int):
                    _limit(_deep_size(one) * max(count, 0))
        elif operator == "**" and isinstance(left, int) and isinstance(right, int):
            _limit(MAX_VALUE + 1 if max(left.bit_length(), 1) * abs(right) > _BITS else 1)
        elif operator == "%" and isinstance(left, (str, bytes)):
            _check_percent(left if isinstance(left, str) else left.decode("latin-1"))
            _limit(_size(left) + _deep_size(right) * (1 + _size(left)))
        return _checked(super().call_binop(context, operator, left, right))


def _new_dict(*arguments: Any, **named: Any) -> dict[Any, Any]:
    """The function `dict` of templates."""
    return dict(*arguments, **named)
