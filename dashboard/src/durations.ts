// How long something takes or has taken, in its largest fitting unit: "3 min", "2 小时".
import { number } from "./text";

const UNITS: readonly [unit: string, seconds: number][] = [
  ["day", 86_400],
  ["hour", 3_600],
  ["minute", 60],
  ["second", 1],
];

export function duration(seconds: number): string {
  const [unit, size] = UNITS.find(([, length]) => seconds >= length) ?? ["millisecond", 0.001];
  const count = Math.max(0, seconds) / size;
  return number(count, { style: "unit", unit, unitDisplay: "short", maximumFractionDigits: count < 10 && size <= 1 ? 1 : 0 });
}

/** How long ago `at` was; a clock that runs ahead of this one counts as now. */
export function since(at: string): string {
  return duration(Math.max(1, (Date.now() - new Date(at).getTime()) / 1000));
}

/** The end of the last bucket that the service counts lag in, in ms: of what is longer it knows only that. */
const LONGEST = 86_400_000;

/** A percentile of lag, which is read from a histogram. */
export function estimated(milliseconds: number): string {
  return `${milliseconds >= LONGEST ? ">" : "≈"} ${duration(milliseconds / 1000)}`;
}
