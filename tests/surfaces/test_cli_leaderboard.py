"""``witan leaderboard``, black box: against hand counts, and equal on every engine."""

import math
from dataclasses import replace

import pytest
from scipy.stats import beta, norm, t

from histories import session_events
from postgres import database_of
from stored_ballots import NOW, alike, ballot, jury, lake_of, sessions, store_sessions
from witan.deliberation.events import AnswerDone
from witan.deliberation.session import Session
from witan.history import SessionImport


@pytest.fixture(scope="module")
def history(tmp_path_factory):
    """Twelve sessions in which ash leads, then twelve in which elm does."""
    return store_sessions(tmp_path_factory.mktemp("kept") / "history.sqlite", sessions())


@pytest.fixture(scope="module")
def lake(history, tmp_path_factory):
    return lake_of(history, tmp_path_factory.mktemp("lake"))


def lines(said):
    """Ranked lines in JSON, by model."""
    return {line["model"]: line for line in said.json["lines"]}


class TestNumbers:
    """Printed numbers match hand counts."""

    def test_the_score_is_the_mean_of_means(self, witan, history):
        """There ash has 12 sessions with 1 and 12 with .375, so .6875 with error s/√24."""
        said = witan("leaderboard", "--history", history, "--json")

        line = lines(said)["ash"]
        spread = math.sqrt(24 * 0.3125**2 / 23)
        assert said.status == 0
        assert said.err == ""
        assert line["score"] == pytest.approx(0.6875)
        assert line["std_error"] == pytest.approx(spread / math.sqrt(24))
        reach = t.ppf(0.975, 23) * spread / math.sqrt(24)
        votes = 0.6875 * 0.3125 * (norm.ppf(0.975) / reach) ** 2
        low = beta.ppf(0.025, 0.6875 * votes + 0.5, 0.3125 * votes + 0.5)
        assert line["interval"]["low"] == pytest.approx(low)
        assert (line["sessions"], line["votes"], line["offered"]) == (24, 96, 96)
        assert line["wins"] == 48

    def test_a_window_and_a_category_select_sessions(self, witan, history):
        """In October ash has 1 in each of the ten sessions of coding."""
        said = witan(
            "leaderboard", "--history", history, "--json", "--category", "coding",
            "--since", "2026-10-01", "--until", "2026-11-01",
        )  # fmt: skip

        assert lines(said)["ash"]["score"] == 1
        assert lines(said)["ash"]["sessions"] == 10
        assert said.json["terms"]["window"] == {
            "since": "2026-10-01T00:00:00+00:00",
            "until": "2026-11-01T00:00:00+00:00",
            "category": "coding",
        }

    def test_a_gained_rank_is_shown_beside_the_change(self, witan, history):
        """By how many ranks elm moved up, if there is an earlier window."""
        window = ("--since", "2026-11-01", "--until", "2026-12-02")
        said = witan("leaderboard", "--history", history, *window)
        alone = witan("leaderboard", "--history", history)

        head, elm = (
            next(line.split("  ") for line in said.lines if part in line)
            for part in ("moved", " elm ")
        )
        assert "+1" in [cell.strip() for cell in elm]
        assert "moved" in [cell.strip() for cell in head]
        assert "moved: ranks gained" in said.out
        assert "moved" not in alone.out

    def test_changes_refer_to_the_previous_window(self, witan, history):
        """From October to November elm goes from .375 to 1, and up a rank."""
        said = witan(
            "leaderboard", "--history", history, "--json",
            "--since", "2026-11-01", "--until", "2026-12-02",
        )  # fmt: skip

        change = lines(said)["elm"]["change"]
        assert change["score"] == pytest.approx(0.625)
        assert change["rank"] == 1
        assert said.json["compared_to"]["since"] == "2026-10-01T00:00:00+00:00"

    def test_an_open_window_has_a_previous_one(self, witan, history):
        """With --since alone it is as long as the time since then."""
        said = witan("leaderboard", "--history", history, "--json", "--since", "2026-10-07")

        assert said.json["compared_to"]["until"] == "2026-10-07T00:00:00+00:00"

    def test_models_with_few_sessions_are_unranked(self, witan, history):
        """Three sessions give pine a score and no rank."""
        said = witan("leaderboard", "--history", history, "--json")

        [pine] = said.json["provisional"]
        assert (pine["model"], pine["sessions"], pine["rank"]) == ("pine", 3, None)
        assert pine["score"] == pytest.approx(0.125)
        more = witan("leaderboard", "--history", history, "--json", "--min-sessions", 3)
        assert more.json["provisional"] == []

    def test_elo_follows_the_order_of_matches(self, witan, tmp_path):
        """One session of two models moves the winner from 1000 by 32 · ½."""
        held = SessionImport("q1", NOW, ballots=(ballot("q1", "r1", ("ash", "elm")),))
        place = store_sessions(tmp_path / "h.sqlite", [held])
        asked = ("--order-by", "elo", "--min-sessions", 1, "--json")
        said = witan("leaderboard", "--history", place, *asked)

        assert {name: line["elo"] for name, line in lines(said).items()} == {
            "ash": 1016.0, "elm": 984.0,
        }  # fmt: skip
        assert said.json["lines"][0]["rank_low"] is None

    def test_people_have_a_separate_leaderboard(self, witan, tmp_path):
        """Models put ash first and people put oak first."""
        held = []
        for number in range(3):
            name = f"q{number}"
            person = ballot(name, "pat", ("oak", "elm", "ash"), kind="human")
            held.append(SessionImport(name, NOW, ballots=(*jury(name), person)))
        place = store_sessions(tmp_path / "h.sqlite", held)
        asked = ("--history", place, "--min-sessions", 1, "--json")

        models = witan("leaderboard", *asked).json
        people = witan("leaderboard", *asked, "--kind", "human").json

        assert models["lines"][0]["model"] == "ash"
        assert people["lines"][0]["model"] == "oak"
        assert people["lines"][0]["votes"] == 3

    def test_cost_and_time_stand_beside_quality(self, witan, tmp_path):
        """Each answer of these councils costs a cent and takes two seconds."""
        record = Session.of(session_events("s1"))
        place = store_sessions(tmp_path / "h.sqlite", [SessionImport("s1", session_record=record)])
        said = witan("leaderboard", "--history", place, "--min-sessions", 1, "--json")

        for line in said.json["lines"]:
            assert line["effort"]["cost_usd"] == pytest.approx(0.01)
            assert line["effort"]["seconds"] == pytest.approx(2.0)

    def test_a_cheap_answer_does_not_look_free(self, witan, tmp_path):
        """It costs two thousandths of a cent."""
        events = [
            replace(event, spent=replace(event.spent, cost_usd=0.00002))
            if isinstance(event, AnswerDone)
            else event
            for event in session_events("s1")
        ]
        stored = SessionImport("s1", session_record=Session.of(events))
        place = store_sessions(tmp_path / "h.sqlite", [stored])
        said = witan("leaderboard", "--history", place, "--min-sessions", 1)

        assert "$0.000020" in said.out


