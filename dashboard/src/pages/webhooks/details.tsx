// One webhook: its state, what can be done with it, and the log of its deliveries.
import { useState } from "preact/hooks";

import { get, path as address, send, type Page } from "../../api";
import { Dialog } from "../../components/dialog";
import { Facts, Tag } from "../../components/facts";
import { Loading, Problem } from "../../components/states";
import { type Column, Table } from "../../components/table";
import { Time } from "../../components/time";
import { resting, useAction, useLoad } from "../../load";
import { go, href, replace } from "../../routing";
import { t } from "../../text/webhooks";
import { type CreatedWebhook, type Webhook, WebhookForm, WebhookState } from "./parts";

interface Delivery {
  delivery_id: string;
  event_id: string;
  event_type: string;
  payload: Record<string, unknown>;
  status: "pending" | "delivered" | "dead";
  attempts: number;
  response_status: number | null;
  error_code: string | null;
  duration_ms: number | null;
  next_attempt_at: string | null;
  create_time: string;
}

const STATUSES = ["pending", "delivered", "dead"] as const;

export function WebhookDetails(
  { id, query, show }: { id: string; query: URLSearchParams; show: (secret: string | null) => void },
) {
  const place = address("/v1/webhooks", id);
  const webhook = useLoad((signal) => get<Webhook>(place, {}, signal), [id]);
  const [said, setSaid] = useState("");
  const [round, setRound] = useState(0);
  const refresh = () => {
    webhook.reload();
    setRound((last) => last + 1);
  };
  return (
    <>
      <p><a href={href("webhooks")}>{t("back")}</a></p>
      {webhook.problem && <Problem problem={webhook.problem} retry={webhook.reload} />}
      {webhook.data === null ?
        webhook.loading && <Loading />
      : <>
          <Panel webhook={webhook.data} place={place} refresh={refresh} show={show} say={setSaid} />
          <p role="status">{said}</p>
          <h2>{t("deliveries_title")}</h2>
          <Deliveries id={id} place={place} query={query} round={round} refresh={refresh} say={setSaid} />
        </>}
    </>
  );
}

function Panel(
  { webhook, place, refresh, show, say }: {
    webhook: Webhook;
    place: string;
    refresh: () => void;
    show: (secret: string | null) => void;
    say: (what: string) => void;
  },
) {
  const [open, setOpen] = useState<"edit" | "rotate" | "delete" | null>(null);
  const close = () => setOpen(null);
  const change = async (fields: object) => {
    await send("PATCH", place, fields, { "If-Match": String(webhook.version) });
    refresh();
  };
  const turning = useAction(() => change({ enabled: !webhook.enabled }));
  const testing = useAction(async () => {
    const delivery = await send<Delivery>("POST", `${place}/test`);
    say(t("tested", { id: delivery.event_id }));
    refresh();
  });
  const problem = turning.problem ?? testing.problem;
  return (
    <div class="panel">
      <Facts
        items={[
          [t("url"), webhook.url],
          [t("events"), webhook.events.includes("*") ? t("every_event") : webhook.events.join(", ")],
          [t("description"), webhook.description],
          [t("state"), <WebhookState of={webhook} />],
          [t("failing_since"), webhook.failing_since && <Time at={webhook.failing_since} />],
          [t("old_secret"), webhook.old_secret_expires_at && <Time at={webhook.old_secret_expires_at} />],
          [t("created"), <Time at={webhook.create_time} />],
        ]}
      />
      {problem && <Problem problem={problem} />}
      <div class="buttons">
        <button type="button" class="primary" {...resting(testing.busy)} onClick={() => testing.run()}>{t("test")}</button>
        <button type="button" onClick={() => setOpen("edit")}>{t("edit")}</button>
        <button type="button" {...resting(turning.busy)} onClick={() => turning.run()}>
          {t(webhook.enabled ? "disable" : "enable")}
        </button>
        <button type="button" onClick={() => setOpen("rotate")}>{t("rotate")}</button>
        <button type="button" class="danger" onClick={() => setOpen("delete")}>{t("delete")}</button>
      </div>
      {open === "edit" && (
        <WebhookForm title={t("edit_webhook")} action={t("save")} webhook={webhook} act={change} close={close} />
      )}
      {open === "rotate" && (
        <Dialog
          title={t("rotate_ask")}
          action={t("rotate")}
          close={close}
          act={async () => {
            const rotated = await send<CreatedWebhook>("POST", `${place}/rotate-secret`);
            refresh();
            show(rotated.secret);
          }}
        >
          <p>{t("rotate_about")}</p>
        </Dialog>
      )}
      {open === "delete" && (
        <Dialog
          title={t("delete_ask")}
          action={t("delete")}
          danger
          close={close}
          act={async () => {
            await send("DELETE", place);
            go(href("webhooks"));
          }}
        >
          <p>{t("delete_about")}</p>
        </Dialog>
      )}
    </div>
  );
}

