import { useState } from "preact/hooks";

import { keepKey, lastRefusal } from "../session";
import { t } from "../text";
import { LanguageSwitch } from "./language-switch";
import { Problem } from "./states";

export function SignIn() {
  const [key, setKey] = useState("");
  const refusal = lastRefusal();
  const [before, after] = t("sign_in_text").split("{command}");
  return (
    <main class="sign-in">
      <form
        onSubmit={(event) => {
          event.preventDefault();
          if (key.trim()) keepKey(key.trim());
        }}
      >
        <h1>{t("title")}</h1>
        <LanguageSwitch />
        <p>{before}<code>kemem tenants create</code>{after}</p>
        <p>{t("sign_in_local")}</p>
        {refusal && (
          <>
            <p><strong>{t("sign_in_refused")}</strong></p>
            <Problem problem={refusal} />
          </>
        )}
        <label>
          {t("sign_in_key")}
          <input
            type="password"
            name="key"
            autocomplete="off"
            spellcheck={false}
            required
            value={key}
            onInput={(event) => setKey(event.currentTarget.value)}
          />
        </label>
        <button type="submit" class="primary">{t("sign_in")}</button>
      </form>
    </main>
  );
}
