"""A question is one thing, however it came."""

from dataclasses import fields
from fractions import Fraction

import pytest

from countwise.errors import InputError
from countwise.server.pages.claimform import EMPTY, ClaimForm, form_of
from countwise.server.request_bodies import QuestionBody
from countwise.verification.question import Question, read_question

ASKED = Question(
    dataset="workers",
    model="hours ~ age",
    claim="age > 0",
    epsilon=Fraction(1, 3),
    partitions=25,
    family="poisson",
    mechanism="laplace",
    alpha=(1.0, 0.5, 2.0),
    project="p",
)


def test_forms_bodies_and_stored_text_are_the_same_question():
    assert len({str(getattr(ASKED, f.name) == f.default) for f in fields(Question)}) == 1
    sent = ASKED.to_dict()
    found = [
        read_question(sent),
        QuestionBody.model_validate(sent).question(),
        form_of(ASKED).question(),
    ]
    assert [each.to_dict() for each in found] == [sent] * 3
    assert {each.fingerprint for each in found} == {ASKED.fingerprint}


def test_what_is_left_out_is_the_same_everywhere():
    least = {"dataset": "workers", "model": "hours ~ age", "claim": "age > 0", "epsilon": "1"}
    form = ClaimForm(values=EMPTY | least)
    expected = Question(**least)
    assert QuestionBody.model_validate(least).question() == form.question() == expected


def test_an_epsilon_written_otherwise_is_the_same_and_no_number_is_refused():
    one, other = (Question(model="y ~ 1", claim="x > 0", epsilon=e) for e in ("0.50", "1/2"))
    assert one.fingerprint == other.fingerprint
    with pytest.raises(InputError, match="epsilon must be"):
        Question(model="y ~ 1", claim="x > 0", epsilon="half").to_dict()
