"""Evidence: what was released, charged and done can be shown later, and not be changed unseen."""

import json
import sqlite3
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
import sqlalchemy as sa

from countwise.errors import ConfigError
from countwise.ledger.chain import check
from countwise.ledger.ledger import START, Book, entries, entry_hash
from countwise.ledger.storage import open_engine
from countwise.server import start
from countwise.server.database_versions import settings, upgrade
from countwise.server.events import check_events, note
from countwise.server.heads import heads_of, note_head
from countwise.server.jobs import release_due
from countwise.server.refusals import Conflict, Inconsistent, NotThere
from countwise.server.retention import delete_old
from countwise.server.scribe import Scribe
from countwise.server.service import Service
from countwise.server.signing_keys import read_keys, rotate
from countwise.server.tables import answers
from countwise.verification.receipt import check_receipt, commitment, public_key, read_key
from countwise.verification.receipt import new_key as new_signing_key
from offices import (
    ANN,
    BOB,
    SLOT,
    STEWARD,
    ask,
    client,
    example_config,
    new_key,
    open_office,
    serving,
)


@pytest.fixture
def office(database, tmp_path, computer):
    made = open_office(example_config(tmp_path, database), computer)
    yield made
    made.engine.dispose()


@pytest.fixture
def small(tmp_path, computer):
    """An office on SQLite, whose file a test may change."""
    made = open_office(example_config(tmp_path, f"sqlite:///{tmp_path}/a.db"), computer)
    yield made
    made.engine.dispose()


def answered(office, key="one", **how):
    job = office.service.submit(ANN, ask(**how), key)
    office.work()
    return job


def set_answer(office, **values):
    with office.engine.begin() as connection:
        connection.execute(sa.update(answers).values(**values))


def scribe(office, service=None):
    made = Scribe(office.config, service or office.service)
    made.write(time.time())
    return made


def file_of(office):
    return Path(office.engine.url.database)


def rewritten(office, change):
    """The ledger as someone leaves it who has all rights: changed, numbered and hashed anew."""
    with office.ledger.reading() as book:
        rows = [vars(each) for each in book.all()]
    previous = START
    with office.engine.begin() as connection:
        for name in ("update", "delete", "replace"):
            connection.exec_driver_sql(f"DROP TRIGGER ledger_no_{name}")
        connection.exec_driver_sql("DELETE FROM ledger_entries")
        for seq, row in enumerate(change(rows), 1):
            fields = row | {"seq": seq, "previous": previous}
            previous = entry_hash(fields)
            connection.execute(sa.insert(entries).values(**fields | {"hash": previous}))


def test_changed_noisy_counts_are_not_shown_nor_signed(office):
    """One row of the table changed, and the same charge would have had a second receipt."""
    job = answered(office)
    with office.engine.connect() as connection:
        noisy = connection.scalar(sa.select(answers.c.noisy))
    set_answer(office, noisy=json.dumps([2, 48, 0]))
    for look in (office.service.answer, office.service.receipt):
        with pytest.raises(Inconsistent, match="does not agree with the ledger"):
            look(ANN, job.id)
    with serving(office) as address, client(address, new_key(office, "ann")) as caller:
        assert caller.get(f"/api/v1/jobs/{job.id}/answer").status_code == 500
    set_answer(office, noisy=noisy)
    assert office.service.receipt(ANN, job.id)["answer"]["noisy"] == json.loads(noisy)


@pytest.mark.parametrize("without", [("salt",), ("salt", "released_hash"), ("released_hash",)])
def test_the_row_does_not_say_whether_it_is_checked(office, without):
    """Noisy counts without their salt are not taken for those of a release that had none."""
    job = answered(office)
    set_answer(office, noisy=json.dumps([2, 48, 0]), **dict.fromkeys(without))
    other = answered(office, "two", partitions=60)
    for look in (office.service.answer, office.service.receipt):
        with pytest.raises(Inconsistent, match="does not agree with the ledger"):
            look(ANN, job.id)
    assert office.service.sign_due(0) == 1
    assert check_receipt(office.service.receipt(ANN, other.id))


