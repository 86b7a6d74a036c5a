"""What a steward may do: accounts, access, budgets, keys; reading the logs is `Histories`."""

import sqlalchemy as sa

from countwise.errors import InputError
from countwise.ledger.ledger import SCOPES, Ledger
from countwise.ledger.ledger import Scope as Account
from countwise.ledger.ledger import entries as entry_table
from countwise.ledger.prices import MICRO, micro
from countwise.ledger.storage import reading, writing
from countwise.noise.numbers import exact
from countwise.server import accounts
from countwise.server.accounts import NAME, Actor
from countwise.server.config import Config
from countwise.server.events import note
from countwise.server.histories import MOST_ROWS, Histories
from countwise.server.proposals import agreed_cap, decide, propose, waiting_proposals
from countwise.server.refusals import Conflict, NotThere, Proposed
from countwise.server.responses import (
    JobView,
    KeyView,
    ProposalView,
    UserView,
    balance_view,
    dataset_view,
    job_view,
    key_view,
)
from countwise.server.service import JOBS
from countwise.server.tables import access, api_keys, members, users
from countwise.server.tables import jobs as job_table
from countwise.verification.exchange import BudgetState
from countwise.verification.exchange import Dataset as PublicDataset


class Stewardship(Histories):
    """A steward's part of the service; every method refuses whoever is not one."""

    def __init__(self, config: Config, engine: sa.Engine) -> None:
        super().__init__(engine)
        self.config, self.ledger = config, Ledger(engine, grain=config.slot_seconds)

    def users(self, actor: Actor) -> list[UserView]:
        """All accounts."""
        actor.need("audit")
        with self.ledger.reading() as book:
            base = book.connection
            reach, joined = base.execute(sa.select(access)).all(), base.execute(sa.select(members))
            groups = joined.all()
            return [
                UserView(
                    name=row.name,
                    role=row.role,
                    disabled=row.disabled,
                    elsewhere=row.subject is not None,
                    datasets=tuple(sorted(each.dataset for each in reach if each.user == row.name)),
                    projects=tuple(
                        sorted(group.project for group in groups if group.user == row.name)
                    ),
                    budget=balance_view(book.balance("user", row.name)),
                )
                for row in base.execute(sa.select(users).order_by(users.c.name))
            ]

    def user(self, actor: Actor, name: str) -> UserView:
        """One account."""
        found = [each for each in self.users(actor) if each.name == name]
        if not found:
            raise NotThere("there is no such user.")
        return found[0]

    def add_user(self, actor: Actor, name: str, role: str, password: str) -> UserView:
        """A new account, whose first password must be changed; made by a person."""
        self._in_person(actor)
        with writing(self.engine) as connection:
            accounts.add_user(connection, name, role, password, first=True)
            note(connection, actor.name, "added user", name, role=role)
        return self.user(actor, name)

    def set_disabled(self, actor: Actor, name: str, disabled: bool) -> UserView:
        """Close an account, or open it again; a steward can not close their own."""
        actor.need("steward")
        if not disabled:
            self._in_person(actor)
        self.user(actor, name)
        if name == actor.name:
            raise Conflict("you can not close your own account.")
        with writing(self.engine) as connection:
            own = users.c.name == name
            connection.execute(sa.update(users).where(own).values(disabled=disabled))
            if disabled:
                accounts.end_access(connection, name)
            note(connection, actor.name, "closed user" if disabled else "opened user", name)
        return self.user(actor, name)

    def set_password(self, actor: Actor, name: str, password: str) -> None:
        """Another first password for a user who forgot theirs; given by a person."""
        self._in_person(actor)
        if self.user(actor, name).elsewhere:
            raise Conflict("this user signs in at the identity provider and has no password here.")
        with writing(self.engine) as connection:
            accounts.set_password(connection, name, password, first=True)
            note(connection, actor.name, "set password", name)

    def allow(self, actor: Actor, name: str, dataset: str, allowed: bool = True) -> UserView:
        """Open a data set to a user, or close it."""
        actor.need("steward")
        self.user(actor, name)
        if dataset not in self.config.datasets:
            raise NotThere("there is no such data set.")
        self._link(actor, access, name, "dataset", dataset, wanted=allowed)
        return self.user(actor, name)

    def join(self, actor: Actor, name: str, project: str, joined: bool = True) -> UserView:
        """Put a user in a project, or take them out; a project exists once it is named."""
        actor.need("steward")
        self.user(actor, name)
        if not NAME.fullmatch(project):
            raise InputError("a project is named as users are: small letters, digits, '.-_'.")
        self._link(actor, members, name, "project", project, wanted=joined)
        return self.user(actor, name)

    def projects(self, actor: Actor) -> list[BudgetState]:
        """All projects with members or a budget."""
        return [balance for balance in self.balances(actor) if balance.scope == "project"]

    def datasets(self, actor: Actor) -> list[PublicDataset]:
        """All data sets."""
        actor.need("audit")
        with self.ledger.reading() as book:
            return [dataset_view(book, dataset) for dataset in self.config.datasets.values()]

    def balances(self, actor: Actor) -> list[BudgetState]:
        """The budget of every user, data set and project."""
        actor.need("audit")
        with self.ledger.reading() as book:
            base = book.connection
            names: dict[Account, set[str]] = {
                "user": set(base.scalars(sa.select(users.c.name))),
                "dataset": set(self.config.datasets),
                "project": set(base.scalars(sa.select(members.c.project))),
            }
            for scope in SCOPES:
                column = entry_table.c[scope]
                named = base.scalars(sa.select(column).where(column != "").distinct())
                names[scope] |= set(named)
            return [
                balance_view(book.balance(scope, name))
                for scope in SCOPES
                for name in sorted(names[scope])
            ]

    def set_cap(self, actor: Actor, scope: Account, name: str, epsilon: str) -> BudgetState:
        """What an account may spend in all; 0 stops it."""
        amount = 0 if epsilon.strip() == "0" else micro(epsilon)
        return self._budget(actor, scope, name, "set cap", cap=amount)

    def grant(self, actor: Actor, scope: Account, name: str, epsilon: str) -> BudgetState:
        """More budget for an account; whole millionths of ε, rounded down."""
        return self._budget(actor, scope, name, "granted", more=int(exact(epsilon) * MICRO))

    def keys(self, actor: Actor) -> list[KeyView]:
        """All API keys."""
        actor.need("audit")
        with reading(self.engine) as connection:
            rows = connection.execute(sa.select(api_keys).order_by(api_keys.c.created))
            return [key_view(row) for row in rows]

    def revoke_key(self, actor: Actor, key: str) -> None:
        """End anyone's key."""
        actor.need("steward")
        accounts.revoke_key(self.engine, key)
        note(self.engine, actor.name, "revoked key", key)

    def jobs(self, actor: Actor, *, limit: int = 100) -> list[JobView]:
        """Everyone's jobs, the newest first; their answers are their owners'."""
        actor.need("audit")
        query = JOBS.order_by(job_table.c.created.desc()).limit(max(1, min(limit, MOST_ROWS)))
        with reading(self.engine) as connection:
            return [job_view(row) for row in connection.execute(query)]

    def _budget(
        self,
        actor: Actor,
        scope: Account,
        name: str,
        event: str,
        *,
        cap: int | None = None,
        more: int = 0,
    ) -> BudgetState:
        actor.need("steward")
        proposal = None
        with self.ledger.writing() as book:
            if scope == "user" and not book.connection.scalar(
                sa.select(users.c.name).where(users.c.name == name)
            ):
                raise NotThere("there is no such user.")
            if scope == "dataset" and name not in self.config.datasets:
                raise NotThere("there is no such data set.")
            before = book.balance(scope, name).cap
            wanted = before + more if cap is None else cap
            if wanted > before and self._needs_two(wanted - agreed_cap(book, scope, name)):
                proposal = propose(book, actor.name, scope, name, wanted)
            else:
                entry = book.set_cap(scope, name, wanted, note=f"by {actor.name}")
                note(book.connection, actor.name, event, f"{scope} {name}", entry=entry.seq)
            balance = balance_view(book.balance(scope, name))
        if proposal is not None:
            raise Proposed(
                f"this raises a budget by more than ε = {self.config.two_stewards_above:g} above "
                f"what two stewards agreed on, so it was written down as proposal {proposal[:8]} "
                "and waits for another steward."
            )
        return balance

    def _needs_two(self, more: int) -> bool:
        above = self.config.two_stewards_above
        return above > 0 and more > above * MICRO

    def _in_person(self, actor: Actor) -> None:
        actor.need_person("steward", minutes=self.config.fresh_minutes)

    def proposals(self, actor: Actor) -> list[ProposalView]:
        """The budgets that wait for a second steward."""
        actor.need("audit")
        with reading(self.engine) as connection:
            return waiting_proposals(connection)

    def decide(self, actor: Actor, proposal: str, *, approve: bool) -> BudgetState:
        """Approve another steward's proposal, or turn it down; its own maker may turn it down."""
        self._in_person(actor)
        with self.ledger.writing() as book:
            return balance_view(decide(book, actor.name, proposal, approve=approve))

    def _link(
        self, actor: Actor, table: sa.Table, user: str, column: str, value: str, *, wanted: bool
    ) -> None:
        """A row of a table of pairs, there or not there."""
        row = (table.c.user == user) & (table.c[column] == value)
        with writing(self.engine) as connection:
            there = connection.execute(sa.select(table).where(row)).first() is not None
            if wanted and not there:
                connection.execute(sa.insert(table).values(**{"user": user, column: value}))
            elif there and not wanted:
                connection.execute(sa.delete(table).where(row))
            event = f"{'gave' if wanted else 'took'} {column}"
            note(connection, actor.name, event, user, **{column: value})
