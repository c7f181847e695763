import { get, path } from "../../api";
import { Facts } from "../../components/facts";
import { MemoryLink, MemoryState } from "../../components/memory";
import { LongText } from "../../components/message";
import { Loading, Problem } from "../../components/states";
import { Time, Validity } from "../../components/time";
import { useLoad } from "../../load";
import { go, href } from "../../routing";
import type { Memory } from "../../shapes";
import { number } from "../../text";
import { label } from "../../text/labels";
import { t } from "../../text/people";
import { MemoryActions } from "./actions";
import { Feedback } from "./feedback";
import { Reasons } from "./reasons";
import { Timeline } from "./timeline";

/** One memory: what it says, why it is known, what happened to it, and what can be done. */
export function MemoryView({ id }: { id: string }) {
  const { data: memory, problem, reload } = useLoad((signal) => get<Memory>(path("/v1/memories", id), {}, signal), [id]);
  if (problem) {
    return <><p><a href={href("people")}>{t("back_to_users")}</a></p><Problem problem={problem} retry={reload} /></>;
  }
  if (!memory) return <Loading />;
  const user = memory.user_id;
  return (
    <>
      <p>
        {user === null ? <a href={href("people")}>{t("back_to_users")}</a> : (
          <a href={href("people", [user], { tab: "memories" })}>{t("back_to_memories", { user })}</a>
        )}
      </p>
      <section class="panel">
        <h2>{t("memory")}</h2>
        <div class="lead"><LongText text={memory.content} /></div>
        <p><MemoryState memory={memory} /></p>
        <MemoryActions
          memory={memory}
          changed={reload}
          deleted={() => go(user === null ? href("people") : href("people", [user], { tab: "memories" }))}
        />
      </section>
      {memory.conflicts_with.length > 0 && (
        <section class="panel">
          <h2>{t("conflicts")}</h2>
          {memory.conflicts_with.map((other) => <p key={other}><MemoryLink id={other} /></p>)}
        </section>
      )}
      <section class="panel">
        <h2>{t("why_known")}</h2>
        <Reasons memory={memory} />
      </section>
      <section class="panel">
        <h2>{t("feedback")}</h2>
        <Feedback memory={memory} />
      </section>
      <section class="panel">
        <h2>{t("history")}</h2>
        <Timeline memory={memory} changed={reload} />
      </section>
      <section class="panel">
        <h2>{t("facts")}</h2>
        <Details memory={memory} />
      </section>
    </>
  );
}

function Details({ memory }: { memory: Memory }) {
  const at = (moment: string | null) => moment && <Time at={moment} />;
  return (
    <Facts
      items={[
        [t("id"), <code>{memory.memory_id}</code>],
        [t("type"), label(memory.memory_type)],
        [t("attribute"), memory.attribute],
        [t("scope"), label(memory.scope)],
        [t("tier"), label(memory.tier)],
        [t("confidence"), number(memory.confidence, { maximumFractionDigits: 3 })],
        [t("source"), label(memory.source)],
        [t("speaker"), memory.speaker],
        [t("said"), at(memory.said_at)],
        [t("agent"), memory.agent_id],
        [t("project"), memory.project_id],
        [t("session"), memory.session_id && <a href={href("conversation", [memory.session_id])}>{memory.session_id}</a>],
        [t("valid_from"), memory.valid_from && <Validity at={memory.valid_from} />],
        [t("valid_to"), memory.valid_to && <Validity at={memory.valid_to} />],
        [t("expires_at"), at(memory.expires_at)],
        [t("uses"), t("times", { count: memory.use_count })],
        [t("last_used"), at(memory.last_used_at)],
        [t("embedding"), memory.embedding_model],
        [t("version"), number(memory.version)],
        [t("created"), at(memory.create_time)],
      ]}
    />
  );
}
