"""``witan tally``, black box: files and arguments in; text, JSON and exit status out."""

import json
from io import BytesIO, TextIOWrapper

import pytest


class TestProblems:
    """Input that is not read or not used is named."""

    def test_unreadable_lines_are_in_the_json(self, witan, tmp_path):
        """It also has the outcome, as over HTTP."""
        path = tmp_path / "ballots.jsonl"
        path.write_text('{"reviewer": "r", "ranking": ["x", "y"]}\nnonsense\n')

        said = witan("tally", path, "--json")

        assert [each["line"] for each in said.json["not_read"]] == [2]

    @pytest.mark.parametrize(
        ("options", "setting"),
        [(["--reliability", "ada=2"], "reliability"), (["--threshold", "3"], "threshold")],
    )
    def test_a_setting_without_effect_is_named(self, witan, council, options, setting):
        """Every counting command names it, also in JSON."""
        words = f"{setting} has no effect"
        tallied = witan("tally", council, "--json", *options)

        assert words in tallied.err
        [sentence] = tallied.json["without_effect"]
        assert words in sentence
        assert words in witan("explain", council, *options).out
        assert words in witan("compare", council, "--rules", "borda", *options).out
        used = ["--rule", "weighted_borda", "--ties", "intervals"]
        assert witan("tally", council, "--json", *used, *options).json["without_effect"] == []

    @pytest.mark.parametrize("option", ["--weight", "--reliability"])
    def test_an_unknown_reviewer_of_an_option_is_named(self, witan, council, option):
        """The line names the option and the nearest reviewer."""
        said = witan("tally", council, "--rule", "weighted_borda", option, "r11=2")

        assert said.status == 0
        assert f"{option} has no effect: unknown reviewer 'r11'; did you mean 'r1'?" in said.err

    def test_a_parameter_of_none_of_the_rules_compared_is_refused(self, witan, council):
        """Schulze has it, but only Borda is compared."""
        alone = witan("compare", council, "--rules", "borda", "--param", "strength=margins")
        both = witan("compare", council, "--rules", "borda,schulze", "--param", "strength=margins")

        assert alone.status == 2
        assert "'strength'" in alone.err
        assert both.status == 0


class TestSeveralFiles:
    """Grades by one reviewer in a file per candidate are one ballot."""

    def tally(self, witan, tmp_path, first, second):
        """A file of x and a file of y, each with a grade and its scale."""
        for name, (grade, scale) in {"x": first, "y": second}.items():
            row = f"session,reviewer,candidate,grade,scale\nq,ada,{name},{grade},{scale}\n"
            (tmp_path / f"{name}.csv").write_text(row)
        return witan("tally", tmp_path / "x.csv", tmp_path / "y.csv", "--json")

    def test_grades_of_two_scales_are_compared_on_one(self, witan, tmp_path):
        """0.9 of 1 is better than 3 of 10, and a note mentions the conversion."""
        said = self.tally(witan, tmp_path, (0.9, "0-1"), (3, "1-10"))
        [outcome] = said.json["sessions"]
        standings = outcome["standings"]

        assert [each["candidate"] for each in standings] == ["x", "y"]
        assert [each["mean_grade"] for each in standings] == [9.1, 3.0]
        assert "grades are read as 0-1, and converted to 1-10" in said.err

    def test_grades_of_one_scale_are_converted_once(self, witan, tmp_path):
        """Nothing is converted or noted twice."""
        said = self.tally(witan, tmp_path, (0.3, "0-1"), (0.9, "0-1"))

        [outcome] = said.json["sessions"]
        assert [each["candidate"] for each in outcome["standings"]] == ["y", "x"]
        assert said.err == ""


