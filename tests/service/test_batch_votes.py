"""People's votes on the rows of a batch."""

import anyio

from witan.batches import Batch, BatchOptions, BatchRow
from witan.deliberation.ports import Reply
from witan.errors import ModelError
from witan.history import History
from witan.service.council import Council, Member


class Writer:
    """A model that answers, or cannot be reached."""

    def __init__(self, *, fails=False):
        self.fails = fails

    async def complete(self, call, hear, /):
        """Answer, and rank nothing."""
        if self.fails:
            raise ModelError("writer", "is lost")
        hear(call.stage)
        return Reply(call.stage)


def test_a_vote_replaced_by_one_for_a_missing_answer_is_reported(tmp_path):
    """It still counts, although the data set has another, which cannot count."""

    async def run(history, winner):
        row = BatchRow(1, "1", "Why?", votes={"ann": winner})
        seats = [Member(name, Writer(fails=name == "cyd")) for name in ("ada", "bob", "cyd")]
        async with Council(seats, mode="best") as council:
            report = await Batch(council, history, [row], BatchOptions()).run(lambda _: None)
        return report.people

    with History.open(tmp_path / "history.sqlite") as history:
        first, second = (anyio.run(run, history, winner) for winner in ("ada", "cyd"))
        [vote] = history.votes_of("ann")

    assert (first.left_out, first.earlier) == (0, 0)
    assert vote.ballot.groups[0] == ("ada",)
    assert (second.left_out, second.earlier) == (1, 1)
