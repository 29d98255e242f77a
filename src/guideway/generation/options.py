"""The keyword arguments of the generating functions: their table of defaults, and their validation."""

from __future__ import annotations

import contextlib
import difflib
import inspect
import operator
import re
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Literal, NamedTuple, TypedDict, TypeVar, cast

from guideway.arguments import integer, short_list, short_repr
from guideway.caching import cached
from guideway.generation.scheduler import Limits
from guideway.sampling import Sampler
from guideway.sessions import KVCache, ModelBase
from guideway.sessions.session import KVHook

__all__ = [
    "BATCH",
    "CALL_ONLY",
    "MAX_TOKENS",
    "OPTIONS",
    "VERBATIM_NUM_BEAMS",
    "BaseOptions",
    "GenerationSettings",
    "Messages",
    "Option",
    "Options",
    "Prompt",
    "Prompts",
    "check_model",
    "check_names",
    "of_request",
    "strings_of",
    "with_options",
]

Messages = list[dict[str, Any]]
Ids = list[int]
Prompt = str | Messages | Ids
"""Text, messages for the chat template, or token ids."""
Prompts = list[str] | list[Messages] | list[Ids]

MAX_TOKENS = 512
"""The default maximum number of tokens of a generation. The size of the context is also a limit."""

VERBATIM_NUM_BEAMS = 4
"""The default number of beams for a type or a `JsonSchema` with verbatim strings."""

BATCH = 16
"""The default of `batch_size`. Each row that runs holds its KV cache, so this bounds memory for long lists."""


_SAMPLERS = frozenset(field.name for field in fields(Sampler))
SAMPLING = ("sampler", "temperature", "top_k", "top_p", "min_p")
"""The options that define how tokens are drawn: a `Sampler`, or the shortcuts that build one."""

CALL_ONLY = ("batch_size", "progress", "return_exceptions")
"""The options of a whole call. A `GenerationRequest` cannot have them."""


class BaseOptions(TypedDict, total=False):
    """The options that do not change the declared type of the result. `OPTIONS` describes each."""

    max_tokens: int
    min_tokens: int
    temperature: float | None
    top_k: int
    top_p: float
    min_p: float
    sampler: Sampler | None
    seed: int
    stop: str | Sequence[str]
    stop_token_ids: Sequence[int]
    stopping_criteria: Callable[[str], bool] | None
    bad_words: str | Sequence[str]
    token_healing: bool
    logprobs: int | None
    distributions: bool
    retries: int
    on_invalid: Literal["raise", "retry", "return"]
    verbatim_num_beams: int | None
    return_kv_cache: bool
    kv_cache: KVCache | None
    kv_hook: KVHook | None
    prompt_lookup_num_tokens: int
    assistant_model: ModelBase | None
    num_assistant_tokens: int
    on_truncation: Literal["return", "raise"]
    chat_template_kwargs: Mapping[str, Any]
    batch_size: int
    progress: bool


class Options(BaseOptions, total=False):
    """The keyword arguments of the generating functions. `OPTIONS` describes each."""

    allow_truncation: bool
    return_exceptions: bool


class Option(NamedTuple):
    """The default and the description of one option."""

    default: object
    meaning: str


