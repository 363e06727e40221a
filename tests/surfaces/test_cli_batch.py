"""``witan batch``, black box: one session per row, under one ceiling, also after kills."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import httpx
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from council_servers import council_server
from scripts import grade_words, write_council, write_rows, write_script
from witan.core.stats.distributions import beta_quantile, t_quantile
from witan.errors import WitanError
from witan.history import History
from witan.service.batch import Progress
from witan.service.batch_rows import RowResult, count_missing
from witan.stats import estimate
from witan.surfaces.report.batch import progress_text

CRITERIA = ("accuracy", "relevance", "completeness", "conciseness", "clarity")

GRADES = {word: dict.fromkeys(CRITERIA, grade) for word, grade in {"moraine": 9, "ice": 3}.items()}


def lines(text):
    """JSON Lines as objects."""
    return [json.loads(line) for line in text.splitlines()]


@pytest.fixture
def jury(tmp_path, place):
    """The options that seat three jurors, who prefer moraines."""
    options = []
    for name in ("xan", "yma", "zoe"):
        path = write_script(tmp_path / f"{name}.toml", review=[{"grades": GRADES}])
        options += ["--jury", f"script:{path}"]
    return [*options, "--history", place]


@pytest.fixture
def texts(tmp_path):
    """Six rows of texts, four of them good."""
    words = ["moraine", "ice", "moraine", "moraine", "ice", "moraine"]
    rows = [{"id": f"r{n}", "question": "Which?", "text": f"{w} {n}"} for n, w in enumerate(words)]
    return write_rows(tmp_path / "texts.jsonl", rows)


def until_cast(place, n_ballots, kind="ballot_cast"):
    """Wait until the history has this many ballots, or events of another kind."""
    deadline, n_cast = time.monotonic() + 60, 0
    while n_cast < n_ballots:
        assert time.monotonic() < deadline
        time.sleep(0.02)
        with suppress(WitanError), History.open(place, reading=True) as history:
            events = [event for session in history.sessions() for event in session.events]
            n_cast = sum(event.kind == kind for event in events)


def n_sessions(place):
    """The numbers of sessions and of interrupted sessions in a history."""
    with History.open(place, reading=True) as history:
        stored = [*history.sessions()]
    return len(stored), sum(session.status == "interrupted" for session in stored)


class TestRows:
    """Each row is a session, whose result is a line of JSON."""

    def test_texts_are_judged(self, witan, texts, jury, place):
        """Each line has the verdict; the report has the share that passed."""
        said = witan("batch", texts, *jury, "--pass-mark", 6)
        results = {each["id"]: each for each in lines(said.out)}

        assert said.status == 0
        assert [results[f"r{n}"]["decision"] for n in range(6)] == [
            "passed", "failed", "passed", "passed", "failed", "passed",
        ]  # fmt: skip
        assert results["r0"]["verdict"]["texts"][0]["overall"]["mean"] == 9
        assert "67% of the decided rows passed" in said.err
        assert "batch · simulated" in said.err
        assert all(each["simulated"] for each in results.values())
        assert n_sessions(place) == (6, 0)

    def test_questions_are_asked(self, witan, tmp_path, place):
        """Each line has the final answer."""
        rows = write_rows(tmp_path / "q.jsonl", [{"question": f"Why {n}?"} for n in range(3)])
        said = witan("batch", rows, *write_council(tmp_path), "--history", place)

        assert said.status == 0
        assert [each["text"] for each in lines(said.out)] == ["All told: so."] * 3

    def test_an_id_of_several_rows_is_reported(self, witan, tmp_path, jury):
        """Each row has its own result, which only its number tells apart."""
        rows = [
            {"id": name, "text": text} for name, text in [("a", "ice"), ("a", "sea"), ("b", "ice")]
        ]
        said = witan("batch", write_rows(tmp_path / "rows.jsonl", rows), *jury)

        assert "several rows have the id a; use `row` to tell their results apart" in said.err
        results = sorted((each["row"], each["id"]) for each in lines(said.out))
        assert results == [(1, "a"), (2, "a"), (3, "b")]

    def test_the_report_has_the_mean_grade_of_a_text(self, witan, tmp_path, jury):
        """It needs neither a pass mark nor people's votes; from five rows on it has an interval."""
        rows = [{"question": f"Why {n}?", "text": "moraine" if n else "ice"} for n in range(6)]
        said = witan("batch", write_rows(tmp_path / "rows.jsonl", rows), *jury)
        few = witan("batch", write_rows(tmp_path / "few.jsonl", rows[:4]), *jury, "--json")
        grades = [each["verdict"]["texts"][0]["overall"]["mean"] for each in lines(said.out)]
        mean, reach = np.mean(grades), t_quantile(0.975, 5) * np.std(grades, ddof=1) / 6**0.5
        n_votes = (mean - 1) * (10 - mean) * (1.96 / reach) ** 2
        low, high = (
            1
            + 9 * beta_quantile(p, (mean - 1) / 9 * n_votes + 0.5, (10 - mean) / 9 * n_votes + 0.5)
            for p in (0.025, 0.975)
        )

        assert f"The jury's mean grade is {mean:.2f} ({low:.2f} to {high:.2f}" in said.err
        assert "for rows like these, at 95% confidence)." in said.err
        [text] = json.loads(few.err)["texts"]
        assert (text["text"], text["rows"], text["interval"]) == ("text", 4, None)

    @pytest.mark.parametrize(
        ("n_questions", "population"),
        [(1, "more texts of this question"), (3, "more texts of the same questions")],
    )
    def test_few_questions_say_nothing_about_others(
        self, witan, tmp_path, jury, n_questions, population
    ):
        """However many rows there are, the intervals are for texts of the same questions."""
        rows = [
            {"question": f"Why {n % n_questions}?", "text": f"{'ice' if n % 4 else 'moraine'} {n}"}
            for n in range(12)
        ]
        path = write_rows(tmp_path / "rows.jsonl", rows)
        said = witan("batch", path, *jury, "--pass-mark", 6).err

        assert f" of {population}, at 95% confidence)." in said
        assert f" for {population}, at 95% confidence)." in said
        assert "rows like these" not in said

    def test_the_intervals_of_several_texts_name_few_questions(self, witan, tmp_path, jury):
        """A sentence below the table says what they are for."""
        rows = [
            {"question": "Which?", "texts": {"old": f"ice {n}", "new": f"{word} {n}"}}
            for n, word in enumerate(["moraine", "ice", "moraine"] * 2)
        ]
        said = witan("batch", write_rows(tmp_path / "rows.jsonl", rows), *jury).err

        assert "Intervals apply only to more texts of the same questions" in said

    def test_the_report_has_a_line_for_each_of_several_texts(self, witan, tmp_path, jury):
        """The best is first, with how often each leads."""
        rows = [
            {"question": f"Why {n}?", "texts": {"old": "ice", "new": "moraine"}} for n in range(5)
        ]
        rows.append({"texts": {"new": "ice", "other": "moraine"}})
        path = write_rows(tmp_path / "rows.jsonl", rows)
        said = witan("batch", path, *jury, "--json")
        texts = json.loads(said.err)["texts"]

        assert [(each["text"], each["rows"], each["leads"]) for each in texts] == [
            ("other", 1, 1),
            ("new", 6, 5),
            ("old", 5, 0),
        ]
        assert "text   rows  leads clearly  mean grade  interval" in witan("batch", path, *jury).err

    @pytest.mark.parametrize(
        ("better", "words"),
        [
            (range(0, 12, 2), "3.00 [1.01, 4.99] above old, paired by row."),
            ([0], "old is too close to call: the difference by row is 0.50 [-0.60, 1.60]."),
        ],
    )
    def test_the_report_compares_the_best_text_with_the_next(
        self, witan, tmp_path, jury, better, words
    ):
        """The difference is by row, as both texts of a row answer the same question."""
        rows = [
            {"question": f"Why {n}?", "texts": {"old": f"ice {n}", "new": f"{word} {n}"}}
            for n, word in enumerate("moraine" if n in better else "ice" for n in range(12))
        ]
        said = witan("batch", write_rows(tmp_path / "rows.jsonl", rows), *jury)

        start, _, rest = said.err.partition("The jury gives new the highest mean grade, ")
        assert start
        assert rest.removeprefix("but ").startswith(words)

    def test_a_text_with_easier_rows_does_not_hide_a_better_one(self, witan, tmp_path, jury):
        """Only rows with both texts compare them, whatever their means over all rows are."""
        shared = [{"old": f"moraine {n}", "new": f"ice {n}"} for n in range(6)]
        shared[0] = {"old": "moraine", "new": "moraine 0"}
        rows = [*shared, *({"old": f"ice {n}", "other": "ice"} for n in range(6))]
        rows += [{"new": f"moraine {n}", "other": "ice"} for n in range(6, 18)]
        rows = [{"question": f"Why {n}?", "texts": texts} for n, texts in enumerate(rows)]
        said = witan("batch", write_rows(tmp_path / "rows.jsonl", rows), *jury)

        words = "but old is better on the rows of both: the difference by row is -5.00 ["
        assert f"The jury gives new the highest mean grade, {words}" in said.err

    def test_the_report_states_the_most_frequent_reason(self, witan, tmp_path, place):
        """It has the number of rows, and the number of other reasons."""
        rows = write_rows(tmp_path / "q.jsonl", [{"question": f"Why {n}?"} for n in range(3)])
        seats = [*write_council(tmp_path), "--history", place]
        broken = [option for n in range(7) for option in ("--member", f"cmd:false {n}")]
        said = witan("batch", rows, *seats, *broken)
        as_json = json.loads(
            witan("batch", rows, *seats, *broken, "--json", "-o", tmp_path / "x").out
        )
        reason = "the program 'false' exited with status 1"

        assert said.status == 3
        assert said.err.count(reason) == 5
        assert "2 other reasons" in said.err
        assert [*as_json["missing"].values()] == [3] * 7

    def test_a_reason_shared_by_many_rows_is_reported_once(self):
        """Each row names its own session in it."""
        results = [
            RowResult(n, None, f"batch-{n}", "error", error=f"h: the session batch-{n} is running")
            for n in (1, 2)
        ]

        assert count_missing(results) == {"h: its session is running": 2}

    def test_questions_to_two_members_that_only_rank_are_refused(self, witan, tmp_path, place):
        """No row is begun; the same two can judge texts."""
        questions = write_rows(tmp_path / "q.jsonl", [{"question": "Why?"}])
        pairs = write_rows(tmp_path / "t.jsonl", [{"texts": {"a": "Ada says", "b": "Bob says"}}])
        seats = write_council(tmp_path, cyd=None)[:4]
        rest = ["--no-rubric-scoring", "--history", place]
        refused = witan("batch", questions, *seats, *rest)
        began = place.exists()
        judged = witan("batch", pairs, *("--jury" if x == "--member" else x for x in seats), *rest)

        assert (refused.status, refused.out, began) == (2, "", False)
        assert "each would rank one answer alone" in refused.err
        assert [each["status"] for each in lines(judged.out)] == ["complete"]

    @pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
    def test_a_full_disk_is_reported(self, witan, texts, jury):
        """The message names the file, which is not standard output."""
        said = witan("batch", texts, *jury, "--pass-mark", 6, "-o", "/dev/full")

        assert said.status == 2
        assert "--output: /dev/full cannot be written: No space left on device" in said.err
        assert "standard output" not in said.err

    @pytest.mark.parametrize("row", [{"text": "moraine"}, {"question": "Why?"}])
    def test_results_are_no_ballots(self, witan, tmp_path, place, jury, row):
        """The error says where the ballots are, and the command it names reads them."""
        results = tmp_path / "verdicts.jsonl"
        seats = [*write_council(tmp_path), "--history", place] if "question" in row else jury
        witan("batch", write_rows(tmp_path / "rows.jsonl", [row] * 5), *seats, "-o", results)
        refused = witan("estimate", results)
        exported = witan("export", "--history", place, "-o", tmp_path / "sessions.jsonl")

        assert refused.status == 2
        assert "witan batch and no ballots" in refused.err
        assert refused.err.endswith("for example: witan export | witan estimate -\n")
        assert exported.status == 0
        assert witan("estimate", tmp_path / "sessions.jsonl").status == 0

    def test_a_row_without_a_ballot_says_why(self, witan, texts, tmp_path, place):
        """It has each juror's reason and the number of ballots."""
        jury = []
        for name, line in {"mute": {"text": "no"}, "down": {"error": "is overloaded"}}.items():
            jury += ["--jury", f"script:{write_script(tmp_path / f'{name}.toml', review=[line])}"]
        said = witan("batch", texts, *jury, "--history", place)

        assert said.status == 3
        for each in lines(said.out):
            assert each["missing"][0] == "0 of 2 ballots kept"
            assert "down cast no ballot: is overloaded" in each["missing"]
            assert any(
                reason.startswith("mute cast no ballot: its r") for reason in each["missing"]
            )

    def test_an_open_row_has_no_decision_and_no_reason_of_voters(self, witan, tmp_path, place):
        """Two of three ballots are stored, but a later run may add the third."""
        failing = {"mute": {"text": "no"}, "dumb": {"text": "no"}, "down": {"error": "is busy"}}
        paths = {
            name: write_script(tmp_path / f"{name}.toml", review=[line])
            for name, line in failing.items()
        }
        jury = [word for path in paths.values() for word in ("--jury", f"script:{path}")]
        rows = write_rows(tmp_path / "rows.jsonl", [{"text": "ice"}])
        arguments = ["batch", rows, *jury, "--history", place, "--pass-mark", 9]
        command = [sys.executable, "-m", "witan", *map(str, arguments)]
        subprocess.run(command, capture_output=True, check=False)  # noqa: S603 - our own interpreter
        write_script(paths["mute"], review=[{"grades": GRADES}])
        write_script(paths["dumb"], review=[{"grades": GRADES}])
        write_script(paths["down"], review=[{"hang": True}])
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:  # noqa: S603 - our own interpreter
            until_cast(place, 2)
            process.send_signal(signal.SIGINT)
        write_script(paths["down"], review=[failing["down"]])
        said = witan(*arguments)
        [row] = lines(said.out)

        assert row["missing"] == ["2 of 3 ballots kept", "down cast no ballot: is busy"]
        assert (row["status"], row["decision"], row["verdict"]) == ("failed", None, None)
        assert "decided rows" not in said.err

    def test_a_row_may_expect_another_text_than_the_batch(self, witan, tmp_path, jury):
        """Its own expectation counts; an unknown name is an error of the row."""
        pair = {"texts": {"old": "ice", "new": "a moraine"}}
        rows = [{**pair, "expected": e} for e in ("old", "new", None, "odd")]
        path = write_rows(tmp_path / "pairs.jsonl", rows)
        said = witan("batch", path, *jury, "--expected", "new")
        results = sorted(lines(said.out), key=lambda each: each["row"])

        assert [each["decision"] for each in results] == ["failed", "passed", "passed", None]
        assert [each["expected"] for each in results] == ["old", "new", "new", "odd"]
        assert "unknown text 'odd'; did you mean 'old'?" in results[3]["error"]

    def test_an_expected_tie_fails_but_never_passes(self, witan, tmp_path, jury):
        """It fails if a text leads clearly; the share that passed does not include it."""
        pairs = [("ice", "a moraine"), ("moraine 1", "moraine 2"), ("ice 3", "moraine 3")]
        rows = [
            {"texts": {"old": old, "new": new}, "expected": expected}
            for (old, new), expected in zip(pairs, ("tie", "tie", "new"), strict=True)
        ]
        said = witan("batch", write_rows(tmp_path / "pairs.jsonl", rows), *jury)
        results = sorted(lines(said.out), key=lambda each: each["row"])

        assert [each["decision"] for each in results] == ["failed", "too close to call", "passed"]
        assert [each["expected"] for each in results] == ["tie", "tie", "new"]
        assert "100% of the decided rows that could both pass and fail passed" in said.err

    def test_rows_that_cannot_fail_are_not_counted_as_passed(self, witan, tmp_path, jury):
        """Of several texts, one leads clearly or not; only an expected one, or a mark, can fail."""
        pair = {"texts": {"old": "a moraine", "new": "ice"}}
        plain = witan("batch", write_rows(tmp_path / "plain.jsonl", [pair]), *jury)
        rows = [pair, {**pair, "expected": "old"}, {**pair, "expected": "new"}]
        mixed = witan("batch", write_rows(tmp_path / "mixed.jsonl", rows), *jury)

        assert [each["decision"] for each in lines(plain.out)] == ["passed"]
        assert "of the decided rows" not in plain.err
        assert "50% of the decided rows that could both pass and fail passed" in mixed.err

    def test_the_expected_decision_on_a_single_text_is_compared(self, witan, tmp_path, jury, place):
        """It changes no session, so adding it makes no call."""
        expected = [True, "fail", "failed", None]
        rows = [{"text": text} for text in ("moraine 1", "ice", "moraine 2", "moraine 3")]
        path = write_rows(tmp_path / "rows.jsonl", rows)
        mark = ["--pass-mark", 6]
        witan("batch", path, *jury, *mark)
        for row, each in zip(rows, expected, strict=True):
            row["expected"] = each
        write_rows(path, rows)
        said = witan("batch", path, *jury, *mark)
        report = json.loads(witan("batch", path, *jury, *mark, "--json").err)

        assert "2 of 3 judged rows with an expected decision have it" in said.err
        assert report["earlier"] == 4
        assert report["expectations"] == {
            "passed": {"passed": 1, "failed": 0, "too close to call": 0},
            "failed": {"passed": 1, "failed": 1, "too close to call": 0},
        }
        assert n_sessions(place) == (4, 0)
        assert {each["row"]: each["decision"] for each in lines(said.out)}[3] == "passed"

    def test_a_column_that_is_named_for_one_field_is_not_read_as_another(
        self, witan, tmp_path, jury, place
    ):
        """A right answer in the column expected is a reference once it is named so."""
        rows = write_rows(tmp_path / "rows.jsonl", [{"text": "ice", "expected": "It is a moraine"}])
        said = witan("batch", rows, *jury, "--column", "reference=expected")
        with History.open(place, reading=True) as history:
            [session] = history.sessions()

        assert said.status == 0
        assert "It is a moraine" in session.opening.files.values()

    @pytest.mark.parametrize("kind", ["csv", "json", "parquet"])
    def test_every_kind_of_file_is_read(self, witan, tmp_path, jury, kind):
        """Columns can be named; each --text is a column of texts."""
        path = tmp_path / f"pairs.{kind}"
        rows = [{"prompt": "Which?", "new": f"moraine {n}", "old": f"ice {n}"} for n in range(2)]
        if kind == "parquet":
            pq.write_table(pa.Table.from_pylist(rows), path)
        elif kind == "json":
            path.write_text(json.dumps(rows))
        else:
            cells = [",".join(rows[0]), *(",".join(row.values()) for row in rows)]
            path.write_text("\n".join(cells))
        columns = ["--column", "question=prompt", "--text", "new", "--text", "old"]
        said = witan("batch", path, *columns, *jury, "--expected", "new")

        assert said.status == 0
        assert [each["leaders"] for each in lines(said.out)] == [["new"], ["new"]]

    def test_columns_that_are_not_used_are_named(self, witan, tmp_path, place):
        """A column of answers that is not named as text would otherwise be asked unnoticed."""
        rows = write_rows(tmp_path / "rows.jsonl", [{"question": "Why?", "reply": "ice"}])
        said = witan("batch", rows, *write_council(tmp_path), "--history", place, "--dry-run")

        assert "unused columns: reply" in said.err

    @pytest.mark.parametrize(
        ("row", "options"),
        [
            ({"question": "Why?", "expected": "Ice."}, []),
            ({"new": "ice", "old": "sea", "text": "moraine"}, ["--text", "new", "--text", "old"]),
        ],
    )
    def test_an_unused_column_with_the_name_of_a_field_is_named(
        self, witan, tmp_path, place, jury, row, options
    ):
        """Nothing is expected of questions, and with --text no other column is a text."""
        rows = write_rows(tmp_path / "rows.jsonl", [row])
        seats = jury if options else [*write_council(tmp_path), "--history", place]
        said = witan("batch", rows, *seats, *options, "--dry-run")

        assert f"unused columns: {[*row][-1]}\n" in said.err

    def test_maps_and_dates_of_parquet_are_read(self, witan, tmp_path, jury, place):
        """A map is texts by name, or votes by person; a date is text."""
        table = {
            "texts": pa.array(
                [[("old", "ice"), ("new", "moraine")]], pa.map_(pa.string(), pa.string())
            ),
            "votes": pa.array([[("ann", "new")]], pa.map_(pa.string(), pa.string())),
            "category": pa.array([0], pa.date32()),
        }
        pq.write_table(pa.table(table), tmp_path / "rows.parquet")
        [result] = lines(witan("batch", tmp_path / "rows.parquet", *jury).out)
        with History.open(place, reading=True) as history:
            [session] = history.find(simulated=None)
            people = [each for each in history.ballots(session.session) if each.kind == "human"]

        assert result["leaders"] == ["new"]
        assert session.category == "1970-01-01"
        assert [each.reviewer for each in people] == ["ann"]

    def test_equal_rows_have_a_session_each(self, witan, tmp_path, jury, place):
        """They are not judged more often than that."""
        rows = write_rows(tmp_path / "twice.jsonl", [{"text": "moraine"}] * 2)
        for _ in range(2):
            said = witan("batch", rows, *jury)

        assert len({each["session"] for each in lines(said.out)}) == 2
        assert n_sessions(place) == (2, 0)

    def test_an_invalid_row_does_not_stop_the_others(self, witan, tmp_path, jury):
        """It is named with the reason, and the status is 3."""
        rows = [{"text": "moraine"}, {"text": "  "}, {"text": "ice"}]
        said = witan("batch", write_rows(tmp_path / "some.jsonl", rows), *jury)
        results = sorted(lines(said.out), key=lambda each: each["row"])

        assert said.status == 3
        assert [each["status"] for each in results] == ["complete", "error", "complete"]
        assert "the text is empty" in results[1]["error"]

    def test_a_blank_first_question_does_not_stop_the_others(self, witan, tmp_path, place):
        rows = write_rows(tmp_path / "some.jsonl", [{"question": " "}, {"question": "Why?"}])
        said = witan("batch", rows, *write_council(tmp_path), "--history", place)
        results = sorted(lines(said.out), key=lambda each: each["row"])

        assert [each["status"] for each in results] == ["error", "complete"]
        assert "question is empty" in results[0]["error"]

    @pytest.mark.parametrize("cell", ["", None, float("nan")])
    @pytest.mark.parametrize("options", [[], ["--column", "text=text"], ["--text", "text"]])
    def test_a_row_with_an_empty_text_is_reported(self, witan, tmp_path, jury, cell, options):
        """Other rows are judged, and nobody answers its question."""
        rows = [{"question": "Why?", "text": text} for text in (cell, "moraine", cell)]
        path = write_rows(tmp_path / "some.jsonl", rows)
        planned = witan("batch", path, *jury, *options, "--dry-run")
        said = witan("batch", path, *jury, *options)
        results = sorted(lines(said.out), key=lambda each: each["row"])

        assert said.status == 3
        assert [each["status"] for each in results] == ["error", "complete", "error"]
        assert "2 rows cannot run: the text is empty; expected some text" in planned.out
        assert results[0]["error"] == results[2]["error"]
        assert results[0]["error"] == "the text is empty; expected some text"

    def test_a_plan_names_rows_that_expect_an_unknown_text(self, witan, tmp_path, jury):
        """It gives the reason for which the row will fail."""
        rows = [{"texts": {"old": "ice", "new": "moraine"}, "expected": name} for name in
                ("nw", "new")]  # fmt: skip
        path = write_rows(tmp_path / "some.jsonl", rows)
        planned = witan("batch", path, *jury, "--dry-run")
        [failed, _] = sorted(lines(witan("batch", path, *jury).out), key=lambda each: each["row"])

        assert failed["error"] == "unknown text 'nw'; did you mean 'new'?"
        assert f"1 row cannot run: {failed['error']}" in planned.out
        assert "at most 3 calls" in planned.out

    @pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
    def test_a_text_without_its_rival_is_not_judged_alone(self, witan, tmp_path, jury, kind):
        """An empty cell of --text leaves one text, which gets no verdict."""
        path = tmp_path / f"pairs.{kind}"
        rows = [{"new": "moraine", "old": "ice"}, {"new": "moraine", "old": ""}]
        if kind == "csv":
            path.write_text("new,old\nmoraine,ice\nmoraine,\n")
        elif kind == "parquet":
            pq.write_table(pa.Table.from_pylist(rows), path)
        else:
            write_rows(path, rows)
        said = witan("batch", path, *jury, "--text", "new", "--text", "old", "--expected", "new")
        paired, alone = sorted(lines(said.out), key=lambda each: each["row"])

        assert (said.status, paired["decision"]) == (3, "passed")
        assert alone["error"] == "the text old is empty; expected some text"

    def test_a_row_without_the_field_of_a_rival_is_not_judged_alone(self, witan, tmp_path, jury):
        """In JSON a text may be missing instead of empty."""
        rows = [{"new": "moraine", "old": "ice"}, {"new": "moraine"}]
        path = write_rows(tmp_path / "pairs.jsonl", rows)
        said = witan("batch", path, *jury, "--text", "new", "--text", "old")
        _, alone = sorted(lines(said.out), key=lambda each: each["row"])

        assert said.status == 3
        assert alone["error"] == "the text old is empty; expected some text"

    def test_a_cell_of_csv_may_be_long(self, witan, tmp_path, jury):
        """Python's default limit is 131,072 characters."""
        path = tmp_path / "long.csv"
        path.write_text(f"text\n{'moraine ' * 20_000}\nice\n")
        said = witan("batch", path, *jury)

        assert (said.status, len(lines(said.out))) == (0, 2), said.err

    def test_a_header_without_rows_is_reported_as_such(self, witan, tmp_path, jury):
        """Its column is not called missing."""
        path = tmp_path / "header.csv"
        path.write_text("question,reply\n")
        said = witan("batch", path, *jury, "--column", "text=reply")

        assert said.status == 2
        assert "header.csv has no rows" in said.err

    def test_a_column_of_empty_cells_exists(self, witan, tmp_path, jury):
        """The error names the row, not the header."""
        path = tmp_path / "rows.csv"
        path.write_text("question,reply\nWhy?,\n")
        said = witan("batch", path, *jury, "--text", "reply")

        assert said.status == 3
        assert "has no column" not in said.err
        assert lines(said.out)[0]["error"] == "the text reply is empty; expected some text"


