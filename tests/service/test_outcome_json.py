"""The JSON of outcomes, from a batch and from single outcomes."""

from hypothesis import given, reject
from hypothesis import strategies as st

from witan.core.ballot import Ballot
from witan.core.gate import Gate
from witan.core.rules import RULES
from witan.core.settings import Settings
from witan.core.tally import tally_columns
from witan.errors import NothingToCount
from witan.service.json_output import batch_records, outcome_fields, to_json

NAMES = "abcd"


@st.composite
def cast(draw: st.DrawFn) -> list[Ballot]:
    """Sessions whose ballots rank, grade, abstain or compare, by models and people."""
    ballots = []
    for session in range(draw(st.integers(1, 3))):
        for reviewer in range(draw(st.integers(1, 4))):
            names = draw(st.permutations(NAMES))[: draw(st.integers(1, 4))]
            cut = draw(st.integers(1, len(names)))
            says = draw(st.sampled_from(["groups", "grades", "both", "nothing"]))
            groups = tuple(filter(None, (tuple(names[:cut]), tuple(names[cut:]))))
            grades = {name: draw(st.integers(1, 10)) for name in names}
            ballots.append(
                Ballot(
                    draw(st.sampled_from(["a", f"r{reviewer}"])),
                    groups if says in ("groups", "both") else (),
                    grades if says in ("grades", "both") else {},
                    session=f"s{session}",
                    kind=draw(st.sampled_from(["model", "model", "human"])),
                    weight=draw(st.sampled_from([1.0, 1.0, 2.0])),
                )
            )
    return ballots


@given(
    cast(), st.sampled_from(sorted(RULES)), st.booleans(), st.sampled_from(["public", None, 0.3])
)
def test_a_batch_and_its_outcomes_give_the_same_json(ballots, rule, gated, rho):
    """Session by session."""
    gates = {"s0": Gate({"b": ("unsafe",)})} if gated else {}
    settings = Settings.of(rule, gates=gates, rho=rho)
    try:
        counted = [*tally_columns(ballots, settings, lambda _: None)]
    except NothingToCount:  # Elo has no outcome where recusal leaves no ballot at all
        reject()
    for batch, column in counted:
        fields = [*batch_records(batch)][column]
        whole = outcome_fields(batch[column])
        assert list(fields) == list(whole)
        assert to_json(fields) == to_json(whole)