class TestOneSession:
    """A single session is shown in full."""

    def test_the_text_states_the_leader_and_close_calls(self, witan, council):
        """Header, sentence, trust line and notes around the table have lines of their own."""
        said = witan("tally", council)

        assert said.status == 0
        assert said.err == ""
        assert said.lines[0] == "outcome · q1"
        assert all(fact in said.lines[1] for fact in ("x is ahead", "against y"))
        assert said.lines[2].startswith("The rule borda counted 4 ballots; it was chosen ")
        assert all(
            fact in said.out
            for fact in ("4 of 5 reviewers", "2 ballots could end", "2.9 effective votes", "0.12")
        )
        assert "agreed: Pair by pair, more ballots place x above" in said.out
        assert said.lines[-1] == "r5 abstained: timed out"

    def test_tiers_are_separated_by_a_line_of_ascii(self, witan, council):
        """It is between y and z, which differ clearly."""
        said = witan("tally", council, "--rho", "none")

        table = said.lines[4:9]
        assert [line.split()[:2] for line in (table[1], table[2], table[4])] == [
            ["1", "x"],
            ["2", "y"],
            ["3", "z"],
        ]
        assert set(table[3]) == {"-"}

    def test_piped_text_has_no_escape_box_or_tab(self, witan, council):
        """It has no escape sequence, box character or tab."""
        said = witan("tally", council)

        assert not set(said.out) & {"\x1b", "─", "│", "\t"}

    def test_names_from_a_file_cannot_move_the_cursor(self, witan, write):
        """An escape sequence in a name is printed as text."""
        path = write("evil.jsonl", {"reviewer": "r", "ranking": ["\x1b[2Jx", "y"]})

        said = witan("tally", path)

        assert "\x1b" not in said.out + said.err
        assert "\\x1b[2Jx" in said.out

    def test_ballots_of_several_files_are_merged(self, witan, write):
        """They are of one session in two files."""
        one = write("one.jsonl", {"session": "q", "reviewer": "r1", "ranking": ["x", "y"]})
        two = write("two.jsonl", {"session": "q", "reviewer": "r2", "ranking": ["x", "y"]})

        (session,) = witan("tally", one, two, "--json").json["sessions"]

        assert session["n_ballots"] == 2


class TestManySessions:
    """More sessions than the limit have a line each."""

    def test_each_session_has_a_line_with_totals_below(self, witan, sessions):
        """Totals count clear leads and dead heats."""
        said = witan("tally", sessions, "--rho", "none")

        start = 1 + next(n for n, line in enumerate(said.lines) if line.startswith("session "))
        names = [line.split()[0] for line in said.lines[start : start + 12]]
        assert names == [f"q{k}" for k in range(1, 13)]
        assert all(fact in said.out for fact in ("10 with a clear leader", "2 in a dead heat"))
        assert "--session" in said.lines[-1]

    def test_leads_are_counted_per_candidate(self, witan, sessions):
        """Of twelve, x leads ten sessions, all clearly, and shares two; y shares two."""
        said = witan("tally", sessions, "--rho", "none")

        start = next(n for n, line in enumerate(said.lines) if line.startswith("candidate"))
        assert said.lines[start + 1].split() == ["x", "10", "10", "2"]
        assert said.lines[start + 2].split() == ["y", "0", "0", "2"]

    def test_one_session_is_selected_by_name(self, witan, sessions):
        """``--session`` shows only that one, in full."""
        said = witan("tally", sessions, "--session", "q11")

        assert said.lines[0] == "outcome · q11"
        assert "q12" not in said.out

    def test_sessions_within_the_limit_are_shown_in_full(self, witan, sessions):
        """With a limit of twelve, all twelve are."""
        said = witan("tally", sessions, "--limit", 12)

        assert sum(line.startswith("The rule borda ") for line in said.lines) == 12