def test_a_receipt_is_signed_once_and_kept(office):
    job = answered(office)
    scribe(office)
    first = office.service.receipt(ANN, job.id)
    rotate(office.config.signing_key)
    later = Service(office.config, office.engine)
    assert later.receipt(ANN, job.id) == first
    other = later.submit(BOB, ask(), "other")
    fresh = later.receipt(BOB, other.id)
    assert fresh["key"] == later.signing_keys.public[-1] != first["key"]
    for receipt in (first, fresh):
        assert check_receipt(receipt, trusted=later.signing_keys.public).verdict


def test_a_receipt_has_hashes_of_the_ledger_and_no_place_in_it(office):
    job = answered(office)
    receipt = office.service.receipt(ANN, job.id)
    assert sorted(receipt["ledger"]) == ["charged", "released", "salt"]
    with office.ledger.reading() as book:
        charged, released = (book.entry(receipt["charge"], k) for k in ("reserved", "released"))
    assert (receipt["ledger"]["charged"], receipt["ledger"]["released"]) == (
        charged.hash, released.hash
    )  # fmt: skip
    salt, noisy = receipt["ledger"]["salt"], receipt["answer"]["noisy"]
    assert released.note == f"noisy counts {commitment(receipt['charge'], salt, noisy)}"
    assert commitment(receipt["charge"], salt, [*noisy[:-1], noisy[-1] + 1]) not in released.note
    hashes = [receipt["ledger"]["charged"], receipt["ledger"]["released"]]
    with office.ledger.reading() as book:
        assert check(book.all(), hashes=hashes).flaws == ()
        assert "no entry has" in check(book.all(), hashes=["0" * 64]).flaws[0].what


def test_receipts_are_signed_at_release_without_being_asked_for(office):
    answered(office)
    scribe(office)
    with office.engine.connect() as connection:
        kept = connection.scalar(sa.text("SELECT receipt FROM jobs"))
    assert check_receipt(json.loads(kept), trusted=office.service.signing_keys.public)


def test_a_ledger_rewritten_with_all_rights_is_found_at_the_start(small):
    """Half of the charges deleted, numbered and hashed anew: whole by itself, and not the same."""
    for i in range(4):
        answered(small, f"k{i}", partitions=50 + i)
    scribe(small)
    start.check_evidence(small.config)

    def half(rows):
        names = sorted({row["charge"] for row in rows if row["charge"]})[::2]
        return [row for row in rows if row["charge"] not in names]

    rewritten(small, half)
    assert small.finding().flaws == ()
    with pytest.raises(ConfigError, match="has the signed head of entry"):
        start.check_evidence(small.config)


def test_an_entry_changed_in_place_is_found_at_the_start(small):
    answered(small)
    scribe(small)

    def dearer(rows):
        return [row | ({"note": "x"} if row["kind"] == "reserved" else {}) for row in rows]

    rewritten(small, dearer)
    assert small.finding().flaws == ()
    with pytest.raises(ConfigError, match="not the entry whose hash was noted"):
        start.check_evidence(small.config)


def test_a_restored_backup_is_found_at_the_start_and_says_what_to_do(small, tmp_path):
    """Before, the same charge had two signed answers, without a word."""
    answered(small)
    copy = tmp_path / "copy.db"
    with sqlite3.connect(small.engine.url.database) as source, sqlite3.connect(copy) as target:
        source.backup(target)
    source.close()
    target.close()
    answered(small, "two", partitions=60)
    scribe(small)
    small.engine.dispose()
    for name in ("", "-wal", "-shm"):
        Path(f"{file_of(small)}{name}").unlink(missing_ok=True)
    copy.rename(file_of(small))
    done = subprocess.run(
        [sys.executable, "-m", "countwise", "serve", "--only", "web", "--port", "0", "--state",
         small.config.state, "--database", small.config.url],
        capture_output=True, text=True, check=False, cwd=tmp_path, timeout=200,
    )  # fmt: skip
    assert done.returncode == 2
    words = " ".join(done.stderr.split())
    assert "lower the caps by what may be missing" in words
    small.config.heads_file.rename(tmp_path / "away")
    start.check_evidence(small.config)


