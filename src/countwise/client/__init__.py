"""A verification server from Python: see its data sets, plan, rehearse, ask, and check receipts.

    client = Client("https://verify.example.org", key)
    question = Question(dataset="workers", model="hours ~ age", claim="age > 0", epsilon="0.5")
    print(client.plan(question).cost, client.rehearse(question).verdicts)
    answered = client.wait(client.submit(question))
    print(answered.answer.verdict, answered.receipt.check(public_key).r)

A call that gets no answer is made again, and no call spends twice: a submission carries a key
made once, by which the server knows it again.
"""

from countwise.client.http_calls import RefusedError, UnreachableError
from countwise.client.remote import Client, NoAnswerError
from countwise.client.results import Answered, Job, Receipt, Rehearsal, read_receipt
from countwise.verification.exchange import BudgetState, Column, Dataset, Power, QuestionPlan
from countwise.verification.question import Question

__all__ = [
    "Answered",
    "BudgetState",
    "Client",
    "Column",
    "Dataset",
    "Job",
    "NoAnswerError",
    "Power",
    "Question",
    "QuestionPlan",
    "Receipt",
    "RefusedError",
    "Rehearsal",
    "UnreachableError",
    "read_receipt",
]