class TestJson:
    """``--json`` prints one object."""

    def test_json_has_the_documented_fields(self, witan, council):
        """Each standing does, too."""
        found = witan("tally", council, "--json").json

        (session,) = found["sessions"]
        assert set(found) == {"witan", "sessions", "not_counted", "not_read", "without_effect"}
        assert set(session) >= {
            "session", "rule", "why", "interpretation", "standings", "condorcet_winner",
            "cycles", "kendall_w", "effective_votes", "ballots_to_flip", "warnings",
        }  # fmt: skip
        for standing in session["standings"]:
            assert set(standing) >= {
                "candidate", "rank", "score", "std_error", "votes", "wins", "confidence",
                "tied_with_next", "p_best", "tier",
            }  # fmt: skip

    def test_numbers_are_unrounded_and_unknown_is_null(self, witan, write):
        """One ballot has exact scores, and no error or probability."""
        path = write("one.jsonl", {"reviewer": "r", "ranking": ["x", "y", "z", "w"]})

        (session,) = witan("tally", path, "--json").json["sessions"]

        assert [line["score"] for line in session["standings"]] == [1.0, 2 / 3, 1 / 3, 0.0]
        assert session["standings"][0]["std_error"] is None
        assert session["standings"][0]["p_best"] is None
        assert session["effective_votes"] == 1.0

    def test_standings_have_numbers_of_their_rule(self, witan, council):
        """Borda's points are an example."""
        (session,) = witan("tally", council, "--json").json["sessions"]

        assert [line["points"] for line in session["standings"]] == [1.75, 1.25, 0.0]

    def test_json_has_a_line_per_session(self, witan, sessions):
        """The object is printed session by session, at any size."""
        said = witan("tally", sessions, "--json")

        assert len(said.json["sessions"]) == 12
        middle = [json.loads(line.rstrip(",")) for line in said.lines[1:-1]]
        assert [session["session"] for session in middle] == [f"q{k}" for k in range(1, 13)]

    def test_json_has_no_nan(self, witan, write):
        """An undefined number is null."""
        path = write(
            "graded.jsonl",
            {"reviewer": "r1", "ranking": ["x", "y"], "grades": {"x": 9, "y": 4}},
            {"reviewer": "r2", "ranking": ["z", "x"]},
        )

        out = witan("tally", path, "--rule", "range", "--json").out

        assert "NaN" not in out
        assert json.loads(out)["sessions"][0]["standings"][-1]["score"] is None