def test_the_file_of_heads_can_not_be_forged(small, tmp_path):
    answered(small)
    scribe(small)
    file = small.config.heads_file
    whole = file.read_text()
    for old, new in (('"entries":', '"entries":1'), ('"audit":"', '"audit":"0')):
        file.write_text(whole.replace(old, new, 1))
        with pytest.raises(ConfigError, match="no head that this server signed"):
            start.check_evidence(small.config)
    file.write_text(whole + '{"at": 1, "entr')  # the machine stopped while it was written
    start.check_evidence(small.config)
    new_signing_key(tmp_path / "other.key")
    with small.engine.connect() as connection:
        heads = heads_of(connection)
    file.write_text("")
    note_head(file, heads, read_key(tmp_path / "other.key"), at=0)
    with pytest.raises(ConfigError, match="no head that this server signed"):
        start.check_evidence(small.config)


def test_heads_are_noted_when_something_changed_and_stay_good_over_a_new_key(small):
    made = scribe(small)
    for _ in range(3):
        made.write(time.time())
    file = small.config.heads_file
    assert len(file.read_text().splitlines()) == 1
    answered(small)
    made.write(time.time())
    rotate(small.config.signing_key)
    start.check_evidence(small.config)
    lines = [json.loads(each) for each in file.read_text().splitlines()]
    assert len(lines) == 2
    assert all(each["at"] % SLOT == 0 for each in lines)
    assert lines[0]["key"] == read_keys(small.config.signing_key).public[0]


def test_an_entry_is_not_replaced_past_the_triggers(office):
    answered(office)
    with office.ledger.reading() as book:
        last = vars(list(book.all())[-1])
    fields = last | {"note": "another"}
    names = ", ".join(f'"{each}"' for each in fields)
    marks = ", ".join(f":{each}" for each in fields)
    sqlite = office.engine.dialect.name == "sqlite"
    verb = "INSERT OR REPLACE" if sqlite else "INSERT"
    with (
        pytest.raises(sa.exc.DBAPIError, match=r"append-only|duplicate key"),
        office.engine.begin() as connection,
    ):
        connection.execute(
            sa.text(f"{verb} INTO ledger_entries ({names}) VALUES ({marks})"), fields
        )
    assert office.finding().flaws == ()


def test_the_audit_log_is_a_chain(office):
    def flaws():
        with office.engine.connect() as connection:
            return check_events(connection)

    answered(office)
    assert flaws() == []
    scribe(office)
    with office.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE audit SET actor = 'bob' WHERE event = 'submitted'")
    assert "was changed" in flaws()[0]
    with pytest.raises(ConfigError, match="audit log is not whole"):
        start.check_evidence(office.config)
    with office.engine.begin() as connection:
        connection.exec_driver_sql("DELETE FROM audit WHERE event = 'submitted'")
        note(connection, "ann", "later")
    with pytest.raises(ConfigError, match="audit log is not whole"):
        start.check_evidence(office.config)  # its end was cut off; the noted head shows it
    with office.engine.begin() as connection:
        connection.exec_driver_sql("DELETE FROM audit WHERE id = 1")
    assert "at the beginning" in " ".join(flaws())


