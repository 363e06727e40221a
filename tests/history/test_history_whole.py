"""What the history keeps of an imported session leaves it, and comes back elsewhere."""

from elections import ballot
from histories import ASKED
from witan.core.entries import AnswerEntry
from witan.files.exports import write_sessions
from witan.files.imports import read_imports
from witan.history import Imported


def test_what_is_behind_the_seats_comes_back(history, tmp_path):
    """Models, order-consistency, repairs and costs survive export, and import elsewhere."""
    took = tuple(
        AnswerEntry(seat, f"lab:{seat}", len(seat), 1.0, 0.5, 5) for seat in ("ada", "bo", "cy")
    )
    one = Imported(
        "s1",
        ASKED,
        ballots=tuple(
            ballot(text, session="s1") for text in ("ada: bo > cy", "bo: ada > cy", "cy: ada > bo")
        ),
        answers={"ada": "ada", "bo": "bo", "cy": "cy"},
        models={"ada": "lab:ada", "bo": "lab:bo", "cy": "lab:cy"},
        kept={"ada": (1, 2)},
        repaired=("bo",),
        took=took,
    )

    history.add([one], "f", "d")

    assert history.export("s1") == one
    write_sessions([history.export("s1")], tmp_path / "out")
    assert list(read_imports(tmp_path / "out")) == [one]
    rows = history.database.rows(
        "SELECT n.name, b.kept, b.compared, b.repaired FROM ballots b"
        " JOIN names n ON n.code = b.reviewer ORDER BY b.ballot"
    )
    assert rows == [("lab:ada", 1, 2, 0), ("lab:bo", 0, 0, 1), ("lab:cy", 0, 0, 0)]
    assert history.database.rows("SELECT SUM(cost_usd) FROM answers") == [(1.5,)]