class TestErrors:
    """Every misuse is one sentence and an exit status."""

    @pytest.mark.parametrize(
        ("options", "sentence"),
        [
            (["--rule", "shulze"], "unknown rule 'shulze'; did you mean 'schulze'?"),
            (["--session", "q11"], "unknown session of the ballots 'q11'; did you mean 'q1'?"),
            (["--rubric", "codng"], "unknown rubric 'codng'; did you mean 'coding'?"),
            (["--level", "2"], "Invalid value for '--level': 2.0 is not in the range 0<x<1."),
            (["--rho", "1"], "--rho cannot be 1.0"),
            (["--rule", "borda", "--param", "varint=roster"], "a parameter of borda"),
        ],
    )
    def test_misuse_is_one_line_with_status_2(self, witan, council, options, sentence):
        """It names the problem and the nearest valid name."""
        said = witan("tally", council, *options)

        assert said.status == 2
        assert said.out == ""
        assert said.err.startswith(f"witan: {sentence}")
        assert said.err.count("\n") == 1

    @pytest.mark.parametrize(
        ("arguments", "sentence"),
        [
            (["tallly"], "unknown command 'tallly'; did you mean 'tally'?"),
            (["tally"], "Missing argument 'FILE|ID...'."),
            (["tally", "-", "--wieght", "r1=2"], "No such option"),
        ],
    )
    def test_arguments_that_cannot_be_parsed_show_the_usage(self, witan, arguments, sentence):
        """Usage and reason are on stderr; the status is 2."""
        said = witan(*arguments)

        assert said.status == 2
        assert said.out == ""
        assert said.err.startswith("Usage: witan")
        assert sentence in said.err

    @pytest.mark.parametrize("command", ["tally", "compare", "explain", "calibrate"])
    def test_an_invalid_configuration_is_always_refused(self, witan, council, tmp_path, command):
        """A file named with --config is read even if the ballots need no setting."""
        path = tmp_path / "broken.toml"
        path.write_text("[council\n")

        said = witan(command, council, "--config", path)

        assert (said.status, said.out) == (2, "")
        assert f"{path}: is not TOML" in said.err

    @pytest.mark.parametrize(
        ("arguments", "sentence"),
        [
            (["tally", "-", "-"], "Standard input, -, can be read only once."),
            (["tally", "-", "--weight", "r1"], "'r1' is not of the form REVIEWER=NUMBER"),
            (
                ["tally", "-", "--rho", "much"],
                "'much' cannot be read; expected learn, public, none or a number",
            ),
            (
                ["tally", "-", "--param", "alpha=1"],
                "--param cannot be 'alpha'; expected a rule to go with it",
            ),
            (
                ["tally", "-", "--rule", "elo", "--session", "q"],
                "elo, which rates over all sessions",
            ),
        ],
    )
    def test_an_invalid_value_is_one_sentence(self, witan, arguments, sentence):
        """It is on stderr; the status is 2."""
        said = witan(*arguments)

        assert said.status == 2
        assert said.out == ""
        assert said.err.startswith("witan: ")
        assert said.err.count("\n") == 1
        assert sentence in said.err

    def test_a_missing_file_is_reported_in_one_line(self, witan, tmp_path):
        said = witan("tally", tmp_path / "nowhere.jsonl")

        assert said.status == 2
        assert f"{tmp_path}/nowhere.jsonl does not exist" in said.err

    def test_an_empty_file_is_no_quorum(self, witan, write):
        """The status is 3, and the file is named."""
        path = write("empty.jsonl")

        said = witan("tally", path)

        assert said.status == 3
        assert all(fact in said.err for fact in ("no ballot to count", str(path)))

    @pytest.mark.parametrize("options", [[], ["--json"]])
    def test_abstentions_alone_are_no_quorum(self, witan, write, options):
        """There is no outcome; the status is 3."""
        path = write("mute.jsonl", {"reviewer": "r", "abstained": True, "reason": "refused"})

        assert witan("tally", path, *options).status == 3

    def test_a_session_that_the_rule_cannot_count_is_named(self, witan, write):
        """The graded session is counted, and the status is 0."""
        path = write(
            "mixed.jsonl",
            {"session": "plain", "reviewer": "r", "ranking": ["x", "y"]},
            {"session": "graded", "reviewer": "r", "grades": {"x": 9, "y": 3}},
        )

        said = witan("tally", path, "--rule", "range", "--json")

        assert said.status == 0
        assert [session["session"] for session in said.json["sessions"]] == ["graded"]
        assert said.json["not_counted"][0]["session"] == "plain"
        assert all(fact in said.err.splitlines()[-1] for fact in ("1 session", "1 counted"))

    def test_a_rule_that_counts_no_session_is_misuse(self, witan, council):
        """The status is 2."""
        said = witan("tally", council, "--rule", "range")

        assert said.status == 2
        assert "it needs grades" in said.err

    def test_a_rule_without_uncertainty_reports_no_close_calls(self, witan, council):
        """Elo says so once in the headline and once in the trust line."""
        said = witan("tally", council, "--rule", "elo")

        assert said.out.count("has no test for chance") == 2
        assert "too close to call" not in said.out

    @pytest.mark.parametrize(
        ("at", "order"),
        [
            ("", "the order given, as not all of them have a time"),
            (',"at":"2026-01-0%dT00:00:00Z"', "time order"),
        ],
        ids=["untimed", "timed"],
    )
    def test_elo_notes_that_sessions_are_one_history(self, witan, tmp_path, at, order):
        """The notes have their number and order; a single session has none."""
        line = '{"session":"q%d","reviewer":"r","ranking":["a","b"]%s}\n'
        path = tmp_path / "sessions.jsonl"
        path.write_text("".join(line % (n, at % n if at else "") for n in (1, 2, 3)))
        single = tmp_path / "single.jsonl"
        single.write_text(line % (1, ""))

        [outcome] = witan("tally", path, "--rule", "elo", "--json").json["sessions"]
        [alone] = witan("tally", single, "--rule", "elo", "--json").json["sessions"]

        assert outcome["warnings"] == [f"elo rates the 3 sessions as one history, in {order}"]
        assert alone["warnings"] == []

    @pytest.mark.parametrize(("options", "status"), [([], 0), (["--require-winner"], 5)])
    def test_a_tie_is_an_error_only_if_a_winner_is_required(self, witan, council, options, status):
        """The leader x is too close to call against y: 5 with --require-winner, otherwise 0."""
        said = witan("tally", council, *options)

        assert said.status == status
        assert all(fact in said.lines[1] for fact in ("x is ahead", "against y"))
        assert ("no clear winner" in said.err) == (status == 5)


