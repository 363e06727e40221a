"""``witan ask`` and ``witan plan``, black box."""
# ruff: noqa: S603 - every process started here is our own command

import json
import os
import re
import signal
import socket
import subprocess
import time
from http.server import BaseHTTPRequestHandler

import pytest

from handlers import QuietHandler, run_handler
from processes import run_witan
from recorded import HANGS, WITAN, interrupted, isolate
from scripts import write_council, write_script
from sessions import Story
from witan.deliberation.record import session_to_json
from witan.deliberation.session import Session


@pytest.fixture(autouse=True)
def _nothing_configured(tmp_path, monkeypatch):
    """Hide every configuration, key and state of the machine from the tests."""
    isolate(tmp_path, monkeypatch)


class TestText:
    """The answer on standard output, everything else on standard error."""

    def test_stdout_has_only_the_final_answer(self, witan, seats):
        """The trust line goes to stderr."""
        said = witan("ask", "Is it so?", *seats)

        assert said.status == 0
        assert said.out == "All told: so.\n"
        assert said.err.startswith("simulated · 3 of 3 reviewers · ")
        assert said.err.count("\n") == 1

    def test_the_legend_of_cited_labels_is_on_stderr(self, witan, tmp_path):
        """Above the trust line, also if stdout is a file."""
        cites = {"synthesis": [{"prefers": ["Ada says so."], "text": "So says [{1}]."}]}
        said = witan("ask", "Is it so?", *write_council(tmp_path, chair=cites))

        legend, trust = said.err.splitlines()
        cited = said.out.removeprefix("So says ").removesuffix(".\n")
        assert f"{cited} ada" in legend.split(", ")
        assert "reviewers" in trust

    def test_the_legend_goes_into_the_text_on_request(self, witan, tmp_path):
        """``--legend`` puts legend and trust below the text; ``--quiet`` then clears stderr."""
        cites = {"synthesis": [{"prefers": ["Ada says so."], "text": "So says [{1}]."}]}
        seats = write_council(tmp_path, chair=cites)
        said = witan("ask", "Is it so?", *seats, "--legend", "--quiet")

        text, legend, trust = said.out.rstrip("\n").split("\n\n")
        assert text.startswith("So says [")
        assert " ada" in legend
        assert trust.startswith("simulated · 3 of 3 reviewers · ")
        assert said.err == ""

    @pytest.mark.parametrize("option", ["--json", "--events"])
    def test_the_legend_is_refused_with_json_or_events(self, witan, seats, option):
        """Before any call."""
        said = witan("ask", "Is it so?", *seats, "--legend", option)

        assert said.status == 2
        assert "--legend is for the text" in said.err

    def test_a_degraded_session_says_so_when_piped(self, witan, tmp_path):
        """With --quiet the only line on stderr says that it is simulated, and what is missing."""
        silent = {"review": [{"text": "I would rather not."}]}
        said = witan("ask", "Is it so?", "--quiet", *write_council(tmp_path, cyd=silent))

        assert said.status == 0
        assert said.err.startswith("simulated · degraded: cyd")
        assert said.err.count("\n") == 1

    def test_without_synthesis_the_standings_are_the_answer(self, witan, seats):
        """``--no-synthesis`` ends with the standings as text."""
        said = witan("ask", "Is it so?", "--no-synthesis", *seats)

        assert "ada" in said.out
        assert "votes" in said.out

    def test_the_best_answer_needs_no_chairman(self, witan, seats):
        """The text is that answer unchanged."""
        said = witan("ask", "Is it so?", "--mode", "best", "--rule", "borda", *seats)

        assert "Ada says so." in said.out

    def test_escape_sequences_of_the_text_are_shown(self, witan, tmp_path):
        """Its lines are kept."""
        chair = {"synthesis": [{"text": "one\n\u001b[2Jtwo"}]}
        said = witan("ask", "Is it so?", *write_council(tmp_path, chair=chair))

        assert said.out == "one\n\\x1b[2Jtwo\n"


