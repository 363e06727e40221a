"""A separate jury for a question, black box: by options, files and variables."""

import json

import httpx2
import pytest

from scripts import write_council, write_jury, write_script
from served import served
from services import councils
from witan.errors import InvalidParameter
from witan.service.council import Council, ask, judge

CYD_FIRST = ["Cyd says", "Bob says", "Ada says"]


@pytest.fixture
def jurors(tmp_path):
    """Three jurors as they are written, who prefer Cyd's answer."""
    return [
        f"script:{write_script(tmp_path / f'{name}.toml', review=[{'prefers': CYD_FIRST}])}"
        for name in ("xan", "yma", "zoe")
    ]


@pytest.fixture
def jury(jurors):
    """The options that seat them."""
    return [word for each in jurors for word in ("--jury", each)]


def reviewers(record):
    """Names of the reviewers in the record."""
    return [ballot["reviewer"] for ballot in record["ballots"]]


def leader(record):
    """Author of the leading answer."""
    return record["outcome"]["standings"][0]["candidate"]


class TestAsking:
    """``witan ask --jury``."""

    def test_the_jury_replaces_the_members_as_reviewers(self, witan, seats, jury, place):
        """Members answer, jurors review, and the trust line counts the jurors."""
        said = witan("ask", "Which?", *seats, *jury, "--history", place)
        record = witan("show", "last", "--history", place, "--json").json

        assert (said.status, said.out) == (0, "All told: so.\n")
        assert "3 of 3 reviewers" in said.err
        assert sorted(record["answers"]) == ["ada", "bob", "cyd"]
        assert reviewers(record) == ["xan", "yma", "zoe"]
        assert leader(record) == "cyd"

    def test_the_output_names_the_jurors(self, witan, seats, jury, place):
        witan("ask", "Which?", *seats, *jury, "--history", place)
        shown = witan("show", "last", "--history", place)

        assert "jury: xan, yma and zoe" in shown.out

    def test_a_plan_has_reviews_of_jurors_alone(self, witan, seats, jury):
        """The session opens with the same plan."""
        planned = witan("plan", "Which?", *seats, *jury, "--json")
        record = witan("ask", "Which?", *seats, *jury, "--json", "--no-history").json

        assert planned.json["lines"] == record["events"][0]["plan"]["lines"]
        reviews = [line["seat"] for line in planned.json["lines"] if line["stage"] == "review"]
        assert reviews == ["xan", "yma", "zoe"]
        assert planned.json["calls"] == 7

    @pytest.mark.parametrize("command", ["ask", "plan"])
    def test_a_jury_of_one_is_refused(self, witan, seats, jurors, command):
        """In one line, before any call."""
        said = witan(command, "Which?", *seats, "--jury", jurors[0])

        assert said.status == 2
        assert "at least two jurors" in said.err
        assert said.out == ""

    @pytest.mark.parametrize("command", ["ask", "plan"])
    def test_own_answers_of_a_jury_are_refused(self, witan, seats, jury, command):
        """It has none: one line refuses the option before any call."""
        said = witan(command, "Which?", *seats, *jury, "--self-review")

        assert (said.status, said.out) == (2, "")
        assert "--self-review cannot be True" in said.err
        assert len(said.err.splitlines()) == 1

    def test_a_plan_and_a_question_refuse_the_same(self, witan, seats, jury):
        """For example a quorum above the number of jurors."""
        said = [witan(c, "Which?", *seats, *jury, "--quorum", "7").err for c in ("ask", "plan")]

        assert all(fact in said[0] for fact in ("--quorum cannot be 7", "3 jurors"))
        assert said[0] == said[1]

    def test_a_juror_may_not_have_a_member_s_name(self, witan, seats, jury, tmp_path):
        """The error names the option and the seat."""
        said = witan("ask", "Which?", *seats, *jury, "--jury", f"ada=script:{tmp_path}/xan.toml")

        assert said.status == 2
        assert "--jury" in said.err
        assert "a member, 'ada'" in said.err

    def test_a_member_on_the_jury_does_not_see_its_own_answer(self, witan, seats, jury, tmp_path):
        """Cyd's script in a juror's seat gets another name, and is recused."""
        again = ["--jury", f"script:{tmp_path}/cyd.toml", "--json", "--no-history"]
        record = witan("ask", "Which?", *seats, *jury, *again).json

        sheets = [event["sheet"] for event in record["events"] if event["event"] == "sheet_drawn"]
        [own] = [each["candidates"] for each in sheets if each["reviewer"] == "cyd (2)"]
        assert sorted(own) == ["ada", "bob"]


