// What callers said of a memory, and a way to say it; it is recorded and changes no memory.
import { useState } from "preact/hooks";

import { needs } from "../../access";
import { get, type Page, path, send } from "../../api";
import { Dialog } from "../../components/dialog";
import { Table } from "../../components/table";
import { Time } from "../../components/time";
import type { Memory } from "../../shapes";
import { number } from "../../text";
import { t } from "../../text/people";

const RATINGS = ["helpful", "wrong", "outdated"] as const;
type Rating = (typeof RATINGS)[number];

interface Given {
  feedback_id: string;
  rating: Rating;
  comment: string | null;
  actor: string | null;
  version: number;
  create_time: string;
}

export function Feedback({ memory }: { memory: Memory }) {
  const address = path("/v1/memories", memory.memory_id, "feedback");
  const [giving, setGiving] = useState<Rating | null>(null);
  const [comment, setComment] = useState("");
  const [round, setRound] = useState(0);
  const act = async () => {
    await send("POST", address, { rating: giving, ...(comment.trim() ? { comment } : {}) });
    setRound(round + 1);
  };
  const close = () => {
    setGiving(null);
    setComment("");
  };
  return (
    <>
      <div class="buttons">
        {RATINGS.map((rating) => (
          <button key={rating} type="button" {...needs("write")} onClick={() => setGiving(rating)}>{t(rating)}</button>
        ))}
      </div>
      <Table<Given>
        caption={t("feedback")}
        inputs={[memory.memory_id]}
        again={round}
        load={(cursor, limit, signal) => get<Page<Given>>(address, { cursor, limit }, signal)}
        row={(given) => given.feedback_id}
        empty={t("no_feedback")}
        columns={[
          { title: t("when"), show: (given) => <Time at={given.create_time} /> },
          { title: t("rating"), show: (given) => t(given.rating) },
          { title: t("comment"), show: (given) => <span class="said">{given.comment}</span> },
          { title: t("by"), show: (given) => given.actor && <code>{given.actor}</code> },
          { title: t("version"), number: true, show: (given) => number(given.version) },
        ]}
      />
      {giving && (
        <Dialog title={`${t("feedback")}: ${t(giving)}`} action={t("save")} act={act} close={close}>
          <p>{t("feedback_text")}</p>
          <label>
            {t("comment")}
            <textarea rows={3} maxLength={2000} value={comment} onInput={(event) => setComment(event.currentTarget.value)} />
          </label>
        </Dialog>
      )}
    </>
  );
}
