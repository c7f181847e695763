"""Secrets of webhooks as they are stored."""

import base64

import pytest

from app.governance.webhooks.schemas import SecretKeyMissingError
from app.governance.webhooks.sender import SecretBox, new_secret

OLD, NEW = (base64.b64encode(bytes([number]) * 32).decode() for number in (250, 251))


def test_stored_secret_is_another_text_each_time_and_opens_again():
    box, secret = SecretBox([OLD]), new_secret()
    first, second = box.seal(secret), box.seal(secret)

    assert first != second
    assert secret.removeprefix("whsec_") not in first
    assert box.open(first) == box.open(second) == secret


def test_plain_secret_of_an_earlier_release_is_read_with_and_without_a_key():
    secret = new_secret()

    assert SecretBox([]).open(secret) == SecretBox([OLD]).open(secret) == secret


def test_first_key_encrypts_and_each_decrypts():
    secret = new_secret()
    before = SecretBox([OLD]).seal(secret)
    both = SecretBox([NEW, OLD])

    assert both.open(before) == secret
    assert SecretBox([NEW]).open(both.seal(secret)) == secret
    assert SecretBox([OLD]).open(both.seal(secret)) is None


def test_resealed_is_encrypted_with_the_first_key():
    secret = new_secret()
    both = SecretBox([NEW, OLD])

    for stored in (secret, SecretBox([OLD]).seal(secret), both.seal(secret)):
        assert SecretBox([NEW]).open(both.resealed(stored)) == secret


def test_what_cannot_be_resealed_stays_as_it_is():
    secret = new_secret()
    lost = SecretBox([OLD]).seal(secret)

    assert SecretBox([NEW]).resealed(lost) == lost
    assert SecretBox([]).resealed(secret) == secret


def test_changed_text_opens_to_nothing():
    stored = SecretBox([OLD]).seal(new_secret())
    changed = stored[:40] + ("A" if stored[40] != "A" else "B") + stored[41:]

    assert SecretBox([OLD]).open(changed) is None
    assert SecretBox([OLD]).open("支付") is None


def test_without_a_key_nothing_is_stored_and_nothing_opened():
    with pytest.raises(SecretKeyMissingError):
        SecretBox([]).seal(new_secret())
    assert SecretBox([]).open(SecretBox([OLD]).seal(new_secret())) is None
