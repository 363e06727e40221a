"""The Python interface has the keyword options of every surface."""

from dataclasses import fields
from typing import get_type_hints

from witan.core.interpretation import Counting
from witan.core.rules import RULES
from witan.core.settings import SettingOptions, Settings
from witan.deliberation.procedure import Limits, Procedure
from witan.service.parameters import parameters_of
from witan.service.procedure_options import CouncilOptions
from witan.service.settings import BallotSettings, CouncilSettings

RULES_OWN = {"variant", "alpha", "strength", "ghost_wins", "k", "base", "initial"}


def declared(kind):
    return {each.name for each in parameters_of(kind)}


def types(*kinds):
    return {name: hint for kind in kinds for name, hint in get_type_hints(kind).items()}


def test_tally_accepts_every_field_of_its_settings():
    """The keywords of `tally` are the fields of `Settings` and `Counting`, of the same types.

    Except looks, which a session plans itself, and severities, which it learns.
    """
    found = get_type_hints(SettingOptions)
    settings = types(Settings, Counting)
    del settings["rule"], settings["looks"], settings["severity"]

    assert {name: found[name] for name in found.keys() - RULES_OWN} == settings


def test_tally_accepts_the_parameters_of_every_built_in_rule():
    """Parameters of other rules go into `parameters`."""
    assert {name for rule in RULES.values() for name in rule.parameters} == RULES_OWN
    assert get_type_hints(SettingOptions).keys() >= RULES_OWN


def test_tally_accepts_the_settings_of_every_surface():
    """A keyword can set what command line and request can set, except texts that are parsed."""
    assert declared(BallotSettings) - {"answers"} <= get_type_hints(SettingOptions).keys()


def test_a_council_accepts_the_settings_of_every_surface():
    """A keyword can set what command line, request and configuration can set."""
    found = get_type_hints(CouncilOptions).keys() - RULES_OWN

    assert found - declared(CouncilSettings) == {"kind", "gates", "providers"}
    assert declared(CouncilSettings) <= found


def test_council_keywords_have_the_types_of_procedure_fields():
    """Each keyword has the type of the field that it sets."""
    found = get_type_hints(CouncilOptions)
    fields_of = types(Procedure, Limits)
    own = {"providers"}  # as fields by name, too

    assert {f.name for kind in (Procedure, Limits) for f in fields(kind)} - found.keys() == {
        "counting",
        "limits",
    }
    assert all(found[name] == fields_of[name] for name in fields_of.keys() & found.keys() - own)
