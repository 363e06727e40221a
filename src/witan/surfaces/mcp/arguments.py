"""What tools take, beside what requests over HTTP hold, too."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from witan.service.stored_sessions import Name

Session = Annotated[
    Name,
    Field(description="The session: its name, an unambiguous beginning of it, or `last`."),
]
Wait = Annotated[
    float,
    Field(
        ge=0,
        le=600,
        description="Seconds to wait for its end; less than your own limit on a call.",
    ),
]


class _Arguments(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


class NoArguments(_Arguments):
    """None."""


class SessionArguments(_Arguments):
    """Which session."""

    session: Session


class ResultArguments(SessionArguments):
    """Which session, and how much of it."""

    wait: Wait = 45
    full: Annotated[
        bool,
        Field(description="All of it: answers, ballots, standings, not the final answer alone."),
    ] = False
