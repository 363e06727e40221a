"""JSON in replies, and the schemas that it satisfies."""

import json
import time

import pytest

from witan.deliberation.replies import check_schema, read_structure
from witan.errors import InvalidParameter

OBJECT = '{"type": "object"}'


class TestSchemas:
    """A schema is one, and leads nowhere else."""

    @pytest.mark.parametrize(
        "schema",
        ["no JSON", "[1]", '{"type": "nonsense"}', '{"$ref": "http://127.0.0.1:9/other.json"}'],
    )
    def test_what_is_no_schema_is_refused(self, schema):
        """With the reason; a reference to another server is never followed."""
        with pytest.raises(InvalidParameter, match="a JSON Schema"):
            check_schema(schema)

    def test_a_pattern_takes_no_time(self):
        """However it backtracks."""
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
    def test_a_single_object_is_found(self, reply):
        """Whatever stands around it."""
        text, problem = read_structure(reply, OBJECT)

        assert (json.loads(text), problem) == ({"a": 1}, "")

    @pytest.mark.parametrize("reply", ["none", '{"a": 1} or {"a": 2}', '{"a": '])
    def test_none_or_several_are_a_problem(self, reply):
        """It is not guessed which one is meant."""
        assert read_structure(reply, OBJECT)[1] == "is not one JSON value"

    def test_every_violation_is_named_with_its_place(self):
        """So that a repair can mend all of them."""
        schema = '{"properties": {"a": {"items": {"type": "integer"}}}, "required": ["b"]}'
        _, problem = read_structure('{"a": [1, "x"]}', schema)

        assert 'at a.1: "x" is not of type "integer"' in problem
        assert 'at the top: "b" is a required property' in problem
