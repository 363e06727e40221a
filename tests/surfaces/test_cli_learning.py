"""A council with a history behind it, black box: what it tells apart, and what it says of it."""

import json
import os

import pytest

from lessons import lessons
from misbehaving import MisbehavingServer
from scripts import write_council
from witan.history import History

APART = '{"Ada says" = 9, "Bob says" = 6, "Cyd says" = 4}'


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    """A history of its own, and no configuration of the machine."""
    for name in [name for name in os.environ if name.startswith("WITAN_") or "API_KEY" in name]:
        monkeypatch.delenv(name)
    for name in ("CONFIG", "STATE", "DATA"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / name))
    monkeypatch.setenv("WITAN_HISTORY", str(tmp_path / "h.sqlite"))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "h.sqlite"


@pytest.fixture
def seats(tmp_path):
    """Three members who agree that Ada's answer is far ahead, and a chairman."""
    options = write_council(tmp_path)
    for name in ("ada", "bob", "cyd"):
        script = tmp_path / f"{name}.toml"
        lines = [line for line in script.read_text().splitlines() if "prefers" not in line]
        script.write_text("\n".join([*lines, f"grades = {APART}"]))
    return options


def learn(place, sessions, **kind):
    with History.open(place) as history:
        history.add(lessons(sessions, **kind), str(sessions), str(sessions))


def outcome(said):
    """The last outcome in a record."""
    events = said.json["events"]
    return [event["outcome"] for event in events if event["event"] == "outcome_changed"][-1]


class TestFiftySessions:
    """What three cannot tell alone they can with fifty sessions behind them."""

    def test_they_tell_three_apart(self, witan, place, seats):
        """Ada's lead is beyond noise, and the outcome names the prior."""
        learn(place, 50)

        said = witan("ask", "Is it so?", "--json", *seats)

        held = outcome(said)
        assert held["prior"]["n_sessions"] == 50
        assert not held["standings"][0]["tied_with_next"]
        assert said.json["events"][0]["procedure"]["counting"]["prior"] == held["prior"]

    def test_forty_nine_do_not(self, witan, place, seats):
        """With one session fewer the public prior stands in."""
        learn(place, 49)

        held = outcome(witan("ask", "Is it so?", "--json", *seats))

        assert held["prior"]["source"] == "public"

    def test_simulated_sessions_do_not(self, witan, place, seats):
        """Demonstrations and scripts teach nothing, however many there are."""
        learn(place, 60, simulated=True)
        witan("demo", "--fast", "--quiet")

        held = outcome(witan("ask", "Is it so?", "--json", *seats))
        assert held["prior"]["source"] == "public"

    @pytest.mark.parametrize("how", ["option", "setting"])
    def test_nothing_is_learned_where_that_is_said(self, witan, place, seats, how, monkeypatch):
        """``--no-history`` leaves the public prior, ``counting.prior = "none"`` none at all."""
        learn(place, 50)
        if how == "setting":
            monkeypatch.setenv("WITAN_COUNTING_PRIOR", "none")

        extra = ["--no-history"] if how == "option" else []
        held = outcome(witan("ask", "Is it so?", "--json", *extra, *seats))

        assert (held["prior"] or {}).get("source") == ("public" if how == "option" else None)

    def test_a_recount_is_the_same_whatever_was_learned_since(self, witan, place, seats):
        """The record keeps its prior when the history goes on."""
        learn(place, 50)
        witan("ask", "Is it so?", "--quiet", *seats)
        before = witan("recount", "last", "--json").json
        learn(place, 400, first=50)

        assert witan("recount", "last", "--json").json == before
        assert before["sessions"][0]["prior"]["n_sessions"] == 50


class TestTrust:
    """The line of trust, and what `show` says of the session later."""

    def test_both_are_unknown_alone(self, witan, seats):
        """Three who agree on everything leave nothing to judge their noise by."""
        said = witan("ask", "Is it so?", "--prior", "none", *seats)

        assert " · agreement unknown · reliability unknown · " in said.err

    def test_reliability_is_unknown_without_people(self, witan, place, seats):
        """Agreement has a number, reliability says that there is none."""
        learn(place, 50)

        said = witan("ask", "Is it so?", *seats)

        assert " · agreement >0.99 · reliability unknown · " in said.err
        borrowed = "strength borrowed from 50 sessions that compared grades, 50 of them imported"
        assert f" · {borrowed} · " in said.err
        assert borrowed in " ".join(witan("show", "last").out.split())

    def test_people_make_it_known(self, witan, place):
        """With votes on the same pairs it is a share, with its number and interval."""
        learn(place, 60, people=60)

        with MisbehavingServer({"ada": 9, "bob": 6, "cyd": 4}) as server:
            seats = [f"--member={name}={server.url}#{name}" for name in ("ada", "bob", "cyd")]
            assert witan("ask", "Is it so?", *seats, "--chairman", "ada").status == 0
        shown = " ".join(witan("show", "last").out.split())

        assert " · matched people on " in shown
        assert "decided pairs at such agreement (" in shown

    def test_it_says_nothing_of_scripts(self, witan, place, seats):
        """How often models matched people is not known of who plays a script."""
        learn(place, 60, people=60)

        said = witan("ask", "Is it so?", *seats)

        assert " · reliability unknown · " in said.err

    def test_it_stays_what_was_said(self, witan, place, seats):
        """People who vote later change the next session, not this one."""
        learn(place, 60)
        witan("ask", "Is it so?", "--quiet", *seats)
        learn(place, 80, people=80, first=60)

        assert " · reliability unknown · " in " ".join(witan("show", "last").out.split())


