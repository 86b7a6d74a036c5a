"""What the server does, in plain Python: the JSON API and the pages call these and nothing else.

Interfaces for the page
-----------------------
`create_app(config)` puts a `Service` at `request.app.state.service` and a `Stewardship` at
`request.app.state.stewardship`; in a route, take `service: Services` and `actor: Caller` from
`countwise.server.http` (`Caller` is whoever signed in, refused with 401 otherwise; `MaybeCaller`
is None instead), and `Changing` for a POST: it also checks the CSRF token, which a form carries
as the field `csrf_token` and htmx as the header `X-CSRF-Token`. The token is `actor.csrf`.

Sign in:   service.sign_in(name, password, address) -> SignedIn (token, csrf, actor, expires);
           set_session(response, config, signed_in) and clear_session(response) of `http` put
           the cookie there and take it away; service.sign_out(token).
Analyst:   service.datasets(actor) / dataset(actor, name) -> PublicDataset; synthetic(actor, name)
           -> Path; coefficients(actor, dataset, model) -> names a claim may use;
           plan(actor, Question) -> Plan; rehearse(actor, Question, repetitions) -> RehearsalView;
           submit(actor, Question, key) -> JobView (key: any text of the form's own,
           made when the form is shown, so that sending twice does not pay twice);
           job / jobs / cancel(actor, …) -> JobView; answer(actor, id) -> verification Answer
           (`.to_dict()`, `.sentences()`, and `reports.verification.charts(answer)` for the
           picture); receipt(actor, id) -> dict; budgets(actor) -> Budgets;
           projects(actor) -> names; keys(actor), new_key(actor, …), revoke_key(actor, id);
           change_password(actor, old, new).
Steward:   methods of `Stewardship`, all of which take the actor first: users, add_user,
           set_disabled, set_password, allow, projects, join, balances, set_cap, grant, keys,
           revoke_key, events (the audit log, filtered; `export` as CSV text), entries (the
           ledger), datasets, jobs.

Refusals are `CountwiseError`s; `refusals.status_of` gives status, code and message, and the app
already turns them into JSON for `/api` and, for anything else, calls `pages.refused(request,
status, message)`. Times are seconds of the epoch; amounts of ε are exact decimals as text.
"""

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from countwise.errors import InputError
from countwise.ledger.ledger import Ledger
from countwise.ledger.ledger import Scope as Account
from countwise.ledger.prices import Amount, in_epsilon, micro
from countwise.ledger.storage import reading, writing
from countwise.server import jobs
from countwise.server.accounts import Actor
from countwise.server.calculator import Calculator, shared_calculator
from countwise.server.config import Config, DatasetSettings
from countwise.server.events import note
from countwise.server.failpoints import failpoint
from countwise.server.forecasts import TOO_LONG, Forecasts
from countwise.server.identity_provider import IdentityProvider
from countwise.server.logs import log
from countwise.server.own_account import OwnAccount
from countwise.server.refusals import Conflict, Inconsistent, NotThere
from countwise.server.responses import (
    JobView,
    RehearsalView,
    balance_view,
    dataset_view,
    job_view,
)
from countwise.server.sign_in_limits import limit_rate
from countwise.server.signing_keys import read_keys
from countwise.server.tables import access, answers, members
from countwise.server.tables import jobs as job_table
from countwise.verification.answer import Answer, reading_of, recompute
from countwise.verification.canonical import query_hash
from countwise.verification.design import design
from countwise.verification.exchange import BudgetState, QuestionPlan
from countwise.verification.exchange import Dataset as PublicDataset
from countwise.verification.formula import parse_model
from countwise.verification.question import Question
from countwise.verification.receipt import sign
from countwise.verification.request import Request, make_request
from countwise.verification.request_loss import loss_of

MOST_REHEARSALS = 20  # each takes as long as an answer
LONGEST_KEY = 100  # characters: a hash, or an identity and a date
Charged = dict[Account, str]


