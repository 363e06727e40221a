"""``witan vote``, black box: a person's blind ballot, and what is revealed afterwards."""

import signal

import pytest

from histories import crowd, send
from scripts import write_council
from terminals import run_on_terminal
from witan.core.ballot import Ballot
from witan.core.profile import MAX_CANDIDATES
from witan.history import History
from witan.service.text import UNKNOWN

TEXTS = {"x": "Ex, as ChatGPT told.", "y": "Why not.", "z": "Zed."}


@pytest.fixture
def held(witan, write, place):
    """A session of imported ballots with stored answers: x leads y leads z."""
    ballots = [
        {"session": "q1", "reviewer": f"r{r}", "ranking": ["x", "y", "z"], "question": "Which?"}
        for r in range(3)
    ]
    answers = [{"session": "q1", "candidate": c, "text": text} for c, text in TEXTS.items()]
    beside = ["--answers", write("answers.jsonl", *answers)]
    assert witan("import", write("v.jsonl", *ballots), *beside, "--history", place).status == 0
    return place


@pytest.fixture
def vote(witan, held):
    """Vote on that session, as Ines unless said."""

    def run(*arguments, person="ines"):
        paper = ["--paper", code_of(witan, held, person)] if "--ranking" in arguments else []
        return witan("vote", "q1", "--as", person, *arguments, *paper, "--history", held)

    return run


def code_of(witan, place, person, session="q1"):
    """The code of a person's paper; empty if the person cannot have one."""
    shown = witan("vote", session, "--as", person, "--show", "--json", "--history", place)
    return "" if shown.status else shown.json["paper"]


def labels(vote, person="ines"):
    """Each candidate's label on a person's sheet."""
    shown = vote("--show", "--json", person=person).json["answers"]
    return {
        next(c for c in TEXTS if TEXTS[c][:2] == text[:2]): label for label, text in shown.items()
    }


def people(witan, place):
    """People's ballots on the session in the history."""
    held = witan("export", "q1", "--history", place).json
    return [ballot for ballot in held["ballots"] if ballot.get("kind") == "human"]


class TestPaper:
    """What a person sees before the vote."""

    def test_a_paper_is_blind(self, vote):
        """Question and texts have labels, and names of authors are masked."""
        shown, said = vote("--show"), vote("--show", "--json")

        for part in ("Which?", "A\n", "B\n", "C\n", "Why not.", "Zed."):
            assert part in shown.out
        assert "ChatGPT" not in shown.out + said.out
        assert set(said.json["answers"]) == {"A", "B", "C"}
        for name in ("candidate", '"x"', "panel", "r0"):
            assert name not in said.out

    @pytest.mark.usefixtures("held")
    def test_texts_cannot_imitate_the_paper(self, witan, write, place):
        """Lines of question and answers are indented."""
        forged = "Mine.\nB\nTheirs is bad.\n\nto vote: witan vote q9"
        ballot = {
            "session": "q9",
            "reviewer": "r",
            "ranking": ["x", "y"],
            "question": "Q?\nA\nBad.",
        }
        texts = {"x": forged, "y": forged}
        answers = [{"session": "q9", "candidate": c, "text": text} for c, text in texts.items()]
        beside = ["--answers", write("forged.jsonl", *answers)]
        assert witan("import", write("q9.jsonl", ballot), *beside, "--history", place).status == 0
        said = witan("vote", "q9", "--as", "ines", "--show", "--history", place)
        own = [line for line in said.lines if line and not line.startswith(" ")]

        assert own[0].endswith("q9")
        assert own[1:3] == ["A", "B"]
        assert len([line for line in own if line.startswith("to vote: ")]) == 1
        assert said.out.count("\n  to vote: witan vote q9\n") == 2

    def test_the_order_is_stable_for_a_person_and_differs_between_people(self, vote):
        """Labels are drawn from session and person."""
        first = vote("--show").out

        assert vote("--show").out == first
        assert len({vote("--show", person=f"p{k}").out for k in range(12)}) > 3

    def test_showing_a_paper_stores_nothing(self, witan, vote, held):
        vote("--show")

        assert people(witan, held) == []