class TestRecord:
    """The same session as a record, and as a stream."""

    def test_json_is_the_record_and_save_writes_the_same_events(self, witan, seats, tmp_path):
        """``--json`` and ``--save`` give the same events, marked as simulated seat by seat."""
        path = tmp_path / "session.json"
        said = witan("ask", "Is it so?", "--json", "--save", path, "--seed", 7, *seats)

        assert said.json["events"] == json.loads(path.read_text(encoding="utf-8"))["events"]
        opened = said.json["events"][0]
        assert opened["question"] == "Is it so?"
        assert opened["seed"] == 7
        assert all(seat["simulated"] for seat in opened["seats"])

    def test_events_are_lines_of_json_numbered_without_gaps(self, witan, seats):
        """``--events`` prints the stream, deltas included, from the opening to the end."""
        said = witan("ask", "Is it so?", "--events", *seats)

        events = [json.loads(line) for line in said.lines]
        assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
        kinds = [event["event"] for event in events]
        assert (kinds[0], kinds[-1]) == ("session_opened", "session_closed")
        assert {"answer_delta", "synthesis_delta"} <= set(kinds)

    def test_a_session_is_continued_from_its_final_answer(self, witan, seats, tmp_path):
        """``--continue`` passes on the question and the final answer."""
        first, second = tmp_path / "first.json", tmp_path / "second.json"
        witan("ask", "Is it so?", "--save", first, *seats)
        said = witan("ask", "Why?", "--continue", first, "--save", second, *seats)

        assert said.status == 0
        opened = json.loads(second.read_text(encoding="utf-8"))["events"][0]
        texts = [message["text"] for message in opened["conversation"]]
        assert texts == ["Is it so?", "All told: so."]

    def test_a_file_is_continued_without_a_look_at_the_history(self, witan, seats, monkeypatch):
        """A server that does not reply delays nobody who wants nothing of it."""
        witan("ask", "Is it so?", "--save", "first.json", *seats)
        with socket.create_server(("127.0.0.1", 0)) as server:
            server.setblocking(False)
            address = f"postgresql://127.0.0.1:{server.getsockname()[1]}/none"
            monkeypatch.setenv("WITAN_HISTORY", address)
            said = witan("ask", "Why?", "--continue", "first.json", "--no-history", *seats)

            with pytest.raises(BlockingIOError):
                server.accept()
        assert said.status == 0

    def test_files_are_attached_to_the_question(self, witan, tmp_path):
        """Members receive their text, and the record has it by name."""
        notes = tmp_path / "notes.txt"
        notes.write_text("the secret word is tulip", encoding="utf-8")
        ada = {"answer": [{"contains": "tulip", "text": "Ada says it is tulip."}]}
        said = witan("ask", "Which?", "-f", notes, "--json", *write_council(tmp_path, ada=ada))

        assert said.status == 0
        assert said.json["events"][0]["files"] == {str(notes): "the secret word is tulip"}
        assert "Ada says it is tulip." in said.out