class Service(OwnAccount):
    """What an analyst may do."""

    def __init__(
        self, config: Config, engine: sa.Engine, calculator: Calculator | None = None
    ) -> None:
        super().__init__(config, engine)
        self.ledger = Ledger(engine, grain=config.slot_seconds)
        self.provider = IdentityProvider(config) if config.oidc_issuer else None
        self.forecasts = Forecasts(config, calculator or shared_calculator())
        self.signing_keys = read_keys(config.signing_key)

    def datasets(self, actor: Actor) -> list[PublicDataset]:
        """The data sets the actor may use."""
        actor.need("read")
        with self.ledger.reading() as book:
            allowed = book.connection.scalars(
                sa.select(access.c.dataset).where(access.c.user == actor.name)
            )
            found = sorted(set(allowed) & set(self.config.datasets))
            return [dataset_view(book, self.config.datasets[name]) for name in found]

    def dataset(self, actor: Actor, name: str) -> PublicDataset:
        """One of them."""
        known = self._dataset(actor, name)
        with self.ledger.reading() as book:
            return dataset_view(book, known)

    def synthetic(self, actor: Actor, name: str) -> Path:
        """The file of a data set's synthetic twin."""
        return self._dataset(actor, name).synthetic

    def coefficients(self, actor: Actor, dataset: str, model: str) -> tuple[str, ...]:
        """The names a claim about a model may use; knows the public schema only."""
        schema = self._dataset(actor, dataset).schema
        return design(parse_model(model, schema), schema).names

    def projects(self, actor: Actor) -> list[str]:
        """The projects the actor may charge."""
        mine = sa.select(members.c.project).where(members.c.user == actor.name)
        with reading(self.engine) as connection:
            return sorted(connection.scalars(mine))

    def budgets(self, actor: Actor) -> list[BudgetState]:
        """The actor's own budget, and those of the projects and data sets in reach."""
        actor.need("read")
        projects = self.projects(actor)
        with self.ledger.reading() as book:
            own = [book.balance("user", actor.name)]
            own += [book.balance("project", project) for project in projects]
        shown = [balance_view(each) for each in own]
        return shown + [dataset.budget for dataset in self.datasets(actor)]

    def plan(self, actor: Actor, question: Question) -> QuestionPlan:
        """What asking would cost and could tell; reads no confidential row, spends nothing."""
        known, request, accounts_ = self._checked(actor, question)
        query = query_hash(request, dataset=known.name, version=known.version)
        with self.ledger.reading() as book:
            stored = book.connection.execute(
                sa.select(answers.c.id).where(
                    answers.c.dataset == known.name, answers.c.query == query
                )
            ).first()
            balances = [book.balance(scope, name) for scope, name in accounts_.items()]
            loss = loss_of(request, dataset=known.name, version=known.version)
            amount = Amount() if stored else book.price(known.name, loss).amount
        power = self.forecasts.chances(actor.name, known, question, request)
        return QuestionPlan(
            cost=in_epsilon(0 if stored else micro(request.epsilon)),
            stored=stored is not None,
            allowed=all(balance.affords(amount) for balance in balances),
            budgets=tuple(map(balance_view, balances)),
            outcomes=request.claim.outcomes,
            power=power or (),
            border=request.border,
            note=TOO_LONG if power is None else "",
        )

    def rehearse(self, actor: Actor, question: Question, repetitions: int = 1) -> RehearsalView:
        """The same claim, asked of the synthetic data; spends nothing."""
        known, _, _ = self._checked(actor, question)
        if not 1 <= repetitions <= MOST_REHEARSALS:
            raise InputError(f"repetitions are from 1 to {MOST_REHEARSALS}, got {repetitions}.")
        found = self.forecasts.rehearsal(actor.name, known, question, repetitions)
        return RehearsalView(repetitions=repetitions, **found)

    def submit(self, actor: Actor, question: Question, key: str) -> JobView:
        """Charge and queue a claim; the same key gives the same job and is never charged again."""
        actor.need("submit")
        if not 1 <= len(key) <= LONGEST_KEY or not key.isprintable():
            raise InputError(f"an idempotency key has 1 to {LONGEST_KEY} printable characters.")
        known, request, accounts_ = self._checked(actor, question)
        with self.ledger.writing() as book:
            job = jobs.enqueue(
                book,
                user=actor.name,
                key=key,
                question=question,
                reading=reading_of(request),
                version=known.version,
                query=query_hash(request, dataset=known.name, version=known.version),
                loss=loss_of(request, dataset=known.name, version=known.version),
                accounts=accounts_,
            )
            note(book.connection, actor.name, "submitted", job)
            row = book.connection.execute(JOBS.where(job_table.c.id == job)).one()
        failpoint("submit.committed")
        return job_view(row)

    def job(self, actor: Actor, job: str) -> JobView:
        """The state of one of the actor's jobs."""
        return job_view(self._job(actor, job))

    def jobs(self, actor: Actor, *, limit: int = 100, before: float | None = None) -> list[JobView]:
        """The actor's jobs, the newest first."""
        actor.need("read")
        query = JOBS.where(job_table.c.user == actor.name)
        if before is not None:
            query = query.where(job_table.c.created < before)
        query = query.order_by(job_table.c.created.desc()).limit(max(1, min(limit, 1000)))
        with reading(self.engine) as connection:
            return [job_view(row) for row in connection.execute(query)]

    def cancel(self, actor: Actor, job: str) -> JobView:
        """Give a job up; the charge is returned if no worker ever took it, and stands otherwise."""
        actor.need("submit")
        jobs.cancel(self.ledger, job, actor.name)
        note(self.engine, actor.name, "cancelled", job)
        return self.job(actor, job)

    def answer(self, actor: Actor, job: str) -> Answer:
        """The answer of a job, once it is released."""
        return self._answer(self._job(actor, job))

    def receipt(self, actor: Actor, job: str) -> dict[str, Any]:
        """The answer with its charge, signed once and kept."""
        return self._receipt(self._job(actor, job))

    def sign_due(self, since: float) -> int:
        """Sign the receipts of all that was released since a time and has none; how many."""
        due = JOBS.where(
            answers.c.slot >= since,
            answers.c.state == jobs.RELEASED,
            job_table.c.receipt.is_(None),
            ~job_table.c.cancelled,
        )
        with reading(self.engine) as connection:
            rows = connection.execute(due).all()
        signed = 0
        for row in rows:
            with suppress(Inconsistent):  # said in the log; the others are signed
                self._receipt(row)
                signed += 1
        return signed

    def _receipt(self, row: Any) -> dict[str, Any]:
        answer = self._answer(row)
        if row.receipt is None:
            fields = {
                "answer": answer.to_dict(),
                "dataset": row.dataset,
                "version": row.version,
                "query": row.query,
                "charge": row.answer,
                "ledger": {
                    "charged": row.entry_hash, "released": row.released_hash, "salt": row.salt
                },
                "slot": row.slot,
            }  # fmt: skip
            made = json.dumps(sign(fields, self.signing_keys.current))
            own = (job_table.c.id == row.id) & job_table.c.receipt.is_(None)
            with writing(self.engine) as connection:
                connection.execute(sa.update(job_table).where(own).values(receipt=made))
                kept = sa.select(job_table.c.receipt).where(job_table.c.id == row.id)
                text = connection.scalar(kept)
        else:
            text = row.receipt
        found: dict[str, Any] = json.loads(text or "")
        return found

    def _dataset(self, actor: Actor, name: str) -> DatasetSettings:
        actor.need("read")
        mine = sa.select(access).where(access.c.user == actor.name, access.c.dataset == name)
        with reading(self.engine) as connection:
            allowed = connection.execute(mine).first() is not None
        if not allowed or name not in self.config.datasets:
            raise NotThere("there is no such data set, or it is not open to you.")
        return self.config.datasets[name]

    def _checked(
        self, actor: Actor, question: Question
    ) -> tuple[DatasetSettings, Request, Charged]:
        """The data set, the request and the accounts of what is asked; counts against the rate."""
        known = self._dataset(actor, question.dataset)
        limit_rate(self.engine, f"query:{actor.name}", self.config.queries_per_minute)
        charged: Charged = {"user": actor.name, "dataset": known.name}
        if question.project:
            if question.project not in self.projects(actor):
                raise NotThere("there is no such project, or you are not in it.")
            charged["project"] = question.project
        return known, make_request(known.schema, question), charged

    def _job(self, actor: Actor, job: str) -> Any:
        actor.need("read")
        own = JOBS.where(job_table.c.id == job, job_table.c.user == actor.name)
        with reading(self.engine) as connection:
            row = connection.execute(own).first()
        if row is None:
            raise NotThere("there is no such job.")
        return row

    def _answer(self, row: Any) -> Answer:
        if row.cancelled or row.state != jobs.RELEASED:
            raise Conflict("there is no answer to this job, or not yet.")
        self._check_released(row)
        fields = json.loads(row.asked) | json.loads(row.reading)
        return recompute(fields | {"noisy": json.loads(row.noisy)})

    def _check_released(self, row: Any) -> None:
        """Refuse noisy counts that are not those the ledger has the hash of."""
        with self.ledger.reading() as book:
            entry = book.entry(row.answer, "released")
        if not jobs.agrees(entry, row):
            log("inconsistent", level="error", answer=row.answer)
            raise Inconsistent(
                "what is stored of this answer does not agree with the ledger, so it is not shown. "
                "Please tell a steward."
            )


JOBS = sa.select(
    job_table,
    *(
        answers.c[name]
        for name in (
            "dataset",
            "version",
            "query",
            "state",
            "slot",
            "noisy",
            "entry_hash",
            "salt",
            "released_hash",
        )
    ),
).join(answers, answers.c.id == job_table.c.answer)
