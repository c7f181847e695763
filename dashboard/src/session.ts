// The key of this tab: in sessionStorage alone, so that it is gone when the tab is closed.
import { path, type ProblemError, send } from "./api";
import { asProblem } from "./load";
import { decoded } from "./routing";

const PLACE = "kemem.key";
/** Where the id of a key stands that a link made: nobody but this tab has that key. */
const MADE = "kemem.key_id";
const listeners = new Set<() => void>();
let refusal: ProblemError | null = null;

export function currentKey(): string | null {
  return sessionStorage.getItem(PLACE);
}

export function keepKey(key: string): void {
  refusal = null;
  sessionStorage.removeItem(MADE);
  sessionStorage.setItem(PLACE, key);
  tell();
}

/** Forget the key; one that a link made is revoked, too. Where that fails, it ends by itself. */
export function signOut(): void {
  revokeMade();
  forgetKey();
}

function revokeMade(): void {
  const made = sessionStorage.getItem(MADE);
  if (made !== null) send("DELETE", path("/v1/keys", made)).catch(asProblem);
}

/** Forget the key; `because` is shown beside the field for the next key. */
export function forgetKey(key: string | null = currentKey(), because: ProblemError | null = null): void {
  if (key !== currentKey()) return;
  refusal = because;
  sessionStorage.removeItem(PLACE);
  sessionStorage.removeItem(MADE);
  tell();
}

/** Why the last key was given up; null when the reader signed out. */
export function lastRefusal(): ProblemError | null {
  return refusal;
}

export function onKeyChange(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** The one-time code of a link (`#code=…`), taken out of the address and its history. */
export function takeCode(): string | null {
  const found = /^#code=(.+)$/.exec(location.hash);
  if (!found) return null;
  history.replaceState(null, "", "#/overview");
  return decoded(found[1] ?? "");
}

/** Exchange a one-time code for a key; a refusal is kept as `lastRefusal`. */
export async function signInWith(code: string): Promise<void> {
  try {
    const made = await send<{ key: string; key_id: string }>("POST", "/dashboard/sign-in", undefined, {
      Authorization: `Code ${code}`,
    });
    revokeMade();
    keepKey(made.key);
    sessionStorage.setItem(MADE, made.key_id);
  } catch (error) {
    refusal = asProblem(error);
    tell();
  }
}

function tell(): void {
  for (const listener of listeners) listener();
}
