"""`Pages`: the records in a SQLite file as its bytes have them, found page by page, whether SQLite would open it or not.

The format is SQLite's own, https://www.sqlite.org/fileformat2.html: 1.5 b-tree pages, 1.6 overflow, 2.1 records, 4 the log beside it.
Whether a record is as it was written is for its reader to tell: what is found here may be damaged.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

from .schema import PAGE_BYTES

MAGIC = b"SQLite format 3\0"
HEADER_BYTES = 100
"""Bytes before the first page's own."""
LARGEST = 65_536
"""Bytes of the largest page; two bytes cannot say so, and say 1."""
LEAF = 0x0D
"""The first byte of a page that holds records of a table."""
WAL_MAGIC = (0x377F0682, 0x377F0683)
WAL_HEADER_BYTES = 32
FRAME_HEADER_BYTES = 24
PATIENCE = 8
"""Pages that may be read in vain, for each page that there is: chains of pages that lead nowhere must end some time."""

_INTEGER_BYTES = {1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8}

Value = int | float | bytes | None


class Cell(NamedTuple):
    """A record in its page.

    Attributes:
        rowid: Its key.
        length: Bytes that it has.
        local: Those in this page.
        overflow: The page where it goes on, or 0.
    """

    rowid: int
    length: int
    local: bytes
    overflow: int