class TestConfiguration:
    """A jury in files, profiles and variables."""

    @pytest.fixture
    def config(self, tmp_path, jurors):
        """A file with members and, in a profile, a jury."""
        write_council(tmp_path)
        members = [f"script:{tmp_path / name}.toml" for name in ("ada", "bob", "cyd")]
        file = tmp_path / "council.toml"
        file.write_text(
            f"members = {json.dumps(members)}\n[profiles.judged]\njury = {json.dumps(jurors)}\n"
        )
        return file

    def test_a_profile_has_a_jury(self, witan, config):
        asked = ["ask", "Which?", "--config", config, "--json", "--no-history"]

        assert reviewers(witan(*asked).json) == ["ada", "bob", "cyd"]
        assert reviewers(witan(*asked, "--profile", "judged").json) == ["xan", "yma", "zoe"]

    def test_a_variable_has_a_jury(self, witan, config, jurors, monkeypatch):
        """Seats with commas between, as those of members."""
        monkeypatch.setenv("WITAN_JURY", ",".join(jurors[:2]))
        asked = ["ask", "Which?", "--config", config, "--json", "--no-history"]

        assert reviewers(witan(*asked).json) == ["xan", "yma"]

    def test_the_doctor_checks_jurors(self, witan, config, jurors, monkeypatch):
        """They are listed, and a council could be seated with them."""
        monkeypatch.setenv("WITAN_JURY", ",".join(jurors))
        said = witan("doctor", "--config", config, "--offline")

        assert "Jury" in said.out
        assert all(fact in said.out for fact in ("ada, bob and cyd", "by xan, yma and zoe"))
        assert all(
            fact in said.out.partition("Profile")[2]
            for fact in ("ada, bob and cyd", "by xan, yma and zoe")
        )

    def test_python_accepts_a_jury(self, config, jurors):
        """Instead of the configured one or none, or with other members."""
        council = Council.from_config(config, profile="judged", history=False)
        assert [juror.name for juror in council.jury] == ["xan", "yma", "zoe"]
        council = Council.from_config(config, profile="judged", jury=(), history=False)
        assert council.jury == ()
        council = Council.from_config(config, jury=jurors[:2], history=False)
        assert [juror.name for juror in council.jury] == ["xan", "yma"]

        members = [str(seat) for seat in jurors]
        session = ask("Which?", [f"{n}={seat}" for n, seat in zip("abc", members, strict=True)],
                      jury=members, environment={})  # fmt: skip
        assert [ballot.reviewer for ballot in session.ballots] == ["xan", "yma", "zoe"]

    def test_a_configured_jury_with_own_answers_is_refused(self, witan, config, jurors, tmp_path):
        """By Python as by the doctor, who names the file."""
        members = [str(tmp_path / f"{name}.toml") for name in ("ada", "bob")]
        with pytest.raises(InvalidParameter, match="expected False with a jury"):
            Council([f"script:{m}" for m in members], jury=jurors, environment={}, self_review=True)
        config.write_text(f"jury = {json.dumps(jurors)}\nself_review = true\n" + config.read_text())

        said = witan("doctor", "--config", config, "--offline")

        assert said.status == 2
        assert "self_review cannot be True" in said.out


