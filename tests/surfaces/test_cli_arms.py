"""``--arms``, black box: the council against its best member, judged blind."""

import json
import subprocess
import sys
import time
from collections import Counter
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from shutil import copytree

import httpx
import pytest

from council_servers import council_server
from scripts import grade_words, write_council, write_script
from witan.core.ballot import Ballot
from witan.history import History
from witan.surfaces.cli.app import main


@pytest.fixture(scope="module")
def server():
    """The address of a server whose model-N answers with a text of worth 9 − N."""
    with council_server(0.02) as url:
        yield f"{url}/v1"


def write_rows(folder):
    """Six questions of two categories, with right answers."""
    path = folder / "questions.jsonl"
    rows = [
        {"id": f"q{n}", "question": f"Why {n}?", "category": "ab"[n % 2], "reference": f"As {n}."}
        for n in range(6)
    ]
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return path


def seat_all(server, place):
    """Three members, a better chairman, and three judges."""
    seat = lambda number: f"m{number}={server}#model-{number}"  # noqa: E731
    options = [part for n in (3, 4, 5) for part in ("--member", seat(n))]
    options += ["--chairman", seat(0), "--history", place, "--arms", "council,best,self"]
    return [*options, *(part for n in (6, 7, 8) for part in ("--judge", seat(n)))]


@pytest.fixture
def rows(tmp_path):
    """The questions of this test."""
    return write_rows(tmp_path)


@pytest.fixture
def seats(server, place):
    """The options that seat everyone, with a history of this test's own."""
    return seat_all(server, place)


@dataclass(frozen=True)
class Finished:
    """A batch run once: its file, seats, history and output."""

    rows: Path
    seats: list
    place: Path
    status: int
    out: str
    err: str


@pytest.fixture(scope="module")
def finished(server, tmp_path_factory):
    """A finished batch with arms."""
    folder = tmp_path_factory.mktemp("arms")
    rows, place = write_rows(folder), folder / "history.sqlite"
    seats = seat_all(server, place)
    with redirect_stdout(StringIO()) as out, redirect_stderr(StringIO()) as err:
        status = main(["batch", str(rows), *map(str, seats), "--json"])
    return Finished(rows, seats, place, int(status), out.getvalue(), err.getvalue())


def lines(text):
    """JSON Lines as objects."""
    return [json.loads(line) for line in text.splitlines()]


def stored(place):
    """The sessions of a history."""
    with History.open(place, reading=True) as history:
        return [*history.sessions()]


def prices(seats):
    """A dollar for a million tokens of every seat."""
    named = [str(each).partition("=")[0] for each in seats if "#model" in str(each)]
    return [part for name in named for part in ("--price", f"{name}=1,1")]


