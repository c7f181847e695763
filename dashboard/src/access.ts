// What the key of this tab may do, as the service says: what it may not is shown before it is pressed.
import { get } from "./api";
import { t } from "./text";

export type Scope = "read" | "write" | "admin" | "operator";

export interface Access {
  scopes: Scope[];
  user_id: string | null;
  agent_id: string | null;
  /** Whom a request is about that names nobody. */
  default_user_id: string | null;
}

let known: Access | null = null;

/** Ask the service; null where it does not answer, and then pages ask and are refused. */
export async function loadAccess(): Promise<Access | null> {
  known = await get<Access>("/dashboard/key").catch(() => null);
  return known;
}

export const may = (scope: Scope): boolean => known === null || known.scopes.includes(scope);

export const isBound = (access: Access | null): boolean =>
  access !== null && (access.user_id !== null || access.agent_id !== null);

export const whoeverIsMeant = (): string | null => known?.user_id ?? known?.default_user_id ?? null;

/** Whether figures of the whole tenant are not for this key. */
export const isRestricted = (): boolean => isBound(known);

/** Attributes of a button: without the scope it is disabled and says why. */
export function needs(scope: "write" | "admin", disabled = false): { disabled: boolean; title?: string } {
  return may(scope) ? { disabled } : { disabled: true, title: t(`needs_${scope}`) };
}
