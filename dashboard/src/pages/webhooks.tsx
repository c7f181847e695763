// Who is told of events: webhooks, and the log of what each was sent.
import { useState } from "preact/hooks";

import { get, send, type Page } from "../api";
import type { PageProps } from "../app";
import { Copyable } from "../components/copy";
import { Dialog } from "../components/dialog";
import "../components/stack.css";
import { type Column, Table } from "../components/table";
import { Time } from "../components/time";
import { go, href } from "../routing";
import { t } from "../text/webhooks";
import { type CreatedWebhook, type Webhook, WebhookForm, WebhookState } from "./webhooks/parts";
import { WebhookDetails } from "./webhooks/details";

export default function Webhooks({ path, query }: PageProps) {
  const [made, setMade] = useState<{ secret: string | null } | null>(null);
  const show = (secret: string | null) => setMade({ secret });
  const shown = path[0];
  return (
    <div class="stack">
      {shown === undefined ?
        <List show={show} />
      : <WebhookDetails key={shown} id={shown} query={query} show={show} />}
      {made !== null && (
        <Dialog title={t("new_secret")} close={() => setMade(null)}>
          {made.secret === null ? <p>{t("new_secret_lost")}</p> : (
            <>
              <p>{t("new_secret_about")}</p>
              <Copyable label={t("secret")} value={made.secret} />
            </>
          )}
        </Dialog>
      )}
    </div>
  );
}

const COLUMNS: () => Column<Webhook>[] = () => [
  {
    title: t("url"),
    show: (webhook) => <a href={href("webhooks", [webhook.webhook_id])}>{webhook.url}</a>,
  },
  { title: t("events"), show: ({ events }) => (events.includes("*") ? t("every_event") : events.join(", ")) },
  { title: t("description"), show: (webhook) => webhook.description },
  { title: t("state"), show: (webhook) => <WebhookState of={webhook} /> },
  { title: t("created"), show: (webhook) => <Time at={webhook.create_time} /> },
];

function List({ show }: { show: (secret: string | null) => void }) {
  const [creating, setCreating] = useState(false);
  return (
    <>
      <p>{t("about")}</p>
      <div><button type="button" class="primary" onClick={() => setCreating(true)}>{t("create_webhook")}</button></div>
      <Table
        caption={t("list")}
        columns={COLUMNS()}
        load={(cursor, limit, signal) => get<Page<Webhook>>("/v1/webhooks", { cursor, limit }, signal)}
        row={(webhook) => webhook.webhook_id}
        empty={t("none_yet")}
      />
      {creating && (
        <WebhookForm
          title={t("create_webhook")}
          action={t("create")}
          close={() => setCreating(false)}
          act={async (fields) => {
            const made = await send<CreatedWebhook>("POST", "/v1/webhooks", fields);
            show(made.secret);
            go(href("webhooks", [made.webhook_id]));
          }}
        />
      )}
    </>
  );
}

