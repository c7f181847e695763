import { get, path } from "../api";
import { useLoad } from "../load";
import { href } from "../routing";
import type { Run } from "../shapes";
import { number } from "../text";
import { label } from "../text/labels";
import { t } from "../text/run";
import { Dialog } from "./dialog";
import { Facts } from "./facts";
import { Loading, Problem } from "./states";
import { Time } from "./time";

/** One run of an extractor. */
export function RunDialog({ id, close }: { id: string; close: () => void }) {
  const { data, problem, reload } = useLoad((signal) => get<Run>(path("/v1/extractions", id), {}, signal), [id]);
  return (
    <Dialog title={t("run")} close={close}>
      {problem && <Problem problem={problem} retry={reload} />}
      {!data && !problem && <Loading />}
      {data && <RunFacts run={data} />}
    </Dialog>
  );
}

function RunFacts({ run }: { run: Run }) {
    return (
    <Facts
      items={[
        [t("id"), <code>{run.extraction_id}</code>],
        [t("when"), <Time at={run.create_time} />],
        [t("trigger"), label(run.trigger)],
        [t("state"), label(run.status)],
        [t("error"), run.error_code && <code>{run.error_code}</code>],
        [t("extractor"), run.extractor],
        [t("model"), run.model],
        [t("session"), run.session_id && <a href={href("conversation", [run.session_id])}>{run.session_id}</a>],
        [
          t("messages_read"),
          run.first_sequence_no === null || run.last_sequence_no === null ? number(run.messages)
          : t("numbers", { first: run.first_sequence_no, last: run.last_sequence_no }),
        ],
        [t("proposals"), number(run.proposals)],
        [t("outcomes"), outcomesOf(run)],
        [t("calls"), number(run.calls)],
        [t("tokens"), `${number(run.input_tokens)} / ${number(run.output_tokens)}`],
        [t("latency"), t("milliseconds", { count: run.latency_ms })],
      ]}
    />
  );
}

export function outcomesOf(run: Pick<Run, "outcomes">): string {
  return Object.entries(run.outcomes).map(([event, count]) => `${label(event)} ${number(count)}`).join(", ");
}
