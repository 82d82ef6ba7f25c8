"""Dead letters: versions that a sink will never take, kept so that the feed may go on behind them.

    orders 1@10   orders 2@11   orders 3@12        the receiver refuses 2@11 for ever
    sent          dead letter   sent               resolved 12

A letter is a row of `system.dead_letters`, committed before the sink counts its version as settled:
so progress that passes a version finds it in the sink or among the letters. A version that is
refused again, by the next attempt or a retry, is the same letter.

Later versions of a letter's key go on. A letter behind which there is a newer version is
*superseded*: sent again, it would come behind what it precedes, so it is not.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from ...catalog.descriptors.descriptor import TableDescriptor
from ...catalog.descriptors.system_tables import DEAD_LETTERS
from ...catalog.jobs.record import dead_letters_of, time_of
from ...catalog.rows.row_codec import codec_for
from ...catalog.store.descriptor_store import DescriptorStore
from ...kvlayer.access import StoreAccess
from ...kvlayer.clock import ZERO, Timestamp, format_timestamp
from ...kvlayer.settings import declare_int
from ...kvlayer.txn import Transaction
from ..contract.changes import StageTimes
from ..contract.options import BadRowPolicy
from ..pipeline.live import LiveFeed, NotTaken
from ..sinks.protocol import BadRow, RowRefused, SinkRefused
from ..targets import Versions

LETTERS_MAX = declare_int(
    "changefeed.dead_letters.max",
    1_000,
    "dead letters of one changefeed, beyond which it is paused: a receiver that refuses so many "
    "rows refuses all of them",
)

MESSAGE_BYTES_MAX = 16 * 1024
"""Bytes of a message that are kept: the row itself is in its table."""

ERROR_CHARACTERS_MAX = 1_000

_codec = codec_for(DEAD_LETTERS)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetter:
    """`row_key` is the store's key, `key` as messages show it. `message` is what was refused, cut
    where it is longer than `MESSAGE_BYTES_MAX`; None where the sink takes no messages."""

    job_id: int
    table_id: int
    row_key: bytes
    at: Timestamp
    table_name: str
    key: str
    deleted: bool
    message: str | None
    message_bytes: int
    error: str
    refused: datetime

    @property
    def place(self) -> bytes:
        """The key of the letter's own row."""
        return _codec.encode_key((self.job_id, self.table_id, self.row_key, self.at))

    @classmethod
    def decode(cls, place: bytes, body: bytes) -> DeadLetter:
        names = ("job_id", "table_id", "row_key", "at", *(c.name for c in DEAD_LETTERS.columns[4:]))
        return cls(**dict(zip(names, _codec.decode_row(place, body), strict=True)))  # type: ignore[arg-type]


class DeadLetters:
    """The rows that a feed's sink refuses in one attempt (`BadRows`), kept as letters."""

    def __init__(
        self,
        store: StoreAccess,
        job_id: int,
        names: Mapping[int, str],
        *,
        policy: BadRowPolicy | None,
        pauses: bool,
    ) -> None:
        """`names` are those of the tables, by id. Where there is no policy, `pauses` says what
        becomes of the feed."""
        self._store = store
        self._job_id = job_id
        self._names = names
        self._policy = policy
        self._pauses = pauses if policy is None else policy is not BadRowPolicy.FAIL
        self._one_at_a_time = asyncio.Lock()
        self._known: set[bytes] | None = None
        """Letters of the feed: those that were there, and those that were added."""

    @property
    def isolates(self) -> bool:
        return self._policy is not None

    async def refuse(self, row: BadRow, error: SinkRefused) -> None:
        """See `BadRows`. Raises RowRefused also where there are too many letters."""
        table_name = self._names.get(row.table_id, str(row.table_id))
        if self._policy is not BadRowPolicy.DEAD_LETTER:
            at = format_timestamp(row.at)
            raise RowRefused(
                f"{error}; refused was the row {row.shown_key} of {table_name} at {at}",
                pauses=self._pauses,
            ) from error
        place, body = _encode(self._job_id, table_name, row, error, self._store.clock.last)
        async with self._one_at_a_time:  # lanes are refused at once
            known = await self._letters()
            if place not in known and len(known) >= self._store.settings.get(LETTERS_MAX):
                raise RowRefused(
                    f"{error}; the changefeed has {len(known)} dead letters, as many as "
                    f"{LETTERS_MAX.name} allows: RETRY or SKIP DEAD LETTERS, and RESUME the job",
                    pauses=True,
                ) from error
            await self._store.one_phase(lambda evaluation: evaluation.put([place], [body]))
            known.add(place)
        self._store.metrics.add("changefeed_dead_letters_total")

    async def _letters(self) -> set[bytes]:
        if self._known is None or len(self._known) >= self._store.settings.get(LETTERS_MAX):
            letters = await read_letters(self._store, self._job_id)  # some may be gone meanwhile
            self._known = {letter.place for letter in letters}
        return self._known


