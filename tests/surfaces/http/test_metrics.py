"""Metrics of a server's sessions."""

import re

import pytest

from services import councils, write_config
from witan.service.operations.ask import QuestionRequest, ResumeRequest
from witan.service.sessions.manager import Service
from witan.service.sessions.spending import Client
from witan.surfaces.http.observers import Metrics

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend():
    """The event loop that servers run on."""
    return "asyncio"


def priced(folder, **stages):
    """The configuration of three scripted members with a price."""
    write_config(folder, **stages)
    file = folder / "priced.toml"
    seats = [f'"script:{folder / name}.toml"' for name in ("ada", "bob", "cyd")]
    tables = "".join(f"[[members]]\nseat = {seat}\nprice = [1, 1]\n" for seat in seats)
    file.write_text(f'chairmen = ["ada"]\n{tables}', encoding="utf-8")
    return file


def figure(metrics, name, client):
    """The value of a counter, or None without a sample."""
    found = re.search(rf'^{name}{{client="{client}"}} (.*)$', metrics.text(0, 0).decode(), re.M)
    return None if found is None else float(found[1])


async def test_the_cost_of_an_interrupted_session_is_counted_once(tmp_path):
    """A resumed session adds the rest; interrupted calls have an unknown cost."""
    metrics = Metrics()
    slow = councils(priced(tmp_path, review=[{"prefers": ["Ada says"], "seconds": 30}]))
    async with Service.open(slow, observers=[metrics]) as service:
        running = await service.start(QuestionRequest("Is it so?"), Client("ci"))
        async for told in running.stream.follow():
            if told.event.kind == "review_started":
                break
        running.cancel()
        broken = await running.wait_for_session()
        again = await service.start(ResumeRequest(running.id), client=Client("ines"))
        again.cancel()
        await again.wait_for_session()

    assert broken.cost.known_usd > 0
    assert figure(metrics, "witan_cost_usd_total", "ci") == pytest.approx(broken.cost.known_usd)
    assert figure(metrics, "witan_cost_usd_total", "ines") is None
    assert figure(metrics, "witan_sessions_of_unknown_cost_total", "ci") == 1


async def test_the_cost_of_a_whole_session_is_counted(tmp_path):
    """As its last event reports."""
    metrics = Metrics()
    async with Service.open(councils(priced(tmp_path)), observers=[metrics]) as service:
        session = await (
            await service.start(QuestionRequest("Is it so?"), Client("ci"))
        ).wait_for_session()

    assert session.cost.known_usd > 0
    assert figure(metrics, "witan_cost_usd_total", "ci") == pytest.approx(session.cost.known_usd)
    assert figure(metrics, "witan_sessions_of_unknown_cost_total", "ci") is None
