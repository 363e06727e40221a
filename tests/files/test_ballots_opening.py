"""Ballot files as they occur: compressed, piped, with marks, empty, damaged, missing."""

import gzip
import io
import os
import subprocess
import sys
from itertools import cycle

import pytest

from witan.core.ballot import Ballot
from witan.errors import BallotFileError, InvalidParameter, UnknownName
from witan.files.ballots import FORMATS, read_ballots

LINES = b'{"reviewer": "r", "ranking": ["a"]}\n{"reviewer": "s", "ranking": ["b"]}\n'
CAST = [Ballot("r", groups=(("a",),)), Ballot("s", groups=(("b",),))]


def compress_with_zstd(held: bytes) -> bytes:
    """These bytes as one Zstandard frame."""
    zstandard = pytest.importorskip("zstandard", reason="Zstandard needs the extra 'zstd'")
    return zstandard.ZstdCompressor().compress(held)


def run(code: str, stdin: bytes = b"") -> str:
    """Run Python code in a separate process; return its output."""
    done = subprocess.run(  # noqa: S603  our own code
        [sys.executable, "-c", code], input=stdin, capture_output=True, check=True
    )
    return done.stdout.decode()


PACKINGS = {
    "plain": lambda held: held,
    "gzip": gzip.compress,
    "two gzip members": lambda held: gzip.compress(held[:20]) + gzip.compress(held[20:]),
    "zstd": compress_with_zstd,
    "two zstd frames": lambda held: compress_with_zstd(held[:20]) + compress_with_zstd(held[20:]),
}


@pytest.mark.parametrize("pack", PACKINGS.values(), ids=PACKINGS)
class TestCompression:
    """Compression is detected from the content, whatever the file's name."""

    def test_file_is_decompressed(self, tmp_path, pack):
        """The ballots inside are the same."""
        path = tmp_path / "votes"
        path.write_bytes(pack(LINES))

        assert list(read_ballots(path)) == CAST

    def test_stream_is_decompressed(self, pack):
        """A binary stream is read from its position, and stays open."""
        stream = io.BytesIO(b"skip" + pack(LINES))
        stream.seek(4)

        assert list(read_ballots(stream)) == CAST
        assert not stream.closed

    def test_standard_input_is_decompressed(self, pack):
        """A single dash is standard input, through a pipe."""
        code = (
            "from witan.files.ballots import read_ballots\n"
            "print([one.reviewer for one in read_ballots('-')])"
        )

        assert run(code, pack(LINES)).strip() == "['r', 's']"


@pytest.mark.parametrize("pack", [gzip.compress, compress_with_zstd])
@pytest.mark.parametrize("kept", [0.4, 0.95])
def test_truncated_file_is_an_error(tmp_path, pack, kept):
    """The error says that the file is incomplete; no smaller election results."""
    whole = pack(b"".join(b'{"reviewer": "r%d"}\n' % (k * 7919 % 10007) for k in range(5000)))
    path = tmp_path / "votes.packed"
    path.write_bytes(whole[: int(len(whole) * kept)])

    with pytest.raises(BallotFileError, match=r"votes\.packed is truncated"):
        list(read_ballots(path))


