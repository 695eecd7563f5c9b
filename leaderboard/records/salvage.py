"""What is left of a damaged store: its rows, read off the pages of the file without the trees that lead to them.

The format is that of https://www.sqlite.org/fileformat2.html. Pages that the log (the file "-wal") holds in a finished
write replace those of the file. What is read is a guess until its digest has been checked.
"""

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

#: Kinds of pages: leaves of tables; leaves and inner pages of indices, all of which hold keys.
_TABLE_LEAF, _INDEX_LEAF, _INDEX_INNER = 0x0D, 0x0A, 0x02
#: Bytes of the headers of the log and of its frames, its magic number but for the last bit, the default page.
_LOG_HEADER, _FRAME_HEADER, _LOG_MAGIC, _DEFAULT_PAGE = 32, 24, 0x377F0682, 4096


class WriteAheadLog(NamedTuple):
    """The log beside a file."""

    pages: dict[int, bytes]  # by number, as the last finished write left them
    page_size: int  # 0 where there is no log
    unfinished: int  # bytes behind the last finished write that belong to it: a write that never ended, or a cut


def read_log(path: Path) -> WriteAheadLog:
    """Read the log of a database; an empty one where it has none."""
    data = path.read_bytes() if path.exists() else b""
    if len(data) < _LOG_HEADER or struct.unpack(">I", data[:4])[0] & ~1 != _LOG_MAGIC:
        return WriteAheadLog({}, 0, len(data) if 0 < len(data) < _LOG_HEADER else 0)
    size, salts = struct.unpack(">I", data[8:12])[0], data[16:24]
    pages: dict[int, bytes] = {}
    pending: dict[int, bytes] = {}
    place = finished = _LOG_HEADER
    while place < len(data):
        frame = data[place : place + _FRAME_HEADER + size]
        if len(frame) >= 16 and frame[8:16] != salts:
            break  # left from before the log was last started anew
        if len(frame) < _FRAME_HEADER + size:
            place = len(data)
            break
        number, commits = struct.unpack(">II", frame[:8])
        pending[number] = frame[_FRAME_HEADER:]
        place += len(frame)
        if commits:
            pages |= pending
            pending, finished = {}, place
    return WriteAheadLog(pages, size, place - finished)


class Pages:
    """The pages of a database file and its log.

    Args:
        path: of the file, which may be missing.
    """

    def __init__(self, path: Path) -> None:
        data = path.read_bytes() if path.exists() else b""
        log = read_log(path.with_name(f"{path.name}-wal"))
        said = struct.unpack(">H", data[16:18])[0] if len(data) >= 18 else 0
        whole = said >= 512 and said & (said - 1) == 0
        self.size = log.page_size or (said if whole else _DEFAULT_PAGE)
        count = len(data) // self.size
        self._pages = {n + 1: data[n * self.size : (n + 1) * self.size] for n in range(count)} | log.pages

    def rows(self, columns: int) -> Iterator[list[Any]]:
        """Yield the rows of tables of so many columns; those that cannot be read are left out."""
        for kind, payload in self._payloads():
            values = _values(payload) if kind == _TABLE_LEAF else None
            if values is not None and len(values) == columns:
                yield values

    def keys(self) -> set[str]:
        """Return the texts that indices hold."""
        found = (_values(payload) for kind, payload in self._payloads() if kind != _TABLE_LEAF)
        return {values[0] for values in found if values and len(values) == 2 and isinstance(values[0], str)}

    def _payloads(self) -> Iterator[tuple[int, bytes]]:
        """Yield the payload of each cell, and of which kind its page is."""
        for number, page in self._pages.items():
            start = 100 if number == 1 else 0
            kind = page[start]
            if kind not in (_TABLE_LEAF, _INDEX_LEAF, _INDEX_INNER):
                continue
            first = start + (12 if kind == _INDEX_INNER else 8)
            for place in range(first, first + 2 * struct.unpack(">H", page[start + 3 : start + 5])[0], 2):
                try:
                    yield kind, self._payload(page, struct.unpack(">H", page[place : place + 2])[0], kind)
                except (IndexError, KeyError, struct.error):
                    continue

    def _payload(self, page: bytes, place: int, kind: int) -> bytes:
        """Return the payload of a cell, with what of it stands on overflow pages."""
        place += 4 if kind == _INDEX_INNER else 0
        length, place = _varint(page, place)
        if kind == _TABLE_LEAF:
            _, place = _varint(page, place)  # the number of the row
        most = self.size - 35 if kind == _TABLE_LEAF else (self.size - 12) * 64 // 255 - 23
        if length <= most:
            return page[place : place + length]
        least = (self.size - 12) * 32 // 255 - 23
        local = least + (length - least) % (self.size - 4)
        local = local if local <= most else least
        parts, held = [page[place : place + local]], local
        following = struct.unpack(">I", page[place + local : place + local + 4])[0]
        while held < length:
            overflow = self._pages[following]
            following = struct.unpack(">I", overflow[:4])[0]
            parts.append(overflow[4 : 4 + length - held])
            held += len(parts[-1])
        return b"".join(parts)


def _values(payload: bytes) -> list[Any] | None:
    """Return the values of a row, texts and integers; None where they are none."""
    try:
        end, place = _varint(payload, 0)
        kinds = []
        while place < end:
            kind, place = _varint(payload, place)
            kinds.append(kind)
        values: list[Any] = []
        for kind in kinds:
            if kind in (0, 8, 9):  # null, 0 and 1 take no bytes
                values.append((None, 0, 1)[kind and kind - 7])
                continue
            text = kind >= 13 and kind % 2 == 1
            width = (kind - 13) // 2 if text else (1, 2, 3, 4, 6, 8)[kind - 1]
            part, place = payload[place : place + width], place + width
            values.append(part.decode() if text else int.from_bytes(part, "big", signed=True))
    except (IndexError, ValueError):
        return None
    return values if place == len(payload) else None


def _varint(data: bytes, place: int) -> tuple[int, int]:
    """Return a number of up to nine bytes, and the place behind it."""
    value = 0
    for count in range(9):
        byte = data[place + count]
        if count == 8:
            return value << 8 | byte, place + 9
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            return value, place + count + 1
    raise IndexError(place)
