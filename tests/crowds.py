"""Many who spend from one budget at once, in a module that a process of its own can import."""

from concurrent.futures import ThreadPoolExecutor
from uuid import uuid4

from countwise.errors import BudgetError
from countwise.ledger.ledger import Ledger
from countwise.ledger.storage import open_engine

ACCOUNTS = {"user": "ann", "dataset": "workers", "project": "pay"}


def try_charge(ledger, amount=1_000_000):
    try:
        with ledger.writing() as book:
            book.reserve(uuid4().hex, amount, ACCOUNTS)
    except BudgetError:
        return False
    return True


def crowd(url, size, results):
    ledger = Ledger(open_engine(url))
    with ThreadPoolExecutor(20) as pool:
        results.put(sum(pool.map(lambda _: try_charge(ledger), range(size))))
    ledger.engine.dispose()
