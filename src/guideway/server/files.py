"""`/v1/files`: the input and output files of batches, stored in a temporary directory."""

from __future__ import annotations

import shutil
import tempfile
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from starlette.datastructures import UploadFile
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response

from guideway import background
from guideway.arguments import short_repr
from guideway.errors import InvalidRequestError
from guideway.server.errors import HttpError
from guideway.server.state import ServerState

__all__ = ["FileStore", "StoredFile", "content", "create", "delete", "list_files", "retrieve"]

MAX_FILES = 10_000
"""The maximum number of stored files."""


@dataclass(frozen=True)
class StoredFile:
    """A stored file.

    Attributes:
        id: The identifier.
        key: The name of the API key that the file belongs to.
        path: The path of the file on disk.
        name: The name that the client gave.
        purpose: "batch" or "batch_output".
        size: The number of bytes.
        created: The time at which the file was stored, in seconds since 1970.
    """

    id: str
    key: str
    path: Path
    name: str
    purpose: str
    size: int
    created: int = field(default_factory=lambda: int(time.time()))

    def shown(self) -> dict[str, Any]:
        """Return the file object of OpenAI's API."""
        return {
            "id": self.id,
            "object": "file",
            "bytes": self.size,
            "created_at": self.created,
            "filename": self.name,
            "purpose": self.purpose,
            "status": "processed",
        }


class FileStore:
    """The files of a server. They are removed when the server ends. A client sees only those of its API key.

    Args:
        max_bytes: The maximum size of all files together.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._folder: Path | None = None
        self._files: dict[str, StoredFile] = {}

    def new_path(self) -> Path:
        """Return a new path in the directory of the store. No file is created there."""
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="guideway-files-"))
        return self._folder / uuid.uuid4().hex

    def add(self, key: str, path: Path, name: str, purpose: str) -> StoredFile:
        """Add a file that was written to a path of `new_path`.

        Raises:
            HttpError: The store would have too many files or too many bytes (429). The file is removed.
        """
        size = path.stat().st_size
        if len(self._files) >= MAX_FILES or size + sum(one.size for one in self._files.values()) > self._max_bytes:
            path.unlink()
            raise HttpError(
                429, "the server stores no further file; delete some", kind="rate_limit_error", code="storage_full"
            )
        found = StoredFile(f"file-{path.name}", key, path, name, purpose, size)
        self._files[found.id] = found
        return found

    def get(self, key: str, name: object, param: str = "file_id") -> StoredFile:
        """Return a file by its id.

        Raises `HttpError` (404) if the key `key` has no such file. `param`: the request field that contains the id.
        """
        found = self._files.get(name) if isinstance(name, str) else None
        if found is None or found.key != key:
            raise HttpError(404, f"there is no file {short_repr(name)}", code="not_found", param=param)
        return found

    def of_key(self, key: str) -> list[StoredFile]:
        """Return the files of an API key, the newest first."""
        return [one for one in reversed(self._files.values()) if one.key == key]

    def remove(self, found: StoredFile) -> None:
        """Remove a file."""
        del self._files[found.id]
        found.path.unlink(missing_ok=True)

    def close(self) -> None:
        """Remove all files."""
        self._files.clear()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None


async def create(state: ServerState, store: FileStore, request: Request, key: str) -> Response:
    """`POST /v1/files`: a form with `file` and `purpose`."""
    length = request.headers.get("content-length", "")
    most = state.settings.max_file_bytes
    if not (length.isascii() and length.isdigit() and len(length) < 20) or int(length) > most + 65536:
        raise HttpError(413, f"a file may have {most} bytes; send the header 'Content-Length'", code="body_too_large")
    if not request.headers.get("content-type", "").startswith("multipart/form-data"):
        raise HttpError(415, "the content type must be multipart/form-data", code="unsupported_media_type")
    async with request.form(max_files=1, max_fields=8) as form:
        given, purpose = form.get("file"), form.get("purpose")
        for name in form:
            if name not in ("file", "purpose") and not name.startswith("expires_after"):
                raise InvalidRequestError(f"unknown parameter {short_repr(name)}", name[:80], "unknown_parameter")
        if not isinstance(given, UploadFile):
            raise InvalidRequestError("the form needs 'file'", "file", "missing_parameter")
        if purpose != "batch":
            raise InvalidRequestError(f"'purpose' must be batch, got {short_repr(purpose)}", "purpose", "invalid_value")
        path = store.new_path()
        try:
            await background.run(_copied, given.file, path)
        except BaseException:
            path.unlink(missing_ok=True)
            raise
        return JSONResponse(store.add(key, path, given.filename or "file.jsonl", "batch").shown())


def _copied(source: Any, path: Path) -> None:
    with path.open("wb") as file:
        shutil.copyfileobj(source, file)


async def list_files(state: ServerState, store: FileStore, request: Request, key: str) -> Response:
    """`GET /v1/files`."""
    return JSONResponse(page(request.query_params, [one.shown() for one in store.of_key(key)]))


async def retrieve(state: ServerState, store: FileStore, request: Request, key: str) -> Response:
    """`GET /v1/files/{id}`."""
    return JSONResponse(store.get(key, request.path_params["name"]).shown())


async def content(state: ServerState, store: FileStore, request: Request, key: str) -> Response:
    """`GET /v1/files/{id}/content`."""
    return FileResponse(store.get(key, request.path_params["name"]).path, media_type="application/octet-stream")


async def delete(state: ServerState, store: FileStore, request: Request, key: str) -> Response:
    """`DELETE /v1/files/{id}`."""
    found = store.get(key, request.path_params["name"])
    store.remove(found)
    return JSONResponse({"id": found.id, "object": "file", "deleted": True})


def page(query: Mapping[str, str], items: list[dict[str, Any]]) -> dict[str, Any]:
    """Return a page of a list as an object of OpenAI's API.

    Args:
        query: The query parameters. `limit` is the maximum number of items, 20 by default. The page begins after the
            item with the id `after`; without `after`, or if no item has this id, it begins at the first item.
        items: All items, each with an "id".

    Raises:
        InvalidRequestError: `limit` is not a number from 1 to 10000 in ASCII digits.
    """
    given = query.get("limit", "20")
    digits = given.lstrip("0")
    if not (given.isascii() and given.isdigit() and 1 <= len(digits) <= 5 and int(digits) <= 10_000):
        raise InvalidRequestError(f"'limit' must be a number from 1 to 10000, got {short_repr(given, 40)}", "limit")
    after = query.get("after")
    start = next((number + 1 for number, one in enumerate(items) if one["id"] == after), 0) if after else 0
    shown = items[start : start + int(digits)]
    return {
        "object": "list",
        "data": shown,
        "has_more": start + len(shown) < len(items),
        "first_id": shown[0]["id"] if shown else None,
        "last_id": shown[-1]["id"] if shown else None,
    }
