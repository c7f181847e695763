// Metrics of runs side by side. Pure.
import type { Metrics } from "./shapes";

export interface Compared {
  name: string;
  /** One of each run; null where a run lacks the metric. */
  values: (number | null)[];
  /** Of each later run to the first. */
  differences: (number | null)[];
}

/** Numbers by their path: `{recall: {at_10: 0.7}}` is `recall.at_10`. */
export function flattened(metrics: Metrics, before = ""): Map<string, number> {
  const flat = new Map<string, number>();
  for (const [name, value] of Object.entries(metrics)) {
    const path = before ? `${before}.${name}` : name;
    if (typeof value === "number") flat.set(path, value);
    else if (value !== null && typeof value === "object") {
      for (const [inner, number] of flattened(value as Metrics, path)) flat.set(inner, number);
    }
  }
  return flat;
}

/** All metrics that at least one run has, by name. */
export function compared(runs: readonly Metrics[]): Compared[] {
  const flat = runs.map((metrics) => flattened(metrics));
  const names = [...new Set(flat.flatMap((metrics) => [...metrics.keys()]))].sort();
  return names.map((name) => {
    const values = flat.map((metrics) => metrics.get(name) ?? null);
    const [first = null, ...rest] = values;
    return {
      name,
      values,
      differences: rest.map((value) => (value === null || first === null ? null : value - first)),
    };
  });
}