class TestBadLines:
    """Unreadable lines are reported, and the others count."""

    @pytest.fixture
    def damaged(self, write):
        """Two valid ballots and two invalid lines."""
        return write(
            "damaged.jsonl",
            {"reviewer": "r1", "ranking": ["x", "y"]},
            "{not json",
            {"ranking": ["x", "y"]},
            {"reviewer": "r2", "ranking": ["x", "y"]},
        )

    def test_valid_lines_are_counted(self, witan, damaged):
        """Each invalid line is named by number, followed by both counts."""
        said = witan("tally", damaged, "--json")

        first, second, total = said.err.splitlines()
        assert said.status == 0
        assert said.json["sessions"][0]["n_ballots"] == 2
        assert first.startswith(f"{damaged}:2: ")
        assert second.startswith(f"{damaged}:3: field 'reviewer'")
        assert all(fact in total for fact in (f"2 lines of {damaged}", "2 ballots counted"))

    @pytest.mark.parametrize("options", [[], ["--json"]])
    def test_strict_counts_nothing(self, witan, damaged, options):
        """The status is 1 and stdout is empty."""
        said = witan("tally", damaged, "--strict", *options)

        assert said.status == 1
        assert said.out == ""
        assert all(
            fact in said.err.splitlines()[-1]
            for fact in (f"2 lines of {damaged}", "under --strict")
        )

    @pytest.mark.parametrize("strict", [False, True])
    def test_ignored_parts_of_a_line_are_reported_as_on_import(self, witan, write, strict):
        """They have file, line and field; the line counts unless --strict is given."""
        graded = {"reviewer": "gpt", "grades": {"x": "NaN", "y": 8}}
        path = write("odd.jsonl", graded, {"reviewer": "r1", "ranking": ["x", "y"]})
        said = witan("tally", path, *["--strict"] * strict)

        assert said.err.startswith(f"{path}:1: field 'grades'")
        assert "could not be read" not in said.err
        assert (said.status, bool(said.out)) == ((1, False) if strict else (0, True))

    def test_only_the_first_twenty_problems_are_listed(self, witan, write):
        """Thirty invalid lines make twenty sentences and a count."""
        path = write("bad.jsonl", {"reviewer": "r1", "ranking": ["x", "y"]}, *["{"] * 30)

        said = witan("tally", path)

        assert len(said.err.splitlines()) == 21
        assert said.err.splitlines()[-1].startswith("30 lines of ")


def test_battles_without_voters_are_not_votes_of_people(witan, tmp_path):
    """The trust line counts comparisons, as their authors are unknown."""
    battles = tmp_path / "battles.csv"
    battles.write_text("model_a,model_b,winner\nx,y,model_a\nx,y,model_b\nx,z,tie\n")

    said = witan("tally", battles).out
    assert "3 votes · " in said
    assert "people" not in said


class TestWeights:
    """Numbers are in units of the ballots' weights."""

    RING = (("ABC", 0.5), ("BCA", 2), ("CAB", 1 / 3))

    def ring(self, write, factor=1.0):
        """Three weighted ballots that form a cycle."""
        lines = [
            {"reviewer": order, "ranking": list(order), "weight": weight * factor}
            for order, weight in self.RING
        ]
        return write(f"ring{factor}.jsonl", *lines)

    @pytest.mark.parametrize("factor", [1.0, 12.0, 1e-6])
    def test_distance_and_margins_are_sums_of_weights(self, witan, write, factor):
        """B > C > A contradicts the first ballot in two pairs and the third in two."""
        said = witan("tally", self.ring(write, factor), "--rule", "kemeny", "--json")
        [outcome] = said.json["sessions"]

        assert [line["candidate"] for line in outcome["standings"]] == ["B", "C", "A"]
        assert outcome["distance"] == pytest.approx(factor * 2 * (1 / 2 + 1 / 3))
        assert outcome["optima"] == 1
        b_over_c, b_over_a = outcome["margins"][0][1:]
        assert b_over_c == pytest.approx(factor * (1 / 2 + 2 - 1 / 3))
        assert b_over_a == pytest.approx(factor * (2 - 1 / 2 - 1 / 3))

    def test_equal_weights_are_not_counts_of_ballots(self, witan, write):
        """Two ballots of weight 2 against one are 4 against 2, as whole numbers."""
        path = write("two.jsonl", *({"reviewer": f"r{k}", "ranking": list(order), "weight": 2}
                                    for k, order in enumerate(["AB", "AB", "BA"])))  # fmt: skip

        [outcome] = witan("tally", path, "--rule", "kemeny", "--json").json["sessions"]

        assert outcome["distance"] == 2
        assert outcome["margins"] == [[0, 2], [-2, 0]]

    def test_rounds_of_elimination_count_weights(self, witan, write):
        """C has the least weight, and its ballot goes to A."""
        [outcome] = witan("tally", self.ring(write), "--rule", "irv", "--json").json["sessions"]

        first, second = (one["first_places"] for one in outcome["rounds"])
        assert first == pytest.approx({"A": 0.5, "B": 2, "C": 1 / 3})
        assert second == pytest.approx({"A": 0.5 + 1 / 3, "B": 2, "C": 0})

    def test_an_explanation_uses_the_same_units(self, witan, write):
        """Its table of contradictions adds up to the distance and mentions the weights."""
        said = witan("explain", self.ring(write, 12.0), "--rule", "kemeny")

        assert "Each cell: weight of the ballots that place the row above" in said.out
        assert "contradicts less weight of ballots, pair by pair, than 20." in said.out
        table = said.out.split("Least contradiction")[1]
        assert "24" in said.out.split("Least contradiction")[0]
        assert " 10" in table


