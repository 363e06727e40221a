"""Preference pairs, and results of promptfoo and Inspect, in files made for these tests."""

import io
import json
import tracemalloc
import zipfile
import zlib

import pytest
import zstandard

from witan.errors import BallotFileError, TooLarge
from witan.files.ballots import read_ballots
from witan.files.ballots.opening import Bounds
from witan.files.imports import read_imports


def stream(content, name="file.json"):
    held = io.BytesIO(content if isinstance(content, bytes) else content.encode())
    held.name = name
    return held


def lines(*records):
    return "".join(json.dumps(record) + "\n" for record in records)


class TestPreferences:
    """A chosen and a rejected answer are one comparison in unknown order."""

    def test_names_are_candidates(self):
        """The choice may be a name, with a judge and an item."""
        row = {"item": "q1", "judge": "ann", "chosen": "gpt", "rejected": "grok"}
        [ballot] = read_ballots(stream(lines(row)))

        assert (ballot.session, ballot.reviewer, ballot.groups) == (
            "q1",
            "ann",
            (("gpt",), ("grok",)),
        )
        assert (ballot.paired, ballot.positions) == (True, None)

    @pytest.mark.parametrize(
        "names",
        [
            ("chosen_model", "rejected_model"),
            ("chosen-model", "rejected-model"),
            ("model_chosen", "model_rejected"),
        ],
    )
    @pytest.mark.parametrize("form", ["text", "messages"])
    def test_texts_belong_to_the_named_models(self, names, form):
        """Question, answers and scores are imported; one prompt is one session."""

        def answer(text):
            turns = [{"role": "user", "content": "Why?"}, {"role": "assistant", "content": text}]
            return text if form == "text" else turns

        row = {
            "prompt": "Why?",
            "chosen": answer("Because it is so."),
            "rejected": answer("No idea."),
            names[0]: "gpt",
            names[1]: "grok",
            "chosen_rating": 5,
            "rejected_rating": 2,
        }
        [one] = read_imports(stream(lines(row, row | {names[1]: "claude"})))
        first, second = one.ballots

        assert (one.session, one.question) == ("file/1", "Why?")
        assert one.answers == {
            "gpt": "Because it is so.",
            "grok": "No idea.",
            "claude": "No idea.",
        }
        assert (first.groups, first.notes) == ((("gpt",), ("grok",)), "scores 5 and 2")
        assert second.groups == (("gpt",), ("claude",))

    def test_texts_without_models_are_refused(self):
        """The error names the fields to add."""
        row = {"prompt": "Why?", "chosen": "Because it is so.", "rejected": "No idea at all."}
        for format_ in (None, "preferences"):
            with pytest.raises(BallotFileError, match="add chosen_model and rejected_model"):
                list(read_ballots(stream(lines(row)), format=format_, on_problem=lambda _: None))

    def test_fields_can_be_named(self):
        """The author of an answer may have any field name, in CSV as in JSON."""
        text = 'prompt,chosen,rejected,good_by,bad_by\nWhy?,"It is, so.",No idea.,gpt,grok\n'
        columns = {"first": "good_by", "second": "bad_by"}
        [ballot] = read_ballots(stream(text), columns=columns)

        assert ballot.groups == (("gpt",), ("grok",))


def result(test, provider, *components, prompt=0, **fields):
    """One result of promptfoo."""
    return {
        "testIdx": test,
        "promptIdx": prompt,
        "provider": {"id": f"openai:{provider}", "label": provider},
        "prompt": {"raw": f"Question {test}?", "label": f"prompt {prompt}"},
        "vars": {"n": test},
        "response": {"output": f"{provider} says {test}"},
        "success": True,
        "score": 0.75,
        "namedScores": {},
        "gradingResult": {
            "pass": True,
            "score": 0.75,
            "reason": "",
            "componentResults": [
                {"pass": score > 0.5, "score": score, "reason": "", "assertion": assertion}
                for assertion, score in components
            ],
        },
        **fields,
    }


RUBRIC = {"type": "llm-rubric", "value": "is kind", "provider": "openai:gpt-5"}
CONTAINS = {"type": "contains", "value": "x"}
KIND = {"type": "llm-rubric", "value": "is kind", "metric": "kindness"}


