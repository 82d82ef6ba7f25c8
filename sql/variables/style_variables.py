"""Variables that say how dates, intervals and bytes are written: see `catalog.values.text_style`.

    SET DateStyle = SQL, DMY        SET IntervalStyle = iso_8601        SET bytea_output = escape
    SET DateStyle = YMD             the order alone: the form stays as it was

Dates are read in ISO 8601 alone, whatever the order, so that no text is a date of two meanings.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import TypeVar

from ...catalog.values.text_style import (
    BytesForm,
    DateForm,
    DateOrder,
    IntervalForm,
    TextStyle,
    style_of,
)
from .variables import SessionVariables, declare

E = TypeVar("E", bound=Enum)


@dataclass(frozen=True, slots=True)
class DateStyle:
    """The parts of SET DateStyle; None for a part that it leaves as it was."""

    form: DateForm | None = DateForm.ISO
    order: DateOrder | None = DateOrder.MDY


_FORMS = {form.value.lower(): form for form in DateForm}
_ORDERS = {
    "mdy": DateOrder.MDY, "us": DateOrder.MDY, "noneuro": DateOrder.MDY,
    "noneuropean": DateOrder.MDY, "dmy": DateOrder.DMY, "euro": DateOrder.DMY,
    "european": DateOrder.DMY, "ymd": DateOrder.YMD,
}  # fmt: skip


def _date_style(text: str) -> DateStyle:
    said = DateStyle(None, None)
    for part in text.replace("'", "").replace('"', "").split(","):
        word = part.strip().lower()
        form, order = _FORMS.get(word), _ORDERS.get(word)
        if word == "default":
            said = DateStyle(said.form or DateForm.ISO, said.order or DateOrder.MDY)
        elif form is not None and said.form in (None, form):
            german = DateOrder.DMY if form is DateForm.GERMAN else None
            said = DateStyle(form, said.order or german)
        elif order is not None and (said.order in (None, order) or said.form is DateForm.GERMAN):
            said = replace(said, order=order)
        else:
            raise ValueError("Write ISO, SQL, Postgres or German, and MDY, DMY or YMD.")
    return said


def _completed(before: DateStyle, said: DateStyle) -> DateStyle:
    return DateStyle(said.form or before.form, said.order or before.order)


def _shown(style: DateStyle) -> str:
    assert style.form is not None, style
    assert style.order is not None, style
    return f"{style.form.value}, {style.order.value}"


def _interval_form(text: str) -> IntervalForm:
    return _member({form.value: form for form in IntervalForm}, text)


def _bytes_form(text: str) -> BytesForm:
    return _member({form.value: form for form in BytesForm}, text)


def _member(members: Mapping[str, E], text: str) -> E:
    member = members.get(text.strip().strip("'").lower())
    if member is None:
        raise ValueError(f"Write one of {', '.join(members)}.")
    return member


DATE_STYLE = declare(
    "datestyle", DateStyle(), parse=_date_style, show=_shown, completed=_completed,
    title="DateStyle",
    description="how dates and timestamps are written; they are read in ISO 8601 alone",
)  # fmt: skip
INTERVAL_STYLE = declare(
    "intervalstyle", IntervalForm.POSTGRES, parse=_interval_form, show=lambda form: form.value,
    title="IntervalStyle",
    description="how intervals are written",
)  # fmt: skip
BYTEA_OUTPUT = declare(
    "bytea_output", BytesForm.HEX, parse=_bytes_form, show=lambda form: form.value,
    description="how BYTES are written",
)  # fmt: skip


def text_style(variables: SessionVariables) -> TextStyle:
    """Returns the style in which the session writes dates, intervals and bytes."""
    dates = variables.get(DATE_STYLE)
    assert dates.form is not None, dates
    assert dates.order is not None, dates
    return style_of(
        dates.form, dates.order, variables.get(INTERVAL_STYLE), variables.get(BYTEA_OUTPUT)
    )
