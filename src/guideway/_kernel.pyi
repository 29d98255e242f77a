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
    Limit the total work of later calls of this thread to this number of units of work (about 10 ns each). None removes the limit.

    A call that reaches the limit raises `WorkDeferred` and changes no matcher. It can be repeated.

    Returns:
        The units that were left of the previous limit, or None if there was none.
    """

def begin_round() -> None:
    """
    Begin a round of a generation loop in this thread.

    Until `end_round`, calls of other threads that are background work wait before they use a store, 5 ms at most.
    """

def end_round() -> None:
    """End the round of this thread, if there is one."""

def work_in_background() -> None:
    """
    Treat all later calls of this thread as background work, like the compilation of constraints.
    """

class KernelVocabulary:
    """
    The tokens of a model as bytes. `memo_bytes`: the size of cached masks above which the least recently used ones are removed; `store_bytes`: the size of expressions above which a new store is begun.
    """

    def __init__(self, token_bytes: Sequence[bytes], eos_ids: Sequence[int], special_ids: Sequence[int], *, memo_bytes: int = 268435456, store_bytes: int = 536870912, max_states: int = 4000000) -> None: ...

    @staticmethod
    def tuned(token_bytes: Sequence[bytes], eos_ids: Sequence[int], special_ids: Sequence[int], tuning: dict[str, int], *, memo_bytes: int = 268435456, store_bytes: int = 536870912) -> KernelVocabulary:
        """
        A vocabulary for tests and benchmarks. `tuning` sets switches and thresholds of kernel/base/tuning.h by name; they do not change any mask.
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
        """A vocabulary from the result of `flatten`."""

    def save(self) -> bytes:
        """
        The parts that take long to build, for `load` on machines with the same byte order.
        """

    @staticmethod
    def load(block: bytes, eos_ids: Sequence[int], special_ids: Sequence[int], file: numpy.typing.NDArray[numpy.uint8], *, max_states: int = 4000000, max_work: int = 400000000) -> KernelVocabulary:
        """
        As `of_block`, but with the tables that take long to build from `file`, a result of `save` of an equal vocabulary. The vocabulary keeps the array, which must not change. Raises ValueError if the file belongs to other tokens or is malformed.
        """

    def open_ends(self, text: bytes) -> list[int]:
        """The positions p where text[p:] is a proper prefix of some token."""

    @property
    def size(self) -> int:
        """The number of token ids."""

    @property
    def words(self) -> int:
        """The number of 32-bit words of a mask row."""

def flatten(tokens: tuple[bytes, ...]) -> bytes:
    """
    The tokens as one block of bytes. Different sequences of tokens have different blocks.
    """

def unflatten(block: bytes) -> tuple[bytes, ...]:
    """The tokens from which `flatten` made a block."""

def checksum(data: bytes | bytearray | memoryview, seed: int) -> int:
    """A 64-bit checksum that detects damaged data. Not cryptographic."""

