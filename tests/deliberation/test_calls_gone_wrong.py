"""Calls of models that raise and return anything, and what they may have cost."""

import sys
from pathlib import Path

import anyio
import pytest
from sniffio import current_async_library
from trio.testing import MockClock

from calling import CALL, Script, Table, busy, fails, mute, returns, says
from witan.deliberation.calls import CallResult
from witan.deliberation.ports import Member, Usage
from witan.errors import MissingKey, ModelError

pytestmark = pytest.mark.anyio

EXITS = """
import sys, anyio
sys.path.insert(0, sys.argv[2])
from calling import Script, Table, fails

async def main():
    await Table().ask(Script(fails(SystemExit(7))))

anyio.run(main, backend=sys.argv[1])
"""


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request):
    """Both event loops; trio's jumps over the time in which nothing happens."""
    if request.param == "trio":
        return "trio", {"clock": MockClock(autojump_threshold=0)}
    return "asyncio", {}


class TestForeign:
    """A model that is not ours may raise and return anything."""

    async def test_its_exceptions_are_told_by_name(self):
        """Kind and words in one line of bounded length, without another attempt."""
        table = Table()
        script = Script(fails(ValueError("no\n such " + "x" * 999)))

        failed = await table.ask(script)

        assert isinstance(failed.error, ModelError)
        assert failed.reason.startswith("raised ValueError: no such xxx")
        assert len(failed.reason) < 350
        assert script.requests == 1

    async def test_an_exception_without_words_is_told_too(self):
        """The kind alone has to do."""
        failed = await Table().ask(Script(fails(KeyError())))

        assert failed.reason == "raised KeyError"

    @pytest.mark.parametrize("error", [TimeoutError("slow"), ConnectionResetError("gone")])
    async def test_what_python_calls_passing_is_tried_again(self, error):
        """A time-out or a dropped connection of its own may pass."""
        assert isinstance(await Table().ask(Script(fails(error), says("yes"))), CallResult)

    async def test_what_ends_a_program_is_not_caught(self):
        """A model that exits ends the program, with its own status."""
        run = await anyio.run_process(
            [sys.executable, "-c", EXITS, current_async_library(), str(Path(__file__).parents[1])],
            check=False,
        )

        assert run.returncode == 7

    @pytest.mark.parametrize("thing", [None, "because", {"text": "because"}])
    async def test_anything_but_a_reply_is_refused(self, thing):
        """The reason names what came instead."""
        failed = await Table().ask(Script(returns(thing)))

        assert failed.reason == f"returned {type(thing).__name__} where a Reply was due"

    @pytest.mark.parametrize("text", ["", " \n\t", None])
    async def test_a_reply_without_a_word_is_tried_again(self, text):
        """Silence is a failure that may pass, and what it cost counts."""
        table = Table()

        made = await table.ask(Script(mute(text), says("yes")))

        assert table.notices[0][3] == "said nothing"
        assert made.spent.usage == Usage(20, 10)
        assert made.spent.cost_usd == pytest.approx(30e-6)

    async def test_errors_of_ours_keep_their_sentence(self):
        """A key that is missing is told as everywhere else."""
        failed = await Table().ask(Script(fails(MissingKey("a", "A_KEY"))))

        assert failed.reason == "a needs a key: set the variable A_KEY"

    async def test_a_listener_that_fails_is_not_the_models_fault(self):
        """What the listener raises comes out as it is, for the bug is there."""
        table = Table()

        def listen(text: str) -> None:
            raise ValueError("our own bug")

        member = Member("a", Script(says("yes")), provider="p")
        with pytest.raises(ValueError, match="our own bug"):
            await table.caller.call(member, CALL, listen)


class TestMoney:
    """What failed and may have been billed makes the cost unknown; what was refused does not."""

    @pytest.mark.parametrize("status", [401, 404, 429, 500, 503])
    async def test_a_refusal_costs_nothing(self, status):
        """A status without a word of text means that nobody worked."""
        failed = await Table().ask(Script(fails(ModelError("m", "refused", status))))

        assert (failed.spent.cost_usd, failed.spent.usage) == (0.0, Usage(0, 0))

    @pytest.mark.parametrize(
        "step",
        [
            fails(ModelError("m", "broke off"), "be"),
            fails(ModelError("m", "failed midway", 500), "be"),
            fails(ModelError("m", "cannot be reached")),
            fails(ModelError("m", "nobody waited", 504)),
            fails(ModelError("m", "nobody waited", 408)),
            fails(ValueError()),
        ],
    )
    async def test_what_may_have_been_billed_is_unknown(self, step):
        """A dropped connection, a gateway's time-out, text before the failure."""
        table = Table()

        failed = await table.ask(Script(step))

        assert (failed.spent.cost_usd, failed.spent.usage) == (None, Usage())
        assert table.purse.total().unknown_calls == 1

    async def test_a_lost_attempt_makes_the_whole_call_unknown(self):
        """The reply's own cost is known to the purse, the call's is not."""
        table = Table()

        made = await table.ask(Script(fails(busy(None)), says("yes")))

        assert made.spent.cost_usd is None
        assert table.purse.total().known_usd == pytest.approx(15e-6)

    async def test_a_refused_attempt_leaves_the_cost_known(self):
        """A 429 that was tried again costs what the reply costs."""
        made = await Table().ask(Script(fails(busy(429)), says("yes")))

        assert made.spent.cost_usd == pytest.approx(15e-6)

    async def test_over_the_ceiling_nobody_is_asked(self):
        """The failure is the budget's, nothing was spent, and no request was made."""
        table = Table(max_usd=1e-6)
        script = Script(says("yes"))

        failed = await table.ask(script)

        assert failed.over_budget
        assert failed.reason.startswith("not called: it could cost $")
        assert (failed.spent.calls, failed.spent.cost_usd, script.requests) == (0, 0.0, 0)
        assert await table.is_free(64)
