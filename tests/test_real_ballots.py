"""Every rule on real ballots by real models, where they lie beside the project."""

import csv
import gzip
import json
from pathlib import Path

import pytest

from witan import RULES, Ballot, Settings, compare_rules, read_ballots, tally_sessions
from witan.stats import check_calibration, learn_weights_from_people
from witan.surfaces.cli.app import main

DATA = Path(__file__).parents[2] / "shared" / "data"

pytestmark = pytest.mark.skipif(
    not DATA.is_dir(), reason="the real ballots are not beside this checkout (../shared/data)"
)

NEED_GRADES = {rule.name for rule in RULES.values() if rule.needs == "grades"}
PER_SESSION = {rule.name for rule in RULES.values() if rule.needs != "history"}


@pytest.mark.parametrize(
    ("name", "n_sessions"),
    [
        pytest.param("prd_vicuna80/pairwise.csv", 40, marks=pytest.mark.slow),
        ("governance_listwise/trials.jsonl", 15),
        ("ori_listwise_run/689b624a.jsonl", 1),
    ],
)
def test_every_rule_of_rankings_counts_every_session(name, n_sessions):
    """Rankings and pairs have an outcome under every rule that reads them, in every session."""
    comparison = compare_rules(read_ballots(DATA / name), Settings(flips=False))

    assert set(comparison.rules) == PER_SESSION - NEED_GRADES
    assert set(comparison.skipped) == NEED_GRADES | {"elo"}
    assert len(comparison.sessions) == n_sessions
    for outcomes in comparison.outcomes.values():
        assert all(outcome.leaders for outcome in outcomes.values())


@pytest.mark.slow
def test_every_rule_counts_real_grades():
    """Two judges' grades of fifteen models have an outcome under every rule."""
    ballots = read_ballots(
        DATA / "wildbench" / "pointwise.csv", columns={"reviewer": "judge+version"}
    )
    everyone = list(ballots)
    names = set(list(dict.fromkeys(ballot.session for ballot in everyone))[:40])
    first = [ballot for ballot in everyone if ballot.session in names]

    comparison = compare_rules(first, Settings(flips=False))

    assert set(comparison.rules) == PER_SESSION
    assert len(comparison.sessions) == 40


def test_a_history_of_sessions_is_rated():
    """Elo over the forty questions puts the model that leads most sessions first."""
    ballots = list(read_ballots(DATA / "prd_vicuna80" / "pairwise.csv"))

    outcome = next(tally_sessions(ballots, Settings.of("elo", kind="model")))

    assert outcome.leaders == ("gpt4",)
    assert len(outcome.standings) == 5


def test_five_judges_have_about_two_effective_votes():
    """Learned from the pairs that people judged too, as the data's own description has it."""
    ballots = list(read_ballots(DATA / "prd_vicuna80" / "pairwise.csv"))

    outcome = next(tally_sessions(ballots, Settings(kind="model", flips=False)))

    assert 1.5 <= outcome.effective_votes <= 2.5


def test_order_consistency_equals_the_published_rates():
    """Order-consistency over both orders: gpt35 .70, gpt4 .66, claude .56, vicuna .36, bard .36."""
    ballots = read_ballots(DATA / "prd_vicuna80" / "pairwise.csv")
    kept: dict[str, list[int]] = {}
    for outcome in tally_sessions(ballots, Settings.of("borda", kind="model", flips=False)):
        for judge, (alike, twice) in outcome.order_kept.items():
            total = kept.setdefault(judge, [0, 0])
            total[0] += alike
            total[1] += twice

    shares = {judge: alike / twice for judge, (alike, twice) in kept.items()}
    assert shares == pytest.approx(
        {"gpt35": 0.70, "gpt4": 0.66, "claude": 0.56, "vicuna-13b": 0.36, "bard": 0.36}, abs=0.006
    )


@pytest.mark.parametrize(
    ("name", "n_sessions", "n_models"),
    [
        pytest.param("wildbench/pointwise.csv", 1_024, 15, marks=pytest.mark.slow),
        pytest.param("prd_vicuna80/pairwise.csv", 40, 5, marks=pytest.mark.slow),
        pytest.param("llmbar/pairwise.csv.gz", 356, 2, marks=pytest.mark.slow),
        pytest.param("pandalm/pairwise.csv.gz", 514, 5, marks=pytest.mark.slow),
        pytest.param("llmjudge_relevance/pointwise.csv.gz", 10, None, marks=pytest.mark.slow),
    ],
)
def test_files_are_read_without_options(name, n_sessions, n_models, capsys):
    """Tally, leaderboard and audit read every one of them."""
    path = str(DATA / name)
    for command in ("tally", "leaderboard", "audit"):
        assert main([command, path, "--json"]) == 0
        said = json.loads(capsys.readouterr().out)
        if command == "tally":
            assert len(said["sessions"]) == n_sessions
        elif command == "audit":
            assert said["sessions"] == n_sessions
        elif n_models is not None:
            assert len(said["lines"]) + len(said["provisional"]) == n_models


def llmbar():
    """The votes, and the better answer of each session."""
    path = DATA / "llmbar" / "pairwise.csv.gz"
    with gzip.open(path, "rt", encoding="utf-8", newline="") as lines:
        better = {row["prompt_id"]: row["gold"] for row in csv.DictReader(lines)}
    return list(read_ballots(path)), better


def known_answers(better):
    """A ballot for each better answer."""
    return [
        Ballot("gold", ((best,), (worse,)), session=name, kind="human")
        for name, best in better.items()
        for worse in {"output_1", "output_2"} - {best}
    ]


@pytest.mark.slow
def test_weights_from_known_answers_help_on_other_questions():
    """Learned on one half of LLMBar, they decide over a tenth more of the other half rightly."""
    cast, better = llmbar()
    names = list(better)
    known = {name: better[name] for name in names[::2]}
    weights = learn_weights_from_people(
        [*(ballot for ballot in cast if ballot.session in known), *known_answers(known)]
    )
    others = [ballot for ballot in cast if ballot.session not in known]

    equal, weighted = (
        sum(outcome.leaders == (better[outcome.session],) for outcome in outcomes) / len(names) * 2
        for outcomes in (
            tally_sessions(others, Settings(flips=False, weights=each)) for each in ({}, weights)
        )
    )

    assert weighted > equal + 0.1


@pytest.mark.slow
def test_judges_agree_more_often_than_they_are_right():
    """On LLMBar the judges agree with each other as often as stated, with known answers less."""
    cast, better = llmbar()
    known = known_answers(better)

    among = check_calibration(cast, reviewers=[3], draws=4).panels[0].p_beats
    beside = check_calibration([*cast, *known], reviewers=[3], draws=4, against="truth")

    assert among.gap.interval.low < 0 < among.gap.interval.high
    assert beside.panels[0].p_beats.gap.interval.high < -0.05