class Automaton:
    """
    A constraint compiled for a vocabulary. Immutable; threads can share it.
    """

    @staticmethod
    def compile(vocabulary: KernelVocabulary, program: bytes) -> Automaton:
        """Compile a program (`guideway.grammar.program`), little-endian words."""

    @staticmethod
    def is_empty(vocabulary: KernelVocabulary, program: bytes) -> bool:
        """Whether no text fits a program. Cheaper than `compile`."""

    def matcher(self) -> Matcher:
        """A matcher at the start of the text."""

    def warm_up(self, work: int) -> None:
        """
        Precompute results that masks need. work: the maximum number of units of work; 100 units take about a microsecond.
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
        Set bit t % 32 of word t // 32 for each legal token t, and clear all other bits. row: ceil(V / 32) uint32, writable.
        """

    def fill_mask_within(self, row: numpy.typing.NDArray[numpy.uint32], tokens_left: int) -> bool:
        """
        As `fill_mask`, but allow only tokens after which `tokens_left - 1` more tokens, end token included, can complete the text. Return False if there are none.
        """

    def fill_masks_within(self, row: numpy.typing.NDArray[numpy.uint32], whole: numpy.typing.NDArray[numpy.uint32], tokens_left: int) -> Fit:
        """
        As `fill_mask_within`. If the result is Fit.SOME, the budget removed tokens, and `whole` is filled as by `fill_mask`; otherwise the content of `whole` is unspecified.
        """

    def fill_draft_masks(self, token_ids: Sequence[int], parents: Sequence[int], rows: numpy.typing.NDArray[numpy.uint32]) -> None:
        """
        Fill row i with the mask after draft token i. Draft token i follows draft token parents[i], which is an earlier one, or the tokens taken so far (-1). Rows after illegal tokens have no bits. The matcher does not change.
        """

    def advance(self, token_id: int) -> None:
        """
        Take a token. If RejectedTokenError or InvalidTokenError is raised, the matcher has not changed.
        """

    def advance_and_fill(self, token_id: int, row: numpy.typing.NDArray[numpy.uint32]) -> None:
        """
        Call `advance`, then `fill_mask`. If an error is raised, the matcher has not changed.
        """

    def mask_digest(self) -> int:
        """
        A 128-bit digest of what `fill_mask` would write. Equal masks have equal digests in all processes, on all machines with the same byte order. A cache of masks on a device can use it as its key.
        """

    def rollback(self, count: int) -> None:
        """Undo the last `count` tokens. Raises ValueError if there are fewer."""

    def fork(self) -> Matcher:
        """An independent copy."""

    def validate(self, tokens: Sequence[int]) -> int:
        """
        The length of the longest prefix of the tokens that the matcher could take. The matcher does not change.
        """

    def forced_bytes(self) -> bytes:
        """
        The bytes with which every continuation of the text begins, up to 4,096 bytes. A special token counts as its name. They end where one of several special tokens could follow. None inside a quotation.
        """

    def forced_tokens(self) -> list[int]:
        """
        Tokens that spell the forced bytes, each the longest possible. Stops where a legal token could extend beyond the forced bytes.
        """

    def min_tokens_to_complete(self) -> int:
        """
        The smallest number of tokens that spell the shortest completion, end token included. Raises UnsatisfiableError if no tokens of the vocabulary spell it.
        """

    def completion(self) -> bytes:
        """A shortest text that completes the text so far."""

    def __repr__(self) -> str: ...

    @property
    def quotation(self) -> str | None:
        """
        "begins" before the first character of a verbatim string, "inside" after it, None outside of verbatim strings.
        """

    @property
    def is_accepting(self) -> bool:
        """Whether the text may end here."""

    @property
    def is_finished(self) -> bool:
        """Whether the matcher has taken an end token."""

    @property
    def position(self) -> int:
        """The number of tokens taken."""

    @property
    def words(self) -> int:
        """The number of 32-bit words of a mask row."""

def fill_masks(matchers: Sequence[Matcher | None], rows: numpy.typing.NDArray[numpy.uint32], threads: int = 1) -> None:
    """
    Fill row i of `rows` ([n, ceil(V / 32)] uint32) with the mask of matcher i, or set all its bits if the matcher is None. `threads` threads, at most 64, share the rows; this is faster from about a thousand rows. Releases the GIL.
    """

def advance_and_fill(matchers: Sequence[Matcher | None], token_ids: Sequence[int], rows: numpy.typing.NDArray[numpy.uint32], threads: int = 1) -> None:
    """
    Advance matcher i by token i and fill row i with its mask. If this raises, no matcher has changed. An error of a token, such as RejectedTokenError, names the row. Where the matcher is None, the token is ignored.
    """

def only_token(row: numpy.typing.NDArray[numpy.uint32]) -> int | None:
    """
    The only token that a row allows, or None if it allows none or several.
    """

def mask_logits(source: numpy.typing.NDArray[numpy.float32], target: numpy.typing.NDArray[numpy.float32], rows: numpy.typing.NDArray[numpy.uint32], held: Sequence[bool]) -> list[int]:
    """
    Copy `source` to `target` ([n, width] float32). In rows that are `held`, write -inf for each token that the mask ([n, words] uint32) forbids or does not cover. `target` is `source` or does not overlap it; the logits of a row are contiguous. Returns the held rows in which no legal token has a logit above -inf. Releases the GIL.
    """

class LoopClock:
    """
    Measures the calls of a logits processor by an engine, which do not overlap.
    """

    def __init__(self) -> None: ...

    def enter(self) -> float | None:
        """
        Begin a call. Returns the seconds since the last call ended, 0 for the first call, or None if another call has not ended.
        """

    def leave(self) -> None:
        """End a call. Required after each `enter` that returned a number."""

    def take(self) -> tuple[int, float, float, float]:
        """
        Read and reset the counters: the number of calls of `LoopRows.run_on` that masked logits, and the seconds spent between the end of a call of the clock and `run_on`, computing masks, and applying masks to logits.
        """

