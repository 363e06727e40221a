"""The audit of a real council: five models answered and judged, people judged too."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

import reference_sums as by_hand
from audited import audit_of
from reference_rows import names_of
from witan import read_ballots
from witan.core.entry_builder import entries_of_many
from witan.core.session_ballots import SessionBallots
from witan.core.stats.calibration import calibrate
from witan.core.stats.learning import learn_reliability_from_people

DATA = Path(__file__).parents[3] / "shared" / "data" / "prd_vicuna80"

pytestmark = pytest.mark.skipif(
    not DATA.is_dir(), reason="the real ballots are not beside this checkout (../shared/data)"
)

JUDGES = ("gpt35", "gpt4", "claude", "vicuna-13b", "bard")


@pytest.fixture(scope="module")
def entries():
    lengths: dict[str, dict[str, int]] = {}
    for line in (DATA / "responses.jsonl").read_text(encoding="utf-8").splitlines():
        answer = json.loads(line)
        lengths.setdefault(str(answer["prompt_id"]), {})[answer["model"]] = len(answer["text"])
    ballots: dict[str, list] = {}
    for ballot in read_ballots(DATA / "pairwise.csv"):
        ballots.setdefault(ballot.session, []).append(ballot)
    at = datetime(2026, 1, 1, tzinfo=UTC)
    casts = [
        SessionBallots(name, at, tuple(cast), lengths=lengths[name])
        for name, cast in ballots.items()
    ]
    return list(entries_of_many(casts))


@pytest.fixture(scope="module")
def audit(entries):
    return audit_of(entries, {"gpt4": "openai", "gpt35": "openai"})


def test_self_preference_of_real_judges(audit):
    """gpt4 +.13, bard +.07, vicuna +.05, claude −.01, gpt35 −.06, by the data's description.

    There the others' votes are all they cast; here those on pairs with an answer of their own are
    left out, which moves claude and gpt35 by a point or two.
    """
    result = {judge: audit[judge].self_preference for judge in JUDGES}

    assert {judge: measure.value for judge, measure in result.items()} == pytest.approx(
        {"gpt4": 0.13, "bard": 0.07, "vicuna-13b": 0.05, "claude": -0.01, "gpt35": -0.06}, abs=0.02
    )
    assert result["gpt4"].interval.low > 0.05
    assert result["claude"].interval.low < 0 < result["claude"].interval.high


def test_position_bias_of_real_judges(audit):
    """Bard and gpt4 prefer the first, claude the second; gpt35 and people neither."""
    result = {judge: audit[judge].first_shown.value for judge in JUDGES}

    # Picks of the first, ties half, over all rows: own pairs included, which are not here.
    assert result == pytest.approx(
        {"bard": 0.80, "gpt4": 0.63, "claude": 0.38, "gpt35": 0.50, "vicuna-13b": 0.44}, abs=0.04
    )
    assert audit["bard"].position_effect.interval.low > 0.4
    assert audit["gpt4"].position_effect.interval.low > 0.1
    assert audit["claude"].position_effect.interval.high < -0.1
    assert abs(audit["gpt35"].position_effect.value) < 0.06
    assert abs(audit.people.position_effect.value) < 0.06


def test_order_consistency_of_real_judges(audit):
    """The rates are those of the data's description."""
    result = {judge: audit[judge].order_consistency.value for judge in JUDGES}

    assert result == pytest.approx(
        {"gpt35": 0.70, "gpt4": 0.66, "claude": 0.56, "vicuna-13b": 0.36, "bard": 0.36}, abs=0.006
    )


def test_real_judges_prefer_length_no_more_than_people(audit):
    """People prefer the longer about as often as the judges, and more often than some."""
    result = {judge: audit[judge].length.longer_wins.value for judge in JUDGES}

    assert audit.people.length.longer_wins.value == pytest.approx(0.74, abs=0.005)
    assert audit.people.length.longer_wins.n == 795
    # gpt4 is .77 with the pairs that hold its own, long answers; they are left out here.
    assert result == pytest.approx(
        {"gpt35": 0.83, "gpt4": 0.70, "claude": 0.76, "vicuna-13b": 0.62, "bard": 0.61}, abs=0.012
    )
    beyond = {judge: audit[judge].length.longer_wins_beyond_people for judge in JUDGES}
    assert beyond["claude"].interval.low < 0 < beyond["claude"].interval.high
    assert beyond["bard"].interval.high < 0
    assert audit.panel.length.shares_beyond_people.interval.low < 0
    assert audit.panel.length.shares_beyond_people.interval.high > 0


def test_five_judges_have_about_two_effective_votes(audit):
    """They are estimated from the pairs that people decided."""
    votes = audit.panel.effective_votes

    assert votes.value == pytest.approx(1.9, abs=0.15)
    assert votes.interval.high < 3


def test_agreement_is_not_reliability(entries):
    """A panel sure at .95 and above matches people less often than it states."""
    calibration = calibrate(by_hand.calibration_sums(entries))
    surest, unsure = calibration.reliability(0.99), calibration.reliability(0.7)

    assert calibration.is_known
    assert calibration.bands[-1].confidence > surest.value + 0.02
    assert 0.8 < surest.value < 0.95
    assert unsure.value < surest.value


def test_the_judges_nearest_to_people_weigh_most(entries):
    """Weights follow agreement with people: gpt35 first, bard and vicuna last."""
    weights = learn_reliability_from_people(by_hand.human_sums(entries), names_of(entries))

    assert sorted(weights, key=weights.__getitem__)[::-1] == [
        "gpt35", "gpt4", "claude", "bard", "vicuna-13b",
    ]  # fmt: skip
    assert sum(weights.values()) == pytest.approx(5)
