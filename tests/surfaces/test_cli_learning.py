"""A council that learns from its history, black box: its outcomes and notes."""

import json
import re

import pytest

from lessons import lessons
from misbehaving import MisbehavingServer
from scripts import write_council
from witan.history import History

APART = '{"Ada says" = 9, "Bob says" = 6, "Cyd says" = 4}'

pytestmark = pytest.mark.usefixtures("place")


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


class TestPrior:
    """Fifty sessions of history separate what three ballots cannot."""

    def test_fifty_sessions_separate_three_answers(self, witan, place, seats):
        """Ada's lead is beyond noise, and the outcome names the prior."""
        learn(place, 50)

        said = witan("ask", "Is it so?", "--json", *seats)

        held = outcome(said)
        assert held["prior"]["n_sessions"] == 50
        assert not held["standings"][0]["tied_with_next"]
        assert said.json["events"][0]["procedure"]["counting"]["prior"] == held["prior"]

    def test_forty_nine_sessions_are_too_few(self, witan, place, seats):
        """The public prior is used."""
        learn(place, 49)

        held = outcome(witan("ask", "Is it so?", "--json", *seats))

        assert held["prior"]["source"] == "public"

    def test_simulated_sessions_are_ignored(self, witan, place, seats):
        """Demonstrations teach nothing, however many."""
        learn(place, 60, simulated=True)
        witan("demo", "--fast", "--quiet")

        held = outcome(witan("ask", "Is it so?", "--json", *seats))
        assert held["prior"]["source"] == "public"

    @pytest.mark.parametrize("how", ["option", "setting"])
    def test_learning_can_be_switched_off(self, witan, place, seats, how, monkeypatch):
        """``--no-history`` keeps the public prior, ``counting.prior = "none"`` has none."""
        learn(place, 50)
        if how == "setting":
            monkeypatch.setenv("WITAN_COUNTING_PRIOR", "none")

        extra = ["--no-history"] if how == "option" else []
        held = outcome(witan("ask", "Is it so?", "--json", *extra, *seats))

        assert (held["prior"] or {}).get("source") == ("public" if how == "option" else None)

    def test_a_recount_uses_the_recorded_prior(self, witan, place, seats):
        """Though the history has grown."""
        learn(place, 50)
        witan("ask", "Is it so?", "--quiet", *seats)
        before = witan("recount", "last", "--json").json
        learn(place, 400, first=50)

        assert witan("recount", "last", "--json").json == before
        assert before["sessions"][0]["prior"]["n_sessions"] == 50


class TestTrust:
    """The trust line, now and when shown later."""

    def test_both_are_unknown_for_a_single_session(self, witan, seats):
        """Three reviewers in full agreement have no measurable noise."""
        said = witan("ask", "Is it so?", "--prior", "none", *seats)

        assert " · agreement unknown · reliability unknown · " in said.err

    def test_reliability_is_unknown_without_people(self, witan, place, seats):
        """Agreement has a number."""
        learn(place, 50)

        said = witan("ask", "Is it so?", *seats)

        assert " · agreement >0.99 · reliability unknown · " in said.err
        borrowed = "noise learned from 50 sessions that compared grades, 50 of them imported"
        assert f" · {borrowed} · " in said.err
        assert borrowed in " ".join(witan("show", "last").out.split())

    def test_votes_of_people_make_reliability_known(self, witan, place):
        """A share with sample size and interval."""
        learn(place, 60, people=60)

        with MisbehavingServer({"ada": 9, "bob": 6, "cyd": 4}) as server:
            seats = [f"--member={name}={server.url}#{name}" for name in ("ada", "bob", "cyd")]
            assert witan("ask", "Is it so?", *seats, "--chairman", "ada").status == 0
        shown = " ".join(witan("show", "last").out.split())

        assert re.search(
            r" match with people \d+%: how often panels with similar confidence agreed with "
            r"people, over \d+ decided pairs \(\d+–\d+%\)\.",
            shown,
        )

    def test_scripts_have_no_reliability(self, witan, place, seats):
        learn(place, 60, people=60)

        said = witan("ask", "Is it so?", *seats)

        assert " · reliability unknown · " in said.err

    def test_the_trust_line_does_not_change_later(self, witan, place, seats):
        """New votes affect only the next session."""
        learn(place, 60)
        witan("ask", "Is it so?", "--quiet", *seats)
        learn(place, 80, people=80, first=60)

        shown = " ".join(witan("show", "last").out.split())
        assert "match with people: unknown until people vote on the same answers." in shown


class TestWeights:
    """`weighted_borda` with a history."""

    def test_a_recount_learns_from_the_other_sessions(self, witan, place):
        """Reviewers of an import are weighted by their record elsewhere."""
        learn(place, 40, people=40)

        equal = witan("recount", "lesson 3", "--rule", "borda", "--json").json
        weighed = witan("recount", "lesson 3", "--rule", "weighted_borda", "--json").json

        scores = [
            [line["score"] for line in sorted(found["sessions"][0]["standings"], key=json.dumps)]
            for found in (equal, weighed)
        ]
        assert sorted(scores[0]) != sorted(scores[1])

    def test_a_renamed_reviewer_keeps_its_record(self, witan, place, tmp_path):
        """Under an alias of the configuration."""
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
    """A recount with `learn` uses the other sessions, as a council does."""

    def test_an_imported_session_uses_the_prior_of_others(self, witan, place):
        """It is named; without ``learn`` it is the public one."""
        learn(place, 51)

        plain = witan("recount", "lesson 3", "--json").json
        taught = witan("recount", "lesson 3", "--prior", "learn", "--json").json

        assert plain["sessions"][0]["prior"]["source"] == "public"
        assert taught["sessions"][0]["prior"]["n_sessions"] == 50

    def test_a_council_s_session_can_use_a_later_prior(self, witan, place, seats):
        """Once there is a history."""
        witan("ask", "Is it so?", "--quiet", *seats)
        learn(place, 50)

        found = witan("recount", "last", "--prior", "learn", "--json").json

        assert found["sessions"][0]["prior"]["n_sessions"] == 50

    def test_shared_error_is_learned_from_people(self, witan, place, seats):
        """With their votes on other sessions ρ and effective votes are numbers."""
        witan("ask", "Is it so?", "--quiet", *seats)
        learn(place, 60, people=60)

        council = witan("recount", "last", "--rho", "learn", "--json").json["sessions"][0]
        imported = witan("recount", "lesson 3", "--rho", "learn", "--json").json["sessions"][0]

        assert 0 <= council["rho"] < 1
        assert 0 <= imported["rho"] < 1
        said = " ".join(witan("recount", "last", "--rho", "learn").out.split())
        assert f"shared error of {council['rho']:.2f}" in said

    def test_too_little_history_is_reported(self, witan, place):
        """The session is counted without."""
        learn(place, 10)

        said = witan("recount", "lesson 3", "--prior", "learn", "--rho", "learn")

        assert said.status == 0
        told = " ".join(said.out.split())
        assert all(fact in told for fact in ("using the public prior", "fewer than 50"))
        assert "using the public ρ" in told

    @pytest.mark.parametrize("option", ["--prior", "--rho"])
    def test_a_file_has_no_history_to_learn_from(self, witan, tmp_path, option):
        """The error has a remedy."""
        witan("demo", "--fast", "--quiet", "--save", tmp_path / "s.json")

        said = witan("recount", tmp_path / "s.json", option, "learn")

        assert (said.status, said.out) == (2, "")
        assert option in said.err
        assert "no history of other sessions" in said.err
