"""JSON in replies, and the schemas it must satisfy."""

import json
import time

import pytest

from witan.deliberation.replies import check_schema, read_structure
from witan.errors import InvalidParameter

OBJECT = '{"type": "object"}'


class TestSchemas:
    """Valid schemas, without external references."""

    @pytest.mark.parametrize(
        "schema",
        ["no JSON", "[1]", '{"type": "nonsense"}', '{"$ref": "http://127.0.0.1:9/other.json"}'],
    )
    def test_an_invalid_schema_is_refused(self, schema):
        """The error has the reason; a reference to another server is never followed."""
        with pytest.raises(InvalidParameter, match="a JSON Schema"):
            check_schema(schema)

    def test_a_pattern_cannot_stall(self):
        """It may backtrack."""
        schema = json.dumps({"properties": {"a": {"pattern": r"^(?=a)(a|aa)+$"}}})
        began = time.process_time()
        _, problem = read_structure(json.dumps({"a": "a" * 5_000 + "b"}), schema)

        assert problem
        assert time.process_time() - began < 5


class TestReplies:
    """One JSON value is read out of a reply."""

    @pytest.mark.parametrize(
        "reply", ['{"a": 1}', 'So:\n```json\n{"a": 1}\n```', ' {"a": 1,}\n', '"x" {"a": 1}']
    )
    def test_a_single_object_is_found_in_any_text(self, reply):
        text, problem = read_structure(reply, OBJECT)

        assert (json.loads(text), problem) == ({"a": 1}, "")

    @pytest.mark.parametrize("reply", ["none", '{"a": 1} or {"a": 2}', '{"a": '])
    def test_no_object_or_several_are_a_problem(self, reply):
        """Which one is meant is not guessed."""
        assert read_structure(reply, OBJECT)[1] == "is not one JSON value"

    def test_every_violation_is_named_with_its_place(self):
        """A repair can then fix all of them."""
        schema = '{"properties": {"a": {"items": {"type": "integer"}}}, "required": ["b"]}'
        _, problem = read_structure('{"a": [1, "x"]}', schema)

        assert 'at a.1: "x" is not of type "integer"' in problem
        assert 'at the top: "b" is a required property' in problem
