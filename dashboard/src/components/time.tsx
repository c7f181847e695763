import { locale, t } from "../text";

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
