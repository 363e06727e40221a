"""Four engines, one definition: each gives the sums of a plain Python count."""

from collections import defaultdict
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise
from statistics import fmean

import pytest
from generated_histories import MODELS, START, assert_same, sessions_within, sum_by_key

import reference_sums as by_hand
from reference_gradings import grading_sums
from witan.analytics.lake import Lake
from witan.analytics.leaderboards import rename_standings
from witan.analytics.sources import DuckLake
from witan.analytics.sums import WindowSums
from witan.analytics.views import SqlEngine
from witan.core.rules.elo import rate_matches
from witan.core.session_ballots import StandingEntry
from witan.core.stats.leaderboard import ALWAYS, Window
from witan.core.stats.sums import (
    AnswerSums,
    BallotSums,
    CalibrationSums,
    CriterionSums,
    GradingSums,
    HumanSums,
    LengthSums,
    MatchupSums,
    PanelSums,
    PositionSums,
    ReviewerSums,
    StandingSums,
    UnitSums,
    VoteSums,
)

TABLES = {
    "standings": (
        lambda sums: sums.table(StandingSums, rule="borda"),
        lambda entries: by_hand.standing_sums(entries, "borda"),
    ),
    "standings of people": (
        lambda sums: sums.table(StandingSums, rule="mean_rank", human=1),
        lambda entries: by_hand.standing_sums(entries, "mean_rank", human=1),
    ),
    "matchups": (lambda sums: sums.table(MatchupSums), by_hand.matchup_sums),
    "matchups of people": (
        lambda sums: sums.table(MatchupSums, human=1),
        lambda entries: by_hand.matchup_sums(entries, human=1),
    ),
    "answers": (lambda sums: sums.table(AnswerSums), by_hand.answer_sums),
    "ballots": (lambda sums: sums.table(BallotSums), by_hand.ballot_sums),
    "votes": (lambda sums: sums.table(VoteSums), by_hand.vote_sums),
    "reviewers": (lambda sums: sums.table(ReviewerSums), by_hand.reviewer_sums),
    "positions": (lambda sums: sums.table(PositionSums), by_hand.position_sums),
    "lengths": (lambda sums: sums.table(LengthSums), by_hand.length_sums),
    "units": (lambda sums: sums.table(UnitSums), by_hand.unit_sums),
    "criteria": (lambda sums: sums.table(CriterionSums), by_hand.criterion_sums),
    "gradings": (lambda sums: sums.table(GradingSums), grading_sums),
    "humans": (lambda sums: sums.table(HumanSums), by_hand.human_sums),
    "calibration": (lambda sums: sums.table(CalibrationSums), by_hand.calibration_sums),
    "panel": (lambda sums: sums.table(PanelSums), by_hand.panel_sums),
}

CODING = Window(START + timedelta(hours=7), START + timedelta(hours=280), "coding")


@pytest.mark.parametrize("table", TABLES)
def test_every_table_equals_a_plain_count(engine, entries, table):
    """Counts are identical and sums agree to 1e-9, on each engine."""
    read_table, count_by_hand = TABLES[table]

    result = read_table(WindowSums(engine))

    assert sum_by_key(result)
    assert_same(result, count_by_hand(entries))


@pytest.mark.parametrize("table", ["standings", "lengths", "calibration"])
def test_a_window_includes_its_start_and_excludes_its_end(engine, entries, table):
    """A category's sessions count from `since` on and before `until`, to the microsecond."""
    read_table, count_by_hand = TABLES[table]
    window_entries = sessions_within(entries, CODING)

    result = read_table(WindowSums(engine, CODING))

    assert 0 < len(window_entries) < len(entries)
    assert_same(result, count_by_hand(window_entries))


