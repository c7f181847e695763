import { useState } from "preact/hooks";

import { t } from "../text";

/** A value to take along, with a button where the browser can write the clipboard. */
export function Copyable({ value, label }: { value: string; label: string }) {
  const [copied, setCopied] = useState(false);
  return (
    <span class="copyable">
      <input type="text" readOnly aria-label={label} value={value} onFocus={(event) => event.currentTarget.select()} />
      {navigator.clipboard && (
        <button type="button" onClick={() => void navigator.clipboard.writeText(value).then(() => setCopied(true))}>
          {copied ? t("copied") : t("copy")}
        </button>
      )}
    </span>
  );
}
