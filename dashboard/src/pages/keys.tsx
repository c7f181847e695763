// Who may call: keys of the own tenant; for operators tenants, and the keys of each.
import { useState } from "preact/hooks";

import { get, path as address, send, type Page } from "../api";
import type { PageProps } from "../app";
import { Copyable } from "../components/copy";
import { Dialog } from "../components/dialog";
import { Tag } from "../components/facts";
import "../components/stack.css";
import { type Column, Table } from "../components/table";
import { Tabs } from "../components/tabs";
import { Time } from "../components/time";
import { go, href } from "../routing";
import { currentKey, forgetKey } from "../session";
import { t } from "../text/keys";
import { type CreatedTenant, Tenants } from "./keys/tenants";

export interface Key {
  key_id: string;
  key_prefix: string;
  key_name: string | null;
  scopes: string[];
  agent_id: string | null;
  user_id: string | null;
  expires_at: string | null;
  revoked_at: string | null;
  last_used_at: string | null;
  create_time: string;
}

interface CreatedKey extends Key {
  key: string | null;
}

const SCOPES = ["read", "write", "admin", "operator"] as const;

export default function Keys({ path, query }: PageProps) {
  const tenant = path[0];
  const [made, setMade] = useState<{ key: string | null } | null>(null);
  const shown = made !== null && <NewKey value={made.key} close={() => setMade(null)} />;
  if (tenant !== undefined) {
    return (
      <div class="stack">
        <p><a href={href("keys", [], { tab: "tenants" })}>{t("back")}</a></p>
        <KeyList key={tenant} start={address("/v1/tenants", tenant, "keys")} tenant={tenant} show={setMade} />
        {shown}
      </div>
    );
  }
  const tab = query.get("tab") === "tenants" ? "tenants" : "keys";
  return (
    <div class="stack">
      <p>{t("about")}</p>
      <Tabs
        label={t("tabs")}
        tabs={[{ key: "keys", label: t("this_tenant") }, { key: "tenants", label: t("tenants") }]}
        current={tab}
        choose={(key) => go(href("keys", [], { tab: key === "tenants" ? key : null }))}
      >
        {tab === "keys" ?
          <KeyList start="/v1/keys" show={setMade} />
        : <Tenants show={(tenant: CreatedTenant) => setMade(tenant.key)} />}
      </Tabs>
      {shown}
    </div>
  );
}

function KeyList({ start, tenant, show }: { start: string; tenant?: string; show: (key: CreatedKey) => void }) {
  const [round, setRound] = useState(0);
  const [creating, setCreating] = useState(false);
  const [revoking, setRevoking] = useState<Key | null>(null);
  const refresh = () => setRound((last) => last + 1);
  const columns: Column<Key>[] = [
    { title: t("name"), show: (key) => <><strong>{nameOf(key)}</strong> <code>{key.key_prefix}</code></> },
    { title: t("scopes"), show: (key) => key.scopes.join(", ") },
    { title: t("state"), show: (key) => <State of={key} /> },
    { title: t("bound"), show: boundTo },
    { title: t("expires"), show: (key) => <Time at={key.expires_at} /> },
    { title: t("last_used"), show: (key) => <Time at={key.last_used_at} /> },
    { title: t("created"), show: (key) => <Time at={key.create_time} /> },
    {
      title: t("actions"),
      show: (key) =>
        stateOf(key) === "active" && (
          <button type="button" aria-label={t("revoke_named", { name: nameOf(key) })} onClick={() => setRevoking(key)}>
            {t("revoke")}
          </button>
        ),
    },
  ];
  return (
    <div class="stack">
      <div><button type="button" class="primary" onClick={() => setCreating(true)}>{t("create_key")}</button></div>
      <Table
        caption={tenant === undefined ? t("list") : t("list_of", { tenant })}
        columns={columns}
        load={(cursor, limit, signal) => get<Page<Key>>(start, { cursor, limit }, signal)}
        inputs={[start]}
        again={round}
        row={(key) => key.key_id}
        empty={t("no_keys")}
      />
      {creating && (
        <Creation
          start={start}
          close={() => setCreating(false)}
          made={(key) => {
            refresh();
            show(key);
          }}
        />
      )}
      {revoking && (
        <Dialog
          title={t("revoke_ask", { name: nameOf(revoking) })}
          action={t("revoke")}
          danger
          close={() => setRevoking(null)}
          act={async () => {
            await send("DELETE", address(start, revoking.key_id));
            if (isOwn(revoking)) forgetKey();
            else refresh();
          }}
        >
          <p>{t("revoke_about")}</p>
          {isOwn(revoking) && <p><strong>{t("revoke_own")}</strong></p>}
        </Dialog>
      )}
    </div>
  );
}

