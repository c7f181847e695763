import { useState } from "preact/hooks";

import { needs } from "../../access";
import { path, send } from "../../api";
import { Dialog } from "../../components/dialog";
import { EraseDialog } from "../../components/erasure";
import { JobLink } from "../../components/job-details";
import { outcomesOf } from "../../components/run";
import { Problem } from "../../components/states";
import { resting, useAction } from "../../load";
import type { Receipt, Session } from "../../shapes";
import { t } from "../../text/conversation";
import { label } from "../../text/labels";

interface Extracted {
  done: boolean;
  job_id: string | null;
  /** Of the last run: how many proposals ended as what. */
  result: { events?: Record<string, number> } | null;
}

export function SessionActions(
  { session, changed, deleted }: { session: Session; changed: () => void; deleted: (receipt: Receipt) => void },
) {
  const address = path("/v1/sessions", session.session_id);
  const [asking, setAsking] = useState<"end" | "delete" | null>(null);
  const [extracted, setExtracted] = useState<Extracted | null>(null);
  const extracting = useAction(async () => {
    setExtracted(null);
    setExtracted(await send<Extracted>("POST", `${address}/extract`, { wait: true }));
    changed();
  });
  const reopening = useAction(async () => {
    await send("POST", `${address}/reopen`);
    changed();
  });
  const close = () => setAsking(null);
  return (
    <>
      <div class="buttons">
        <button type="button" {...needs("write")} {...resting(extracting.busy)} onClick={() => extracting.run()}>{t("extract")}</button>
        {session.status === "ended" ? (
          <button type="button" {...needs("write")} {...resting(reopening.busy)} onClick={() => reopening.run()}>{t("reopen")}</button>
        ) : <button type="button" {...needs("write")} onClick={() => setAsking("end")}>{t("end")}</button>}
        <button type="button" class="danger" {...needs("write")} onClick={() => setAsking("delete")}>{t("delete")}</button>
        <span role="status">{extracted && said(extracted)}</span>
      </div>
      {extracting.problem && <Problem problem={extracting.problem} />}
      {reopening.problem && <Problem problem={reopening.problem} />}
      {asking === "end" && (
        <Dialog
          title={t("end")}
          action={t("end")}
          act={async () => {
            await send("POST", `${address}/end`);
            changed();
          }}
          close={close}
        >
          <p>{t("end_text")}</p>
        </Dialog>
      )}
      {asking === "delete" && (
        <EraseDialog
          title={t("delete_title", { id: session.session_id })}
          address={address}
          id={session.session_id}
          done={deleted}
          close={close}
        />
      )}
    </>
  );
}

function said(extracted: Extracted) {
  if (!extracted.done) return <>{t("extract_waits")} {extracted.job_id && <JobLink id={extracted.job_id} />}</>;
  return t("extract_done", { outcomes: outcomesOf({ outcomes: extracted.result?.events ?? {} }) || label("NONE") });
}
