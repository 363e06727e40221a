"""What tools take, beside what requests over HTTP hold, too."""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from witan.service.stored_sessions import Name, Text

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
Settings = Annotated[
    dict[str, Any],
    Field(description="Settings of counting by name: level, ties, tie_break, recusal and so on."),
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


class BallotsArguments(_Arguments):
    """Ballots, as the text of a ballot file."""

    ballots: Annotated[
        Text,
        Field(
            description="The text of a ballot file: JSON Lines such as "
            '{"session": "q1", "reviewer": "ada", "ranking": ["b", "c"]}, CSV with the columns '
            "session, reviewer, candidate, rank, PrefLib, battles, a saved session, or any other "
            "format that `witan import` reads; recognised by its content."
        ),
    ]
    format: Annotated[
        Name | None, Field(description="The format, where it is not to be recognised.")
    ] = None
    column: Annotated[
        list[Name],
        Field(description="FIELD=HEADER: which column holds a field, such as reviewer=judge."),
    ] = []
    scale: Annotated[
        Name | None,
        Field(description="LOW-HIGH: the scale of grades, such as 0-1; recognised unless given."),
    ] = None
    settings: Settings = {}


class TallyArguments(BallotsArguments):
    """Ballots, and the rule to count them by."""

    rule: Annotated[Name | None, Field(description="auto unless given; see `rules`.")] = None
    sessions: Annotated[list[Name], Field(description="Only these sessions.")] = []


class CompareArguments(BallotsArguments):
    """Ballots, and the rules to count them by."""

    rules: Annotated[list[Name], Field(description="None: every rule that suits them.")] = []
    sessions: Annotated[list[Name], Field(description="Only these sessions.")] = []


class ExplainArguments(BallotsArguments):
    """Ballots of which one session is explained."""

    rule: Annotated[Name | None, Field(description="auto unless given; see `rules`.")] = None
    session: Annotated[
        Name | None, Field(description="Needed where the ballots are of several sessions.")
    ] = None