class TestStatus:
    """The exit status says what became of the session."""

    def test_fewer_than_two_answers_make_no_quorum(self, witan, tmp_path):
        """The single answer is returned, degraded, with status 3."""
        down = {"answer": [{"error": "is down", "status": 401}]}
        said = witan("ask", "Is it so?", *write_council(tmp_path, bob=down, cyd=down))

        assert said.status == 3
        assert said.out == "Ada says so.\n"
        assert "degraded: " in said.err

    def test_fewer_ballots_than_the_quorum_declare_nothing(self, witan, tmp_path):
        """With a quorum of three and two readable reviews there is no outcome."""
        prose = {"review": [{"text": "They are all fine."}]}
        said = witan("ask", "Is it so?", "--quorum", 3, *write_council(tmp_path, cyd=prose))

        assert said.status == 3
        assert "no outcome" in said.err

    def test_a_ceiling_that_prevents_an_outcome_is_over_budget(self, witan, tmp_path):
        """Expensive members are not called, and one line says why."""
        config = tmp_path / "own.toml"
        tables = "\n".join(
            f'[[members]]\nseat = "script:{tmp_path}/{name}.toml"\nprice = [1000.0, 1000.0]'
            for name in ("ada", "bob", "cyd")
        )
        write_council(tmp_path)
        config.write_text(tables, encoding="utf-8")
        said = witan("ask", "Is it so?", "--config", config, "--max-cost", "0.001")

        assert (said.status, said.out) == (4, "")
        assert "ceiling of $0.0010" in said.err

    def test_a_tie_has_its_own_status_only_where_a_winner_is_required(self, witan, tmp_path):
        """Three who prefer nobody are answered with 0, and with 5 under ``--require-winner``."""
        same = {"review": [{"prefers": []}]}
        seats = write_council(tmp_path, ada=same, bob=same, cyd=same)

        assert witan("ask", "Is it so?", *seats).status == 0
        assert witan("ask", "Is it so?", "--require-winner", *seats).status == 5

    @pytest.mark.parametrize(("verdict", "status"), [("APPROVE", 0), ("REJECT", 1)])
    def test_a_verdict_is_the_status(self, witan, tmp_path, verdict, status):
        """As a gate, approval is 0 and rejection 1."""
        answers = {"answer": [{"text": f"So.\nVERDICT: {verdict}"}]}
        chair = {"synthesis": [{"text": f"So.\nVERDICT: {verdict}"}]}
        seats = write_council(tmp_path, ada=answers, bob=answers, cyd=answers, chair=chair)
        said = witan("ask", "May it pass?", "--mode", "verdict", *seats)

        assert said.status == status
        assert "3 of 3 members approve" in said.err or "0 of 3 members approve" in said.err
        assert ("approved" in said.err) == (status == 0)

    def test_members_without_a_verdict_are_not_counted_as_votes(self, witan, tmp_path):
        """Where no member gives one, the last line says that and no share of nothing."""
        answers = {"answer": [{"text": "It depends."}]}
        chair = {"synthesis": [{"text": "So.\nVERDICT: REJECT"}]}
        seats = write_council(tmp_path, ada=answers, bob=answers, cyd=answers, chair=chair)
        said = witan("ask", "May it pass?", "--mode", "verdict", *seats)

        assert "none of 3 members" in said.err
        assert " of 0 " not in said.err

    def test_one_approval_is_worded_as_one(self, witan, tmp_path):
        """The verb agrees with the number."""
        yes, no = ({"answer": [{"text": f"So.\nVERDICT: {v}"}]} for v in ("APPROVE", "REJECT"))
        chair = {"synthesis": [{"text": "So.\nVERDICT: REJECT"}]}
        seats = write_council(tmp_path, ada=yes, bob=no, cyd=no, chair=chair)
        said = witan("ask", "May it pass?", "--mode", "verdict", *seats)

        assert "1 of 3 members approves" in said.err


