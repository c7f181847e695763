// The interface in two languages. A page keeps its own part in `text/<page>.ts` and calls `texts`.
import { en } from "./text/en";
import { zh } from "./text/zh";

export type Language = "en" | "zh";
export type SharedKey = keyof typeof en;
export type Values = Record<string, string | number>;
export type Translate<K extends string> = (key: K, values?: Values) => string;

const PLACE = "kemem.language";
const TAGS = { en: "en", zh: "zh-CN" } as const;
const listeners = new Set<() => void>();
let chosen: Language = startLanguage();
document.documentElement.lang = TAGS[chosen];

export function language(): Language {
  return chosen;
}

/** The language tag for `Intl`. */
export function locale(): string {
  return TAGS[chosen];
}

export function setLanguage(language: Language): void {
  chosen = language;
  localStorage.setItem(PLACE, language);
  document.documentElement.lang = TAGS[language];
  for (const listener of listeners) listener();
}

export function onLanguageChange(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/**
 * Text that all pages share: `t("retry")`; `{name}` in a text is replaced by `values.name`,
 * and `{name|memory|memories}` by the form that goes with that number.
 */
export const t: Translate<SharedKey> = (key, values) => filled({ en, zh }[chosen][key], values);

/** The text of one page, and what all share: `const t = texts({ en: {…}, zh: {…} })`. */
export function texts<K extends string>(own: Record<Language, Record<K, string>>): Translate<K | SharedKey> {
  return (key, values) => {
    const page: Record<string, string> = own[chosen];
    const shared: Record<string, string> = { en, zh }[chosen];
    return filled(page[key] ?? shared[key] ?? key, values);
  };
}

export function number(value: number, options?: Intl.NumberFormatOptions): string {
  return new Intl.NumberFormat(TAGS[chosen], options).format(value);
}

export function percent(share: number): string {
  return number(share, { style: "percent", maximumFractionDigits: 1 });
}

function filled(text: string, values: Values = {}): string {
  return text.replace(/\{(\w+)(?:\|([^|}]*)\|([^}]*))?\}/g, (whole, name: string, one?: string, other?: string) => {
    const value = values[name];
    if (value === undefined) return whole;
    if (one !== undefined && other !== undefined) return isOne(Number(value)) ? one : other;
    return typeof value === "number" ? number(value) : value;
  });
}

function isOne(count: number): boolean {
  return new Intl.PluralRules(TAGS[chosen]).select(count) === "one";
}

function startLanguage(): Language {
  const kept = localStorage.getItem(PLACE);
  if (kept === "en" || kept === "zh") return kept;
  return navigator.language.toLowerCase().startsWith("zh") ? "zh" : "en";
}
