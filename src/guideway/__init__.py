"""Constrained text generation: the output of a language model always fits a schema, a pattern or a grammar.

A constraint is lowered to a grammar; a grammar and a vocabulary are compiled to an automaton; a matcher tracks one
sequence and computes token masks; an engine runs the model. The names below are the main public names; each is loaded
when it is first used, so that `import guideway` takes little time. Other public names are in these modules. All except
`guideway.pool` can be used after `import guideway`:

    guideway.errors        all exceptions
    guideway.types         the types that functions return, for annotations
    guideway.constraints   further constraints: `PythonType`, `SpecialToken`, `Substring`
    guideway.sampling      parameters of samplers: `Dry`, `Mirostat`
    guideway.search        `beam_search`, `smc`
    guideway.matcher       `fill_masks`, `advance_and_fill`, `forced_tokens`
    guideway.masks         masks on arrays of NumPy, PyTorch and MLX
    guideway.compiler      `acompile`
    guideway.dsl           functions that combine constraints
    guideway.remote        models served by an API; `guideway.remote(client, name)` returns one
    guideway.pool          several models under one memory budget: `ModelSpec`, `PooledSession`
    guideway.batch         requests in files, or in Ray Data, Spark, Dask and Daft; `guideway.batch(model, requests)`
                           yields results
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

__version__ = "0.1.0"

if TYPE_CHECKING:
    from guideway.batch.running import batch as batch
    from guideway.compiler import Automaton as Automaton, cache as cache, compile as compile
    from guideway.constraints import (
        Choice as Choice,
        Constraint as Constraint,
        Ebnf as Ebnf,
        Format as Format,
        Gbnf as Gbnf,
        JsonSchema as JsonSchema,
        Lark as Lark,
        Reasoning as Reasoning,
        Regex as Regex,
        Tag as Tag,
        Tags as Tags,
        Tool as Tool,
        ToolCalls as ToolCalls,
        Verbatim as Verbatim,
        from_wire as from_wire,
        to_wire as to_wire,
    )
    from guideway.errors import GuidewayError as GuidewayError, SchemaWarning as SchemaWarning
    from guideway.generation import (
        Chat as Chat,
        GenerationRequest as GenerationRequest,
        Model as Model,
        acomplete as acomplete,
        aextract as aextract,
        agenerate as agenerate,
        astream as astream,
        astream_values as astream_values,
        complete as complete,
        extract as extract,
        generate as generate,
        resume as resume,
        score as score,
        stream as stream,
        stream_values as stream_values,
    )
    from guideway.loading import load as load
    from guideway.matcher import Matcher as Matcher
    from guideway.pool import Pool as Pool
    from guideway.remote.model import plan as plan, remote as remote
    from guideway.sampling import Sampler as Sampler
    from guideway.tokenizers import Tokenizer as Tokenizer, Vocabulary as Vocabulary

_HOMES = {
    "compiler": "Automaton cache compile",
    "constraints": (
        "Choice Constraint Ebnf Format Gbnf JsonSchema Lark Reasoning Regex Tag Tags Tool ToolCalls Verbatim from_wire to_wire"
    ),
    "errors": "GuidewayError SchemaWarning",
    "generation": (
        "Chat GenerationRequest Model acomplete aextract agenerate astream astream_values "
        "complete extract generate resume score stream stream_values"
    ),
    "loading": "load",
    "pool": "Pool",
    "remote": "plan",
    "matcher": "Matcher",
    "sampling": "Sampler",
    "tokenizers": "Tokenizer Vocabulary",
}
"""The public names of each module.

The imports above are for type checkers only; at run time, only this table counts.
"""

_MODULES = (
    "batch",
    "compiler",
    "constraints",
    "dsl",
    "errors",
    "masks",
    "matcher",
    "remote",
    "sampling",
    "search",
    "types",
)
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names.split()}

__all__ = ["__version__", *_HOME_OF]  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> object:
    home = _HOME_OF.get(name)
    if home is None and name not in _MODULES:
        from guideway.arguments import short_repr

        raise AttributeError(
            f"module {__name__!r} has no attribute {short_repr(name)}; it has {', '.join(sorted(__all__))}"
        )
    module = importlib.import_module(f"{__name__}.{home or name}")
    value: object = module if home is None else getattr(module, name)
    globals()[name] = value  # the next access does not call this function
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, *_MODULES])
