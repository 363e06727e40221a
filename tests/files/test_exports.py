"""Sessions are exported to files and imported unchanged."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from elections import ballot
from sessions import Story
from witan.core.session_ballots import AnswerEntry
from witan.deliberation.ports import NO_QUESTION, REFERENCE, Message
from witan.deliberation.record import SessionImport
from witan.deliberation.session import Session
from witan.errors import BallotFileError
from witan.files import read_ballots
from witan.files.exports import write_battles, write_session_ballots, write_sessions
from witan.files.imports import read_imports

DATA = Path(__file__).parents[2] / ".." / "shared" / "data"
NOON = datetime(2026, 1, 31, 12, 0, 0, 250000, tzinfo=UTC)


def council(*votes):
    """A council session with later votes by people."""
    story = Story("a", "b", "c").answers(a="one\u2028", b="two", c="three")
    story.casts("a: b > c").casts("b: a = c").abstains("c", "timed out").closing("done").closed()
    session = Session.of(story)
    return SessionImport(
        session.id,
        session.opening.at,
        session.question,
        ballots=(*session.ballots, *votes),
        answers={seat: answer.text for seat, answer in session.answers.items()},
        session_record=session,
        simulated=session.is_simulated,
        closing=session.text,
    )


IMPORT_KEY = SessionImport(
    "q1",
    NOON,
    "Why\x85not?",
    "maths",
    (
        ballot(
            "gpt: x > y", session="q1", grades={"x": {"accuracy": 9}, "y": "8/10"}, scale="1-10"
        ),
        ballot("ines: y > x", session="q1", kind="human", at=NOON, positions={"x": 1, "y": 2}),
        ballot("grok:", session="q1", abstained=True, reason="no reply \ud800"),
    ),
    answers={"x": "text"},
    lengths={"y": 12},
    simulated=True,
    closing="So.",
    models={"x": "lab:x-1", "gpt": "lab:gpt"},
    kept={"gpt": (2, 3)},
    repaired=("gpt",),
    took=(
        AnswerEntry("x", "lab:x-1", 4, 1.5, 0.25, 7),
        AnswerEntry("y", "y", failed=True),
    ),
)
PAIR = {"paired": True, "positions": {"x": 1, "y": 2}, "session": "p1"}
PAIRS = SessionImport(
    "p1",
    NOON,
    "Which?",
    "law",
    (
        ballot("ann: y > x", kind="human", **PAIR),
        ballot("gpt: x = y", notes="both bad", **PAIR),
        ballot("grok: x > y", weight=0.5, **{**PAIR, "positions": {"y": 1, "x": 2}}),
        ballot("bard: x > y", **{**PAIR, "positions": None}),
    ),
    answers={"x": "one", "y": "two"},
)


class TestWholeSessions:
    """JSON Lines of whole sessions."""

    @pytest.mark.parametrize(
        "one",
        [
            council(),
            council(ballot("ines: c > a", session="s1", kind="human", at=NOON)),
            IMPORT_KEY,
            PAIRS,
            SessionImport("bare"),
        ],
        ids=["council", "council with a vote", "imported", "pairs", "bare"],
    )
    def test_imported_sessions_are_the_same(self, tmp_path, one):
        """Import gives the exported session, events and votes included."""
        write_sessions([one], tmp_path / "first.jsonl")

        [back] = read_imports(tmp_path / "first.jsonl")

        assert back == one

    @pytest.mark.parametrize("suffix", ["jsonl", "jsonl.gz", "jsonl.zst"])
    def test_second_export_has_the_same_bytes(self, tmp_path, suffix):
        """Export, import and export change nothing, compressed or not; one line is one session."""
        first, second = tmp_path / f"first.{suffix}", tmp_path / f"second.{suffix}"

        n_sessions = write_sessions([council(), IMPORT_KEY, PAIRS], first)
        write_sessions(read_imports(first), second)

        assert n_sessions == 3
        assert first.read_bytes() == second.read_bytes()

    def test_line_is_a_line_for_every_reader(self, tmp_path):
        """Characters that some readers take for the end of a line are escaped."""
        write_sessions([council(), IMPORT_KEY], tmp_path / "out")

        assert len((tmp_path / "out").read_text(encoding="utf-8").splitlines()) == 2

    def test_single_session_file_is_imported(self, tmp_path):
        """What `ask --save` writes is one line of such a file, spread over lines or not."""
        write_sessions([council()], tmp_path / "out")
        record = json.loads((tmp_path / "out").read_text(encoding="utf-8"))
        (tmp_path / "spread").write_text(json.dumps(record, indent=2), encoding="utf-8")

        [back] = read_imports(tmp_path / "spread")

        assert back.session_record == council().session_record

    def test_prefix_leaves_a_council_session_its_name(self, tmp_path):
        """Its events use that name."""
        write_sessions([council(), IMPORT_KEY], tmp_path / "out")

        found = read_imports(tmp_path / "out", session_prefix="old/")

        assert [one.session for one in found] == ["s1", "old/q1"]

    @pytest.mark.parametrize(
        ("line", "told"),
        [
            ('{"witan_session": 9, "events": []}', "is a session of version 9"),
            ('{"witan_session": 1}', "events is not a list"),
            (
                '{"witan_imported": 2, "session": "s"}',
                "'witan_imported' is 2, and this Witan reads 1",
            ),
            ('{"witan_imported": 1}', "'session' is null"),
            (
                '{"witan_imported": 1, "session": "s", "ballots": [{"ranking": []}]}',
                "'ballots[0].reviewer' is missing",
            ),
            (
                '{"witan_imported": 1, "session": "s", "lengths": {"x": "long"}}',
                "'lengths' is not a map",
            ),
            (
                '{"witan_imported": 1, "session": "s", "lengths": {"x": 2147483648}}',
                "'lengths' is the number 2147483648",
            ),
            (
                '{"witan_imported": 1, "session": "s", "kept": {"r": [2, 1]}}',
                "'kept' contains [2, 1]",
            ),
            ('{"witan_imported": 1, "session": "s", "took": [{"seat": "x"}]}', "'took.model'"),
            (
                '{"witan_imported": 1, "session": "s",'
                ' "took": [{"seat": "x", "model": "m", "cost_usd": -1}]}',
                "'took.cost_usd' is -1",
            ),
            ('{"witan_imported": 1, "session": "s\\u0000"}', "without NUL and broken characters"),
            ('{"witan_imported": 1, "session": "s\\ud800"}', "without NUL and broken characters"),
            ('{"witan_imported": 1, "session": "s", "at": "noon"}', "'at' is 'noon'"),
            ("{broken", "is not JSON"),
            ('{"other": 1}', "is not a session"),
        ],
    )
    def test_invalid_line_is_reported(self, tmp_path, line, told):
        """The other sessions are imported."""
        write_sessions([IMPORT_KEY], tmp_path / "out")
        with (tmp_path / "out").open("a", encoding="utf-8") as file:
            file.write(line + "\n")
        problems = []

        found = list(read_imports(tmp_path / "out", on_problem=problems.append))

        assert len(found) == 1
        assert problems[0].line == 2
        assert told in str(problems[0])


class TestBallots:
    """Ballots of sessions in the formats of ballot files."""

    @pytest.mark.parametrize("name", ["b.jsonl", "b.parquet"])
    def test_ballots_have_time_and_category(self, tmp_path, name):
        """Those of the session are added only to ballots without them."""
        written = SessionImport("q1", NOON, "", "maths", IMPORT_KEY.ballots[:2])
        write_session_ballots([written], tmp_path / name)

        [back] = read_imports(tmp_path / name)
        write_session_ballots([back], tmp_path / f"again-{name}")

        assert (back.at, back.category) == (NOON, "maths")
        assert [one.groups for one in back.ballots] == [one.groups for one in written.ballots]
        assert [one.grades for one in back.ballots] == [one.grades for one in written.ballots]
        assert [one.kind for one in back.ballots] == ["model", "human"]
        assert (tmp_path / name).read_bytes() == (tmp_path / f"again-{name}").read_bytes()

    @pytest.mark.parametrize("name", ["b.jsonl", "b.csv", "b.parquet"])
    def test_ballots_name_the_question(self, tmp_path, name):
        """Files and earlier turns are part of it; a reference is not, nor a missing question."""
        opened = council().session_record.opening
        contexts = [
            {},
            {"files": {REFERENCE: "Both."}},
            {"files": {"a.txt": "one"}},
            {"files": {"a.txt": "two"}},
            {"conversation": (Message("user", "Hello."),)},
            {"question": f"How good? {NO_QUESTION}"},
        ]
        for number, context in enumerate(contexts):
            record = Session.of([replace(opened, **context), *council().session_record.events[1:]])
            one = replace(council(), session_record=record, question=record.question)
            write_session_ballots([one], tmp_path / f"{number}-{name}")

        questions = [
            {each.question for each in read_ballots(tmp_path / f"{number}-{name}")}
            for number in range(len(contexts))
        ]

        assert questions[0] == questions[1] == {opened.question}
        assert questions[-1] == {None}
        assert len({*map(frozenset, questions)}) == 5
        assert all(len(each) == 1 for each in questions)
        assert "[a.txt: " in min(questions[2])

    @pytest.mark.parametrize("name", ["b.jsonl", "b.csv", "b.parquet"])
    def test_scripts_stay_scripts(self, tmp_path, name):
        """Ballots of a simulated session are simulated when they are read back."""
        cast = tuple(ballot(f"r{k}: x > y", session="q1", notes=n) for k, n in enumerate("ab"))
        write_session_ballots(
            [SessionImport("q1", NOON, ballots=cast, simulated=True)], tmp_path / name
        )
        write_session_ballots([SessionImport("q1", NOON, ballots=cast)], tmp_path / f"real-{name}")

        [back], [real] = read_imports(tmp_path / name), read_imports(tmp_path / f"real-{name}")

        assert (back.simulated, real.simulated) == (True, False)
        assert [one.notes for one in back.ballots] == ["a", "b"]

    def test_seats_are_exported_by_model(self, tmp_path):
        """Two councils may both have a seat "critic": the export names the model."""
        write_session_ballots([council()], tmp_path / "b.jsonl")

        [back] = read_imports(tmp_path / "b.jsonl")

        models = [f"script:{seat}.toml" for seat in "abc"]
        assert [one.reviewer for one in back.ballots] == models
        assert back.ballots[0].groups == ((models[1],), (models[2],))
        assert back.ballots[0].authors is None

    def test_two_seats_of_one_model_stay_two(self, tmp_path):
        """They are named by model and seat, and the ballots name the author of each answer."""
        cast = (ballot("p: r > q", session="s"), ballot("q: r > p", session="s"))
        models = {"p": "lab:m", "q": "lab:m", "r": "lab:n"}
        write_session_ballots(
            [SessionImport("s", NOON, ballots=cast, models=models)], tmp_path / "b.jsonl"
        )

        [back] = read_imports(tmp_path / "b.jsonl")

        first, second = back.ballots
        assert (first.reviewer, second.reviewer) == ("lab:m (p)", "lab:m (q)")
        assert first.groups == (("lab:n",), ("lab:m (q)",))
        assert first.authors == {"lab:m (q)": "lab:m"}

    def test_unsupported_session_is_refused(self, tmp_path):
        """The existing file stays."""
        (tmp_path / "b.csv").write_text("before")

        with pytest.raises(BallotFileError, match="write jsonl or parquet"):
            write_session_ballots([IMPORT_KEY, PAIRS], tmp_path / "b.csv")
        assert (tmp_path / "b.csv").read_text() == "before"


class TestBattles:
    """Battles as arenas publish them."""

    def test_imported_comparisons_are_the_same(self, tmp_path):
        """Winner, order, both bad, weight and texts."""
        n_battles = write_battles([PAIRS], tmp_path / "out")

        [back] = read_imports(tmp_path / "out")
        write_battles([back], tmp_path / "again")

        assert n_battles == 4
        assert (back.question, back.answers, back.at) == ("Which?", {"x": "one", "y": "two"}, NOON)
        for one, was in zip(back.ballots, PAIRS.ballots, strict=True):
            assert (one.reviewer, one.kind, one.groups) == (was.reviewer, was.kind, was.groups)
            assert (one.positions, one.weight, one.notes) == (was.positions, was.weight, was.notes)
        assert (tmp_path / "out").read_bytes() == (tmp_path / "again").read_bytes()

    def test_battles_are_between_models_and_mark_scripts(self, tmp_path):
        """Seats are named by their models; two answers of one model are not a battle."""
        cast = (ballot("p: r > q > t", session="s"),)
        models = {"p": "lab:j", "q": "lab:m", "t": "lab:m"}
        one = SessionImport(
            "s", NOON, ballots=cast, models=models, answers={"q": "Q"}, simulated=True
        )

        assert write_battles([one], tmp_path / "out") == 2

        [back] = read_imports(tmp_path / "out")
        assert back.simulated
        assert {cast.reviewer for cast in back.ballots} == {"lab:j"}
        assert {cast.groups for cast in back.ballots} == {(("r",), ("lab:m",))}
        assert back.answers == {"lab:m": "Q"}

    def test_ranking_becomes_all_its_pairs(self, tmp_path):
        """Three ranked candidates make three battles; an abstention makes none."""
        cast = (
            ballot("r: c > a = b", session="s", positions={"b": 1, "c": 2, "a": 3}),
            ballot("q:", session="s", abstained=True),
        )

        assert write_battles([SessionImport("s", ballots=cast)], tmp_path / "out") == 3

        rows = [json.loads(line) for line in (tmp_path / "out").read_text().splitlines()]
        assert [(row["model_a"], row["model_b"], row["winner"]) for row in rows] == [
            ("b", "a", "tie"),
            ("c", "a", "model_a"),
            ("b", "c", "model_b"),
        ]


@pytest.mark.skipif(not DATA.is_dir(), reason="the shared data are not on this machine")
@pytest.mark.parametrize(
    "name",
    [
        "prd_vicuna80/pairwise.csv",
        "governance_listwise/trials.jsonl",
        "ori_listwise_run/689b624a.jsonl",
    ],
)
def test_real_sessions_survive_export_and_import(tmp_path, name):
    """Whole sessions of real councils are the same after export and import."""
    there = list(read_imports(DATA / name, at=NOON))

    write_sessions(there, tmp_path / "out.jsonl.gz")

    assert list(read_imports(tmp_path / "out.jsonl.gz")) == there
