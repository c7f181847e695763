// Older messages of the window go into a summary, after a count of what would leave.
import { useState } from "preact/hooks";

import { needs } from "../../access";
import { send } from "../../api";
import { Dialog } from "../../components/dialog";
import { Loading, Problem } from "../../components/states";
import { useLoad } from "../../load";
import { href } from "../../routing";
import { t } from "../../text/conversation";

type Reason =
  | "below_trigger" | "empty" | "fits" | "current_turn" | "open_call" | "not_shorter" | "already_compacted" | "changed";

interface Compacted {
  compacted: boolean;
  why_not: Reason | "dry_run" | null;
  evicted: { messages: number; tokens: number; from_seq: number; to_seq: number } | null;
  model: string | null;
  rescue_job_id: string | null;
}

export function Compaction({ address, changed }: { address: string; changed: () => void }) {
  const [asking, setAsking] = useState(false);
  const [answer, setAnswer] = useState<Compacted | null>(null);
  return (
    <>
      <div class="buttons">
        <button type="button" {...needs("write")} onClick={() => setAsking(true)}>{t("compact")}</button>
        <span role="status">{answer && <Outcome answer={answer} />}</span>
      </div>
      {asking && (
        <CompactDialog
          address={address}
          done={(made) => {
            setAnswer(made);
            changed();
          }}
          close={() => setAsking(false)}
        />
      )}
    </>
  );
}

function CompactDialog(
  { address, done, close }: { address: string; done: (made: Compacted) => void; close: () => void },
) {
  const compact = (dry_run: boolean) => send<Compacted>("POST", `${address}/compact`, { force: true, dry_run });
  const counted = useLoad(() => compact(true), [address]);
  const leaving = counted.data?.evicted;
  return (
    <Dialog
      title={t("compact_ask")}
      {...(leaving ? { action: t("compact") } : {})}
      act={async () => done(await compact(false))}
      close={close}
    >
      <p>{t("compact_text")}</p>
      {counted.problem && <Problem problem={counted.problem} />}
      {counted.loading && <Loading />}
      {counted.data && (
        <p role="status">
          {leaving
            ? t("would_leave", { from: leaving.from_seq, to: leaving.to_seq, tokens: leaving.tokens })
            : <WhyNot code={counted.data.why_not} />}
        </p>
      )}
    </Dialog>
  );
}

function Outcome({ answer: { compacted, why_not, evicted, rescue_job_id: job } }: { answer: Compacted }) {
  if (!compacted) return <WhyNot code={why_not} />;
  return (
    <>
      {evicted && t("has_left", { from: evicted.from_seq, to: evicted.to_seq })}{" "}
      {job && <>{t("rescue_ordered", { job })} <a href={href("jobs", [job])}>{t("see_job")}</a></>}
    </>
  );
}

function WhyNot({ code }: { code: Compacted["why_not"] }) {
  return <>{t("nothing_leaves")} {code && code !== "dry_run" && t(`why_${code}`)}</>;
}
