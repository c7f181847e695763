"""`KeMemSession`, a session of OpenAI's Agents SDK that is kept in KeMem.

Needs the extra: `pip install "kemem-client[openai-agents]"`.
"""

from kemem.openai_agents.session import KeMemSession
from kemem.owners import KEY_USER

__all__ = ["KEY_USER", "KeMemSession"]
