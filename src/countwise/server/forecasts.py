"""Plans and rehearsals before anything is paid: within bounds of time, in turns, and remembered.

The chances of the verdicts depend on ε, M, the mechanism, the prior and the border alone; they are
computed once and kept, and so is that they took too long. Of one user one is computed at a time.
"""

import threading
from collections import Counter, OrderedDict
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from typing import Any

from countwise.errors import InputError
from countwise.server.calculator import Calculator
from countwise.server.config import Config, DatasetSettings
from countwise.server.refusals import TooMany
from countwise.verification.exchange import Power
from countwise.verification.question import Question
from countwise.verification.request import Request

MOST_KEPT, AT_ONCE, MOST_WAITING = 2000, 2, 3
"""Results in memory, computations, and those of one user in the queue."""
TOO_LONG = (
    "The chances of a verdict take longer to compute than this server allows. Fewer partitions or "
    "a larger ε take less."
)


class Forecasts:
    """What can be told of a question before it is asked."""

    def __init__(self, config: Config, calculator: Calculator) -> None:
        self.config, self.calculator = config, calculator
        self._kept: OrderedDict[Hashable, tuple[Power, ...] | None] = OrderedDict()
        self._keeping, self._entering = threading.Lock(), threading.Lock()
        self._inside: Counter[str] = Counter()
        self._turns: dict[str, threading.Lock] = {}
        self._computing = threading.Semaphore(AT_ONCE)

    def chances(
        self, user: str, known: DatasetSettings, question: Question, request: Request
    ) -> tuple[Power, ...] | None:
        """The chances of the verdicts; none for a claim with cuts, None if they take too long."""
        if request.claim.cuts:
            return ()
        key = (
            request.partitions,
            request.epsilon,
            request.mechanism,
            request.alpha.tobytes(),
            request.border,
        )
        with self._keeping:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
        work = {"kind": "chances", "schema": str(known.schema_file.absolute())}
        said = self._compute(user, work, question, seconds=self.config.plan_seconds)
        found = None if said is None else tuple(Power(**each) for each in said)
        with self._keeping:
            self._kept[key] = found
            if len(self._kept) > MOST_KEPT:
                self._kept.popitem(last=False)
        return found

    def rehearsal(
        self, user: str, known: DatasetSettings, question: Question, repetitions: int
    ) -> dict[str, Any]:
        """The verdicts and the last answer of repeating a question on synthetic rows."""
        work = {
            "kind": "rehearsal",
            "schema": str(known.schema_file.absolute()),
            "synthetic": str(known.synthetic.absolute()),
            "repetitions": repetitions,
        }
        said = self._compute(user, work, question, seconds=self.config.rehearsal_seconds)
        if said is None:
            raise InputError(
                f"the rehearsal took longer than {self.config.rehearsal_seconds:g} s or more "
                "memory than there is for one. To fix, repeat it less often, or take fewer "
                "partitions."
            )
        found: dict[str, Any] = said
        return found

    def _compute(
        self, user: str, work: dict[str, Any], question: Question, *, seconds: float
    ) -> Any:
        with self._turn(user):
            return self.calculator.compute(
                work | {"question": question.to_dict()},
                seconds=seconds,
                memory_mb=self.config.plan_memory_mb,
            )

    @contextmanager
    def _turn(self, user: str) -> Iterator[None]:
        """A user's own turn, and one of the places for all; whoever has too many waiting goes."""
        with self._entering:
            if self._inside[user] >= MOST_WAITING:
                raise TooMany("several plans or rehearsals of yours are being computed already.")
            self._inside[user] += 1
            own = self._turns.setdefault(user, threading.Lock())
        try:
            with own, self._computing:
                yield
        finally:
            with self._entering:
                self._inside[user] -= 1
                if not self._inside[user]:
                    del self._inside[user], self._turns[user]
