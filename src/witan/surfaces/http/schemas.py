"""What requests hold: foreign text becomes data here."""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from pydantic_core import PydanticCustomError

from witan.deliberation.ports import Message
from witan.service.sessions import CouncilRequest, QuestionRequest

NUL_FREE = r"^[^\x00]*$"
"""Text that every store can hold."""

Text = Annotated[str, Field(pattern=NUL_FREE, max_length=2_000_000)]


def _said(text: str) -> str:
    if not text.strip():
        raise PydanticCustomError("blank", "is blank; ask something")
    return text


Name = Annotated[str, Field(pattern=NUL_FREE, min_length=1, max_length=400)]


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


class TurnBody(_Body):
    """Something that was said before the question."""

    role: Literal["system", "user", "assistant"]
    content: Text


class JudgingBody(_Body):
    """Who sits, and how they deliberate."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"options": {"mirrored": True}}]})

    profile: Annotated[
        str, Field(max_length=200, description="A configured profile; `demo` needs no key.")
    ] = ""
    members: Annotated[
        list[Name],
        Field(max_length=64, description="Names of configured seats, in place of the profile's."),
    ] = []
    jury: Annotated[
        list[Name],
        Field(
            max_length=64,
            description="Names of configured seats that review instead of the members; at least "
            "two. None: the profile's jury, or the members.",
        ),
    ] = []
    chairman: Annotated[
        Name | None, Field(description="The name of the seat that writes the final answer.")
    ] = None
    seed: Annotated[
        int | None, Field(ge=0, lt=2**53, description="Draws sheets and labels, to repeat them.")
    ] = None
    options: Annotated[
        dict[str, Any],
        Field(
            description="Settings as the configuration calls them: rule, mode, rubric, mirrored, "
            "max_cost_usd and so on."
        ),
    ] = {}

    def judging(self, hops: tuple[str, ...] = ()) -> CouncilRequest:
        """The same as a service takes it."""
        return CouncilRequest(
            self.profile,
            tuple(self.members),
            self.chairman,
            self.seed,
            self.options,
            hops,
            tuple(self.jury),
        )


class QuestionBody(JudgingBody):
    """A question, and all that comes with it."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "question": "Is a hash map always faster than a sorted array?",
                    "profile": "demo",
                    "category": "coding",
                    "options": {"rule": "schulze"},
                }
            ]
        }
    )

    question: Annotated[
        Text, AfterValidator(_said), Field(min_length=1, description="What the council is asked.")
    ]
    conversation: Annotated[
        list[TurnBody], Field(max_length=1_000, description="What was said before, oldest first.")
    ] = []
    files: Annotated[
        dict[Name, Text], Field(description="Name to text of files that come with it.")
    ] = {}
    category: Annotated[
        Name | None, Field(description="What leaderboards can be read by, such as coding.")
    ] = None
    parent: Annotated[
        Name | None, Field(description="The session whose final answer it goes on from.")
    ] = None

    def asked(self, hops: tuple[str, ...] = ()) -> QuestionRequest:
        """The same as a service takes it."""
        return QuestionRequest(
            self.question,
            tuple(Message(turn.role, turn.content) for turn in self.conversation),
            self.files,
            self.category,
            self.parent,
            self.judging(hops),
        )


class RetryBody(_Body):
    """Which seats are asked once more."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"seats": []}]})

    seats: Annotated[
        list[Name], Field(max_length=64, description="None: every seat that failed.")
    ] = []


ALL_THAT_FAILED, AS_CONFIGURED = RetryBody(), JudgingBody()
"""A retry, and another jury, of which a request says nothing."""
