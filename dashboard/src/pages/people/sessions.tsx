import { get, type Page } from "../../api";
import { Table } from "../../components/table";
import { Time } from "../../components/time";
import { href } from "../../routing";
import type { Session } from "../../shapes";
import { number } from "../../text";
import { label } from "../../text/labels";
import { t } from "../../text/people";

export function SessionList({ user }: { user: string }) {
  return (
    <Table<Session>
      caption={t("sessions")}
      inputs={[user]}
      load={(cursor, limit, signal) => get<Page<Session>>("/v1/sessions", { user_id: user, cursor, limit }, signal)}
      row={(session) => session.session_id}
      empty={t("no_sessions")}
      columns={[
        {
          title: t("session_name"),
          show: (session) => (
            <a href={href("conversation", [session.session_id])}>{session.session_name ?? session.session_id}</a>
          ),
        },
        { title: t("agent"), show: (session) => session.agent_id },
        { title: t("state"), show: (session) => label(session.status) },
        { title: t("messages"), number: true, show: (session) => number(session.last_sequence_no) },
        { title: t("last_message"), show: (session) => <Time at={session.last_message_time} /> },
      ]}
    />
  );
}