class TestBatch:
    """Each row has its arms, and the report compares them."""

    def test_a_better_council_is_reported_as_better(self, finished):
        """The report has interval, price, answers and the best member."""
        said = finished
        results, report = lines(said.out), json.loads(said.err.splitlines()[-1])
        found = report["comparison"]
        [line] = [
            e for e in found["differences"]
            if (e["first"], e["second"], e["category"]) == ("council", "best", None)
        ]  # fmt: skip

        assert said.status == 0
        assert [*results[0]["arms"]] == ["council", "best", "self"]
        assert "of answer 0" in results[0]["arms"]["council"]["text"]
        assert "of answer 3" in results[0]["arms"]["best"]["text"]
        assert (found["best"], found["choice"]) == ({"m3": 6}, "these questions")
        assert (line["questions"], line["calls_ratio"]) == (6, 7)
        assert line["conclusion"] == "ahead"
        assert line["sentence"].startswith("the council beats its best member by ")
        assert found["category_level"] == pytest.approx(0.975)

    def test_a_council_that_repeats_its_best_member_is_no_better(self, witan, rows, seats, place):
        """Equal texts are not judged, and their cost is counted."""
        at = seats.index("--chairman")
        said = witan("batch", rows, *seats[:at], "--chairman", "m3", *seats[at + 2 :], "--json")
        found = json.loads(said.err.splitlines()[-1])["comparison"]

        assert said.status == 0
        assert {each["conclusion"] for each in found["differences"]} == {"same answers"}
        assert [(each["arm"], each["calls"]) for each in found["arms"]] == [
            ("council", 42), ("best", 6), ("self", 18),
        ]  # fmt: skip
        assert not any(session.opening.judging for session in stored(place))

    def test_a_second_run_makes_no_call(self, witan, finished):
        """The history gives the same report, and the bill is zero."""
        n_first = len(stored(finished.place))
        again = witan("batch", finished.rows, *finished.seats, "--json")
        bill = witan("batch", finished.rows, *finished.seats, "--dry-run", "--json").json
        reports = [json.loads(said.err.splitlines()[-1]) for said in (finished, again)]

        assert len(stored(finished.place)) == n_first
        assert reports[1]["earlier"] == 6
        assert reports[0]["comparison"] == reports[1]["comparison"]
        assert (bill["earlier"], bill["calls"]) == (6, 0)

    def test_only_the_jury_sees_the_right_answer(self, finished):
        """Members do not; arms are linked to the council's session."""
        openings = [session.opening for session in stored(finished.place)]
        judged = [opening for opening in openings if opening.judging is not None]
        councils = {opening.session for opening in openings if opening.parent is None}

        assert len(judged) == 6
        assert all("reference answer" in opening.files for opening in judged)
        assert all(not o.files for o in openings if o.judging is None)
        assert {o.parent for o in openings if o.parent} == councils
        assert {o.relation for o in openings if o.parent} == {"compared"}

    def test_a_leaderboard_counts_only_the_council(self, witan, finished):
        """Neither arms nor comparisons with a member count; an audit has the judges, too."""
        place = finished.place
        board = witan("leaderboard", "--history", place, "--min-sessions", 1, "--json").json
        counted = {line["model"].rpartition("#")[2]: line["sessions"] for line in board["lines"]}
        audit = witan("audit", "--history", place, "--json").json
        ballots = {e["reviewer"].rpartition("#")[2]: e["ballots"] for e in audit["reviewers"]}

        assert counted == dict.fromkeys(("model-3", "model-4", "model-5"), 6)
        assert ballots == {f"model-{n}": 6 for n in range(3, 9)}

    @pytest.mark.slow  # three starts, each killed in another arm
    def test_a_killed_run_continues(self, rows, seats, place, witan, server):
        """Only calls in flight at the kill are repeated, in any arm."""
        calls = server.removesuffix("/v1")
        n_first = httpx.get(f"{calls}/count").json()
        n_cut_off = 2 * 3  # of two sessions at a time, all three calls are under way
        command = [sys.executable, "-m", "witan", "batch", *map(str, (rows, *seats))]
        n_made = n_first
        for n_of_arm in (6 * 7, 6 * 3, 6 * 3):
            httpx.get(f"{calls}/hold/{n_made}")
            with subprocess.Popen(  # noqa: S603 - our own interpreter
                [*command, "--concurrency", "2"],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            ) as process:
                while httpx.get(f"{calls}/count").json() < n_made + n_cut_off:
                    assert process.poll() is None
                    time.sleep(0.02)
                process.kill()
            cut_off = [each for each in stored(place) if each.status == "interrupted"]
            assert [each.cost.calls for each in cut_off if each.cost.calls] == [3, 3]
            n_made += n_cut_off + n_of_arm
        httpx.get(f"{calls}/hold/inf")
        said = witan("batch", rows, *seats, "--json")
        sessions = stored(place)
        ends = Counter(
            (event.kind, session.id, event.seat)
            for session in sessions
            for event in session.events
            if event.kind in ("answer_done", "ballot_cast")
        )

        assert (said.status, len(lines(said.out)), len(sessions)) == (0, 6, 18)
        assert not any(session.status == "interrupted" for session in sessions)
        assert {*ends.values()} == {1}
        assert httpx.get(f"{calls}/count").json() == n_made

    def test_people_correct_the_jury(self, witan, finished, tmp_path):
        """The same command reads their votes on a random sample of judgments."""
        place = copytree(finished.place.parent, tmp_path / "copy") / "history.sqlite"
        seats = [place if each == finished.place else each for each in finished.seats]
        with History.open(place) as history:
            for session in [s for s in history.sessions() if s.opening.judging is not None]:
                groups = (("best", "self"), ("council",))
                history.vote(session.id, [Ballot("ann", groups, kind="human", session=session.id)])
        again = witan("batch", finished.rows, *seats)

        assert "the jury may prefer a style" not in " ".join(again.err.split())
        assert "Corrected by people's votes on 6 questions" in again.err
        assert "The council falls short of its best member" in again.err or "too close" in again.err


