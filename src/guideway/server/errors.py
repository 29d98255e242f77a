"""Errors as OpenAI's API sends them: a status, and an object with message, type, param and code."""

from __future__ import annotations

import re
from typing import Any

from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response

from guideway.batch.answers import error_object
from guideway.batch.requests import BatchRequest
from guideway.errors import (
    BudgetTooSmallError,
    ChatTemplateError,
    ConstraintError,
    ContextOverflowError,
    EmptySequenceError,
    GuidewayError,
    InvalidRequestError,
    InvalidTokenError,
)

__all__ = ["HttpError", "error_response", "status_and_object", "stopped"]

_STATUS = {"model_not_found": 404, "response_not_found": 404, "not_found": 404}
"""The HTTP status of an `InvalidRequestError` by its code. All other codes have 400."""


class HttpError(GuidewayError):
    """An error that the server answers with an HTTP status and an error object of OpenAI's API.

    Args:
        status: The HTTP status.
        message: What is wrong, and how to repair it.
        kind: The "type" of the error object.
        code: The "code" of the error object.
        param: The "param" of the error object: the path of the wrong field in the body; None: no single field is wrong.
        headers: Additional headers of the response.
    """

    def __init__(
        self,
        status: int,
        message: str,
        *,
        kind: str = "invalid_request_error",
        code: str | None = None,
        param: str | None = None,
        headers: dict[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status, self.kind, self.code, self.param = status, kind, code, param
        self.headers = headers or {}


def stopped() -> HttpError:
    """Return the error (503) for a request that has not ended when the drain time of the server is over."""
    message = "the server stopped before the request was complete"
    return HttpError(503, message, kind="server_error", code="shutting_down")


def status_and_object(error: BaseException, request: BatchRequest | None = None) -> tuple[int, dict[str, Any]]:
    """Return the HTTP status and the error object of an error.

    Args:
        error: The error.
        request: The request, from which the "param" of an error with status 400 is found if the error does not contain
            it; None: the request has not been read.
    """
    if isinstance(error, HttpError):
        return error.status, {"message": str(error), "type": error.kind, "param": error.param, "code": error.code}
    if not isinstance(error, Exception):
        return 500, {"message": "the server failed", "type": "server_error", "param": None, "code": "internal_error"}
    status, found = error_object(error)
    if isinstance(error, InvalidRequestError):
        status = _STATUS.get(error.code, 400)
    elif status == 400 and request is not None:
        found["param"] = _param(error, found["message"], request)
    elif status == 500 and not isinstance(error, GuidewayError):
        found["message"] = f"the server failed: {type(error).__name__}"  # the text of an unknown error may have secrets
    return status, found


def _param(error: Exception, message: str, request: BatchRequest) -> str:
    """Return the path of the request field that probably caused an error; "" if the error does not show it."""
    details = request.details
    if isinstance(error, ConstraintError):
        path = str(details.get("constraint_param", "tools" if "tools" in details else "response_format"))
        place = error.place or ""
        return path + place if place.startswith("/") else path
    if isinstance(error, BudgetTooSmallError):
        return str(details.get("limit_param", "max_tokens"))
    if isinstance(error, (ContextOverflowError, ChatTemplateError, EmptySequenceError)):
        return str(details.get("prompt_param", "messages"))
    if isinstance(error, InvalidTokenError):
        named = message.partition(" ")[0]
        return named if named in request.options else str(details.get("prompt_param", "messages"))
    words = re.findall(r"\w+", message)
    return next((word for word in words if word in request.options or word == "stop"), "")


def error_response(error: BaseException, request: BatchRequest | None = None) -> Response:
    """Return the HTTP response for an error. `request`: as in `status_and_object`."""
    if isinstance(error, HTTPException):  # raised by Starlette, for example for a malformed form
        error = HttpError(error.status_code, str(error.detail))
    status, found = status_and_object(error, request)
    headers = error.headers if isinstance(error, HttpError) else {}
    shown = {name: _encodable(value) if isinstance(value, str) else value for name, value in found.items()}
    return JSONResponse({"error": shown}, status, headers)


def _encodable(text: str) -> str:
    """Return a text with an escape such as "\\ud800" in place of each lone surrogate, which UTF-8 cannot encode."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
