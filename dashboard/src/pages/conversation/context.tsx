import { useState } from "preact/hooks";

import { send } from "../../api";
import { Bars } from "../../components/bars";
import { Facts } from "../../components/facts";
import { MessageItem } from "../../components/message";
import { Loading, Problem } from "../../components/states";
import { validityOf } from "../../components/time";
import { useLoad } from "../../load";
import type { Message } from "../../shapes";
import { number, percent } from "../../text";
import { t } from "../../text/conversation";
import { UsedExcerpts, type UsedExcerpt, UsedMemories, type UsedMemory } from "./used";

interface Part {
  name: string;
  tokens: number;
  budget: number | null;
  shown: number;
  dropped: number;
  reason: string | null;
  text: string | null;
}

interface Answer {
  prompt: string;
  messages: Message[];
  parts: Part[];
  used: UsedMemory[];
  used_excerpts: UsedExcerpt[];
  excerpt_source: { searched: number; left_out: boolean } | null;
  window: {
    left_out: number;
    left_out_ranges: { from_sequence_no: number; to_sequence_no: number }[];
    shortened: { sequence_no: number; form: "cut" | "cleared"; tokens: number; whole_tokens: number }[];
  };
  pressure: { tokens: number; budget_tokens: number; share: number; notice: string | null };
  tokens: number;
  memory_tokens: number;
  counter: string;
  query: { source: string; degraded: boolean; reranker: string | null };
  injection: { enabled: boolean; off_by: string | null };
}

interface Asked {
  query: string;
  memoryTokens: string;
  asOf: string;
}

type Key = Parameters<typeof t>[0];

/** What a model would be sent now, and why; nothing of the look is recorded. */
export function Context({ address }: { address: string }) {
  const [asked, setAsked] = useState<Asked>({ query: "", memoryTokens: "", asOf: "" });
  const { data, problem, loading, reload } = useLoad(
    () => send<Answer>("POST", `${address}/context`, bodyOf(asked)),
    [address, JSON.stringify(asked)],
  );
  return (
    <>
      <form
        class="filters"
        onSubmit={(event) => {
          event.preventDefault();
          const form = new FormData(event.currentTarget);
          const field = (name: string) => String(form.get(name) ?? "").trim();
          const next = { query: field("query"), memoryTokens: field("memory_tokens"), asOf: field("as_of") };
          if (JSON.stringify(next) === JSON.stringify(asked)) reload();
          else setAsked(next);
        }}
      >
        <label class="wide">{t("query")}<input type="search" name="query" maxLength={2000} /></label>
        <label>{t("memory_tokens")}<input type="number" name="memory_tokens" min="100" max="8000" /></label>
        <label>{t("as_of")}<input type="datetime-local" name="as_of" /></label>
        <button type="submit" class="primary">{t("show")}</button>
      </form>
      <p class="small">{t("query_hint")} {t("looking")}</p>
      {problem && <Problem problem={problem} retry={reload} />}
      {!data && !problem && <Loading />}
      {data && <div aria-busy={loading}><Shown answer={data} /></div>}
    </>
  );
}

function bodyOf(asked: Asked): Record<string, unknown> {
  return {
    render: "parts",
    explain: true,
    preview: true,
    ...(asked.query ? { query: asked.query } : {}),
    ...(asked.memoryTokens ? { max_memory_tokens: Number(asked.memoryTokens) } : {}),
    ...(asked.asOf ? { as_of: validityOf(asked.asOf) } : {}),
  };
}

function Shown({ answer }: { answer: Answer }) {
  const { pressure, query, injection } = answer;
  return (
    <>
      {injection.off_by && <p class="note">{t("off_by", { who: t(`off_${injection.off_by}` as Key) })}</p>}
      {query.degraded && <p class="note">{t("degraded")}</p>}
      <Facts
        items={[
          [t("tokens"), number(answer.tokens)],
          [t("of_which_memory"), number(answer.memory_tokens)],
          [t("pressure"), t("share", { share: percent(pressure.share), budget: pressure.budget_tokens })],
          [t("asked"), t(`asked_${query.source}` as Key)],
          [t("counted_by"), answer.counter],
        ]}
      />
      {pressure.notice && <p class="note">{pressure.notice}</p>}
      <section class="panel">
        <h3>{t("parts")}</h3>
        <Bars
          label={t("parts")}
          items={answer.parts.map((part) => ({
            label: t(`part_${part.name}` as Key),
            value: part.tokens,
            text: part.budget === null ? number(part.tokens) : t("part_of", { tokens: part.tokens, budget: part.budget }),
            tone: part.name === "window" ? "2" : "1",
          }))}
        />
        {answer.parts.map((part) => <PartText key={part.name} part={part} messages={answer.messages} />)}
        <details>
          <summary>{t("whole_prompt")}</summary>
          <pre>{answer.prompt || t("no_text")}</pre>
        </details>
      </section>
      <UsedMemories used={answer.used} />
      <UsedExcerpts used={answer.used_excerpts} source={answer.excerpt_source} />
      <LeftOut window={answer.window} />
    </>
  );
}

function PartText({ part, messages }: { part: Part; messages: readonly Message[] }) {
  const counts = [
    t("shown", { count: part.shown }),
    ...(part.dropped > 0 ? [t("dropped", { count: part.dropped })] : []),
    ...(part.reason ? [t(`reason_${part.reason}` as Key)] : []),
  ];
  return (
    <details>
      <summary>{t(`part_${part.name}` as Key)} · {counts.join(" · ")}</summary>
      {part.name === "window" ? (
        <ol class="messages">
          {messages.map((message) => (
            <MessageItem key={message.message_id ?? message.sequence_no} message={message} />
          ))}
        </ol>
      ) : <pre>{part.text || t("no_text")}</pre>}
    </details>
  );
}

function LeftOut({ window: { left_out_ranges: ranges, shortened } }: Pick<Answer, "window">) {
  if (ranges.length === 0 && shortened.length === 0) return null;
  const written = ranges.map(({ from_sequence_no: from, to_sequence_no: to }) => (from === to ? `${from}` : `${from}–${to}`));
  return (
    <section class="panel">
      <h3>{t("left_out")}</h3>
      {ranges.length > 0 && <p>{t("left_out_numbers", { ranges: written.join(", ") })}</p>}
      {shortened.length > 0 && (
        <>
          <p>{t("shortened")}</p>
          <ul>
            {shortened.map((message) => (
              <li key={message.sequence_no}>
                {t(`shortened_${message.form}`, {
                  number: message.sequence_no, tokens: message.tokens, whole: message.whole_tokens,
                })}
              </li>
            ))}
          </ul>
        </>
      )}
    </section>
  );
}
