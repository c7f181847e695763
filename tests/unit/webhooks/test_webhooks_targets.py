"""Which addresses may be called, asked of numbers, of names, and of the socket itself."""

import shutil
import ssl
import subprocess
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

import pytest

from app.governance.webhooks.schemas import TargetRefusedError
from app.governance.webhooks.sender import Result, Sender
from app.governance.webhooks.targets import (
    GuardedNetwork,
    RefusedAddressError,
    Resolver,
    Targets,
    UnresolvedError,
    is_public,
)
from tests.support.webhook_receiver import Receiver, webhook_receiver

PUBLIC = [
    "8.8.8.8",
    "93.184.216.34",
    "172.15.255.255",
    "172.32.0.0",
    "100.63.255.255",
    "100.128.0.0",
    "169.253.255.255",
    "223.255.255.255",
    "2606:4700:4700::1111",
    "2a00:1450:4001:80b::200e",
    "::ffff:8.8.8.8",
    "64:ff9b::808:808",
    "2002:808:808::1",
]

PRIVATE = [
    "0.0.0.0",
    "0.1.2.3",
    "10.0.0.1",
    "100.64.0.0",
    "100.100.100.200",
    "100.127.255.255",
    "127.0.0.1",
    "127.255.255.254",
    "168.63.129.16",
    "169.254.169.254",
    "169.254.170.2",
    "172.16.0.1",
    "172.31.255.255",
    "192.0.0.192",
    "192.0.2.1",
    "192.88.99.1",
    "192.168.1.1",
    "198.18.0.1",
    "198.51.100.1",
    "203.0.113.1",
    "224.0.0.1",
    "239.255.255.255",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::127.0.0.1",
    "::ffff:10.0.0.1",
    "::ffff:127.0.0.1",
    "::ffff:169.254.169.254",
    "::ffff:0:127.0.0.1",
    "64:ff9b::7f00:1",
    "64:ff9b::a9fe:a9fe",
    "64:ff9b:1::1",
    "100::1",
    "2001::1",
    "2001:db8::1",
    "2002:7f00:1::1",
    "2002:a00:1::1",
    "3fff::1",
    "5f00::1",
    "fc00::1",
    "fd00:ec2::254",
    "fe80::1",
    "fe80::1%eth0",
    "fec0::1",
    "ff02::1",
    "2606:4700:4700::1111%eth0",
]

NO_ADDRESS = [
    "",
    "localhost",
    "127.1",
    "0x7f000001",
    "2130706433",
    "0177.0.0.1",
    "1.2.3.4.5",
    "[::1]",
]


def saying(*answers: Sequence[str]) -> Resolver:
    """A name server that gives the next of `answers` each time, the last for ever."""
    left = list(answers)

    async def look_up(_host: str, _port: int) -> Sequence[str]:
        return left.pop(0) if len(left) > 1 else left[0]

    return look_up


async def knowing_nothing(_host: str, _port: int) -> Sequence[str]:
    raise OSError("no such name")


class TestAddresses:
    @pytest.mark.parametrize("address", PUBLIC)
    def test_a_host_on_the_internet_may_be_called(self, address: str) -> None:
        assert is_public(address)

    @pytest.mark.parametrize("address", PRIVATE)
    def test_anything_else_may_not(self, address: str) -> None:
        assert not is_public(address)

    @pytest.mark.parametrize("text", NO_ADDRESS)
    def test_what_is_no_address_is_not_public(self, text: str) -> None:
        assert not is_public(text)


class TestChecks:
    @pytest.mark.parametrize("address", PRIVATE)
    async def test_a_name_that_leads_inside_is_refused(self, address: str) -> None:
        targets = Targets(private=False, resolver=saying([address]))

        with pytest.raises(TargetRefusedError, match="private network") as raised:
            await targets.check("https://hooks.example.com/x?token=secret")

        assert raised.value.members["errors"] == [
            {"location": ["body", "url"], "detail": "must not lead into a private network"}
        ]
        assert address not in raised.value.detail

    @pytest.mark.parametrize(
        "url",
        [
            "https://127.0.0.1/",
            "https://127.1/",
            "https://2130706433/",
            "https://0x7f.1/",
            "https://0177.0.0.1/",
            "https://[::1]/",
            "https://[::ffff:127.0.0.1]/",
            "https://localhost:9000/",
            "https://0/",
            "https://169.254.169.254/latest/meta-data/",
        ],
    )
    async def test_the_machines_own_resolver_sees_through_spellings(self, url: str) -> None:
        with pytest.raises(TargetRefusedError):
            await Targets(private=False).check(url)

    async def test_one_bad_address_among_good_ones_is_enough(self) -> None:
        targets = Targets(private=False, resolver=saying(["8.8.8.8", "10.0.0.1"]))

        with pytest.raises(TargetRefusedError):
            await targets.check("https://hooks.example.com/")

    async def test_plain_http_is_refused(self) -> None:
        targets = Targets(private=False, resolver=saying(["8.8.8.8"]))

        with pytest.raises(TargetRefusedError, match="https"):
            await targets.check("http://hooks.example.com/")
        await targets.check("https://hooks.example.com/")

    async def test_a_name_that_does_not_resolve_yet_passes(self) -> None:
        await Targets(private=False, resolver=knowing_nothing).check("https://hooks.example.com/")
        await Targets(private=False).check(f"https://{'a' * 64}.example.com/")

    @pytest.mark.parametrize("address", PRIVATE)
    async def test_a_deployment_may_allow_all_of_it(self, address: str) -> None:
        targets = Targets(private=True, resolver=saying([address]))

        await targets.check("http://hooks.example.com/")

        assert await targets.addresses("hooks.example.com", 80) == [address]


