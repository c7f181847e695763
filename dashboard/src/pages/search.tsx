import { useState } from "preact/hooks";

import { whoeverIsMeant } from "../access";
import type { PageProps } from "../app";
import { Empty } from "../components/states";
import { href, replace } from "../routing";
import { t } from "../text/search";
import { askedOf, MODES, type Mode } from "./search/asked";
import { SearchForm } from "./search/form";
import { Results } from "./search/results";

/** Fields that say whose memories or messages are searched. */
const OWNERS = ["user_id", "agent_id", "session_id", "run_id", "project_id"] as const;

/** `#/search?query=…&user_id=…`: every field of the form stands in the address. */
export default function Search({ query }: PageProps) {
  const asked = askedOf(query);
  const [round, setRound] = useState(0);
  // The first ids of each mode, for where the others have a hit.
  const [ranks, setRanks] = useState<Partial<Record<Mode, readonly string[]>>>({});
  const modes: readonly Mode[] = asked.mode === "compare" ? MODES : [asked.mode];
  const nobody = asked.query !== "" && !OWNERS.some((name) => asked[name]);
  const meant = whoeverIsMeant();
  return (
    <>
      <SearchForm
        asked={asked}
        search={(fields) => {
          replace(href("search", [], fields));
          setRanks({});
          setRound(round + 1);
        }}
      />
      <p class="small">{t("looking")}</p>
      {nobody && meant !== null && <p class="note">{t("nobody", { id: meant })}</p>}
      {asked.query === "" ? <Empty>{t("begin")}</Empty> : (
        <div class={modes.length > 1 ? "grid" : ""}>
          {modes.map((mode) => (
            <Results
              key={`${asked.what} ${mode}`}
              asked={asked}
              mode={mode}
              round={round}
              ranks={modes.length > 1 ? ranks : {}}
              found={(ids) => setRanks((last) => ({ ...last, [mode]: ids }))}
            />
          ))}
        </div>
      )}
    </>
  );
}
