"""The heads of the ledger and of the audit log, signed and kept outside the database.

A chain of hashes has no secret: whoever may write in the database can write all of it anew, cut
it off at its end, or bring back an older copy. A head that was noted elsewhere shows it. At every
slot in which something changed, a line goes to a file (and to syslog where that is set): how long
both chains are, their last hashes, and a signature. The server refuses to start behind it.
"""

import fcntl
import json
import syslog
from collections.abc import Collection
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from countwise.errors import ConfigError
from countwise.ledger.chain import check
from countwise.ledger.ledger import Book, entries
from countwise.server.events import check_events
from countwise.server.tables import audit
from countwise.verification.receipt import public_key

SIGNED = ("at", "entries", "ledger", "events", "audit", "key")
LONGEST_LINE = 4096  # bytes: the last line is within twice as many from the end


def heads_of(connection: sa.Connection) -> dict[str, Any]:
    """How far both chains go, and their last hashes."""
    ledger = connection.execute(
        sa.select(entries.c.seq, entries.c.hash).order_by(entries.c.seq.desc()).limit(1)
    ).first()
    log = connection.execute(
        sa.select(audit.c.id, audit.c.hash).order_by(audit.c.id.desc()).limit(1)
    ).first()
    return {
        "entries": ledger.seq if ledger else 0,
        "ledger": ledger.hash if ledger else "",
        "events": log.id if log else 0,
        "audit": log.hash if log else "",
    }


def note_head(
    file: Path, heads: dict[str, Any], key: Ed25519PrivateKey, *, at: float, aloud: bool = False
) -> bool:
    """Add a signed line to the file, unless the last one says the same; whether it did."""
    with file.open("a+b") as out:
        fcntl.flock(out, fcntl.LOCK_EX)
        last = _last(out)
        if last is not None and all(last.get(name) == each for name, each in heads.items()):
            return False
        line = {"at": at, **heads, "key": public_key(key)}
        line["signature"] = key.sign(_signed(line)).hex()
        text = json.dumps(line, separators=(",", ":"))
        out.write(text.encode() + b"\n")
    if aloud:
        syslog.openlog("countwise")
        syslog.syslog(syslog.LOG_NOTICE, text)
    return True


def refuse_behind(file: Path, book: Book, keys: Collection[str]) -> None:
    """Refuse a database that is not what the last head says it was, or any later state of that."""
    head = _noted(file, keys)
    place = head["entries"] if head else 0
    found = check(book.all(), noted={place: head["ledger"]} if head and place else None)
    if head and found.length < place:
        raise ConfigError(
            f"the ledger ends at entry {found.length}, and {file} has the signed head of entry "
            f"{place}: the database is an older copy, or entries were erased. What was spent since "
            "is not in it. To fix, bring back a newer copy. If there is none, lower the caps by "
            "what may be missing, move the file of heads away, and note why."
        )
    if found.flaws:
        raise ConfigError(
            f"the ledger is not whole: entry {found.flaws[0].seq} {found.flaws[0].what}. To fix, "
            "bring back a copy that is; countwise ledger check names every flaw."
        )
    flaws = check_events(book.connection)
    if head and head["events"]:
        known = sa.select(audit.c.hash).where(audit.c.id == head["events"])
        if book.connection.scalar(known) != head["audit"]:
            flaws.append(f"event {head['events']} is not the one whose hash {file} has")
    if flaws:
        raise ConfigError(
            f"the audit log is not whole: {flaws[0]}. To fix, bring back a copy of the database "
            "that is."
        )


def _noted(file: Path, keys: Collection[str]) -> dict[str, Any] | None:
    """The last head of the file, if it has one of ours."""
    if not file.exists():
        return None
    with file.open("rb") as lines:
        head = _last(lines)
    if head is None:
        return None
    try:
        if head["key"] not in keys:
            raise ValueError
        Ed25519PublicKey.from_public_bytes(bytes.fromhex(head["key"])).verify(
            bytes.fromhex(head["signature"]), _signed(head)
        )
    except (InvalidSignature, ValueError, TypeError, KeyError):
        raise ConfigError(
            f"{file}: its last line is no head that this server signed. To fix, bring back the "
            "file, or move it away if it is of another server, and note why."
        ) from None
    return head


def _last(lines: Any) -> dict[str, Any] | None:
    """The last whole line of a file; one cut off by a crash is passed over."""
    size = lines.seek(0, 2)
    lines.seek(max(0, size - 2 * LONGEST_LINE))
    whole = [each for each in lines.read().split(b"\n")[:-1] if each]
    for line in reversed(whole):
        try:
            found: dict[str, Any] = json.loads(line)
        except ValueError:
            continue
        return found
    return None


def _signed(head: dict[str, Any]) -> bytes:
    fields = [head[name] for name in SIGNED]
    return json.dumps(fields, ensure_ascii=True, separators=(",", ":")).encode()