class LoopRows:
    """
    The rows of an engine's generation loop. Each step adds one token to each row.
    """

    def __init__(self, rows: Sequence[tuple[Matcher | None, int, int, int]]) -> None:
        """
        rows: for each row, its matcher (None: unconstrained), its number of tokens, how many of these the matcher has taken, and the maximum number of tokens (0: unlimited).
        """

    def grow(self, tokens: Sequence[int]) -> None:
        """
        Append token i to row i. The next `run` advances the matchers; a matcher takes its token only if the token is legal.
        """

    def know(self, ids: numpy.typing.NDArray[numpy.int64]) -> None:
        """
        Set the token ids that the engine has in the rows now, including the prompts. `grow_to` and `run_on` compare with them.
        """

    def grow_to(self, ids: Any) -> bool:
        """
        If all columns of `ids` but the last equal the known tokens, call `grow` with the last column and return True. Otherwise change nothing and return False. ids: int64 [rows, tokens] on the CPU.
        """

    @property
    def known(self) -> numpy.typing.NDArray[numpy.int64]:
        """
        A copy of the known tokens, [rows, tokens]. [rows, 0] if none are known.
        """

    @property
    def width(self) -> int:
        """The number of known tokens of each row."""

    def run(self, masks: numpy.typing.NDArray[numpy.uint32]) -> None:
        """
        Advance the matchers by the appended tokens and fill the masks. A mask allows the legal tokens that fit the budget of the row, or all legal tokens if none fits; if the row is not held, it has all bits set. After an error, the object cannot be used again. Releases the GIL.
        """

    def run_on(self, ids: Any, source: Any, target: Any, clock: LoopClock) -> list[int] | None:
        """
        Call `grow_to`, `run` and `mask_logits` in turn, as one call of the clock. Returns the result of `mask_logits`. Returns None and changes no row if the arguments are not NumPy arrays or PyTorch tensors on a CPU (`ids` int64, `source` and `target` float32), if `grow_to` returns False, or if another call of the clock has not ended.
        """

    def begin(self, masks: numpy.typing.NDArray[numpy.uint32]) -> None:
        """
        Call `run` on another thread. Do not access the masks and matchers before `wait`.
        """

    def wait(self) -> None:
        """Wait for the thread of `begin`. Raises the errors of `run`."""

    @property
    def seconds(self) -> float:
        """The seconds that the other thread worked."""

    @property
    def held(self) -> list[bool]:
        """
        For each row, whether it is held: its matcher has taken all of its tokens, or is finished.
        """

    @property
    def lengths(self) -> list[tuple[int, int]]:
        """
        For each row, its number of tokens, and how many of them the matcher has taken.
        """

class Sampling:
    """
    The stages of `guideway.sampling.Sampler` in their usual order, for float32 logits on the CPU.
    """

    def __init__(self, *, temperature: float, top_k: int, top_p: float, min_p: float, tail_free: float, typical_p: float, top_a: float, top_n_sigma: float, xtc_threshold: float, repetition_penalty: float, presence_penalty: float, frequency_penalty: float, bias_ids: Sequence[int], biases: Sequence[float]) -> None: ...

    def draw(self, logits: numpy.typing.NDArray[numpy.float32], mask: numpy.typing.NDArray[numpy.uint32] | None, number: float = 0.0, exclude_top: bool = False, seen: numpy.typing.NDArray[numpy.uint32] | None = None, counts: numpy.typing.NDArray[numpy.uint32] | None = None) -> int | None:
        """
        Draw the token that `number`, in [0, 1), selects. Returns None if no token can be drawn, or if a logit is NaN or +inf. seen: the distinct earlier tokens, with their `counts`. exclude_top: whether XTC is applied. Releases the GIL for more than 65,536 logits.
        """

    def draw_with_gap(self, logits: numpy.typing.NDArray[numpy.float32], mask: numpy.typing.NDArray[numpy.uint32] | None, number: float, exclude_top: bool, seen: numpy.typing.NDArray[numpy.uint32] | None, counts: numpy.typing.NDArray[numpy.uint32] | None) -> tuple[int, float] | None:
        """
        As `draw`. Also returns by how much the difference of two logits must change before another token is drawn, as if the set of tokens that the cuts keep did not change.
        """

def shares(logits: numpy.typing.NDArray[numpy.float32], mask: numpy.typing.NDArray[numpy.uint32] | None, token_id: int) -> tuple[float, float, float]:
    """
    The log-probability of a token without the mask, the same with the mask, and the total probability of the tokens that the mask forbids.
    """