class TestAlone:
    """A configuration of a jury without members."""

    @pytest.fixture
    def config(self, tmp_path, monkeypatch):
        """A file with nothing but a jury, where a text lies."""
        monkeypatch.chdir(tmp_path)
        (tmp_path / "good.md").write_text("It is the moraine.")
        file = tmp_path / "only.toml"
        file.write_text(f"jury = {json.dumps(write_jury(tmp_path))}\n")
        return file

    def test_it_judges(self, witan, config):
        """Nobody but the jury is asked for a verdict, so nobody else is needed."""
        said = witan("judge", "good.md", "--pass-mark", 6, "--config", config, "--no-history")

        assert (said.status, "passed: 9.0" in said.out) == (0, True)

    def test_it_judges_the_rows_of_a_batch(self, witan, config, tmp_path):
        (tmp_path / "rows.jsonl").write_text('{"text": "It is the moraine."}\n')
        said = witan("batch", "rows.jsonl", "--pass-mark", 6, "--config", config, "-o", "out.jsonl")

        assert said.status == 0, said.err
        assert json.loads((tmp_path / "out.jsonl").read_text())["verdict"]["decision"] == "passed"

    def test_it_judges_in_python(self, config):
        session = judge("It is the moraine.", path=config, pass_mark=6, history=False)

        assert [ballot.reviewer for ballot in session.ballots] == ["xan", "yma", "zoe"]

    def test_it_judges_on_a_server_and_is_asked_nothing(self, config, history):
        """The refusal of a question names what is missing."""
        with (
            served(councils(config, history)) as server,
            httpx2.Client(base_url=server.url, timeout=60) as client,
        ):
            body = {"texts": {"good": "It is the moraine."}, "pass_mark": 6}
            verdict = client.post("/api/judge", json=body, params={"wait": 20})
            refused = client.post("/api/sessions", json={"question": "Which?"})

        assert verdict.json()["verdict"]["decision"] == "passed"
        assert "names a jury but no members to answer" in refused.json()["detail"]

    def test_a_question_to_it_lacks_members(self, witan, config):
        """The error says that the file names none, not that no model is there."""
        said = witan("ask", "Which?", "--config", config, "--no-history")

        assert (said.status, said.out) == (2, "")
        assert "only.toml names a jury but no members to answer" in said.err

    def test_a_jury_of_one_is_named_as_such(self, witan, config, tmp_path):
        config.write_text(f"jury = {json.dumps(write_jury(tmp_path)[:1])}\n")
        said = witan("judge", "good.md", "--config", config, "--no-history")

        assert said.status == 2
        assert "a jury needs at least two jurors" in said.err


class TestLater:
    """A stored session with a jury."""

    def test_an_interrupted_session_resumes_with_its_jury(self, witan, seats, jury, tmp_path):
        """Whatever is configured now."""
        file = tmp_path / "first.json"
        witan("ask", "Which?", *seats, *jury, "--no-history", "--save", file)
        record = json.loads(file.read_text(encoding="utf-8"))
        kinds = [event["event"] for event in record["events"]]
        record["events"] = record["events"][: kinds.index("ballot_cast") + 1]
        file.write_text(json.dumps(record), encoding="utf-8")

        said = witan("resume", file, "--no-history")

        assert (said.status, said.out) == (0, "All told: so.\n")
        assert reviewers(witan("show", file, "--json").json) == ["xan", "yma", "zoe"]

    def test_a_session_without_a_jury_resumes_without_one(
        self, witan, seats, jurors, tmp_path, monkeypatch
    ):
        """Though one is configured now."""
        file = tmp_path / "first.json"
        witan("ask", "Which?", *seats, "--no-history", "--save", file)
        record = json.loads(file.read_text(encoding="utf-8"))
        record["events"] = record["events"][:4]
        file.write_text(json.dumps(record), encoding="utf-8")
        monkeypatch.setenv("WITAN_JURY", ",".join(jurors))

        assert witan("resume", file, "--no-history").status == 0
        assert reviewers(witan("show", file, "--json").json) == ["ada", "bob", "cyd"]

    def test_rejudge_accepts_a_jury_under_either_name(self, witan, seats, jury, place, jurors):
        """But not under both."""
        witan("ask", "Which?", *seats, "--history", place)
        again = ["rejudge", "last", "--history", place, "--json"]
        members = [word for each in jurors for word in ("--member", each)]

        assert reviewers(witan(*again, *jury).json) == ["xan", "yma", "zoe"]
        assert reviewers(witan(*again, *members).json) == ["xan", "yma", "zoe"]
        both = witan(*again, *jury, *members)
        assert both.status == 2
        assert "--member and --jury" in both.err