def _encode(
    job_id: int, table_name: str, row: BadRow, error: SinkRefused, now: Timestamp
) -> tuple[bytes, bytes]:
    message = row.message
    text = None if message is None else message[:MESSAGE_BYTES_MAX].decode(errors="replace")
    return _codec.encode_row(
        (
            job_id,
            row.table_id,
            row.key,
            row.at,
            table_name,
            row.shown_key,
            row.deleted,
            text,
            len(message or b""),
            str(error)[:ERROR_CHARACTERS_MAX],
            time_of(now),
        )
    )


async def read_letters(store: StoreAccess, job_id: int) -> list[DeadLetter]:
    """A feed's letters, by table and key."""
    reader = store.snapshot(await store.now())
    rows = await reader.scan(dead_letters_of(job_id))
    return [DeadLetter.decode(place, body) for place, body in rows]


async def skip_letters(store: StoreAccess, letters: Sequence[DeadLetter]) -> None:
    """Forgets them."""
    places = [letter.place for letter in letters]
    if places:
        await store.one_phase(lambda evaluation: evaluation.delete(places))


@dataclass(slots=True)
class _Sent:
    """The outcome of sending a letter: it is with the sink where `stages` is there, else it says
    `why` not. `written` is when the letter was written last before that."""

    letter: DeadLetter
    stages: StageTimes | None = None
    why: str = ""
    written: Timestamp = ZERO


class Retry:
    """One RETRY of letters through the feed that runs here: `send`, wait for `sent_at`, and ask for
    the `outcomes`."""

    def __init__(self, store: StoreAccess, descriptors: DescriptorStore, live: LiveFeed) -> None:
        self._store = store
        self._descriptors = descriptors
        self._live = live
        self._sent: list[_Sent] = []
        self.sent_at = ZERO
        """All that was sent is settled once the sink has made this durable; ZERO: nothing was."""

    async def send(self, letters: Sequence[DeadLetter]) -> None:
        """Hands the feed what has not been superseded. Raises NotTaken."""
        for letter in letters:
            transaction = self._store.begin()
            try:
                self._sent.append(await self._send(transaction, letter))
            finally:
                await transaction.rollback()

    async def _send(self, transaction: Transaction, letter: DeadLetter) -> _Sent:
        """While the row is locked nobody writes a newer version, which could reach the sink before
        what is sent here."""
        await transaction.lock([letter.row_key])
        at = await self._store.now()
        reader = self._store.snapshot(at)
        own = await reader.get_with_timestamp(letter.place)
        if own is None:
            return _Sent(letter, why="gone: it was skipped meanwhile")
        found = await reader.get_with_timestamp(letter.row_key)
        if (found is None) is not letter.deleted or (found is not None and found[1] > letter.at):
            return _Sent(letter, why="superseded: the row has changed since, and the feed goes on")
        table = await self._descriptors.read_at(letter.table_id, at)
        if not isinstance(table, TableDescriptor) or table.dropped:
            return _Sent(letter, why="superseded: the table was dropped")
        versions = Versions([letter.row_key], [None if found is None else found[0]], [at])
        send = self._live.send_again
        stages = None if send is None else send(versions, table, [letter.at])
        if stages is None:
            raise NotTaken
        self.sent_at = at
        return _Sent(letter, stages, written=own[1])

    async def outcomes(self) -> list[str]:
        """The outcome of each letter. Those that the sink took are letters no more."""
        return [each.why or await self._judge(each) for each in self._sent]

    async def _judge(self, sent: _Sent) -> str:
        assert sent.stages is not None, sent
        if not sent.stages.sunk:
            return "not sent: the feed began again meanwhile"
        place, written = sent.letter.place, sent.written
        now = await self._store.now()
        found = await self._store.snapshot(now).get_with_timestamp(place)
        if found is not None and found[1] > written:
            return f"refused again: {DeadLetter.decode(place, found[0]).error}"
        await skip_letters(self._store, [sent.letter])
        return "sent"
