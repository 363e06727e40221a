"""``compare``, ``explain``, ``rules``, ``rubrics`` and ``convert``, black box."""

import re

import pytest

from pages import ROOT
from witan.surfaces.cli.app import COMMANDS
from witan.surfaces.cli.options import Status


class TestCompare:
    """Every rule on the same ballots."""

    def test_rules_stand_side_by_side(self, witan, council):
        """One session: a line per rule with its leader, and what each gives every candidate."""
        said = witan("compare", council, "--rules", "borda,schulze,mean_rank")

        assert said.status == 0
        assert said.lines[:2] == [
            "comparison of rules · q1 · 3 rules",
            "x leads under every rule, clearly under none.",
        ]
        start = said.lines.index("Session q1")
        assert [re.split(r"  +", line) for line in said.lines[start + 2 : start + 5]] == [
            ["borda", "x", "1 · 0.875", "2 · 0.625 (=)", "3 · 0.000"],
            ["schulze", "x", "1 · 1.000", "2 · 0.500 (=)", "3 · 0.000"],
            ["mean_rank", "x", "1 · 1.250", "2 · 1.750 (=)", "3 · 3.000"],
        ]

    def test_rules_that_cannot_count_are_listed_with_their_reason(self, witan, council):
        """Those that need grades or a history."""
        said = witan("compare", council, "--rules", "borda,range,elo")

        left_out = said.lines[said.lines.index("Rules left out") + 1 :]
        assert left_out[0].startswith("range: needs grades")
        assert left_out[1].startswith("elo: rates candidates")

    def test_agreement_of_rules_over_many_sessions(self, witan, sessions):
        """Over twelve sessions: clear leads per rule, τ between rules, leaders that differ."""
        said = witan("compare", sessions, "--rules", "borda,schulze", "--rho", "none")

        assert "Session q1" not in said.lines
        assert "Name a session" in said.lines[2]
        assert "borda 10 of 12 2 of 12" in " ".join(said.out.split())
        assert "leaders in 12 of 12" in said.out
        assert "All rules give the same ranking" in said.out
        assert "Sessions in which the leaders differ" not in said.out

    def test_rules_that_disagree_are_counted(self, witan, write):
        """Leaders are named with their rules; over several sessions, those that differ."""
        orders = ["abc"] * 4 + ["cba"] * 3 + ["bca"] * 2
        ballots = [
            {"session": session, "reviewer": f"r{n}", "ranking": [*order]}
            for session in ("q1", "q2")
            for n, order in enumerate(orders)
        ]
        path = write("split.jsonl", *ballots)
        options = ("--rules", "borda,schulze,irv")
        one = witan("compare", path, *options, "--session", "q1")
        both = witan("compare", path, *options)

        assert one.lines[1].startswith("b leads under 2 rules")
        assert "leaders in 0 of 2 sessions," in both.lines[1]
        start = both.lines.index("Sessions in which the leaders differ")
        assert [line.split() for line in both.lines[start + 5 : start + 7]] == [
            ["2", "schulze", "0"],
            ["3", "irv", "2", "2"],
        ]

    def test_all_figures_belong_to_the_selected_session(self, witan, sessions):
        """With --session every table is about it, and --json has only it."""
        options = ("--session", "q2", "--rules", "borda,schulze")
        said = witan("compare", sessions, *options)

        assert "Session q2" in said.lines
        assert said.lines[0] == "comparison of rules · q2 · 2 rules"
        assert "12" not in said.out
        assert witan("compare", sessions, *options, "--json").json["n_sessions"] == 1

    def test_json_has_everything(self, witan, council):
        """The object holds rules, matrices, stability, and outcomes as tally prints them."""
        found = witan("compare", council, "--rules", "borda,range", "--json").json

        assert found["rules"] == ["borda"]
        assert set(found["skipped"]) == {"range"}
        assert found["tau"] == [[1.0]]
        assert found["leader_differs"] == [[0]]
        assert found["stability"]["borda"] == 1.0
        assert found["sessions"][0]["outcomes"]["borda"]["leaders"] == ["x"]

    @pytest.mark.parametrize(
        ("options", "sentence"),
        [
            (["--rules", "borda,shulze"], "unknown rule 'shulze'; did you mean 'schulze'?"),
            (
                ["--param", "alhpa=1"],
                "unknown parameter of the rules compared 'alhpa'; did you mean 'alpha'?",
            ),
            (["--session", "q11"], "unknown session of the ballots 'q11'; did you mean 'q1'?"),
        ],
    )
    def test_misuse_is_one_line(self, witan, council, options, sentence):
        """With the nearest valid name; the status is 2."""
        said = witan("compare", council, *options)

        assert (said.status, said.out) == (2, "")
        assert said.err == f"witan: {sentence}\n"

    def test_no_rule_that_can_count_is_misuse(self, witan, council):
        """With only rules that need grades there is nothing to compare."""
        assert witan("compare", council, "--rules", "range").status == 2

    def test_the_chart_is_drawn(self, witan, council, tmp_path):
        """``--plot`` writes the ranks under every rule."""
        plot = tmp_path / "rules.svg"

        assert witan("compare", council, "--rules", "borda,schulze", "--plot", plot).status == 0
        assert plot.read_text().startswith("<svg")