class TestMisuse:
    """What cannot be asked is refused in one sentence, with status 2."""

    @pytest.mark.parametrize("command", ["ask", "plan"])
    @pytest.mark.parametrize(
        ("words", "quoted"),
        [
            (["What", "is", "UTC"], "'What is UTC'"),
            (["What", "is", "$HOME", "or", "`id`?"], "'What is $HOME or `id`?'"),
            (["What's", "UTC"], "'What'\"'\"'s UTC'"),
        ],
    )
    def test_a_question_without_quotes_is_shown_with_them(self, witan, command, words, quoted):
        """The suggestion reaches the command as one argument, with nothing expanded in it."""
        said = witan(command, *words)

        assert said.status == 2
        assert f" {len(words)} arguments" in said.err
        assert said.err.endswith(f": {quoted}\n")

    @pytest.mark.parametrize(
        ("arguments", "words"),
        [
            (["", "SEATS"], "question is empty"),
            (["  \n", "SEATS"], "question is empty"),
            (["Q", "SEATS", "--rule", "bordda"], "did you mean 'borda'?"),
            (["Q", "SEATS", "--rubric", "genral"], "did you mean 'general'?"),
            (["Q", "SEATS", "-f", "nowhere.txt"], "nowhere.txt cannot be read"),
            (["Q", "SEATS", "-f", "."], ". cannot be read"),
            (["Q", "SEATS", "-f", "latin.txt"], "latin.txt is not UTF-8 text"),
            (["Q", "SEATS", "--continue", "nowhere.json"], "nowhere.json"),
            (["Q", "SEATS", "--continue", "broken.json"], "broken.json"),
            (["Q", "SEATS", "--save", "no/where.json"], "no is not a directory"),
            (["Q", "SEATS", "--save", "-"], "--json prints the record on standard output"),
            (["Q", "SEATS", "--json", "--events"], "--json or --events"),
            (["-", "SEATS", "-f", "-"], "only once"),
            (["Q", "SEATS", "--mode", "consent"], "consent"),
            (["Q", "SEATS", "--review-rounds", "3"], "3 is not in the range 1<=x<=2"),
            (["Q", "SEATS", "--quorum", "0"], "0 is not in the range x>=1"),
            (["Q", "SEATS", "--max-cost", "-1"], "-1.0 is not in the range x>=0"),
            (["Q", "SEATS", "--seed", "-1"], "'--seed': -1 is not in the range"),
            (["Q", "--member", "script:ada.toml"], "at least two members"),
            (["Q", "SEATS", "--member", "opnai:gpt"], "openai"),
            (["Q", "SEATS", "--member", ""], "empty"),
            (["Q", "SEATS", "--config", "nowhere.toml"], "nowhere.toml"),
            (["Q", "SEATS", "--continue", "bare.json"], "bare.json: has no final answer"),
            (["Q", "SEATS", "--continue", "half.json"], "half.json: was interrupted before"),
        ],
    )
    def test_misuse_is_one_sentence(self, witan, seats, tmp_path, arguments, words):
        """No traceback, an empty stdout, and a remedy."""
        (tmp_path / "latin.txt").write_bytes("naïve".encode("latin-1"))
        bare = Story("a", "b").answers(a="A.", b="B.").closed()
        half = Story("a", "b").answers(a="A.")
        for name, story in (("bare", bare), ("half", half)):
            record = session_to_json(Session.of(story))
            (tmp_path / f"{name}.json").write_text(record, encoding="utf-8")
        (tmp_path / "broken.json").write_text('{"witan_session": 1, "events": [', encoding="utf-8")
        given = [part for a in arguments for part in (seats if a == "SEATS" else [a])]
        said = witan("ask", *given)

        assert said.status == 2
        assert said.out == ""
        assert words in said.err
        assert said.err.startswith("witan: ")
        assert said.err.count("\n") == 1


class TestPipe:
    """The command between other commands."""

    def run(self, *arguments: object, **options) -> subprocess.CompletedProcess[str]:
        """Run it as a process."""
        command = [*WITAN, *map(str, arguments)]
        return subprocess.run(
            command, capture_output=True, text=True, timeout=60, check=False, **options
        )

    def test_the_question_is_piped_in(self, seats):
        """Without an argument, and with ``-``, standard input is the question."""
        for argument in ([], ["-"]):
            done = self.run("ask", *argument, *seats, "--json", input="Is it so?\n")

            assert json.loads(done.stdout)["events"][0]["question"] == "Is it so?\n"

    def test_nothing_piped_in_is_no_question(self, seats):
        """An empty standard input is refused."""
        done = self.run("ask", *seats, stdin=subprocess.DEVNULL)

        assert done.returncode == 2
        assert "question is empty" in done.stderr

    @pytest.mark.slow
    @pytest.mark.alone
    def test_a_session_takes_little_more_than_a_second(self, seats):
        """With instant members it ends 1.3 s after the process starts."""
        seconds = []
        while not seconds or (min(seconds) >= 1.3 and len(seconds) < 6):  # the machine is shared
            start = time.perf_counter()
            self.run("ask", "Is it so?", *seats, stdin=subprocess.DEVNULL)
            seconds.append(time.perf_counter() - start)

        assert min(seconds) < 1.3

    @pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGPIPE")
    def test_a_closed_pipe_ends_the_session(self, tmp_path):
        """Hanging calls are cancelled when nobody reads the events."""
        seats = write_council(tmp_path, cyd={"answer": HANGS})
        with subprocess.Popen(
            [*WITAN, "ask", "Is it so?", "--events", "--no-history", *seats],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "XDG_STATE_HOME": str(tmp_path)},
        ) as process:
            process.stdout.close()
            said = process.stderr.read().decode()

        assert process.returncode == 128 + signal.SIGPIPE
        assert f"resume with: witan resume {tmp_path}/witan/interrupted/" in said


