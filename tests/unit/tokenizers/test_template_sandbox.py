"""Chat templates from unknown sources: bounded time, memory and stack, and no access to Python objects."""

from __future__ import annotations

import resource
import sys
import threading
import time
from typing import Any

import pytest

from guideway.errors import ChatTemplateError
from guideway.tokenizers import chat_template
from guideway.tokenizers.chat_template import MAX_TEMPLATE, render_template
from tests.helpers.counts import counts

MESSAGES = [{"role": "user", "content": "hi"}]

# Two lists that are small in memory and have 2**99 items as texts.
DOUBLED = (
    "{% set ns = namespace(x=[1], y=[1]) %}{% for i in range(99) %}"
    "{% set ns.x = [ns.x, ns.x] %}{% set ns.y = [ns.y, ns.y] %}{% endfor %}"
)
KEYS = "{% set d = {}.fromkeys(range(99999)) %}"
TUPLES = (
    "{% set ns = namespace(t=(1,)) %}{% for i in range(20) %}{% set ns.t = (ns.t, ns.t) %}{% endfor %}{% set d = {} %}"
)


def often(expression: str) -> str:
    """Return a template that evaluates an expression 9,999 times."""
    return "{% for i in range(9999) %}{% set z = " + expression + " %}{% endfor %}"


