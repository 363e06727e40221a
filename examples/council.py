"""Ask a council without a key: a script, two members in Python, a model of one's own.

Run it from anywhere: ``python examples/council.py [session.json]``.
"""

import json
import sys
from collections.abc import Callable
from pathlib import Path

import anyio

from witan import Council, Member, Price, Session, session_to_json
from witan.models import Call, Line, Reply, ScriptedModel

HERE = Path(__file__).resolve().parent

QUESTION = "A queue delivers some messages twice. How do we write each of them once?"

FREE = Price(0.0, 0.0)


class MyModel:
    """A model of one's own: any object with this method can be a member.

    A real one sends `call.messages` to a model and passes each piece of text to `hear`.
    """

    async def complete(self, call: Call, hear: Callable[[str], None], /) -> Reply:
        """Answer one call, always with the same text."""
        if call.schema is None:
            text = "Hold a lock on the message while you write."
        else:  # a review: one group of equal answers is also a ranking
            asked = call.schema["properties"]
            labels = asked["ranking"]["items"]["items"]["enum"]
            criteria = asked["grades"]["properties"]["A"]["properties"]
            review = {
                "notes": "I cannot tell them apart.",
                "grades": {label: dict.fromkeys(criteria, 7) for label in labels},
                "ranking": [labels],
            }
            text = json.dumps(review)
        hear(text)
        return Reply(text)


def scripted(name: str, answer: str, *prefers: str) -> Member:
    """A member that plays a script, marked as simulated."""
    model = ScriptedModel(name, answers=[answer], reviews=[Line(prefers=prefers)])
    return Member(name, model, price=FREE, simulated=True)


def seated() -> Council:
    return Council(
        [
            f"ada=script:{HERE / 'script.toml'}",
            scripted("bob", "Give each row a natural key, and ignore the second.", "message ids"),
            scripted("cyd", "Ask the sender to deliver once.", "natural key", "message ids"),
            Member("mine", MyModel(), price=FREE),
        ],
        chairman="ada",
        rule="borda",
        call_seconds=10,
    )


async def ask() -> Session:
    async with seated() as council:
        print(council.plan(QUESTION).calls, "calls planned")
        return await council.ask(QUESTION, seed=7)


def main(target: Path | None) -> None:
    session = anyio.run(ask)
    print(session.status, *session.missing)
    for ballot in session.ballots:
        print(ballot.reviewer, "ranks", " > ".join(" = ".join(group) for group in ballot.groups))
    assert session.outcome is not None
    print(session.outcome.interpretation)
    print(session.text)
    print("by schulze:", session.recount("schulze").interpretation)
    if target is not None:
        target.write_text(session_to_json(session, indent=2), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else None)
