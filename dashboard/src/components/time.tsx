import { locale, t } from "../text";

/** A day of UTC, as `2026-05-01` or its midnight. */
export function Day({ at }: { at: string }) {
  const moment = new Date(at);
  const day = new Intl.DateTimeFormat(locale(), { dateStyle: "medium", timeZone: "UTC" }).format(moment);
  return <time dateTime={at} title={moment.toISOString()}>{day}</time>;
}

/** From when or until when something holds: a midnight of UTC stands for the day, anything else is a moment. */
export function Validity({ at }: { at: string }) {
  return isDay(new Date(at)) ? <Day at={at} /> : <Time at={at} />;
}

const isDay = (moment: Date) => moment.getTime() % 86_400_000 === 0;

/** What a field for a time of validity says, read as `Validity` shows it: a midnight stands for the day. */
export function validityOf(field: string): string {
  const day = new Date(`${field}Z`);
  return (isDay(day) ? day : new Date(field)).toISOString();
}

/** A time of validity as its field writes it. */
export function validityField(at: string): string {
  const moment = new Date(at);
  return isDay(moment) ? moment.toISOString().slice(0, 19) : localField(at);
}

/** A moment as a field writes it, in the reader's zone. */
export function localField(at: string): string {
  const moment = new Date(at);
  return new Date(moment.getTime() - moment.getTimezoneOffset() * 60_000).toISOString().slice(0, 19);
}

/** A moment in the reader's zone and language; the tooltip has it to the second, in UTC. */
export function Time({ at }: { at: string | null | undefined }) {
  if (!at) return <>{t("never")}</>;
  const moment = new Date(at);
  if (Number.isNaN(moment.getTime())) return <>{at}</>;
  const form: Intl.DateTimeFormatOptions = { dateStyle: "medium", timeStyle: "short" };
  return (
    <time dateTime={at} title={moment.toISOString()}>
      {new Intl.DateTimeFormat(locale(), form).format(moment)}
    </time>
  );
}
