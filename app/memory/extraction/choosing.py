"""Which extraction model serves whom: the agent's, else the tenant's, else the deployment's, and
what else their settings say of reading. Pure.
"""

from collections.abc import Mapping
from typing import Any

from app.language.llm.model_catalogue import ExtractionModel, ModelCatalogue

HANDLE = "model"
"""Its name in the settings of an agent or a tenant."""

GRAPH = "graph"
"""The same, of the switch of the graph."""


def chosen(catalogue: ModelCatalogue, *configs: Mapping[str, Any]) -> ExtractionModel:
    """The model that the first of `configs` names which names one.

    Raises:
        UnknownModelError: this deployment does not have it.

    """
    handles = (config.get(HANDLE) for config in configs)
    handle = next((one for one in handles if isinstance(one, str) and one), None)
    return catalogue.default if handle is None else catalogue.resolve(handle)


def draws_graph(*configs: Mapping[str, Any]) -> bool:
    """Whether what is said of whom goes into the graph: unless the agent, else the
    tenant, says `graph: false`.
    """
    said = (config.get(GRAPH) for config in configs)
    return next((one for one in said if isinstance(one, bool)), True)


def instructions(given: str | None, *configs: Mapping[str, Any]) -> str | None:
    """The caller's own instructions to the extractor, else the agent's."""
    if given is not None:
        return given
    prompts = (config.get("extraction_prompt") for config in configs)
    return next((one for one in prompts if isinstance(one, str) and one.strip()), None)