HOSTILE = {
    "repeated text": "{{ 'x' * 10**10 }}",
    "repeated list": "{{ ([1] * 10**10) | length }}",
    "power": "{{ 10 ** 10 ** 10 }}",
    "huge integer": "{% set ns = namespace(x=3) %}{% for i in range(100) %}{% set ns.x = ns.x * ns.x %}{% endfor %}",
    "doubled text": "{% set ns = namespace(x='x') %}{% for i in range(100) %}{% set ns.x = ns.x ~ ns.x %}{% endfor %}",
    "added text": "{% set ns = namespace(x='x') %}{% for i in range(100) %}{% set ns.x = ns.x + ns.x %}{% endfor %}",
    "added list": "{% set ns = namespace(x=[1]) %}{% for i in range(100) %}{% set ns.x = ns.x + ns.x %}{% endfor %}",
    "nested loops": "{% for a in range(99999) %}{% for b in range(99999) %}{% for c in range(9999) %}"
    "{% endfor %}{% endfor %}{% endfor %}",
    "recursive loop": "{% for a in range(9999) recursive %}{{ loop(range(9999)) if loop.depth < 9 }}{% endfor %}",
    "recursive macro": "{% macro f(x) %}{{ f(x) }}{{ f(x) }}{% endmacro %}{{ f(1) }}",
    "output": "{% for a in range(99999) %}{{ messages[0].content * 999 }}{% endfor %}",
    "block": "{% set x %}{% for a in range(99999) %}{{ 'x' * 9999 }}{% endfor %}{% endset %}",
    "doubled block": "{% set ns = namespace(x='x' * 9999) %}{% for i in range(99) %}"
    "{% set y %}{{ ns.x }}{{ ns.x }}{% endset %}{% set ns.x = y %}{% endfor %}",
    "center": "{{ 'x' | center(10 ** 10) }}",
    "center method": "{{ 'x'.center(10 ** 10) }}",
    "zfill": "{{ 'x'.zfill(10 ** 10) }}",
    "ljust": "{{ 'x'.ljust(10 ** 10) }}",
    "expandtabs": "{{ ('\t' * 9999).expandtabs(9999) }}",
    "indent": "{{ ('\n' * 99999) | indent(9999, true, true) }}",
    "indent by text": "{{ ('x\n' * 99999) | indent('x' * 9999) }}",
    "format": "{{ '{:>99999999999}'.format('x') }}",
    "nested format": "{{ '{:>{}}'.format('x', 99999999999) }}",
    "format_map": "{{ '{a:>99999999999}'.format_map({'a': 1}) }}",
    "repeated format": "{{ ('{0}' * 999).format('x' * 999999) }}",
    "percent": "{{ '%99999999999d' % 1 }}",
    "percent star": "{{ '%*d' % (99999999999, 1) }}",
    "percent filter": "{{ '%099999999999d' | format(1) }}",
    "percent precision": "{{ '%.99999999999f' % 1.5 }}",
    "replace": "{{ ('x' * 99999) | replace('x', 'y' * 99999) }}",
    "replace method": "{{ ('x' * 99999).replace('', 'y' * 99999) }}",
    "join": "{{ ['x'] * 99999 | join('y' * 999999) }}{{ (['x'] * 99999) | join('y' * 999999) }}",
    "join method": "{{ ('y' * 999999).join(['x'] * 99999) }}",
    "join of a generator": "{{ ('y' * 999999).join(range(99999) | map('string')) }}",
    "translate": "{{ ('a' * 99999).translate({97: 'b' * 99999}) }}",
    "to_bytes": "{{ (1).to_bytes(10 ** 10, 'big') }}",
    "batch": "{{ [1] | batch(10 ** 10, 'x') | list }}",
    "slice": "{{ [1] | slice(10 ** 10) | list }}",
    "wordwrap": "{{ ('x' * 99999) | wordwrap(1, true, 'y' * 9999) }}",
    "lists in lists": "{% set ns = namespace(x=[1]) %}{% for i in range(99) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}"
    "{{ ns.x | tojson }}",
    "lists in lists, shown": "{% set ns = namespace(x=[1]) %}{% for i in range(99) %}{% set ns.x = [ns.x, ns.x] %}"
    "{% endfor %}{{ ns.x }}",
    "lists in lists, joined": "{% set ns = namespace(x=[1]) %}{% for i in range(99) %}{% set ns.x = [ns.x, ns.x] %}"
    "{% endfor %}{{ 'a' ~ ns.x }}",
    "lists in lists, compared": "{% set ns = namespace(x=[1], y=[1]) %}{% for i in range(99) %}"
    "{% set ns.x = [ns.x, ns.x] %}{% set ns.y = [ns.y, ns.y] %}{% endfor %}{{ ns.x == ns.y }}",
    "dicts in dicts": "{% set ns = namespace(x={}) %}{% for i in range(99) %}"
    "{% set ns.x = {'a': ns.x, 'b': ns.x} %}{% endfor %}{{ ns.x | string }}",
    "deep list": "{% set ns = namespace(x=[]) %}{% for i in range(9999) %}{% set ns.x = [ns.x] %}{% endfor %}{{ ns.x | tojson }}",
    "deep tuple": "{% set ns = namespace(x=()) %}{% for i in range(99999) %}{% set ns.x = (ns.x,) %}{% endfor %}{{ {ns.x: 1} }}",
    "namespace in itself": "{% set ns = namespace() %}{% set ns.x = ns %}{{ ns }}",
    "searches in a long text": "{% set x = 'x' * 999999 %}{% for i in range(99999) %}{{ 'y' in x }}{% endfor %}",
    "comparisons of long texts": "{% set x = 'x' * 999999 %}{% set y = 'x' * 999999 %}"
    "{% for i in range(99999) %}{{ x == y }}{% endfor %}",
    "slices of a long text": "{% set x = 'x' * 999999 %}{% for i in range(99999) %}{% set y = x[1:] %}{% endfor %}",
    "methods of a long text": "{% set x = 'x' * 999999 %}{% for i in range(99999) %}{% set y = x.find('y') %}{% endfor %}",
    "doubled lists, selected": DOUBLED + "{{ [ns.x] | select('eq', ns.y) | list }}",
    "doubled lists, selected by attribute": DOUBLED + "{{ [{'a': ns.x}] | selectattr('a', 'eq', ns.y) | list }}",
    "doubled lists, counted": DOUBLED + "{{ [ns.x].count(ns.y) }}",
    "doubled lists, searched": DOUBLED + "{{ [ns.x].index(ns.y) }}",
    "doubled lists, upper case": DOUBLED + "{{ ns.x | upper }}",
    "doubled lists, mapped": DOUBLED + "{{ [ns.x] | map('upper') | list }}",
    "doubled lists, replaced": DOUBLED + "{{ ns.x | replace('a', 'b') }}",
    "doubled lists, in a test": DOUBLED + "{{ ns.x is upper }}",
    "doubled lists, changed": DOUBLED + "{% for i in [ns.x, ns.y] %}{{ loop.changed(i) }}{% endfor %}",
    "doubled lists, as a key": DOUBLED + "{{ messages[ns.x].y }}",
    "doubled lists, as an attribute": DOUBLED + "{{ 'a' | attr(ns.x) }}",
    "doubled lists, raised": DOUBLED + "{{ raise_exception(ns.x) }}",
    "doubled lists, escaped": DOUBLED + "{{ ns.x | e }}",
    "doubled lists, largest": DOUBLED + "{{ [ns.x, ns.y] | max }}",
    "doubled lists, unique": DOUBLED + "{{ [[ns.x], [ns.y]] | unique(attribute=0) | list }}",
    "doubled lists, values": DOUBLED + "{{ {'a': ns.x}.values() }}",
    "doubled lists, arguments": DOUBLED + "{% macro f() %}{{ varargs }}{{ kwargs }}{% endmacro %}{{ f(ns.x, a=ns.x) }}",
    "doubled tuples, as keys": TUPLES + often("d[ns.t]"),
    "doubled tuples, looked up": TUPLES + often("d.get(ns.t)"),
    "replaced by a list": "{{ ('x' * 99999) | replace('x', ['y' * 99999]) }}",
    "odd text": "{{ '%99999999999d' is odd }}",
    "divisible text": "{{ '%*d' is divisibleby((99999999999, 1)) }}",
    "rounded text": "{{ ('x' * 10) | round(9, 'ceil') }}",
    "searches in a range": often("1.5 in range(99999)"),
    "searches in a reversed range": often("1.5 in (range(99999) | reverse)"),
    "counts in a range": often("range(99999).count(1.5)"),
    "differences of keys": KEYS + often("d.keys() - d.keys()"),
    "comparisons of items": KEYS + often("d.items() == d.items()"),
    "selections": often("range(99999) | select('gt', 99999) | list"),
    "refused items of a loop": "{% for i in range(9999) %}{% for j in range(99999) if j is none %}{% endfor %}{% endfor %}",
    "stripped characters": often("('x' * 999999).strip('y' * 99999 ~ 'x')"),
    "searches from the end": often("('a' * 999999).rfind('b' ~ 'a' * 499999)"),
    "a long word, wrapped": often("('x' * 99999) | wordwrap(1)"),
    "sum of lists": "{{ ([[1]] * 99999) | sum(start=[]) }}",
    "generators": "{% for i in range(9999) %}{{ range(99999) | map('string') | select('eq', 'x') | list }}{% endfor %}",
    "indented JSON": "{{ ([[[1] * 999] * 99] * 9) | tojson(indent=9999) }}",
    "time format": "{{ strftime_now('%A' * 99999) }}",
    "removed function": "{{ lipsum(n=10 ** 9) }}",
    "deep expression": "{{ " + "(" * 5000 + "1" + ")" * 5000 + " }}",
    "deep blocks": "{% if 1 %}" * 500 + "x" + "{% endif %}" * 500,
    "classes": "{{ ''.__class__.__mro__ }}{{ ''.__class__.__mro__[1].__subclasses__() }}",
    "globals": "{{ raise_exception.__globals__ }}{{ raise_exception.__globals__['x'] }}",
    "attr filter": "{{ (messages | attr('__class__')) }}{{ messages | attr('__class__') | attr('__mro__') | first }}",
    "environment": "{{ self._TemplateReference__context.environment.hook_count() }}",
    "imports": "{% import 'os' as os %}",
    "includes": "{% include '/etc/passwd' %}",
    "append": "{{ messages.append(1) }}",
    "private name": "{% set ns = namespace(_x=1) %}",
    "method of bytes": "{{ 'x'.encode().hex() }}",
    "syntax": "{% for %}",
    "undefined call": "{{ nothing() }}",
}