class TestVote:
    """What is stored, and shown afterwards."""

    def test_a_vote_is_a_ballot_of_a_person(self, witan, vote, held):
        """It has ranking, places on the sheet, time and kind; the session is counted again."""
        at = labels(vote)
        said = vote("--ranking", f"{at['z']} > {at['x']} = {at['y']}")
        [ballot] = people(witan, held)

        assert said.status == 0
        assert [set(g) if isinstance(g, list) else g for g in ballot["ranking"]] == [
            "z",
            {"x", "y"},
        ]
        shown = {name: " ABC".index(label) for name, label in at.items()}
        assert ballot["positions"] == shown
        assert ballot["reviewer"] == "ines"
        assert "at" in ballot
        board = witan(
            "leaderboard", "--kind", "human", "--min-sessions", 1, "--json", "--history", held
        ).json
        assert {line["model"] for line in board["lines"]} == set(TEXTS)

    def test_authors_are_revealed_after_the_vote(self, vote):
        """Each line has the person's place, the panel's rank, the label and the author."""
        at = labels(vote)
        said = vote("--ranking", f"{at['x'].lower()}>{at['z']} > {at['y']}")
        table = next(at for at, line in enumerate(said.lines) if line.startswith("you "))
        rows = [line.split() for line in said.lines[table + 1 : table + 4]]

        assert rows == [
            ["1", "1", at["x"], "x"],
            ["2", "3", at["z"], "z"],
            ["3", "2", at["y"], "y"],
        ]
        assert "The panel (3 ballots, by borda): x " in said.out
        assert "You place z above y, the panel y above" in said.out
        assert "on 2 of 3 pairs" in said.out

    def test_json_has_the_same_results(self, vote):
        at = labels(vote)
        said = vote("--ranking", f"{at['z']} > {at['y']} > {at['x']}", "--json").json

        assert [one["candidate"] for one in said["answers"]] == ["z", "y", "x"]
        assert [one["panel_rank"] for one in said["answers"]] == [3, 2, 1]
        assert said["match"] == {
            "pairs_alike": 0, "pairs_decided": 3, "pairs": 3, "same_best": False,
            "clear_alike": 0, "clear_decided": 1, "differences": [
                {"above": "z", "below": "x", "is_clear": True},
                {"above": "z", "below": "y", "is_clear": False},
                {"above": "y", "below": "x", "is_clear": False},
            ],
        }  # fmt: skip

    def test_a_second_vote_needs_replace(self, witan, vote, held):
        """With ``--replace`` it takes the first one's place, and is noted as not blind."""
        assert vote("--ranking", "A > B > C").status == 0
        again = vote("--ranking", "C > B > A")
        assert (again.status, again.out) == (2, "")
        assert "add --replace" in again.err

        replaced = vote("--ranking", "C > B > A", "--replace")
        [ballot] = people(witan, held)
        assert replaced.status == 0
        assert "replaces the earlier vote" in replaced.err
        assert ballot["ranking"][0] == next(c for c, label in labels(vote).items() if label == "C")
        assert "after it was revealed" in ballot["notes"]

    def test_a_paper_ends_with_the_command_to_vote(self, vote):
        """It names the person and the paper, and suggests no order."""
        code = vote("--show", "--json").json["paper"]
        last = " ".join(vote("--show").out.split()).rpartition("to vote: ")[2]

        assert last.startswith("witan vote q1 --as ines")
        assert last.endswith(f'--paper {code} --ranking "…"')

    def test_labels_without_their_paper_are_refused(self, witan, held):
        """The same labels mean other answers on another paper; the error has the right command."""
        said = witan("vote", "q1", "--as", "ann", "--ranking", "A > B > C", "--history", held)

        assert (said.status, said.out) == (2, "")
        assert said.err.count("\n") == 1
        assert all(
            fact in said.err for fact in ("witan vote q1 --as ann", f"--history={held} --show")
        )
        assert people(witan, held) == []

    def test_the_paper_of_another_person_is_refused(self, witan, held):
        """A paper shown without ``--as`` is not Ann's."""
        shown = witan("vote", "q1", "--show", "--json", "--history", held).json
        given = ["--paper", shown["paper"], "--ranking", "A > B > C"]
        said = witan("vote", "q1", "--as", "ann", *given, "--history", held)

        assert (said.status, said.out) == (2, "")
        assert f"ranks another paper, {shown['paper']}" in said.err
        assert people(witan, held) == []

    def test_a_ranking_by_names_needs_no_paper(self, witan, held):
        """It is noted as not blind."""
        said = witan("vote", "q1", "--as", "ann", "--ranking", "z > x = y", "--history", held)
        [ballot] = people(witan, held)

        assert said.status == 0
        assert ballot["ranking"][0] == "z"
        assert "not blind" in ballot["notes"]
        assert "positions" not in ballot

    def test_a_second_vote_by_names_has_both_notes(self, witan, held):
        """It replaces another one, and ranks names."""
        given = ["vote", "q1", "--as", "ann", "--history", held, "--ranking"]
        first = witan(*given, "z > x = y")
        again = witan(*given, "x > y > z", "--replace")
        [ballot] = people(witan, held)

        assert (first.status, again.status) == (0, 0)
        assert "not blind" in ballot["notes"]
        assert "after it was revealed" in ballot["notes"]

    @pytest.mark.parametrize(
        ("ranking", "words"),
        [
            ("z > xx > y", "ranks 'xx'; no candidate of the session has this name"),
            ("z > y", "does not place x"),
            ("z > z = x > y", "ranks z more than once"),
            ("z > A > y", "ranks 'z'; the labels are A, B, C"),
        ],
    )
    def test_an_incomplete_ranking_by_names_is_refused(self, witan, held, ranking, words):
        """The error names the problem, and nothing is stored."""
        said = witan("vote", "q1", "--as", "ann", "--ranking", ranking, "--history", held)

        assert (said.status, said.out) == (2, "")
        assert words in said.err
        assert people(witan, held) == []

    @pytest.mark.parametrize("names", [["lr=1", "lr=2"], ["tuned", "lr=1", "lr=2"]])
    def test_names_with_signs_are_ranked_by_labels(self, witan, write, place, names):
        """By names they are refused, and the error says so."""
        ballot = {"session": "q1", "reviewer": "eva", "ranking": names}
        answers = [{"session": "q1", "candidate": name, "text": "It is."} for name in names]
        beside = ["--answers", write("answers.jsonl", *answers)]
        witan("import", write("v.jsonl", ballot), *beside, "--history", place)
        ranking = ["--ranking", " > ".join(names)]
        said = witan("vote", "q1", "--as", "ann", *ranking, "--history", place)

        assert (said.status, said.out) == (2, "")
        words = "a name with > or =; rank the labels of the paper"
        assert words in said.err
        assert people(witan, place) == []

    def test_a_paper_without_a_ranking_is_misuse(self, vote):
        assert vote("--show", "--paper", "abcdef").status == 2

    def test_two_people_have_a_ballot_each(self, witan, vote, held):
        vote("--ranking", "A > B > C")
        vote("--ranking", "A > B > C", person="jo")

        assert [ballot["reviewer"] for ballot in people(witan, held)] == ["ines", "jo"]

    @pytest.mark.parametrize(
        ("ranking", "words"),
        [
            ("A > B", "does not place C"),
            ("A > B > B > C", "ranks B more than once"),
            ("A > B > D", "ranks 'D'; the labels are A, B, C"),
            ("A >> B = C", "nothing before or after a sign"),
            ("", "ranks nothing; the labels are"),
        ],
    )
    def test_an_invalid_ranking_is_refused(self, witan, vote, held, ranking, words):
        """The error names the problem, and nothing is stored."""
        said = vote("--ranking", ranking)

        assert (said.status, said.out) == (2, "")
        assert words in said.err
        assert people(witan, held) == []

    def test_a_voter_with_the_name_of_a_candidate_is_refused(self, witan, vote, held):
        """The vote would be recused."""
        said = vote("--ranking", "A > B > C", person="x")

        assert said.status == 2
        assert "name of a candidate" in said.err
        assert people(witan, held) == []

    def test_the_name_of_a_candidate_gets_no_paper(self, vote):
        """The vote could not be cast."""
        said = vote("--show", person="x")

        assert (said.status, said.out) == (2, "")
        assert "has the name of a candidate; vote under another name" in said.err


