"""The kernel: vocabularies, automata, matchers and token masks."""

from collections.abc import Callable, Sequence
import enum
from typing import Any

import numpy
import numpy.typing


class WorkDeferred(Exception):
    pass

def bound_work(units: int | None) -> int | None:
    """
    Bound the work of later calls of this thread to this number of units in total; None: do not bound it.

    A call that reaches the bound raises `WorkDeferred` and changes nothing. It can be repeated.

    Returns:
        What was left of the bound before.
    """

class KernelVocabulary:
    """
    The tokens of a model as bytes. `memo_bytes`: the size of cached masks above which the least recently used ones are removed; `store_bytes`: the size of expressions above which a new store is begun.
    """

    def __init__(self, token_bytes: Sequence[bytes], eos_ids: Sequence[int], special_ids: Sequence[int], *, memo_bytes: int = 268435456, store_bytes: int = 536870912, max_states: int = 4000000) -> None: ...

    @staticmethod
    def tuned(token_bytes: Sequence[bytes], eos_ids: Sequence[int], special_ids: Sequence[int], tuning: dict[str, int], *, memo_bytes: int = 268435456, store_bytes: int = 536870912) -> KernelVocabulary:
        """
        A vocabulary for tests and benchmarks: switches and thresholds of kernel/base/tuning.h by name. They change no mask.
        """

    @staticmethod
    def mechanisms() -> list[str]:
        """The switches that `tuned` accepts."""

    @staticmethod
    def thresholds() -> dict[str, int]:
        """
        The thresholds that `tuned` accepts, with values that small vocabularies reach.
        """

    @staticmethod
    def of_block(block: bytes, eos_ids: Sequence[int], special_ids: Sequence[int], *, max_states: int = 4000000, max_work: int = 400000000) -> KernelVocabulary:
        """The same of what `flatten` made of the tokens."""

    def save(self) -> bytes:
        """
        What of it takes long to build, for `load` on a machine of the same byte order.
        """

    @staticmethod
    def load(block: bytes, eos_ids: Sequence[int], special_ids: Sequence[int], file: numpy.typing.NDArray[numpy.uint8], *, max_states: int = 4000000, max_work: int = 400000000) -> KernelVocabulary:
        """
        `of_block` with what `save` gave of an equal one; the array is kept and must not change. ValueError where it is of other tokens, or no such file.
        """

    def open_ends(self, text: bytes) -> list[int]:
        """
        Where the ends of the text begin with which some token begins, and goes on.
        """

    @property
    def size(self) -> int:
        """Number of token ids."""

    @property
    def words(self) -> int:
        """32-bit words of a mask row."""

def flatten(tokens: tuple[bytes, ...]) -> bytes:
    """The tokens as one block, which no other tokens have."""

def unflatten(block: bytes) -> tuple[bytes, ...]:
    """What `flatten` was given."""

def checksum(data: bytes | bytearray | memoryview, seed: int) -> int:
    """64 bits against damage, at the speed of memory."""

class Automaton:
    """
    A constraint compiled for a vocabulary: immutable, shareable between threads.
    """

    @staticmethod
    def compile(vocabulary: KernelVocabulary, program: bytes) -> Automaton:
        """Compile a program (`guideway.grammar.program`), little-endian words."""

    @staticmethod
    def is_empty(vocabulary: KernelVocabulary, program: bytes) -> bool:
        """Whether no text fits a program. This costs less than `compile`."""

    def matcher(self) -> Matcher:
        """A matcher at the start of the text."""

    def warm_up(self, work: int) -> None:
        """
        Find out ahead what masks will need, with so many units of work at most; 100 of them take about a microsecond.
        """

    def __repr__(self) -> str: ...

    def stats(self) -> dict[str, int]:
        """Sizes and memo hits, for benchmarks."""

class Fit(enum.Enum):
    """How a token budget changes a mask; see `Matcher.fill_masks_within`."""

    NONE = 0
    """No token fits the budget."""

    ALL = 1
    """Every legal token fits the budget."""

    SOME = 2
    """Some legal tokens do not fit the budget."""