class TestWeights:
    """`weighted_borda` with a history."""

    def test_a_recount_learns_from_the_other_sessions(self, witan, place):
        """An imported session is weighed by what is known of its reviewers elsewhere."""
        learn(place, 40, people=40)

        equal = witan("recount", "lesson 3", "--rule", "borda", "--json").json
        weighed = witan("recount", "lesson 3", "--rule", "weighted_borda", "--json").json

        scores = [
            [line["score"] for line in sorted(found["sessions"][0]["standings"], key=json.dumps)]
            for found in (equal, weighed)
        ]
        assert sorted(scores[0]) != sorted(scores[1])

    def test_a_renamed_reviewer_keeps_its_record(self, witan, place, tmp_path):
        """Under an alias of the configuration it weighs what its old name does."""
        learn(place, 40, people=40)
        ballots = [
            {"session": "new", "reviewer": f"test:{name}", "ranking": [*order]}
            for name, order in (("ada-2", "xyz"), ("bo", "yzx"), ("cy", "zxy"))
        ]
        file = tmp_path / "new.jsonl"
        file.write_text("".join(f"{json.dumps(ballot)}\n" for ballot in ballots))
        witan("import", file)
        asked = ("recount", "new", "--rule", "weighted_borda", "--json")

        stranger = witan(*asked).json["sessions"][0]["standings"]
        (tmp_path / "witan.toml").write_text('[aliases]\n"test:ada" = "test:ada-2"\n')
        known = witan(*asked).json["sessions"][0]["standings"]

        assert [line["score"] for line in stranger] != [line["score"] for line in known]


class TestRecounts:
    """A recount that is told to learn does so from the other sessions, as a council does."""

    def test_an_imported_session_borrows_strength(self, witan, place):
        """The prior is that of the fifty others, and named; without ``learn`` the public one."""
        learn(place, 51)

        plain = witan("recount", "lesson 3", "--json").json
        taught = witan("recount", "lesson 3", "--prior", "learn", "--json").json

        assert plain["sessions"][0]["prior"]["source"] == "public"
        assert taught["sessions"][0]["prior"]["n_sessions"] == 50

    def test_a_council_borrows_strength_later(self, witan, place, seats):
        """What was counted without a prior is counted with one once there is a history."""
        witan("ask", "Is it so?", "--quiet", *seats)
        learn(place, 50)

        found = witan("recount", "last", "--prior", "learn", "--json").json

        assert found["sessions"][0]["prior"]["n_sessions"] == 50

    def test_shared_error_is_learned_from_people(self, witan, place, seats):
        """With people's votes on the other sessions ρ is a number, and so are effective votes."""
        witan("ask", "Is it so?", "--quiet", *seats)
        learn(place, 60, people=60)

        council = witan("recount", "last", "--rho", "learn", "--json").json["sessions"][0]
        imported = witan("recount", "lesson 3", "--rho", "learn", "--json").json["sessions"][0]

        assert 0 <= council["rho"] < 1
        assert 0 <= imported["rho"] < 1
        said = " ".join(witan("recount", "last", "--rho", "learn").out.split())
        assert f"shared error of {council['rho']:.2f}" in said

    def test_it_says_where_there_is_too_little(self, witan, place):
        """What cannot be learned is said, and the session is counted without."""
        learn(place, 10)

        said = witan("recount", "lesson 3", "--prior", "learn", "--rho", "learn")

        assert said.status == 0
        told = " ".join(said.out.split())
        assert all(fact in told for fact in ("no prior is learned", "fewer than 50"))
        assert "no ρ is learned" in told

    @pytest.mark.parametrize("option", ["--prior", "--rho"])
    def test_a_file_has_nothing_to_learn_from(self, witan, tmp_path, option):
        """A session outside a history is refused, with what to do."""
        witan("demo", "--fast", "--quiet", "--save", tmp_path / "s.json")

        said = witan("recount", tmp_path / "s.json", option, "learn")

        assert (said.status, said.out) == (2, "")
        assert option in said.err
        assert "no history of other sessions" in said.err