@cache
def authorities() -> ssl.SSLContext:
    """Those of this machine; reading them takes 20 ms."""
    return ssl.create_default_context()


async def post(targets: Targets, url: str, trusted: ssl.SSLContext | None = None) -> Result:
    async with Sender.opened(targets, trusted or authorities(), seconds=5) as sender:
        return await sender.post(url, b"{}", {}, at=datetime.now(UTC))


class TestSocket:
    @pytest.mark.parametrize("address", PRIVATE)
    async def test_a_name_that_changed_since_it_was_checked_is_not_connected_to(
        self, address: str
    ) -> None:
        targets = Targets(private=False, resolver=saying(["8.8.8.8"], [address]))
        await targets.check("https://hooks.example.com/")

        assert (await post(targets, "https://hooks.example.com/")).error_code == "address_refused"

    async def test_what_was_refused_never_saw_a_connection(self, receiver: Receiver) -> None:
        url = f"http://hooks.example.com:{receiver.port}/"
        refusing = Targets(private=False, resolver=saying(["127.0.0.1"]))
        allowing = Targets(private=True, resolver=saying(["127.0.0.1"]))

        assert (await post(refusing, url)).error_code == "address_refused"
        assert receiver.connections == 0
        assert (await post(allowing, url)).error_code is None
        assert receiver.connections == 1

    async def test_the_name_server_is_asked_once_for_a_connection(self, receiver: Receiver) -> None:
        """A second question could be answered with another address."""
        url = f"http://hooks.example.com:{receiver.port}/"
        targets = Targets(private=True, resolver=saying(["127.0.0.1"], ["192.0.2.1"]))

        assert (await post(targets, url)).error_code is None
        assert receiver.requests[0].headers["host"] == f"hooks.example.com:{receiver.port}"

    async def test_the_next_address_is_tried_when_the_first_does_not_answer(
        self, receiver: Receiver
    ) -> None:
        url = f"http://hooks.example.com:{receiver.port}/"
        targets = Targets(private=True, resolver=saying(["127.0.0.2", "127.0.0.1"]))

        assert (await post(targets, url)).error_code is None

    async def test_a_name_nobody_knows_is_a_failure_like_others(self) -> None:
        targets = Targets(private=False, resolver=knowing_nothing)

        assert (await post(targets, "https://x.example.com/")).error_code == "name_not_resolved"
        with pytest.raises(UnresolvedError):
            await Targets(private=True, resolver=saying([])).addresses("x", 1)

    async def test_a_socket_of_the_machine_is_no_target(self) -> None:
        network = GuardedNetwork(Targets(private=True))

        with pytest.raises(RefusedAddressError):
            await network.connect_unix_socket("/run/docker.sock")


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate and its key in one file, for hooks.example.com."""
    folder = tmp_path_factory.mktemp("tls")
    subprocess.run(
        [
            "openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
            "-subj", "/CN=hooks.example.com", "-addext", "subjectAltName=DNS:hooks.example.com",
            "-keyout", str(folder / "both.pem"), "-out", str(folder / "certificate.pem"),
        ],
        check=True,
        capture_output=True,
    )  # fmt: skip
    with (folder / "both.pem").open("a") as both:
        both.write((folder / "certificate.pem").read_text())
    return folder / "both.pem"


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the certificate")
class TestTLS:
    @pytest.fixture
    def server(self, certificate: Path) -> ssl.SSLContext:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(certificate)
        return context

    async def test_the_certificate_is_held_against_the_name_not_the_address(
        self, certificate: Path, server: ssl.SSLContext
    ) -> None:
        trusted = ssl.create_default_context(cafile=certificate.with_name("certificate.pem"))
        targets = Targets(private=True, resolver=saying(["127.0.0.1"]))
        async with webhook_receiver(server) as receiver:
            right = await post(targets, f"https://hooks.example.com:{receiver.port}/", trusted)
            wrong = await post(targets, f"https://other.example.com:{receiver.port}/", trusted)

        assert (right.error_code, right.response_status) == (None, 200)
        assert wrong.error_code == "tls_failed"
        assert len(receiver.requests) == 1

    async def test_a_certificate_nobody_vouches_for_is_refused(
        self, server: ssl.SSLContext
    ) -> None:
        targets = Targets(private=True, resolver=saying(["127.0.0.1"]))
        async with webhook_receiver(server) as receiver:
            outcome = await post(targets, f"https://hooks.example.com:{receiver.port}/")

        assert outcome.error_code == "tls_failed"
        assert receiver.requests == []
