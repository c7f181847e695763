import { useState } from "preact/hooks";

import { Dialog } from "../../components/dialog";
import { Tag } from "../../components/facts";
import { locale } from "../../text";
import { t } from "../../text/webhooks";

export interface Webhook {
  webhook_id: string;
  url: string;
  events: string[];
  description: string | null;
  enabled: boolean;
  disabled_reason: "gone" | "failing" | null;
  failing_since: string | null;
  paused_until: string | null;
  old_secret_expires_at: string | null;
  version: number;
  create_time: string;
}

export interface CreatedWebhook extends Webhook {
  secret: string | null;
}

/** What the API's `events` takes; `*` stands for all. */
const EVENTS = [
  "memory.added",
  "memory.updated",
  "memory.superseded",
  "memory.deleted",
  "memory.rejected",
  "extraction.failed",
  "session.compacted",
  "job.dead",
] as const;

export function WebhookState({ of: webhook }: { of: Webhook }) {
  const until = webhook.paused_until;
  const paused = until !== null && new Date(until) > new Date();
  return (
    <>
      <Tag tone={webhook.enabled ? "good" : "bad"}>
        {t(webhook.enabled ? "enabled" : (webhook.disabled_reason ?? "disabled"))}
      </Tag>
      {webhook.enabled && paused && (
        <> <Tag tone="bad">{t("paused", { time: new Date(until).toLocaleTimeString(locale()) })}</Tag></>
      )}
    </>
  );
}

interface Fields {
  url: string;
  events: readonly string[];
  description: string | null;
}

export function WebhookForm(
  { title, action, act, close, webhook }: {
    title: string;
    action: string;
    act: (fields: Fields) => Promise<unknown>;
    close: () => void;
    webhook?: Webhook;
  },
) {
  const [url, setUrl] = useState(webhook?.url ?? "");
  const [events, setEvents] = useState<readonly string[]>(webhook?.events ?? ["*"]);
  const [description, setDescription] = useState(webhook?.description ?? "");
  const toggle = (event: string) => {
    const others = events.filter((other) => other !== event && other !== "*");
    setEvents(event === "*" ? ["*"] : events.includes(event) ? others : [...others, event]);
  };
  return (
    <Dialog
      title={title}
      action={action}
      close={close}
      act={() => act({ url, events, description: description || null })}
    >
      <label>
        {t("url")}
        <input type="url" required maxLength={2000} value={url} onInput={(event) => setUrl(event.currentTarget.value)} />
      </label>
      <p class="small">{t("url_about")}</p>
      <label>
        {t("description")}
        <input type="text" value={description} onInput={(event) => setDescription(event.currentTarget.value)} />
      </label>
      <fieldset>
        <legend>{t("events")}</legend>
        {["*", ...EVENTS].map((event) => (
          <label key={event}>
            <input type="checkbox" checked={events.includes(event)} onChange={() => toggle(event)} />{" "}
            {event === "*" ? t("every_event") : event}
          </label>
        ))}
      </fieldset>
    </Dialog>
  );
}
