import type { ComponentChildren } from "preact";

/** Names and values side by side; pairs with nothing to show are left out. */
export function Facts({ items }: { items: readonly (readonly [string, ComponentChildren])[] }) {
  const shown = items.filter(([, value]) => value !== null && value !== undefined && value !== "");
  return (
    <dl class="facts">
      {shown.map(([name, value]) => [<dt key={`${name}-name`}>{name}</dt>, <dd key={name}>{value}</dd>])}
    </dl>
  );
}

export function Tag({ children, tone }: { children: ComponentChildren; tone?: "good" | "bad" }) {
  return <span class={`tag${tone ? ` ${tone}` : ""}`}>{children}</span>;
}
