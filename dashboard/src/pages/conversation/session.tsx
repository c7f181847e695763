import { useState } from "preact/hooks";

import { get, path } from "../../api";
import { ReceiptPanel } from "../../components/erasure";
import { Facts } from "../../components/facts";
import { Loading, Problem } from "../../components/states";
import { Tabs } from "../../components/tabs";
import { Time } from "../../components/time";
import { useLoad } from "../../load";
import { href, replace } from "../../routing";
import type { Receipt, Session } from "../../shapes";
import { t } from "../../text/conversation";
import { label } from "../../text/labels";
import { Approvals } from "./approvals";
import { Checkpoints } from "./checkpoints";
import { Context } from "./context";
import { Extraction } from "./extraction";
import { Injections } from "./injections";
import { Messages } from "./messages";
import { SessionActions } from "./actions";
import { Window } from "./window";

const TABS = ["messages", "context", "window", "checkpoints", "approvals", "injections", "extraction"] as const;
type TabName = (typeof TABS)[number];

export function Conversation({ id, query }: { id: string; query: URLSearchParams }) {
  const address = path("/v1/sessions", id);
  const [receipt, setReceipt] = useState<Receipt | null>(null);
  const { data: session, problem, reload } = useLoad((signal) => get<Session>(address, {}, signal), [id]);
  const tab = TABS.find((name) => name === query.get("tab")) ?? "messages";
  const back = <p><a href={href("conversation")}>{t("back")}</a></p>;
  if (receipt) return <>{back}<ReceiptPanel receipt={receipt} /></>;
  if (problem) return <>{back}<Problem problem={problem} retry={reload} /></>;
  if (!session) return <Loading />;
  return (
    <>
      {back}
      <h2>{session.session_name ?? session.session_id}</h2>
      <Details session={session} />
      <SessionActions session={session} changed={reload} deleted={setReceipt} />
      <Tabs<TabName>
        label={t("parts_of_session")}
        tabs={TABS.map((key) => ({ key, label: t(key) }))}
        current={tab}
        choose={(key) => replace(href("conversation", [id], { tab: key }))}
      >
        {tab === "messages" && <Messages session={session} query={query} />}
        {tab === "context" && <Context address={address} />}
        {tab === "window" && <Window address={address} />}
        {tab === "checkpoints" && <Checkpoints address={address} changed={reload} />}
        {tab === "approvals" && <Approvals address={address} />}
        {tab === "injections" && <Injections address={address} />}
        {tab === "extraction" && <Extraction session={session} />}
      </Tabs>
    </>
  );
}

function Details({ session }: { session: Session }) {
  const { forked_from: origin } = session;
  return (
    <>
      <Facts
        items={[
          [t("id"), <code>{session.session_id}</code>],
          [t("user"), <a href={href("people", [session.user_id])}>{session.user_id}</a>],
          [t("agent"), session.agent_id],
          [t("project"), session.project_id],
          [t("kind"), session.session_type],
          [t("state"), label(session.status)],
          [t("created"), <Time at={session.create_time} />],
          [t("last_message"), <Time at={session.last_message_time} />],
          [t("ended_at"), session.end_time && <Time at={session.end_time} />],
          [t("read_until"), t("read_of", { read: session.last_extracted_seq, all: session.last_sequence_no })],
          [
            t("forked_from"),
            origin && (
              <a href={href("conversation", [origin.session_id])}>
                {t("at_message", { session: origin.session_id, number: origin.sequence_no })}
              </a>
            ),
          ],
        ]}
      />
      {!session.memory_enabled && <p class="note">{t("memory_off")}</p>}
      {!session.injection_enabled && <p class="note">{t("injection_off")}</p>}
    </>
  );
}
