import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";

import { locale, number, t } from "../text";

export interface Line {
  label: string;
  values: readonly (number | null)[];
}

const HEIGHT = 220;

/**
 * Lines over time. `times` are seconds since 1970. What it shows stands in `label` for screen readers,
 * so give the figures beside it, too, where they matter.
 */
export function Chart({ times, lines, label }: { times: readonly number[]; lines: readonly Line[]; label: string }) {
  const place = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const element = place.current;
    if (!element) return;
    let plot = drawn(element, times, lines);
    const sized = new ResizeObserver(() => plot.setSize({ width: element.clientWidth, height: HEIGHT }));
    sized.observe(element);
    const dark = matchMedia("(prefers-color-scheme: dark)");
    const redraw = () => {
      plot.destroy();
      plot = drawn(element, times, lines);
    };
    dark.addEventListener("change", redraw);
    return () => {
      dark.removeEventListener("change", redraw);
      sized.disconnect();
      plot.destroy();
    };
  }, [JSON.stringify(times), JSON.stringify(lines), locale()]);
  return <div class="chart" role="img" aria-label={label} ref={place} />;
}

function drawn(element: HTMLElement, times: readonly number[], lines: readonly Line[]): uPlot {
  const style = getComputedStyle(element);
  const colour = (name: string) => style.getPropertyValue(name).trim();
  // What is counted by day has the days of UTC, wherever the reader is.
  const zone = times.every((time) => time % 86_400 === 0) ? "UTC" : undefined;
  const moment: Intl.DateTimeFormatOptions =
    zone ? { dateStyle: "medium", timeZone: zone } : { dateStyle: "medium", timeStyle: "short" };
  const axis = { stroke: colour("--muted"), grid: { stroke: colour("--line"), width: 1 }, ticks: { stroke: colour("--line"), width: 1 } };
  return new uPlot(
    {
      width: element.clientWidth,
      height: HEIGHT,
      legend: { live: true },
      hooks: { setCursor: [(plot) => plot.root.classList.toggle("pointed", plot.cursor.idx != null)] },
      ...(zone ? { tzDate: (time) => uPlot.tzDate(new Date(time * 1000), "Etc/UTC") } : {}),
      axes: [
        { ...axis, values: (_, ticks) => ticks.map(shortTime(ticks, zone)) },
        { ...axis, size: 64, values: (_, ticks) => ticks.map((tick) => number(tick, { notation: "compact" })) },
      ],
      series: [
        {
          label: t("time"),
          value: (_, at) => (at === null ? "" : new Intl.DateTimeFormat(locale(), moment).format(new Date(at * 1000))),
        },
        ...lines.map((line, place) => ({
          label: line.label,
          stroke: colour(`--tone-${(place % 5) + 1}`),
          width: 2,
          spanGaps: false,
          points: { show: times.length < 40 },
        })),
      ],
    },
    [[...times], ...lines.map((line) => [...line.values])] as uPlot.AlignedData,
    element,
  );
}

function shortTime(ticks: readonly number[], timeZone?: string): (tick: number) => string {
  const span = (ticks.at(-1) ?? 0) - (ticks[0] ?? 0);
  const form: Intl.DateTimeFormatOptions =
    span < 2 * 86_400 ? { hour: "2-digit", minute: "2-digit" } : { month: "short", day: "numeric" };
  const format = new Intl.DateTimeFormat(locale(), { ...form, timeZone });
  return (tick) => format.format(new Date(tick * 1000));
}
