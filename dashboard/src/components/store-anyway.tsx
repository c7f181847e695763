// A text that the gate refused and kept is stored after all, past the rules that its verdict names.
import { useState } from "preact/hooks";

import { path as address, send } from "../api";
import { t } from "../text/gate";
import { label } from "../text/labels";
import { ruleName } from "../text/reasons";
import { Dialog } from "./dialog";
import { TYPES } from "./memory";

interface Refused {
  decision_id: string;
  content: string | null;
  codes: string[];
}

export function StoreAnyway(
  { refused, close, stored }: { refused: Refused; close: () => void; stored: (memoryId: string) => void },
) {
  const [type, setType] = useState("fact");
  const store = async () => {
    const answer = await send<{ memory: { memory_id: string } }>(
      "POST",
      `${address("/v1/memories/decisions", refused.decision_id)}/store`,
      { memory_type: type },
    );
    stored(answer.memory.memory_id);
  };
  return (
    <Dialog title={t("anyway_ask")} action={t("anyway")} act={store} close={close}>
      <p class="said">{refused.content}</p>
      <p>{t("anyway_about", { codes: refused.codes.map((code) => `${ruleName(code)} (${code})`).join(", ") })}</p>
      <label>
        {t("type")}
        <select value={type} onChange={(event) => setType(event.currentTarget.value)}>
          {TYPES.map((name) => <option key={name} value={name}>{label(name)}</option>)}
        </select>
      </label>
    </Dialog>
  );
}
