"""The parts of the OpenAPI document about bodies that FastAPI does not read itself."""

from __future__ import annotations

from typing import Any

import msgspec
from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from .bodies import ARROW_STREAM, BODIES, JSON, JSON_LINES
from .problems import PROBLEM_TYPE

_REF = "#/components/schemas/{name}"


def described(
    *, reply: type[msgspec.Struct], request: type[msgspec.Struct] | None = None
) -> dict[str, Any]:
    """A route's arguments (FastAPI's own, hence Any) that describe its bodies."""
    described_by: dict[str, Any] = {
        "responses": {
            200: {"description": "Done", "content": {JSON: _schema(reply)}},
        },
        "response_model": None,
    }
    if request is not None:
        described_by["openapi_extra"] = _request_body({JSON: _schema(request)})
    return described_by


def described_sql(*, reply: type[msgspec.Struct], request: type[msgspec.Struct]) -> dict[str, Any]:
    """As `described`, for a reply whose form Accept chooses."""
    found = described(reply=reply, request=request)
    content = found["responses"][200]["content"]
    lines = 'one JSON object a row; `["error", problem]` ends what fails under way'
    content[JSON_LINES] = {"schema": {"type": "string", "description": lines}}
    content[ARROW_STREAM] = {"schema": {"type": "string", "format": "binary"}}
    return found


def described_load(*, reply: type[msgspec.Struct]) -> dict[str, Any]:
    """As `described`, for a body of rows."""
    rows = {
        ARROW_STREAM: {"schema": {"type": "string", "format": "binary"}},
        JSON_LINES: {"schema": {"type": "string", "description": "one JSON object a line"}},
    }
    return {**described(reply=reply), "openapi_extra": _request_body(rows)}


def _request_body(content: dict[str, Any]) -> dict[str, Any]:
    return {"requestBody": {"required": True, "content": content}}


def _schema(body: type[msgspec.Struct]) -> dict[str, Any]:
    return _schema_of(body.__name__)


def _schema_of(name: str) -> dict[str, Any]:
    return {"schema": {"$ref": _REF.format(name=name)}}


def install_openapi(app: FastAPI) -> None:
    """Gives the document the schemas that `described` refers to."""

    def build() -> dict[str, Any]:
        if app.openapi_schema is None:
            document = get_openapi(title=app.title, version=app.version, routes=app.routes)
            _describe_refusals(document["paths"])
            _, schemas = msgspec.json.schema_components(BODIES, ref_template=_REF)
            document.setdefault("components", {}).setdefault("schemas", {}).update(schemas)
            app.openapi_schema = document
        return app.openapi_schema

    app.openapi = build  # type: ignore[method-assign]  # as FastAPI's documentation says to


def _describe_refusals(paths: dict[str, dict[str, Any]]) -> None:
    """Every refusal is a problem document, wrong parameters too: what FastAPI says of them is not
    what we answer."""
    refused = {"description": "Refused", "content": {PROBLEM_TYPE: _schema_of("Problem")}}
    for operations in paths.values():
        for operation in operations.values():
            operation["responses"].pop("422", None)
            operation["responses"]["default"] = refused
