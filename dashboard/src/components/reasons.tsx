import { number } from "../text";
import { ruleName, sentenceOf } from "../text/reasons";

/** A rule of the gate that was broken, with its figures. */
export interface Reason {
  code: string;
  detail: string;
  figures: Record<string, unknown>;
}

/** A rule in words, with its code as the API has it. */
export function Rule({ code }: { code: string }) {
  return <>{ruleName(code)} <code>{code}</code></>;
}

/** Why a text was refused; `codes` stands in where a verdict has no sentences. */
export function Reasons({ reasons, codes }: { reasons: readonly Reason[]; codes: readonly string[] }) {
  if (reasons.length === 0) return <ul class="plain">{codes.map((code) => <li key={code}><Rule code={code} /></li>)}</ul>;
  return (
    <ul class="plain">
      {reasons.map((reason, place) => (
        <li key={place}>
          <code>{reason.code}</code> {sentenceOf(reason)}
          <span class="small">
            {Object.entries(reason.figures).map(([name, value]) => ` ${name} ${figure(value)}`).join(",")}
          </span>
        </li>
      ))}
    </ul>
  );
}

function figure(value: unknown): string {
  if (typeof value === "number") return number(value, { maximumFractionDigits: 3 });
  return typeof value === "string" ? value : JSON.stringify(value);
}
