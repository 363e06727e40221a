"""Sessions by less than their whole name: a beginning, or that it is the latest."""

from collections.abc import Mapping, Sequence

from witan.errors import HistoryConflict
from witan.history.database import Database
from witan.history.reading import find, require, require_name
from witan.history.searching import Search
from witan.history.sessions import LAST
from witan.history.writing import storable

__all__ = ["named", "short_names"]

SHORTEST = 15
"""A name is not made shorter: the date and time that council sessions begin with stay whole."""

SHOWN = 4
"""How many of those that share a beginning are named."""


def named(database: Database, name: str) -> str:
    """The whole name of a session, from it or an unambiguous beginning of it, or ``last``.

    Raises
    ------
    UnknownName
        If no session begins so.
    HistoryConflict
        If several do, or there is no session to be the last.
    """
    require_name(name)
    with database.snapshot():
        if not storable(name):
            require(database, name)
        if database.rows("SELECT 1 FROM sessions WHERE session = :name", {"name": name}):
            return name
        if name == LAST:
            return _last(database)
        sql = (
            "SELECT session FROM sessions WHERE substr(session, 1, :length) = :name"
            " ORDER BY at_us DESC, session"
        )
        found = database.rows(sql, {"length": len(name), "name": name}) if name else []
        if not found:
            require(database, name)
    if len(found) > 1:
        shown = ", ".join(session for (session,) in found[:SHOWN])
        more = ", …" if len(found) > SHOWN else ""
        problem = f"{name} begins the names of {len(found):,} sessions: {shown}{more}"
        raise HistoryConflict(database.where, problem, "give more of it")
    [(session,)] = found
    return str(session)


def _last(database: Database) -> str:
    """The first session of the list, so `last` and the list cannot disagree."""
    for found in find(database, Search(limit=1)):
        return found.session
    problem = "there is no session yet"
    remedy = "ask a question, import a file, or try witan demo"
    raise HistoryConflict(database.where, problem, remedy)


def short_names(database: Database, sessions: Sequence[str]) -> Mapping[str, str]:
    """Each session to the shortest beginning of its name that no other shares."""
    stems = sorted({session[:SHORTEST] for session in sessions})
    if not stems:
        return {}
    given = {f"s{k}": stem for k, stem in enumerate(stems)}
    among = ", ".join(f":{name}" for name in given)
    sql = f"SELECT session FROM sessions WHERE substr(session, 1, {SHORTEST}) IN ({among})"  # noqa: S608
    alike: dict[str, list[str]] = {}
    for (session,) in database.rows(sql, given):
        alike.setdefault(session[:SHORTEST], []).append(session)
    return {session: _short(session, alike.get(session[:SHORTEST], [])) for session in sessions}


def _short(session: str, alike: Sequence[str]) -> str:
    others = [other for other in alike if other != session]
    for length in range(SHORTEST, len(session)):
        if not any(other.startswith(session[:length]) for other in others):
            return session[:length]
    return session
