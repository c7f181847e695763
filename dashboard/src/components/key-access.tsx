// Where a key begins that may not see the figures of the tenant.
import { type Access, isBound } from "../access";
import { href } from "../routing";
import { t } from "../text";

export function KeyAccess({ access }: { access: Access }) {
  const { scopes, user_id: user, agent_id: agent } = access;
  const whom = [user && t("user_named", { id: user }), agent && t("agent_named", { id: agent })].filter(Boolean).join(", ");
  const reads = scopes.includes("read");
  const pages: [address: string, name: string][] = reads
    ? [
      user ? [href("people", [user]), user] : [href("people"), t("people")],
      [href("search", [], { user_id: user, agent_id: agent }), t("search")],
      [href("conversation"), t("conversation")],
    ]
    : [[href("keys", [], { tab: "tenants" }), t("keys")]];
  return (
    <section class="panel">
      <p>{t("key_may", { scopes: scopes.join(", ") })} {!reads && t("needs_read")}</p>
      {isBound(access) && <p>{t("key_of", { whom })}</p>}
      <p>{t("begin_at")}</p>
      <ul>{pages.map(([address, name]) => <li key={address}><a href={address}>{name}</a></li>)}</ul>
    </section>
  );
}
