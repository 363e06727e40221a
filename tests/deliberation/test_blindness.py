"""Prompts reveal neither the author of an answer nor the seed of the sheets."""

from dataclasses import replace

import pytest

from councils import QUESTION, council, member, members, says
from loops import jumping_loop
from witan.deliberation import events as e
from witan.deliberation.ports import Call, Hear, Model, Reply
from witan.deliberation.prompts import read_fences
from witan.models.scripted import Line

pytestmark = pytest.mark.anyio


class RecordingModel:
    """A model that records its prompts."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.prompts: list[tuple[str, str]] = []

    async def complete(self, call: Call, hear: Hear, /) -> Reply:
        text = "\n".join(message.text for message in call.messages)
        self.prompts.append((call.stage, text))
        return await self.model.complete(call, hear)

    def asked(self, stage: str) -> list[str]:
        return [text for said, text in self.prompts if said == stage]


def record_prompts(seated):
    """Members whose prompts are recorded."""
    return [replace(seat, model=RecordingModel(seat.model)) for seat in seated]


async def test_the_seed_is_in_no_prompt():
    """It would predict every sheet of the session."""
    seated = record_prompts(members("abc"))
    seed = 0x1234567890AB
    async with council(seated, debate_rounds=1) as opened:
        await opened.ask(QUESTION, seed=seed, files={"a.txt": "salt"})

    told = "\n".join(text for seat in seated for _, text in seat.model.prompts)
    assert f"{seed:x}" not in told
    assert str(seed) not in told


@pytest.mark.parametrize(
    "source",
    ["http://localhost:11434/v1#mistermodel:8b", "ollama:mistermodel:8b", "openai:mistermodel-8b"],
)
async def test_the_name_of_the_model_is_masked_on_sheets(source):
    """Its seat has another name; a tag makes no difference."""
    model = source.rpartition("#")[2].removeprefix("ollama:").removeprefix("openai:")
    author = member("critic", answers=[f"I am {model}. It is sea 3."])
    seated = record_prompts([replace(author, source=source, simulated=False), *members("abc")])

    async with council(seated) as opened:
        session = await opened.ask(QUESTION)

    assert model in session.answers["critic"].text
    shown = [text for seat in seated[1:] for text in seat.model.asked("review")]
    assert len(shown) == 3
    assert not any("mistermodel" in text for text in shown)


async def test_grades_of_its_own_answer_are_not_shown_in_the_second_round():
    """With self-review an author sees only the grades of the others."""
    vain = [
        member(x, reviews=[Line(prefers=(f"says {x},",), grades={f"says {x},": 10, "says": 3})])
        for x in "abc"
    ]
    seated = record_prompts(vain)

    async with council(seated, self_review=True, review_rounds=2) as opened:
        await opened.ask(QUESTION)

    second = seated[1].model.asked("review")[1]
    label = next(k for k, text in read_fences(second).items() if "says a," in text)
    peers = second.partition("reviewed before")[2].partition("Your own first review")[0]
    [line] = [line for line in peers.splitlines() if line.startswith(f"[{label}]")]
    assert "accuracy 3" in line
    assert "10" not in line


@pytest.mark.parametrize("anyio_backend", [jumping_loop()], ids=["trio"])
async def test_only_the_last_round_stops_early():
    """In the first of two rounds nobody is cut off, as all vote in the second."""
    slow = Line(seconds=0.3, prefers=("says a,",))
    seated = [*members("abcde", "abcdef"), member("f", answers=[says("f")], reviews=[slow])]

    async with council(seated, review_rounds=2, spend="until_decided", rule="tournament") as opened:
        session = await opened.ask(QUESTION)

    [decided] = [event for event in session.events if isinstance(event, e.Decided)]
    first = [x for x in session.events if isinstance(x, e.BallotCast) and x.round == 1]
    assert len(first) == 6
    assert decided.seq > max(event.seq for event in first)
