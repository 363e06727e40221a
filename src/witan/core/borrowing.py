"""What is learned across sessions before any of them is counted: shared error, noise, quality."""

from collections.abc import Sequence
from dataclasses import replace

from witan.core.additive import AdditiveFit
from witan.core.batch import by_shape, stack
from witan.core.counted import fits_of
from witan.core.interpretation import Electorate
from witan.core.outcome import Prior
from witan.core.rules import RULES
from witan.core.settings import AUTO, Settings
from witan.core.shared_error import learn_rho
from witan.core.uncertainty import MIN_HISTORY, learn_prior

__all__ = ["borrow"]


def borrow(electorates: Sequence[Electorate], settings: Settings) -> Settings:
    """The settings with every ``learn`` replaced by what these sessions teach, or by None."""
    rho = settings.rho
    if rho == "learn":
        rho = learn_rho(electorates)
    prior = settings.prior
    if prior == "learn":
        prior = _learn_prior(electorates, settings)
    return replace(settings, rho=rho, prior=prior)


def _learn_prior(electorates: Sequence[Electorate], settings: Settings) -> Prior | None:
    """From grades if fifty sessions have them, else from ranks."""
    if len(electorates) < MIN_HISTORY:
        return None
    rule = RULES["calibrated" if settings.rule == AUTO else settings.rule]
    fits: dict[str, list[AdditiveFit]] = {"grades": [], "ranks": []}
    for numbers in by_shape(electorates):
        chosen = [electorates[number] for number in numbers]
        if not chosen[0].votes or len(chosen[0].candidates) < 2:
            continue
        for fit, at, unit in fits_of(chosen, stack(chosen), rule):
            fits[unit].append(fit.take(at))
    return learn_prior(fits["grades"], "grades") or learn_prior(fits["ranks"], "ranks")
