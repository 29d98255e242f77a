"""`Tags`: free text with structured parts between markers. `Reasoning`: reasoning text before an answer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import tee
from typing import Any, Generic, TypeVar, overload

from guideway.arguments import short_repr
from guideway.caching import cached_property
from guideway.constraints.base import Constraint, check_counts, check_text
from guideway.constraints.captures import Rules
from guideway.constraints.coerce import source_of
from guideway.constraints.embed import separated, term_of
from guideway.constraints.known import DeferredLowering
from guideway.constraints.mismatch import does_not_fit
from guideway.constraints.special_token import cuts_name, ends_as_it_begins, marker, up_to_marker
from guideway.errors import InvalidConstraintError, InvalidTextError, LimitExceededError
from guideway.grammar.cfg import Alternation, Concatenation, Repetition, Rule, Term, Text, lower
from guideway.grammar.nodes import Grammar
from guideway.grammar.recognizer import fits
from guideway.grammar.regular import ANY_TEXT, Complement, Concat, Literals, Regular

__all__ = ["Reasoning", "Tag", "Tagged", "Tags", "literal", "without"]

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
_MOST_READ = 10_000_000  # characters of contents that `Tags.parse` reads


def without(*markers: str) -> Regular:
    """Return the language of the texts that contain none of the markers."""
    return Complement(Concat((ANY_TEXT, Literals(markers), ANY_TEXT)))


def literal(text: str) -> Term:
    """Return a fixed text as a term of a rule."""
    return Text(Literals((text,)))


class Tag:
    """A structured part of a text: `begin`, the content, `end`.

    Args:
        begin: The text before the content. It must not be empty.
        content: A constraint, or a value that `guideway.constraints.of` accepts. A str is a literal text.
        end: The text after the content.

    Raises:
        InvalidConstraintError: `begin` is empty, a text is not a str or has a lone surrogate, or `content` is not a
            constraint.
    """

    def __init__(self, begin: str, content: object, end: str) -> None:
        self.begin = check_text(begin, "begin of a tag")
        self.content = source_of(content)
        self.end = check_text(end, "end of a tag")
        if not begin:
            raise InvalidConstraintError("begin of a tag must not be empty")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Tag) and self._content() == other._content()

    def __hash__(self) -> int:
        return hash(self._content())

    def _content(self) -> tuple[str, Constraint[Any], str]:
        return self.begin, self.content, self.end

    def __repr__(self) -> str:
        return f"Tag({self.begin!r}, {self.content!r}, {self.end!r})"


@dataclass(frozen=True)
class Tagged:
    """A tag that was found in a text, and the value of its content."""

    tag: Tag
    value: Any


class _TagReader:
    """Reads the tags at the places of one text, each of them once.

    Args:
        tags: The tags.
        text: The text.
    """

    def __init__(self, tags: Sequence[Tag], text: str) -> None:
        self.text = text
        self._tags = tags
        self._left = _MOST_READ
        self._read: dict[int, Iterator[tuple[Tagged, int]]] = {}  # by place; each is copied for a use

    def tagged(self, start: int) -> Iterator[tuple[Tagged, int]]:
        """Return the tags that can be at the index `start`, and the index after each: by `tags`, the shortest first."""
        self._read[start], found = tee(self._read.get(start) or self._tagged(start))
        return found

    def _tagged(self, start: int) -> Iterator[tuple[Tagged, int]]:
        text = self.text
        for tag in self._tags:
            if not text.startswith(tag.begin, start):
                continue
            first = start + len(tag.begin)
            end = text.find(tag.end, first)
            while end >= 0:
                self._left -= end - first + 1
                if self._left < 0:
                    raise LimitExceededError(
                        f"the tag at character {start} has too many possible ends; use an end that its content cannot contain"
                    )
                with suppress(InvalidTextError):  # the content may contain the end text: try the next occurrence
                    yield Tagged(tag, tag.content.parse(text[first:end])), end + len(tag.end)
                end = text.find(tag.end, end + 1)


class Tags(DeferredLowering, Constraint[list["str | Tagged"]]):
    """Free text with tags. Outside tags, each trigger begins a tag.

    The value is a list: a str for each free text that is not empty, and a `Tagged` for each tag.

    Args:
        tags: The tags, at least one.
        triggers: Texts that the free text does not contain. Each must be a prefix of the `begin` of a tag, and each tag
            must have one. None: the `begin` of each tag.
        least: The minimum number of tags.
        most: The maximum number of tags; None: no maximum.
        separator: The text between two tags. There is then no free text. None: there is free text, and no separator.
        special: Names in `begin`, `end` and `separator` that are special tokens, if the vocabulary has them.

    Raises:
        InvalidConstraintError: There are no tags, or the counts are not valid. A trigger is empty, contains another
            one, is not a prefix of a tag, or ends inside the name of a special token. A trigger contains a special
            token and has a proper suffix that is also a prefix. A tag has no trigger.
        LimitExceededError: A count is greater than 2**31 - 1.
        TypeError: A count is not an int.
    """

    def __init__(
        self,
        tags: Iterable[Tag],
        *,
        triggers: Iterable[str] | None = None,
        least: int = 0,
        most: int | None = None,
        separator: str | None = None,
        special: Iterable[str] = (),
    ) -> None:
        self.tags, self.special = tuple(tags), tuple(special)
        if not self.tags:
            raise InvalidConstraintError("Tags needs at least one tag")
        check_counts(least, most, "tag")
        self.triggers = tuple(dict.fromkeys(triggers if triggers is not None else (tag.begin for tag in self.tags)))
        self.least, self.most, self.separator = least, most, separator
        for one in self.triggers:
            if any(one != other and one in other for other in self.triggers):
                raise InvalidConstraintError(
                    f"the trigger {short_repr(one)} is contained in another trigger, which could never match"
                )
            if not one or not any(tag.begin.startswith(one) for tag in self.tags):
                raise InvalidConstraintError(f"the trigger {short_repr(one)} is not a prefix of the begin of any tag")
        for tag in self.tags:
            if not any(tag.begin.startswith(one) for one in self.triggers):
                raise InvalidConstraintError(
                    f"no trigger is a prefix of the tag {short_repr(tag.begin)}; add one to triggers"
                )
            if any(tag.begin.startswith(one) and cuts_name(tag.begin, len(one), self.special) for one in self.triggers):
                raise InvalidConstraintError(
                    f"a trigger of the tag {short_repr(tag.begin)} ends inside the name of a special token"
                )
        self._prepare(*(tag.content for tag in self.tags))

    @cached_property
    def _shape(self) -> Rules:
        return Rules((Rule("tags", self._term()),), "tags")

    @cached_property
    def _grammar(self) -> Grammar:
        return lower(list(self._shape.rules), "tags").grammar

    def _term(self) -> Term:
        if self.separator is not None:
            one = Alternation(tuple(self._after(tag, "") for tag in self.tags))
            return separated(one, self.least, self.most, marker(self.separator, self.special))
        options = [
            Concatenation(
                (
                    up_to_marker(trigger, self.special, *self.triggers),
                    Alternation(tuple(self._after(tag, trigger) for tag in self.tags if tag.begin.startswith(trigger))),
                )
            )
            for trigger in self.triggers
        ]
        return Concatenation(
            (Repetition(Alternation(tuple(options)), self.least, self.most), Text(without(*self.triggers)))
        )

    def _after(self, tag: Tag, trigger: str) -> Term:
        begin, end = (marker(text, self.special) for text in (tag.begin[len(trigger) :], tag.end))
        return Concatenation((begin, term_of(tag.content), end))

    def grammar(self) -> Grammar:
        """Return the lowered rules."""
        return self._grammar

    def shape(self) -> Rules:
        """Return the rules."""
        return self._shape

    def parse(self, text: str) -> list[str | Tagged]:
        """Return the free texts that are not empty, and the tags with the values of their contents, in order.

        A tag ends at the first occurrence of its `end` with which its content is valid and the rest of the text fits.
        If several tags fit at one place, the first of `tags` is returned.

        Raises:
            InvalidTextError: The text does not fit.
            LimitExceededError: The contents have too many possible ends: to find the right ones, more than 10 million
                characters would be read.
        """
        if not fits(self._grammar, text):
            raise does_not_fit(self._grammar, text, f"does not match {self!r}")
        found: list[tuple[str, Tagged]] = []  # the tags so far, each with the free text before it
        reader = _TagReader(self.tags, text)
        open_choices = [self._next(reader, 0, 0)]
        known: set[tuple[int, int]] = set()  # positions with numbers of tags, from which the rest was or is being read
        while open_choices:
            step = next(open_choices[-1], None)
            if step is None:
                open_choices.pop()
                if found:
                    found.pop()
                continue
            free, tagged, after = step
            if tagged is None:
                pieces = [piece for pair in found for piece in pair if piece != ""]
                return [*pieces, free] if free else pieces
            state = after, self._counted(len(found) + 1)
            if state not in known:
                known.add(state)
                found.append((free, tagged))
                open_choices.append(self._next(reader, after, len(found)))
        raise InvalidTextError(f"the contents of the tags have no values in {short_repr(text)}")

    def _counted(self, count: int) -> int:
        """Return the number of tags, but not more than what `least` and `most` distinguish."""
        return min(count, self.least) if self.most is None else count

    def _next(self, reader: _TagReader, at: int, count: int) -> Iterator[tuple[str, Tagged | None, int]]:
        """Yield how the text can continue at the index `at`, after `count` tags.

        Each result is the free text from `at`, the tag after it, and the index after the tag; for the end of the text,
        None and the length of the text.
        """
        text = reader.text
        if self.separator is None:
            places = [place for trigger in self.triggers if (place := text.find(trigger, at)) >= 0]
            start = min(places, default=len(text))
            is_end = not places
        else:
            is_end = at == len(text)
            between = self.separator if count else ""
            start = at + len(between) if text.startswith(between, at) else len(text)
        if is_end and count >= self.least:
            yield text[at:], None, len(text)
        if self.most is not None and count == self.most:
            return
        free = text[at:start] if self.separator is None else ""
        for tagged, after in reader.tagged(start):
            yield free, tagged, after

    def _content(self) -> object:
        return self.tags, self.triggers, self.least, self.most, self.separator, self.special

    def __repr__(self) -> str:
        return f"Tags({list(self.tags)!r})"


class Reasoning(DeferredLowering, Constraint[tuple[str, T_co]], Generic[T_co]):
    """Reasoning between two markers, then an answer. The value is the pair of reasoning text and answer value.

    The end marker and the answer may have up to two line breaks between them.

    Args:
        answer: The constraint of the answer, or a value that `guideway.constraints.of` accepts. A str is a literal
            text.
        begin: The marker before the reasoning.
        end: The marker after the reasoning. It must not be empty.
        optional: Whether the reasoning and its markers may be missing. The reasoning text is then "".
        special: Names in the markers that are special tokens, if the vocabulary has them. None: both markers, except
            those with a suffix that is also a prefix.

    Raises:
        InvalidConstraintError: `end` is empty, a marker is not a str or has a lone surrogate, or `answer` is not a
            constraint. `end` contains a name of `special` and has a proper suffix that is also a prefix.
    """

    @overload
    def __init__(
        self: Reasoning[T],
        answer: Constraint[T] | type[T],
        *,
        begin: str = ...,
        end: str = ...,
        optional: bool = ...,
        special: Iterable[str] | None = ...,
    ) -> None: ...
    @overload
    def __init__(
        self: Reasoning[Any],
        answer: object,
        *,
        begin: str = ...,
        end: str = ...,
        optional: bool = ...,
        special: Iterable[str] | None = ...,
    ) -> None: ...
    def __init__(
        self,
        answer: object,
        *,
        begin: str = "<think>",
        end: str = "</think>",
        optional: bool = False,
        special: Iterable[str] | None = None,
    ) -> None:
        self.answer = source_of(answer)
        self.begin, self.end = check_text(begin, "the begin"), check_text(end, "the end")
        self.skips = optional
        self.special = (
            tuple(one for one in (begin, end) if not ends_as_it_begins(one)) if special is None else tuple(special)
        )
        if not end:
            raise InvalidConstraintError("end of Reasoning must not be empty")
        self._prepare(self.answer)

    @cached_property
    def _shape(self) -> Rules:
        gap = Text(Literals(("", "\n", "\n\n")))
        thought = Concatenation((marker(self.begin, self.special), up_to_marker(self.end, self.special), gap))
        parts = (Repetition(thought, 0, 1) if self.skips else thought, term_of(self.answer))
        return Rules((Rule("reasoning", Concatenation(parts)),), "reasoning")

    @cached_property
    def _grammar(self) -> Grammar:
        return lower(list(self._shape.rules), "reasoning").grammar

    def grammar(self) -> Grammar:
        """Return the lowered rules."""
        return self._grammar

    def shape(self) -> Rules:
        """Return the rules."""
        return self._shape

    def parse(self, text: str) -> tuple[str, T_co]:
        """Return the reasoning text and the value of the answer."""
        if not fits(self._grammar, text):
            raise does_not_fit(self._grammar, text, f"does not match {self!r}")
        reasoning, _, value = self._divided(text)
        return reasoning, value

    def split(self, text: str) -> tuple[str, str]:
        """Return the reasoning text and the text of the answer, of a text that is known to match.

        Raises `InvalidTextError` if the answer has no value.
        """
        return self._divided(text)[:2]

    def _divided(self, text: str) -> tuple[str, str, T_co]:
        """Return the reasoning text, the text of the answer, and the value of the answer."""
        end = text.find(self.end, len(self.begin)) if text.startswith(self.begin) else -1
        for gap in ("", "\n", "\n\n") if end >= 0 else ():
            answer = text[end + len(self.end) :]
            if answer.startswith(gap):
                try:
                    return text[len(self.begin) : end], answer[len(gap) :], self.answer.parse(answer[len(gap) :])
                except InvalidTextError:
                    continue
        return "", text, self.answer.parse(text)

    def _content(self) -> object:
        return self.answer, self.begin, self.end, self.skips, self.special

    def __repr__(self) -> str:
        return f"Reasoning({self.answer!r})"
