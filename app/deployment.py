"""What the settings say, as the rules of each package. Pure."""

from datetime import timedelta

from app.conversation.messages.extraction_schedule import CaptureRules
from app.conversation.sessions.jobs import Debounce
from app.conversation.sessions.policy import WindowPolicy
from app.errors import ConfigurationError
from app.identity.agents.retention import ForgettingPolicy
from app.language.ranking.boosts import Boosts, InvalidWeightsError, parsed_weights
from app.language.text.stop_words import StopWords, stop_words
from app.memory.memories.gate import Gate
from app.memory.memories.ranking import SCOPES, RankWeights, ScopeWeights
from app.memory.memories.save_service import SaveRules
from app.memory.memories.search_service import SearchRanks
from app.settings import Settings


def saving_rules(settings: Settings) -> SaveRules:
    gate = Gate(
        min_confidence=settings.min_confidence,
        min_length=settings.min_length,
        max_length=settings.max_length,
        secrets=settings.secrets_action,
        identifiers=settings.identifiers_action,
        stop_words=_stop_words(settings),
    )
    return SaveRules(gate, settings.auto_create, settings.duplicate_threshold)


def _stop_words(settings: Settings) -> StopWords:
    return stop_words(settings.stop_words.split(","))


def stripped_tags(settings: Settings) -> list[str]:
    """Blocks that somebody else puts into messages."""
    return [tag.strip() for tag in settings.stripped_tags.split(",") if tag.strip()]


def capture_rules(settings: Settings) -> CaptureRules:
    debounce = Debounce(timedelta(seconds=settings.debounce_seconds))
    return CaptureRules(
        debounce, stripped_tags(settings), settings.signal_window, _stop_words(settings)
    )


def window_policy(settings: Settings) -> WindowPolicy:
    return WindowPolicy(
        budget_tokens=settings.window_tokens,
        warn=settings.pressure_warn,
        flush=settings.pressure_flush,
        evict_fraction=settings.evict_fraction,
        summary_words=settings.summary_word_limit,
    )


def search_ranks(settings: Settings) -> SearchRanks:
    return SearchRanks(
        RankWeights(settings.rank_w_similarity, settings.rank_w_confidence, settings.rank_w_scope),
        _scopes(settings),
        Boosts(),
    )


def _scopes(settings: Settings) -> ScopeWeights:
    try:
        return ScopeWeights(**parsed_weights(settings.scope_weights, SCOPES))
    except InvalidWeightsError as error:
        raise ConfigurationError(f"MEMORY_SCOPE_WEIGHTS: {error}") from None


def forgetting_policy(settings: Settings) -> ForgettingPolicy:
    """For tenants and agents that say nothing of forgetting themselves."""
    return ForgettingPolicy(
        max_facts=settings.max_facts,
        eviction=settings.eviction,
        message_retention_days=settings.message_retention_days,
    )
