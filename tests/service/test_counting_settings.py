"""The declared settings of a count match the core."""

from dataclasses import fields

from witan.core.interpretation import Counting
from witan.core.settings import Settings
from witan.service.operations.counting import TallyParameters
from witan.service.settings import COUNTING_DEFAULTS, BallotSettings


def test_defaults_in_help_match_the_core():
    """The declaration repeats the core's defaults, because help must not import the core."""
    settings = Settings()
    taken = {
        name: getattr(settings if hasattr(settings, name) else settings.counting, name)
        for name in COUNTING_DEFAULTS
    }

    words = {"rubric": taken["rubric"].name, "prior": taken["prior"] or "none", "flips": "yes"}
    assert taken["flips"] is True
    assert dict(COUNTING_DEFAULTS) == taken | words


def test_every_setting_of_the_core_is_available():
    """By its name, except values that a session plans or learns and texts that are parsed."""
    core = {each.name for each in (*fields(Settings), *fields(Counting))}
    given = {each.name for each in fields(TallyParameters)}

    assert core - given == {"counting", "gates", "looks", "severity"}
    assert BallotSettings().settings() == Settings()
