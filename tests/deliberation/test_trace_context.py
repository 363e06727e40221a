"""Trace context is read as the W3C's recommendation says, and a call is a span of its own."""

import pytest

from witan.deliberation.call_headers import (
    TRACE,
    TraceContext,
    call_trace,
    read_trace,
    read_trace_variables,
    within_trace,
)

TRACE_ID, SPAN_ID = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
PARENT = f"00-{TRACE_ID}-{SPAN_ID}-01"


class TestParent:
    """An invalid parent is as none."""

    @pytest.mark.parametrize(
        ("value", "known"),
        [
            (PARENT, PARENT),
            (f" {PARENT}\t", PARENT),
            (f"00-{TRACE_ID}-{SPAN_ID}-ff", f"00-{TRACE_ID}-{SPAN_ID}-03"),
            (f"cc-{TRACE_ID}-{SPAN_ID}-01", PARENT),
            (f"cc-{TRACE_ID}-{SPAN_ID}-01-what-comes-later", PARENT),
        ],
    )
    def test_a_valid_parent_is_written_as_version_00(self, value, known):
        """Flags that the standard does not define are dropped, and what a later version adds."""
        assert read_trace([value], []) == TraceContext(known)

    @pytest.mark.parametrize(
        "values",
        [
            [],
            [""],
            [PARENT, PARENT],
            [PARENT.upper()],
            [f"ff-{TRACE_ID}-{SPAN_ID}-01"],
            [f"00-{TRACE_ID}-{SPAN_ID}-01-more"],
            [f"cc-{TRACE_ID}-{SPAN_ID}-01.more"],
            [f"00-{'0' * 32}-{SPAN_ID}-01"],
            [f"00-{TRACE_ID}-{'0' * 16}-01"],
            [f"00-{TRACE_ID}-{SPAN_ID}"],
            [f"00-{TRACE_ID[1:]}-{SPAN_ID}-01"],
            [f"00-{TRACE_ID}-{SPAN_ID}-0x"],
            [f"{PARENT}\n"],
        ],
    )
    def test_anything_else_is_ignored(self, values):
        """With its state, even if that is valid."""
        assert read_trace(values, ["a=1"]) is None


class TestState:
    """An invalid state is dropped alone."""

    @pytest.mark.parametrize(
        ("values", "state"),
        [
            (["a=1,b=2"], "a=1,b=2"),
            (["a=1", "b=2"], "a=1,b=2"),
            ([" a=1 ,, b=2"], "a=1,b=2"),
            (["tenant@system=x:y z"], "tenant@system=x:y z"),
            ([""], ""),
            (["a=1,a=2"], ""),
            (["A=1"], ""),
            (["a=1=2"], ""),
            (["a=é"], ""),
            (["a"], ""),
            ([",".join(f"k{i}=1" for i in range(33))], ""),
        ],
    )
    def test_headers_are_joined_and_checked(self, values, state):
        """Keys are unique, and there are at most 32."""
        assert read_trace([PARENT], values) == TraceContext(PARENT, state)


class TestCalls:
    """Calls carry the trace of their task."""

    def test_each_call_is_a_span_of_its_own(self):
        """In the same trace, with the same flags and state."""
        with within_trace(TraceContext(PARENT, "a=1")):
            first, second = call_trace(), call_trace()

        assert first["tracestate"] == "a=1"
        assert read_trace([first["traceparent"]], []) is not None
        assert first["traceparent"][:36] == second["traceparent"][:36] == PARENT[:36]
        assert len({PARENT, first["traceparent"], second["traceparent"]}) == 3

    def test_without_a_trace_they_carry_nothing(self):
        """No trace is begun."""
        assert call_trace() == {}

    def test_a_trace_within_another_changes_nothing(self):
        """A resumed session is called on behalf of the request that resumes it."""
        outer = TraceContext(PARENT)
        with within_trace(outer), within_trace(TraceContext(PARENT.replace("4b", "5b"))):
            assert TRACE.get() is outer
        assert TRACE.get() is None

    def test_programs_name_it_in_variables(self):
        """As OpenTelemetry's tools for shells do."""
        known = {"TRACEPARENT": PARENT, "TRACESTATE": "a=1"}

        assert read_trace_variables(known) == TraceContext(PARENT, "a=1")
        assert read_trace_variables({"TRACESTATE": "a=1"}) is None
