"""Prompts reveal neither the author of an answer nor the seed of the sheets."""

from dataclasses import replace

import pytest

from councils import QUESTION, council, member, members, says
from juries import prompts_of, record_calls
from loops import jumping_loop
from witan.deliberation import events as e
from witan.deliberation.prompts import read_fences
from witan.models.scripted import Line

pytestmark = pytest.mark.anyio


async def test_the_seed_is_in_no_prompt():
    """It would predict every sheet of the session."""
    seated = record_calls(members("abc"))
    seed = 0x1234567890AB
    async with council(seated, debate_rounds=1) as opened:
        await opened.ask(QUESTION, seed=seed, files={"a.txt": "salt"})

    calls = [call for seat in seated for call in seat.model.calls]
    told = "\n".join(message.text for call in calls for message in call.messages)
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
    seated = record_calls([replace(author, source=source, simulated=False), *members("abc")])

    async with council(seated) as opened:
        session = await opened.ask(QUESTION)

    assert model in session.answers["critic"].text
    shown = prompts_of(seated[1:], "review")
    assert len(shown) == 3
    assert not any("mistermodel" in text for text in shown)


async def test_grades_of_its_own_answer_are_not_shown_in_the_second_round():
    """With self-review an author sees only the grades of the others."""
    vain = [
        member(x, reviews=[Line(prefers=(f"says {x},",), grades={f"says {x},": 10, "says": 3})])
        for x in "abc"
    ]
    seated = record_calls(vain)

    async with council(seated, self_review=True, review_rounds=2) as opened:
        await opened.ask(QUESTION)

    second = prompts_of(seated[1:2], "review")[1]
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
