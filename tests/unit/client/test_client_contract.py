"""The client's types and the service's schemas say the same, field by field."""

import dataclasses

import pytest

import kemem
from app.conversation.messages import search_schemas as recalling
from app.conversation.messages.schemas import (
    ExtractionScheduled,
    MessageAppend,
    MessageAppended,
    MessageQuery,
    MessageRead,
    PressureRead,
    RequestWarning,
)
from app.conversation.sessions.schemas import SessionRead
from app.governance.operations.schemas import JobRead
from app.identity.projects.schemas import MemberRead, ProjectRead, ProjectTransferred
from app.identity.usage import schemas as usage
from app.memory.extraction.schemas import ExtractAnswer, ExtractRequest
from app.memory.feedback.schemas import FeedbackAdded, FeedbackCreate
from app.memory.graph import schemas as graph
from app.memory.memories import schemas as memories
from app.memory.memories import search_schemas as searched
from app.memory.profiles import documents
from app.memory.profiles import schemas as profiles
from kemem import options

ANSWERS = [
    (kemem.MemoryItem, memories.MemoryRead),
    (kemem.Hit, searched.Hit),
    (kemem.ScoreParts, searched.ScoreExplained),
    (kemem.Outcome, memories.Outcome),
    (kemem.Reason, memories.Reason),
    (kemem.RequestWarning, RequestWarning),
    (kemem.Added, memories.MemoryAdded),
    (kemem.Restored, memories.MemoryRestored),
    (kemem.HistoryEntry, searched.HistoryRead),
    (kemem.Feedback, FeedbackAdded),
    (kemem.Message, MessageRead),
    (kemem.MessageHit, recalling.MessageHit),
    (kemem.MessageScoreParts, recalling.MessageScoreExplained),
    (kemem.Pressure, PressureRead),
    (kemem.Appended, MessageAppended),
    (kemem.Scheduled, ExtractionScheduled),
    (kemem.Session, SessionRead),
    (kemem.Extraction, ExtractAnswer),
    (kemem.Job, JobRead),
    (kemem.Figures, usage.Figures),
    (kemem.UsageOfDay, usage.UsageRead),
    (kemem.Allowance, usage.LimitRead),
    (kemem.Today, usage.TodayRead),
    (kemem.ProfileValue, profiles.ValueRead),
    (kemem.ProfileChange, profiles.ProfileChangeRead),
    (kemem.FactOutcome, documents.FactOutcome),
    (kemem.DocumentImported, documents.DocumentImported),
    (kemem.MemoryDocument, documents.MemoryDocument),
    (kemem.Project, ProjectRead),
    (kemem.Member, MemberRead),
    (kemem.Transferred, ProjectTransferred),
    (kemem.ProjectItem, searched.ProjectItemRead),
    (kemem.EntityShort, graph.EntityShort),
    (kemem.Entity, graph.EntityRead),
    (kemem.EntityDetail, graph.EntityDetail),
    (kemem.Relation, graph.RelationRead),
    (kemem.Neighbour, graph.NeighbourRead),
    (kemem.Neighbours, graph.Neighbours),
    (kemem.GraphPath, graph.PathRead),
    (kemem.GraphPaths, graph.Paths),
    (kemem.GraphFound, graph.GraphFound),
    (kemem.GraphChange, graph.ChangeRead),
]


def names(kind: type) -> set[str]:
    return {one.name for one in dataclasses.fields(kind)} - {"raw"}


@pytest.mark.parametrize(("ours", "theirs"), ANSWERS, ids=lambda kind: kind.__name__)
def test_answer_type_has_the_fields_of_the_service(ours, theirs) -> None:
    # Deprecated ones are properties that warn.
    shown = {name for name, field in theirs.model_fields.items() if not field.deprecated}
    assert names(ours) == shown


def test_answer_type_of_several_schemas_has_the_fields_of_all() -> None:
    # The client renders the prompt itself.
    assert names(kemem.SearchResults) == set(searched.SearchAnswer.model_fields) - {"prompt"}
    listed = {"results" if name == "items" else name for name in usage.UsageAnswer.model_fields}
    assert names(kemem.Usage) == listed
    found = recalling.MessageSearchAnswer.model_fields
    assert names(kemem.MessageHits) == {"results" if one == "items" else one for one in found}
    assert names(kemem.Deleted) == {
        *searched.MemoriesDeleted.model_fields,
        *searched.DeletionScheduled.model_fields,
    }
    assert names(kemem.Job) > set(memories.JobAccepted.model_fields)
    assert names(kemem.Profile) == {
        *profiles.UserProfileRead.model_fields,
        *profiles.ProjectProfileRead.model_fields,
    }


def parameters(method: str, *others: type) -> set[str]:
    """What a method takes, with the keys of its options."""
    code = getattr(kemem.Memory, method).__code__
    taken = set(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]) - {"self"}
    return taken.union(*(one.__annotations__ for one in others))


def test_method_has_the_parameters_of_the_route() -> None:
    assert parameters("add", options.AddOptions) - {"async_"} == set(
        memories.MemoryCreate.model_fields
    )
    assert parameters("update", options.MemoryChanges) - {"memory_id", "version"} == set(
        memories.MemoryPatch.model_fields
    )
    assert parameters("supersede", options.SupersedeOptions) - {"memory_id"} == set(
        memories.MemorySupersede.model_fields
    )
    assert parameters("restore") - {"memory_id", "version"} == set(
        memories.MemoryRestore.model_fields
    )
    assert parameters("feedback") - {"memory_id"} == set(FeedbackCreate.model_fields)
    parameter_names = set(searched.SearchRequest.model_fields) - {"format"}
    assert parameters("search", options.SearchOptions) == parameter_names
    assert parameters("delete_all", options.DeleteOptions) == set(searched.BulkDelete.model_fields)
    assert parameters("extract") - {"session_id"} == set(ExtractRequest.model_fields)
    assert parameters("append") - {"session_id"} == set(MessageAppend.model_fields)
    # Pages are fetched as they are needed, so nobody bounds one by its tokens.
    paged = {"cursor", "max_tokens"}
    assert parameters("messages") - {"session_id"} == set(MessageQuery.model_fields) - paged
    recalled = set(recalling.MessageSearch.model_fields)
    assert parameters("search_messages", options.MessageSearchOptions) == recalled
    assert parameters("usage") == set(usage.UsageQuery.model_fields)
    listed = set(searched.MemoryQuery.model_fields) - paged
    assert parameters("get_all", options.ListOptions) == listed
    assert parameters("iterate", options.ListOptions) == listed - {"limit"}
