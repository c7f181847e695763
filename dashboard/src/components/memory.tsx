import { get, path } from "../api";
import { useLoad } from "../load";
import { href } from "../routing";
import type { Memory } from "../shapes";
import { label } from "../text/labels";
import { t } from "../text/memory";
import { Tag } from "./facts";
import { Loading, Problem } from "./states";

export const TYPES = [
  "preference", "fact", "skill", "habit", "event", "context", "constraint", "decision", "goal", "correction",
  "knowledge", "experience",
] as const;
export const SCOPES = ["session", "project", "user", "agent"] as const;

/** Where one memory is shown. */
export function memoryAddress(memory: { memory_id: string; user_id: string | null }): string {
  return href("people", [memory.user_id ?? "-", memory.memory_id]);
}

export function shortened(text: string): string {
  return text.length > 200 ? `${text.slice(0, 200)} …` : text;
}

export function MemoryState({ memory }: { memory: Pick<Memory, "status" | "conflicts_with"> }) {
  return (
    <>
      <Tag {...(memory.status === "active" ? { tone: "good" } : {})}>{label(memory.status)}</Tag>
      {memory.conflicts_with.length > 0 && <> <Tag tone="bad">{t("in_conflict")}</Tag></>}
    </>
  );
}

/** A memory known by its id alone, with what it says. */
export function MemoryLink({ id }: { id: string }) {
  const { data, problem } = useLoad((signal) => get<Memory>(path("/v1/memories", id), {}, signal), [id]);
  if (problem?.code === "memory_not_found") return <span class="muted">{t("gone")} <code>{id}</code></span>;
  if (problem) return <Problem problem={problem} />;
  if (!data) return <Loading />;
  return <a class="said" href={memoryAddress(data)}>{shortened(data.content)}</a>;
}

/** A select of words of the API, the first of which is "all". */
export function Choice(
  { name, title, value, options }: { name: string; title: string; value: string; options: readonly string[] },
) {
  return (
    <label>
      {title}
      <select name={name} value={value}>
        <option value="">{t("all")}</option>
        {options.map((option) => <option key={option} value={option}>{label(option)}</option>)}
      </select>
    </label>
  );
}