@pytest.mark.skipif(os.name == "nt", reason="Windows sends no signals to a process")
class TestInterrupt:
    """Ctrl-C keeps the replies so far."""

    @pytest.mark.parametrize(
        "number",
        [
            signal.SIGINT,
            pytest.param(signal.SIGTERM, marks=pytest.mark.slow),
            pytest.param(signal.SIGHUP, marks=pytest.mark.slow),
        ],
    )
    def test_replies_are_stored_and_the_session_can_be_resumed(self, witan, tmp_path, number):
        """Two of three answers are stored; resuming calls the third alone."""
        if signal.getsignal(number) is signal.SIG_IGN:
            pytest.skip(f"{number.name} is ignored here, as nohup has it")
        path = tmp_path / "half.json"
        seats = write_council(tmp_path, cyd={"answer": HANGS})
        given = ("--save", path, "--no-history", *seats)
        status, err = interrupted("ask", "Is it so?", *given, number=number)

        assert status == 130
        again = f"witan resume {path} --no-history"
        assert all(fact in err for fact in ("2 of 3 answers saved", f"resume with: {again}"))

        write_council(tmp_path, ada={"answer": HANGS})
        said = witan(*again.split()[1:])

        assert said.status == 0
        assert said.out == "All told: so.\n"
        held = json.loads(path.read_text(encoding="utf-8"))
        assert held["status"] == "complete"

    @pytest.mark.slow
    def test_json_prints_the_interrupted_record(self, tmp_path):
        """One object with the status interrupted."""
        asked = tmp_path / "asked"
        hanging = ("--member", f"cmd:sh -c 'touch {asked}; exec sleep 60'")
        seats = [*write_council(tmp_path, cyd=None), *hanging]
        with subprocess.Popen(
            [*WITAN, "ask", "Is it so?", "--json", *seats],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        ) as process:
            while not asked.exists() and process.poll() is None:
                time.sleep(0.05)  # nothing is said before
            process.send_signal(signal.SIGINT)
            out, _ = process.communicate(timeout=60)

        assert process.returncode == 130
        assert json.loads(out)["status"] == "interrupted"

    @pytest.mark.slow
    def test_without_a_history_the_record_goes_to_the_state_folder(self, tmp_path):
        """The path is printed, and the session can be shown from it."""
        seats = write_council(tmp_path, cyd={"answer": HANGS})
        status, err = interrupted("ask", "Is it so?", "--no-history", *seats)

        path = re.fullmatch(r"interrupted; .*: witan resume (.*) --no-history\n", err)[1]
        assert status == 130
        assert os.stat(path).st_mode & 0o777 == 0o600  # noqa: PTH116
        assert os.stat(os.path.dirname(path)).st_mode & 0o777 == 0o700  # noqa: PTH116, PTH120
        assert path.startswith(str(tmp_path / "state" / "witan" / "interrupted"))
        shown = run_witan("show", path, check=True)
        assert "interrupted" in shown.stdout.splitlines()[0]
        assert "Ada says so." in shown.stdout
        assert shown.stdout.endswith(f"witan resume {path}\n")


class _Counter(QuietHandler, BaseHTTPRequestHandler):
    """A server that counts requests."""

    calls: list[str]

    def do_GET(self):
        """Count the request and reply 404."""
        self.calls.append(self.path)
        self.send_error(404)

    do_POST = do_GET  # noqa: N815 - the name that the standard library calls


@pytest.fixture
def counter():
    """A server on loopback without a model; it records request paths."""
    handler = type("Counter", (_Counter,), {"calls": []})
    with run_handler(handler) as url:
        yield f"{url}/v1", handler.calls