class TestPromptfoo:
    """A test is a session, a provider a candidate, an assertion a reviewer."""

    RESULTS = (
        result(0, "gpt", (RUBRIC, 0.8), (CONTAINS, 1.0), (KIND, 0.5), (CONTAINS, 0.0)),
        result(0, "grok", (RUBRIC, 0.6), (CONTAINS, 0.0), (KIND, 0.25), (CONTAINS, 1.0)),
        result(1, "gpt", (RUBRIC, 0.9)),
    )

    def test_jurors_of_a_jury_are_reviewers(self):
        """Their grades, 1 to 10, replace the assertion's score; others count as before."""
        assertion = {"type": "python", "value": "file://jury.py"}
        one = result(0, "gpt", (assertion, 0.5), (assertion, 0.6), (CONTAINS, 1.0))
        for part, grade in zip(one["gradingResult"]["componentResults"][:2], (9, 4), strict=True):
            part["metadata"] = {"juror_grades": {"ada": {"tone": grade}, "bob": 6}}
        ballots = list(read_ballots(stream(lines(one))))

        assert {b.reviewer: b.grades["gpt"] for b in ballots} == {
            "contains": 1.0,
            "ada": {"tone": 9},
            "bob": 6,
            "ada-2": {"tone": 4},
            "bob-2": 6,
        }
        assert {str(b.scale) for b in ballots if b.reviewer != "contains"} == {"1-10"}

    @pytest.mark.parametrize("form", ["file", "indented", "summary", "lines"])
    def test_results_are_read(self, form):
        """As a whole file, as the summary of the library, or one result per line."""
        whole = {"evalId": "e", "results": {"version": 3, "results": self.RESULTS, "stats": {}}}
        content = {
            "file": json.dumps(whole),
            "indented": json.dumps(whole, indent=2),
            "summary": json.dumps({"version": 3, "results": self.RESULTS, "stats": {}}),
            "lines": lines(*self.RESULTS),
        }[form]
        first, second = read_imports(stream(content))

        assert [(b.reviewer, dict(b.grades)) for b in first.ballots] == [
            ("openai:gpt-5", {"gpt": 0.8, "grok": 0.6}),
            ("contains", {"gpt": 1.0, "grok": 0.0}),
            ("kindness", {"gpt": 0.5, "grok": 0.25}),
            ("contains-2", {"gpt": 0.0, "grok": 1.0}),
        ]
        assert (first.session, first.question) == ("file/1", "Question 0?")
        assert first.answers == {"gpt": "gpt says 0", "grok": "grok says 0"}
        assert second.session == "file/2"

    def test_result_without_assertions_is_graded_as_a_whole(self):
        """Named scores are criteria; without a score, passing counts."""
        whole = result(0, "gpt", namedScores={"tone": 0.5})
        passed = result(0, "grok", score=None, success=False, gradingResult=None)
        ballots = list(read_ballots(stream(lines(whole, passed))))

        assert [(b.reviewer, dict(b.grades)) for b in ballots] == [
            ("promptfoo", {"gpt": {"tone": 0.5, "overall": 0.75}, "grok": 0.0})
        ]

    def test_failed_call_has_no_grade(self):
        """A failed call is not a bad answer; a failed assertion is."""
        broken = result(0, "gpt", error="429 Too Many Requests", failureReason=2, score=0)
        failed = result(0, "grok", (CONTAINS, 0.0), error="Expected x", failureReason=1)
        ballots = list(read_ballots(stream(lines(broken, failed))))

        assert [(b.reviewer, dict(b.grades)) for b in ballots] == [("contains", {"grok": 0.0})]

    def test_error_of_a_grader_is_no_grade(self):
        """It is left out, counted and named; a reason alone says nothing, and the others count."""
        broken = result(0, "gpt", (CONTAINS, 0), (CONTAINS, 1.0), (KIND, 0), score=0.3)
        alone = result(1, "grok", (KIND, 0), score=0)
        parts = broken["gradingResult"]["componentResults"]
        for part in (parts[0], *alone["gradingResult"]["componentResults"]):
            part["metadata"] = {"graderError": True}
        parts[2]["reason"] = "Python code execution failed"
        notes = []
        ballots = list(read_ballots(stream(lines(broken, alone)), on_note=notes.append))

        assert [(b.reviewer, b.session, dict(b.grades)) for b in ballots] == [
            ("contains-2", "file/1", {"gpt": 1.0}),
            ("kindness", "file/1", {"gpt": 0.0}),
        ]
        assert notes == [
            "file.json: 2 assertions with an error are left out: "
            "contains of gpt in file/1; kindness of grok in file/2"
        ]

    def test_prompts_are_distinct_candidates(self):
        """With several prompts, each has its own candidates."""
        whole = {"results": [result(0, "gpt", prompt=p) for p in (0, 1)], "stats": {}}
        [ballot] = read_ballots(stream(json.dumps(whole)))

        assert list(ballot.grades) == ["gpt (prompt 0)", "gpt (prompt 1)"]

    def test_repeated_test_is_a_separate_session(self):
        """No candidate and no grade is lost, whatever the order of the results."""
        runs = [("gpt", 0.2), ("grok", 0.4), ("grok", 0.6), ("gpt", 0.8)]
        whole = {"results": [result(0, who, (KIND, score)) for who, score in runs], "stats": {}}
        first, second = read_ballots(stream(json.dumps(whole)))

        assert (first.session, dict(first.grades)) == ("file/1", {"gpt": 0.2, "grok": 0.4})
        assert (second.session, dict(second.grades)) == (
            "file/1/repeat-2",
            {"grok": 0.6, "gpt": 0.8},
        )

    def test_provider_with_one_prompt_is_named_without_it(self):
        """With several prompts, each name contains its prompt."""
        whole = {"results": [result(0, "gpt"), result(0, "grok", prompt=1)], "stats": {}}
        [ballot] = read_ballots(stream(json.dumps(whole)))

        assert list(ballot.grades) == ["gpt", "grok"]

    def test_unreadable_result_is_reported(self):
        """A result without a provider is named, and the others count."""
        whole = {"results": {"results": [{"testIdx": 0}, self.RESULTS[0]]}}
        problems = []
        ballots = list(read_ballots(stream(json.dumps(whole)), on_problem=problems.append))

        assert len(ballots) == 4
        assert [problem.field for problem in problems] == ["results[0].provider"]


