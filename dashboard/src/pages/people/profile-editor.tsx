import { useState } from "preact/hooks";

import { get, ProblemError, send } from "../../api";
import { Dialog } from "../../components/dialog";
import { label } from "../../text/labels";
import { t } from "../../text/people";
import type { UserProfile } from "./profile";

export interface Slot {
  /** As the history of profiles names it: `attributes.profession`. */
  name: string;
  value: unknown;
}

const ATTRIBUTES = [
  "username", "profession", "background", "characteristics", "communication_style", "response_format",
  "language_preference", "expertise_areas", "programming_languages", "frequently_used_tools",
] as const;
const SECTIONS = [
  "work_context", "personal_context", "top_of_mind", "recent_months", "earlier_context", "long_term_background",
] as const;
const LISTS = new Set(["expertise_areas", "programming_languages", "frequently_used_tools"]);

/** Writes one value; when the profile has changed meanwhile, shows what it says now and saves over that. */
export function ProfileEditor(
  { address, profile, slot, close }: {
    address: string;
    profile: UserProfile;
    slot: Slot | null;
    close: () => void;
  },
) {
  const [name, setName] = useState(slot?.name ?? "attributes.profession");
  const [text, setText] = useState(Array.isArray(slot?.value) ? slot.value.join("\n") : String(slot?.value ?? ""));
  const [version, setVersion] = useState(profile.version);
  const [newer, setNewer] = useState<unknown>(undefined);
  const list = Array.isArray(slot?.value) || LISTS.has(name.split(".")[1] ?? "");
  const save = async () => {
    const lines = text.split("\n").map((line) => line.trim()).filter(Boolean);
    try {
      await send("PATCH", address, patchOf(name, list ? lines : text), { "If-Match": `"${version}"` });
    } catch (error) {
      if (error instanceof ProblemError && error.code === "version_conflict") {
        const now = await get<UserProfile>(address);
        setVersion(now.version);
        setNewer(valueAt(now, name));
      }
      throw error;
    }
  };
  return (
    <Dialog
      title={slot ? t("edit_value", { slot: name.split(".").slice(-1).map(label).join() }) : t("write_value")}
      action={t("save")}
      act={save}
      close={close}
      told={["version_conflict"]}
    >
      {slot === null && (
        <label>
          {t("which")}
          <select value={name} onChange={(event) => setName(event.currentTarget.value)}>
            {ATTRIBUTES.map((one) => <option key={one} value={`attributes.${one}`}>{label(one)}</option>)}
            {SECTIONS.map((one) => <option key={one} value={`sections.${one}`}>{label(one)}</option>)}
            <option value="instructions">{label("instructions")}</option>
          </select>
        </label>
      )}
      {newer !== undefined && (
        <div class="note problem" role="alert">
          <p>{t("conflict")}</p>
          <div class="said">{JSON.stringify(newer)}</div>
        </div>
      )}
      <label>
        {t("value")}
        <textarea rows={4} required value={text} onInput={(event) => setText(event.currentTarget.value)} />
      </label>
      {list && <p class="small">{t("one_a_line")}</p>}
    </Dialog>
  );
}

/** The patch that sets one value, or gives it back with null. */
export function patchOf(name: string, value: unknown): Record<string, unknown> {
  return name.split(".").reduceRight<unknown>((inner, key) => ({ [key]: inner }), value) as Record<string, unknown>;
}

function valueAt(profile: UserProfile, name: string): unknown {
  const found = name.split(".").reduce<unknown>(
    (inner, key) => (typeof inner === "object" && inner !== null ? (inner as Record<string, unknown>)[key] : null),
    profile,
  );
  return typeof found === "object" && found !== null && "value" in found ? found.value : (found ?? null);
}
