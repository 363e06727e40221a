"""Each axiom that a rule claims in the registry, on generated profiles."""

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from elections import mean_ranks, profiles
from witan.core.placing import place
from witan.core.profile import Profile, matchups
from witan.core.rules import RULES, Axiom, Rule

PER_SESSION = [rule for rule in RULES.values() if rule.needs != "history"]
FILTERED = settings(
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)


def satisfying(axiom: Axiom) -> list[Rule]:
    found = [rule for rule in PER_SESSION if axiom in rule.satisfies]
    assert found, f"no rule claims {axiom}"
    return found


def with_grades(profile: Profile, draw) -> Profile:
    """The same ballots with whole grades wherever they rank someone."""
    shape = profile.places.shape
    random_grades = draw(
        st.lists(st.integers(1, 10), min_size=profile.places.size, max_size=profile.places.size)
    )
    grades = np.where(profile.rank_mask, np.array(random_grades).reshape(shape), 0).astype(np.uint8)
    return Profile(profile.places, grades=grades)


def grade_by_rank(profile: Profile) -> Profile:
    """The same strict ballots with grades in the same order, 10 for the first, then 9."""
    grades = np.where(profile.rank_mask, 11 - profile.places // 2, 0).astype(np.uint8)
    return Profile(profile.places, grades=grades)


def close(a, b) -> bool:
    return np.allclose(a, b, rtol=1e-6, atol=1e-7, equal_nan=True)


def leaders(rule: Rule, profile: Profile) -> np.ndarray:
    """The candidates with the best score, without the tie-break."""
    return place(rule(profile), profile, rule, tie_break="none").leads[:, 0]


@pytest.mark.parametrize("rule", satisfying(Axiom.ANONYMITY), ids=str)
@given(profile=profiles(), data=st.data())
@FILTERED
def test_anonymity(rule, profile, data):
    """Permuting the reviewers changes no score."""
    profile = with_grades(profile, data.draw)
    order = np.array(data.draw(st.permutations(range(profile.n_reviewers))))

    assert close(rule(profile).score, rule(profile.keep_ballots(order)).score)


@pytest.mark.parametrize("rule", satisfying(Axiom.NEUTRALITY), ids=str)
@given(profile=profiles(), data=st.data())
@FILTERED
def test_neutrality(rule, profile, data):
    """Renaming the candidates renames the scores and changes nothing else."""
    profile = with_grades(profile, data.draw)
    order = np.array(data.draw(st.permutations(range(profile.n_candidates))))
    renamed = Profile(profile.places[:, order], grades=profile.grades[:, order])

    assert close(rule(renamed).score, rule(profile).score[order])


@pytest.mark.parametrize("rule", satisfying(Axiom.UNANIMITY), ids=str)
@given(profile=profiles(ties=False, partial=False))
@FILTERED
def test_unanimity(rule, profile):
    """A candidate above a rival on every ballot does not score below it."""
    scores = rule(grade_by_rank(profile)).score[:, 0] * (-1 if rule.lower_is_better else 1)
    above = (profile.places[:, :, np.newaxis] < profile.places[:, np.newaxis]).all(axis=0)[..., 0]

    for i, j in np.argwhere(above):
        assert scores[i] >= scores[j] - 1e-9


@pytest.mark.parametrize("rule", satisfying(Axiom.CONDORCET), ids=str)
@given(profile=profiles())
@FILTERED
def test_condorcet_consistency(rule, profile):
    """A candidate that beats every rival head to head, on two ballots or more, leads alone."""
    margins = matchups(profile).margins[:, :, 0].astype(int)
    winner = (margins + np.eye(len(margins), dtype=int) > 0).all(axis=1)
    assume(winner.any() and profile.rank_mask.sum(axis=0)[winner, 0] >= 2)

    assert leaders(rule, profile).tolist() == winner.tolist()


@pytest.mark.parametrize("rule", satisfying(Axiom.MONOTONICITY), ids=str)
@given(profile=profiles(ties=False, partial=False), data=st.data())
@FILTERED
def test_monotonicity(rule, profile, data):
    """Raising a leader on one ballot, with the others' order unchanged, keeps its lead."""
    profile = grade_by_rank(profile)
    winner = int(data.draw(st.sampled_from(np.flatnonzero(leaders(rule, profile)).tolist())))
    places = profile.places.copy()
    below = np.flatnonzero(places[:, winner, 0] > 2).tolist()
    assume(below)
    row = data.draw(st.sampled_from(below))
    above = np.flatnonzero(places[row, :, 0] == places[row, winner, 0] - 2)[0]
    places[row, winner, 0] -= 2
    places[row, above, 0] += 2

    assert leaders(rule, grade_by_rank(Profile(places)))[winner]


@pytest.mark.parametrize("rule", satisfying(Axiom.CLONES), ids=str)
@given(profile=profiles(candidates=(2, 4), ties=False, partial=False), data=st.data())
@FILTERED
def test_clone_independence(rule, profile, data):
    """A twin next to a candidate on every ballot neither makes nor removes a leader."""
    ranks = profile.ranks[:, :, 0]
    original = data.draw(st.integers(0, profile.n_candidates - 1))
    sides = data.draw(st.lists(st.booleans(), min_size=len(ranks), max_size=len(ranks)))
    twin = ranks[:, original] + np.where(sides, 0.5, -0.5)
    cloned = Profile.from_ranks(mean_ranks(np.column_stack([ranks, twin])[:, :, np.newaxis]))

    before = leaders(rule, profile)
    after = leaders(rule, cloned)
    merged = after[:-1].copy()
    merged[original] |= after[-1]

    assert merged.tolist() == before.tolist()


class TestCounterExamples:
    """Axioms that a rule does not claim fail by example."""

    def test_borda_is_not_condorcet_consistent(self):
        """Three of five rank A first, yet B, never worse than second, leads by Borda."""
        ranks = np.array([[1, 2, 3]] * 3 + [[3, 1, 2]] * 2, dtype=float)
        profile = Profile.from_ranks(ranks)

        assert leaders(RULES["borda"], profile).tolist() == [False, True, False]
        assert leaders(RULES["schulze"], profile).tolist() == [True, False, False]

    def test_borda_is_not_independent_of_clones(self):
        """A twin just below B turns a dead heat of A and B into B's lead."""
        two = Profile.from_ranks(np.array([[1, 2], [2, 1]], dtype=float))
        three = Profile.from_ranks(np.array([[1, 2, 3], [3, 1, 2]], dtype=float))

        assert leaders(RULES["borda"], two).tolist() == [True, True]
        assert leaders(RULES["borda"], three).tolist() == [False, True, False]


@pytest.mark.parametrize("rule", PER_SESSION, ids=str)
@given(profile=profiles(sessions=(1, 4)), data=st.data())
@FILTERED
def test_a_batch_scores_each_session_as_alone(rule, profile, data):
    """Many sessions at once have the scores of each alone."""
    profile = with_grades(profile, data.draw)
    whole = rule(profile).score

    for session in range(profile.n_sessions):
        alone = rule(profile.take(slice(session, session + 1))).score
        assert close(whole[:, session], alone[:, 0])
