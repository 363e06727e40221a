"""Start-up of models: libraries imported and clients opened before any call is timed."""

from collections.abc import Iterable

import anyio

from witan.deliberation.ports import Member, Model, Preparable

__all__ = ["Preparation"]

LONGEST_SECONDS = 60.0
"""How long calls wait for the models of a council to start up; the rest is part of the calls."""


class Preparation:
    """Prepares each model of a council once, all of them at the same time."""

    def __init__(self) -> None:
        self._lock = anyio.Lock()
        self._ready: list[Model] = []

    async def prepare(self, members: Iterable[Member]) -> None:
        """Wait until these members' models can be called without further ado.

        A model that fails to start up says why when it is called.
        """
        async with self._lock:
            waiting: list[Model] = []
            for member in members:
                if not any(member.model is known for known in (*self._ready, *waiting)):
                    waiting.append(member.model)
            with anyio.move_on_after(LONGEST_SECONDS):
                async with anyio.create_task_group() as group:
                    for model in waiting:
                        if isinstance(model, Preparable):
                            group.start_soon(_prepare, model)
            self._ready += waiting


async def _prepare(model: Preparable) -> None:
    try:
        await model.prepare()
    except Exception:  # noqa: BLE001 - whatever it is, the call itself fails by it and says so
        return
