import { Bars } from "../../components/bars";
import { memoryAddress, MemoryState } from "../../components/memory";
import { LongText } from "../../components/message";
import { type Explained, figure, ScoreParts } from "../../components/score";
import { Time } from "../../components/time";
import { href } from "../../routing";
import type { Memory, Message } from "../../shapes";
import { label } from "../../text/labels";
import { t } from "../../text/search";

interface Scored {
  score: number;
  similarity: number | null;
  explain: Explained;
}

export type MemoryHitRead = Memory & Scored;

export type MessageHitRead = Message & Scored & {
  said_at: string;
  piece: { number: number; of: number; text: string } | null;
};

export type Hit =
  | { kind: "memory"; id: string; memory: MemoryHitRead }
  | { kind: "message"; id: string; message: MessageHitRead };

/** `explained`: why it was found is open from the start. */
export function MemoryHit({ hit, explained }: { hit: MemoryHitRead; explained: boolean }) {
  return (
    <>
      <p><a class="said" href={memoryAddress(hit)}>{hit.content}</a></p>
      <p class="small">
        {label(hit.memory_type)} · {label(hit.scope)} · <MemoryState memory={hit} /> ·{" "}
        <Time at={hit.said_at ?? hit.create_time} />
      </p>
      <Score hit={hit} explained={explained} />
    </>
  );
}

export function MessageHit({ hit, explained }: { hit: MessageHitRead; explained: boolean }) {
  return (
    <>
      <LongText text={hit.piece?.text ?? hit.content} />
      <p class="small">
        {label(hit.role)} ·{" "}
        <a href={href("conversation", [hit.session_id], { message: hit.message_id })}>
          {hit.session_id} · {hit.sequence_no}
        </a>{" "}
        · <Time at={hit.said_at} />
        {hit.piece && <> · {t("piece", { number: hit.piece.number + 1, of: hit.piece.of })}</>}
      </p>
      <Score hit={hit} explained={explained} />
    </>
  );
}

function Score({ hit, explained }: { hit: Scored; explained: boolean }) {
  const similarity = hit.similarity === null ? "" : ` · ${t("similarity")} ${figure(hit.similarity)}`;
  return (
    <>
      <Bars label={t("score")} most={1} items={[{ label: t("score"), value: hit.score, text: `${figure(hit.score)}${similarity}` }]} />
      <details open={explained}>
        <summary>{t("why")}</summary>
        <ScoreParts explain={hit.explain} />
      </details>
    </>
  );
}