class TestRecord:
    """A person's votes compared with the panels, over time."""

    @pytest.mark.parametrize("best", [1, 5, 9, 100])
    def test_grades_count_as_a_ranking(self, witan, write, place, best):
        """Candidates with equal grades are tied, on any scale."""
        panel = [{"session": "q1", "reviewer": f"r{r}", "ranking": ["a", "b", "c"]} for r in "xyz"]
        grades = {"a": best, "b": best / 2, "c": best / 2}
        person = {"session": "q1", "reviewer": "ines", "kind": "human", "grades": grades}
        witan("import", write("v.jsonl", *panel, person), "--scale", "0-100", "--history", place)
        said = witan("votes", "--as", "ines", "--history", place)

        assert "ines and the panels agree on 100% of 2 pairs" in " ".join(said.out.split())

    def test_grades_on_some_criteria_are_not_a_ranking(self, witan, write, place):
        """They are no error either."""
        panel = [{"session": "q1", "reviewer": f"r{r}", "ranking": ["a", "b"]} for r in range(3)]
        grades = {"a": {"accuracy": 9}, "b": {"accuracy": 3}}
        person = {"session": "q1", "reviewer": "ines", "kind": "human", "grades": grades}
        witan("import", write("v.jsonl", *panel, person), "--history", place)
        said = witan("votes", "--as", "ines", "--history", place)

        assert said.status == 0
        assert "no vote by ines to compare" in said.out

    def test_agreement_is_unknown_where_the_panel_ranked_other_answers(self, witan, write, place):
        """It is not reported as disagreement."""
        panel = [{"session": "q1", "reviewer": f"r{r}", "ranking": ["c", "d"]} for r in range(3)]
        person = {"session": "q1", "reviewer": "ines", "kind": "human", "ranking": ["a", "b"]}
        witan("import", write("v.jsonl", *panel, person), "--history", place)
        [row] = [
            line
            for line in witan("votes", "--as", "ines", "--history", place).lines
            if line.startswith("q1")
        ]

        assert row.split()[-1] == UNKNOWN

    def test_a_vote_that_cannot_be_counted_has_a_reason(self, witan, place):
        """Its session has ended, so it is not shown as waiting."""
        events = crowd(MAX_CANDIDATES + 1)
        with History.open(place) as history:
            with history.recording() as recording:
                send(recording, events[:-1])
            ballot = Ballot("ines", (("m1",), ("m2",)), session="s1", kind="human")
            history.vote("s1", [ballot])
            stored = [*history.claim("s1", force=True).events]
            with history.recording() as recording:
                send(recording, [*stored, events[-1]])
        said = witan("votes", "--as", "ines", "--history", place)

        assert said.status == 0
        assert "the vote on s1 could not be counted: " in said.out + said.err
        assert "on open sessions" not in said.out + said.err


