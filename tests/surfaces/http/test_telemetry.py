"""Spans of a server and of the command line, as received by another implementation."""

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter

import httpx2
import pytest

from served import serving_process
from services import write_config

pytest.importorskip("opentelemetry.proto", reason="spans need the extra otel")

from processes import run_witan, wait_until
from span_receiver import receiver

SECRET = "What is the password of the vault?"  # noqa: S105 - a question
SAYS = "Ada says so, of the vault."

HANGS = [{"prefers": ["Ada says"], "seconds": 60}]


@pytest.fixture
def collector():
    """A receiver of spans."""
    with receiver() as opened:
        yield opened


def ask(client, **more):
    body = {"question": SECRET, **more}
    return client.post("/api/sessions", params={"wait": 20}, json=body).json()


def opened_until(client, session, kind):
    """Follow a session until an event of this kind."""
    with client.stream("GET", f"/api/sessions/{session}/events") as response:
        for line in response.iter_lines():
            if line == f"event: {kind}":
                return


class TestServer:
    """A server sends a span per session and per call."""

    @pytest.mark.slow
    def test_every_call_is_a_child_span_of_its_session(self, collector, tmp_path):
        """With the GenAI conventions: operation, provider, model, conversation."""
        file = write_config(tmp_path)
        with (
            serving_process("--config", file, cwd=tmp_path, environment=collector.environment) as (
                url,
                process,
            ),
            httpx2.Client(base_url=url, timeout=60) as client,
        ):
            session = ask(client)["session"]
            process.send_signal(signal.SIGTERM)
            assert process.wait(60) == 0
        spans = collector.spans
        [root] = [span for span in spans if not span.parent]
        calls = [span for span in spans if span.parent]

        assert set(collector.paths) == {"/v1/traces"}
        assert root.attributes["gen_ai.conversation.id"] == session
        assert root.attributes["gen_ai.operation.name"] == "invoke_workflow"
        assert root.attributes["witan.status"] == "complete"
        assert {(span.parent, span.trace) for span in calls} == {(root.id, root.trace)}
        stages = Counter(span.attributes["witan.stage"] for span in calls)
        assert stages == {"answer": 3, "review": 3, "synthesis": 1}
        for span in calls:
            assert span.attributes["gen_ai.operation.name"] == "chat"
            assert span.attributes["gen_ai.provider.name"] == "script"
            assert span.name == f"chat {span.attributes['gen_ai.request.model']}"
            assert span.attributes["gen_ai.usage.output_tokens"] > 0
            assert 0 <= span.seconds <= root.seconds
        assert not any(span.failed for span in spans)
        assert {span.service for span in spans} == {"witan"}

    def test_spans_exclude_text(self, collector, tmp_path):
        """Neither questions, answers nor quotations in errors."""
        file = write_config(
            tmp_path,
            answer=[{"text": SAYS}],
            review=[{"text": f"I rank no one: {SAYS}"}],
            synthesis=[{"error": f"refuses: {SECRET}", "status": 400}],
        )
        with (
            serving_process("--config", file, cwd=tmp_path, environment=collector.environment) as (
                url,
                process,
            ),
            httpx2.Client(base_url=url, timeout=60) as client,
        ):
            record = ask(client, category="vaults")
            process.send_signal(signal.SIGTERM)
            process.wait(60)
        sent = b"".join(collector.raw).lower()

        assert "vault" in json.dumps(record)
        assert collector.spans
        assert b"vault" not in sent
        assert b"rank no one" not in sent

    @pytest.mark.slow
    def test_a_failed_call_is_marked(self, collector, tmp_path):
        """With its type of error."""
        file = write_config(tmp_path, review=[{"text": "I rank no one."}])
        with (
            serving_process("--config", file, cwd=tmp_path, environment=collector.environment) as (
                url,
                process,
            ),
            httpx2.Client(base_url=url, timeout=60) as client,
        ):
            ask(client)
            process.send_signal(signal.SIGTERM)
            process.wait(60)
        reviews = [s for s in collector.spans if s.attributes.get("witan.stage") == "review"]

        assert [span.attributes["error.type"] for span in reviews] == ["failed"] * 3
        assert all(span.failed and not span.words for span in reviews)

    @pytest.mark.slow
    def test_a_resumed_session_ends_every_span_once(self, collector, tmp_path):
        """Earlier calls are not sent again."""
        file = write_config(tmp_path, review=HANGS)
        with (
            serving_process("--config", file, cwd=tmp_path, environment=collector.environment) as (
                url,
                process,
            ),
            httpx2.Client(base_url=url, timeout=60) as client,
        ):
            session = client.post("/api/sessions", json={"question": SECRET}).json()["session"]
            opened_until(client, session, "review_started")
            client.post(f"/api/sessions/{session}/cancel")
            wait_until(lambda: any(not s.parent for s in collector.spans), "its span did not end")
            first = collector.spans
            collector.raw.clear()
            client.post(f"/api/sessions/{session}/resume")
            client.post(f"/api/sessions/{session}/cancel")
            process.send_signal(signal.SIGTERM)
            process.wait(60)
        again = collector.spans

        [root] = [span for span in first if not span.parent]
        assert root.attributes["witan.status"] == "interrupted"
        assert root.failed
        broken = [span for span in first if span.attributes.get("error.type") == "unfinished"]
        assert len(broken) == len([s for s in first if s.attributes.get("witan.stage") == "review"])
        assert broken
        assert [span for span in again if span.attributes.get("witan.stage") == "answer"] == []
        [root] = [span for span in again if not span.parent]
        assert root.attributes["gen_ai.conversation.id"] == session

    @pytest.mark.slow
    @pytest.mark.parametrize(
        "variable", ["", "OTEL_SDK_DISABLED=true", "OTEL_TRACES_EXPORTER=none"]
    )
    def test_spans_are_not_sent_without_configuration(self, collector, tmp_path, variable):
        """Nor if switched off."""
        environment = dict(pair.split("=") for pair in [variable] if pair)
        if environment:
            environment |= collector.environment
        with (
            serving_process(
                "--config", write_config(tmp_path), cwd=tmp_path, environment=environment
            ) as (url, process),
            httpx2.Client(base_url=url, timeout=60) as client,
        ):
            ask(client)
            process.send_signal(signal.SIGTERM)
            process.wait(60)

        assert collector.raw == []


