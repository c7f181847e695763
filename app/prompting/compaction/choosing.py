"""Which summariser serves whom: the agent's, else the tenant's, else the deployment's.
Pure.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from app.language.llm.model_catalogue import SummariserCatalogue
from app.language.llm.summariser import Summariser

HANDLE = "summary_model"
"""Its name in the settings of an agent or a tenant."""


def chosen(catalogue: SummariserCatalogue, configs: Sequence[Mapping[str, Any]]) -> Summariser:
    """The summariser that the first of `configs` names which names one.

    Raises:
        UnknownModelError: this deployment does not have it.

    """
    handles = (config.get(HANDLE) for config in configs)
    handle = next((one for one in handles if isinstance(one, str) and one), None)
    return catalogue.default if handle is None else catalogue.resolve(handle)