class TestRules:
    """Any rule that scores a session."""

    def test_another_rule_is_counted_once(self, witan, tmp_path):
        """The first run reports how many sessions it counted; the second counts none."""
        place = store_sessions(tmp_path / "h.sqlite", sessions())
        asked = ("leaderboard", "--history", place, "--rule", "mean_rank", "--json")

        first, second = witan(*asked), witan(*asked)

        [line] = first.err.splitlines()
        assert line.startswith("counting 24 sessions ")
        assert "mean_rank" in line
        assert second.err == ""
        assert first.json == second.json
        assert lines(first)["ash"]["score"] == pytest.approx((12 * 1 + 12 * 2.25) / 24)
        assert first.json["lines"][0]["model"] == "ash"

    @pytest.mark.parametrize(
        ("options", "advice"),
        [
            (["--rule", "range"], "another rule, such as 'borda'"),
            (["--rule", "borda", "--kind", "human"], "the ballots of kind 'model'"),
            (
                ["--rule", "range", "--kind", "human"],
                "the ballots of kind 'model' and another rule, such as 'borda'",
            ),
        ],
    )
    def test_advice_where_nothing_is_counted_is_true(self, witan, tmp_path, options, advice):
        """Models ranked, and nobody graded: only another rule or kind that counts is named."""
        held = SessionImport("q1", NOW, ballots=(ballot("q1", "r1", ("ash", "elm")),))
        place = store_sessions(tmp_path / "h.sqlite", [held])
        said = witan("leaderboard", "--history", place, *options)

        assert said.status == 3
        assert said.err.endswith(f" since the first session; choose {advice}\n")

    def test_no_other_rule_is_advised_where_sessions_are_counted(self, witan, tmp_path):
        """A ballot on one model gives no score under any rule."""
        held = SessionImport("q1", NOW, ballots=(ballot("q1", "r1", ("ash",)),))
        place = store_sessions(tmp_path / "h.sqlite", [held])
        said = witan("leaderboard", "--history", place)

        assert said.status == 3
        assert "no ballot compares two models" in said.err
        assert "another rule" not in said.err

    def test_a_rule_that_leaves_sessions_out_says_so(self, witan, tmp_path):
        """The rule range needs grades, and only one session of two has any."""
        graded = ballot("q2", "r1", ("ash", "elm"), grades={"ash": 8.0, "elm": 6.0})
        held = [
            SessionImport("q1", NOW, ballots=(ballot("q1", "r1", ("ash", "elm")),)),
            SessionImport("q2", NOW, ballots=(graded,)),
        ]
        place = store_sessions(tmp_path / "h.sqlite", held)
        asked = ("--rule", "range", "--min-sessions", 1)
        said = witan("leaderboard", "--history", place, *asked, "--json")

        assert lines(said)["ash"]["score"] == 8.0
        assert any("1 of 2 sessions have no standings" in text for text in said.json["warnings"])

    def test_a_rule_over_all_sessions_is_refused(self, witan, history):
        """Elo has no score per session; it is an order."""
        said = witan("leaderboard", "--history", history, "--rule", "elo")

        assert (said.status, said.out) == (2, "")
        assert "order" in said.err

    def test_a_rule_that_differs_by_session_is_refused(self, witan, history):
        """The scales of auto cannot be averaged."""
        said = witan("leaderboard", "--history", history, "--rule", "auto")

        assert (said.status, said.out) == (2, "")
        assert "one rule by name" in said.err

    def test_an_unknown_rule_gets_the_nearest(self, witan, history):
        """Before anything is opened."""
        said = witan("leaderboard", "--history", history, "--rule", "bordda")

        assert (said.status, said.out) == (2, "")
        assert "did you mean 'borda'?" in said.err

    def test_a_lake_without_the_rule_says_how_to_add_it(self, witan, lake):
        """The history must be counted first."""
        said = witan("leaderboard", "--lake", lake, "--rule", "schulze")

        assert (said.status, said.out) == (2, "")
        assert "no standings under schulze" in said.err
        assert "export it again" in said.err


