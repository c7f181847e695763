// Why something is remembered: the messages that say it, the gate's verdicts, and the run that read it.
import { useState } from "preact/hooks";

import { get, type Page } from "../../api";
import { EvidenceMessage } from "../../components/message";
import { type Reason, Reasons as Rules } from "../../components/reasons";
import { RunDialog } from "../../components/run";
import { Table } from "../../components/table";
import { Time } from "../../components/time";
import type { Memory } from "../../shapes";
import { label } from "../../text/labels";
import { t } from "../../text/people";

interface Decision {
  decision_id: string;
  verdict: string;
  event: string | null;
  reasons: Reason[];
  extraction_id: string | null;
  create_time: string;
}

const STEP = 5;

export function Reasons({ memory }: { memory: Memory }) {
  const [shown, setShown] = useState(STEP);
  const [run, setRun] = useState<string | null>(null);
  const further = memory.evidence.length - shown;
  return (
    <>
      <h3>{t("evidence")}</h3>
      {memory.evidence.length === 0 && <p>{t("no_evidence", { key: memory.creator ?? "?" })}</p>}
      {memory.evidence.slice(0, shown).map((id) => <EvidenceMessage key={id} id={id} />)}
      {further > 0 && (
        <button type="button" onClick={() => setShown(shown + STEP)}>
          {t("more_evidence", { count: Math.min(further, STEP) })}
        </button>
      )}
      <h3>{t("verdicts")}</h3>
      <Table<Decision>
        caption={t("verdicts")}
        inputs={[memory.memory_id, memory.version]}
        load={(cursor, limit, signal) =>
          get<Page<Decision>>("/v1/memories/decisions", { memory_id: memory.memory_id, cursor, limit }, signal)}
        row={(decision) => decision.decision_id}
        empty={t("no_verdicts")}
        columns={[
          { title: t("when"), show: (decision) => <Time at={decision.create_time} /> },
          { title: t("verdict"), show: (decision) => label(decision.verdict) },
          { title: t("result"), show: (decision) => decision.event && label(decision.event) },
          {
            title: t("rules"),
            show: (decision) =>
              <Rules reasons={decision.reasons} codes={[]} />,
          },
          {
            title: t("extraction"),
            show: ({ extraction_id: id }) =>
              id === null ? t("saved_directly") : <button type="button" onClick={() => setRun(id)}>{t("show_run")}</button>,
          },
        ]}
      />
      {run && <RunDialog id={run} close={() => setRun(null)} />}
    </>
  );
}
