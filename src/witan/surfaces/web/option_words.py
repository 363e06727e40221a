"""What the options of a form are called, in which order, and what each of them does."""

from collections.abc import Mapping
from dataclasses import dataclass

from witan.surfaces.web.counting import FIELDS

__all__ = ["ANSWERING", "CHOICES", "GROUPS", "MODES", "MORE", "Words"]


@dataclass(frozen=True, slots=True)
class Words:
    """What an option is called, what it does where its name does not say so, how it is written."""

    words: str
    about: str = ""
    hint: str = ""


MODES = (
    ("consensus", "one answer that says what was agreed and contested"),
    ("best", "the answer ranked best, without a chairman"),
    ("verdict", "approve or reject"),
)
"""What a final answer can be, in the words of the form."""

_COUNTED = {each.name: each for each in FIELDS}


def _counted(name: str, about: str = "") -> Words:
    """As where ballots are counted."""
    return Words(_COUNTED[name].words, about, _COUNTED[name].hint)


CHOICES: Mapping[str, tuple[tuple[str, str], ...]] = {
    **{name: tuple(c for c in each.options if c[0]) for name, each in _COUNTED.items()},
    "prior": (
        ("none", "that of each session alone"),
        ("learn", "borrowed from the others"),
    ),
    "mode": MODES,
    "review_rounds": (("1", "once"), ("2", "twice")),
}
"""Value and words of what can be chosen."""

ANSWERING = ("members", "debate_rounds", "enough", "grace_seconds", "self_review")
"""Options without a meaning for a jury, which answers nothing."""

MORE = "More"
"""Where an option stands that is in no group."""

GROUPS: tuple[tuple[str, Mapping[str, Words]], ...] = (
    (
        "Cost and time",
        {
            "max_cost_usd": Words(
                "Cost at most, in US dollars", "No call is made that could cross it.", "0.50"
            ),
            "max_tokens": Words("Tokens of one reply at most"),
            "session_seconds": Words("Seconds for the session", "Whatever came by then counts."),
            "stage_seconds": Words(
                "Seconds for a stage", "A round of answers or reviews, or the final answer."
            ),
            "call_seconds": Words("Seconds for a call", "With all its attempts."),
            "attempts": Words("Attempts of a call", "The first included."),
            "hedge_seconds": Words(
                "Seconds of silence before a second call", "The first to finish counts."
            ),
        },
    ),
    (
        "Who sits",
        {
            "members": Words("Members", "At least two; none chosen: all.", "a name on each line"),
            "jury": Words(
                "Jury",
                "At least two who only review; none chosen: as configured.",
                "a name on each line",
            ),
            "chairman": Words("Chairman", "Who writes the final answer.", "a name"),
            "mode": Words("Final answer"),
            "synthesis": Words("Write a final answer", "Else it ends with the ranking."),
        },
    ),
    (
        "Answers",
        {
            "debate_rounds": Words(
                "Rounds of debate",
                "So often members see each other’s answers, unnamed, and may revise theirs.",
                "0 to 5",
            ),
            "enough": Words(
                "Answers that are enough", "After them the rest is waited for only a while."
            ),
            "grace_seconds": Words("Seconds that the rest is waited for"),
        },
    ),
    (
        "Reviews",
        {
            "rubric": Words("Rubric", "The criteria that answers are graded by."),
            "rubric_weights": Words("Weights of criteria", "", "accuracy=2, one a line"),
            "rubric_scoring": Words("Grade by the rubric", "Else reviewers only rank."),
            "holistic": Words(
                "One grade of the whole, too", "Beside those for each criterion of the rubric."
            ),
            "review_rounds": Words(
                "Review", "The second time reviewers know the others’ grades, and may revise."
            ),
            "mirrored": Words(
                "Mirrored", "Every reviewer is asked again in reverse order: twice the calls."
            ),
            "self_review": Words(
                "Show reviewers their own answer, too", "It is still not counted from themselves."
            ),
            "stop_when_decided": Words(
                "Stop once it is decided", "When no ballot to come could change the leader."
            ),
            "safety": Words("Safety gate", "An answer that fails its checks cannot win."),
            "safety_cap": Words("Grade of a failed answer at most", "", "0 to 10"),
            "seed": Words("Seed", "Draws the same labels and orders again.", "a whole number"),
        },
    ),
    (
        "Counting",
        {
            "rule": Words("Rule", "How ballots become a ranking."),
            "rule_parameters": _counted("parameters"),
            "quorum": Words("Ballots needed", "With fewer, no outcome is declared."),
            "weights": _counted("weights"),
            "reliability": Words(
                "Reliability of reviewers", "What weighted_borda weighs by.", "ada=0.8, one a line"
            ),
            "recusal": _counted("recusal"),
            "unranked": _counted("unranked"),
            "tie_break": _counted("tie_break"),
            "ties": _counted("ties"),
            "level": _counted("level"),
            "threshold": _counted("threshold"),
            "rho": _counted("rho"),
            "prior": _counted("prior"),
            "flips": Words("How firm the lead is", "Finds the fewest ballots that would end it."),
        },
    ),
)
"""Every option by name, as the forms show them."""
