"""Without its setting tracing costs nothing: nothing is imported, and nothing is wrapped."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from app.platform.jobs.ordering_sql import parameters_of
from app.platform.jobs.orders import Order
from app.platform.observability.spans import CARRIED, TRACEPARENT, model_call, tracing

ROOT = Path(__file__).parents[2]


def test_service_worker_and_commands_load_no_sdk_and_nothing_of_ours() -> None:
    # FastAPI itself looks for the small API, where that is installed.
    code = """
import sys
import app.main, app.worker, app.cli.main, app.cli.serve, app.platform.observability.spans
names = ("opentelemetry.sdk", "opentelemetry.exporter", "app.platform.observability.otel")
print(*(name for name in sys.modules if name.startswith(names)))
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT, capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    assert done.stdout.strip() == ""


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
