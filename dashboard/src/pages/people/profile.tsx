import { useEffect, useState } from "preact/hooks";

import { needs } from "../../access";
import { get, type Page, path, ProblemError, send } from "../../api";
import { Dialog } from "../../components/dialog";
import { Tag } from "../../components/facts";
import { type Job, JobLink } from "../../components/job-details";
import { memoryAddress } from "../../components/memory";
import { EvidenceMessage } from "../../components/message";
import { Empty, Loading, Problem } from "../../components/states";
import { Table } from "../../components/table";
import { Time } from "../../components/time";
import { resting, useAction, useLoad } from "../../load";
import type { Memory } from "../../shapes";
import { label } from "../../text/labels";
import { t } from "../../text/people";
import { patchOf, ProfileEditor, type Slot } from "./profile-editor";

interface Value {
  value: unknown;
  origin: "user" | "derived";
  memory_ids: string[];
  deriver: string | null;
  update_time: string;
}

export interface UserProfile {
  attributes: Record<string, Value>;
  sections: Record<string, Value>;
  slots: Record<string, Record<string, Value>>;
  instructions: string | null;
  version: number;
}

interface Change {
  history_id: string;
  slot: string;
  event: string;
  before: unknown;
  after: unknown;
  actor: string | null;
  job_id: string | null;
  create_time: string;
}

const SHOWN_MEMORIES = 5;
const SHOWN_MESSAGES = 3;

export function Profile({ user }: { user: string }) {
  const address = path("/v1/users", user, "profile");
  const { data: profile, problem, reload } = useLoad((signal) => get<UserProfile>(address, {}, signal), [user]);
  const [editing, setEditing] = useState<Slot | "new" | null>(null);
  const [returning, setReturning] = useState<Slot | null>(null);
  const [job, setJob] = useState<string | null>(null);
  const [ended, setEnded] = useState<Ended | null>(null);
  const deriving = useAction(async () => {
    setEnded(null);
    setJob(null);
    setJob((await send<{ job_id: string }>("POST", `${address}/derive`)).job_id);
  });
  useEnd(ended ? null : job, (end) => {
    setEnded(end);
    reload();
  });
  if (problem) return <Problem problem={problem} retry={reload} />;
  if (!profile) return <Loading />;
  const slots = slotsOf(profile);
  return (
    <>
      <div class="buttons">
        <button type="button" {...needs("write")} onClick={() => setEditing("new")}>{t("write_value")}</button>
        <button type="button" {...needs("write")} {...resting(deriving.busy)} onClick={() => deriving.run()}>{t("derive")}</button>
        <button type="button" onClick={reload}>{t("reload")}</button>
        <span role="status">
          {job && <>{ended ? t(ended) : t("derive_ordered")} <JobLink id={job} /></>}
        </span>
      </div>
      {deriving.problem && <Problem problem={deriving.problem} />}
      {slots.length === 0 ? <Empty>{t("no_profile")}</Empty> : (
        <ul class="entries">
          {slots.map((slot) => (
            <Entry key={slot.name} slot={slot} edit={() => setEditing(slot)} giveBack={() => setReturning(slot)} />
          ))}
        </ul>
      )}
      <h2>{t("changes")}</h2>
      <Changes address={address} version={profile.version} />
      {editing && (
        <ProfileEditor
          address={address}
          profile={profile}
          slot={editing === "new" ? null : editing}
          close={() => {
            setEditing(null);
            reload();
          }}
        />
      )}
      {returning && (
        <Dialog
          title={t("give_back")}
          action={t("give_back")}
          act={() => send("PATCH", address, patchOf(returning.name, null), { "If-Match": `"${profile.version}"` })}
          close={() => {
            setReturning(null);
            reload();
          }}
        >
          <p>{t("give_back_text")}</p>
        </Dialog>
      )}
    </>
  );
}

type Ended = "derive_changed" | "derive_nothing" | "derive_failed";

const FIRST_LOOK_MS = 1_000;
const LATER_LOOK_MS = 10_000;

/** Looks at a job, less often with time, and says how it ended; a job that cannot be read is not looked at again. */
function useEnd(job: string | null, ended: (end: Ended) => void): void {
  useEffect(() => {
    if (job === null) return;
    const stop = new AbortController();
    let pause = FIRST_LOOK_MS;
    let timer = setTimeout(look, pause);
    async function look() {
      try {
        const { status, result } = await get<Job>(path("/v1/jobs", job!), {}, stop.signal);
        if (status !== "pending" && status !== "running") {
          const changed = (result?.["changed"] as unknown[] | undefined)?.length ?? 0;
          ended(status !== "succeeded" ? "derive_failed" : changed > 0 ? "derive_changed" : "derive_nothing");
          return;
        }
      } catch (error) {
        if (stop.signal.aborted || (error instanceof ProblemError && [403, 404].includes(error.status))) return;
      }
      pause = Math.min(pause * 1.5, LATER_LOOK_MS);
      timer = setTimeout(look, pause);
    }
    return () => {
      stop.abort();
      clearTimeout(timer);
    };
  }, [job]);
}

