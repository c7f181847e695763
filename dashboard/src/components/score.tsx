// Why something was found: each part of its score as a bar.
import { number } from "../text";
import { t } from "../text/score";
import { type Bar, Bars } from "./bars";

export interface Explained {
  /** Shares of the score of a memory. */
  relevance?: number;
  confidence?: number;
  scope?: number;
  cosine: number | null;
  lexical: number | null;
  fused: number;
  boosts: Record<string, number>;
  /** What the best piece of a message added to the sum that messages are ordered by; not where the whole decided. */
  pieces?: Record<string, number> | null;
  rerank?: number | null;
  path?: string | null;
}

type Key = Parameters<typeof t>[0];

function bar(key: string, value: number, tone: NonNullable<Bar["tone"]>): Bar {
  return { label: t(key as Key), value: Math.abs(value), text: figure(value), tone };
}

export function figure(value: number): string {
  return number(value, { minimumFractionDigits: 3, maximumFractionDigits: 3 });
}

export function ScoreParts({ explain }: { explain: Explained }) {
  const shares = (["relevance", "confidence", "scope"] as const).flatMap((key) =>
    explain[key] === undefined ? [] : [bar(key, explain[key], "1")]
  );
  const sources = (["lexical", "cosine", "fused", "rerank"] as const).flatMap((key) => {
    const value = explain[key];
    return value === null || value === undefined ? [] : [bar(key, value, "2")];
  });
  const whole = explain.pieces ? "whole" : "signals";
  return (
    <>
      {shares.length > 0 && <><h4>{t("parts")}</h4><Bars label={t("parts")} items={shares} most={1} /></>}
      <h4>{t("how")}</h4>
      <Bars label={t("how")} items={sources} most={1} />
      {explain.pieces && <><h4>{t("pieces")}</h4><Signals boosts={explain.pieces} title={t("pieces")} /></>}
      <h4>{t(whole)}</h4>
      <Signals boosts={explain.boosts} title={t(whole)} />
      {explain.path && <p class="small">{explain.path}</p>}
    </>
  );
}

/** What signals added; those of nothing are left out. */
export function Signals({ boosts, title = t("signals") }: { boosts: Record<string, number>; title?: string }) {
  const items = Object.entries(boosts).filter(([, value]) => value !== 0).map(([key, value]) => bar(key, value, "3"));
  if (items.length === 0) return <p class="muted">{t("no_signals")}</p>;
  return <Bars label={title} items={items} most={Math.max(1, ...items.map((item) => item.value))} />;
}
