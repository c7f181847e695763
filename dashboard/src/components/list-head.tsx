// What stands above a list: a way to one of its rows, and filters that the address keeps.
import { useState } from "preact/hooks";

import { go, href, replace } from "../routing";

/** A form that opens what has an id, as `page` shows it. */
export function OpenById({ page, title, action }: { page: string; title: string; action: string }) {
  const [id, setId] = useState("");
  return (
    <form
      class="filters"
      onSubmit={(event) => {
        event.preventDefault();
        if (id.trim()) go(href(page, [id.trim()]));
      }}
    >
      <label>
        {title}
        <input type="text" required value={id} onInput={(event) => setId(event.currentTarget.value)} />
      </label>
      <button type="submit">{action}</button>
    </form>
  );
}

/** Filters by name as the address has them, and what a form with fields of these names does when one changes. */
export function filtersOf(
  page: string,
  names: readonly string[],
  query: URLSearchParams,
): [Record<string, string>, (event: Event) => void] {
  const change = (event: Event) => {
    const form = new FormData(event.currentTarget as HTMLFormElement);
    const chosen = names.map((name) => [name, String(form.get(name) ?? "").trim()] as const);
    replace(href(page, [], Object.fromEntries(chosen)));
  };
  return [Object.fromEntries(names.map((name) => [name, query.get(name) ?? ""])), change];
}