class TestScales:
    """Grades count on the scale on which they are given."""

    ZEROS = tuple(
        {"session": "q", "reviewer": f"r{k}", "grades": {"good": good, "bad": bad}}
        for k, (good, bad) in enumerate([(8, 0), (9, 0), (8, 0), (7, 0), (8, 10)])
    )

    def test_an_answer_with_four_zeros_of_five_does_not_lead(self, witan, write):
        """A grade of 0 counts."""
        said = witan("tally", write("zeros.jsonl", *self.ZEROS), "--json")
        [outcome] = said.json["sessions"]

        assert outcome["leaders"] == ["good"]
        assert [line["votes"] for line in outcome["standings"]] == [5, 5]
        assert outcome["scales"] == [{"scale": "0-10", "recognised": True, "instead": []}]

    @pytest.mark.parametrize("command", ["tally", "compare", "explain"])
    def test_every_counting_command_states_the_scale(self, witan, write, command):
        """It is silent only where 1 to 10 is certain; where another scale fits, that is named."""
        low = write("low.jsonl", {"reviewer": "r1", "grades": {"x": 5, "y": 3}},
                    {"reviewer": "r2", "grades": {"x": 4, "y": 2}})  # fmt: skip
        plain = (
            "grades are read as 1-5 (recognised), and converted to 1-10; they also fit 1-10 "
            "(--scale 1-10 reads them so)"
        )

        assert plain in " ".join(witan(command, low).out.split())
        assert "grades are read" not in witan(command, low, "--scale", "1-10").out

    @pytest.mark.parametrize("command", ["leaderboard", "import"])
    def test_a_scale_of_1_to_10_needs_no_note(self, witan, write, command):
        """Where it is uncertain, the note has the option as it is typed."""
        low = {"session": "q2", "reviewer": "r1", "grades": {"x": 5, "y": 3}}
        high = {"session": "q", "reviewer": "r1", "grades": {"x": 9, "y": 3}}

        said = witan(command, write("high.jsonl", high))
        assert "grades are read" not in said.out + said.err
        assert "(--scale 1-10 reads them so)" in witan(command, write("low.jsonl", low)).err

    def test_the_scale_of_many_sessions_is_stated_once(self, witan, write):
        """It is below their lines."""
        lines = [{"session": f"q{k}", "reviewer": "r", "grades": {"x": 0.5, "y": k / 20}}
                 for k in range(12)]  # fmt: skip
        said = witan("tally", write("many.jsonl", *lines))

        assert said.out.count("note: grades are read as 0-1 (recognised)") == 1
        assert "carry notes" not in said.out

    def test_the_option_overrides_the_detected_scale(self, witan, write):
        said = witan("tally", write("zeros.jsonl", *self.ZEROS), "--scale", "1-10", "--json")
        [outcome] = said.json["sessions"]

        assert outcome["scales"] == []
        assert all(fact in outcome["warnings"][0] for fact in ("r0 grades 'bad' 0", "scale 1-10"))

    @pytest.mark.parametrize("scale", ["1", "0-x", "1-1", ""])
    def test_an_invalid_scale_is_refused(self, witan, write, scale):
        """The error shows a valid one."""
        said = witan("tally", write("zeros.jsonl", *self.ZEROS), "--scale", scale)

        assert said.status == 2
        assert "0-1, 1-5, 0-100 or pass-fail" in said.err

    @pytest.mark.parametrize("command", ["audit", "leaderboard"])
    def test_sums_over_a_file_state_the_scale(self, witan, write, command):
        """It is on standard error."""
        lines = [{"session": f"q{k}", "reviewer": r, "grades": {"x": 0.5, "y": 0.1, "z": k / 9}}
                 for k in range(9) for r in ("r1", "r2")]  # fmt: skip
        path = write("unit.jsonl", *lines)

        recognised = "note: grades are read as 0-1 (recognised), and converted to 1-10\n"
        assert recognised in witan(command, path).err
        assert "read as 0-2" in witan(command, path, "--scale", "0-2").err

    def test_an_import_states_the_scale(self, witan, write, tmp_path):
        """With the option, the same file is another import."""
        path = write("unit.jsonl", {"session": "q", "reviewer": "r1", "grades": {"x": 0.5, "y": 1}})
        place = tmp_path / "history.sqlite"
        said = witan("import", path, "--history", place)
        again = witan("import", path, "--history", place, "--scale", "0-1", "--json")

        assert all(fact in said.err for fact in ("0-1 (recognised)", "converted to 1-10"))
        [line] = again.json["files"][0]["scales"]
        assert all(fact in line for fact in ("read as 0-1", "converted to 1-10"))
        [outcome] = witan("recount", "q", "--rule", "range", "--history", place, "--json").json[
            "sessions"
        ]
        assert {line["candidate"]: line["score"] for line in outcome["standings"]} == {
            "x": 5.5, "y": 10,
        }  # fmt: skip


