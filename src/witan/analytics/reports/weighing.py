"""Standings under `weighted_borda`: each half of a history weighed by the other."""

from collections.abc import Mapping, Sequence

from witan.core.casts import Cast, Named
from witan.history import History
from witan.history.learning import NO_ALIASES, learn
from witan.history.schema import bucket_of

__all__ = ["WEIGHTED", "weights_by_halves"]

WEIGHTED = "weighted_borda"


def weights_by_halves(
    history: History, casts: Sequence[Cast], aliases: Mapping[str, str] = NO_ALIASES
) -> Mapping[str, Mapping[str, float]]:
    """Session to what its reviewers weigh, by sessions of the other half of the buckets.

    So no session teaches what it is counted by, and a history is read twice and not once a session.

    Parameters
    ----------
    aliases
        Old name → new name of a model, beside those of the history.
    """
    known_as = {**history.aliases, **aliases}
    found: dict[str, Mapping[str, float]] = {}
    for half in (0, 1):
        known = {
            cast.session: _reviewers(cast) for cast in casts if bucket_of(cast.session) % 2 == half
        }
        models = sorted({model for named in known.values() for model in named.values()})
        if not models:
            continue
        taught = learn(history.database, models, half=1 - half, aliases=known_as)
        weights = taught.reliability
        for session, named in known.items():
            found[session] = {
                name: weights[model] for name, model in sorted(named.items()) if model in weights
            }
    return found


def _reviewers(cast: Cast) -> dict[str, str]:
    """Reviewer to the model behind it; people are weighed alike."""
    named = Named(cast)
    names = {ballot.reviewer for ballot in cast.ballots if ballot.kind == "model"}
    return {name: named.reviewer(name) for name in names}
