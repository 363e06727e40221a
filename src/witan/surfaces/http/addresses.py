"""What stands in an address: names of sessions, whatever they hold, and known parameters."""

from collections.abc import Collection, Mapping
from typing import Any, get_args, get_origin
from urllib.parse import unquote

from fastapi import Request
from fastapi.dependencies.utils import get_flat_params
from fastapi.params import Query
from starlette.convertors import StringConvertor, register_url_convertor

from witan.errors import InvalidParameter, UnknownName

__all__ = ["known_parameters", "matched_path", "shown_path"]

SLASH = "\ud800"
"""Stands for a quoted slash while a path is matched; no path that is read has this character."""


class _Quoted(StringConvertor):
    """One segment of a path, which may have been sent with slashes in it, quoted."""

    def convert(self, value: str) -> str:
        """The segment as it was meant."""
        return value.replace(SLASH, "/")


register_url_convertor("quoted", _Quoted())


def matched_path(scope: Mapping[str, Any]) -> str:
    """The path of a request, in which a quoted slash is told apart from one that is none."""
    raw: bytes = scope.get("raw_path") or b""
    path: str = scope["path"]
    if b"%2f" not in raw.lower() or not path.startswith("/api/"):
        return path
    return "/".join(unquote(part).replace("/", SLASH) for part in raw.decode("latin-1").split("/"))


def shown_path(path: str) -> str:
    """A path that was matched, as it may be written."""
    return path.replace(SLASH, "%2F")


class _UnknownParameter(UnknownName):
    """A parameter of an address that means nothing there; all that do are named."""

    def __str__(self) -> str:
        known = ", ".join(self.known) or "none"
        return f"unknown parameter {self.name!r}{self.suggestion} (known here: {known})"


class _Repeated(InvalidParameter):
    """A parameter of an address that is given more than once; its value is how often."""

    def __str__(self) -> str:
        return f"{self.name} is given {self.value} times; give it once"


async def known_parameters(request: Request) -> None:
    """Refuse a parameter of the address that would change nothing, unsaid.

    Raises
    ------
    UnknownName
        If one means nothing there.
    InvalidParameter
        If one is given several times of which only the last would count.
    """
    if not request.query_params:
        return
    fields = get_flat_params(request.scope["route"].dependant)
    known = [field.alias for field in fields if isinstance(field.field_info, Query)]
    several = [field.alias for field in fields if _holds_many(field.field_info.annotation)]
    check_parameters(request, known, several)


def check_parameters(request: Request, known: Collection[str], several: Collection[str]) -> None:
    """Refuse parameters of the address that are unknown, or repeated without effect."""
    for name in request.query_params:
        if name not in known:
            raise _UnknownParameter("parameter", name, sorted(known))
        times = len(request.query_params.getlist(name))
        if times > 1 and name not in several:
            raise _Repeated(name, times, "one value")


def _holds_many(annotation: Any) -> bool:
    """Whether a parameter of this type may be given several times."""
    return any(get_origin(each) is list for each in (annotation, *get_args(annotation)))