class TestCounting:
    """Options of counting."""

    def test_a_parameter_changes_the_rule(self, witan, write):
        """Under the roster variant a short ballot gives at least a half."""
        path = write(
            "partial.jsonl",
            {"reviewer": "r", "ranking": ["x", "y"], "candidates": ["x", "y", "z"]},
        )

        found = witan("tally", path, "--rule", "borda", "--param", "variant=roster", "--json").json

        standings = {line["candidate"]: line for line in found["sessions"][0]["standings"]}
        assert standings["y"]["score"] == 0.5
        assert found["sessions"][0]["parameters"] == {"variant": "roster"}

    def test_weights_come_from_options_and_from_a_file(self, witan, council, tmp_path):
        """A reviewer of weight 7 outvotes three others in both cases."""
        weights = tmp_path / "weights.json"
        weights.write_text('{"r4": 7}')

        by_option = witan("tally", council, "--weight", "r4=7", "--json").json
        by_file = witan("tally", council, "--weights", weights, "--json").json

        assert by_option["sessions"][0]["leaders"] == ["y"]
        assert by_file == by_option

    def test_own_ballots_count_only_without_recusal(self, witan, write):
        """Only x ranks itself first: with recusal it trails, without it is level."""
        path = write(
            "own.jsonl",
            {"reviewer": "x", "ranking": ["x", "y", "z"]},
            {"reviewer": "y", "ranking": ["z", "x", "y"]},
        )

        recused = witan("tally", path, "--rule", "mean_rank", "--json").json["sessions"][0]
        kept = witan("tally", path, "--rule", "mean_rank", "--recusal", "off", "--json")

        votes = {line["candidate"]: line["votes"] for line in recused["standings"]}
        assert votes == {"x": 1, "y": 1, "z": 2}
        assert {line["votes"] for line in kept.json["sessions"][0]["standings"]} == {2}

    def test_rho_determines_effective_votes(self, witan, council):
        """Four votes with a shared error of one half are worth 1.6."""
        said = witan("tally", council, "--rho", "0.5")

        assert "1.6 effective votes" in said.out

    def test_a_prior_that_cannot_be_learned_is_reported(self, witan, sessions):
        """Twelve sessions are too few; the outcome is that without a prior."""
        asked = witan("tally", sessions, "--prior", "learn")

        assert asked.out == witan("tally", sessions).out
        [line] = asked.err.splitlines()
        assert "fifty sessions" in line

    def test_columns_can_be_renamed(self, witan, tmp_path):
        """``--column`` maps the headers of a CSV."""
        path = tmp_path / "votes.csv"
        path.write_text("task,judge,candidate,rank\nq1,r1,x,1\nq1,r1,y,2\n")

        said = witan(
            "tally", path, "--column", "session=task", "--column", "reviewer=judge", "--json"
        )

        assert said.json["sessions"][0]["session"] == "q1"
        assert said.json["sessions"][0]["leaders"] == ["x"]

    def test_an_unsafe_answer_cannot_win(self, witan, council, write):
        """It led before, and is then last and marked."""
        answers = write(
            "answers.jsonl",
            {"session": "q1", "candidate": "x", "text": "My SSN is 536-22-8716."},
            {"session": "q1", "candidate": "y", "text": "Paris."},
        )

        said = witan("tally", council, "--answers", answers)
        session = witan("tally", council, "--answers", answers, "--json").json["sessions"][0]

        assert session["leaders"] == ["y"]
        assert session["standings"][-1]["candidate"] == "x"
        assert session["safety"] == {"failed": {"x": ["pii_exposure"]}}
        assert "failed: pii_exposure" in said.out

    def test_unreadable_answers_are_named(self, witan, council, write):
        """A line without a text is named by number."""
        answers = write("answers.jsonl", {"candidate": "x"})

        said = witan("tally", council, "--answers", answers)

        assert said.status == 2
        assert all(fact in said.err for fact in (f"{answers}:1", "'text' is missing"))

    @pytest.mark.parametrize("line", ["{", "[" * 100_000], ids=["cut", "deep"])
    def test_answers_that_are_not_json_are_named(self, witan, council, monkeypatch, line):
        """Standard input has a name, too."""
        monkeypatch.setattr("sys.stdin", TextIOWrapper(BytesIO(line.encode())))
        said = witan("tally", council, "--answers", "-")

        assert said.status == 2
        assert "standard input:1: is not JSON" in said.err

    def test_a_custom_rubric_is_read(self, witan, write, tmp_path):
        """The weights of its TOML file apply."""
        rubric = tmp_path / "mine.toml"
        rubric.write_text(
            'name = "mine"\n'
            '[[criteria]]\nname = "depth"\nweight = 0.75\ndescription = "How deep?"\n'
            '[[criteria]]\nname = "style"\nweight = 0.25\ndescription = "How well put?"\n'
        )
        path = write("b.jsonl", {"reviewer": "r", "grades": {"x": {"depth": 8, "style": 4}}})

        found = witan("tally", path, "--rule", "range", "--rubric", rubric, "--json").json

        assert found["sessions"][0]["standings"][0]["score"] == 7.0