OPTIONS: dict[str, Option] = {
    "max_tokens": Option(
        MAX_TOKENS,
        "The maximum number of tokens, EOS included. With a constraint and without `allow_truncation`, only tokens are"
        " drawn after which the text can still be completed within this number. `Generation.truncation` says whether"
        " this changed the text.",
    ),
    "min_tokens": Option(
        0,
        "Neither EOS nor a stop option ends the text before this number of tokens. A constraint does if it allows no"
        " further text: then the result has fewer tokens.",
    ),
    "temperature": Option(None, "0 is greedy. None: 0, or 1 if `n` is given. Shortcut for `Sampler(temperature)`."),
    "top_k": Option(0, "Draw from the k most probable tokens; 0: all. Shortcut for a `Sampler`."),
    "top_p": Option(1.0, "Draw from the fewest most probable tokens that together reach p. Shortcut for a `Sampler`."),
    "min_p": Option(0.0, "Exclude tokens below this part of the highest probability. Shortcut for a `Sampler`."),
    "sampler": Option(None, "All sampling parameters. It excludes the four shortcuts above."),
    "seed": Option(
        0,
        "The same seed, model and arguments give the same result. If other sequences run in the batch, rounding can"
        " change a draw.",
    ),
    "stop": Option((), "Strings that end free text; they are not part of it."),
    "stop_token_ids": Option((), "Token ids that end free text, in addition to EOS."),
    "stopping_criteria": Option(None, "A function of the text so far; True ends free text."),
    "bad_words": Option((), "Strings that the text never contains. The model goes back and draws another token."),
    "token_healing": Option(
        False, "Remove the prompt's last token and let the model write its text again, for prompts that end in a word."
    ),
    "logprobs": Option(
        None,
        "Keep a `TokenLogprobs` of each token with this number of alternatives. The model then runs over forced"
        " tokens, too. None: keep none.",
    ),
    "distributions": Option(
        False,
        "Compute the probabilities of the values of each field for which the schema lists 2 to 256 values (an enum, a"
        " boolean, or a union with constants), for `Generation.fields`. Implies `logprobs=0` if `logprobs` is not given.",
    ),
    "retries": Option(
        0,
        "How often a value that a validator of the type rejects is excluded and generated again, from its beginning.",
    ),
    "on_invalid": Option(
        "raise",
        'If a validator rejects the value after all retries: "raise" `InvalidTextError`; "return" the JSON data, and the'
        ' error in `Generation.invalid`. "retry": as "raise", with at least two retries.',
    ),
    "verbatim_num_beams": Option(
        None,
        "A greedy call chooses a verbatim string as a whole. If the string that the model writes without the constraint does"
        " not occur in the source, a beam search with this number of beams finds another; 1: token by token, as with other sampling and"
        " with `bad_words`. None: 4 for a type or a `JsonSchema` with verbatim strings.",
    ),
    "return_kv_cache": Option(False, "Keep the KV cache in `Generation.state`."),
    "kv_cache": Option(
        None, "The KV cache of what is before the prompt: `Session.kv_cache()`, or a soft prompt (`Model.soft_prompt`)."
    ),
    "kv_hook": Option(
        None,
        "A function of the session, called before each run of the model, that returns arrays which replace those of the"
        " soft prompt of `kv_cache` (retrieval).",
    ),
    "prompt_lookup_num_tokens": Option(
        0,
        "Speculative decoding: check this number of tokens that followed the last tokens where they occurred before. The"
        " text does not change. 0: none.",
    ),
    "assistant_model": Option(
        None,
        "Speculative decoding: a smaller model with the same vocabulary that proposes tokens. The text does not change.",
    ),
    "num_assistant_tokens": Option(5, "The number of tokens that `assistant_model` proposes at once."),
    "batch_size": Option(BATCH, "The maximum number of sequences that run together."),
    "progress": Option(False, "Show a progress bar on standard error, if that is a terminal."),
    "on_truncation": Option(
        "return",
        '"raise": raise `TruncatedError` at the first token that would have been another without `max_tokens` and the'
        ' limit of the context. "return": `Generation.truncation` reports it.',
    ),
    "chat_template_kwargs": Option(
        None,
        "Arguments of `Tokenizer.render_chat` for a prompt of messages, such as `enable_thinking` or `documents`.",
    ),
    "allow_truncation": Option(False, "Let `max_tokens` cut a constrained text. The value is then None."),
    "return_exceptions": Option(
        False, "Return the exception of a failed prompt in its place, and continue the others."
    ),
}
"""Every option, with its default.

`with_options` writes the options into the signatures and docstrings of the generating functions.
"""

F = TypeVar("F", bound=Callable[..., Any])


def with_options(*names: str, more: Mapping[str, Option] | None = None, typed: type | None = None) -> Callable[[F], F]:
    """A decorator: `inspect.signature` and `help` show the options instead of `**options`.

    Args:
        names: The options that the function takes; without names, it takes all.
        more: Further options of the function. They are listed first.
        typed: The `TypedDict` with the types of the options in `more`.
    """
    table = {**(more or {}), **OPTIONS}
    taken = (*(more or {}), *(names or OPTIONS))

    def decorate(function: F) -> F:
        signature = inspect.signature(function)
        hints = {**BaseOptions.__annotations__, **Options.__annotations__, **(typed.__annotations__ if typed else {})}
        shown = []
        for parameter in signature.parameters.values():
            if parameter.kind is not inspect.Parameter.VAR_KEYWORD:
                shown.append(parameter)
                continue
            for name in taken:
                hint = getattr(hints[name], "__forward_arg__", hints[name])
                shown.append(
                    inspect.Parameter(
                        name, inspect.Parameter.KEYWORD_ONLY, default=table[name].default, annotation=hint
                    )
                )
        function.__signature__ = signature.replace(parameters=shown)  # type: ignore[attr-defined]  # not declared by mypy
        meanings = "\n".join(_paragraph(name, table[name].meaning) for name in taken).lstrip()
        function.__doc__ = _OPTIONS_LINE.sub(lambda _: meanings, function.__doc__ or "")
        return function

    return decorate


