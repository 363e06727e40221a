"""The location of a history: a file or a PostgreSQL URL."""

import os
import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

from platformdirs import user_data_path

from witan.errors import HistoryError, InvalidParameter

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")

_MISTAKEN_URL = re.compile(r"(?P<scheme>sqlite3?|postgres(ql)?|file):|(?P<key>[a-z_]{4,20})\s*=")
"""Pattern of other programs' URLs, and of libpq keywords."""

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
        The folder of relative paths; by default the current one.

    Raises
    ------
    HistoryError
        If it is neither.
    InvalidParameter
        If it is neither text nor a path.
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
    location = redact_password(url).replace("postgresql:", f"{kind}:", 1)
    raise HistoryError(location, "is not a location for a history", _FORMS)


def _normalize(path: Path) -> Path:
    """Remove ``folder/..`` if the shorter path names the same file."""
    normalized_path = Path(os.path.normpath(path))
    try:
        return normalized_path if path.parent.samefile(normalized_path.parent) else path
    except (OSError, ValueError):  # one does not exist, or is not a valid name
        return path


def _require_path(location: str) -> str:
    """Refuse text that is meant for another program."""
    if not location.strip():
        raise HistoryError(
            "the history", "has an empty location", "give a file, or a postgresql:// URL"
        )
    if location.casefold() == ":memory:":
        problem = "would not outlive the process"
        raise HistoryError(location, problem, "give a file, or use no history")
    mistake = _MISTAKEN_URL.match(location.strip())
    if mistake is None:
        return location
    if mistake["scheme"] is not None:
        problem = "is neither a path nor a supported URL"
        place = f"{mistake['scheme']}:…"  # the rest may contain a password
        raise HistoryError(place, problem, _FORMS)
    if mistake["key"] in _KEYWORDS:
        problem = f"is given as keywords of a PostgreSQL connection ({mistake['key']}=…)"
        remedy = "write it as a URL, postgresql://user@host:5432/database"
        raise HistoryError("the history", problem, remedy)
    return location


def _path_of_url(path: str, base: Path) -> Path:
    """Return the relative path of ``sqlite:///path``; refuse one meant to be absolute."""
    _require_path(path)
    first, *absolute = Path(path).parts
    if absolute and first != "/" and not (base / first).exists() and Path("/", first).is_dir():
        problem = f"is relative, with three slashes, but the folder {first} does not exist"
        raise HistoryError(
            f"sqlite:///{path}", problem, f"write sqlite:////{path} for /{path}, or the bare path"
        )
    return Path(path)


def _expand_user(path: Path) -> Path:
    try:
        return path.expanduser()
    except RuntimeError as error:
        raise HistoryError(
            str(path), f"is not a valid location: {error}", "choose another one"
        ) from error