class Matcher:
    """
    Walks an automaton along one sequence of tokens; see `guideway.matcher`.
    """

    def fill_mask(self, row: numpy.typing.NDArray[numpy.uint32]) -> None:
        """
        Set bit t % 32 of word t // 32 for each legal token t, clear the others. row: ceil(V / 32) uint32, writable.
        """

    def fill_mask_within(self, row: numpy.typing.NDArray[numpy.uint32], tokens_left: int) -> bool:
        """
        As fill_mask, but only tokens after which the text can be completed in `tokens_left - 1` more, end token included. False: there is none.
        """

    def fill_masks_within(self, row: numpy.typing.NDArray[numpy.uint32], whole: numpy.typing.NDArray[numpy.uint32], tokens_left: int) -> Fit:
        """
        As fill_mask_within. Fit.SOME: the budget removed tokens; `whole` is then filled as fill_mask does, and otherwise unspecified.
        """

    def fill_draft_masks(self, token_ids: Sequence[int], parents: Sequence[int], rows: numpy.typing.NDArray[numpy.uint32]) -> None:
        """
        Row i becomes the mask behind draft token i, which follows draft token parents[i] (an earlier one), or the tokens taken so far (-1). Behind a token that is not legal: no bits. Nothing is taken.
        """

    def advance(self, token_id: int) -> None:
        """
        Take a token. RejectedTokenError or InvalidTokenError: nothing has changed.
        """

    def advance_and_fill(self, token_id: int, row: numpy.typing.NDArray[numpy.uint32]) -> None:
        """
        `advance`, then `fill_mask`, in one call; whatever is raised, nothing was taken.
        """

    def mask_digest(self) -> int:
        """
        128 bits that name what `fill_mask` would write: equal masks have equal ids, in every process and on every machine of the same byte order, so that what was made of a mask (a copy on a device) can be used again.
        """

    def rollback(self, count: int) -> None:
        """Give the last `count` tokens back. ValueError if there are fewer."""

    def fork(self) -> Matcher:
        """An independent copy."""

    def validate(self, tokens: Sequence[int]) -> int:
        """
        How many of the tokens, from the first on, could be taken. Nothing changes.
        """

    def forced_bytes(self) -> bytes:
        """What the text goes on with in any case, up to 4,096 bytes."""

    def forced_tokens(self) -> list[int]:
        """
        Tokens over the forced bytes, longest first, as far as no legal token could reach past them.
        """

    def min_tokens_to_complete(self) -> int:
        """
        The smallest number of tokens that spell the shortest completion, end token included. UnsatisfiableError: the vocabulary has no tokens that spell it.
        """

    def completion(self) -> bytes:
        """A shortest text that completes what was taken so far."""

    def __repr__(self) -> str: ...

    @property
    def quotation(self) -> str | None:
        """
        Where the text is in a verbatim string: "begins" before its first character, "inside" after that, or None.
        """

    @property
    def is_accepting(self) -> bool:
        """Whether the text may end here."""

    @property
    def is_finished(self) -> bool:
        """Whether an end token was taken."""

    @property
    def position(self) -> int:
        """How many tokens were taken."""

    @property
    def words(self) -> int:
        """32-bit words of a mask row."""

def fill_masks(matchers: Sequence[Matcher | None], rows: numpy.typing.NDArray[numpy.uint32], threads: int = 1) -> None:
    """
    fill_mask for a batch: row i of `rows` ([n, ceil(V / 32)] uint32) is matcher i's mask; None: every bit set. The GIL is released; `threads` workers, at most 64 and as many as the system gives, share the rows, which pays from about a thousand rows.
    """

def advance_and_fill(matchers: Sequence[Matcher | None], token_ids: Sequence[int], rows: numpy.typing.NDArray[numpy.uint32], threads: int = 1) -> None:
    """
    Matcher i takes token i, and row i becomes its mask; all or none: RejectedTokenError or InvalidTokenError names the row, and nobody has moved. The token of a None is not looked at.
    """

def only_token(row: numpy.typing.NDArray[numpy.uint32]) -> int | None:
    """
    The one token that a row allows; None where it allows none, or several.
    """

