"""Settings of a count, as their declaration names them."""

from dataclasses import fields

from witan.core.interpretation import Counting
from witan.core.settings import Settings
from witan.service.operations.counting import TallyParameters
from witan.service.settings import COUNTING_DEFAULTS, BallotSettings


def test_what_help_names_as_usual_is_what_a_count_takes():
    """The declaration repeats defaults of the core, which help is not to load."""
    settings = Settings()
    taken = {
        name: getattr(settings if hasattr(settings, name) else settings.counting, name)
        for name in COUNTING_DEFAULTS
    }

    words = {"rubric": taken["rubric"].name, "prior": taken["prior"] or "none", "flips": "yes"}
    assert taken["flips"] is True
    assert dict(COUNTING_DEFAULTS) == taken | words


def test_every_setting_of_the_core_can_be_given():
    """Under its name, but for what texts are checked into, and what a session plans or learns."""
    core = {each.name for each in (*fields(Settings), *fields(Counting))}
    given = {each.name for each in fields(TallyParameters)}

    assert core - given == {"counting", "gates", "looks", "severity"}
    assert BallotSettings().settings() == Settings()
