import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef } from "preact/hooks";

import { resting, useAction } from "../load";
import { t } from "../text";
import { Problem } from "./states";

/**
 * A modal dialog that asks before something is done; `act` runs on the button, a refusal is shown,
 * and `close` is called when it is done or given up. Esc gives up.
 */
export function Dialog(
  { title, children, action, act, close, danger = false, told }: {
    title: string;
    children: ComponentChildren;
    /** What the button says; a dialog without one only shows. */
    action?: string;
    act?: () => Promise<unknown>;
    close: () => void;
    danger?: boolean;
    /** Codes of refusals that `children` tell of. */
    told?: readonly string[];
  },
) {
  const id = useId();
  const element = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const before = document.activeElement;
    element.current?.showModal();
    return () => {
      if (before instanceof HTMLElement) before.focus();
    };
  }, []);
  const doing = useAction(async () => {
    await act?.();
    close();
  });
  return (
    <dialog
      ref={element}
      aria-labelledby={id}
      onCancel={(event) => {
        event.preventDefault();
        if (!doing.busy) close();
      }}
    >
      <form
        onSubmit={(event) => {
          event.preventDefault();
          doing.run();
        }}
      >
        <h2 id={id}>{title}</h2>
        {children}
        {doing.problem && !told?.includes(doing.problem.code) && <Problem problem={doing.problem} />}
        <div class="buttons">
          {action && (
            <button type="submit" class={danger ? "danger" : "primary"} {...resting(doing.busy)}>{action}</button>
          )}
          <button type="button" {...resting(doing.busy)} onClick={() => doing.busy || close()}>{action ? t("cancel") : t("close")}</button>
        </div>
      </form>
    </dialog>
  );
}
