"""Sources of reports, as operations that sum over sessions need them."""

import logging
from collections.abc import Collection, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Protocol

from witan.analytics.sources import HistorySource, Source
from witan.core.stats.sums import present_name
from witan.core.window import ALWAYS
from witan.errors import HistoryConflict, NothingToCount
from witan.history import History
from witan.service.config.configuration import Config
from witan.service.redaction import public_names

_log = logging.getLogger("witan.reports")


class ReportService(Protocol):
    """A source of sessions, and the client that asked."""

    @property
    def families(self) -> Mapping[str, Collection[str]]:
        """Family to the models that belong to it."""
        ...

    def source(self) -> AbstractContextManager[Source]:
        """Open what sessions are summed from."""
        ...

    def aliases(self, source: Source) -> Mapping[str, str]:
        """Old name to present name of models, as the client may see it."""
        ...

    def note(self, text: str) -> None:
        """Tell the client something beside the result."""
        ...


@dataclass(frozen=True, slots=True)
class HistoryReports:
    """The history of a server, as its clients may see it.

    Parameters
    ----------
    history
        None: the server keeps none.
    """

    history: History | None
    config: Config

    @property
    def families(self) -> Mapping[str, Collection[str]]:
        """Family to the models that belong to it."""
        return self.config.families

    @contextmanager
    def source(self) -> Iterator[Source]:
        """Open the history on a connection of its own: a long sum holds up nobody else.

        Raises
        ------
        HistoryConflict
            If there is no history.
        NothingToCount
            In the block, if no session can be counted; it does not say where the history is.
        """
        if self.history is None:
            problem = "this server keeps no history"
            raise HistoryConflict("the server", problem, "have it started without --no-history")
        with HistorySource.on_own_connection(self.history) as source:
            try:
                yield source
            except NothingToCount as error:
                raise NothingToCount(error.problem.removeprefix(f"{source.where}: ")) from None

    def aliases(self, source: Source) -> Mapping[str, str]:
        """Old name to present name of models, without what only the operator may see."""
        names = source.sums(ALWAYS).names().of.values()
        shown = public_names({present_name(name, self.config.aliases): None for name in names})
        return {**self.config.aliases, **shown}

    def note(self, text: str) -> None:
        """Tell the operator what a result took."""
        _log.info(text)
