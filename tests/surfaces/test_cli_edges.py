"""Mistakes of new users and their error messages."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = str(Path(__file__).parents[2] / "examples" / "ballots.jsonl")


class TestNoCommand:
    """The program without arguments."""

    def test_it_prints_the_help(self, witan):
        """On standard output like --help, with status 0."""
        said = witan()

        assert (said.status, said.err) == (0, "")
        assert said.out == witan("--help").out
        assert "\n  ask " in said.out


class TestNoResult:
    """An empty result says why."""

    @pytest.mark.parametrize("command", ["tally", "compare"])
    def test_no_ballot_of_the_requested_kind(self, witan, command):
        """Counting people in a file without people is no quorum."""
        said = witan(command, EXAMPLE, "--kind", "human")

        assert said.status == 3
        assert "of the kind 'human'" in said.err

    def test_a_comparison_of_abstentions_is_no_quorum(self, witan, write):
        """`compare` ends as `tally` does where nobody voted."""
        path = write("a.jsonl", {"reviewer": "x", "abstained": True, "candidates": ["a", "b"]})

        assert witan("compare", path).status == 3

    def test_explain_requires_a_session(self, witan):
        """The error names one of several."""
        said = witan("explain", EXAMPLE)

        assert said.status == 2
        assert all(fact in said.err for fact in ("--session", "one of 3 sessions"))
        assert "capital-gains" in said.err


class TestParameters:
    """A wrong type for a rule's parameter is one line."""

    @pytest.mark.parametrize(
        ("rule", "parameter"),
        [
            ("hybrid", "alpha=x"),
            ("hybrid", "alpha=nan"),
            ("bradley_terry", "ghost_wins=inf"),
            ("elo", "k=nan"),
            ("schulze", "strength=3"),
        ],
    )
    def test_a_wrong_type_is_named(self, witan, rule, parameter):
        """With parameter and rule; the status is misuse."""
        session = () if rule == "elo" else ("--session", "cold-start")

        said = witan("tally", EXAMPLE, "--rule", rule, "--param", parameter, *session)

        assert said.status == 2
        assert parameter.partition("=")[0] in said.err
        assert "Traceback" not in said.err

    def test_auto_cannot_be_compared(self, witan):
        """The error says what it is."""
        said = witan("compare", EXAMPLE, "--rules", "auto")

        assert said.status == 2
        assert "auto chooses between two" in said.err


class TestLimits:
    """An input that is too large leaves the others."""

    def test_a_rule_s_limit_excludes_only_that_rule(self, witan, write):
        """Kemeny's limit is listed with the omitted rules."""
        names = [f"c{n}" for n in range(70)]
        rings = [names[k:] + names[:k] for k in (0, 23, 46)]
        ballots = [{"reviewer": f"r{k}", "ranking": ring} for k, ring in enumerate(rings)]
        path = write("ring.jsonl", *ballots)

        said = witan("compare", path, "--rules", "borda,kemeny")

        assert said.status == 0
        assert "kemeny: " in said.out[said.out.index("Rules left out") :]

    def test_a_large_session_excludes_only_itself(self, witan, write):
        """It is named; the others are counted."""
        large = {"session": "large", "reviewer": "x", "ranking": [f"c{n}" for n in range(1001)]}
        small = {"session": "small", "reviewer": "x", "ranking": ["a", "b"]}

        said = witan("tally", write("mix.jsonl", large, small), "--json")

        assert [held["session"] for held in json.loads(said.out)["sessions"]] == ["small"]
        assert "session 'large'" in said.err


def test_elo_rates_the_example(witan):
    """Sessions with different numbers of ballots are rated together."""
    said = witan("tally", EXAMPLE, "--rule", "elo", "--json")

    assert said.status == 0
    assert len(json.loads(said.out)["sessions"]) == 1


def test_a_rubric_that_matches_no_grade_is_named(witan, write):
    """With the rubric under which the ballots abstain."""
    ballot = {"reviewer": "x", "grades": {"a": {"zest": 3}, "b": {"zest": 4}}}

    said = witan("tally", write("zest.jsonl", ballot), "--rubric", "coding")

    assert said.status == 3
    assert "under the rubric 'coding'" in said.out + said.err


def test_binary_answers_are_refused(witan, tmp_path):
    """In one line without a traceback."""
    path = tmp_path / "answers.bin"
    path.write_bytes(b"\xff\xfe\x00\x80")

    said = witan("tally", EXAMPLE, "--answers", str(path))

    assert said.status == 2
    assert "not UTF-8 text" in said.err


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_a_full_disk_is_one_line():
    """The status is not misuse."""
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        run = subprocess.run(  # noqa: S603 - our own interpreter on our own example
            [sys.executable, "-m", "witan", "tally", EXAMPLE],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )

    assert run.returncode == 7
    assert run.stderr.startswith("witan: standard output cannot")
    assert "Traceback" not in run.stderr


def test_explain_escapes_names_in_every_header(witan, write):
    """Line breaks and direction marks break no table."""
    name = "a\nb\u202e"

    said = witan(
        "explain", write("odd.jsonl", *({"reviewer": r, "ranking": [name, "c"]} for r in "xyz"))
    )

    assert name not in said.out
    assert "\u202e" not in said.out


@pytest.mark.parametrize("command", ["tally", "compare"])
def test_a_weight_for_an_unknown_reviewer_is_reported(witan, command):
    """With the nearest name; the ballots are counted."""
    said = witan(command, EXAMPLE, "--weight", "aldr=2")

    assert said.status == 0
    assert all(fact in said.err for fact in ("--weight", "'aldr'", "did you mean 'alder'?"))


class TestLevels:
    """A confidence level too close to 1 is refused."""

    @pytest.mark.parametrize("command", ["tally", "leaderboard", "audit"])
    @pytest.mark.parametrize("level", ["0.9999999999999999", "1e-300"])
    def test_an_extreme_level_is_refused(self, witan, tmp_path, command, level):
        """Every command with a level states the valid range."""
        place = tmp_path / "h.sqlite"
        witan("import", EXAMPLE, "--history", place)
        given = [EXAMPLE] if command == "tally" else ["--history", place]

        said = witan(command, *given, "--level", level)

        assert (said.status, said.out) == (2, "")
        assert "level" in said.err
        assert "expected a number from 0.000000001 to 0.999999999" in said.err
