import { get, type Page } from "../../api";
import { filtersOf, OpenById } from "../../components/list-head";
import { Table } from "../../components/table";
import { Time } from "../../components/time";
import { href } from "../../routing";
import { label } from "../../text/labels";
import { t } from "../../text/people";

export interface User {
  user_id: string;
  agent_id: string;
  user_name: string | null;
  user_type: string | null;
  external_id: string | null;
  status: string;
  last_active_time: string | null;
  create_time: string;
}

const FILTERS = ["starts_with", "agent_id", "external_id", "status"] as const;

export function UserList({ query }: { query: URLSearchParams }) {
  const [filters, change] = filtersOf("people", FILTERS, query);
  return (
    <>
      <OpenById page="people" title={t("open_id")} action={t("open")} />
      <form class="filters" onSubmit={(event) => event.preventDefault()} onChange={change}>
        <label>
          {t("starts_with")}
          <input type="search" name="starts_with" value={filters["starts_with"] ?? ""} />
        </label>
        <label>
          {t("all_agents")}
          <input type="text" name="agent_id" value={filters["agent_id"] ?? ""} />
        </label>
        <label>
          {t("external_id")}
          <input type="text" name="external_id" value={filters["external_id"] ?? ""} />
        </label>
        <label>
          {t("state")}
          <select name="status" value={filters["status"] ?? ""}>
            <option value="">{t("all")}</option>
            <option value="enabled">{label("enabled")}</option>
            <option value="disabled">{label("disabled")}</option>
          </select>
        </label>
      </form>
      <Table<User>
        caption={t("users")}
        inAddress
        inputs={[filters]}
        load={(cursor, limit, signal) => get<Page<User>>("/v1/users", { ...filters, cursor, limit }, signal)}
        row={(user) => user.user_id}
        empty={Object.values(filters).some(Boolean) ? t("no_such_users") : t("no_users")}
        columns={[
          {
            title: t("user"),
            show: (user) => (
              <>
                <a href={href("people", [user.user_id])}>{user.user_name ?? user.user_id}</a>
                {user.user_name && <div class="small">{user.user_id}</div>}
              </>
            ),
          },
          { title: t("agent"), show: (user) => user.agent_id },
          { title: t("state"), show: (user) => label(user.status) },
          { title: t("last_active"), show: (user) => <Time at={user.last_active_time} /> },
          { title: t("created"), show: (user) => <Time at={user.create_time} /> },
        ]}
      />
    </>
  );
}