class TestEngines:
    """One definition, four engines."""

    ASKED = ("--since", "2026-10-05", "--until", "2026-11-30", "--elo", "--json")

    def test_postgresql_gives_the_same(self, witan, history):
        """Counts are identical, sums equal to 1e-9."""
        for url in database_of():
            store_sessions(url, sessions())
            here = witan("leaderboard", "--history", history, *self.ASKED).json
            there = witan("leaderboard", "--history", url, *self.ASKED).json

            alike(here, there)

    def test_duckdb_gives_the_same(self, witan, history, lake):
        """From a lake of the history."""
        pytest.importorskip("duckdb", reason="DuckDB is not installed")
        here = witan("leaderboard", "--history", history, *self.ASKED).json
        there = witan("leaderboard", "--lake", lake, *self.ASKED).json

        alike(here, there)

    @pytest.mark.slow
    @pytest.mark.usefixtures("spark")
    @pytest.mark.parametrize("command", [("leaderboard", *ASKED), ("audit", "--json")])
    def test_spark_gives_the_same(self, witan, history, lake, command):
        """For the leaderboard and the audit."""
        here = witan(*command, "--history", history).json
        there = witan(*command, "--lake", lake, "--engine", "spark").json

        engines = [board.pop("engine", None) for board in (here, there)]
        assert engines in ([None, None], ["sqlite", "spark"])
        for board in (here, there):
            board.pop("where", None)
        alike(here, there)


