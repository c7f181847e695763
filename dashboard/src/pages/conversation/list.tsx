import { get, type Page } from "../../api";
import { filtersOf, OpenById } from "../../components/list-head";
import { Table } from "../../components/table";
import { Time } from "../../components/time";
import { href } from "../../routing";
import type { Session } from "../../shapes";
import { number } from "../../text";
import { t } from "../../text/conversation";
import { label } from "../../text/labels";

const FILTERS = ["user_id", "agent_id", "project_id", "session_type", "status"] as const;

export function ConversationList({ query }: { query: URLSearchParams }) {
  const [filters, change] = filtersOf("conversation", FILTERS, query);
  const texts = [["user_id", t("user")], ["agent_id", t("agent")], ["project_id", t("project")], ["session_type", t("kind")]] as const;
  return (
    <>
      <OpenById page="conversation" title={t("open_id")} action={t("open")} />
      <form class="filters" onSubmit={(event) => event.preventDefault()} onChange={change}>
        {texts.map(([name, title]) => (
          <label key={name}>{title}<input type="text" name={name} value={filters[name] ?? ""} /></label>
        ))}
        <label>
          {t("state")}
          <select name="status" value={filters["status"] ?? ""}>
            <option value="">{t("all")}</option>
            <option value="running">{label("running")}</option>
            <option value="ended">{label("ended")}</option>
          </select>
        </label>
      </form>
      <Table<Session>
        caption={t("sessions")}
        inAddress
        inputs={[filters]}
        load={(cursor, limit, signal) => get<Page<Session>>("/v1/sessions", { ...filters, cursor, limit }, signal)}
        row={(session) => session.session_id}
        empty={Object.values(filters).some(Boolean) ? t("no_such_sessions") : t("no_sessions")}
        columns={[
          {
            title: t("session"),
            show: (session) => (
              <a href={href("conversation", [session.session_id])}>{session.session_name ?? session.session_id}</a>
            ),
          },
          { title: t("user"), show: (session) => <a href={href("people", [session.user_id])}>{session.user_id}</a> },
          { title: t("agent"), show: (session) => session.agent_id },
          { title: t("state"), show: (session) => label(session.status) },
          { title: t("messages"), number: true, show: (session) => number(session.last_sequence_no) },
          { title: t("last_message"), show: (session) => <Time at={session.last_message_time} /> },
        ]}
      />
    </>
  );
}
