"""What a new user tried, and what it should have said."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = str(Path(__file__).parents[2] / "examples" / "ballots.jsonl")


class TestNoCommand:
    """The name of the program alone."""

    def test_it_shows_the_help(self, witan):
        """Line by line on standard output, as --help does, and nothing is wrong."""
        said = witan()

        assert (said.status, said.err) == (0, "")
        assert said.out == witan("--help").out
        assert "\n  ask " in said.out


class TestNothingToShow:
    """An empty answer says why."""

    @pytest.mark.parametrize("command", ["tally", "compare"])
    def test_no_ballot_of_the_kind_asked_for(self, witan, command):
        """People counted alone in a file without people is no quorum, said aloud."""
        said = witan(command, EXAMPLE, "--kind", "human")

        assert said.status == 3
        assert "of the kind 'human'" in said.err

    def test_a_comparison_of_abstentions_is_no_quorum(self, witan, write):
        """`compare` ends as `tally` does where nobody voted."""
        path = write("a.jsonl", {"reviewer": "x", "abstained": True, "candidates": ["a", "b"]})

        assert witan("compare", path).status == 3

    def test_explain_asks_for_a_session(self, witan):
        """Several sessions and none named is answered with one of their names."""
        said = witan("explain", EXAMPLE)

        assert said.status == 2
        assert all(fact in said.err for fact in ("--session", "one of 3 sessions"))
        assert "capital-gains" in said.err


class TestParameters:
    """A rule's parameter of the wrong type is one line."""

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
    def test_it_is_named(self, witan, rule, parameter):
        """The error names the parameter and the rule, and the status is misuse."""
        session = () if rule == "elo" else ("--session", "cold-start")

        said = witan("tally", EXAMPLE, "--rule", rule, "--param", parameter, *session)

        assert said.status == 2
        assert parameter.partition("=")[0] in said.err
        assert "Traceback" not in said.err

    def test_auto_is_no_rule_to_compare(self, witan):
        """Comparing auto says what it is instead of suggesting itself."""
        said = witan("compare", EXAMPLE, "--rules", "auto")

        assert said.status == 2
        assert "auto takes one of two" in said.err


class TestLimits:
    """What is too large spares the rest."""

    def test_one_rule_s_limit_leaves_the_others(self, witan, write):
        """Kemeny's limit is listed among what was left out."""
        names = [f"c{n}" for n in range(70)]
        rings = [names[k:] + names[:k] for k in (0, 23, 46)]
        ballots = [{"reviewer": f"r{k}", "ranking": ring} for k, ring in enumerate(rings)]
        path = write("ring.jsonl", *ballots)

        said = witan("compare", path, "--rules", "borda,kemeny")

        assert said.status == 0
        assert "kemeny: " in said.out[said.out.index("Rules left out") :]

    def test_one_large_session_leaves_the_others(self, witan, write):
        """A session with too many candidates is named; the others are counted."""
        large = {"session": "large", "reviewer": "x", "ranking": [f"c{n}" for n in range(1001)]}
        small = {"session": "small", "reviewer": "x", "ranking": ["a", "b"]}

        said = witan("tally", write("mix.jsonl", large, small), "--json")

        assert [held["session"] for held in json.loads(said.out)["sessions"]] == ["small"]
        assert "session 'large'" in said.err


def test_elo_rates_the_example(witan):
    """Sessions of unequal numbers of ballots are rated together."""
    said = witan("tally", EXAMPLE, "--rule", "elo", "--json")

    assert said.status == 0
    assert len(json.loads(said.out)["sessions"]) == 1


def test_a_rubric_that_reads_none_of_the_grades_is_named(witan, write):
    """Graded ballots that abstain under another rubric say under which."""
    ballot = {"reviewer": "x", "grades": {"a": {"zest": 3}, "b": {"zest": 4}}}

    said = witan("tally", write("zest.jsonl", ballot), "--rubric", "coding")

    assert said.status == 3
    assert "under the rubric 'coding'" in said.out + said.err


def test_answers_that_are_no_text_are_refused(witan, tmp_path):
    """A binary file of answers is one line, not a traceback."""
    path = tmp_path / "answers.bin"
    path.write_bytes(b"\xff\xfe\x00\x80")

    said = witan("tally", EXAMPLE, "--answers", str(path))

    assert said.status == 2
    assert "no UTF-8 text" in said.err


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_a_full_disk_is_one_line():
    """Output that cannot be written ends in a sentence, and is no misuse."""
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
    """A name with a line break and a direction mark breaks no table and hides nothing."""
    name = "a\nb\u202e"

    said = witan(
        "explain", write("odd.jsonl", *({"reviewer": r, "ranking": [name, "c"]} for r in "xyz"))
    )

    assert name not in said.out
    assert "\u202e" not in said.out


@pytest.mark.parametrize("command", ["tally", "compare"])
def test_a_weight_for_nobody_is_said(witan, command):
    """A misspelt reviewer is answered with the one meant; the ballots are counted."""
    said = witan(command, EXAMPLE, "--weight", "aldr=2")

    assert said.status == 0
    assert all(fact in said.err for fact in ("--weight", "'aldr'", "did you mean 'alder'?"))


class TestLevels:
    """A level so near to 1 that no interval has it is refused."""

    @pytest.mark.parametrize("command", ["tally", "leaderboard", "audit"])
    @pytest.mark.parametrize("level", ["0.9999999999999999", "1e-300"])
    def test_it_is_refused(self, witan, tmp_path, command, level):
        """Every command that takes one says in a line which levels there are."""
        place = tmp_path / "h.sqlite"
        witan("import", EXAMPLE, "--history", place)
        given = [EXAMPLE] if command == "tally" else ["--history", place]

        said = witan(command, *given, "--level", level)

        assert (said.status, said.out) == (2, "")
        assert "level" in said.err
        assert "expected a number from 0.000000001 to 0.999999999" in said.err
