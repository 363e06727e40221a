"""Addresses of requests: quoted names of sessions, and known parameters."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, get_args, get_origin
from urllib.parse import unquote

from fastapi import Request
from fastapi.dependencies.utils import get_flat_params
from fastapi.params import Query
from starlette.convertors import StringConvertor, register_url_convertor

from witan.errors import InvalidParameter, UnknownName

SLASH = "\ud800"
"""Placeholder for a quoted slash in a matched path."""


class _QuotedSegment(StringConvertor):
    """A segment of a path, which may contain quoted slashes."""

    def convert(self, value: str) -> str:
        return value.replace(SLASH, "/")


register_url_convertor("quoted", _QuotedSegment())


def matched_path(scope: Mapping[str, Any]) -> str:
    """Return the path of a request with quoted slashes marked."""
    raw: bytes = scope.get("raw_path") or b""
    path: str = scope["path"]
    if b"%2f" not in raw.lower() or not path.startswith("/api/"):
        return path
    return "/".join(unquote(part).replace("/", SLASH) for part in raw.decode("latin-1").split("/"))


def shown_path(path: str) -> str:
    """Write a matched path as clients may send it."""
    return path.replace(SLASH, "%2F")


class _UnknownParameter(UnknownName):
    """An unknown parameter of an address; its message lists the known ones."""

    def __str__(self) -> str:
        known = ", ".join(self.known_names) or "none"
        return f"unknown parameter {self.name!r}{self.suggestion} (known here: {known})"


class _RepeatedParameter(InvalidParameter):
    def __str__(self) -> str:
        return f"{self.name} is given {self.value} times; give it once"


async def known_parameters(request: Request) -> None:
    """Refuse parameters of the address that would have no effect."""
    if not request.query_params:
        return
    fields = get_flat_params(request.scope["route"].dependant)
    parameter_names = [field.alias for field in fields if isinstance(field.field_info, Query)]
    repeatable_names = [field.alias for field in fields if _holds_many(field.field_info.annotation)]
    check_parameters(request, parameter_names, repeatable_names)


def check_parameters(request: Request, names: Collection[str], several: Collection[str]) -> None:
    """Refuse parameters of the address that are unknown, or repeated without effect."""
    for name in request.query_params:
        if name not in names:
            raise _UnknownParameter("parameter", name, sorted(names))
        times = len(request.query_params.getlist(name))
        if times > 1 and name not in several:
            raise _RepeatedParameter(name, times, "one value")


def _holds_many(annotation: Any) -> bool:
    return any(get_origin(each) in (list, Sequence) for each in (annotation, *get_args(annotation)))
