import { useCallback, useEffect, useLayoutEffect, useState } from "preact/hooks";

import { forgetFailed, ProblemError } from "./api";

export interface Loaded<T> {
  /** The last answer; it stays while it is loaded anew. */
  data: T | null;
  problem: ProblemError | null;
  loading: boolean;
  reload: () => void;
}

/** Ask when the component appears and whenever one of `inputs` changes; late answers are dropped. */
export function useLoad<T>(ask: (signal: AbortSignal) => Promise<T>, inputs: readonly unknown[]): Loaded<T> {
  const [state, setState] = useState<Omit<Loaded<T>, "reload">>({ data: null, problem: null, loading: true });
  const [round, setRound] = useState(0);
  // Asks before the first frame is drawn, not after it.
  useLayoutEffect(() => {
    const stop = new AbortController();
    setState((last) => ({ ...last, loading: true }));
    ask(stop.signal).then(
      (data) => stop.signal.aborted || setState({ data, problem: null, loading: false }),
      (error: unknown) =>
        stop.signal.aborted || setState({ data: null, problem: asProblem(error), loading: false }),
    );
    return () => stop.abort();
  }, [...inputs, round]);
  return { ...state, reload: useCallback(() => setRound((last) => last + 1), []) };
}

export interface Acting<A extends unknown[]> {
  run: (...values: A) => void;
  busy: boolean;
  problem: ProblemError | null;
}

/** Run an action at most once at a time, and keep why it failed; the same POST again has the same Idempotency-Key. */
export function useAction<A extends unknown[]>(act: (...values: A) => Promise<unknown>): Acting<A> {
  const [state, setState] = useState<{ busy: boolean; problem: ProblemError | null }>({ busy: false, problem: null });
  useEffect(() => forgetFailed, []);
  const run = (...values: A) => {
    if (state.busy) return;
    setState({ busy: true, problem: null });
    act(...values).then(
      () => setState({ busy: false, problem: null }),
      (error: unknown) => setState({ busy: false, problem: asProblem(error) }),
    );
  };
  return { run, ...state };
}

/** Of a button that has nothing to do for now; unlike a disabled one it keeps the focus of the keyboard. */
export const resting = (rests: boolean): { "aria-disabled"?: true } => (rests ? { "aria-disabled": true } : {});

/** A fault of the page itself is thrown on, so that it is seen in the console. */
export function asProblem(error: unknown): ProblemError {
  if (error instanceof ProblemError) return error;
  reportError(error);
  return new ProblemError(0, { code: "dashboard_error", detail: String(error) });
}
