import { useState } from "preact/hooks";

import { get, type Page } from "../../api";
import { Bars } from "../../components/bars";
import { Facts } from "../../components/facts";
import { LongText } from "../../components/message";
import { Loading, Problem } from "../../components/states";
import { Table } from "../../components/table";
import { Time } from "../../components/time";
import { useLoad } from "../../load";
import { number, percent } from "../../text";
import { t } from "../../text/conversation";
import { Compaction } from "./compaction";

interface WindowState {
  in_context_from: number;
  messages: number;
  tokens: number;
  summary_tokens: number;
  token_scale: number;
  set_aside: number;
  policy: Record<string, unknown>;
  pressure: { tokens: number; budget_tokens: number; share: number; notice: string | null; counter: string };
}

interface Summary {
  summary_id: string;
  level: number;
  from_seq: number;
  to_seq: number;
  content: string;
  tokens: number;
  model: string;
  in_context: boolean;
  create_time: string;
}

export function Window({ address }: { address: string }) {
  const [round, setRound] = useState(0);
  const { data, problem, reload } = useLoad((signal) => get<WindowState>(`${address}/window`, {}, signal), [address, round]);
  return (
    <>
      {problem && <Problem problem={problem} retry={reload} />}
      {!data && !problem && <Loading />}
      {data && <State state={data} />}
      <Compaction address={address} changed={() => setRound(round + 1)} />
      <h3>{t("summaries")}</h3>
      <Table<Summary>
        caption={t("summaries")}
        inputs={[address]}
        again={round}
        load={(cursor, limit, signal) => get<Page<Summary>>(`${address}/summaries`, { cursor, limit }, signal)}
        row={(summary) => summary.summary_id}
        empty={t("no_summaries")}
        columns={[
          { title: t("covers"), show: (one) => t("covers_range", { from: one.from_seq, to: one.to_seq }) },
          { title: t("level"), number: true, show: (summary) => number(summary.level) },
          { title: t("content"), show: (summary) => <LongText text={summary.content} /> },
          { title: t("tokens"), number: true, show: (summary) => number(summary.tokens) },
          { title: t("in_context"), show: (summary) => (summary.in_context ? t("yes") : t("no")) },
          { title: t("written_by"), show: (summary) => <>{summary.model}<br /><Time at={summary.create_time} /></> },
        ]}
      />
    </>
  );
}

function State({ state }: { state: WindowState }) {
  const { pressure, policy } = state;
  return (
    <section class="panel">
      <h3>{t("pressure")}</h3>
      <Bars
        label={t("pressure")}
        most={pressure.budget_tokens}
        items={[{
          label: t("tokens"),
          value: pressure.tokens,
          text: t("share", { share: percent(pressure.share), budget: pressure.budget_tokens }),
          tone: pressure.share >= 1 ? "5" : "1",
        }]}
      />
      {pressure.notice && <p class="note">{pressure.notice}</p>}
      <Facts
        items={[
          [t("window_from"), number(state.in_context_from)],
          [t("window_messages"), number(state.messages)],
          [t("tokens"), number(state.tokens)],
          [t("summary_tokens"), number(state.summary_tokens)],
          [t("scale"), number(state.token_scale, { maximumFractionDigits: 3 })],
          [t("aside"), number(state.set_aside)],
          [t("counted_by"), pressure.counter],
        ]}
      />
      <details>
        <summary>{t("policy")}</summary>
        <Facts items={Object.entries(policy).map(([name, value]) => [name, <code>{JSON.stringify(value)}</code>] as const)} />
      </details>
    </section>
  );
}
