"""`guideway serve`: a server with an API that is compatible with OpenAI's. It needs `guideway[serve]`.

serving.py     `serve`: runs the application with uvicorn
app.py         `create_app`: the ASGI application and its routes
settings.py    `ServerSettings`: limits and keys
models.py      the models that a server offers
pooled.py      the models of a pool, and the endpoints that show and unload them
state.py       what the endpoints share: admission, keys, metrics
generating.py  the endpoints that generate
responses.py   the endpoints of the Responses API, and stored responses
compaction.py  `/v1/responses/compact`: replaces a conversation by a summary
constraint_workers.py  processes that translate large constraints
constraint_worker.py   the program of these processes
response_events.py the events of streams of the Responses API
files.py       `/v1/files`
batches.py     `/v1/batches`
inspection.py  `/guideway/check`, `score`, `plan`
session_routes.py `/guideway/sessions`
echo.py        optional parts of answers: the prompt, and a report about the generation
running.py     `ServedRequest`: a request in the generation loop of its model
chunks.py      the chunks of streams
reply_stream.py  reasoning, text and calls of a reply while it is generated
ids.py         random identifiers of requests
sse.py         server-sent events, and detection of clients that disconnect
bodies.py      reads bodies within limits
gateway.py     requests for models that another endpoint serves
explaining.py  what a constraint enforces, or what is wrong with it
stepping.py    `/guideway/tokens`, `alternatives`: generation with a report of each token
playground.py  the page at `/`
errors.py      errors as responses
metrics.py     metrics in the text format of Prometheus
"""

from __future__ import annotations

from guideway.server.app import create_app
from guideway.server.gateway import JoinedModels, UpstreamModels, upstream_models
from guideway.server.models import FixedModels, ModelCard, ServedModels, load_served, parse_models
from guideway.server.pooled import PooledModels
from guideway.server.serving import serve
from guideway.server.settings import ServerSettings, read_keys

__all__ = [
    "FixedModels",
    "JoinedModels",
    "ModelCard",
    "PooledModels",
    "ServedModels",
    "ServerSettings",
    "UpstreamModels",
    "create_app",
    "load_served",
    "parse_models",
    "read_keys",
    "serve",
    "upstream_models",
]
