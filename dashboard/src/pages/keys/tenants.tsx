import { useState } from "preact/hooks";

import { get, path as address, send, type Page } from "../../api";
import { Dialog } from "../../components/dialog";
import { Tag } from "../../components/facts";
import { Problem } from "../../components/states";
import { type Column, Table } from "../../components/table";
import { Time } from "../../components/time";
import { resting, useAction } from "../../load";
import { href } from "../../routing";
import { t } from "../../text/keys";

interface Tenant {
  tenant_id: string;
  tenant_name: string;
  status: "enabled" | "disabled";
  embedding_models: string[];
  version: number;
  create_time: string;
}

export interface CreatedTenant extends Tenant {
  key: { key: string | null };
}

export function Tenants({ show }: { show: (tenant: CreatedTenant) => void }) {
  const [round, setRound] = useState(0);
  const [creating, setCreating] = useState(false);
  const [disabling, setDisabling] = useState<Tenant | null>(null);
  const refresh = () => setRound((last) => last + 1);
  const turn = async (tenant: Tenant, status: Tenant["status"]) => {
    await send("PATCH", address("/v1/tenants", tenant.tenant_id), { status }, { "If-Match": String(tenant.version) });
    refresh();
  };
  const enabling = useAction((tenant: Tenant) => turn(tenant, "enabled"));
  const columns: Column<Tenant>[] = [
    { title: t("name"), show: (tenant) => <strong>{tenant.tenant_name}</strong> },
    { title: t("tenant_id"), show: (tenant) => <a href={href("keys", [tenant.tenant_id])}>{tenant.tenant_id}</a> },
    {
      title: t("state"),
      show: ({ status }) => <Tag tone={status === "enabled" ? "good" : "bad"}>{t(status)}</Tag>,
    },
    { title: t("models"), show: (tenant) => tenant.embedding_models.join(", ") || t("none") },
    { title: t("created"), show: (tenant) => <Time at={tenant.create_time} /> },
    {
      title: t("actions"),
      show: (tenant) => {
        const name = tenant.tenant_name;
        return tenant.status === "enabled" ?
            <button type="button" aria-label={t("disable_named", { name })} onClick={() => setDisabling(tenant)}>
              {t("disable")}
            </button>
          : <button
              type="button"
              aria-label={t("enable_named", { name })}
              {...resting(enabling.busy)}
              onClick={() => enabling.run(tenant)}
            >
              {t("enable")}
            </button>;
      },
    },
  ];
  return (
    <div class="stack">
      <p>{t("tenants_about")}</p>
      <div><button type="button" class="primary" onClick={() => setCreating(true)}>{t("create_tenant")}</button></div>
      {enabling.problem && <Problem problem={enabling.problem} />}
      <Table
        caption={t("tenant_list")}
        columns={columns}
        load={(cursor, limit, signal) => get<Page<Tenant>>("/v1/tenants", { cursor, limit }, signal)}
        again={round}
        row={(tenant) => tenant.tenant_id}
        empty={t("no_tenants")}
      />
      {creating && (
        <Creation
          close={() => setCreating(false)}
          made={(tenant) => {
            refresh();
            show(tenant);
          }}
        />
      )}
      {disabling && (
        <Dialog
          title={t("disable_ask", { name: disabling.tenant_name })}
          action={t("disable")}
          danger
          act={() => turn(disabling, "disabled")}
          close={() => setDisabling(null)}
        >
          <p>{t("disable_about")}</p>
        </Dialog>
      )}
    </div>
  );
}

function Creation({ made, close }: { made: (tenant: CreatedTenant) => void; close: () => void }) {
  const [name, setName] = useState("");
  const [id, setId] = useState("");
  const create = async () =>
    made(await send<CreatedTenant>("POST", "/v1/tenants", { tenant_name: name, tenant_id: id || null }));
  return (
    <Dialog title={t("create_tenant")} action={t("create")} act={create} close={close}>
      <label>
        {t("name")}
        <input type="text" required maxLength={255} value={name} onInput={(event) => setName(event.currentTarget.value)} />
      </label>
      <label>
        {t("tenant_id_own")}
        <input type="text" maxLength={64} value={id} onInput={(event) => setId(event.currentTarget.value)} />
      </label>
    </Dialog>
  );
}