class TestImport:
    """People's votes on an imported session are shown apart from the models'."""

    def _counts(self, witan, held):
        shown = witan("show", "q1", "--json", "--history", held).json
        recounted = witan("recount", "q1", "--json", "--history", held).json
        return shown["outcome"], shown["ballots"], recounted

    def test_a_vote_leaves_the_count_of_the_models_unchanged(self, witan, vote, held):
        """Shown and recounted, standings are as before; the vote is shown separately."""
        before = self._counts(witan, held)
        for person in ("ines", "jo", "kim", "lea"):
            at = labels(vote, person)
            vote("--ranking", f"{at['z']} > {at['y']} > {at['x']}", person=person)

        assert self._counts(witan, held) == before
        record = witan("show", "q1", "--json", "--history", held).json
        assert [ballot["reviewer"] for ballot in record["votes"]] == ["ines", "jo", "kim", "lea"]
        shown = witan("show", "q1", "--history", held).out
        assert "People's votes" in shown
        assert "only the models' ballots" in shown
        assert "3 of 3 reviewers\n" in shown
        both = witan("recount", "q1", "--kind", "all", "--json", "--history", held).json
        assert both["sessions"][0]["standings"][0]["candidate"] == "z"
        people = witan("recount", "q1", "--kind", "human", "--json", "--history", held).json
        assert len(people["sessions"][0]["ballots"]) == 4

    def test_people_count_in_a_file_without_models(self, witan, write, place):
        """None of them is listed twice."""
        ballots = [
            {"session": "q2", "reviewer": who, "kind": "human", "ranking": ["y", "x"]}
            for who in ("ines", "jo")
        ]
        assert witan("import", write("v.jsonl", *ballots), "--history", place).status == 0
        shown = witan("show", "q2", "--history", place).out

        assert "2 people" in shown
        assert "People's votes" not in shown


