"""Reads logs on a Dask cluster. Its workers need this package, and must reach the logs under the same paths."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from urllib.parse import urlsplit

from ..hosts import is_loopback
from .errors import FleetError, missing
from .log_files import LogFile, batches
from .rows import LogRows, Reader, encode
from .schedulers import Advance, Scheduler, read_batch

PATIENCE = 10
"""Seconds to wait for the scheduler."""
UNTRUSTED = (
    "is another machine without TLS, and whoever answers there can run programs here: Dask's messages are pickles. Reach it by tls:// or a "
    "tunnel, or pass --trust-scheduler"
)
FAILED = "the worker that read it ended or failed"


def read_on_dask(address: str, *, is_trusted: bool = False) -> Scheduler:
    """Return a scheduler that reads logs on the cluster of a Dask scheduler.

        ledger = read_ledger(find_logs(["/shared/logs"]), scheduler=read_on_dask("tcp://10.0.0.1:8786"))

    A batch that fails is read again log by log, so that a log that cannot be read is a row of faults.

    Args:
        address: Of the Dask scheduler: its host and port, after `tls://` where it has certificates.
        is_trusted: True to reach another machine without TLS. Whoever answers there, or on the way there, can run programs here, since
            Dask's messages are pickles and it knows no login.

    Raises:
        FleetError: distributed is missing, or the address is none, or not one to trust. The scheduler raises it too, if no Dask scheduler
            answers.
    """
    scheme, _, place = address.rpartition("://")
    try:
        host = urlsplit(f"//{place}").hostname or ""
    except ValueError:
        host = ""
    if not host or not address.isascii() or not address.isprintable():
        raise FleetError(repr(address), "is not the address of a Dask scheduler: pass one such as tls://10.0.0.1:8786")
    if scheme != "tls" and not is_loopback(host) and not is_trusted:
        raise FleetError(address, UNTRUSTED)
    try:
        from distributed import Client, as_completed
    except ModuleNotFoundError:
        raise missing("distributed") from None

    def read(logs: Sequence[LogFile], advance: Advance, reader: Reader) -> Iterator[tuple[LogFile, bytes]]:
        try:
            client = Client(address, timeout=PATIENCE, set_as_default=False)
        except Exception as error:  # noqa: BLE001 - of any kind: a TypeError without certificates
            raise FleetError(address, f"is not the address of a Dask scheduler that answers: {error}") from None
        with client:
            parts = {client.submit(read_batch, [log.name for log in part], reader, pure=False): part for part in batches(logs)}
            with client.as_current():
                arriving = as_completed(parts)
            for future in arriving:
                part = parts.pop(future)
                if future.status == "finished":
                    yield from zip(part, future.result(), strict=True)
                elif len(part) > 1:
                    again = {client.submit(read_batch, [log.name], reader, pure=False): [log] for log in part}
                    parts |= again
                    for single in again:
                        arriving.add(single)
                    continue
                else:
                    yield part[0], encode(LogRows((), problem=FAILED))
                advance(sum(log.size for log in part))

    return read
