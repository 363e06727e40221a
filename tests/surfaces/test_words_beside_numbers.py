"""Where some judges pass or fail and others give numbers, a note says how the words are read."""

import pytest

NOTE = ", words such as pass and fail as the ends of the scale"


def written(write, grades):
    """A table in which a judge ``c`` grades ``x`` and ``y`` beside two judges with numbers."""
    rows = ["q,a,x,9", "q,a,y,5", "q,b,x,8", "q,b,y,4"]
    rows += [f"q,c,{name},{grade}" for name, grade in zip("xy", grades, strict=True)]
    return write("grades.csv", "session,judge,model,grade", *rows)


@pytest.mark.parametrize("grades", [("pass", "fail"), ("Yes", "no"), ("true", "false")])
def test_words_beside_numbers_are_named(witan, write, grades):
    """The words count as 10 and 1, and the note on the scale says so."""
    path = written(write, grades)

    said = witan("tally", path, "--rule", "range", "--json").json["sessions"][0]

    assert [line["score"] for line in said["standings"]] == [9.0, pytest.approx(10 / 3)]
    assert f"grades are read as 1-10 (recognised){NOTE}" in said["warnings"]
    assert NOTE in witan("tally", path).out


def test_the_note_on_another_scale_names_them_as_well(witan, write):
    """It stands beside what becomes of the numbers."""
    rows = ["q,a,x,90", "q,a,y,55", "q,b,x,80", "q,b,y,40", "q,c,x,pass", "q,c,y,fail"]
    path = write("grades.csv", "session,judge,model,grade", *rows)

    assert f"0-100 (recognised){NOTE}, and converted to 1-10" in witan("tally", path).out


def test_numbers_alone_have_no_such_note(witan, write):
    """Nor has a judge whose grades are numbers."""
    assert "words" not in witan("tally", written(write, ("9", "3"))).out
