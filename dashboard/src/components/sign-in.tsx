import { useState } from "preact/hooks";

import { keepKey, lastRefusal } from "../session";
import { t } from "../text";
import { LanguageSwitch } from "./language-switch";
import { Problem } from "./states";

/** What a header can carry of a key; anything else would be told of as a service that does not answer. */
const KEY = /^kem_\w+$/;

export function SignIn() {
  const [key, setKey] = useState("");
  const [isNoKey, setIsNoKey] = useState(false);
  const refusal = lastRefusal();
  const [before, after] = t("sign_in_text").split("{command}");
  return (
    <main class="sign-in">
      <form
        onSubmit={(event) => {
          event.preventDefault();
          const given = key.trim().replace(/^Bearer\s+/i, "");
          setIsNoKey(!KEY.test(given));
          if (KEY.test(given)) keepKey(given);
        }}
      >
        <h1>{t("title")}</h1>
        <LanguageSwitch />
        <p>{before}<code>kemem keys create</code>{after}</p>
        <p>{t("sign_in_local")}</p>
        {isNoKey && <p class="note problem" role="alert">{t("sign_in_no_key")}</p>}
        {refusal && !isNoKey && (
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
