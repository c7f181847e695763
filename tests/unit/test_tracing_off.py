"""Without its setting tracing wraps nothing; that it loads nothing, `test_imports.py` shows."""

import json

import pytest

from app.platform.jobs.ordering_sql import parameters_of
from app.platform.jobs.orders import Order
from app.platform.observability.spans import CARRIED, TRACEPARENT, model_call, tracing


def test_order_carries_nothing() -> None:
    order = Order("extract", "s1", payload={"end": True})

    assert tracing() is None
    assert json.loads(str(parameters_of(order, "t", "job")[10])) == {"end": True}


def test_order_carries_the_trace_in_which_it_is_made() -> None:
    token = TRACEPARENT.set("00-a-b-01")
    try:
        [payload] = [parameters_of(Order("extract", "s1", payload={"end": True}), "t", "j")[10]]
    finally:
        TRACEPARENT.reset(token)

    assert json.loads(str(payload)) == {"end": True, CARRIED: "00-a-b-01"}


def test_call_of_a_model_is_not_watched() -> None:
    with model_call("chat", "m") as span:
        span.used(1, 2)
    with pytest.raises(ValueError, match="as it was"), model_call("chat", "m"):
        raise ValueError("as it was")