function Deliveries(
  { id, place, query, round, refresh, say }: {
    id: string;
    place: string;
    query: URLSearchParams;
    round: number;
    refresh: () => void;
    say: (what: string) => void;
  },
) {
  const status = query.get("status") ?? "";
  const [shown, setShown] = useState<Delivery | null>(null);
  const redelivering = useAction(async (delivery: Delivery) => {
    await send("POST", address(place, "deliveries", delivery.delivery_id, "redeliver"));
    say(t("redelivered", { id: delivery.event_id }));
    refresh();
  });
  const columns: Column<Delivery>[] = [
    {
      title: t("event"),
      show: (delivery) => (
        <>
          {delivery.event_type}<br />
          <button type="button" class="quiet" aria-label={t("payload_named", { id: delivery.delivery_id })} onClick={() => setShown(delivery)}>
            <code>{delivery.event_id}</code>
          </button>
        </>
      ),
    },
    {
      title: t("status"),
      show: (delivery) => (
        <Tag tone={{ pending: undefined, delivered: "good", dead: "bad" }[delivery.status] as "good" | "bad" | undefined}>
          {t(delivery.status)}
        </Tag>
      ),
    },
    { title: t("attempts"), number: true, show: (delivery) => delivery.attempts },
    {
      title: t("answer"),
      show: (delivery) =>
        [
          delivery.response_status,
          delivery.error_code,
          delivery.duration_ms !== null && t("took", { ms: delivery.duration_ms }),
        ].filter((part) => part !== null && part !== false).join(" · ") || t("none"),
    },
    { title: t("next_attempt"), show: (delivery) => delivery.next_attempt_at ? <Time at={delivery.next_attempt_at} /> : t("none") },
    { title: t("created"), show: (delivery) => <Time at={delivery.create_time} /> },
    {
      title: t("actions"),
      show: (delivery) => (
        <button
          type="button"
          aria-label={t("redeliver_named", { id: delivery.delivery_id })}
          {...resting(redelivering.busy)}
          onClick={() => redelivering.run(delivery)}
        >
          {t("redeliver")}
        </button>
      ),
    },
  ];
  return (
    <>
      <form class="filters" aria-label={t("filters")} onSubmit={(event) => event.preventDefault()}>
        <label>
          {t("status")}
          <select
            value={status}
            onChange={(event) => replace(href("webhooks", [id], { status: event.currentTarget.value }))}
          >
            <option value="">{t("all")}</option>
            {STATUSES.map((name) => <option key={name} value={name}>{t(name)}</option>)}
          </select>
        </label>
        <button type="button" onClick={refresh}>{t("reload")}</button>
      </form>
      {redelivering.problem && <Problem problem={redelivering.problem} />}
      <Table
        caption={t("deliveries")}
        columns={columns}
        load={(cursor, limit, signal) =>
          get<Page<Delivery>>(`${place}/deliveries`, { cursor, limit, status }, signal)}
        inputs={[status]}
        again={round}
        row={(delivery) => delivery.delivery_id}
        empty={t("no_deliveries")}
      />
      {shown && (
        <Dialog title={t("payload")} close={() => setShown(null)}>
          <pre>{JSON.stringify(shown.payload, null, 2)}</pre>
        </Dialog>
      )}
    </>
  );
}
