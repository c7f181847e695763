"""Secrets of webhooks, encrypted in the database with keys that are not in it.

Who has the database alone, or a backup of it, can sign nothing. A hash would not do: a signature
needs the secret itself.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from app.governance.webhooks.errors import SecretKeyMissingError
from app.governance.webhooks.sender import PREFIX

if TYPE_CHECKING:
    from cryptography.fernet import MultiFernet


class SecretBox:
    """Encrypts secrets, and decrypts stored ones.

    What an earlier release stored begins with `whsec_` and is read as it is.

    Args:
        keys: of MEMORY_SECRET_KEY. The first encrypts; each may decrypt.

    """

    def __init__(self, keys: Sequence[str]) -> None:
        self._keys = keys

    def seal(self, secret: str) -> str:
        """The secret as it is stored: another text each time.

        Raises:
            SecretKeyMissingError: there is no key.

        """
        if not self._keys:
            raise SecretKeyMissingError
        return self._cipher().encrypt(secret.encode()).decode()

    def open(self, stored: str) -> str | None:
        """The secret that is stored; None if it was encrypted with a key that is not here."""
        if stored.startswith(PREFIX):
            return stored
        if not self._keys:
            return None
        from cryptography.fernet import InvalidToken

        try:
            return self._cipher().decrypt(stored.encode()).decode()
        except InvalidToken:
            return None

    def resealed(self, stored: str) -> str:
        """The stored secret encrypted with the first key, or as it is if that cannot be done."""
        secret = self.open(stored)
        return self.seal(secret) if self._keys and secret is not None else stored

    def _cipher(self) -> "MultiFernet":
        from cryptography.fernet import Fernet, MultiFernet

        return MultiFernet([Fernet(key) for key in self._keys])
