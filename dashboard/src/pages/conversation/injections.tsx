import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";

import { get, type Page } from "../../api";
import { MemoryLink } from "../../components/memory";
import { EvidenceMessage } from "../../components/message";
import { Table } from "../../components/table";
import { Time } from "../../components/time";
import { number } from "../../text";
import { t } from "../../text/conversation";


interface Injected {
  content_sha256: string;
  memory_ids: string[];
  passage_ids: string[];
  message_ids: string[];
  tokens: number;
  memory_tokens: number;
  first_at: string;
  last_at: string;
}

const AT_ONCE = 10;

export function Injections({ address }: { address: string }) {
  return (
    <Table<Injected>
      caption={t("injections")}
      inputs={[address]}
      load={(cursor, limit, signal) => get<Page<Injected>>(`${address}/injections`, { cursor, limit }, signal)}
      row={(content) => content.content_sha256}
      empty={t("no_injections")}
      columns={[
        { title: t("first_shown"), show: (content) => <Time at={content.first_at} /> },
        { title: t("last_shown"), show: (content) => <Time at={content.last_at} /> },
        { title: t("tokens"), number: true, show: (content) => number(content.tokens) },
        { title: t("of_which_memory"), number: true, show: (content) => number(content.memory_tokens) },
        {
          title: t("memories"),
          show: (content) => <Ids ids={content.memory_ids}>{(id) => <MemoryLink id={id} />}</Ids>,
        },
        {
          title: t("earlier_messages"),
          show: (content) => <Ids ids={content.message_ids}>{(id) => <EvidenceMessage id={id} />}</Ids>,
        },
        { title: t("passages"), show: (content) => <Ids ids={content.passage_ids}>{(id) => <code>{id}</code>}</Ids> },
        { title: t("hash"), show: (content) => <code>{content.content_sha256.slice(0, 12)}</code> },
      ]}
    />
  );
}

/** How many there are, and on a click what they say, some at a time. */
function Ids({ ids, children }: { ids: readonly string[]; children: (id: string) => ComponentChildren }) {
  const [shown, setShown] = useState(0);
  if (ids.length === 0) return <>0</>;
  if (shown === 0) return <button type="button" onClick={() => setShown(AT_ONCE)}>{number(ids.length)}</button>;
  return (
    <>
      {ids.slice(0, shown).map((id) => <div key={id}>{children(id)}</div>)}
      {shown < ids.length && (
        <button type="button" onClick={() => setShown(shown + AT_ONCE)}>{number(ids.length - shown)} …</button>
      )}
    </>
  );
}
