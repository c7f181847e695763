// Addresses after the `#`: `#/people/ana?tab=memories` is the page `people` with the path ["ana"].
import { useLayoutEffect, useState } from "preact/hooks";

export interface Route {
  page: string;
  path: string[];
  query: URLSearchParams;
}

export function parseRoute(hash: string): Route {
  const [address = "", query = ""] = hash.replace(/^#\/?/, "").split(/\?(.*)/s);
  const [page = "", ...path] = address.split("/").map(decoded);
  return { page, path: path.filter((part) => part !== ""), query: new URLSearchParams(query) };
}

/** An address within the dashboard; parts are encoded, empty query values left out. */
export function href(
  page: string,
  path: readonly string[] = [],
  query: Record<string, string | number | null | undefined> = {},
): string {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== null && value !== undefined && value !== "") parameters.set(name, String(value));
  }
  const text = parameters.toString();
  return `#/${[page, ...path].map(encodeURIComponent).join("/")}${text ? `?${text}` : ""}`;
}

export function go(address: string): void {
  location.hash = address;
}

/** Change the address without a new entry in the browser's history, as for filters. */
export function replace(address: string): void {
  history.replaceState(null, "", address);
  dispatchEvent(new HashChangeEvent("hashchange"));
}

/** Change the address with a new entry in the history, which keeps `state`. */
export function push(address: string, state: unknown): void {
  history.pushState(state, "", address);
  dispatchEvent(new HashChangeEvent("hashchange"));
}

/** The present address with other values of its query; null leaves one out. */
export function withQuery(changed: Record<string, string | null>): string {
  const { page, path, query } = parseRoute(location.hash);
  return href(page, path, { ...Object.fromEntries(query), ...changed });
}

export function useRoute(): Route {
  const [route, setRoute] = useState(() => parseRoute(location.hash));
  useLayoutEffect(() => {
    const update = () => setRoute(parseRoute(location.hash));
    addEventListener("hashchange", update);
    return () => removeEventListener("hashchange", update);
  }, []);
  return route;
}

/** `part` as it is where it is not encoded rightly. */
export function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
