"""The measures of an audit: what each is called, what its number says, where it is shown."""

from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Literal

from witan.core.stats.audit import CHECKS, CriterionAudit, PanelAudit, concern_of
from witan.core.stats.audit_gradings import GradingAudit
from witan.core.stats.audit_reviewers import ReviewerAudit
from witan.core.stats.measures import Measure

Measured = ReviewerAudit | PanelAudit | CriterionAudit | GradingAudit

_CHECKED = {check.measure: check for check in CHECKS}


@dataclass(frozen=True, slots=True)
class Word:
    """One measure in words.

    Parameters
    ----------
    measure
        Its name; with a dot, where it stands within another.
    title
        As the title of a column.
    meaning
        What the number is, without its value.
    table
        The table of all reviewers in which it has a column; empty: none.
    keep
        How long that column stays on a narrow terminal.
    strip, line
        The title of its strip in a chart, and where the strip has its line; empty: none is drawn.
    """

    measure: str
    title: str
    meaning: str
    table: Literal["", "prefer", "agree"] = ""
    keep: int = 0
    strip: str = ""
    line: float = 0.0

    @property
    def name(self) -> str:
        """The measure by name, as a sentence begins with it."""
        name = self.measure.replace(".", ", ").replace("_", " ")
        return f"{name[0].upper()}{name[1:]}"

    def of(self, line: Measured) -> Measure:
        """Look the measure up in a line."""
        found: Measure = attrgetter(self.measure)(line)
        return found

    def stands_out(self, line: Measured) -> bool:
        """Tell whether a reviewer's measure is beyond noise of what one would wish."""
        check = _CHECKED.get(self.measure)
        if check is None or not isinstance(line, ReviewerAudit | GradingAudit):
            return False
        return concern_of(check, self.of(line)) is not None


def with_data(words: Sequence[Word], lines: Sequence[Measured]) -> list[Word]:
    """Choose the measures that some line has data for."""
    return [word for word in words if any(word.of(line).n for line in lines)]


REVIEWER_WORDS = (
    Word(
        "self_preference",
        "own",
        "share given to its own answers beyond what the others give",
        "prefer",
        95,
        "own answers",
    ),
    Word(
        "family_preference",
        "family",
        "share given to its family beyond what outsiders give",
        "prefer",
        60,
        "own family",
    ),
    Word(
        "position_effect",
        "place",
        "share gained by standing first on the sheet, not last",
        "prefer",
        85,
        "first place",
    ),
    Word(
        "first_shown",
        "first",
        "share of comparisons of two that the first shown wins",
        "prefer",
        55,
        "first of two",
        0.5,
    ),
    Word("length.shares", "length", "correlation of an answer's length with the share given"),
    Word("length.grades", "length, grades", "correlation of an answer's length with its grade"),
    Word(
        "length.longer_wins",
        "longer",
        "share of decided pairs that the longer answer wins",
        "prefer",
        50,
    ),
    Word(
        "length.shares_beyond_people",
        "length−people",
        "that correlation with shares, less that of people",
    ),
    Word(
        "length.grades_beyond_people",
        "length, grades−people",
        "that correlation with grades, less that of people",
    ),
    Word(
        "length.longer_wins_beyond_people",
        "longer−people",
        "share that the longer answer wins, less that by people's votes",
        "prefer",
        45,
        "longer − people",
    ),
    Word(
        "severity",
        "severity",
        "grade less the others' for the same answer",
        "agree",
        75,
        "severity",
    ),
    Word(
        "discrimination",
        "slope",
        "slope of its grades on the others', over that of all models",
        "agree",
        40,
    ),
    Word("spread", "spread", "spread of its grades on a ballot, over that of all models"),
    Word(
        "agreement",
        "agrees",
        "correlation of its shares with the others'",
        "agree",
        65,
        "agreement",
    ),
    Word("grade_agreement", "agrees, grades", "correlation of its grades with the others'"),
    Word(
        "agreement_with_people",
        "people",
        "share of pairs decided by people it sides with them",
        "agree",
        90,
        "with people",
        0.5,
    ),
    Word(
        "order_consistency",
        "consistent",
        "share of pairs seen in both orders it judges alike",
        "agree",
        80,
        "consistency",
        0.5,
    ),
    Word("abstention_rate", "abstains", "share of its ballots without a vote", "agree", 35),
    Word(
        "repair_rate", "repaired", "share of its ballots that needed a second attempt", "agree", 20
    ),
    Word(
        "flat_rate", "flat", "share of its ballots with a vote that tell nobody apart", "agree", 30
    ),
)
"""Every measure of one reviewer, in the order in which they are shown."""

PANEL_WORDS = (
    Word("alpha.shares", "α, shares", "Krippendorff's α among models, of shares"),
    Word("alpha.grades", "α, grades", "Krippendorff's α among models, of grades"),
    Word("people_alpha.shares", "people's α, shares", "Krippendorff's α among people, of shares"),
    Word("people_alpha.grades", "people's α, grades", "Krippendorff's α among people, of grades"),
    Word("kendall_w", "Kendall's W", "Kendall's W of the models' ballots, mean over sessions"),
    Word("agreement", "agreement", "the leader's probability of being best, mean over sessions"),
    Word("shared_error", "shared error ρ", "correlation between reviewers of being right"),
    Word("effective_votes", "effective votes", "independent votes that the reviewers are worth"),
    Word("length.shares", "length, shares", "correlation of length with shares, all models"),
    Word("length.grades", "length, grades", "correlation of length with grades, all models"),
    Word("length.longer_wins", "longer wins", "share of decided pairs that the longer wins"),
    Word("length.longer_wins_beyond_people", "longer − people", "the same, less that by people"),
    Word("stability", "stability", "Kendall's τ between the rankings of two random halves"),
)
"""Every measure of the panel."""

CRITERION_WORDS = (
    Word("variance", "variance", "variance between reviewers of one answer"),
    Word("variance_over_overall", "over overall", "the same, over that of the overall grade"),
    Word("length", "length", "correlation with the length of the answer"),
    Word("length_beyond_overall", "length−overall", "the same, less that of the overall grade"),
)
"""Every measure of a criterion."""

GRADING_WORDS = (
    Word("mean", "mean", "mean of its grades", keep=90),
    Word(
        "severity",
        "severity",
        "grade less the others' for the same answer",
        keep=85,
        strip="severity",
    ),
    Word(
        "discrimination",
        "slope",
        "slope of its grades on the others', over that of all of them",
        keep=80,
        strip="slope",
        line=1.0,
    ),
    Word("spread", "spread", "spread of its grades on a ballot, over that of all of them", keep=75),
    Word("flat_rate", "flat", "share of its ballots on which all grades are the same", keep=70),
    Word(
        "agreement",
        "agrees",
        "correlation of its grades with the others'",
        keep=65,
        strip="agreement",
    ),
    Word("halo", "halo", "correlation with its own grades on all other criteria", keep=60),
    Word(
        "halo_beyond_others",
        "halo−others",
        "that correlation, less that of the others",
        keep=55,
        strip="halo − others",
    ),
    Word("length", "length", "correlation with the length of the answer", keep=50, strip="length"),
    Word(
        "self_preference",
        "own",
        "grade less the others', of its own answers less of theirs",
        keep=45,
        strip="own answers",
    ),
    Word(
        "position_effect",
        "place",
        "grade gained by standing first on the sheet, not last",
        keep=40,
        strip="first place",
    ),
)
"""Every measure of one reviewer on one criterion."""