def render(template: str, **options: Any) -> str:
    return render_template(template, MESSAGES, special_tokens={}, **options)


@counts(chat_template.WORK // 8, chat_template.WORK)
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_templates(name: str, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The time of `count` units of work is bounded; many of these templates do as much work as they may."""
    monkeypatch.setattr(chat_template, "WORK", count)
    start = time.process_time()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    try:
        text = render(HOSTILE[name])
    except ChatTemplateError as error:
        text = str(error)[:2000]
    # Python objects are undefined values in the sandbox, and large values may be within the limits.
    assert len(text) < 1 << 24
    assert not any(word in text for word in ("<class", "root:", "builtins"))
    assert time.process_time() - start < 8
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 600_000  # KB


def test_limits_are_errors_that_name_the_limit() -> None:
    with pytest.raises(ChatTemplateError, match="does more work than 20"):
        render(HOSTILE["nested loops"])
    with pytest.raises(ChatTemplateError, match="makes a value of"):
        render(HOSTILE["doubled text"])
    with pytest.raises(ChatTemplateError, match="characters; the limit is"):
        render("x" * (MAX_TEMPLATE + 1))


def test_a_limit_does_not_affect_the_next_template(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chat_template, "WORK", chat_template.WORK // 8)
    for name in ("nested loops", "doubled text"):
        with pytest.raises(ChatTemplateError):
            render(HOSTILE[name])
        assert render("{{ messages[0].content }}") == "hi"


@counts(500, 1_000)
def test_long_conversations_are_within_the_limit(count: int) -> None:
    template = (
        "{% for message in messages %}{% if loop.index0 == messages | length - 1 or message.role in ['a', 'b'] %}"
        "{{ message.role + ': ' + message.content | trim + '\n' }}{% else %}{{ message.content.strip() | tojson }}"
        "{% endif %}{% endfor %}"
    )
    many = [{"role": "user", "content": "word " * 20}] * 5000
    assert len(render_template(template, many, special_tokens={})) > 5000 * 90
    selected = (
        "{% for message in messages %}{% if messages | selectattr('role', 'equalto', 'system') | list | length == 0 %}"
        "{{ message.content }}{% endif %}{% endfor %}"
    )
    assert len(render_template(selected, many[:count], special_tokens={})) == 100 * count
    long = [{"role": "user", "content": "word " * 400_000}] * 3
    assert len(render_template(template, long, special_tokens={})) > 5_000_000


@pytest.mark.parametrize(
    "messages",
    [
        [{"role": "user", "content": object()}],
        [{"role": "user", "content": {1, 2}}],
        [{"role": "user", "content": b"bytes"}],
        [{"role": "user", "content": float("nan")}],
        [{"role": "user", "content": "\ud800"}],
        [{1: 2}],
        [{}],
    ],
)
def test_messages_with_other_values(messages: list[dict[Any, Any]]) -> None:
    """Templates see plain values only; other objects are the name of their type."""
    text = render_template("{{ messages[0].content }}", messages, special_tokens={})
    assert " at 0x" not in text


def test_messages_that_are_nested_deeply() -> None:
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(ChatTemplateError, match="nested deeper"):
        render_template("{{ messages }}", [{"role": "user", "content": deep}], special_tokens={})
    circle: list[Any] = []
    circle.append(circle)
    with pytest.raises(ChatTemplateError, match="nested deeper"):
        render("{{ documents }}", documents=[circle])


def test_messages_of_a_wrong_type() -> None:
    with pytest.raises(TypeError, match="message 1 of 1 must be a dict"):
        render_template("x", ["hi"], special_tokens={})  # type: ignore[list-item]  # a wrong type
    with pytest.raises(TypeError, match="a tool must be"):
        render("{{ tools }}", tools=[3])


def test_templates_in_threads_count_their_own_work() -> None:
    template = "{% for i in range(5000) %}{{ i }}{% endfor %}"
    expected = render(template)
    results: list[str] = []
    threads = [threading.Thread(target=lambda: results.append(render(template))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [expected] * 8


@pytest.mark.skipif(sys.version_info < (3, 11), reason="calls of Python functions use the C stack before Python 3.11")
def test_recursion_in_a_thread_with_a_small_stack(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chat_template, "WORK", chat_template.WORK // 8)
    failed: list[BaseException] = []

    def work() -> None:
        for name in ("recursive macro", "recursive loop", "deep tuple", "deep list", "lists in lists"):
            try:
                render(HOSTILE[name])
            except ChatTemplateError as error:
                failed.append(error)

    before = threading.stack_size(256 * 1024)
    try:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    finally:
        threading.stack_size(before)
    assert len(failed) == 5