class TestStrangers:
    """A vote is never merged with those of another person of the same name."""

    @pytest.fixture
    def compared(self, witan, write, place):
        """A session of comparisons by an unnamed person and by one called Jo, in a file."""
        battles = [
            {"question_id": "q1", "model_a": "x", "model_b": "y", "winner": "model_a"},
            {"question_id": "q1", "model_a": "y", "model_b": "x", "winner": "tie"},
            {"question_id": "q1", "model_a": "x", "model_b": "y", "winner": "model_b",
             "judge": "jo", "judge_kind": "human"},
        ]  # fmt: skip
        answers = [{"session": "q1", "candidate": c, "text": TEXTS[c]} for c in "xy"]
        beside = ["--answers", write("answers.jsonl", *answers)]
        assert witan("import", write("b.jsonl", *battles), *beside, "--history", place).status == 0
        return place

    @pytest.mark.parametrize(
        ("person", "called"),
        [
            ("human", "people without a name"),
            ("Human", "people without a name"),
            ("human-2", "people without a name"),
            ("people", "all people together"),
            ("People", "all people together"),
        ],
    )
    @pytest.mark.parametrize("how", [["--show"], ["--ranking", "A > B"]])
    def test_reserved_names_of_voters_are_refused(self, witan, compared, person, called, how):
        """They stand for people without a name, or for all people; nothing is stored."""
        before = witan("export", "--history", compared).out
        said = witan("vote", "q1", "--as", person, *how, "--history", compared)

        assert (said.status, said.out) == (2, "")
        assert f"reserved for {called} in" in said.err
        assert "your own name" in said.err
        assert witan("export", "--history", compared).out == before

    def test_a_name_used_for_comparisons_in_a_file_is_refused(self, witan, compared):
        """Another name can vote."""
        refused = witan("vote", "q1", "--as", "jo", "--ranking", "A > B", "--history", compared)
        code = code_of(witan, compared, "jo-b")
        ranking = ["--ranking", "A > B", "--paper", code]
        other = witan("vote", "q1", "--as", "jo-b", *ranking, "--history", compared)

        assert refused.status == 2
        assert "an imported vote on q1" in refused.err
        assert other.status == 0