function slotsOf(profile: UserProfile): (Slot & { detail: Value | null })[] {
  const nested = Object.entries(profile.slots).flatMap(([topic, values]) =>
    Object.entries(values).map(([name, value]) => [`slots.${topic}.${name}`, value] as const)
  );
  const own = (["attributes", "sections"] as const).flatMap((group) =>
    Object.entries(profile[group]).map(([name, value]) => [`${group}.${name}`, value] as const)
  );
  const values = [...own, ...nested].map(([name, detail]) => ({ name, value: detail.value, detail }));
  if (profile.instructions === null) return values;
  return [...values, { name: "instructions", value: profile.instructions, detail: null }];
}

/** `attributes.profession` as people read it. */
function titled(slot: string): string {
  const [group = "", ...rest] = slot.split(".");
  return rest.length > 0 ? rest.map(label).join(" · ") : label(group);
}

function shown(value: unknown): string {
  if (Array.isArray(value)) return value.map(shown).join("\n");
  return typeof value === "string" ? value : value === null || value === undefined ? "" : JSON.stringify(value);
}

function Entry(
  { slot, edit, giveBack }: { slot: Slot & { detail: Value | null }; edit: () => void; giveBack: () => void },
) {
  const [open, setOpen] = useState(false);
  const { detail } = slot;
  const written = detail === null || detail.origin === "user";
  return (
    <li>
      <h3>{titled(slot.name)}</h3>
      <div class="said">{shown(slot.value)}</div>
      <p class="small">
        <Tag>{written ? t("origin_user") : t("origin_derived", { deriver: detail.deriver ?? "" })}</Tag>{" "}
        {detail && <Time at={detail.update_time} />}
      </p>
      <div class="buttons">
        {detail && (
          <button type="button" aria-expanded={open} onClick={() => setOpen(!open)}>
            {open ? t("hide_why") : t("why")}
          </button>
        )}
        <button type="button" aria-label={`${t("edit")}: ${titled(slot.name)}`} {...needs("write")} onClick={edit}>{t("edit")}</button>
        {written && <button type="button" {...needs("write")} onClick={giveBack}>{t("give_back")}</button>}
      </div>
      {open && detail && <Origin ids={detail.memory_ids} />}
    </li>
  );
}

function Origin({ ids }: { ids: readonly string[] }) {
  if (ids.length === 0) return <p>{t("no_memories_behind")}</p>;
  return (
    <>
      {ids.slice(0, SHOWN_MEMORIES).map((id) => <OriginMemory key={id} id={id} />)}
      {ids.length > SHOWN_MEMORIES && <p>{t("more_memories", { count: ids.length - SHOWN_MEMORIES })}</p>}
    </>
  );
}

function OriginMemory({ id }: { id: string }) {
  const { data, problem, reload } = useLoad((signal) => get<Memory>(path("/v1/memories", id), {}, signal), [id]);
  if (problem?.code === "memory_not_found") return <p class="muted">{t("memory_gone")} <code>{id}</code></p>;
  if (problem) return <Problem problem={problem} retry={reload} />;
  if (!data) return <Loading />;
  return (
    <div class="evidence">
      <p><a class="said" href={memoryAddress(data)}>{data.content}</a></p>
      {data.evidence.length === 0 && <p class="muted">{t("no_evidence", { key: data.creator ?? "?" })}</p>}
      {data.evidence.slice(0, SHOWN_MESSAGES).map((message) => <EvidenceMessage key={message} id={message} />)}
    </div>
  );
}

function Changes({ address, version }: { address: string; version: number }) {
  return (
    <Table<Change>
      caption={t("changes")}
      inputs={[address, version]}
      load={(cursor, limit, signal) => get<Page<Change>>(`${address}/history`, { cursor, limit }, signal)}
      row={(change) => change.history_id}
      empty={t("no_changes")}
      columns={[
        { title: t("when"), show: (change) => <Time at={change.create_time} /> },
        { title: t("what"), show: (change) => `${titled(change.slot)} · ${label(change.event)}` },
        { title: t("before"), show: (change) => <span class="said">{shown(change.before)}</span> },
        { title: t("after"), show: (change) => <span class="said">{shown(change.after)}</span> },
        { title: t("by"), show: (change) => change.job_id ? <JobLink id={change.job_id} /> : <code>{change.actor}</code> },
      ]}
    />
  );
}