class ProgramWriter:
    """Writes grammars as programs; see `guideway.grammar.program`."""

    def __init__(self, nodes: tuple[type, ...], expressions: tuple[type, ...]) -> None:
        """
        nodes: the classes of nodes and of their parts. expressions: the classes of expressions. Each in the order of their numbers in a program.
        """

    def write(self, nodes: Sequence[object], root: int, first: tuple[object, ...]) -> bytes:
        """
        Encode a grammar as a program: little-endian words. nodes: a list. first: expressions to write before all others.
        """

    def share(self, expression: object) -> None:
        """Write this expression as one block of words from now on."""

def nests_deeper(value: object, depth: int) -> bool:
    """
    Whether dicts, lists and tuples of the value nest deeper than `depth`. True for cyclic values.
    """

def count_values(value: object, most: int) -> int:
    """
    Count the values in dicts, lists and tuples. Shared values count at each place. Returns `most` + 1 if there are more, or if a value contains itself.
    """

def copy_plain(value: object, other: Callable[[object], object | None], names: frozenset[str], early: frozenset[str], max_values: int, max_depth: int, max_bits: int) -> tuple[object, bool] | None:
    """
    Copy plain data: dicts with ASCII strings as keys, lists, strings, integers, True, False and None, of exactly these types. Returns the copy, and whether a nested dict has one of `names`, or the outermost dict one of `early`, with a string or a bool as value. `other` converts other values and returns None for those that it cannot convert. Returns None if the data are not plain, have too many values, or are too deep.
    """

class NodeMaker:
    """
    Makes nodes in one style; see `guideway.frontends.json_schema.fast_path`.
    """

    def __init__(self, classes: tuple[type, ...], keywords: frozenset[str], keywords_of: dict[str, frozenset[str]], quote: object, spelling: str, new_key: Callable[[str], object] | None, brackets: object, braces: object, any_key: object, ordered: bool, closed: bool, max_nodes: int, max_count: int, max_types: int) -> None:
        """
        classes: Object, Property, Concat, JsonEscaped, Complement, Literals, Array and Leaf. keywords: the names of the keywords that have an effect. keywords_of: by type, the names of the keywords that the fast path handles. quote: the expression of a quotation mark. spelling: the spelling of keys. new_key: returns the expression of a key. If it is None, keys are escaped and quoted with `spelling` and `quote`. brackets, braces: the punctuation of arrays and of objects. any_key: the expression of all keys. ordered: whether entries have the order of the schema. closed: whether objects with `properties`, but without `additionalProperties`, have no other keys. max_nodes: the maximum number of nodes. max_count: the maximum of `minProperties` and similar keywords. max_types: the number of types of JSON values, where true and false are two.
        """

class DocumentNodes:
    """Numbers the schemas of one document, and makes the nodes of most."""

    def __init__(self, common: Any, plain: frozenset[str], dialect: object, scalars: dict[str, Any], nodes: list[Any], places: list[Any], numbers: dict[int, int], todo: list[Any], unusual: list[Any]) -> None:
        """
        All arguments except `common`, the `SharedNodes`, belong to a `FastPath`. The lists and `numbers` are modified. plain: names that need no check for misspelt keywords. scalars: by type, the node of a schema whose only keyword is `type`; None: the type is no scalar.
        """

    def number_of(self, fast_path: Any, schema: dict[str, Any], place: Any) -> int:
        """
        Return the number of the node of a schema. -1 if its `$ref` leads to `false`, or cannot be resolved.
        """

    def own_number(self, fast_path: Any, schema: dict[str, Any], place: Any) -> int:
        """
        Return the number of the node of a schema that is not in `numbers`, and that is not only a reference. Schemas without keywords share a node, and schemas with only the same `type`. A node that is not complete yet is added to the worklist.
        """

    def object(self, fast_path: Any, schema: dict[str, Any], place: Any, patterns: object) -> Any:
        """
        Make the node of the objects that a schema allows. Returns None if the schema needs the general path. patterns: the result of `FastPath._patterns`; None without `patternProperties`.
        """

    def array(self, fast_path: Any, schema: dict[str, Any], place: Any) -> Any:
        """
        Make the node of the arrays that a schema allows. Returns None if the schema needs the general path.
        """

    def string(self, schema: dict[str, Any]) -> Any:
        """
        Make the node of the strings that a schema allows. Returns None if the schema needs the general path, which raises its errors.
        """

    def complete(self, fast_path: Any) -> tuple[int, Any, Any] | None:
        """
        Complete nodes of the worklist, from its end: objects without `patternProperties`, arrays, strings, and lists of strings. Returns the first entry that it cannot complete, which is removed from the worklist. None: the worklist is empty.
        """
