// Figures by day: a chart, and beside it the same figures as a table.
import { number } from "../text";
import { Chart } from "./chart";
import "./daily.css";
import { Day } from "./time";

export interface Series<T> {
  label: string;
  /** The figure of a day; `undefined` is a day of which nothing was counted. */
  value: (item: T | undefined) => number | null;
  show?: (value: number) => string;
}

interface OfDay {
  day: string | null;
}

/** All days from `since` to `until` are drawn; the table, newest first, has those that were counted. */
export function Daily<T extends OfDay>(
  { label, dayLabel, since, until, items, series }: {
    label: string;
    dayLabel: string;
    since: string;
    until: string;
    items: readonly T[];
    series: readonly Series<T>[];
  },
) {
  const byDay = new Map(items.map((item) => [item.day, item]));
  const days = daysBetween(since, until);
  const counted = days.filter((day) => byDay.has(day)).reverse();
  return (
    <div class="daily">
      <Chart
        label={label}
        times={days.map((day) => Date.parse(day) / 1000)}
        lines={series.map((one) => ({ label: one.label, values: days.map((day) => one.value(byDay.get(day))) }))}
      />
      <div class="scroll" tabIndex={0} role="region" aria-label={label}>
        <table>
          <caption class="hidden">{label}</caption>
          <thead>
            <tr>
              <th scope="col">{dayLabel}</th>
              {series.map((one) => <th key={one.label} scope="col" class="number">{one.label}</th>)}
            </tr>
          </thead>
          <tbody>
            {counted.map((day) => (
              <tr key={day}>
                <td data-title={dayLabel}><Day at={day} /></td>
                {series.map((one) => (
                  <td key={one.label} data-title={one.label} class="number">{figure(one, byDay.get(day))}</td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </div>
  );
}

function figure<T>(series: Series<T>, item: T | undefined): string {
  const value = series.value(item);
  return value === null ? "–" : (series.show ?? number)(value);
}

function daysBetween(since: string, until: string): string[] {
  const days: string[] = [];
  for (let at = Date.parse(since); at <= Date.parse(until); at += 86_400_000) {
    days.push(new Date(at).toISOString().slice(0, 10));
  }
  return days;
}

/** The first day of the last `days`, as `since` of the statistics takes it. */
export function daysAgo(days: number): string {
  return new Date(Date.now() - (days - 1) * 86_400_000).toISOString().slice(0, 10);
}
