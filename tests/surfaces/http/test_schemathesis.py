"""The server matches its OpenAPI document under schemathesis."""

import json
from collections import Counter

import httpx2
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.core.failures import Failure, FailureGroup
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
    unsupported_method,
)

from served import served
from services import councils, write_config
from witan.history import History
from witan.surfaces.cli.app import main

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    unsupported_method,
]

REFUSING = (501, 502, 503, 508)
"""Statuses of a server error that are said on purpose, and documented."""

BALLOTS = '{"session": "q1", "reviewer": "ada", "ranking": ["bob", "cyd"]}\n'

ASKED = 6
"""Requests for each operation, besides the examples of the document."""


@schemathesis.serializer("application/x-ndjson", "text/csv")
def as_text(ctx, value):
    """Ballots as arbitrary text."""
    text = value if isinstance(value, str) else json.dumps(value)
    return text.encode("utf-8", "surrogatepass")


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    """A server with one scripted and one imported session."""
    folder = tmp_path_factory.mktemp("server")
    (folder / "ballots.jsonl").write_text(BALLOTS)
    history = str(folder / "history.sqlite")
    assert main(["import", str(folder / "ballots.jsonl"), "--history", history]) == 0
    with (
        History.open(history) as opened,
        served(councils(write_config(folder), opened)) as server,
        httpx2.Client(base_url=server.url, timeout=60) as client,
    ):
        client.post("/api/sessions", params={"wait": 9}, json={"question": "Is it so?"})
        yield server.url


@pytest.fixture(scope="module")
def document(url):
    """The OpenAPI document of the server."""
    return httpx2.get(f"{url}/openapi.json", timeout=60).json()


@pytest.fixture(scope="module")
def schema(url):
    """The document as read by schemathesis."""
    return schemathesis.openapi.from_url(f"{url}/openapi.json")


def check_operation(operation, strategy, answered):
    """Problems in replies to generated requests of an operation.

    Their statuses are added to `answered`.
    """
    wrong = []

    @settings(
        max_examples=ASKED,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=strategy)
    def ask(case):
        if "wait" in case.query:
            case.query["wait"] = 5
        response = case.call(timeout=30)
        answered[operation.label, response.status_code] += 1
        expected = response.status_code in REFUSING
        checks = [check for check in CHECKS if not (expected and check is not_a_server_error)]
        case.validate_response(response, checks=checks)

    try:
        ask()
    except Unsatisfiable:
        pass  # nothing about it could be wrong
    except (FailureGroup, Failure) as error:
        told = "; ".join(map(str, getattr(error, "exceptions", [error])))
        wrong.append(f"{operation.method} {operation.path}: {told}\n{error}")
    return wrong


@pytest.mark.slow
def test_every_reply_matches_the_document(schema):
    """No reply is a server error; status, type and shape are documented."""
    wrong, answered = [], Counter()
    operations = [result.ok() for result in schema.get_all_operations()]
    for operation in operations:
        for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):
            drawn = operation.as_strategy(generation_mode=mode)
            wrong += check_operation(operation, drawn, answered)
        for shown in operation.get_strategies_from_examples():
            wrong += check_operation(operation, shown, answered)

    assert len(operations) > 20
    assert {operation for operation, _ in answered} == {each.label for each in operations}
    assert not wrong, "\n\n".join(wrong)


class TestDocument:
    """The document is written for people, too."""

    def test_every_operation_has_a_description_and_an_example(self, document):
        """Of request and reply, unless their fields are typed and described."""
        for path, method, operation in _operations(document):
            where = f"{method} {path}"
            assert operation["summary"], where
            assert operation["description"], where
            for media in operation.get("requestBody", {}).get("content", {}).values():
                typed = _references(media.get("schema", {}))
                assert typed or _has_example(document, media), f"{where}: what is sent"
            for parameter in operation.get("parameters", []):
                if parameter["required"] and not parameter.get("description"):
                    assert _has_example(document, parameter), f"{where}: {parameter['name']}"
            good = [r for code, r in operation["responses"].items() if code.startswith("2")]
            for media in (
                media for response in good for media in response.get("content", {}).values()
            ):
                typed = _references(media.get("schema", {}))
                assert typed or _has_example(document, media), f"{where}: what comes back"

    def test_every_operation_documents_its_errors(self, document):
        """As a problem, or in the shape of OpenAI's protocol."""
        for path, method, operation in _operations(document):
            if path.startswith("/api"):
                assert {"401", "403", "422", "429", "503"} <= set(operation["responses"]), path
                name = operation["responses"]["422"]["$ref"].rpartition("/")[2]
                refused = document["components"]["responses"][name]["content"]
                assert list(refused) == ["application/problem+json"], f"{method} {path}"

    @pytest.mark.parametrize("path", ["/api/plan", "/api/sessions"])
    def test_an_unknown_earlier_session_is_documented(self, document, url, path):
        """Asking and planning look for the session that they continue."""
        response = httpx2.post(
            f"{url}{path}", json={"question": "And so?", "parent": "nobody's"}, timeout=60
        )

        assert response.status_code == 404
        assert "unknown session" in response.json()["detail"]
        assert "404" in document["paths"][path]["post"]["responses"]

    def test_examples_of_a_session_match_its_type(self, document, url):
        """For a council's record and for an import."""
        shown = document["paths"]["/api/sessions/{session}"]["get"]["responses"]["200"]["content"]
        types = [
            set(document["components"]["schemas"][name]["properties"])
            for name in _references(shown["application/json"]["schema"])
        ]
        imported = httpx2.get(f"{url}/api/sessions?limit=99", timeout=60).json()["sessions"][-1][
            "session"
        ]
        for mark, session in (("witan_session", "last"), ("witan_imported", imported)):
            record = httpx2.get(f"{url}/api/sessions/{session}", timeout=60).json()
            assert [each for each in record if each.startswith("witan_")] == [mark]
            assert any({mark} <= set(record) <= declared for declared in types)


def _operations(document):
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield path, method, operation


def _references(schema):
    """Names of the types in a schema that consists of references."""
    kinds = schema.get("anyOf", [schema])
    return [each.get("$ref", "").rpartition("/")[2] for each in kinds if "$ref" in each]


def _has_example(document, shown):
    if "example" in shown or "examples" in shown:
        return True
    held = shown.get("schema", {})
    if "$ref" in held:
        held = document["components"]["schemas"][held["$ref"].rpartition("/")[2]]
    return "example" in held or "examples" in held