def mask_logits(source: numpy.typing.NDArray[numpy.float32], target: numpy.typing.NDArray[numpy.float32], rows: numpy.typing.NDArray[numpy.uint32], held: Sequence[bool]) -> list[int]:
    """
    `target` ([n, width] float32; `source` itself, or apart from it) becomes `source`, in rows that are `held` with -inf for what their mask ([n, words] uint32) does not allow, and beyond it. Gives the held rows where no legal token has a logit above -inf. Rows need not lie side by side, the logits of one do. The GIL is released.
    """

class LoopClock:
    """
    An engine's calls of a processor: one at a time, and the seconds that went where.
    """

    def __init__(self) -> None: ...

    def enter(self) -> float | None:
        """
        Seconds since the last call was left (0: this is the first); None: another call has not been left yet.
        """

    def leave(self) -> None:
        """After each `enter` that gave a number."""

    def take(self) -> tuple[int, float, float, float]:
        """
        Calls of `LoopRows.run_on` since this was asked last; seconds before them, of finding masks, of putting them on logits.
        """

class LoopRows:
    """
    The rows of an engine's loop from step to step, each of which adds a token to all of them.
    """

    def __init__(self, rows: Sequence[tuple[Matcher | None, int, int, int]]) -> None:
        """
        By row: its matcher (None: a free row), how many tokens stand in it, how many of them the matcher took, and how many all of it may have (0: any number).
        """

    def grow(self, tokens: Sequence[int]) -> None:
        """
        Row i goes on with token i, which its matcher takes in `run`, where it is legal.
        """

    def know(self, ids: numpy.typing.NDArray[numpy.int64]) -> None:
        """
        What the engine has in the rows as they are now, prompts and all: `grow_to` and `run_on` tell by it how they have grown.
        """

    def grow_to(self, ids: Any) -> bool:
        """
        `grow` with the last column of `ids`, int64 [rows, tokens] on the CPU, where the others are what is known of the rows. False: they are not, and nothing has changed.
        """

    @property
    def known(self) -> numpy.typing.NDArray[numpy.int64]:
        """
        A copy of what is known of the rows, [rows, tokens]; [rows, 0]: nothing is.
        """

    @property
    def width(self) -> int:
        """How many tokens of each row are known."""

    def run(self, masks: numpy.typing.NDArray[numpy.uint32]) -> None:
        """
        Rows take what they have grown by; row i of `masks` becomes the mask of row i, of tokens that fit its budget (where none fits: of all); every bit where it is not held. Once something was raised, no more can be asked. The GIL is released.
        """

    def run_on(self, ids: Any, source: Any, target: Any, clock: LoopClock) -> list[int] | None:
        """
        `grow_to`, `run`, and `mask_logits` with what it finds, in one call, which enters and leaves the clock. Arrays of NumPy, or tensors of PyTorch on a CPU: `ids` int64, `source` and `target` float32. None: they are others, have not grown so, or another call has not left the clock; nothing has changed.
        """

    def begin(self, masks: numpy.typing.NDArray[numpy.uint32]) -> None:
        """
        `run` on a thread of its own; masks and matchers are left alone until `wait`.
        """

    def wait(self) -> None:
        """Until what was begun has ended; raises what `run` would have."""

    @property
    def seconds(self) -> float:
        """What it took on the other thread."""

    @property
    def held(self) -> list[bool]:
        """
        Which rows are held: their matcher took all of their tokens, or has ended.
        """

    @property
    def lengths(self) -> list[tuple[int, int]]:
        """By row: how many tokens stand in it, and how many of them were taken."""