class TestCouncils:
    """Votes on a council's session."""

    @pytest.fixture
    def asked(self, witan, tmp_path, place):
        """A simulated session of Ada, Bob and Cyd."""
        assert witan("ask", "Which?", *write_council(tmp_path), "--history", place).status == 0
        return place

    def test_a_vote_is_exported_with_the_session(self, witan, asked):
        """The session stays simulated."""
        arguments = ["vote", "last", "--as", "ines", "--history", asked]
        paper = ["--paper", code_of(witan, asked, "ines", "last")]
        said = witan(*arguments, "--ranking", "A = B = C", *paper)
        held = witan("export", "--history", asked).json

        assert said.status == 0
        assert said.lines[0].startswith("simulated vote · ")
        assert "ordered by both of you" in said.out
        assert [ballot["reviewer"] for ballot in held["votes"]] == ["ines"]
        assert held["simulated"] is True
        assert witan(*arguments, "--show", "--json").json["voted"] is True

    def test_the_name_of_a_seat_gets_no_paper(self, witan, asked):
        """Nor does that of the chairman, who is not a candidate."""
        said = witan("vote", "last", "--as", "chair", "--show", "--history", asked)

        assert (said.status, said.out) == (2, "")
        assert "has the name of a seat of the council; vote under another name" in said.err

    def test_show_lists_votes_of_people(self, witan, asked):
        """They are apart from the members' ballots, and in the JSON of the record."""
        witan("vote", "last", "--as", "ines", "--ranking", "ada = bob = cyd", "--history", asked)
        shown = witan("show", "last", "--history", asked)
        held = witan("show", "last", "--json", "--history", asked).json

        lines = shown.out[shown.out.index("People's votes") :].splitlines()
        assert lines[1].startswith("ines: ")
        assert lines[1].count(" = ") == 2
        assert [ballot["reviewer"] for ballot in held["votes"]] == ["ines"]
        assert " of 3 reviewers · " in shown.out.replace("\n  ", " ")

    def test_a_recount_of_all_lists_people_separately(self, witan, asked):
        """Reviewers are the members."""
        witan("vote", "last", "--as", "ines", "--ranking", "ada = bob = cyd", "--history", asked)
        by_ranks = ["--rule", "borda"]  # a ballot without grades counts by ranks alone
        said = witan("recount", "last", "--kind", "all", *by_ranks, "--history", asked)
        people = witan("recount", "last", "--kind", "human", "--history", asked)

        assert "4 of 4 reviewers, 1 of them a person · " in " ".join(said.out.split())
        assert " 1 person · " in " ".join(people.out.split())

    def test_the_default_voter_is_the_login(self, witan, asked, monkeypatch):
        """Its name is on the ballot."""
        monkeypatch.setenv("LOGNAME", "someone")
        paper = ["--paper", code_of(witan, asked, "someone", "last")]
        witan("vote", "last", "--ranking", "A > B > C", *paper, "--history", asked)

        [ballot] = witan("export", "--history", asked).json["votes"]
        assert ballot["reviewer"] == "someone"


class TestRefused:
    """Sessions without anything to vote on."""

    def test_a_session_without_stored_answers_is_refused(self, witan, write, place):
        """The error has a remedy."""
        file = write("v.jsonl", {"session": "q1", "reviewer": "r", "ranking": ["x", "y"]})
        witan("import", file, "--history", place)
        said = witan("vote", "q1", "--show", "--history", place)

        assert (said.status, said.out) == (2, "")
        assert "no answer texts" in said.err
        assert "--answers FILE" in said.err

    @pytest.mark.parametrize("arguments", [[], ["--json"], ["--show", "--ranking", "A > B > C"]])
    def test_without_a_terminal_a_ranking_is_required(self, vote, arguments):
        """Conflicting options are refused."""
        assert vote(*arguments).status == 2

    def test_an_unknown_session_is_refused(self, witan, held):
        """The error repeats the name."""
        said = witan("vote", "q9", "--show", "--history", held)

        assert said.status == 2
        assert "q9" in said.err


class TestTerminal:
    """A vote in a dialogue on a terminal."""

    @staticmethod
    def run(place, steps):
        """Vote on a pseudo-terminal; each step has the prompt and the reply."""
        return run_on_terminal(["vote", "q1", "--as", "ines", "--history", str(place)], steps)

    def test_the_dialogue_repeats_until_a_ranking_is_confirmed(self, witan, held):
        """Then it is stored and authors are revealed."""
        steps = [
            ("equal)", "A > B\n"),
            ("does not place C", "A > B > C\n"),
            ("Vote A > B > C?", "n\n"),
            ("n\r\nYour ranking", "C > B = A\n"),
            ("Vote C > B = A?", "y\n"),
        ]
        status, shown = self.run(held, steps)

        assert status == 0
        assert "written by" in shown
        assert shown.index("Zed.") < shown.index("written by")
        assert len(people(witan, held)) == 1
        assert max(map(len, shown.splitlines())) <= 78

    @pytest.mark.parametrize("typed", [signal.SIGINT, pytest.param("\x04", marks=pytest.mark.slow)])
    def test_an_interrupted_dialogue_stores_nothing(self, witan, held, typed):
        """After Ctrl-C or the end of input the status is 130."""
        status, shown = self.run(held, [("equal)", "A > B > C\n"), ("Vote A", typed)])

        assert status == 130
        assert "Traceback" not in shown
        assert people(witan, held) == []
