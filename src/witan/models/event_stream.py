"""Server-sent events, read as their bytes come in."""

_BOM = b"\xef\xbb\xbf"


class EventStream:
    """Parse a byte stream in pieces of any size into event data.

    Names, ids and retry times of events are passed over. An event that nothing ends is kept until
    `close`, which gives it too: a stream may end without its last blank line.
    """

    __slots__ = ("_after_cr", "_begun", "_buffer")

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._after_cr = False
        self._begun = False

    @property
    def pending(self) -> int:
        """Bytes buffered of an unfinished event."""
        return len(self._buffer)

    def feed(self, piece: bytes) -> list[str]:
        """Return the data of every event completed by this piece."""
        if self._after_cr or b"\r" in piece:
            piece = self._with_plain_ends(piece)
        start = max(len(self._buffer) - 1, 0)
        self._buffer += piece
        end = self._buffer.rfind(b"\n\n", start)
        if end < 0:
            return []
        events = bytes(self._buffer[:end])
        del self._buffer[: end + 2]
        return self._read(events)

    def close(self) -> list[str]:
        """Return the data of an unfinished last event, if any."""
        rest = bytes(self._buffer)
        self._buffer.clear()
        return self._read(rest)

    def _with_plain_ends(self, piece: bytes) -> bytes:
        """Replace line ends by line feeds, also across pieces."""
        if self._after_cr and piece:
            self._after_cr = False
            piece = piece.removeprefix(b"\n")
        self._after_cr = self._after_cr or piece.endswith(b"\r")
        return piece.replace(b"\r\n", b"\n").replace(b"\r", b"\n")

    def _read(self, events: bytes) -> list[str]:
        if not self._begun:
            self._begun = True
            events = events.removeprefix(_BOM)
        text = events.decode(errors="replace")
        blocks = (_data(event) for event in text.split("\n\n"))
        return [data for data in blocks if data is not None]


def _data(event: str) -> str | None:
    """Join the data lines of one event; None without any."""
    if event.startswith("data:") and "\n" not in event:
        return event[5:].removeprefix(" ")
    lines = [
        line[5:].removeprefix(" ")
        for line in event.split("\n")
        if line == "data" or line.startswith("data:")
    ]
    return "\n".join(lines) if lines else None