class Sampling:
    """
    How a token is drawn: the stages of `guideway.sampling.Sampler` in their usual order, over float32 logits on the CPU.
    """

    def __init__(self, *, temperature: float, top_k: int, top_p: float, min_p: float, tail_free: float, typical_p: float, top_a: float, top_n_sigma: float, xtc_threshold: float, repetition_penalty: float, presence_penalty: float, frequency_penalty: float, bias_ids: Sequence[int], biases: Sequence[float]) -> None: ...

    def draw(self, logits: numpy.typing.NDArray[numpy.float32], mask: numpy.typing.NDArray[numpy.uint32] | None, number: float = 0.0, exclude_top: bool = False, seen: numpy.typing.NDArray[numpy.uint32] | None = None, counts: numpy.typing.NDArray[numpy.uint32] | None = None) -> int | None:
        """
        The token that `number` in [0, 1) falls on; None where there is none to draw, or a logit is NaN or +inf. `seen` are the distinct tokens that came before, with their `counts`; `exclude_top`: whether XTC acts this time. The GIL is released.
        """

    def draw_with_gap(self, logits: numpy.typing.NDArray[numpy.float32], mask: numpy.typing.NDArray[numpy.uint32] | None, number: float, exclude_top: bool, seen: numpy.typing.NDArray[numpy.uint32] | None, counts: numpy.typing.NDArray[numpy.uint32] | None) -> tuple[int, float] | None:
        """
        As `draw`, and how much the difference of two logits must change before another token is drawn. Edges of stages that cut are not considered.
        """

def shares(logits: numpy.typing.NDArray[numpy.float32], mask: numpy.typing.NDArray[numpy.uint32] | None, token_id: int) -> tuple[float, float, float]:
    """
    Log-probability of a token under the model, and under the mask; the probability of all that the mask does not allow.
    """

class ProgramWriter:
    """Writes grammars as programs; see `guideway.grammar.program`."""

    def __init__(self, nodes: tuple[type, ...], expressions: tuple[type, ...]) -> None:
        """
        The classes of nodes, then of what they hold, and those of expressions: each in the order of their numbers in a program.
        """

    def write(self, nodes: Sequence[object], root: int, first: tuple[object, ...]) -> bytes:
        """
        A program as little-endian words. `nodes`: a list; `first`: expressions that are written before all others.
        """

    def share(self, expression: object) -> None:
        """Write this expression, from now on, in one piece."""

def nests_deeper(value: object, depth: int) -> bool:
    """
    Whether dicts, lists and tuples of the value nest deeper than `depth`. Cyclic values do.

    Encoders in C recurse, and a thread with a small stack would overflow.
    """

def count_values(value: object, most: int) -> int:
    """
    The number of values in dicts, lists and tuples, with shared parts counted at each of their places. `most` + 1: there are more, or a value contains itself.
    """

def copy_plain(value: object, other: Callable[[object], object | None], names: frozenset[str], early: frozenset[str], max_values: int, max_depth: int, max_bits: int) -> tuple[object, bool] | None:
    """
    A copy of plain data: dicts with ASCII text as keys, lists, text, integers, True, False and None, of exactly these types; and whether a dict inside of the outermost one has one of these names with a text or a bool behind it, or that one itself one of `early`. `other` makes of anything else what stands for it, None if nothing does. None: it is not plain, or has too many values, or is too deep.
    """

class EntryMaker:
    """
    Makes the entries of objects; see `guideway.frontends.json_schema.fast_path`.
    """

    def __init__(self, classes: tuple[type, type, type, type], quote: object, spelling: str, new_key: Callable[[str], object] | None, keywords: frozenset[str]) -> None:
        """
        `classes`: Property, Concat, JsonEscaped, Literals. `new_key`: makes the expression of a key; None: the escaped text between two quotes. `keywords`: the names that have an effect.
        """

    def entries(self, properties: dict[str, object], required: set[str], types: dict[str | None, int], keys: dict[str, Any], plain: frozenset[str], number: Callable[[object, tuple[object, str, str]], int | None], place: object) -> list[Any] | None:
        """
        The entries of the properties that have a value. None: `number` returned None, or a required property has no value.

        Args:
            properties: Schemas by key.
            required: The required keys.
            types: Node numbers of schemas whose only keyword is `type`, by type; None: of schemas without keywords.
            keys: The expressions of keys. New ones are added.
            plain: Names that need no check for misspelt keywords.
            number: Returns the node number of any other schema at its place; -1 if it has no value, None if it is unknown.
            place: The place of the object.
        """