class TestAgain:
    """A second run asks only for what is missing."""

    def test_a_second_run_makes_no_call(self, witan, texts, jury, place, tmp_path):
        """Its results are those of the first, in a new file."""
        first = witan("batch", texts, *jury, "--pass-mark", 6)
        out = tmp_path / "again.jsonl"
        again = witan("batch", texts, *jury, "--pass-mark", 6, "-o", out, "--json")
        text = witan("batch", texts, *jury, "--pass-mark", 6)

        assert again.json["earlier"] == 6
        assert "batch · simulated · $0 · 18 calls in all runs · " in text.err
        assert "18 calls · " in first.err
        key = lambda each: each["row"]  # noqa: E731
        assert sorted(lines(out.read_text()), key=key) == sorted(lines(first.out), key=key)
        assert n_sessions(place) == (6, 0)

    def test_another_pass_mark_is_another_batch(self, witan, texts, jury, place):
        """Its verdicts differ."""
        for mark in (6, 7):
            witan("batch", texts, *jury, "--pass-mark", mark)

        assert n_sessions(place) == (12, 0)

    def test_another_word_in_the_rubric_is_another_batch(self, witan, texts, jury, place, tmp_path):
        """Sessions under the earlier rubric do not count."""
        rubric = tmp_path / "rubric.toml"
        for question in ("Is it right?", "Is it true?"):
            rubric.write_text(
                f'name = "own"\n[[criteria]]\nname = "style"\nweight = 1\n'
                f'description = "{question}"\n'
            )
            witan("batch", texts, *jury, "--rubric", rubric)

        assert n_sessions(place) == (12, 0)

    def test_a_new_row_is_added(self, witan, texts, jury, place):
        """It may be anywhere in the file."""
        witan("batch", texts, *jury)
        texts.write_text(f'{{"text": "a moraine before"}}\n{texts.read_text()}')
        said = witan("batch", texts, *jury)

        assert len(lines(said.out)) == 7
        assert n_sessions(place) == (7, 0)

    @pytest.mark.parametrize(
        "ending",
        [
            signal.SIGKILL,
            signal.SIGTERM,
            pytest.param(signal.SIGINT, marks=pytest.mark.slow),
            pytest.param(signal.SIGHUP, marks=pytest.mark.slow),
        ],
    )
    def test_an_interrupted_run_continues(self, witan, tmp_path, place, ending):
        """However it ended, no row is lost or doubled, and stored ballots are kept."""
        if signal.getsignal(ending) is signal.SIG_IGN:
            pytest.skip(f"{ending.name} is ignored here, as nohup has it")
        # The last to be begun: the first rows may end in any order, and three of them do.
        hangs = [{"contains": f"moraine {n}", "hang": True} for n in (6, 7, 8)]
        options = []
        for name in ("xan", "yma", "zoe"):
            review = [*(hangs if name == "zoe" else []), {"grades": GRADES}]
            path = write_script(tmp_path / f"{name}.toml", review=review)
            options += ["--jury", f"script:{path}"]
        rows = write_rows(tmp_path / "rows.jsonl", [{"text": f"moraine {n}"} for n in range(9)])
        arguments = ["batch", rows, *options, "--history", place, "--concurrency", 3]
        process = subprocess.Popen(  # noqa: S603 - our own interpreter
            [sys.executable, "-m", "witan", *map(str, arguments)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        n_done = len([process.stdout.readline() for _ in range(3)])
        until_cast(place, 3 * 3 + 3 * 2)
        process.send_signal(ending)
        _, err = process.communicate(timeout=60)
        cut_off = n_sessions(place)[1]
        write_script(path, review=[{"grades": GRADES}])
        said = witan(*arguments)

        assert cut_off > 0
        assert process.returncode == (-ending if ending == signal.SIGKILL else 130)
        assert ending == signal.SIGKILL or "run the same command to continue" in err
        assert said.status == 0
        assert len(lines(said.out)) == 9
        assert n_sessions(place) == (9, 0)
        assert json.loads(said.out.splitlines()[0])["row"] <= n_done + 3


def test_concurrent_runs_share_the_rows(witan, tmp_path, place):
    """No row is begun twice; together they do each once."""
    options = []
    for name in ("xan", "yma"):
        path = write_script(tmp_path / f"{name}.toml", review=[{"grades": GRADES, "seconds": 0.2}])
        options += ["--jury", f"script:{path}"]
    rows = write_rows(tmp_path / "rows.jsonl", [{"text": f"moraine {n}"} for n in range(8)])
    arguments = ["batch", rows, *options, "--history", place, "--concurrency", 2]
    command = [sys.executable, "-m", "witan", *map(str, arguments)]
    both = [
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)  # noqa: S603
        for _ in range(2)
    ]
    # Beside other tests, starting the processes alone may take half a minute.
    errors = [process.communicate(timeout=180)[1] for process in both]
    assert {process.returncode for process in both} <= {0, 3}, errors
    again = witan(*arguments, "-o", tmp_path / "out.jsonl", "--json")
    with History.open(place, reading=True) as history:
        begun = [
            event.kind
            for session in history.sessions()
            for event in session.events
            if event.kind == "review_started"
        ]

    assert (again.status, again.json["earlier"]) == (0, 8)
    assert n_sessions(place) == (8, 0)
    assert len(begun) == 16


@pytest.mark.skipif(sys.platform == "win32", reason="this system has no flock")
def test_concurrent_runs_cannot_write_one_file(witan, tmp_path, place, server):
    """The second is refused; with another file it explains how to take rows over."""
    hold = f"{server.removesuffix('/v1')}/hold"
    httpx.get(f"{hold}/0")
    rows = [{"text": f"Design {n}, of worth 8."} for n in range(4)]
    file = write_rows(tmp_path / "rows.jsonl", rows)
    jury = [part for n in range(2) for part in ("--jury", f"m{n}={server}#model-{n}")]
    arguments = ["batch", file, *jury, "--history", place]
    out = tmp_path / "out.jsonl"
    command = [sys.executable, "-m", "witan", *map(str, (*arguments, "-o", out))]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as first:  # noqa: S603
        try:
            deadline = time.monotonic() + 60
            n_begun = 0
            while n_begun < 4:
                assert time.monotonic() < deadline
                time.sleep(0.05)
                with suppress(WitanError):  # the history is being made
                    n_begun = n_sessions(place)[1]
            same = witan(*arguments, "-o", out)
            other = witan(*arguments, "-o", tmp_path / "other.jsonl")
        finally:
            httpx.get(f"{hold}/inf")
    results = lines((tmp_path / "other.jsonl").read_text())

    assert same.status == 2
    assert f"another run of witan is writing {out}; wait, or choose another -o" in same.err
    assert first.returncode == 0
    assert [each["status"] for each in lines(out.read_text())] == ["complete"] * 4
    assert other.status == 3
    assert "(witan resume --take-over)" in results[0]["error"]


def test_a_row_taken_over_during_its_calls_ends_the_batch(tmp_path, place, server):
    """Its results can no longer be stored, so no more money is spent."""
    hold = f"{server.removesuffix('/v1')}/hold"
    httpx.get(f"{hold}/0")
    rows = write_rows(tmp_path / "rows.jsonl", [{"text": "Design 1, of worth 8."}])
    jury = [part for n in range(2) for part in ("--jury", f"m{n}={server}#model-{n}")]
    arguments = ["batch", rows, *jury, "--history", place, "--max-calls", 9]
    command = [sys.executable, "-m", "witan", *map(str, arguments)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as batch:  # noqa: S603
        try:
            deadline = time.monotonic() + 60
            kinds: list[str] = []
            while kinds.count("review_started") < 2:
                assert time.monotonic() < deadline
                time.sleep(0.05)
                with suppress(WitanError), History.open(place, reading=True) as history:
                    kinds = [event.kind for one in history.sessions() for event in one.events]
            with History.open(place) as history:
                [found] = history.find()
                history.claim(found.session, force=True)
        finally:
            httpx.get(f"{hold}/inf")
        errors = batch.communicate(timeout=60)[1]

    assert batch.returncode == 2
    assert "was resumed by another process" in errors


def test_a_terminal_of_80_columns_shows_rate_cost_and_end(tmp_path, place):
    """The bar and words are shortened first, and nothing is cut off."""
    seats = []
    for name in ("xan", "yma", "zoe"):
        path = tmp_path / f"{name}.toml"
        write_script(path, review=[{"grades": GRADES, "seconds": 0.1}])
        seats += ["--jury", f"script:{path}", "--price", f"script:{path}=1000,1000"]
    rows = [{"id": n, "question": "Which?", "text": f"moraine {n}"} for n in range(60)]
    file = write_rows(tmp_path / "rows.jsonl", rows)
    out = tmp_path / "out.jsonl"
    command = ["batch", file, *seats, "--history", place, "--concurrency", 3, "-o", out]
    run = pytest.importorskip("terminals").run_on_terminal  # not every system has such terminals
    status, shown = run([str(each) for each in command], [], columns=80, kind="xterm")
    drawn = re.findall(r"\d+ of 60 rows[^\r\n\x1b]*", shown)
    whole = re.compile(r"\d+ of 60 rows · \$.+ \$\S+ expected · [\d,]+ a minute · .* s left")

    assert status == 0
    assert any(whole.fullmatch(line.rstrip()) for line in drawn)
    assert all(len(line) <= 80 and "…" not in line for line in drawn)
    assert "█" not in shown


@pytest.mark.parametrize("width", [40, 60, 80, 100, 160])
def test_a_progress_line_has_its_numbers_at_every_width(width):
    """They may be thousands of rows and dollars; a wide line has the bar and all words."""
    progress = Progress(12_345, 30_000, 64, 1_234.56, 3_000.25, 4_567.0, 231.6, "self")
    text = progress_text(progress, width)

    for number in ("12,345", "30,000", "$1,234.56", "$3,000.25", "232", "76 min 7 s left"):
        assert number in text
    assert len(text) <= max(width, 67)
    assert ("█" in text) == (width == 160)


@pytest.fixture
def server():
    """The address of a server of the OpenAI protocol whose calls take 20 ms."""
    with council_server(0.02) as url:
        yield f"{url}/v1"


@pytest.mark.slow
def test_three_thousand_rows_survive_two_kills(witan, tmp_path, place, server):
    """No row is lost or doubled, and a kill wastes at most the calls in flight.

    Of a row that is under way all three calls are, and what came back in the last moments is not
    stored yet: two kills waste less than 1% of the calls.
    """
    rows = [{"id": n, "text": f"Design {n}, of worth {n % 8 + 1}."} for n in range(3_000)]
    file = write_rows(tmp_path / "rows.jsonl", rows)
    jury = [part for n in range(3) for part in ("--jury", f"m{n}={server}#model-{n}")]
    arguments = ["batch", file, *jury, "--history", place, "--pass-mark", 6, "--concurrency", 12]
    for n_rows in (500, 900):
        with subprocess.Popen(  # noqa: S603 - our own interpreter
            [sys.executable, "-m", "witan", *map(str, arguments)],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        ) as process:
            assert process.stdout is not None
            for _ in range(n_rows):
                assert process.stdout.readline()
            process.kill()
    out = tmp_path / "out.jsonl"
    said = witan(*arguments, "-o", out, "--json")
    results = lines(out.read_text())
    n_calls = httpx.get(f"{server.removesuffix('/v1')}/count", timeout=60).json()

    assert said.status == 0
    assert said.json["earlier"] >= 900
    assert 9_000 <= n_calls <= 9_090
    assert {each["id"] for each in results} == {str(n) for n in range(3_000)}
    assert len({each["session"] for each in results}) == len(results) == 3_000
    assert n_sessions(place) == (3_000, 0)


class TestMoney:
    """One ceiling applies to all rows and all runs."""

    @pytest.fixture
    def priced(self, jury):
        """The jury at a dollar for each million tokens."""
        seats = [each for each in jury if str(each).startswith("script:")]
        return [*jury, *(part for seat in seats for part in ("--price", f"{seat}=1,1"))]

    def test_a_dry_run_prints_the_cost(self, witan, texts, priced, place):
        """It makes no call."""
        said = witan("batch", texts, *priced, "--dry-run", "--json")

        assert (said.json["rows"], said.json["calls"]) == (6, 18)
        assert 0 < said.json["expected_usd"] < said.json["worst_usd"]
        assert not place.exists()

    def test_the_ceiling_is_never_exceeded(self, witan, texts, priced, place):
        """Rows beyond it are not begun; under a higher one they are."""
        worst = witan("batch", texts, *priced, "--dry-run", "--json").json["worst_usd"] / 6
        poor = witan("batch", texts, *priced, "--max-cost", 1.001 * worst, "--json")
        spent = [each["cost_usd"] for each in lines(poor.out)]
        rich = witan("batch", texts, *priced, "--max-cost", 12 * worst)

        assert poor.status == 4
        assert 0 < len(spent) < 6
        assert sum(spent) <= 1.001 * worst
        assert rich.status == 0
        assert len(lines(rich.out)) == 6
        assert n_sessions(place) == (6, 0)

    def test_a_dry_run_says_whether_the_ceiling_is_high_enough(self, witan, texts, priced):
        """A row starts only if the rest covers its highest cost."""
        plan = witan("batch", texts, *priced, "--dry-run", "--json").json
        row, expected = plan["worst_usd"] / 6, plan["expected_usd"]

        def said(usd):
            report = witan("batch", texts, *priced, "--max-cost", usd, "--dry-run")
            return " ".join(report.out.split())

        assert "too little for any row" in said(0.9 * row)
        assert "probably too little for all of them; for every row" in said(1.01 * row)
        assert "They probably fit the $" in said(expected + 1.01 * row)
        assert "They fit the $" in said(6.01 * row)
        witan("batch", texts, *priced)
        assert "left under the ceiling" not in said(9)

    def test_a_cheap_row_does_not_make_the_ceiling_seem_high_enough(self, witan, tmp_path, priced):
        """The others may cost more than what is then left."""
        sizes = [1, *[400_000] * 4]
        rows = [{"question": f"Why {n}?", "text": "x" * size} for n, size in enumerate(sizes)]
        one, all_rows = (
            write_rows(tmp_path / name, some)
            for name, some in (("one.jsonl", rows[:1]), ("all.jsonl", rows))
        )
        cheap = witan("batch", one, *priced, "--dry-run", "--json").json["worst_usd"]
        expected = witan("batch", all_rows, *priced, "--dry-run", "--json").json["expected_usd"]

        said = witan("batch", all_rows, *priced, "--max-cost", expected + 1.1 * cheap, "--dry-run")

        assert "probably too little for all of them" in " ".join(said.out.split())

    def test_every_report_states_known_and_possible_cost(
        self, witan, texts, priced, place, tmp_path
    ):
        """Refused, planned or done: interrupted calls may be billed."""
        for name in ("xan", "yma", "zoe"):
            write_script(tmp_path / f"{name}.toml", review=[{"hang": True}])
        process = subprocess.Popen(  # noqa: S603 - our own interpreter
            [sys.executable, "-m", "witan", "batch", *map(str, [texts, *priced]), "--max-cost=9"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        until_cast(place, 18, "review_started")
        process.kill()
        process.communicate(timeout=60)
        for name in ("xan", "yma", "zoe"):
            write_script(tmp_path / f"{name}.toml", review=[{"grades": GRADES}])
        plan = witan("batch", texts, *priced, "--dry-run", "--json").json
        held = plan["most_usd"]
        poor = ["--max-cost", 1.01 * held]
        refused = witan("batch", texts, *priced, *poor)
        as_json = json.loads(witan("batch", texts, *priced, *poor, "--json").err)
        planned = witan("batch", texts, *priced, *poor, "--dry-run")
        done = json.loads(witan("batch", texts, *priced, "--json").err)
        after = witan("batch", texts, *priced, "--dry-run", "--json").json

        costs = ("cost_usd", "known_usd", "most_usd")
        assert held > 0
        assert [plan[name] for name in costs] == [None, 0, held]
        assert refused.status == 4
        assert re.search(r"batch · cost unknown, at most \$0\.\d+ · 18 calls", refused.err)
        assert [as_json[name] for name in costs] == [None, 0, held]
        assert re.search(r"18 calls made before: cost unknown, at most \$0\.", planned.out)
        assert "too little for any row" in " ".join(planned.out.split())
        assert done["statuses"] == {"complete": 6}
        assert done["cost_usd"] is None
        assert 0 < done["known_usd"] < done["most_usd"]
        assert done["most_usd"] == pytest.approx(held + done["known_usd"])
        assert [after[name] for name in costs] == [done[name] for name in costs]

    def test_the_ceiling_of_calls_is_never_exceeded(self, witan, texts, jury, place):
        """It spans all runs, and calls that fit it exactly are all made."""
        plan = witan("batch", texts, *jury, "--max-calls", 17, "--dry-run")
        poor = witan("batch", texts, *jury, "--max-calls", 8, "--json")
        rest = witan("batch", texts, *jury, "--max-calls", 18, "--dry-run")
        rich = witan("batch", texts, *jury, "--max-calls", 18, "--json")

        assert "the ceiling leaves 17 calls for them; raise --max-calls" in plan.out
        assert (poor.status, len(lines(poor.out))) == (4, 2)
        assert json.loads(poor.err)["calls"] == 6
        assert "They fit the 12 calls left" in rest.out
        assert (rich.status, len(lines(rich.out))) == (0, 6)
        assert json.loads(rich.err)["calls"] == 18
        assert n_sessions(place) == (6, 0)

    def test_a_ceiling_that_is_too_low_is_refused_with_the_number_needed(self, witan, texts, jury):
        """The error mentions no other ceiling."""
        said = witan("batch", texts, *jury, "--max-calls", 8)

        assert "raise --max-calls to 18" in said.err
        assert "--max-cost" not in said.err

    def test_a_ceiling_of_each_row_is_raised_in_the_configuration(
        self, witan, texts, priced, tmp_path
    ):
        """Options limit all rows together, so the error mentions none."""
        config = tmp_path / "poor.toml"
        config.write_text("[limits]\nmax_cost_usd = 0.0001")
        said = witan("batch", texts, *priced, "--config", config)
        [reason] = {each["error"] for each in lines(said.out)}

        assert re.search(r"raise the ceiling with max_cost_usd=0\.\d+, or lower", reason)
        assert "--max-cost" not in reason

    def test_an_unknown_price_is_refused_under_a_ceiling(self, witan, texts, place, jury):
        """Each such seat is named, and no call is made; finished rows need no price."""
        unpriced = ["--jury", "one=cmd:cat", "--jury", "two=cmd:cat", "--history", place]
        said = witan("batch", texts, *unpriced, "--max-cost", 1)
        began = place.exists()
        witan("batch", texts, *jury)
        again = witan("batch", texts, *jury, "--max-cost", 1)

        assert (said.status, said.out, began) == (2, "", False)
        assert "the price of one and two is unknown, so --max-cost cannot be enforced" in said.err
        assert "--price one=IN,OUT --price two=IN,OUT" in said.err
        assert len(lines(again.out)) == 6


class TestPeople:
    """People's votes in the rows correct the jury."""

    @pytest.fixture
    def voted(self, tmp_path):
        """Twelve texts; the jury likes half of them, and people every third."""
        rows = [
            {"text": f"{'moraine' if n % 2 else 'ice'} {n}", "human": ["pass", n % 3 == 0]}
            for n in range(12)
        ]
        return write_rows(tmp_path / "voted.jsonl", [*rows, {"text": "moraine 12"}])

    def people(self, place, session):
        """People's ballots of a session by reviewer."""
        with History.open(place, reading=True) as history:
            ballots = history.ballots(session)
        return {each.reviewer: each for each in ballots if each.kind == "human"}

    def test_votes_correct_the_pass_rate(self, witan, voted, jury, place):
        """The result equals `estimate` on the stored ballots; the jury's own is shown, too."""
        mark = ["--column", "votes=human", "--pass-mark", 6]
        said = witan("batch", voted, *jury, *mark, "--json")
        with History.open(place, reading=True) as history:
            names = [each.id for each in history.sessions()]
            whole = estimate([b for name in names for b in history.ballots(name)], pass_mark=6)
        text = witan("batch", voted, *jury, *mark)

        people = json.loads(said.err)["people"]
        [line] = people["estimates"]["systems"]
        mean = next(x.mean for x in whole.systems if x.quantity == "pass rate")
        assert (people["rows"], line["quantity"]) == (12, "pass rate")
        assert line["mean"]["corrected"]["value"] == pytest.approx(mean.corrected.value)
        assert line["mean"]["jury"]["value"] == pytest.approx(7 / 13)
        assert line["mean"]["people"]["value"] == pytest.approx(2 / 3)
        assert "Corrected by people's votes on 12 rows, the pass rate is" in text.err
        assert "A pass rate is the share of single grades that pass." in text.err

    @pytest.mark.parametrize("name", ["all.jsonl", "all.csv", "all.parquet"])
    def test_exports_are_clustered_by_question_too(self, witan, tmp_path, jury, place, name):
        """An export keeps the questions, so `estimate` has the intervals of the batch."""
        texts = [(f"{'moraine' if n % 4 < 2 else 'ice'} {n}", f"Why {n // 2}?") for n in range(20)]
        rows = [{"text": text, "question": question, "votes": "pass"} for text, question in texts]
        path = write_rows(tmp_path / "rows.jsonl", rows)
        report = json.loads(witan("batch", path, *jury, "--pass-mark", 6, "--json").err)
        witan("export", "--all", "--history", place, "-o", tmp_path / name)

        again = witan("estimate", tmp_path / name, "--pass-mark", 6, "--json").json

        of_batch = report["people"]["estimates"]
        assert (again["cluster"], again["questions"]) == (of_batch["cluster"], 10)
        rates = [
            each["mean"]["jury"]
            for each in (*of_batch["systems"], *again["systems"])
            if each["system"] and each["quantity"] == "pass rate"
        ]
        assert rates[0] == rates[1]

    def test_the_jury_has_one_mean(self, witan, tmp_path, place):
        """Known severity is taken out of it, also beside people's votes."""
        seats, grades = [], {"xan": 8, "yma": 6, "zoe": 4}
        for name, grade in grades.items():
            path = write_script(tmp_path / f"{name}.toml", review=[grade_words(ice=grade)])
            seats.append(f"script:{path}")
        ballots = [
            {"session": str(n), "reviewer": seat, "grades": {"a": grade + n % 2, "b": 5 + n % 2}}
            for n in range(80)
            for seat, grade in zip(seats, grades.values(), strict=True)
        ]
        witan("import", write_rows(tmp_path / "past.jsonl", ballots), "--history", place)
        rows = [{"text": f"ice {n}", "votes": 5 + n % 3} for n in range(10)]
        path = write_rows(tmp_path / "rows.jsonl", rows)
        jury = ["--jury", seats[0], "--jury", seats[1], "--history", place]

        report = json.loads(witan("batch", path, *jury, "--json").err)
        [text] = report["texts"]
        means = [line["mean"]["jury"] for line in report["people"]["estimates"]["systems"]]
        assert text["grade"] < 6.9  # both jurors are lenient; uncorrected it is 7
        assert [each["value"] for each in means] == [pytest.approx(text["grade"])]

    def test_votes_are_stored_once(self, witan, voted, jury, place):
        """The same command adds none; a changed vote replaces the earlier one, without a call."""
        mark = ["--column", "votes=human", "--pass-mark", 6]
        first = {row["row"]: row for row in lines(witan("batch", voted, *jury, *mark).out)}
        session = first[1]["session"]
        before = self.people(place, session)
        witan("batch", voted, *jury, *mark)
        same = self.people(place, session)
        voted.write_text(voted.read_text().replace('["pass", true]', "[1, 9]"), encoding="utf-8")
        changed = json.loads(witan("batch", voted, *jury, *mark, "--json").err)
        after = self.people(place, session)

        assert before["person 1"].grades == {"text": 1.0}
        assert same == before
        assert after["person 1"].scale != before["person 1"].scale  # 1 is the lowest grade, no pass
        assert after["person 2"].grades == {"text": 9.0}
        assert changed["earlier"] == 13

    def test_a_vote_that_the_file_no_longer_has_is_reported(self, witan, voted, jury):
        """It still counts, and so does its row in the number of rows."""
        mark = ["--column", "votes=human", "--pass-mark", 6]
        witan("batch", voted, *jury, *mark)
        rows = [json.loads(line) for line in voted.read_text().splitlines()]
        del rows[0]["human"]
        write_rows(voted, rows)
        said = witan("batch", voted, *jury, *mark)

        assert "2 votes of earlier runs are counted but no longer in the data set" in said.err
        assert "Corrected by people's votes on 12 rows, the pass rate is" in said.err

    def test_votes_count_without_a_column_of_votes(self, witan, voted, jury):
        """Passes stay passes: a rate is corrected by them, and no mean grade."""
        mark = ["--pass-mark", 6]
        with_votes = witan("batch", voted, *jury, *mark, "--column", "votes=human", "--json")
        without = witan("batch", voted, *jury, *mark)
        as_json = witan("batch", voted, *jury, *mark, "--json")

        before, after = (lines(said.err.splitlines()[-1])[0] for said in (with_votes, as_json))
        assert before["people"]["estimates"]["systems"] == after["people"]["estimates"]["systems"]
        assert "24 votes of earlier runs are counted but no longer in the data set" in without.err
        assert "Corrected by people's votes on 12 rows, the pass rate is" in without.err

    def test_votes_cast_on_the_sessions_correct_the_jury(self, witan, tmp_path, jury, place):
        """`witan vote` on the rows' sessions corrects the next report, without a call."""
        rows = [{"texts": {"old": f"ice {n}", "new": f"moraine {n}"}} for n in range(6)]
        path = write_rows(tmp_path / "rows.jsonl", rows)
        first = witan("batch", path, *jury)
        for each in lines(first.out):
            ranking = ["--as", "ines", "--ranking", "new > old", "--history", place]
            assert witan("vote", each["session"], *ranking).status == 0
        again = witan("batch", path, *jury)

        assert "people" not in first.err
        assert (
            "Corrected by people's votes, new has the highest share of rivals beaten" in again.err
        )
        assert "6 of 6" in again.err

    def test_too_few_votes_leave_the_jury_alone(self, witan, tmp_path, jury):
        """The report says so in place of numbers that do not exist."""
        rows = [{"text": f"moraine {n}"} | ({"votes": 5} if n < 4 else {}) for n in range(6)]
        said = witan("batch", write_rows(tmp_path / "few.jsonl", rows), *jury)

        assert "votes on 4 rows are too few to correct the mean grade; the jury alone" in said.err
        assert "is –" not in said.err

    def test_one_row_is_too_few_for_a_correction(self, witan, tmp_path, jury):
        """The advice on the columns of ballot files does not apply."""
        path = write_rows(tmp_path / "one.jsonl", [{"text": "moraine", "votes": 5}])
        said = witan("batch", path, *jury)

        assert "no correction by people's votes: a system needs ballots" in said.err
        assert "groups ballots" not in said.err

    def test_a_name_may_end_in_equals_signs(self, witan, tmp_path, jury, place):
        """Identifiers in Base64 do."""
        path = write_rows(tmp_path / "b64.jsonl", [{"text": "moraine", "votes": "Zm9v===5"}])
        [row] = lines(witan("batch", path, *jury).out)

        assert [*self.people(place, row["session"])] == ["Zm9v=="]

    def test_a_vote_cast_on_the_session_takes_precedence(self, witan, tmp_path, place):
        """The different vote in the file is reported and left out."""
        path = write_rows(tmp_path / "q.jsonl", [{"question": "Why?", "votes": "ann=bob"}])
        council = [*write_council(tmp_path), "--history", place]
        [row] = lines(witan("batch", path, *council).out)
        with History.open(place, reading=True) as history:
            answers = [*history.answers(row["session"])]
        own = " > ".join(sorted(answers, key="bob".__eq__))
        voter = ["--as", "ann", "--history", place]
        cast = witan("vote", row["session"], *voter, "--ranking", own, "--replace")
        again = witan("batch", path, *council)

        assert cast.status == 0
        assert "1 vote in the data set differs from the same person" in again.err
        assert self.people(place, row["session"])["ann"].groups[-1] == ("bob",)
        assert "again" in self.people(place, row["session"])["ann"].notes

    def test_votes_of_a_file_are_not_marked_as_blind(self, witan, tmp_path, place):
        """The record of a person's votes leaves them out, and says so."""
        path = write_rows(tmp_path / "q.jsonl", [{"question": "Why?", "votes": "ines=bob"}])
        witan("batch", path, *write_council(tmp_path), "--history", place)
        said = witan("votes", "--as", "ines", "--history", place)

        assert "1 vote not known to be blind: not compared" in said.out + said.err

    @pytest.mark.parametrize("kind", ["csv", "parquet"])
    def test_grades_are_read_from_every_format(self, witan, tmp_path, jury, kind):
        """CSV has several in one cell, Parquet a list."""
        path = tmp_path / f"rows.{kind}"
        if kind == "csv":
            cells = "".join(f"moraine {n},ann={n + 2}; bob=8\n" for n in range(6))
            path.write_text(f"text,votes\n{cells}", encoding="utf-8")
        else:
            columns = {"text": [f"moraine {n}" for n in range(6)]}
            columns["votes"] = [[n + 2.0, 8.0] for n in range(6)]
            pq.write_table(pa.table(columns), path)
        said = witan("batch", path, *jury, "--json")

        [line] = json.loads(said.err)["people"]["estimates"]["systems"]
        assert line["quantity"] == "mean grade"
        assert line["mean"]["people"]["value"] == pytest.approx(6.25)
        assert line["mean"]["jury"]["value"] == pytest.approx(9)

    def test_votes_on_questions_name_members(self, witan, tmp_path, place):
        """The report has the share of rivals that each member beats."""
        rows = [{"question": f"Why {n}?", "votes": "bob" if n else "tie"} for n in range(6)]
        path = write_rows(tmp_path / "q.jsonl", rows)
        said = witan("batch", path, *write_council(tmp_path), "--history", place, "--json")

        systems = json.loads(said.err)["people"]["estimates"]["systems"]
        people = {each["system"]: each["mean"]["people"]["value"] for each in systems}
        assert people["bob"] == pytest.approx(5.5 / 6)
        assert {each["quantity"] for each in systems} == {"share of rivals beaten"}

    def test_votes_on_several_texts_have_a_conclusion(self, witan, tmp_path, jury):
        """It names the best text, and whether the next one differs."""
        rows = [
            {
                "question": f"{n}?",
                "texts": {"old": f"ice {n}", "new": f"moraine {n}"},
                "votes": vote,
            }
            for n, vote in enumerate(["new", "old"] * 6)
        ]
        said = witan("batch", write_rows(tmp_path / "rows.jsonl", rows), *jury)

        assert "Corrected by people's votes, new has the highest share of rivals beaten" in said.err
        assert "old is too close to call: the difference is" in said.err

    @pytest.mark.parametrize(
        ("row", "words"),
        [
            ({"text": "a", "votes": 11}, ":1: field 'votes' has the vote 11; expected a grade"),
            (
                {"text": "a", "votes": "[" * 100_000},
                f"has the vote '{'[' * 29}…{'[' * 28}'; expected a grade",
            ),
            ({"texts": {"a": "x", "b": "y"}, "votes": "c"}, "expected a, b or tie"),
            ({"texts": {"a": "x", "tie": "y"}, "votes": "a"}, "rename the text tie"),
            ({"question": "Why?", "votes": "dan"}, "row 1 cannot be 'dan'; expected"),
            (
                {"text": "a", "votes": "pass"},
                "a grade from 1 to 10, as there is no pass mark",
            ),
            ({"text": "a", "votes": "=5"}, "has the vote '5', which is by a person without a name"),
            ({"text": "a", "votes": {"": 5}}, "which is by a person without a name"),
            ({"text": "a", "votes": {"People": 5}}, "reserved for all people together"),
            ({"text": "a", "votes": "human-2=5"}, "reserved for people without a name"),
            (
                {"text": "a", "votes": "ann=8; ann =2"},
                "is one of 2 votes by ann; a person votes once",
            ),
            ({"text": "a", "votes": '{"ann": 8, "ann": 2}'}, "is one of 2 votes by ann"),
            ({"text": "a", "votes": "ann=5, bob=6"}, "'ann=5, bob'; separate votes by semicolons"),
            (
                {"text": "a", "votes": "xan=5"},
                "votes on row 1 cannot be 'xan'; expected a name that",
            ),
            ({"text": "a", "votes": "text=5"}, "is by text, the name of a text; write the name of"),
        ],
    )
    def test_an_invalid_vote_is_refused(self, witan, tmp_path, jury, place, row, words):
        """No call is made."""
        path = write_rows(tmp_path / "rows.jsonl", [row])
        seats = [*write_council(tmp_path), "--history", place] if "question" in row else jury
        said = witan("batch", path, *seats)

        assert (said.status, said.out) == (2, "")
        assert words in said.err


class TestRefusals:
    """Errors state problem, place and remedy."""

    @pytest.mark.parametrize(
        ("content", "options", "words"),
        [
            ('{"prompt": "x"}', [], ":1: has no question or text, but prompt; name its columns"),
            ('{"question": "x"}', ["--column", "question=q"], ":1: has no q or text, but question"),
            ("{}", [], "has no question or text, but no column; name its columns"),
            ('{"question": "x"}\n{"question": null}', [], ":2: has nothing in question"),
            ('{"texts": []}', [], ":1: has nothing in texts"),
            ('{"text": "x"}\n{"question": "y"}', [], ":2: has no text, but row 1 has one"),
            ('{"question": "y"}\n{"text": "x"}', [], ":2: has a text, but row 1 has none"),
            ('{"text": "x"}\n{"text', [], ":2"),
            ('{"text": "x"}\n{x', [], "expected one JSON object per line"),
            ('{"text": "x"}', ["--column", "id=number"], "has no column 'number'; it has text"),
            ('{"question": "x", "text": "y"}', ["--text", "nope"], "has no column 'nope'"),
            ('{"text": ["x"]}', [], "field 'text' must be text"),
            ('{"question": "x", "texts": "y"}', [], "'texts' must be a list of texts, or texts by"),
            ('{"texts": ["x", null]}', [], "field 'texts' has an empty text"),
            ("", [], "has no rows; expected JSON Lines"),
            ('# a script\n[[answer]]\ntext = "x"', [], "JSON, CSV and Parquet are read"),
            ("{}", ["--max-calls", 2.5], "'2.5' is not a valid whole number"),
            ('{"text": "x"}', ["--max-cost", "nan"], "nan is not a finite number"),
            ('{"text": "x"}', ["--max-cost", "inf"], "inf is not a finite number"),
            ('{"text": "x"}', ["--pass-mark", "nan"], "nan is not a finite number"),
            ('{"question": "x"}', ["--margin", "inf"], "inf is not a finite number"),
            (
                '{"text": "x"}',
                ["--pairs", 2],
                "row 1 has a single text, so there is no pair to compare",
            ),
            ('{"texts": ["x", "y"]}', ["--pairs", 2, "--pass-mark", 6], "pairs are not graded"),
            ('{"question": "x"}', ["--pass-mark", 6], "--pass-mark is for texts"),
            ('{"text": "x"}', ["--expected", "x"], "--expected is for several texts per row"),
            ('{"text": "x", "expected": true}', [], "the pass mark cannot be None"),
            (
                '{"text": "x", "expected": "It is so"}',
                [],
                "passed or failed; for a right answer, write --column reference=expected",
            ),
            ('{"text": "x"}', ["--mode", "best"], "--mode is for questions"),
            ('{"text": "x"}', ["--spend", "adaptive"], "a single text without a pass mark"),
            ('{"text": "x"}', ["--no-rubric-scoring"], "without grades no text can pass"),
            ('{"texts": ["x", "y"]}', ["--level", 0.4], "above 0.5"),
            ('{"question": " "}', ["--rule", "copeland"], "expected something to ask"),
            ('{"text": "x"}', ["--column", "txt=y"], "write NAME=COLUMN"),
            ('{"text": "x"}', ["-o", "nowhere/out.jsonl"], "cannot be written"),
        ],
    )
    def test_misuse_is_refused(self, witan, tmp_path, jury, content, options, words):
        """No call is made."""
        file = tmp_path / "rows.jsonl"
        file.write_text(content)
        said = witan("batch", file, *jury, *options)

        assert said.status == 2
        assert words in " ".join(said.err.split())

    @pytest.mark.parametrize(
        "options",
        [
            ["--mode", "best"],
            ["--rule", "bordda"],
            ["--pairs", 3],
            ["-o", "nowhere/out.jsonl"],
            ["--jury", "script:nowhere.toml"],
            ["--max-cost", 1, "--price", "nobody=1,1"],
            ["--spark"],
            ["--dry-run"],
        ],
        ids=str,
    )
    def test_a_batch_that_does_not_run_creates_no_history(self, witan, tmp_path, jury, options):
        """Nor a folder for it."""
        rows = write_rows(tmp_path / "rows.jsonl", [{"text": "x"}])
        new = tmp_path / "new" / "history.sqlite"
        said = witan("batch", rows, *jury[:-2], "--history", new, *options)

        assert said.status == (0 if "--dry-run" in options else 2)
        assert not new.parent.exists()
        if "--spark" in options:
            assert str(new) in said.err

    @pytest.mark.parametrize("options", [[], ["--dry-run"]], ids=["run", "plan"])
    def test_a_batch_without_a_history_is_refused(self, witan, tmp_path, jury, options):
        """Its plan as well, whether or not there is a file."""
        rows = write_rows(tmp_path / "rows.jsonl", [{"text": "x"}])
        config = tmp_path / "witan.toml"
        config.write_text('[history]\nenabled = false\nurl = "new.sqlite"\n')
        said = witan("batch", rows, *jury[:-2], "--config", config, *options)

        assert (said.status, said.out) == (2, "")
        assert "a batch needs a history, and history.enabled is false" in " ".join(said.err.split())

    @pytest.mark.skipif(sys.platform == "win32", reason="Windows has no named pipes in folders")
    def test_ctrl_c_while_rows_are_read_says_that_no_model_was_called(self, tmp_path):
        """Its status is that of an interrupted batch."""
        pipe = tmp_path / "rows.jsonl"
        os.mkfifo(pipe)
        command = [sys.executable, "-m", "witan", "batch", pipe]
        with (
            subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process,  # noqa: S603 - our own command
            pipe.open("w", encoding="utf-8"),  # opened once the batch reads it
        ):
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=60)

        assert process.returncode == 130
        assert err == "interrupted before the first row; no model was called\n"

    def test_ctrl_c_while_stored_rows_are_read_does_not_count_them(self, witan, tmp_path, jury):
        """It does not say that no row is done, as earlier runs did them all."""
        rows = write_rows(tmp_path / "rows.jsonl", [{"text": f"a moraine {n}"} for n in range(70)])
        witan("batch", rows, *jury)
        command = [sys.executable, "-m", "witan", "batch", *map(str, [rows, *jury])]
        with subprocess.Popen(  # noqa: S603 - our own interpreter
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout is not None
            assert process.stdout.readline()  # the pipe is too small for all the results
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=60)

        assert process.returncode == 130
        assert err == "interrupted before the first row; no model was called\n"

    def test_help_names_files_and_exit_statuses(self, witan):
        """It names the signals that interrupt a batch, too."""
        said = " ".join(witan("batch", "--help").out.split())

        assert "FILE is JSON Lines, a JSON list, CSV or Parquet" in said
        assert "130 interrupted by Ctrl-C, SIGTERM or a closed terminal." in said

    def test_an_invalid_history_is_refused_without_advice_for_other_commands(
        self, witan, tmp_path, texts, jury
    ):
        """A batch needs its history, so the error omits --no-history."""
        junk = tmp_path / "junk.sqlite"
        junk.write_text("junk")
        batch = witan("batch", texts, *jury[:-2], "--history", junk)
        judge = witan("judge", texts, *jury[:-2], "--history", junk)

        assert (batch.status, judge.status) == (2, 2)
        assert "choose another file" in batch.err
        assert "--no-history" not in batch.err
        assert "or use --no-history" in judge.err

    @pytest.mark.parametrize("kind", ["csv", "parquet"])
    @pytest.mark.parametrize("command", ["batch", "tally", "import"])
    def test_a_duplicate_header_is_refused(self, witan, tmp_path, jury, command, kind):
        """The error has both columns; every reader of tables refuses it."""
        file = tmp_path / f"rows.{kind}"
        names = ["reviewer", "text", "candidate", "text", "grade", "", ""]
        cells = ["ada", "a moraine", "m", "ice", "7", "", ""]
        if kind == "csv":
            file.write_text(f"{','.join(names)}\n{','.join(cells)}\n")
        else:
            pq.write_table(pa.Table.from_arrays([pa.array([cell]) for cell in cells], names), file)
        more = jury if command == "batch" else jury[-2:] if command == "import" else []
        said = witan(command, file, *more)

        assert said.status == 2
        assert f"{file} has the heading 'text' more than once, in columns 2 and 4" in said.err

    def test_results_do_not_overwrite_the_data_set(self, witan, texts, jury):
        before = texts.read_text()
        said = witan("batch", texts, *jury, "-o", texts)

        assert said.status == 2
        assert "is the data set itself" in said.err
        assert texts.read_text() == before

    def test_results_do_not_overwrite_another_file(self, witan, texts, jury, tmp_path):
        """Only results of a batch are replaced, even with a truncated last line."""
        out = tmp_path / "out.jsonl"
        witan("batch", texts, *jury, "-o", out)
        results = out.read_bytes()
        out.write_bytes(results[:-20])
        again = witan("batch", texts, *jury, "-o", out)

        assert again.status == 0
        assert sorted(out.read_bytes().splitlines()) == sorted(results.splitlines())
        for foreign in (b'{"hand":1}\n', b"notes", b"\xff\xfe\n", b"[" * 100_000 + b"\n"):
            out.write_bytes(results + foreign)
            said = witan("batch", texts, *jury, "-o", out)

            assert said.status == 2
            assert str(out) in said.err
            assert "name another file with -o" in said.err
            assert out.read_bytes() == results + foreign

    def test_a_closed_pipe_ends_the_batch(self, texts, jury):
        """The status is 141, without a traceback."""
        command = [sys.executable, "-m", "witan", "batch", *map(str, (texts, *jury))]
        with subprocess.Popen(  # noqa: S603 - our own interpreter
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout is not None
            process.stdout.close()
            assert process.stderr is not None
            err = process.stderr.read()

        assert process.returncode == 141
        assert "Traceback" not in err

    def test_a_missing_file_is_reported(self, witan, jury):
        said = witan("batch", "none.jsonl", *jury)

        assert said.status == 2
        assert "none.jsonl" in said.err
