"""Names of candidates and reviewers in a report, which a page may hide."""

from collections.abc import Mapping
from dataclasses import dataclass

from witan.core.outcome import Outcome


@dataclass(frozen=True, slots=True)
class CandidateNames:
    """Candidates and reviewers by their own names.

    Parameters
    ----------
    places
        Place of each answer on a page, for anchors; empty: none stands there.
    """

    places: Mapping[str, int]
    veiled: bool = False

    def name(self, who: str) -> str:
        """Name a candidate or a reviewer."""
        return who

    def sentence(self, sentence: str) -> str:
        """Word a sentence in which names may stand."""
        return sentence

    def order_outcome(self, outcome: Outcome) -> Outcome:
        """Order what stands equal in an outcome."""
        return outcome

    def anchor(self, candidate: str) -> str:
        """Link to an answer on the page."""
        return f"#answer-{self.places[candidate]}" if candidate in self.places else "#answers"


BY_NAME = CandidateNames({})
