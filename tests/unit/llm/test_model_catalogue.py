"""Handles become extraction models, once each."""

import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from app.errors import ConfigurationError
from app.language.llm.embedder_catalogue import OpenAIParameters
from app.language.llm.errors import UnknownModelError
from app.language.llm.extractor import Extraction, ExtractionRequest
from app.language.llm.model_catalogue import ExtractionModel, ModelCatalogue, installed_extractors
from app.language.llm.reconciler import ReconcileQuestion, Reconciliation
from tests.support.openai_server import OpenAIServer


@dataclass
class Extractor:
    """One that finds nothing, under a name."""

    name: str = "rules/1"
    model: str | None = None
    prompt_version: str | None = None

    async def extract(self, request: ExtractionRequest) -> Extraction:
        return Extraction(())

    async def summarise(self, request: ExtractionRequest) -> Extraction:
        return Extraction(())


@dataclass
class Reconciler:
    name: str = "rules/1"
    model: str | None = None

    async def reconcile(self, questions: list[ReconcileQuestion]) -> Reconciliation:
        return Reconciliation(())


RULES = ExtractionModel(Extractor(), Reconciler())


def plugin(model: str | None) -> Extractor:
    if model == "unknown":
        raise ValueError(model)
    return Extractor(name=f"acme/{model}")


@pytest.fixture
def parameters(server: OpenAIServer) -> OpenAIParameters:
    return OpenAIParameters(api_key="sk-secret", base_url=server.base_url, max_retries=0)


@pytest.fixture
async def catalogue(parameters: OpenAIParameters) -> AsyncIterator[ModelCatalogue]:
    catalogue = ModelCatalogue("rules", rules=RULES, openai=parameters, plugins={"acme": plugin})
    yield catalogue
    await catalogue.aclose()


async def test_the_default_may_be_keyless():
    keyless = ModelCatalogue("rules", rules=RULES)

    assert keyless.default is RULES
    assert keyless.resolve("rules") is RULES
    assert keyless.available == ("rules",)
    await keyless.aclose()


async def test_the_default_may_be_a_model(parameters: OpenAIParameters):
    catalogue = ModelCatalogue("openai/gpt-4o-mini", rules=RULES, openai=parameters)

    assert catalogue.default.extractor.name == "openai/gpt-4o-mini"
    assert catalogue.default.reconciler.name == "openai/gpt-4o-mini"
    assert catalogue.resolve("openai/gpt-4o-mini") is catalogue.default
    assert catalogue.resolve("rules") is RULES
    await catalogue.aclose()


@pytest.mark.parametrize("handle", ["", "gpt-4o-mini", "openai/", "openai", "rules/2", "acme"])
def test_a_default_that_cannot_be_had_stops_the_start(parameters: OpenAIParameters, handle: str):
    with pytest.raises(ConfigurationError, match="MEMORY_EXTRACTION_MODEL"):
        ModelCatalogue(handle, rules=RULES, openai=parameters)


@pytest.mark.parametrize("parameters", [None, OpenAIParameters()])
def test_a_default_that_needs_a_key_stops_the_start_without_one(
    parameters: OpenAIParameters | None,
):
    with pytest.raises(ConfigurationError, match="OPENAI_API_KEY"):
        ModelCatalogue("openai/gpt-4o-mini", rules=RULES, openai=parameters)


async def test_a_model_is_built_once(catalogue: ModelCatalogue):
    first = catalogue.resolve("openai/org/model:latest")

    assert first.extractor.model == "org/model:latest"
    assert catalogue.resolve("openai/org/model:latest") is first
    assert catalogue.resolve("openai/other") is not first


async def test_a_model_is_asked_at_the_deployments_endpoint(
    catalogue: ModelCatalogue, server: OpenAIServer
):
    found = catalogue.resolve("openai/local-model")
    request = ExtractionRequest(())

    assert await found.extractor.extract(request) == Extraction(())
    assert server.chat.requests == []


@pytest.mark.parametrize(
    "handle",
    [
        "",
        "gpt-4o-mini",
        "openai/",
        "openai/a b",
        "openai/" + "x" * 129,
        "rules/",
        "other/x",
        "RULES",
    ],
)
async def test_an_unknown_handle_says_what_there_is(catalogue: ModelCatalogue, handle: str):
    with pytest.raises(UnknownModelError) as caught:
        catalogue.resolve(handle)

    assert caught.value.status == 422
    assert caught.value.code == "unknown_model"
    assert caught.value.members == {"available": ["rules", "openai/<model>", "acme"]}
    assert handle == "" or handle not in caught.value.detail.split()


async def test_the_longest_name_of_a_model_is_one(catalogue: ModelCatalogue):
    assert catalogue.resolve("openai/" + "x" * 128).extractor.model == "x" * 128


async def test_without_an_endpoint_no_remote_model_is_offered():
    keyless = ModelCatalogue("rules", rules=RULES)

    with pytest.raises(UnknownModelError) as caught:
        keyless.resolve("openai/gpt-4o-mini")

    assert caught.value.members == {"available": ["rules"]}


async def test_names_from_callers_do_not_pile_up(catalogue: ModelCatalogue):
    first = catalogue.resolve("openai/0")
    for number in range(1, 64):
        catalogue.resolve(f"openai/{number}")
    assert catalogue.resolve("openai/0") is first

    last = catalogue.resolve("openai/64")

    assert catalogue.resolve("openai/64") is last
    assert len(catalogue._built) == 64
    assert catalogue.resolve("openai/0") is not first


class TestPlugin:
    async def test_is_found_by_its_name(self, catalogue: ModelCatalogue):
        bare, named = catalogue.resolve("acme"), catalogue.resolve("acme/large")

        assert (bare.extractor.name, named.extractor.name) == ("acme/None", "acme/large")
        assert bare.reconciler is RULES.reconciler
        assert catalogue.resolve("acme/large") is named

    async def test_may_be_the_default(self):
        catalogue = ModelCatalogue("acme/large", rules=RULES, plugins={"acme": plugin})

        assert catalogue.default.extractor.name == "acme/large"

    async def test_may_not_know_a_model(self, catalogue: ModelCatalogue):
        with pytest.raises(UnknownModelError):
            catalogue.resolve("acme/unknown")


class TestInstalled:
    """With real packages: what an installer leaves is a folder on the path."""

    @pytest.fixture
    def install(self, tmp_path: Path):
        def install(**points: str) -> None:
            info = tmp_path / "acme_extractors-1.0.dist-info"
            info.mkdir()
            (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-extractors\n")
            listed = "".join(f"{name} = {value}\n" for name, value in points.items())
            (info / "entry_points.txt").write_text(f"[kemem.extractors]\n{listed}")
            (tmp_path / "acme_extractors.py").write_text("def make(model):\n    return model\n")

        sys.path.insert(0, str(tmp_path))
        yield install
        sys.path.remove(str(tmp_path))
        sys.modules.pop("acme_extractors", None)

    def test_packages_offer_theirs(self, install):
        install(acme="acme_extractors:make")

        assert installed_extractors()["acme"]("large") == "large"

    def test_none_need_be(self):
        assert installed_extractors() == {}

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("acme", "acme_extractors:missing"),
            ("acme", "acme_nowhere:make"),
            ("rules", "acme_extractors:make"),
            ("openai", "acme_extractors:make"),
            ("Acme", "acme_extractors:make"),
            ("acme/large", "acme_extractors:make"),
        ],
    )
    def test_what_cannot_be_used_stops_the_start(self, install, name: str, value: str):
        install(**{name: value})

        with pytest.raises(ConfigurationError, match=f"'{name}'"):
            installed_extractors()
