"""What the web process writes down after every slot: receipts, and the heads of both chains."""

import threading
import time

from countwise.errors import CountwiseError
from countwise.ledger.storage import reading
from countwise.server.config import Config
from countwise.server.heads import heads_of, note_head
from countwise.server.logs import log
from countwise.server.retention import delete_old
from countwise.server.service import Service

TIDY_SECONDS = 3600.0
"""How often old rows are looked for."""
LOOKED_BACK = 20
"""Slots whose answers may still lack a receipt; older ones get theirs when it is asked for."""


class Scribe:
    """A thread that writes a little after every slot's end, until it is stopped."""

    def __init__(self, config: Config, service: Service) -> None:
        self.config, self.service = config, service
        self._over, self._tidied = threading.Event(), 0.0
        self._thread = threading.Thread(target=self._run, name="scribe", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """Write once more, and end."""
        self._over.set()
        self._thread.join()
        self.write(time.time())

    def write(self, now: float) -> None:
        """Sign what was released, and note the heads; a fault is logged, and the next may do."""
        seconds = self.config.slot_seconds
        try:
            if now > self._tidied + TIDY_SECONDS:
                delete_old(self.service.engine, self.config, now)
                self._tidied = now
            self.service.sign_due(now - LOOKED_BACK * seconds)
            with reading(self.service.engine) as connection:
                heads = heads_of(connection)
            note_head(
                self.config.heads_file,
                heads,
                self.service.signing_keys.current,
                at=now // seconds * seconds,
                aloud=self.config.syslog,
            )
        except (CountwiseError, OSError) as problem:
            log("not noted", level="error", kind=type(problem).__name__)

    def _run(self) -> None:
        seconds = self.config.slot_seconds
        late = min(0.5, seconds / 10)
        while True:
            now = time.time()
            if self._over.wait((now // seconds + 1) * seconds + late - now):
                return
            self.write(time.time())
