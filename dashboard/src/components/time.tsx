import { locale, t } from "../text";

/** From when or until when something holds: a midnight of UTC stands for the day, anything else is a moment. */
export function Validity({ at }: { at: string }) {
  const moment = new Date(at);
  if (moment.getTime() % 86_400_000 !== 0) return <Time at={at} />;
  const day = new Intl.DateTimeFormat(locale(), { dateStyle: "medium", timeZone: "UTC" }).format(moment);
  return <time dateTime={at} title={moment.toISOString()}>{day}</time>;
}

/** A moment in the reader's zone and language; the tooltip has it to the second, in UTC. */
export function Time({ at, date = false }: { at: string | null | undefined; date?: boolean }) {
  if (!at) return <>{t("never")}</>;
  const moment = new Date(at);
  if (Number.isNaN(moment.getTime())) return <>{at}</>;
  const form: Intl.DateTimeFormatOptions = date ? { dateStyle: "medium" } : { dateStyle: "medium", timeStyle: "short" };
  return (
    <time dateTime={at} title={moment.toISOString()}>
      {new Intl.DateTimeFormat(locale(), form).format(moment)}
    </time>
  );
}