class TestCharts:
    """Charts are files beside the answer."""

    def test_standings_and_matchups_are_drawn(self, witan, council, tmp_path):
        """Both charts are written, and the text is printed as usual."""
        plot, matchups = tmp_path / "standings.svg", tmp_path / "matchups.svg"

        said = witan("tally", council, "--plot", plot, "--matchups", matchups)

        assert said.status == 0
        assert said.lines[0] == "outcome · q1"
        assert plot.read_text().startswith("<svg")
        assert matchups.read_text().startswith("<svg")

    def test_an_unknown_suffix_is_refused_before_counting(self, witan, council):
        """The error names the valid ones."""
        said = witan("tally", council, "--plot", "standings.gif")

        assert (said.status, said.out) == (2, "")
        assert "ends in .svg, .png or .html" in said.err

    def test_a_chart_of_several_sessions_is_refused(self, witan, sessions, tmp_path):
        """The error asks to select one, and nothing is printed."""
        said = witan("tally", sessions, "--plot", tmp_path / "standings.svg")

        assert said.status == 2
        assert said.out == ""
        assert "there are 12; choose one with --session" in said.err


def test_a_tie_that_remains_is_not_said_to_be_broken(witan, tmp_path):
    """Borda eliminates c, and leaves the dead heat of a and b."""
    rankings = (["a", "b", "c"], ["a", "b", "c"], ["b", "a", "c"], ["c", "b", "a"])
    ballots = [{"reviewer": f"r{n}", "ranking": each} for n, each in enumerate(rankings)]
    path = tmp_path / "ballots.jsonl"
    path.write_text("\n".join(map(json.dumps, ballots)))

    said = witan("tally", path, "--rule", "irv")

    assert "a and b are in a dead heat" in said.out
    assert "Some ties were broken by borda." in said.out


def test_ballots_against_the_leader_are_not_counted_as_reviewers(witan, tmp_path):
    """Over a history each reviewer has a ballot per session."""
    header, votes = "session,reviewer,candidate,grade", []
    for number in range(31):
        for reviewer in ("ada", "bob"):
            votes += [f"s{number},{reviewer},x,{9 - number % 2}", f"s{number},{reviewer},y,8.5"]
    path = tmp_path / "ballots.csv"
    path.write_text("\n".join([header, *votes]))

    said = witan("tally", path, "--rule", "elo")

    assert "2 of 2 reviewers" in said.out
    assert "30 ballots rank others above x." in said.out