@cached(256)  # several functions have the same options
def _paragraph(name: str, meaning: str) -> str:
    indent = " " * 8
    return textwrap.fill(f"{name}: {meaning}", 118, initial_indent=indent, subsequent_indent=indent + " " * 4)


_OPTIONS_LINE = re.compile(r"\*\*options:.*(\n {12}.*)*")


@dataclass(frozen=True)
class GenerationSettings:
    """Checked options: the sampler, the limits and the others.

    `own_seed`: whether the options of the `GenerationRequest` contain the seed; False: it is the seed of the call.
    """

    sampler: Sampler
    limits: Limits
    seed: int
    own_seed: bool
    token_healing: bool
    return_kv_cache: bool
    raise_on_truncation: bool = False
    distributions: bool = False
    retries: int = 0
    return_invalid: bool = False
    template_options: Mapping[str, Any] = field(default_factory=dict)
    kv_cache: KVCache | None = None
    kv_hook: KVHook | None = None
    prompt_lookup_num_tokens: int = 0
    assistant_model: ModelBase | None = None
    num_assistant_tokens: int = 5

    @classmethod
    def of(cls, options: Options, *, constrained: bool, sampled: bool, own: Mapping[str, object]) -> GenerationSettings:
        """Check options.

        Raises `TypeError` for unknown options and values of a wrong type, and `ValueError` for values out of range and
        for options that exclude each other.

        Args:
            options: The options.
            constrained: Whether the output has a constraint.
            sampled: Whether `n` is given, so that the default temperature is 1.
            own: The options that the `GenerationRequest` sets itself.
        """
        check_names(options)
        if constrained and (cutting := [n for n in ("stop", "stop_token_ids", "stopping_criteria") if options.get(n)]):
            raise ValueError(
                f"{cutting[0]} and a constraint exclude each other: a constrained text is never cut; express its end in"
                " the constraint"
            )
        if options.get("allow_truncation") and not constrained:
            raise ValueError("allow_truncation=True needs a constraint; free text is always cut at max_tokens")
        seed = _integer(options, "seed", 0)
        token_healing, return_kv_cache = (
            bool(options.get("token_healing", False)),
            bool(options.get("return_kv_cache", False)),
        )
        if (wanted := options.get("on_truncation", "return")) not in ("return", "raise"):
            raise ValueError(f'on_truncation must be "return" or "raise", got {short_repr(wanted)}')
        if (on_invalid := options.get("on_invalid", "raise")) not in ("raise", "retry", "return"):
            raise ValueError(f'on_invalid must be "raise", "retry" or "return", got {short_repr(on_invalid)}')
        retries = integer("retries", options.get("retries", 0), 0)
        if on_invalid == "retry":
            retries = max(retries, 2)
        if options.get("distributions") and options.get("logprobs") is None:
            options = cast(Options, {**options, "logprobs": 0})
        return cls(
            _sampler(options, sampled),
            _limits(options),
            seed,
            "seed" in own,
            token_healing,
            return_kv_cache,
            wanted == "raise",
            bool(options.get("distributions", False)),
            retries,
            on_invalid == "return",
            _template_options(options),
            options.get("kv_cache"),
            options.get("kv_hook"),
            integer("prompt_lookup_num_tokens", options.get("prompt_lookup_num_tokens", 0), 0),
            options.get("assistant_model"),
            integer("num_assistant_tokens", options.get("num_assistant_tokens", 5), 1),
        )


def check_model(model: object) -> None:
    """Raise `TypeError` for anything but a `ModelBase`, such as the name of a model."""
    if not isinstance(model, ModelBase):
        raise TypeError(
            f"model must be a guideway.Model (from guideway.load), got {type(model).__name__} {short_repr(model)}"
        )


def check_names(options: Mapping[str, object], more: Sequence[str] = ()) -> None:
    """Raise `TypeError` for a name that is not in `OPTIONS`. `more`: names that the message lists as known, too."""
    known = OPTIONS
    if unknown := sorted(options.keys() - known.keys()):
        meant = ", ".join(filter(None, (_meant(name, more) for name in unknown)))
        raise TypeError(
            f"unknown options: {short_list(unknown)}{meant and f' ({meant})'}; known are {', '.join((*more, *known))}"
        )