class TestExplain:
    """Why the leader leads, calculated by hand."""

    def test_the_arithmetic_of_borda_is_shown(self, witan, council):
        """The table has each ballot's share, and their mean is the score."""
        said = witan("explain", council, "--rule", "borda")

        start = said.lines.index("4. Borda: the share of rivals that each ballot places below")
        rows = [line.split() for line in said.lines[start + 4 : start + 10]]
        assert rows[0] == ["r1", "3", "3", "1", "1.000", "2", "0.500"]
        assert rows[3] == ["r4", "3", "3", "2", "0.500", "1", "1.000"]
        assert rows[5] == ["mean", "0.875", "0.625"]

    def test_recusal_is_shown(self, witan, write):
        """A reviewer that ranks its own candidate has no vote on it."""
        path = write(
            "own.jsonl",
            {"reviewer": "x", "ranking": ["x", "y", "z"]},
            {"reviewer": "y", "ranking": ["z", "x"]},
        )

        said = witan("explain", path)

        assert any("x has no say" in line and "recused" in line for line in said.lines)

    def test_one_of_several_sessions_must_be_named(self, witan, sessions):
        """Without --session the error states that there are twelve."""
        said = witan("explain", sessions)

        assert said.status == 2
        assert all(fact in said.err for fact in ("one of 12 sessions", "'q1'"))

    def test_a_history_is_not_explained(self, witan, council):
        """Elo counts no single session, and says so."""
        said = witan("explain", council, "--rule", "elo")

        assert said.status == 2
        assert "not one session" in said.err

    def test_json_has_the_steps(self, witan, council):
        """The object holds the outcome and the steps as tables."""
        found = witan("explain", council, "--rule", "schulze", "--json").json

        assert found["outcome"]["leaders"] == ["x"]
        assert [step["title"] for step in found["steps"]][:2] == [
            "The ballots as cast",
            "The ballots as counted",
        ]
        for step in found["steps"]:
            assert all(len(row) == len(step["header"]) for row in step["rows"])

    def test_nothing_but_abstentions_is_no_quorum(self, witan, write):
        """The abstention is shown; the status is 3."""
        path = write("mute.jsonl", {"reviewer": "r", "abstained": True, "reason": "refused"})

        said = witan("explain", path)

        assert said.status == 3
        assert "abstained: refused" in said.out


class TestRules:
    """The list of rules."""

    def test_every_rule_has_a_line_and_auto_is_first(self, witan):
        """The list names each registered rule with what it needs."""
        from witan.core.rules import RULES

        said = witan("rules")

        start = said.lines[3 : len(RULES) + 4]
        assert [line.split()[0] for line in start] == ["auto", *RULES]
        assert [line.split()[1] for line in start[1:]] == [rule.needs for rule in RULES.values()]

    def test_simulation_results_of_schulze_are_shown(self, witan):
        """Where it finds the best less often than Borda, and has more ties."""
        out = " ".join(witan("rules", "schulze").out.split())

        assert "1 to 3 points less often than Borda at 3 to 5 reviewers" in out
        assert "more dead heats" in out

    def test_one_rule_is_shown_in_full(self, witan):
        """Source, parameters with their defaults, axioms and tie-break have a line each."""
        out = witan("rules", "schulze").out

        assert "strength=winning_votes" in out
        assert "clone independence" in out
        assert "Schulze, Social Choice and Welfare 36, 2011" in out
        assert "share a rank" in out

    def test_auto_is_explained(self, witan):
        """Though it is no rule."""
        out = " ".join(witan("rules", "auto").out.split())

        assert "calibrated if at least two" in out

    def test_an_unknown_rule_names_the_nearest(self, witan):
        """The status is 2, and the sentence offers what was meant."""
        said = witan("rules", "copland-borda")

        assert said.status == 2
        assert said.err.startswith("witan: unknown rule 'copland-borda'")

    def test_json_lists_them(self, witan):
        """``--json`` prints every rule, or the one named."""
        (rule,) = witan("rules", "borda", "--json").json["rules"]

        assert rule["parameters"] == {"variant": "per_ballot"}
        assert len(witan("rules", "--json").json["rules"]) > 1