class TestMeasures:
    """References and votes are measures only for rows that have them."""

    @pytest.fixture
    def question(self, tmp_path):
        """A question without a right answer or votes."""
        path = tmp_path / "question.jsonl"
        path.write_text('{"question": "Why?"}\n', encoding="utf-8")
        return path

    @pytest.mark.parametrize("extra", [(), ("--dry-run",)])
    def test_references_are_needed_before_the_first_call(
        self, witan, question, seats, place, extra
    ):
        """Without one, no call is made."""
        own = seats[: seats.index("--judge")]
        said = witan("batch", question, *own, "--measure", "references", *extra)

        assert (said.status, said.out) == (2, "")
        assert "no row has a right answer in the field reference" in said.err
        assert not place.exists()

    def test_the_first_run_explains_how_people_vote(self, witan, question, seats):
        """It asks the questions; then people vote."""
        own = seats[: seats.index("--judge")]
        said = witan("batch", question, *own, "--measure", "votes", "--best", "m3")

        assert "have people vote on the lines of -o, add a column votes" in " ".join(
            said.err.split()
        )
        assert "no two arms" not in said.err


class TestMoney:
    """One ceiling applies to all arms and runs."""

    def test_a_dry_run_states_the_cost_of_all_arms(self, witan, rows, seats, place):
        """It makes no call."""
        bill = witan("batch", rows, *seats, *prices(seats), "--dry-run", "--json").json

        assert bill["parts"] == {"council": 42, "self": 36, "jury": 18}
        assert bill["calls"] == 96
        assert 0 < bill["expected_usd"] < bill["worst_usd"]
        assert not place.exists()

    def test_the_ceiling_is_never_exceeded(self, witan, rows, seats, place):
        """Money spent on one arm is missing for another; a higher ceiling continues."""
        priced = [*seats, *prices(seats)]
        whole = witan("batch", rows, *priced, "--dry-run", "--json").json["worst_usd"]
        plain = [*priced[: priced.index("--arms")], *prices(priced[: priced.index("--arms")])]
        ceiling = 1.001 * witan("batch", rows, *plain, "--dry-run", "--json").json["worst_usd"] / 6
        poor = [witan("batch", rows, *priced, "--max-cost", ceiling) for _ in range(2)]
        spent = sum(session.cost.committed_usd for session in stored(place))
        n_poor = len(stored(place))
        rich = witan("batch", rows, *priced, "--max-cost", 2 * whole, "--json")

        assert {said.status for said in poor} == {4}
        assert all(each["judgment"] for said in poor for each in lines(said.out))
        assert 0 < spent <= ceiling
        assert n_poor < 18
        assert rich.status == 0
        assert len(stored(place)) == 18
        arms = lines(rich.out)[0]["arms"]
        assert arms["council"]["cost_usd"] > arms["self"]["cost_usd"] > arms["best"]["cost_usd"] > 0


