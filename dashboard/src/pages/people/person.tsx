import { useState } from "preact/hooks";

import { get, path } from "../../api";
import { ReceiptPanel } from "../../components/erasure";
import { Facts } from "../../components/facts";
import { Loading, Problem } from "../../components/states";
import { Tabs } from "../../components/tabs";
import { Time } from "../../components/time";
import { useLoad } from "../../load";
import { href, replace } from "../../routing";
import type { Receipt } from "../../shapes";
import { number } from "../../text";
import { label } from "../../text/labels";
import { t } from "../../text/people";
import { PersonData, Receipts } from "./data";
import { MemoryList } from "./memories";
import { Profile } from "./profile";
import { SessionList } from "./sessions";
import type { User } from "./users";

interface Stats {
  by_status: Record<string, number>;
  decisions: Record<string, number>;
  last_saved: string | null;
}

const TABS = ["profile", "memories", "sessions", "data"] as const;
type TabName = (typeof TABS)[number];

export function Person({ id, query }: { id: string; query: URLSearchParams }) {
  const [receipt, setReceipt] = useState<Receipt | null>(null);
  const { data: user, problem, reload } = useLoad((signal) => get<User>(path("/v1/users", id), {}, signal), [id]);
  const tab = TABS.find((name) => name === query.get("tab")) ?? "profile";
  const back = <p><a href={href("people")}>{t("back_to_users")}</a></p>;
  if (receipt) return <>{back}<ReceiptPanel receipt={receipt} /></>;
  if (problem) {
    return (
      <>
        {back}
        <Problem problem={problem} retry={reload} />
        {problem.code === "user_not_found" && <Receipts id={id} />}
      </>
    );
  }
  if (!user) return <Loading />;
  return (
    <>
      {back}
      <h2>{user.user_name ?? user.user_id}</h2>
      <Facts
        items={[
          [t("id"), <code>{user.user_id}</code>],
          [t("agent"), user.agent_id],
          [t("state"), label(user.status)],
          [t("external_id"), user.external_id],
          [t("last_active"), <Time at={user.last_active_time} />],
          [t("created"), <Time at={user.create_time} />],
        ]}
      />
      <Figures id={id} />
      <Tabs<TabName>
        label={t("parts_of_person")}
        tabs={TABS.map((key) => ({ key, label: t(key) }))}
        current={tab}
        choose={(key) => replace(href("people", [id], { tab: key }))}
      >
        {tab === "profile" && <Profile user={id} />}
        {tab === "memories" && <MemoryList user={id} query={query} />}
        {tab === "sessions" && <SessionList user={id} />}
        {tab === "data" && <PersonData id={id} erased={setReceipt} />}
      </Tabs>
    </>
  );
}

function Figures({ id }: { id: string }) {
  const { data, problem, reload } = useLoad(
    (signal) => get<Stats>("/v1/memories/stats", { user_id: id }, signal),
    [id],
  );
  if (problem) return <Problem problem={problem} retry={reload} />;
  if (!data) return <Loading />;
  const refused = Object.entries(data.decisions).filter(([code]) => code !== "accepted");
  const memories = (status: string) => href("people", [id], { tab: "memories", status });
  const figures = [
    [t("active_memories"), data.by_status["active"] ?? 0, memories("active")],
    [t("superseded_memories"), data.by_status["superseded"] ?? 0, memories("superseded")],
    [t("archived_memories"), data.by_status["archived"] ?? 0, memories("archived")],
    [
      t("refused"),
      refused.reduce((sum, [, count]) => sum + count, 0),
      href("gate", [], { user_id: id, verdict: "rejected" }),
    ],
  ] as const;
  return (
    <dl class="figures">
      {figures.map(([name, count, to]) => (
        <div key={name}><dt>{name}</dt><dd><a href={to}>{number(count)}</a></dd></div>
      ))}
    </dl>
  );
}