class Pages:
    """The pages of a file and of the log beside it, as far as it was committed."""

    def __init__(self, path: Path) -> None:
        """
        Args:
            path: The file.

        Raises:
            OSError: It cannot be read.
        """
        self._file = path.open("rb")
        self._log: BinaryIO | None = None
        try:
            head = self._file.read(HEADER_BYTES)
            size = int.from_bytes(head[16:18], "big") if head.startswith(MAGIC) else 0
            size = LARGEST if size == 1 else size
            self.size = size if size in {512 << step for step in range(8)} else PAGE_BYTES
            self.count = -(-path.stat().st_size // self.size)
            beside = path.with_name(f"{path.name}-wal")
            self._frames: list[tuple[int, int]] = []
            if beside.exists():
                self._log = beside.open("rb")
                self._frames = self._committed(self._log, beside.stat().st_size)
        except BaseException:
            self.close()
            raise
        self._newest = dict(self._frames)
        self._patience = PATIENCE * (self.count + len(self._frames)) + 1_000

    def close(self) -> None:
        """Closes the files."""
        self._file.close()
        if self._log is not None:
            self._log.close()

    def cells(self) -> Iterator[Cell]:
        """The records of all tables, the newest pages first. A record may come several times."""
        for _, offset in reversed(self._frames):
            yield from self._cells(self._read(self._log, offset), 0)
        for number in range(self.count):
            yield from self._cells(self._read(self._file, number * self.size), 0 if number else HEADER_BYTES)

    def payloads(self, cell: Cell) -> Iterator[bytes]:
        """What the record may be, the likeliest first: its bytes with those of the pages where it goes on."""
        if not cell.overflow:
            yield cell.local
            return
        for logged in (True, False) if self._frames else (False,):
            found = self._chain(cell, logged=logged)
            if found is not None:
                yield found

    # Inside

    def _read(self, file: BinaryIO | None, offset: int) -> bytes:
        if file is None:
            return b""
        file.seek(offset)
        return file.read(self.size).ljust(self.size, b"\0")

    def _committed(self, log: BinaryIO, size: int) -> list[tuple[int, int]]:
        """The frames of the log up to the last commit: the number of the page, and where it stands."""
        head = log.read(WAL_HEADER_BYTES + FRAME_HEADER_BYTES)
        if len(head) < WAL_HEADER_BYTES + FRAME_HEADER_BYTES:
            return []
        # Older frames, of a log that was begun anew since, have other salts. Where the header is damaged the first frame has them.
        sound = int.from_bytes(head[:4], "big") in WAL_MAGIC
        salts = head[16:24] if sound else head[WAL_HEADER_BYTES + 8 : WAL_HEADER_BYTES + 16]
        frames: list[tuple[int, int]] = []
        committed = 0
        for offset in range(WAL_HEADER_BYTES, size, FRAME_HEADER_BYTES + self.size):
            log.seek(offset)
            frame = log.read(FRAME_HEADER_BYTES)
            if len(frame) < FRAME_HEADER_BYTES:
                break
            if frame[8:16] != salts:
                continue
            page, pages_then = struct.unpack(">II", frame[:8])
            frames.append((page, offset + FRAME_HEADER_BYTES))
            if pages_then:
                committed = len(frames)
        return frames[:committed]

    def _cells(self, page: bytes, start: int) -> Iterator[Cell]:
        """The records of a page, where it is one of a table's."""
        if len(page) <= start or page[start] != LEAF:
            return
        count = int.from_bytes(page[start + 3 : start + 5], "big")
        first = start + 8
        for place in range(first, min(first + 2 * count, len(page) - 1), 2):
            offset = int.from_bytes(page[place : place + 2], "big")
            length, offset = varint(page, offset)
            rowid, offset = varint(page, offset)
            rowid -= (rowid >> 63) << 64
            kept = _local(length, self.size)
            local = page[offset : offset + kept]
            if len(local) < kept:
                continue
            overflow = int.from_bytes(page[offset + kept : offset + kept + 4], "big") if kept < length else 0
            if kept == length or overflow:
                yield Cell(rowid, length, local, overflow)

    def _chain(self, cell: Cell, *, logged: bool) -> bytes | None:
        """The record whole, or None where its pages lead nowhere."""
        left = cell.length - len(cell.local)
        pieces, number, steps = [cell.local], cell.overflow, 0
        while left > 0:
            offset = self._newest.get(number) if logged else None
            if not number or (offset is None and number > self.count) or self._patience <= 0:
                self._patience -= steps
                return None
            page = self._read(self._file, (number - 1) * self.size) if offset is None else self._read(self._log, offset)
            pieces.append(page[4 : 4 + left])
            left -= len(pieces[-1])
            number, steps = int.from_bytes(page[:4], "big"), steps + 1
            if steps > self.count + len(self._frames):
                self._patience -= steps
                return None
        return b"".join(pieces)

    def vain(self, cell: Cell) -> None:
        """Notes that a record was read and is damaged."""
        self._patience -= cell.length // self.size


def _local(length: int, size: int) -> int:
    """Bytes of a record that its own page has (1.6)."""
    most = size - 35
    if length <= most:
        return length
    least = (size - 12) * 32 // 255 - 23
    kept = least + (length - least) % (size - 4)
    return kept if kept <= most else least


def varint(data: bytes, offset: int) -> tuple[int, int]:
    """The number at a place, and the place behind it; what lies beyond the end is 0."""
    value = 0
    for byte in data[offset : offset + 8]:
        offset += 1
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            return value, offset
    return value << 8 | (data[offset] if offset < len(data) else 0), offset + 1


def record(payload: bytes, columns: int) -> tuple[Value, ...] | None:
    """The values of a record of so many columns, as far as they are there; None where it is another's, or none."""
    size, offset = varint(payload, 0)
    if not columns < size <= 9 * (columns + 1):
        return None
    kinds = []
    while offset < size:
        kind, offset = varint(payload, offset)
        kinds.append(kind)
    if len(kinds) != columns or offset != size:
        return None
    values: list[Value] = []
    for kind in kinds:
        if kind >= 12:
            length = (kind - 12) // 2
            values.append(payload[offset : offset + length])
        elif kind in _INTEGER_BYTES:
            length = _INTEGER_BYTES[kind]
            values.append(int.from_bytes(payload[offset : offset + length], "big", signed=True))
        elif kind == 7:
            length = 8
            piece = payload[offset : offset + length]
            values.append(struct.unpack(">d", piece)[0] if len(piece) == 8 else None)
        else:
            length = 0
            values.append({8: 0, 9: 1}.get(kind))
        offset += length
    return tuple(values)