class TestAsk:
    """A single question has arms, with intervals over reviewers."""

    @pytest.fixture
    def scripts(self, tmp_path, place):
        """A scripted council whose final answer the judges prefer."""
        judges = [
            write_script(
                tmp_path / f"{name}.toml", review=[grade_words(**{"All told": 9, "Ada says": n})]
            )
            for n, name in enumerate(("xan", "yma", "zoe"), start=2)
        ]
        options = [part for judge in judges for part in ("--judge", f"script:{judge}")]
        return [*write_council(tmp_path), "--history", place, *options]

    def test_the_report_follows_the_answer(self, witan, scripts):
        """It is on standard error and explains the choice of the best member."""
        said = witan("ask", "Why?", *scripts, "--arms", "council,best")
        err = " ".join(said.err.split())

        assert (said.status, said.out.strip()) == (0, "All told: so.")
        assert "The council beats its best member by 6.00 ±" in err
        assert "ada, by the reviews of these same questions, which favours it" in err
        assert "Each interval is for similar reviewers" in err

    def test_the_best_member_can_be_named(self, witan, scripts):
        """The comparison is also in JSON."""
        said = witan("ask", "Why?", *scripts, "--arms", "council,best", "--best", "bob", "--json")
        found = json.loads(said.err.splitlines()[-1])

        assert (found["best"], found["choice"], found["basis"]) == ({"bob": 1}, "name", "reviewers")


class TestRefusals:
    """An invalid comparison is refused before the first call."""

    @pytest.mark.parametrize(
        ("options", "words"),
        [
            (["--arms", "best,self"], "write council and at least one of best, self"),
            (["--arms", "council,worst"], "write council and at least one of best, self"),
            (["--arms", "council,best"], "name at least two seats with --judge"),
            (["--judge", "script:xan.toml"], "--judge needs --arms"),
            (["--best", "ada"], "--best needs --arms"),
            (["--best", "eve"], "unknown member"),
            (["--judge", "script:ada.toml"], "would judge its own work"),
            (["--no-synthesis"], "a final answer in prose"),
            (["--mode", "verdict"], "consensus or best with the arm self"),
        ],
    )
    @pytest.mark.parametrize("command", ["ask", "batch"])
    def test_misuse_is_refused_with_a_remedy(
        self, witan, tmp_path, place, monkeypatch, command, options, words
    ):
        monkeypatch.chdir(tmp_path)
        council = write_council(tmp_path)
        for name in ("xan", "yma"):
            write_script(tmp_path / f"{name}.toml", review=[grade_words(so=5)])
        (tmp_path / "q.jsonl").write_text('{"question": "Why?"}')
        judges = ["--judge", "script:xan.toml", "--judge", "script:yma.toml"]
        alone = {"--arms", "--judge", "--best"} & {*options} and "needs --arms" in words
        more = [] if alone or "--arms" in options else ["--arms", "council,best,self", *judges]
        what = "Why?" if command == "ask" else "q.jsonl"
        said = witan(command, what, *council, "--history", place, *more, *options)

        assert said.status in (2, 3)
        assert words in " ".join(said.err.split())
        assert "Traceback" not in said.err
        with History.open(place) as history:
            assert [*history.sessions()] == []

    @pytest.mark.parametrize("is_batch", [True, False], ids=["batch", "ask"])
    def test_a_judge_without_a_price_is_refused_under_a_ceiling(self, witan, tmp_path, is_batch):
        """The error names it, and no call is made."""
        place = tmp_path / "history.sqlite"
        council = [*map(str, write_council(tmp_path))]
        seats = [each for each in council if each.startswith("script:")]
        prices = [part for seat in seats for part in ("--price", f"{seat}=1,1")]
        judges = ["--judge", "one=cmd:cat", "--judge", "two=cmd:cat"]
        (tmp_path / "q.jsonl").write_text('{"question": "Why?"}\n')
        asked = ["batch", tmp_path / "q.jsonl"] if is_batch else ["ask", "Why?"]
        arms = [*prices, *judges, "--arms", "council,best", "--max-cost", 1]
        said = witan(*asked, *council, *arms, "--history", place)

        assert (said.status, said.out) == (2, "")
        assert "the price of one and two is unknown, so --max-cost cannot be enforced" in said.err
        with History.open(place) as history:
            assert [*history.sessions()] == []

    def test_arms_of_texts_are_refused(self, witan, tmp_path):
        """There is nobody to answer them."""
        (tmp_path / "t.jsonl").write_text('{"text": "x"}')
        seats = ["--jury", "script:a.toml", "--judge", "script:b.toml", "--judge", "script:c.toml"]
        said = witan("batch", tmp_path / "t.jsonl", *seats, "--arms", "council,best")

        assert said.status == 2
        assert "--arms is for questions" in said.err