@pytest.mark.parametrize("pack", [gzip.compress, compress_with_zstd])
def test_damaged_compression_is_an_error(tmp_path, pack):
    """The error says that bytes inside a compressed file are damaged."""
    whole = bytearray(pack(bytes(range(256)) * 4000))
    whole[8:] = b"\xff" * (len(whole) - 8)
    path = tmp_path / "votes.packed"
    path.write_bytes(whole)

    with pytest.raises(BallotFileError, match="is damaged"):
        list(read_ballots(path))


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ('{"reviewer": "r"}\n', "jsonl"),
        ("reviewer,candidate,rank\nr,a,1\n", "csv"),
        ("reviewer,first,second,outcome\nr,a,b,tie\n", "csv-pairs"),
        ("# TITLE: t\n# ALTERNATIVE NAME 1: a\n1: 1\n", "preflib"),
        (
            '{"rankings": {"r": ["A"]}, "label_to_model": {"A": "a"}, "session": "q"}\n',
            "council-log",
        ),
    ],
)
@pytest.mark.parametrize("start", ["", "\ufeff", "\n  \n", "\ufeff\n"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_format_is_recognised_from_the_content(tmp_path, text, kind, start, end):
    """Byte order marks, leading blank lines, CRLF and a named format change nothing."""
    path = tmp_path / "votes.txt"
    path.write_bytes((start + text).replace("\n", end).encode())

    recognised = list(read_ballots(path))

    assert len(recognised) == 1
    assert recognised == list(read_ballots(path, format=kind))


@pytest.mark.parametrize("kind", [None, *FORMATS])
@pytest.mark.parametrize("held", [b"", gzip.compress(b"")], ids=["plain", "packed"])
def test_empty_file_has_no_ballots(tmp_path, kind, held):
    """An empty file is not an error, in any format."""
    path = tmp_path / "empty"
    path.write_bytes(held)

    assert list(read_ballots(path, format=kind)) == []


@pytest.mark.parametrize("text", ["\n \n", "\ufeff", "reviewer,candidate,rank\n"])
def test_blank_file_has_no_ballots(tmp_path, text):
    """Blank lines, or a header alone, are neither ballots nor an error."""
    path = tmp_path / "blank"
    path.write_text(text, encoding="utf-8")

    assert list(read_ballots(path)) == []


def test_text_stream_is_read():
    """Text is accepted like bytes."""
    assert list(read_ballots(io.StringIO(LINES.decode()))) == CAST


class TestErrors:
    """An unreadable file is named, with what to do."""

    def test_missing_file_is_an_error(self, tmp_path):
        """A path to nothing is reported."""
        with pytest.raises(BallotFileError, match=r"none\.jsonl does not exist"):
            list(read_ballots(tmp_path / "none.jsonl"))

    def test_folder_is_an_error(self, tmp_path):
        """The error says that the path is a folder."""
        with pytest.raises(BallotFileError, match="name a file in it"):
            list(read_ballots(tmp_path))

    @pytest.mark.skipif(
        not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read every file"
    )
    def test_forbidden_file_is_an_error(self, tmp_path):
        """The error says that permission is missing."""
        path = tmp_path / "secret"
        path.write_bytes(LINES)
        path.chmod(0)

        with pytest.raises(BallotFileError, match="check its permissions"):
            list(read_ballots(path))

    def test_other_encodings_are_errors(self, tmp_path):
        """Latin-1 is reported with its line, after the good lines; so is half of UTF-16."""
        (tmp_path / "wide").write_bytes(LINES.decode().encode("utf-16")[:-1])
        (tmp_path / "latin").write_bytes(LINES + '{"reviewer": "José"}'.encode("latin-1"))

        with pytest.raises(BallotFileError, match="looks like UTF-16"):
            list(read_ballots(tmp_path / "wide"))
        ballots = read_ballots(tmp_path / "latin")
        assert [next(ballots), next(ballots)] == CAST
        with pytest.raises(BallotFileError, match=r"latin:3.*save it as UTF-8"):
            next(ballots)

    def test_unknown_format_is_refused(self):
        """The format is refused before any file is opened."""
        with pytest.raises(UnknownName, match=r"'json'.*did you mean 'jsonl'"):
            read_ballots("none", format="json")

    def test_columns_are_refused_for_preflib(self, tmp_path):
        """PrefLib has no columns to name."""
        path = tmp_path / "v.soc"
        path.write_text("# TITLE: t\n# ALTERNATIVE NAME 1: a\n1: 1\n", encoding="utf-8")

        with pytest.raises(InvalidParameter, match="a preflib file has no columns"):
            list(read_ballots(path, columns={"reviewer": "r"}))

    @pytest.mark.parametrize(
        ("module", "held", "extra"),
        [("zstandard", b"\x28\xb5\x2f\xfd____", "zstd"), ("pyarrow", b"PAR1____", "lake")],
    )
    def test_missing_extra_is_named(self, module, held, extra):
        """The error has the command that installs it."""
        code = (
            f"import sys\nsys.modules[{module!r}] = None\n"
            "from witan.files.ballots import read_ballots\n"
            "try:\n    list(read_ballots('-'))\n"
            "except ImportError as error:\n    print(error)"
        )

        assert f"pip install '.[{extra}]'" in run(code, held)


def test_carriage_return_within_the_first_line_is_refused(tmp_path):
    """The error says which line ends are read."""
    path = tmp_path / "old.txt"
    path.write_bytes(b"reviewer,candidate,rank\rr,a,1\r")

    with pytest.raises(BallotFileError, match=r":1: .*save the file with LF or CRLF line ends"):
        list(read_ballots(path))


def test_reading_does_not_import_optional_packages():
    """JSON Lines and CSV need neither numpy nor any optional package."""
    code = (
        "import sys\nfrom witan.files.ballots import read_ballots\nlist(read_ballots('-'))\n"
        "print({'numpy', 'scipy', 'pyarrow', 'zstandard'} & set(sys.modules))"
    )

    assert run(code, LINES).strip() == "set()"


def test_file_is_streamed():
    """The first ballot is there before the stream has ended."""

    class Endless(io.RawIOBase):
        def readable(self):
            return True

        def readinto(self, buffer):
            buffer[:1] = next(endless)
            return 1

    endless = (LINES[k : k + 1] for k in cycle(range(len(LINES))))

    assert next(read_ballots(Endless())) == CAST[0]