class TestNoData:
    """An empty result says why."""

    @pytest.mark.parametrize("command", ["leaderboard", "audit"])
    def test_an_empty_history(self, witan, tmp_path, command):
        """There is no session yet."""
        said = witan(command, "--history", store_sessions(tmp_path / "h.sqlite", []))

        assert (said.status, said.out) == (3, "")
        assert "to count yet" in said.err

    @pytest.mark.parametrize(
        ("field", "why"),
        [
            ('"grades": {"x": 8}', "compares two models; have reviewers judge two or more texts"),
            ('"abstained": true, "candidates": ["x", "y"]', "as no reviewer voted; see why all"),
        ],
    )
    def test_ballots_without_comparisons(self, witan, tmp_path, field, why):
        """Reviewers of single texts did not abstain."""
        path = tmp_path / "ballots.jsonl"
        path.write_text(f'{{"session": "s1", "reviewer": "ann", {field}}}\n')
        said = witan("leaderboard", path)

        assert (said.status, said.out) == (3, "")
        assert why in said.err

    @pytest.mark.parametrize("command", ["leaderboard", "audit"])
    def test_simulated_sessions_alone(self, witan, tmp_path, command):
        """They are never summed, and a sentence says so."""
        record = Session.of(session_events("s1", simulated=True))
        place = store_sessions(tmp_path / "h.sqlite", [SessionImport("s1", session_record=record)])
        said = witan(command, "--history", place)

        assert (said.status, said.out) == (3, "")
        assert "simulated" in said.err

    @pytest.mark.parametrize("command", ["leaderboard", "audit"])
    def test_an_empty_window(self, witan, history, command):
        """It is named with the span of the data."""
        said = witan(command, "--history", history, "--since", "2031-01-31")

        assert (said.status, said.out) == (3, "")
        assert all(fact in said.err for fact in ("2031-01-31 00:00 UTC", "there are 24"))
        assert "from 2026-10-01 to 2026-11-12" in said.err

    @pytest.mark.parametrize("command", ["leaderboard", "audit"])
    def test_an_unknown_category(self, witan, history, command):
        """It is named with the existing ones."""
        said = witan(command, "--history", history, "--category", "cooking")

        assert (said.status, said.out) == (3, "")
        assert "'coding', 'law'" in said.err

    def test_an_empty_window_of_a_lake(self, witan, lake):
        """In the same words."""
        pytest.importorskip("duckdb", reason="DuckDB is not installed")
        said = witan("leaderboard", "--lake", lake, "--until", "2001-01-01")

        assert said.status == 3
        assert "no session is before 2001-01-01 00:00 UTC; there are 24, " in said.err

    def test_a_rule_over_all_sessions_is_refused_with_its_option(self, witan, history):
        """Elo is an order of the leaderboard."""
        said = witan("leaderboard", "--history", history, "--rule", "elo")

        assert said.status == 2
        assert said.err.endswith("a rating over all sessions is an --order-by\n")

    @pytest.mark.parametrize("command", ["leaderboard", "audit"])
    def test_a_missing_history_is_not_created(self, witan, tmp_path, command):
        place = tmp_path / "none.sqlite"
        said = witan(command, "--history", place)

        assert (said.status, said.out) == (2, "")
        assert "there is no history yet" in said.err
        assert not place.exists()

    @pytest.mark.parametrize(
        ("options", "problem"),
        [
            (("--engine", "spark"), "--lake"),
            (("--lake", "somewhere", "--history", "h"), "not both"),
            (("--lake", "somewhere"), "not a lake"),
            (("--plot", "chart.gif"), ".svg"),
            (("--level", "95"), "95 is not from 0 to 1; write it as 0.95."),
            (("--level", "99.9%"), "99.9% is not from 0 to 1; write it as 0.999."),
            (("--level", "1.5e9"), "not in the range 0<x<1"),
            (("--since", "2026-02-01", "--until", "2026-01-01"), "a time before"),
        ],
    )
    @pytest.mark.parametrize("command", ["leaderboard", "audit"])
    def test_misuse_is_one_line(self, witan, tmp_path, monkeypatch, command, options, problem):
        """Conflicting options are refused before reading."""
        monkeypatch.chdir(tmp_path)
        said = witan(command, *options)

        assert (said.status, said.out) == (2, "")
        assert problem in said.err
        assert said.err.count("\n") == 1


class TestNames:
    """Renamed models are one model, and names are escaped."""

    def test_an_alias_joins_two_names(self, witan, history, tmp_path):
        """Now pine is the new name of oak, and has the sessions of both."""
        config = tmp_path / "witan.toml"
        config.write_text('[aliases]\noak = "pine"\n', encoding="utf-8")
        said = witan("leaderboard", "--history", history, "--config", config, "--elo", "--json")

        assert sorted(lines(said)) == ["ash", "elm", "pine"]
        assert lines(said)["pine"]["sessions"] == 24
        assert lines(said)["pine"]["elo"] is not None

    def test_a_session_of_both_names_counts_once(self, witan, tmp_path):
        """Its score is the mean of the two, and its match with a third is one, on each engine."""
        rankings = {"q1": ("x-old", "x", "y"), "q2": ("x", "y")}
        held = [
            SessionImport(name, NOW, ballots=(ballot(name, "r1", ranking),))
            for name, ranking in rankings.items()
        ]
        place = store_sessions(tmp_path / "h.sqlite", held)
        config = tmp_path / "witan.toml"
        config.write_text('[aliases]\nx-old = "x"\n', encoding="utf-8")
        asked = ("leaderboard", "--config", config, "--json", "--elo", "--min-sessions")

        for where in (("--history", place), ("--lake", lake_of(place, tmp_path / "lake"))):
            found = lines(witan(*asked, 1, *where))["x"]
            assert (found["sessions"], found["appearances"], found["votes"]) == (2, 2, 3)
            assert found["score"] == pytest.approx((0.75 + 1) / 2)
            assert found["elo"] == pytest.approx(1016 + 32 / (1 + 10 ** (32 / 400)))
            assert witan(*asked, 3, *where).json["lines"] == []

    def test_control_characters_are_escaped(self, witan, tmp_path):
        held = SessionImport("q1", NOW, ballots=(ballot("q1", "r1", ("a\x1b[31m", "elm")),))
        place = store_sessions(tmp_path / "h.sqlite", [held])
        said = witan("leaderboard", "--history", place, "--min-sessions", 1)

        assert "\x1b" not in said.out
        assert r"a\x1b[31m" in said.out


