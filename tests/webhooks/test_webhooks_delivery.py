"""What a receiver gets, and what is made of its answers; the clock is the test's."""

import asyncio
from datetime import timedelta

import pytest
from httpx import AsyncClient
from standardwebhooks.webhooks import Webhook, WebhookVerificationError
from webhook_desk import Desk

from app.governance.webhooks.delivery import LOST_AFTER, Timeouts
from app.governance.webhooks.sender import (
    DELAYS,
    GIVE_UP_AFTER,
    LONGEST_WAIT,
    LULL,
    MOST_ATTEMPTS,
    SecretBox,
)
from app.governance.webhooks.service import BOTH_SECRETS_SIGN, WebhookService
from app.governance.webhooks.targets import Targets, resolve
from app.identity.tenants.access import Access, Principal
from app.runtime import Runtime
from tests.support.api import ok
from tests.support.patience import PATIENCE
from tests.support.service import SECRET_KEY
from tests.support.webhook_receiver import (
    Behaviour,
    Receiver,
    accepting_and_falling_silent,
    accepting_without_end,
    answering,
    hanging_up,
    held,
    slow,
    talking_nonsense,
)


class TestRequests:
    async def test_an_event_arrives_signed(self, desk: Desk, receiver: Receiver) -> None:
        await desk.happen()

        assert await desk.deliver() == {"delivered": 1}

        [request] = receiver.requests
        row = await desk.delivery()
        event = request.verified(desk.secret)
        assert (request.method, request.path) == ("POST", "/hook")
        assert request.headers["content-type"] == "application/json"
        assert request.event_id == event["id"] == row["event_id"]
        assert list(event) == ["id", "type", "create_time", "data"]
        assert event["type"] == "memory.added"
        assert event["data"] == {"memory_id": "mem_0", "user_id": "ana", "version": 1}
        assert (row["status"], row["attempts"], row["response_status"]) == ("delivered", 1, 200)
        assert desk.counted == {"delivered": 1}

    async def test_whatever_is_changed_on_the_way_is_noticed(
        self, desk: Desk, receiver: Receiver
    ) -> None:
        await desk.happen()
        await desk.deliver()
        [request] = receiver.requests
        headers = dict(request.headers)
        moment = int(headers["webhook-timestamp"])

        for body, changed in (
            (request.body.replace(b"mem_0", b"mem_1"), headers),
            (request.body + b" ", headers),
            (request.body, headers | {"webhook-id": "evt_other"}),
            (request.body, headers | {"webhook-timestamp": str(moment - 1)}),
            (request.body, headers | {"webhook-timestamp": str(moment - 3600)}),
        ):
            with pytest.raises(WebhookVerificationError):
                Webhook(desk.secret).verify(body, changed)
        with pytest.raises(WebhookVerificationError):
            Webhook("whsec_" + "A" * 44).verify(request.body, headers)

    async def test_after_a_rotation_both_secrets_sign_for_a_day(
        self, desk: Desk, receiver: Receiver, runtime: Runtime
    ) -> None:
        service = WebhookService(
            runtime.work, Targets(private=True), SecretBox([SECRET_KEY]), desk.clock
        )
        caller = Principal(Access(desk.tenant_id), "key", frozenset({"admin"}), {})
        rotated = await service.rotate_secret(caller, desk.webhook_id)
        assert rotated.secret is not None
        await desk.happen()
        await desk.deliver()

        receiver.requests[0].verified(desk.secret)
        receiver.requests[0].verified(rotated.secret)
        desk.clock.pass_by(seconds=BOTH_SECRETS_SIGN.total_seconds() - 60)
        await desk.happen()
        await desk.deliver()
        assert len(receiver.requests[1].headers["webhook-signature"].split()) == 2
        desk.clock.pass_by(seconds=60)
        await desk.happen()
        await desk.deliver()
        assert len(receiver.requests[2].headers["webhook-signature"].split()) == 1

    async def test_events_arrive_in_order_over_one_connection(
        self, desk: Desk, receiver: Receiver
    ) -> None:
        await desk.happen(30)

        assert await desk.deliver() == {"delivered": 30}

        told = [request.event["data"]["memory_id"] for request in receiver.requests]
        assert told == [f"mem_{number}" for number in range(30)]
        assert receiver.connections == 1

    async def test_the_address_keeps_its_query_and_the_log_never_shows_it(
        self,
        desk: Desk,
        admin: AsyncClient,
        receiver: Receiver,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        url = f"{receiver.url}/%E6%94%AF?token=geheim&b=2"
        ok(await admin.patch(f"/webhooks/{desk.webhook_id}", json={"url": url}))
        receiver.script(answering(500))
        await desk.happen(2)
        await desk.deliver()

        assert receiver.requests[0].path == "/hook/%E6%94%AF?token=geheim&b=2"
        lines = "".join(capsys.readouterr())
        assert "webhook_attempted" in lines
        assert "geheim" not in lines
        assert "mem_0" not in lines

    async def test_nothing_is_sent_when_nothing_is_due(
        self, desk: Desk, receiver: Receiver
    ) -> None:
        assert await desk.deliver() == {}
        assert await desk.deliverer().deliver(desk.tenant_id, "whk_missing") == {}
        assert receiver.connections == 0


class TestAnswers:
    @pytest.mark.parametrize("status", [200, 201, 202, 204, 226, 299])
    async def test_any_2xx_is_a_success(self, desk: Desk, receiver: Receiver, status: int) -> None:
        receiver.otherwise = answering(status)
        await desk.happen()

        assert await desk.deliver() == {"delivered": 1}

        row = await desk.delivery()
        assert (row["response_status"], row["error_code"]) == (status, None)
        assert row["next_attempt_at"] is None

    @pytest.mark.parametrize(
        ("behaviour", "status", "code"),
        [
            (answering(199), 199, "http_status"),
            (answering(300), 300, "redirect_refused"),
            (answering(304), 304, "redirect_refused"),
            (answering(400), 400, "http_status"),
            (answering(404), 404, "http_status"),
            (answering(429), 429, "http_status"),
            (answering(500, b"x" * 100_000), 500, "http_status"),
            (answering(599), 599, "http_status"),
            (hanging_up, None, "connection_closed"),
            (talking_nonsense, None, "connection_closed"),
            (slow(5), None, "timeout"),
        ],
    )
    async def test_anything_else_is_tried_again(
        self,
        desk: Desk,
        receiver: Receiver,
        behaviour: Behaviour,
        status: int | None,
        code: str,
    ) -> None:
        receiver.script(behaviour)
        await desk.happen()
        silent = code == "timeout" or status == 199
        timeouts = Timeouts(attempt=timedelta(seconds=0.5 if silent else PATIENCE))

        outcome = await desk.deliver(timeouts=timeouts)

        row = await desk.delivery()
        if status == 199:
            # An interim answer, behind which no real one comes.
            status, code = None, "timeout"
        assert outcome == {"failed": 1}
        assert (row["response_status"], row["error_code"]) == (status, code)
        assert (row["status"], row["attempts"]) == ("pending", 1)
        desk.clock.pass_by(seconds=11)
        assert await desk.deliver() == {"delivered": 1}
        assert len(set(receiver.event_ids)) == 1
        assert desk.counted == {"failed": 1, "delivered": 1}

    async def test_nobody_is_there(self, desk: Desk, admin: AsyncClient) -> None:
        url = "http://127.0.0.1:9/"
        ok(await admin.patch(f"/webhooks/{desk.webhook_id}", json={"url": url}))
        await desk.happen()

        assert await desk.deliver() == {"failed": 1}

        assert (await desk.delivery())["error_code"] == "connection_failed"

    async def test_a_private_address_is_refused_at_the_time_of_delivery(
        self, desk: Desk, receiver: Receiver, admin: AsyncClient
    ) -> None:
        """The deployment has forbidden them, or plain HTTP, since the webhook was made."""

        async def public(_host: str, _port: int) -> list[str]:
            raise AssertionError("plain HTTP needs no address to be refused")

        tls = receiver.url.replace("http:", "https:")
        for number, (url, resolver) in enumerate(((receiver.url, public), (tls, resolve)), start=1):
            ok(await admin.patch(f"/webhooks/{desk.webhook_id}", json={"url": url}))
            await desk.happen()
            targets = Targets(private=False, resolver=resolver)

            assert await desk.deliver(targets=targets) == {"failed": 1}

            codes = [row["error_code"] for row in await desk.deliveries()]
            assert codes == ["address_refused"] * number
        assert receiver.connections == 0

    async def test_a_redirect_is_not_followed(self, desk: Desk, receiver: Receiver) -> None:
        for status in (301, 302, 303, 307, 308):
            receiver.script(answering(status, location=f"{receiver.url}/elsewhere"))
        await desk.happen()
        for _ in range(5):
            await desk.deliver()
            desk.clock.pass_by(hours=3)

        assert {request.path for request in receiver.requests} == {"/hook"}
        assert (await desk.delivery())["error_code"] == "redirect_refused"

    @pytest.mark.parametrize("behaviour", [accepting_without_end, accepting_and_falling_silent])
    async def test_what_follows_the_status_changes_nothing(
        self, desk: Desk, receiver: Receiver, behaviour: Behaviour
    ) -> None:
        receiver.script(behaviour)
        await desk.happen(2)

        # Of an answer that has no end, nobody waits for it: no limit of time ends the attempt.
        endless = behaviour is accepting_without_end
        attempt = timedelta(seconds=PATIENCE if endless else 1.5)

        assert await desk.deliver(timeouts=Timeouts(attempt=attempt)) == {"delivered": 2}
        first, _ = await desk.deliveries()
        assert endless or first["duration_ms"] >= 1500

    async def test_a_receiver_that_is_gone_is_told_nothing_more(
        self, desk: Desk, receiver: Receiver, admin: AsyncClient
    ) -> None:
        receiver.script(answering(410))
        await desk.happen(3)

        assert await desk.deliver() == {"dead": 1}

        first, *rest = await desk.deliveries()
        assert (first["status"], first["error_code"]) == ("dead", "gone")
        assert {row["status"] for row in rest} == {"pending"}
        path = f"/webhooks/{desk.webhook_id}"
        shown = ok(await admin.get(path))
        assert (shown["enabled"], shown["disabled_reason"], shown["version"]) == (False, "gone", 2)
        await desk.happen()
        assert len(await desk.deliveries()) == 3
        assert await desk.deliver() == {}

        shown = ok(await admin.patch(path, json={"enabled": True}))

        assert (shown["enabled"], shown["disabled_reason"]) == (True, None)
        assert (shown["failing_since"], shown["paused_until"]) == (None, None)
        assert await desk.deliver() == {"delivered": 2}


class TestRetries:
    @pytest.mark.parametrize("attempt", range(1, MOST_ATTEMPTS))
    async def test_each_attempt_has_its_time_and_none_comes_before(
        self, desk: Desk, receiver: Receiver, attempt: int
    ) -> None:
        receiver.otherwise = answering(500)
        await desk.happen()
        desk.clock.stop()
        for number in range(attempt - 1):
            await desk.deliver()
            desk.clock.pass_by(seconds=DELAYS[number].total_seconds() + 1)
        await desk.deliver()

        row = await desk.delivery()
        waits = row["next_attempt_at"] - row["attempted_at"]
        assert row["attempts"] == attempt
        assert waits == DELAYS[attempt - 1]
        desk.clock.pass_by(seconds=DELAYS[attempt - 1].total_seconds() - 1)
        assert await desk.deliver() == {}
        desk.clock.pass_by(seconds=2)
        assert sum((await desk.deliver()).values()) == 1

    async def test_after_the_last_attempt_the_delivery_is_dead(
        self, desk: Desk, receiver: Receiver
    ) -> None:
        receiver.otherwise = answering(500)
        await desk.happen()
        outcomes = []
        for delay in (*DELAYS, timedelta(0)):
            outcomes.append(await desk.deliver())
            desk.clock.pass_by(seconds=delay.total_seconds() + 1)

        row = await desk.delivery()
        assert outcomes == [{"failed": 1}] * (MOST_ATTEMPTS - 1) + [{"dead": 1}]
        assert (row["status"], row["attempts"]) == ("dead", MOST_ATTEMPTS)
        assert row["next_attempt_at"] is None
        desk.clock.pass_by(days=9)
        assert await desk.deliver() == {}
        assert len(set(receiver.event_ids)) == 1
        assert desk.counted == {"failed": MOST_ATTEMPTS - 1, "dead": 1}

    @pytest.mark.parametrize(
        ("asked", "waited"), [("3", 10), ("90", 90), ("99999999", LONGEST_WAIT.total_seconds())]
    )
    async def test_retry_after_is_honoured_within_bounds(
        self, desk: Desk, receiver: Receiver, asked: str, waited: float
    ) -> None:
        receiver.script(answering(429, retry_after=asked))
        await desk.happen()
        desk.clock.stop()

        await desk.deliver()

        row = await desk.delivery()
        assert (row["next_attempt_at"] - row["attempted_at"]).total_seconds() == waited

    async def test_a_receiver_that_asks_for_time_is_left_alone_altogether(
        self, desk: Desk, receiver: Receiver
    ) -> None:
        receiver.script(answering(503, retry_after="90"))
        await desk.happen(3)
        desk.clock.stop()

        assert await desk.deliver() == {"failed": 1}
        desk.clock.pass_by(seconds=89)
        assert await desk.deliver() == {}
        desk.clock.pass_by(seconds=2)
        assert await desk.deliver() == {"delivered": 3}

    async def test_one_bad_event_does_not_hold_up_those_behind_it(
        self, desk: Desk, receiver: Receiver
    ) -> None:
        receiver.script(answering(500), answering(500))
        await desk.happen(5)

        assert await desk.deliver() == {"failed": 2, "delivered": 3}
        assert (await desk.webhook())["failures"] == 0
        desk.clock.pass_by(seconds=11)
        assert await desk.deliver() == {"delivered": 2}

    async def test_a_receiver_that_is_down_is_tried_three_times_and_then_paused(
        self, desk: Desk, receiver: Receiver
    ) -> None:
        receiver.otherwise = answering(500)
        await desk.happen(20)
        desk.clock.stop()

        assert await desk.deliver() == {"failed": 3}

        webhook = await desk.webhook()
        assert webhook["failures"] == 3
        assert await desk.deliver() == {}
        desk.clock.pass_by(seconds=11)
        # One attempt, and a longer pause.
        assert await desk.deliver() == {"failed": 1}
        desk.clock.pass_by(seconds=11)
        assert await desk.deliver() == {}
        desk.clock.pass_by(seconds=10)
        receiver.otherwise = answering(200)
        assert (await desk.deliver())["delivered"] >= 16
        webhook = await desk.webhook()
        assert (webhook["failures"], webhook["failing_since"]) == (0, None)
        assert webhook["paused_until"] is None

    async def test_a_test_event_ends_a_pause(
        self, desk: Desk, receiver: Receiver, admin: AsyncClient
    ) -> None:
        receiver.script(*[answering(500)] * 3)
        await desk.happen(3)
        await desk.deliver()
        assert await desk.deliver() == {}

        ok(await admin.post(f"/webhooks/{desk.webhook_id}/test"), 202)

        assert await desk.deliver() == {"delivered": 1}
        assert receiver.requests[-1].event["type"] == "webhook.test"

    @pytest.mark.parametrize(("short_of", "enabled"), [(1, True), (-1, False)])
    async def test_three_days_without_a_success_disable_a_webhook(
        self, desk: Desk, receiver: Receiver, short_of: int, enabled: bool
    ) -> None:
        receiver.otherwise = answering(500)
        await desk.happen()
        await desk.deliver()
        for hours in (24, 24):
            desk.clock.pass_by(hours=hours)
            await desk.deliver()

        since = (await desk.webhook())["failing_since"]
        desk.clock.pass_by(
            seconds=(since + GIVE_UP_AFTER - desk.clock()).total_seconds() - short_of
        )
        await desk.deliver()

        webhook = await desk.webhook()
        assert webhook["enabled"] is enabled
        assert webhook["disabled_reason"] == (None if enabled else "failing")

    async def test_failures_far_apart_are_not_one_long_failure(
        self, desk: Desk, receiver: Receiver
    ) -> None:
        receiver.script(answering(500))
        await desk.happen()
        await desk.deliver()
        first = (await desk.webhook())["failing_since"]

        desk.clock.pass_by(seconds=(LULL + GIVE_UP_AFTER).total_seconds())
        receiver.script(answering(500))
        await desk.deliver()

        webhook = await desk.webhook()
        assert webhook["enabled"] is True
        assert webhook["failing_since"] - first > GIVE_UP_AFTER


class TestOnRequest:
    async def test_a_test_event_takes_the_same_way(
        self, desk: Desk, receiver: Receiver, admin: AsyncClient
    ) -> None:
        path = f"/webhooks/{desk.webhook_id}"
        ok(await admin.patch(path, json={"events": ["job.dead"]}))

        owed = ok(await admin.post(f"{path}/test"), 202)

        assert (owed["event_type"], owed["status"]) == ("webhook.test", "pending")
        assert await desk.deliver() == {"delivered": 1}
        event = receiver.requests[0].verified(desk.secret)
        assert event["id"] == owed["event_id"]
        assert event["data"] == {"webhook_id": desk.webhook_id}

    @pytest.mark.parametrize("status", [200, 410])
    async def test_an_event_is_sent_again_under_the_same_id(
        self, desk: Desk, receiver: Receiver, admin: AsyncClient, status: int
    ) -> None:
        receiver.script(answering(status))
        await desk.happen()
        await desk.deliver()
        path = f"/webhooks/{desk.webhook_id}"
        ok(await admin.patch(path, json={"enabled": True}))
        first = await desk.delivery()

        again = ok(await admin.post(f"{path}/deliveries/{first['delivery_id']}/redeliver"), 202)

        assert again["delivery_id"] != first["delivery_id"]
        assert (again["status"], again["attempts"]) == ("pending", 0)
        assert await desk.deliver() == {"delivered": 1}
        one, two = receiver.requests
        assert one.event_id == two.event_id == again["event_id"]
        assert one.body == two.body
        assert (await desk.deliveries())[1]["user_id"] == "ana"


class TestWorkers:
    async def test_two_workers_deliver_each_event_once(
        self, desk: Desk, receiver: Receiver
    ) -> None:
        receiver.otherwise = slow(0.005)
        await desk.happen(60)

        outcomes = await asyncio.gather(*(desk.deliver() for _ in range(4)))

        assert sum(outcome.get("delivered", 0) for outcome in outcomes) == 60
        assert sum(1 for outcome in outcomes if outcome) > 1
        assert len(receiver.requests) == len(set(receiver.event_ids)) == 60
        assert {row["attempts"] for row in await desk.deliveries()} == {1}

    async def test_nothing_is_open_while_a_receiver_thinks(
        self, desk: Desk, receiver: Receiver, admin: AsyncClient
    ) -> None:
        """Its webhook can be deleted meanwhile, and what came of it is nobody's business."""
        released = asyncio.Event()
        receiver.script(held(released))
        await desk.happen()
        sending = asyncio.create_task(desk.deliver())
        await receiver.received(1)

        ok(await admin.delete(f"/webhooks/{desk.webhook_id}"), 204)
        released.set()

        assert await sending == {"delivered": 1}
        assert await desk.deliveries() == []

    async def test_what_is_under_way_is_not_sent_again_until_it_counts_as_lost(
        self, desk: Desk, receiver: Receiver
    ) -> None:
        released = asyncio.Event()
        receiver.script(held(released))
        await desk.happen()
        desk.clock.stop()
        sending = asyncio.create_task(desk.deliver())
        await receiver.received(1)

        desk.clock.pass_by(seconds=LOST_AFTER.total_seconds() - 1)
        assert await desk.deliver() == {}
        desk.clock.pass_by(seconds=2)
        assert await desk.deliver() == {"delivered": 1}
        released.set()
        assert await sending == {"delivered": 1}
        assert len(set(receiver.event_ids)) == 1
        assert (await desk.delivery())["attempts"] == 2

    async def test_a_late_report_of_a_failure_changes_nothing(
        self, desk: Desk, receiver: Receiver
    ) -> None:
        """Another worker is trying by then, or has succeeded."""
        receiver.script(slow(60), slow(0.3))
        await desk.happen()
        short = Timeouts(attempt=timedelta(seconds=0.2))
        late = asyncio.create_task(desk.deliver(timeouts=short))
        await receiver.received(1)
        desk.clock.pass_by(seconds=LOST_AFTER.total_seconds() + 1)
        second = asyncio.create_task(desk.deliver())
        await receiver.received(2)

        assert await late == {"failed": 1}
        row = await desk.delivery()
        assert (row["attempts"], row["error_code"]) == (2, None)
        assert await second == {"delivered": 1}
        assert (await desk.delivery())["status"] == "delivered"

    async def test_an_event_that_takes_every_worker_along_dies_too(
        self, desk: Desk, receiver: Receiver
    ) -> None:
        await desk.happen()
        released = asyncio.Event()
        receiver.otherwise = held(released)
        for _ in range(MOST_ATTEMPTS):
            sending = asyncio.create_task(desk.deliver())
            await receiver.received(len(receiver.requests) + 1)
            sending.cancel()
            await asyncio.gather(sending, return_exceptions=True)
            desk.clock.pass_by(seconds=LOST_AFTER.total_seconds() + 1)

        assert await desk.deliver() == {"dead": 1}

        row = await desk.delivery()
        assert (row["status"], row["error_code"]) == ("dead", "worker_lost")
        assert len(receiver.requests) == MOST_ATTEMPTS

    async def test_a_run_ends_after_a_while_and_leaves_the_rest(
        self, desk: Desk, receiver: Receiver
    ) -> None:
        receiver.otherwise = slow(0.05)
        await desk.happen(20)

        done = await desk.deliver(timeouts=Timeouts(run=timedelta(seconds=0.3)))

        assert 1 <= done["delivered"] < 20
        assert (await desk.deliver())["delivered"] == 20 - done["delivered"]

    @pytest.mark.parametrize(
        ("job_timeout", "attempt", "run"),
        [(5, 5 / 3, 5 / 3), (29, 29 / 3, 29 / 3), (30, 10, 10), (300, 10, 10)],
    )
    def test_a_run_and_its_last_attempt_fit_into_a_job(
        self, job_timeout: float, attempt: float, run: float
    ) -> None:
        timeouts = Timeouts.within(timedelta(seconds=job_timeout))

        assert timeouts.attempt.total_seconds() == pytest.approx(attempt)
        assert timeouts.run.total_seconds() == pytest.approx(run)
        assert timeouts.attempt < LOST_AFTER
