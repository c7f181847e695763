// Does memory help? Figures of use over time, and kept runs of `kemem eval` side by side.
import { isRestricted } from "../access";
import type { PageProps } from "../app";
import { Empty } from "../components/states";
import { Tabs } from "../components/tabs";
import { Effect } from "../evaluation/effect";
import { Runs } from "../evaluation/runs";
import { href, replace } from "../routing";
import { t } from "../text/evaluation";

const TABS = ["effect", "runs"] as const;

export default function Evaluation({ query }: PageProps) {
  const current = TABS.find((tab) => tab === query.get("tab")) ?? "effect";
  return (
    <Tabs
      label={t("about")}
      tabs={TABS.map((tab) => ({ key: tab, label: t(`tab_${tab}`) }))}
      current={current}
      choose={(tab) => replace(href("evaluation", [], { tab }))}
    >
      {current === "effect" ? isRestricted() ? <Empty>{t("key_restricted")}</Empty> : <Effect /> : <Runs />}
    </Tabs>
  );
}
