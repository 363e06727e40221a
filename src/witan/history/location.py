"""The location of a history: a file or a PostgreSQL URL."""

import os
import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

from platformdirs import user_data_path

from witan.errors import HistoryError, InvalidParameter

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")

_MISTAKEN = re.compile(r"(?P<scheme>sqlite3?|postgres(ql)?|file):|(?P<key>[a-z_]{4,20})\s*=")
"""Beginnings of other programs' URLs, and of libpq keywords."""

_KEYWORDS = frozenset({"host", "hostaddr", "port", "dbname", "user", "password", "service"})

_FORMS = "write a path, sqlite:///path, or postgresql://user@host/database"


def default_location() -> Path:
    """Return ``…/witan/history.sqlite`` in this platform's folder for a user's data."""
    return user_data_path("witan", appauthor=False) / "history.sqlite"


def redact_password(url: str) -> str:
    """Remove passwords from a URL."""
    try:
        parts = urlsplit(url)
        user = "" if parts.username is None else f"{parts.username}@"
        port = "" if parts.port is None else f":{parts.port}"
        host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname or ""
    except ValueError:
        return "postgresql://…"
    query = "&".join(p for p in parts.query.split("&") if p and "pass" not in p.casefold())
    return f"postgresql://{user}{host}{port}{parts.path}" + (f"?{query}" if query else "")


def parse_location(url: str | Path, base: Path | None = None) -> Path | str:
    """Return a file's path, or the URL of a PostgreSQL database.

    ``sqlite:///history.sqlite`` is relative, ``sqlite:////srv/history.sqlite`` absolute.

    Parameters
    ----------
    base
        The folder of relative paths; None: the current one.

    Raises
    ------
    HistoryError
        If it is neither.
    InvalidParameter
        If it is neither a text nor a path.
    """
    if not isinstance(url, str | Path):
        raise InvalidParameter("history", url, "a path, a URL, or an open History")
    base = Path() if base is None else base
    if isinstance(url, Path):
        return _normalize(base / _expand_user(url))
    scheme = _SCHEME.match(url)
    if scheme is None:
        return _normalize(base / _expand_user(Path(_require_path(url))))
    kind, rest = scheme[1].casefold(), url[scheme.end() :]
    if kind in ("postgresql", "postgres"):
        return f"postgresql://{rest}"
    if kind == "sqlite" and rest.startswith("/") and len(rest) > 1:
        return _normalize(base / _expand_user(_path_of_url(unquote(rest[1:]), base)))
    where = redact_password(url).replace("postgresql:", f"{kind}:", 1)
    raise HistoryError(where, "is no place for a history", _FORMS)


def _normalize(path: Path) -> Path:
    """Remove ``folder/..`` where the shorter path names the same place."""
    straight = Path(os.path.normpath(path))
    try:
        return straight if path.parent.samefile(straight.parent) else path
    except (OSError, ValueError):  # one of them is not there, or no name
        return path


def _require_path(location: str) -> str:
    """Refuse text meant for another program."""
    if not location.strip():
        raise HistoryError("the history", "has no place", "name a file, or a postgresql:// URL")
    if location.casefold() == ":memory:":
        problem = "would be gone with the process"
        raise HistoryError(location, problem, "name a file, or do without a history")
    mistaken = _MISTAKEN.match(location.strip())
    if mistaken is None:
        return location
    if mistaken["scheme"] is not None:
        problem = "is neither a path nor a URL that is known here"
        where = f"{mistaken['scheme']}:…"  # what follows may hold a password
        raise HistoryError(where, problem, _FORMS)
    if mistaken["key"] in _KEYWORDS:
        problem = f"is given as the keywords of a PostgreSQL connection ({mistaken['key']}=…)"
        remedy = "write it as a URL, postgresql://user@host:5432/database"
        raise HistoryError("the history", problem, remedy)
    return location


def _path_of_url(path: str, base: Path) -> Path:
    """Return the relative path of ``sqlite:///path``; refuse one meant absolute."""
    _require_path(path)
    first, *further = Path(path).parts
    if further and first != "/" and not (base / first).exists() and Path("/", first).is_dir():
        problem = f"is relative, with three slashes, and there is no folder {first} to start from"
        raise HistoryError(
            f"sqlite:///{path}", problem, f"write sqlite:////{path} for /{path}, or the bare path"
        )
    return Path(path)


def _expand_user(path: Path) -> Path:
    try:
        return path.expanduser()
    except RuntimeError as error:
        raise HistoryError(str(path), f"is no place: {error}", "name another place") from error
