import type { ComponentChildren } from "preact";

import { number } from "../text";

export interface Bar {
  label: ComponentChildren;
  value: number;
  /** What is written for the value; the number itself when left out. */
  text?: string;
  /** One of a few colours, for parts of a kind. */
  tone?: "1" | "2" | "3" | "4" | "5";
}

/** Horizontal bars with their numbers; the longest, or `most`, fills the width. */
export function Bars({ items, most, label }: { items: readonly Bar[]; most?: number; label: string }) {
  const full = most ?? Math.max(0, ...items.map((item) => item.value));
  return (
    <ul class="bars" aria-label={label}>
      {items.map((item, place) => (
        <li key={place}>
          <span class="bar-label">{item.label}</span>
          <span class="bar-track" aria-hidden="true">
            <span
              class={`bar tone-${item.tone ?? "1"}`}
              ref={(element) => element?.style.setProperty("width", `${width(item.value, full)}%`)}
            />
          </span>
          <span class="bar-value">{item.text ?? number(item.value)}</span>
        </li>
      ))}
    </ul>
  );
}

function width(value: number, full: number): number {
  return full > 0 ? Math.min(100, Math.max(0, (100 * value) / full)) : 0;
}
