// The key of this tab: in sessionStorage alone, so that it is gone when the tab is closed.
import type { ProblemError } from "./api";

const PLACE = "kemem.key";
const listeners = new Set<() => void>();
let refusal: ProblemError | null = null;

export function currentKey(): string | null {
  return sessionStorage.getItem(PLACE);
}

export function keepKey(key: string): void {
  refusal = null;
  sessionStorage.setItem(PLACE, key);
  tell();
}

/** Sign out; `because` is shown beside the field for the next key. */
export function forgetKey(key: string | null = currentKey(), because: ProblemError | null = null): void {
  if (key !== currentKey()) return;
  refusal = because;
  sessionStorage.removeItem(PLACE);
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

function tell(): void {
  for (const listener of listeners) listener();
}