class TestCommandLine:
    """A session of the command line is traced, too."""

    @staticmethod
    def demo(tmp_path, **environment):
        return run_witan(
            "demo", "--fast", "--no-history", cwd=tmp_path, env={**os.environ, **environment}
        )

    def test_the_demonstration_sends_its_spans(self, collector, tmp_path):
        """All before the command ends."""
        done = self.demo(tmp_path, **collector.environment)
        [root] = [span for span in collector.spans if not span.parent]

        assert done.returncode == 0
        assert root.attributes["witan.simulated"] is True
        assert len(collector.spans) > 8

    @pytest.mark.slow
    def test_its_span_continues_the_trace_of_the_caller(self, collector, tmp_path):
        """From the variable TRACEPARENT."""
        parent = f"00-{'a' * 32}-{'b' * 16}-01"
        self.demo(tmp_path, **collector.environment, TRACEPARENT=parent)

        assert {span.trace.hex() for span in collector.spans} == {"a" * 32}
        assert [span.parent.hex() for span in collector.spans].count("b" * 16) == 1

    @pytest.mark.slow
    def test_an_unreachable_receiver_does_not_fail_the_command(self, tmp_path):
        """The text is printed, with a note about lost spans."""
        started = time.monotonic()
        done = self.demo(tmp_path, OTEL_EXPORTER_OTLP_ENDPOINT="http://127.0.0.1:9")

        assert done.returncode == 0
        assert done.stdout.startswith("simulated")
        assert done.stderr.splitlines()[-1].startswith("some spans were not exported")
        assert time.monotonic() - started < 45

    def test_opentelemetry_is_not_imported_without_configuration(self, tmp_path):
        program = (
            "import sys\nfrom witan.surfaces.cli.app import main\n"
            "main(['demo', '--fast', '--no-history'])\n"
            "sys.exit(any(name.startswith('opentelemetry.sdk') for name in sys.modules))\n"
        )
        done = subprocess.run(  # noqa: S603 - this Python
            [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, check=False
        )

        assert done.returncode == 0
