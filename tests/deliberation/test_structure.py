"""JSON in replies, and the schemas it must satisfy."""

import json
import time

import pytest

from witan import Council
from witan.deliberation.procedure import Procedure
from witan.deliberation.replies import check_schema, check_schema_cost, read_structure
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

    @pytest.mark.parametrize("kind", ["object", "array"])
    def test_references_cannot_multiply(self, kind):
        """A schema that applies itself a billion times is refused before the council is asked."""
        with pytest.raises(InvalidParameter, match="at most 200,000 checks"):
            check_schema_cost(json.dumps(fan_out(kind)))

    def test_a_part_cannot_multiply(self):
        """A reply with that part has a problem, whether it satisfies the schema or not."""
        tree = {"properties": {"a": {"allOf": [{"$ref": "#"}, {"$ref": "#"}]}}}
        deep = json.loads('{"a":' * 40 + "{}" + "}" * 40)
        began = time.process_time()
        problems = [
            read_structure(json.dumps(value), json.dumps(schema))[1]
            for value, schema in (
                ({"b": {}}, {"properties": {"b": {"$ref": "#/c"}}, "c": fan_out("array", "#/c")}),
                (deep, tree),
                ({"b": {"a": 1}}, {"properties": {"b": nested(40)}}),
            )
        ]

        assert all("at most 200,000 checks" in each for each in problems)
        assert time.process_time() - began < 5

    def test_a_circle_of_references_is_refused(self):
        """It would apply to the same value without end."""
        with pytest.raises(InvalidParameter, match="at most 200,000 checks"):
            check_schema_cost('{"anyOf": [{"$ref": "#"}, {"type": "object"}]}')

    @pytest.mark.parametrize(
        "schema",
        [
            '{"$ref": "#"}',
            '{"$dynamicAnchor": "a", "properties": {"a": {"$dynamicRef": "#a"}}}',
            '{"$defs": {"a": {"$id": "x:y"}, "b": {"$id": "x:y"}}}',
        ],
    )
    def test_a_stored_procedure_may_have_a_refused_schema(self, schema):
        """A session of an earlier version is read; a new council with its procedure is refused."""
        stored = Procedure(json_schema=schema)

        with pytest.raises(InvalidParameter, match=r"json_schema .* a JSON Schema (that|with)"):
            Council(["cmd:cat", "cmd:cat"], procedure=stored)
        assert "a JSON Schema" in read_structure('{"a": {}}', schema)[1]

    @pytest.mark.parametrize(
        "reference", ["#/$defs/node", "#node", "tree.json#/$defs/node", "https://x.org/node.json"]
    )
    def test_recursive_schemas_are_checked(self, reference):
        """A reference may be a pointer, an anchor or an identifier."""
        one = {"$id": "node.json", "$anchor": "node"} if "node.json" in reference else {}
        anchor = {"$anchor": "node"} if reference == "#node" else {}
        address = "node.json" if one else reference
        node = {
            **one, **anchor,
            "type": "object",
            "properties": {"next": {"anyOf": [{"$ref": address}, {"type": "null"}]}},
        }  # fmt: skip
        schema = {"$id": "https://x.org/tree.json", "$defs": {"node": node}, "$ref": reference}
        good = json.loads('{"next":' * 30 + "null" + "}" * 30)
        bad = {"next": {"next": 5}}

        assert not read_structure(json.dumps(good), json.dumps(schema))[1]
        assert "does not satisfy" in read_structure(json.dumps(bad), json.dumps(schema))[1]

    def test_many_violations_of_a_long_reply_fill_no_memory(self):
        """Each would quote the reply."""
        schema = json.dumps({"allOf": [{"type": "array"}] * 2_000})
        _, problem = read_structure(json.dumps({"a": ["x" * 10] * 3_000}), schema)

        assert problem.count('is not of type "array"') == 1


def fan_out(kind, at="#"):
    """Make a schema that applies 2^30 times."""
    steps = {f"s{n}": {"allOf": [{"$ref": f"{at}/$defs/s{n + 1}"}] * 2} for n in range(30)}
    return {"$defs": {**steps, "s30": {"type": kind}}, "$ref": f"{at}/$defs/s0"}


def nested(depth):
    """Nest a schema in others that apply it again to see which properties it covers."""
    schema = {"properties": {"a": {}}}
    for _ in range(depth):
        schema = {"allOf": [schema], "unevaluatedProperties": False}
    return schema


class TestReplies:
    """One JSON value is read out of a reply."""

    @pytest.mark.parametrize(
        "reply", ['{"a": 1}', 'So:\n```json\n{"a": 1}\n```', ' {"a": 1,}\n', '"x" {"a": 1}']
    )
    def test_a_single_object_is_found_in_any_text(self, reply):
        text, problem = read_structure(reply, OBJECT)

        assert (json.loads(text), problem) == ({"a": 1}, "")

    @pytest.mark.parametrize("number", ["NaN", "-Infinity"])
    @pytest.mark.parametrize("form", ['{{"a": {}}}', 'So: ```json\n{{"a": {}}}\n```'])
    def test_a_number_that_json_lacks_is_a_problem(self, form, number):
        """It is not rewritten as a text, which some schemas accept."""
        assert read_structure(form.format(number), OBJECT)[1] == "is not one JSON value"

    def test_an_infinite_number_in_prose_is_a_problem(self):
        """JSON has it, but rewritten it would be Infinity."""
        assert read_structure('So: {"a": 1e999}', OBJECT)[1] == "is not one JSON value"

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