class TestPlan:
    """``witan plan`` prints what a question would cost."""

    def test_no_call_is_made(self, witan, counter):
        """The members' server receives nothing, and every seat has its lines."""
        url, calls = counter
        said = witan("plan", "Which?", "--member", f"a={url}#x", "--member", f"b={url}#y")

        assert said.status == 0
        assert calls == []
        assert [line.split()[:2] for line in said.lines if line.startswith(("a ", "b "))][:2]

    def test_it_states_how_many_answers_the_reviewers_can_separate(self, witan):
        """Three reviewers separate distant answers, four closer ones; JSON has the same numbers."""
        members = [
            word for name in "abcd" for word in ("--member", f"{name}=http://192.0.2.1/v1#m")
        ]

        three, four = witan("plan", "Which?", *members[:6]), witan("plan", "Which?", *members)
        found = witan("plan", "Which?", "--json", *members).json["separation"]

        said = "3 members separate answers 5.4 grades apart (80% of the time); 4 separate 4.4."
        assert said in " ".join(three.out.split())
        assert all(
            fact in " ".join(four.out.split()) for fact in ("4.4 grades apart", "5 separate 3.5")
        )
        assert (found["reviewers"], round(found["grades"], 1), found["power"]) == (4, 4.4, 0.8)
        assert (found["next_reviewers"], round(found["next_grades"], 1)) == (5, 3.5)
        jury = [w for name in "xyz" for w in ("--jury", f"{name}=http://192.0.2.1/v1#{name}")]
        judged = " ".join(witan("plan", "Which?", *members[:6], *jury).out.split())
        assert "3 reviewers separate answers" in judged

    def test_too_few_reviewers_are_reported_before_the_first_call(self, witan, counter):
        """Off a terminal for three members and for four; --quiet omits it."""
        url, _ = counter
        three = [word for name in "abc" for word in ("--member", f"{name}={url}#m")]
        limits = ("--no-history", "--attempts", 1)

        assert "3 members separate answers" in witan("ask", "Which?", *three, *limits).err
        four = (*three, "--member", f"d={url}#m")
        assert "4 members separate answers" in witan("ask", "Which?", *four, *limits).err
        assert "separate" not in witan("ask", "Which?", *three, *limits, "--quiet").err

    def test_totals_are_the_sum_of_the_lines(self, witan, seats):
        """In JSON, too; scripted members cost nothing."""
        said = witan("plan", "Which?", "--json", *seats)

        lines = [line for line in said.json["lines"] if not line["if_needed"]]
        assert said.json["calls"] == sum(line["calls"] for line in lines) == 7
        assert said.json["worst_usd"] == 0.0

    def test_rows_add_up_to_both_totals(self, witan, seats):
        """Repairs and stand-ins have rows of their own, in the maximum total."""
        said = witan("plan", "Which?", *seats)

        rows = [re.split(r"\s{2,}", line.strip()) for line in said.lines if " " in line]
        calls = {row[0]: int(row[-5]) for row in rows if row[0] in ("if nothing fails", "at most")}
        made = [row for row in rows if len(row) == 7]
        spare = [int(row[2]) for row in made if row[1].endswith(", if needed")]
        usual = [int(row[2]) for row in made if row[1] in ("answer", "review", "synthesis")]
        assert calls == {"if nothing fails": sum(usual), "at most": sum(usual) + sum(spare)}
        assert spare
        assert "are not included" in said.out

    def test_a_plan_needs_no_key(self, witan):
        """Seats without a key are planned, and every missing variable is named."""
        said = witan(
            "plan", "Which?", "--member", "openai:gpt-5", "--member", "anthropic:claude-opus-4"
        )

        assert said.status == 0
        assert "gpt-5" in said.out
        assert "OPENAI_API_KEY and ANTHROPIC_API_KEY" in said.err

    def test_a_ceiling_below_the_worst_case_is_reported(self, witan, tmp_path):
        """With the calls that will be skipped."""
        write_council(tmp_path)
        config = tmp_path / "own.toml"
        seats = "\n".join(
            f'[[members]]\nseat = "script:{tmp_path}/{name}.toml"\nprice = [10.0, 10.0]'
            for name in ("ada", "bob")
        )
        config.write_text(seats, encoding="utf-8")
        said = witan("plan", "Which?", "--config", config, "--max-cost", "0.7")

        assert "ceiling of $0.700" in said.out


def test_scripts_of_the_tests_are_valid(tmp_path):
    """They are TOML that a member can play."""
    import tomllib

    path = write_script(tmp_path / "x.toml", answer=[{"text": 'a "b"\n', "times": 1}])

    assert tomllib.loads(path.read_text()) == {"answer": [{"text": 'a "b"\n', "times": 1}]}
