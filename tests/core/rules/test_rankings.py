"""Why Borda counts rankings: simulated reviewers with a known true first."""

import numpy as np
import pytest

from simulation import council
from witan.core.placing import place
from witan.core.profile import Profile
from witan.core.rules import RULES, Scores
from witan.core.stats.additive import fit_ranks

DRAWN, SESSIONS = 40, 50


def lead(rule: str, profile: Profile, scores: Scores | None = None) -> np.ndarray:
    """Each candidate's share of the lead, shape (C, S)."""
    rule_object = RULES[rule]
    leads = place(scores or rule_object(profile), profile, rule_object).leads
    return leads / np.maximum(leads.sum(axis=0), 1)


@pytest.mark.parametrize("shared", [0.0, 0.3])
@pytest.mark.parametrize("reviewers", [3, 5, 9])
@pytest.mark.parametrize("rule", ["kemeny", "schulze"])
def test_borda_finds_the_true_first_as_often_as_other_rules(rule, reviewers, shared):
    """Other rules gain at most a point, and contradict `p_best` more often."""
    rng = np.random.default_rng([reviewers, int(10 * shared)])
    gains, against = [], []
    for _ in range(DRAWN):
        quality = rng.normal(0, 1, 5)
        graded = council(quality, reviewers=reviewers, sessions=SESSIONS, rng=rng, shared=shared)
        profile = Profile.from_ranks(graded.ranks)
        likely = lead("borda", profile, Scores(fit_ranks(profile).effects))
        ours, theirs = lead("borda", profile), lead(rule, profile)
        gains.append((theirs - ours)[quality.argmax()].mean())
        against.append(((ours - theirs) * likely).sum(axis=0).mean())

    assert np.mean(gains) <= 0.01
    assert np.mean(against) >= 0.02
