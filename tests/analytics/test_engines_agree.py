"""Four engines, one definition: each gives what a count by hand gives."""

from collections import defaultdict
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise
from statistics import fmean

import pytest
from generated_histories import MODELS, START, assert_same, inside, merged

import reference_sums as by_hand
from reference_gradings import grading_sums
from witan.analytics.lake import Lake
from witan.analytics.leaderboards import rename_standings
from witan.analytics.sources import DuckLake
from witan.analytics.sums import WindowSums
from witan.analytics.views import SqlEngine
from witan.core.entries import StandingEntry
from witan.core.rules.elo import rate_matches
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
from witan.core.window import ALWAYS, Window

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
def test_every_table_is_what_a_hand_count_gives(engine, entries, table):
    """Counts are identical and sums agree to 1e-9, on each engine."""
    asked, counted = TABLES[table]

    found = asked(WindowSums(engine))

    assert merged(found)
    assert_same(found, counted(entries))


@pytest.mark.parametrize("table", ["standings", "lengths", "calibration"])
def test_a_window_holds_its_first_moment_and_not_its_last(engine, entries, table):
    """Sessions of a category count from `since` on and before `until`, each to the microsecond."""
    asked, counted = TABLES[table]
    chosen = inside(entries, CODING)

    found = asked(WindowSums(engine, CODING))

    assert 0 < len(chosen) < len(entries)
    assert_same(found, counted(chosen))


def test_windows_side_by_side_add_up(engine, entries):
    """A moment where one window ends and the next begins falls into exactly one of them."""
    cut = entries[40].session.at

    halves = [
        WindowSums(engine, window).table(PanelSums)
        for window in (Window(until=cut), Window(since=cut))
    ]
    whole = WindowSums(engine).table(PanelSums)

    assert sum(half.sessions.sum() for half in halves) == whole.sessions.sum()


def test_an_empty_window_has_empty_tables(engine):
    """Before the first session there is nothing, and every column is there."""
    before = WindowSums(engine, Window(until=START))

    for sums in (
        before.table(StandingSums, rule="borda"),
        before.table(UnitSums),
        before.table(PanelSums),
    ):
        assert merged(sums) == {}


def test_tables_asked_for_at_once_are_what_each_is_alone(engine, entries):
    """Side by side, and from one reading of the ballots, they are what a hand count gives."""
    expected = [
        by_hand.standing_sums(entries, "mean_rank"),
        by_hand.matchup_sums(entries),
        by_hand.ballot_sums(entries),
        by_hand.reviewer_sums(entries),
        by_hand.position_sums(entries),
        by_hand.length_sums(entries),
        by_hand.criterion_sums(entries),
    ]

    found = WindowSums(engine).tables(*map(type, expected), rule="mean_rank")

    for table in expected:
        assert_same(found[type(table)], table)


def test_standings_of_two_names_of_a_model_are_one_in_a_session(engine, entries):
    """Both names in a session have the mean of their scores, and count once, on each engine."""
    asked, aliases = WindowSums(engine), {MODELS[0]: MODELS[1], MODELS[2]: MODELS[1]}

    found = rename_standings(
        asked,
        asked.table(StandingSums, rule="borda"),
        "borda",
        0,
        aliases=aliases,
        names=asked.names(),
    )

    assert_same(found, by_hand.standing_sums([called(one, aliases) for one in entries], "borda"))


def called(entries, aliases):
    """Standings by the names that models have now, those of one name put together."""
    held = defaultdict(list)
    for line in entries.standings:
        held[line.kind, line.rule, aliases.get(line.model, line.model)].append(line)
    standings = (
        StandingEntry(
            *key, mean([line.score for line in lines]), mean([line.z for line in lines]),
            *(sum(getattr(line, name) for line in lines) for name in ("votes", "offered", "wins")),
        )
        for key, lines in held.items()
    )  # fmt: skip
    return replace(entries, standings=tuple(standings))


def mean(values):
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


def test_names_spell_out_every_code(engine, entries):
    """Each code of a model, reviewer or criterion has the name it was made of."""
    held = engine.names()

    expected = by_hand.names_of(entries)
    assert {code: held[code] for code in expected.of} == dict(expected.of)


def test_elo_is_the_same_on_every_engine(engine, sqlite_history):
    """What depends on the order of sessions gets them in one order everywhere."""
    found = rate_matches(WindowSums(engine).matches())
    expected = rate_matches(WindowSums(SqlEngine(sqlite_history)).matches())

    assert found.matches == expected.matches
    assert found.rating == pytest.approx(expected.rating, rel=1e-12)


class TestSpans:
    """A lake is summed a span at a time."""

    def test_spans_cover_a_window_without_gap_or_overlap(self, lake):
        """Each begins where the one before it ends, the first and the last at the window's ends."""
        spans = Lake(lake, ballots_at_once=20).spans(CODING)

        assert len(spans) > 5
        assert (spans[0].since, spans[-1].until) == (CODING.since, CODING.until)
        for one, following in pairwise(spans):
            assert one.until == following.since

    @pytest.mark.parametrize("at_once", [15, 10_000])
    def test_sums_do_not_depend_on_how_many_are_taken_at_once(self, lake, entries, at_once):
        """Many short spans give what one span gives."""
        with DuckLake(Lake(lake, ballots_at_once=at_once)) as duck:
            found = WindowSums(duck, ALWAYS).table(ReviewerSums)

        assert_same(found, by_hand.reviewer_sums(entries))