function Creation({ start, made, close }: { start: string; made: (key: CreatedKey) => void; close: () => void }) {
  const [name, setName] = useState("");
  const [scopes, setScopes] = useState<readonly string[]>(["write"]);
  const [user, setUser] = useState("");
  const [agent, setAgent] = useState("");
  const [expires, setExpires] = useState("");
  const toggle = (scope: string) =>
    setScopes(scopes.includes(scope) ? scopes.filter((other) => other !== scope) : [...scopes, scope]);
  const create = async () =>
    made(
      await send<CreatedKey>("POST", start, {
        key_name: name || null,
        scopes,
        user_id: user || null,
        agent_id: agent || null,
        expires_at: expires ? new Date(expires).toISOString() : null,
      }),
    );
  return (
    <Dialog title={t("create_key")} action={t("create")} act={create} close={close}>
      <label>
        {t("name")}
        <input type="text" maxLength={255} value={name} onInput={(event) => setName(event.currentTarget.value)} />
      </label>
      <fieldset>
        <legend>{t("scopes")}</legend>
        {SCOPES.map((scope) => (
          <label key={scope}>
            <input type="checkbox" checked={scopes.includes(scope)} onChange={() => toggle(scope)} /> {scope}
          </label>
        ))}
        <p class="small">{t("scopes_about")}</p>
      </fieldset>
      <label>
        {t("user_id")}
        <input type="text" value={user} onInput={(event) => setUser(event.currentTarget.value)} />
      </label>
      <label>
        {t("agent_id")}
        <input type="text" value={agent} onInput={(event) => setAgent(event.currentTarget.value)} />
      </label>
      <label>
        {t("expires_at")}
        <input type="datetime-local" value={expires} onInput={(event) => setExpires(event.currentTarget.value)} />
      </label>
    </Dialog>
  );
}

/** Without a value where the answer that had it was lost: the service keeps no keys. */
function NewKey({ value, close }: { value: string | null; close: () => void }) {
  return (
    <Dialog title={t("new_key")} close={close}>
      {value === null ? <p>{t("new_key_lost")}</p> : (
        <>
          <p>{t("new_key_about")}</p>
          <Copyable label={t("key")} value={value} />
        </>
      )}
    </Dialog>
  );
}

function State({ of: key }: { of: Key }) {
  const state = stateOf(key);
  return (
    <>
      <Tag tone={state === "active" ? "good" : "bad"}>{t(state)}</Tag>
      {isOwn(key) && <> <Tag>{t("this_key")}</Tag></>}
    </>
  );
}

function stateOf(key: Key): "active" | "expired" | "revoked" {
  if (key.revoked_at !== null) return "revoked";
  return key.expires_at !== null && new Date(key.expires_at) < new Date() ? "expired" : "active";
}

const nameOf = (key: Key): string => key.key_name ?? t("unnamed");

/** The part of a key between the underscores is public. */
const isOwn = (key: Key): boolean => currentKey()?.split("_")[1] === key.key_prefix;

function boundTo(key: Key): string {
  const parts = [
    key.user_id !== null && t("user", { id: key.user_id }),
    key.agent_id !== null && t("agent", { id: key.agent_id }),
  ].filter((part) => part !== false);
  return parts.length > 0 ? parts.join(", ") : t("none");
}
