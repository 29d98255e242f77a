"""The playground: one HTML page without external resources, at `/`.

The page inserts the texts of models and schemas only as text nodes, so they are never read as HTML. Its
Content-Security-Policy allows only the script and the style of the page, by their digests, and requests only to this
server.
"""

from __future__ import annotations

import base64
import hashlib
import re
from importlib.resources import files

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from guideway.caching import cached
from guideway.server.state import ServerState

__all__ = ["playground"]


async def playground(state: ServerState, request: Request) -> Response:
    """`GET /`: answer with the page."""
    page, policy = _page()
    headers = {
        "Content-Security-Policy": policy,
        "X-Content-Type-Options": "nosniff",
        "X-Frame-Options": "DENY",
        "Referrer-Policy": "no-referrer",
        "Cache-Control": "no-cache",
    }
    return HTMLResponse(page, headers=headers)


@cached(1)
def _page() -> tuple[str, str]:
    """Return the HTML of the page and its Content-Security-Policy."""
    page = files("guideway.server").joinpath("playground.html").read_text("utf-8")
    script, style = (_digest(page, tag) for tag in ("script", "style"))
    policy = (
        f"default-src 'none'; script-src {script}; style-src {style}; connect-src 'self'; img-src data:;"
        " base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    return page, policy


def _digest(page: str, tag: str) -> str:
    (content,) = re.findall(rf"<{tag}>(.*?)</{tag}>", page, re.DOTALL)
    return f"'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"