class TestRubrics:
    """The list of rubrics."""

    def test_they_are_listed_with_their_weights(self, witan):
        """The general rubric is first, with accuracy at 0.35."""
        said = witan("rubrics")

        assert said.lines[3].startswith("general  ")
        assert "accuracy 0.35" in said.lines[3]

    def test_one_is_shown_in_full(self, witan):
        """Each criterion has its weight, and the ceiling is said."""
        said = witan("rubrics", "general")

        assert "accuracy, weight 0.35" in said.lines
        assert any("accuracy under 5" in line and "at most 4" in line for line in said.lines)

    def test_toml_can_be_read_back(self, witan, tmp_path):
        """--rubric reads what --toml prints."""
        from witan.core.rubric import RUBRICS
        from witan.files.rubric_toml import load_rubric

        path = tmp_path / "coding.toml"
        path.write_text(witan("rubrics", "coding", "--toml").out, encoding="utf-8")

        assert load_rubric(path) == RUBRICS["coding"]

    @pytest.mark.parametrize("options", [["--toml"], ["general", "--toml", "--json"]])
    def test_toml_is_one_rubric_and_not_json(self, witan, options):
        """Without a name, or with --json, there is nothing to print as TOML."""
        assert witan("rubrics", *options).status == 2

    def test_json_has_the_criteria(self, witan):
        """``--json`` holds name, weight and anchors of each criterion."""
        (rubric,) = witan("rubrics", "general", "--json").json["rubrics"]

        assert sum(criterion["weight"] for criterion in rubric["criteria"]) == pytest.approx(1)


@pytest.mark.parametrize("command", ["tally", "compare", "explain", "rules", "rubrics"])
def test_every_command_has_help_with_an_example(witan, command):
    """The help of each command says what it does, shows an example, and explains each option."""
    said = witan(command, "--help")

    assert said.status == 0
    assert f"\n    witan {command}" in said.out.split("Examples:")[1]
    assert witan("--help").out.count(f"\n  {command}") == 1


def test_help_lists_every_command_once(witan):
    """Under a heading of its subject."""
    listed = re.findall(r"^  (\w+) {2,}\S", witan("--help").out, re.MULTILINE)

    assert sorted(listed) == sorted(COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_long_help_lists_its_options_under_headings(witan, command):
    """Of more than twelve options only --help itself stands under no subject."""
    _, _, listed = witan(command, "--help").out.partition("\n\n")
    sections = dict(re.findall(r"^(\S[^\n]*):\n((?:  .*\n|\n(?=  ))+)", listed, re.MULTILINE))
    options = {
        name: re.findall(r"^  (-\S+)", text, re.MULTILINE) for name, text in sections.items()
    }
    options.pop("Examples", None)

    if sum(map(len, options.values())) > 12:
        assert options.pop("Other") == ["-h,"]
        assert len(options) >= 3
        assert "History" in options or "Ballots" in options
        assert "Output" in options


def test_the_options_of_ask_follow_the_course_of_a_session(witan):
    """From the question to the output, each subject is a heading."""
    headings = re.findall(r"^(\S[^\n]*):$", witan("ask", "--help").out, re.MULTILINE)

    assert headings == [
        "Question", "Seats", "Deliberation", "Counting", "Ties and intervals", "Time and money",
        "Arms", "History", "Output", "Other",
    ]  # fmt: skip


@pytest.mark.parametrize("arguments", [["--help"], ["ask", "--help"]])
def test_the_help_names_every_exit_status(witan, arguments):
    """Of those that a session may end with, each has its number and its meaning."""
    said = " ".join(witan(*arguments).out.split())
    meant = said.partition("Exit status: ")[2].partition(". ")[0].split(", ")

    numbers = [int(each.split()[0]) for each in meant if each.split()[0].isdigit()]
    assert set(Status) == set(numbers)


def test_the_manual_names_every_exit_status():
    """Its table has a row for each."""
    manual = (ROOT / "docs" / "command-line.md").read_text(encoding="utf-8")

    assert [int(row) for row in re.findall(r"^\| (\d+) \| ", manual, re.MULTILINE)] == list(Status)