class TestText:
    """What a reader sees."""

    def test_conclusions_are_in_plain_words(self, witan, history):
        """The leader, possible leaders, and separated models."""
        said = witan("leaderboard", "--history", history, "--since", "2026-11-01")

        assert all(
            fact in said.lines[0] for fact in ("leaderboard · borda", "from 2026-11-01 00:00 UTC")
        )
        assert said.lines[1].startswith("elm has the best")
        assert "fewer than 10 scored sessions" in said.out
        assert "0.375" in said.out

    def test_groups_that_never_met_are_ranked_apart(self, witan, tmp_path):
        """In a column, and each has a sentence."""
        held = [
            SessionImport(name, NOW, ballots=(ballot(name, "r1", ranking),))
            for name, ranking in (("q1", ("ash", "elm")), ("q2", ("oak", "pine", "yew")))
        ]
        place = store_sessions(tmp_path / "h.sqlite", held)

        said = witan("leaderboard", "--history", place, "--min-sessions", 1)
        told = witan("leaderboard", "--history", place, "--min-sessions", 1, "--json").json

        assert "2 groups" in said.lines[1]
        assert [line for line in said.lines if line.startswith("Group 2: ash")]
        assert [line.split()[:3] for line in said.lines if line.startswith("    ")] == [
            ["1", "1", "oak"], ["1", "2", "pine"], ["1", "3", "yew"],
            ["2", "1", "ash"], ["2", "2", "elm"],
        ]  # fmt: skip
        assert "group: models connected by comparisons" in said.out
        assert [line["group"] for line in told["lines"]] == [1, 1, 1, 2, 2]
        assert told["interpretation"] == said.lines[1]

    def test_one_comparison_is_singular(self, witan, tmp_path):
        """One ballot on two models is one comparison."""
        held = SessionImport("q1", NOW, ballots=(ballot("q1", "r1", ("ash", "elm")),))
        place = store_sessions(tmp_path / "h.sqlite", [held])

        said = witan("leaderboard", "--history", place, "--min-sessions", 1)

        assert "from 1 comparison of two models\n" in said.out

    @pytest.mark.parametrize("option", ["--plot", "--matchups"])
    def test_charts_are_drawn(self, witan, history, tmp_path, option):
        """A chart holds the name of every model."""
        path = tmp_path / "chart.svg"
        said = witan("leaderboard", "--history", history, option, path)

        assert said.status == 0
        drawn = path.read_text(encoding="utf-8")
        assert all(name in drawn for name in ("ash", "elm", "oak", "pine"))

    def test_a_chart_of_costs_needs_costs(self, witan, history, tmp_path):
        """Imported ballots have none; the error says so, and other charts are written."""
        costs, plot = tmp_path / "costs.svg", tmp_path / "plot.svg"

        said = witan("leaderboard", "--history", history, "--costs", costs, "--plot", plot)

        assert said.status == 3
        assert f"{costs} is not written: no answer has a known cost" in said.err
        assert (plot.exists(), costs.exists()) == (True, False)

    def test_every_chart_has_a_file_of_its_own(self, witan, history, tmp_path):
        """An option in place of a file, or the file of another chart, is refused by name."""
        plot = ("--plot", tmp_path / "a.svg")
        forgotten = witan("leaderboard", "--history", history, "--matchups", *plot)
        shared = witan("leaderboard", "--history", history, *plot, "--matchups", plot[1])

        assert (forgotten.status, shared.status) == (2, 2)
        assert "--matchups cannot be '--plot'" in forgotten.err
        assert "--plot and --matchups need different files" in shared.err
        assert not plot[1].exists()