@pytest.mark.parametrize("state", ["queued", "running", "computed"])
def test_an_inconsistent_row_stops_one_job_and_no_worker(office, state):
    """A released answer set back by hand: it is set aside, and the next one is answered."""
    job = answered(office)
    past = time.time() - 1000
    set_answer(office, state=state, slot=past, claim="x", noisy="[1, 2, 3]")
    other = office.service.submit(ANN, ask(partitions=60), "two")
    office.work(2)
    assert office.service.job(ANN, other.id).status == "answered"
    assert office.states() == ["broken", "released"]
    assert office.service.job(ANN, job.id).status == "failed"
    with pytest.raises(Conflict):
        office.service.receipt(ANN, job.id)
    assert office.finding().flaws == ()
    assert office.service.submit(ANN, ask(), "again").cost == "1"


def test_signing_keys_have_dates(small):
    before = small.service.signing_keys.public
    found = rotate(small.config.signing_key)
    assert found.public[:-1] == before
    assert [each.until is None for each in found.periods] == [False, True]
    assert found.periods[0].until == found.periods[1].since
    assert (small.config.home / "signing.key").stat().st_mode & 0o077 == 0
    again = replace(small.config)
    small.service = Service(again, small.engine)
    with serving(small) as address, client(address) as caller:
        said = caller.get("/api/v1/key").json()
    assert said["key"] == found.public[-1] == public_key(found.current)
    assert [each["key"] for each in said["keys"]] == list(found.public)
    (small.config.home / "signing.key").write_text("11" * 32)
    with pytest.raises(ConfigError, match="not the newest key"):
        read_keys(small.config.signing_key)


def test_a_database_of_the_version_before_is_brought_up_to_date(database, tmp_path, computer):
    """Its events get hashes, its answers are served and signed, its held answers released."""
    from alembic import command

    engine, how = open_engine(database), settings()
    with engine.begin() as connection:
        how.attributes["connection"] = connection
        command.upgrade(how, "0002")
        for i in range(3):
            connection.execute(
                sa.text(
                    "INSERT INTO audit (at, actor, event, subject, detail) "
                    "VALUES (:at, 'ann', 'did', '', '')"
                ),
                {"at": 0.1 + i},
            )
    upgrade(engine)
    with engine.begin() as connection:
        assert check_events(connection) == []
        note(connection, "ann", "more")
        assert check_events(connection) == []
        Book(connection).set_cap("user", "zoe", 5)
    engine.dispose()
    office = open_office(example_config(tmp_path, database), computer)
    job = office.service.submit(ANN, ask(), "held")
    with office.ledger.writing() as book:
        book.advance(book.connection.scalar(sa.select(answers.c.id)), "computed")
    set_answer(office, state="computed", slot=time.time() - 1, noisy="[2, 48, 0]")
    assert release_due(office.ledger, time.time()) == 1
    receipt = office.service.receipt(ANN, job.id)
    assert receipt["ledger"]["released"] is None
    assert check_receipt(receipt)
    start.check_evidence(office.config)
    office.engine.dispose()


def test_old_rows_are_deleted_as_the_settings_say_and_the_ledger_is_not(office):
    """Jobs that are over, and events up to one that is named; chain and ledger stay whole."""
    first = answered(office)
    waiting = office.service.submit(ANN, ask(partitions=60), "two")
    entries_before, spent = office.finding().length, office.spent()
    events = office.stewardship.events(STEWARD, limit=1000)
    later = time.time() + 40 * 86_400
    delete_old(office.engine, office.config, later)
    assert office.service.job(ANN, first.id).status == "answered"  # 0 days are for ever
    config = replace(office.config, keep_jobs_days=30, keep_audit_days=30)
    delete_old(office.engine, config, later)
    with pytest.raises(NotThere):
        office.service.job(ANN, first.id)
    assert office.service.job(ANN, waiting.id).status == "queued"
    assert office.states() == ["queued"]
    assert (office.finding().length, office.spent()) == (entries_before, spent)
    left = office.stewardship.events(STEWARD, limit=1000)
    assert [each.event for each in left] == ["deleted old events", events[0].event]
    scribe(office)
    start.check_evidence(office.config)
    with office.engine.begin() as connection:
        connection.exec_driver_sql("DELETE FROM audit WHERE event = 'submitted'")
        assert check_events(connection)