def log(model, *values, epoch=1):
    """A log of Inspect: samples whose scorers gave these values."""
    return {
        "version": 2,
        "status": "success",
        "eval": {"task": "sums", "model": model, "created": "2025-05-01T10:00:00+00:00"},
        "samples": [
            {
                "id": number,
                "epoch": epoch,
                "input": f"What is {number}?",
                "target": "x",
                "output": {
                    "model": model,
                    "choices": [{"message": {"role": "assistant", "content": f"It is {number}."}}],
                },
                "scores": {who: {"value": value} for who, value in scores.items()},
            }
            for number, scores in enumerate(values, start=1)
        ],
    }


def archive(held, header="header.json"):
    """The same as a .eval file."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr(header, json.dumps({"version": 2, "eval": held["eval"]}))
        for sample in held["samples"]:
            name = f"samples/{sample['id']}_epoch_{sample['epoch']}.json"
            file.writestr(name, json.dumps(sample))
    return out.getvalue()


def archive_with_zstd(held, listed=None):
    """The same with members packed by Zstandard, which are `listed` bytes long, as they say."""
    out, stored = io.BytesIO(), io.BytesIO(archive(held))
    with zipfile.ZipFile(stored) as plain, zipfile.ZipFile(out, "w") as file:
        for name in plain.namelist():
            file.writestr(name, zstandard.compress(plain.read(name)))
        for member in file.infolist():
            content = plain.read(member.filename)
            member.compress_type, member.CRC = 93, zlib.crc32(content)
            member.file_size = len(content) if listed is None else listed
    return out.getvalue()


class TestInspect:
    """A sample is a session, a model a candidate, a scorer a reviewer."""

    LOG = log(
        "openai/gpt",
        {"match": "C", "judge": 0.5},
        {"match": "I", "judge": {"tone": 3, "depth": 4}},
        {"match": True, "judge": None},
    )

    @pytest.mark.parametrize("form", ["json", "header.json", "_journal/start.json", "start.json"])
    def test_logs_are_read(self, form):
        """As JSON, and as .eval of every version."""
        content = json.dumps(self.LOG, indent=2) if form == "json" else archive(self.LOG, form)
        found = list(read_imports(stream(content)))

        assert [one.session for one in found] == ["sums/1", "sums/2", "sums/3"]
        grades = [{b.reviewer: b.grades["openai/gpt"] for b in one.ballots} for one in found]
        assert grades == [
            {"match": 1.0, "judge": 0.5},
            {"match": 0.0, "judge": {"tone": 3, "depth": 4}},
            {"match": 1.0},
        ]
        assert found[0].question == "What is 1?"
        assert found[0].answers == {"openai/gpt": "It is 1."}
        assert found[0].at.isoformat() == "2025-05-01T10:00:00+00:00"

    @pytest.mark.parametrize("form", ["json", "start.json"])
    def test_a_sample_that_failed_is_named(self, form):
        """With a score it counts."""
        failing = log("openai/gpt", {"match": "C"}, {"match": "I"}, {})
        for sample in failing["samples"][1:]:
            sample["error"] = {"message": "429", "traceback": ""}
        content = json.dumps(failing) if form == "json" else archive(failing, form)
        notes = []
        ballots = list(read_ballots(stream(content), on_note=notes.append))

        assert [ballot.session for ballot in ballots] == ["sums/1", "sums/2"]
        [note] = notes
        assert note.endswith("1 sample with an error is left out: openai/gpt in sums/3")

    def test_members_packed_by_zstandard_are_read(self):
        """Newer logs have them; changed bytes, and members larger than they state, are refused."""
        packed = archive_with_zstd(self.LOG)
        damaged = bytearray(packed)
        damaged[packed.index(b"samples/") + 40] ^= 255

        assert [one.session for one in read_imports(stream(packed))] == [
            "sums/1", "sums/2", "sums/3",
        ]  # fmt: skip
        for content in (bytes(damaged), archive_with_zstd(self.LOG, listed=10)):
            with pytest.raises(BallotFileError, match="is damaged at"):
                list(read_ballots(stream(content)))

    def test_members_beyond_the_bounds_are_refused(self):
        """By their stated sizes; one larger than it states is not unpacked whole."""
        bomb = {"eval": {}, "samples": [{"id": 1, "epoch": 1, "input": " " * (1 << 23)}]}
        honest, lying = archive_with_zstd(bomb), archive_with_zstd(bomb, listed=100)
        bounds = Bounds(1 << 22, 1_000, 1 << 22, lambda: None)
        with pytest.raises(TooLarge, match="bytes of unpacked ballots exceed the limit of"):
            list(read_ballots(stream(honest), bounds=bounds))
        tracemalloc.start()
        try:
            with pytest.raises(BallotFileError, match="is damaged at"):
                list(read_ballots(stream(lying), bounds=bounds))
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

        assert len(honest) < 1 << 12
        assert peak < 1 << 22

    def test_epoch_is_a_session(self):
        """A second answer of a model is another answer."""
        [one] = read_imports(stream(json.dumps(log("m", {"match": "C"}, epoch=2))))
        assert one.session == "sums/1/epoch-2"

    def test_header_alone_has_nothing_to_count(self):
        """The error says that the log has no samples."""
        header = {key: value for key, value in self.LOG.items() if key != "samples"}
        with pytest.raises(BallotFileError, match="'samples' is missing"):
            list(read_ballots(stream(json.dumps(header))))

    @pytest.mark.parametrize(
        ("members", "what"),
        [
            ({"[Content_Types].xml": "<x/>"}, "is a spreadsheet or a document; save it as CSV"),
            ({"votes.csv": "a,b"}, "is a ZIP archive but not a log of Inspect"),
            ({"header.json": "{"}, "contains invalid JSON at header.json"),
        ],
    )
    def test_other_archives_are_refused(self, members, what):
        """One line says what the file is and what to do."""
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w") as file:
            for name, content in members.items():
                file.writestr(name, content)
        with pytest.raises(BallotFileError, match=what.replace("[", r"\[")):
            list(read_ballots(stream(out.getvalue())))

    def test_damaged_archive_is_refused(self):
        """Missing bytes do not give a smaller election."""
        for content in (archive(self.LOG)[:-40], b"PK\x03\x04 and nothing else"):
            with pytest.raises(BallotFileError, match="is a damaged ZIP archive"):
                list(read_ballots(stream(content)))