def test_adjacent_windows_add_up(engine, entries):
    """The moment between two adjacent windows belongs to exactly one of them."""
    cut = entries[40].session.at

    halves = [
        WindowSums(engine, window).table(PanelSums)
        for window in (Window(until=cut), Window(since=cut))
    ]
    panel = WindowSums(engine).table(PanelSums)

    assert sum(half.sessions.sum() for half in halves) == panel.sessions.sum()


def test_an_empty_window_has_empty_tables(engine):
    """Before the first session the tables have no rows and all columns."""
    before = WindowSums(engine, Window(until=START))

    for sums in (
        before.table(StandingSums, rule="borda"),
        before.table(UnitSums),
        before.table(PanelSums),
    ):
        assert sum_by_key(sums) == {}


def test_tables_read_together_equal_tables_read_alone(engine, entries):
    """Read together, from one pass over the ballots, tables equal a plain count."""
    expected = [
        by_hand.standing_sums(entries, "mean_rank"),
        by_hand.matchup_sums(entries),
        by_hand.ballot_sums(entries),
        by_hand.reviewer_sums(entries),
        by_hand.position_sums(entries),
        by_hand.length_sums(entries),
        by_hand.criterion_sums(entries),
    ]

    result = WindowSums(engine).tables(*map(type, expected), rule="mean_rank")

    for table in expected:
        assert_same(result[type(table)], table)


def test_aliases_of_a_model_share_one_standing_per_session(engine, entries):
    """Two aliases in a session get the mean of their scores and count once, on each engine."""
    window_sums, aliases = WindowSums(engine), {MODELS[0]: MODELS[1], MODELS[2]: MODELS[1]}

    result = rename_standings(
        window_sums,
        window_sums.table(StandingSums, rule="borda"),
        "borda",
        0,
        aliases=aliases,
        names=window_sums.names(),
    )

    assert_same(
        result,
        by_hand.standing_sums([standings_by_alias(one, aliases) for one in entries], "borda"),
    )


def standings_by_alias(entries, aliases):
    """Standings under the current names of models, those of one name merged."""
    lines_by_model = defaultdict(list)
    for line in entries.standings:
        lines_by_model[line.kind, line.rule, aliases.get(line.model, line.model)].append(line)
    standings = (
        StandingEntry(
            *key, mean([line.score for line in lines]), mean([line.z for line in lines]),
            *(sum(getattr(line, name) for line in lines) for name in ("votes", "offered", "wins")),
        )
        for key, lines in lines_by_model.items()
    )  # fmt: skip
    return replace(entries, standings=tuple(standings))


def mean(values):
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


def test_every_code_has_its_name(engine, entries):
    """Each code of a model, reviewer or criterion maps back to its name."""
    names = engine.names()

    expected = by_hand.names_of(entries)
    assert {code: names[code] for code in expected.of} == dict(expected.of)


def test_elo_is_the_same_on_every_engine(engine, sqlite_history):
    """Elo depends on the order of sessions, which is the same on every engine."""
    result = rate_matches(WindowSums(engine).matches())
    expected = rate_matches(WindowSums(SqlEngine(sqlite_history)).matches())

    assert result == pytest.approx(expected, rel=1e-12)


class TestSpans:
    """A lake is summed one time span after another."""

    def test_spans_cover_a_window_without_gap_or_overlap(self, lake):
        """Each begins where the previous one ends, the first and the last at the window's ends."""
        spans = Lake(lake, ballots_at_once=20).spans(CODING)

        assert len(spans) > 5
        assert (spans[0].since, spans[-1].until) == (CODING.since, CODING.until)
        for one, following in pairwise(spans):
            assert one.until == following.since

    @pytest.mark.parametrize("at_once", [40, 10_000])
    def test_sums_do_not_depend_on_the_length_of_spans(self, lake, entries, at_once):
        """Many short spans give the same sums as one long span."""
        with DuckLake(Lake(lake, ballots_at_once=at_once)) as duck:
            result = WindowSums(duck, ALWAYS).table(ReviewerSums)

        assert_same(result, by_hand.reviewer_sums(entries))
