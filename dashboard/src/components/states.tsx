import type { ComponentChildren } from "preact";

import type { ProblemError } from "../api";
import { t } from "../text";

export function Loading() {
  return <p class="loading" role="status">{t("loading")}</p>;
}

/** Why there is nothing, and what would fill the place. */
export function Empty({ children }: { children?: ComponentChildren }) {
  return <p class="note">{children ?? t("nothing")}</p>;
}

/** What the service answered when it refused: the sentence, the code and the id of the request. */
export function Problem({ problem, retry }: { problem: ProblemError; retry?: () => void }) {
  const own =
    problem.code === "unreachable" ? t("unreachable")
    : problem.code === "key_restricted" ? t("key_restricted")
    : problem.code === "dashboard_error" ? t("dashboard_error")
    : problem.code === "insufficient_scope" ? t("insufficient_scope")
    : null;
  return (
    <div class="note problem" role="alert">
      <p>
        <strong>{own ?? (problem.title || problem.code)}</strong> {problem.detail}
      </p>
      {problem.errors.length > 0 && (
        <ul>
          {problem.errors.map((error) => (
            <li key={error.location.join(".")}><code>{error.location.join(".")}</code> {error.detail}</li>
          ))}
        </ul>
      )}
      <p class="small">
        {t("code")} <code>{problem.code}</code>
        {problem.request_id && <> · {t("request")} <code>{problem.request_id}</code></>}
      </p>
      {retry && <button type="button" onClick={retry}>{t("retry")}</button>}
    </div>
  );
}