def _meant(name: str, more: Sequence[str]) -> str:
    """Return a hint for an unknown option, such as the known name that is closest to it; "" if there is none."""
    if name in _SAMPLERS:
        return f"{name} is given by sampler=Sampler({name}=...)"
    if name in {"n", "samples", "num_return_sequences"}:
        return "use n= of generate, complete and stream"
    near = difflib.get_close_matches(name.lower(), [*more, *OPTIONS, *_SAMPLERS, "n"], 1)
    return f"did you mean {near[0]}?" if near else ""


def of_request(options: Options, own: Options) -> Options:
    """Return the options of one request of a call.

    A sampling option of the request replaces all sampling options of the call. Any other option replaces the option of
    the same name.
    """
    shared = {name: value for name, value in options.items() if not (name in SAMPLING and own.keys() & set(SAMPLING))}
    return cast(Options, {**shared, **own})


def _sampler(options: Options, sampled: bool) -> Sampler:
    given = options.get("sampler")
    shortcuts = [name for name in SAMPLING[1:] if name in options]
    if given is not None:
        if not isinstance(given, Sampler):
            raise TypeError(f"sampler must be a guideway.Sampler, got {short_repr(given)}")
        if shortcuts:
            raise ValueError(f"sampler= and {shortcuts[0]}= exclude each other: set {shortcuts[0]} in the Sampler")
        return given
    temperature = options.get("temperature")
    if temperature is None:
        temperature = 1.0 if sampled else 0.0
    values = temperature, options.get("top_k", 0), options.get("top_p", 1.0), options.get("min_p", 0.0)
    with contextlib.suppress(TypeError):  # an unhashable value is no number, and the Sampler reports it
        return _remembered(*values)
    return Sampler(*values)


_remembered = cached(256)(Sampler)
"""Return a `Sampler` with these arguments; if possible, one that was made before.

Samplers are immutable, and the checks of their arguments take longer than a step of a small model.
"""


def _limits(options: Options) -> Limits:
    most = integer("max_tokens", options.get("max_tokens", MAX_TOKENS), 1)
    least = _integer(options, "min_tokens", 0)
    if not 0 <= least <= most:
        raise ValueError(f"min_tokens must be 0 to max_tokens ({most}), got {least}")
    logprobs = None if options.get("logprobs") is None else _integer(options, "logprobs", 0)
    if logprobs is not None and logprobs < 0:
        raise ValueError(f"logprobs must be >= 0 (the number of alternatives), got {logprobs}")
    ask = options.get("stopping_criteria")
    if ask is not None and not callable(ask):
        raise TypeError(f"stopping_criteria must be a function of the text, got {short_repr(ask)}")
    return Limits(
        most,
        least,
        strings_of(options.get("stop", ()), "stop"),
        _ids(options.get("stop_token_ids", ())),
        ask,
        strings_of(options.get("bad_words", ()), "bad_words"),
        not options.get("allow_truncation", False),
        logprobs,
        options.get("on_truncation") == "raise",
        integer("verbatim_num_beams", 1 if (beams := options.get("verbatim_num_beams")) is None else beams, 1),
    )


def _template_options(options: Options) -> Mapping[str, Any]:
    given: object = options.get("chat_template_kwargs")
    if given is None:
        return {}
    if not isinstance(given, Mapping) or not all(isinstance(name, str) for name in given):
        raise TypeError(f"chat_template_kwargs must be a dict of names and values, got {short_repr(given)}")
    return given


def _integer(options: Options, name: str, default: int) -> int:
    return integer(name, options.get(name, default))


def _ids(given: Iterable[int]) -> frozenset[int]:
    try:
        if isinstance(given, Mapping):
            raise TypeError
        return frozenset(operator.index(one) for one in given)
    except TypeError:
        raise TypeError(f"stop_token_ids must be token ids, got {short_repr(given)}") from None


def strings_of(given: object, name: str) -> tuple[str, ...]:
    """Return the strings of an option: a string, or an iterable of strings that is no mapping.

    Args:
        given: The value of the option.
        name: Its name, for messages.

    Raises:
        TypeError: The value is none of these.
        ValueError: A string is empty or has a lone surrogate.
    """
    strings: list[Any] = [given]
    if isinstance(given, Iterable) and not isinstance(given, (str, Mapping)):
        strings = list(given)
    if not all(isinstance(one, str) for one in strings):
        raise TypeError(f"{name} must be a string or strings, got {short_repr(given)}")
    if not all(strings) or any("\ud800" <= char <= "\udfff" for one in strings for char in one):
        raise ValueError(
            f"{name} must be a string or strings, none of them empty or with a lone surrogate: {short_repr(given)}"
        )
    return tuple(strings)
