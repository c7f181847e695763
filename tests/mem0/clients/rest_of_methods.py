"""Run by mem0ai's own interpreter: address and key are its arguments; prints what it got."""

import asyncio
import json
import sys
import time
import uuid

from mem0 import AsyncMemoryClient, MemoryClient

host, key = sys.argv[1:]
SCHEMA = json.dumps({"type": "object", "properties": {"shoe_size": {"type": "string"}}})
HOOK = {"url": "https://8.8.8.8/hook", "name": "Hook"}


def refusal(call, *arguments, **named) -> str:
    try:
        call(*arguments, **named)
    except Exception as error:  # noqa: BLE001 (which one is the result)
        return type(error).__name__
    raise AssertionError("was not refused")


def synchronously() -> dict:
    client = MemoryClient(api_key=key, host=host)
    got: dict = {}
    ids = []
    for text in ("She drinks tea.", "She plays the cello.", "She sails.", "She is a nurse."):
        added = client.add(text, user_id="ana", infer=False)
        ids.append(added["results"][0]["id"])
    got["updated"] = client.batch_update([{"memory_id": ids[0], "text": "She drinks coffee."}])
    got["deleted"] = client.batch_delete([{"memory_id": one} for one in ids[1:3]])
    got["missing"] = refusal(client.batch_delete, [{"memory_id": ids[1]}])
    got["feedback"] = client.feedback(ids[0], "positive", "It is so.")
    got["no_feedback"] = refusal(client.feedback, ids[0])

    got["exported"] = client.create_memory_export(schema=SCHEMA, filters={"user_id": "ana"})
    got["export"] = client.get_memory_export(memory_export_id=got["exported"]["id"])
    got["export_by_user"] = client.get_memory_export(user_id="ana")
    got["summary"] = client.get_summary()
    got["summary_of_user"] = client.get_summary(filters={"user_id": "ana"})

    got["project_updated"] = client.project.update(custom_instructions="Colours alone.")
    got["project_updated_before"] = client.update_project(multilingual=True)
    got["project"] = client.project.get(fields=["custom_instructions"])
    got["project_before"] = client.get_project(fields=["custom_instructions", "decay"])
    got["members"] = client.project.get_members()
    got["refused"] = [
        refusal(client.project.update, custom_categories=["food"]),
        refusal(client.project.create, "New"),
        refusal(client.project.delete),
        refusal(client.project.add_member, "ana@example.com"),
        refusal(client.project.update_member, "ana@example.com", "OWNER"),
        refusal(client.project.remove_member, "ana@example.com"),
        refusal(client.update_profile_settings, enabled=False),
    ]

    project = client.project_id
    got["webhook"] = client.create_webhook(**HOOK, project_id=project, event_types=["memory_add"])
    webhook_id = got["webhook"]["webhook_id"]
    got["webhook_updated"] = client.update_webhook(webhook_id, event_types=["memory_update"])
    got["webhooks"] = client.get_webhooks(project)
    got["webhook_refused"] = refusal(
        client.create_webhook, **HOOK, project_id=project, event_types=["memory_categorize"]
    )
    got["webhook_deleted"] = client.delete_webhook(webhook_id)

    got["settings"] = client.get_profile_settings()
    got["settings_updated"] = client.update_profile_settings(enabled=True)
    once = uuid.uuid4().hex
    got["job"] = client.generate_profile("ana", idempotency_key=once)
    got["job_again"] = client.generate_profile("ana", idempotency_key=once)
    job = client.get_profile_job(got["job"]["status_url"])["job"]
    while job["completed"] < job["total"]:
        time.sleep(0.1)
        job = client.get_profile_job(got["job"]["job_id"])["job"]
    got["job_done"] = job
    got["profile"] = client.get_profile("ana")
    got["sample"] = client.sample_profiles(limit=1)
    got["unknown_user"] = refusal(client.get_profile, "al/ice")
    return got


async def asynchronously() -> dict:
    client = AsyncMemoryClient(api_key=key, host=host)
    added = await client.add("He sails.", user_id="bo", infer=False)
    memory = {"memory_id": added["results"][0]["id"]}
    return {
        "updated": await client.batch_update([memory | {"text": "He rows."}]),
        "feedback": await client.feedback(memory["memory_id"], "VERY_NEGATIVE"),
        "summary": await client.get_summary(filters={"user_id": "bo"}),
        "project": await client.project.get(fields=["custom_instructions"]),
        "profile": await client.get_profile("bo"),
        "deleted": await client.batch_delete([memory]),
        "webhooks": await client.get_webhooks(client.project_id),
    }


print(json.dumps({"sync": synchronously(), "async": asyncio.run(asynchronously())}))
