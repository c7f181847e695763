// Calls of tools that a human is asked about.
import { useState } from "preact/hooks";

import { needs } from "../../access";
import { get, type Page, path, send } from "../../api";
import { Dialog } from "../../components/dialog";
import { Call } from "../../components/message";
import { Table } from "../../components/table";
import { Time } from "../../components/time";
import { t } from "../../text/conversation";

interface Approval {
  approval_id: string;
  tool_call_id: string;
  status: "pending" | "approved" | "rejected" | "modified" | "timeout";
  answered: boolean;
  call: Record<string, unknown>;
  arguments: Record<string, unknown> | null;
  comment: string | null;
  actor: string | null;
  expires_at: string;
  decided_at: string | null;
}

interface Deciding {
  approval: Approval;
  decision: "approved" | "rejected";
}

export function Approvals({ address }: { address: string }) {
  const [waiting, setWaiting] = useState(true);
  const [round, setRound] = useState(0);
  const [deciding, setDeciding] = useState<Deciding | null>(null);
  const ask = (approval: Approval, decision: Deciding["decision"], name: string) => (
    <button type="button" {...needs("write")} onClick={() => setDeciding({ approval, decision })}>{name}</button>
  );
  return (
    <>
      <label class="inline">
        <input type="checkbox" checked={waiting} onChange={(event) => setWaiting(event.currentTarget.checked)} />{" "}
        {t("only_waiting")}
      </label>
      <Table<Approval>
        caption={t("approvals")}
        inputs={[address, waiting]}
        again={round}
        load={(cursor, limit, signal) =>
          get<Page<Approval>>(`${address}/approvals`, { status: waiting ? "pending" : null, cursor, limit }, signal)}
        row={(approval) => approval.approval_id}
        empty={t(waiting ? "none_waiting" : "no_approvals")}
        columns={[
          { title: t("tool_call"), show: ({ call }) => <Call call={call} /> },
          { title: t("state"), show: (approval) => <State approval={approval} /> },
          { title: t("until"), show: (approval) => <Time at={approval.expires_at} /> },
          {
            title: t("decision"),
            show: (approval) => approval.status === "pending" && !approval.answered
              ? (
                <div class="buttons">
                  {ask(approval, "approved", t("approve"))}
                  {ask(approval, "rejected", t("reject"))}
                </div>
              )
              : approval.decided_at && <><Time at={approval.decided_at} /> <code>{approval.actor}</code></>,
          },
        ]}
      />
      {deciding && (
        <Decision
          address={address}
          deciding={deciding}
          done={() => setRound(round + 1)}
          close={() => setDeciding(null)}
        />
      )}
    </>
  );
}

function State({ approval }: { approval: Approval }) {
  return (
    <>
      {t(`approval_${approval.status}`)}
      {approval.arguments && <pre>{JSON.stringify(approval.arguments, null, 2)}</pre>}
      {approval.comment && <p class="said">{approval.comment}</p>}
    </>
  );
}

function Decision(
  { address, deciding: { approval, decision }, done, close }: {
    address: string;
    deciding: Deciding;
    done: () => void;
    close: () => void;
  },
) {
  const [comment, setComment] = useState("");
  const name = t(decision === "approved" ? "approve" : "reject");
  const act = async () => {
    await send("POST", path(`${address}/approvals`, approval.tool_call_id), {
      decision,
      ...(comment.trim() ? { comment } : {}),
    });
    done();
  };
  return (
    <Dialog title={name} action={name} act={act} close={close} danger={decision === "rejected"}>
      <p>{t("decision_text")}</p>
      <Call call={approval.call} open />
      <label>
        {t("comment")}
        <textarea rows={2} maxLength={2000} value={comment} onInput={(event) => setComment(event.currentTarget.value)} />
      </label>
    </Dialog>
  );
}
