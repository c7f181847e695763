import { useState } from "preact/hooks";

import { get, type Page } from "../../api";
import { outcomesOf, RunDialog } from "../../components/run";
import { Table } from "../../components/table";
import { Time } from "../../components/time";
import type { Run, Session } from "../../shapes";
import { number } from "../../text";
import { t } from "../../text/conversation";
import { label } from "../../text/labels";

export function Extraction({ session }: { session: Session }) {
  const [run, setRun] = useState<string | null>(null);
  return (
    <>
      <Table<Run>
        caption={t("extraction")}
        inputs={[session.session_id, session.last_extracted_seq]}
        load={(cursor, limit, signal) =>
          get<Page<Run>>("/v1/extractions", { session_id: session.session_id, cursor, limit }, signal)}
        row={(one) => one.extraction_id}
        empty={t("no_runs")}
        columns={[
          { title: t("when"), show: (one) => <Time at={one.create_time} /> },
          { title: t("trigger"), show: (one) => label(one.trigger) },
          { title: t("state"), show: (one) => label(one.status) },
          { title: t("messages"), number: true, show: (one) => number(one.messages) },
          { title: t("extractor"), show: (one) => one.model ?? one.extractor },
          { title: t("outcomes"), show: (one) => outcomesOf(one) },
          {
            title: t("actions"),
            show: (one) => <button type="button" onClick={() => setRun(one.extraction_id)}>{t("show_run")}</button>,
          },
        ]}
      />
      {run && <RunDialog id={run} close={() => setRun(null)} />}
    </>
  );
}
