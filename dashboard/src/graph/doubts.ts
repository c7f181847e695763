// Which merges look wrong: a hint from names and types alone, since that is all that a merge by hand leaves.
import { percent } from "../text";
import { t } from "../text/graph";
import type { Change, EntityShort } from "./shapes";

/** What an entity is before anything says more. */
const UNKNOWN_TYPE = "thing";
/** Names with less in common than that are hardly spellings of one. "Jon" and "John" have 0.4. */
const LIKE = 0.3;

/** Why these are hardly one thing, in words; empty where nothing speaks against it. */
export function doubtsOf(stays: EntityShort, others: readonly EntityShort[]): string[] {
  return others.flatMap((other) => {
    const names = { one: stays.name, other: other.name };
    const types = [stays.entity_type, other.entity_type];
    const found = likeness(stays.name, other.name);
    return [
      ...(types[0] !== types[1] && !types.includes(UNKNOWN_TYPE)
        ? [t("doubt_types", { ...names, type: stays.entity_type, other_type: other.entity_type })]
        : []),
      ...(found < LIKE ? [t("doubt_names", { ...names, share: percent(found) })] : []),
    ];
  });
}

/** The same of a merge that stands, as far as its entities are still there. */
export function doubtsAbout({ event, entity_ids: [stays], entities = [], undone_at }: Change): string[] {
  const target = entities.find((entity) => entity.entity_id === stays);
  if (event !== "MERGE" || undone_at !== null || target === undefined) return [];
  return doubtsOf(target, entities.filter((entity) => entity !== target));
}

/** How much two names have in common, from 0 to 1: 1 for a word of both, or for initials. */
function likeness(one: string, other: string): number {
  const [words, others] = [wordsOf(one), wordsOf(other)];
  if (words.some((word) => others.includes(word))) return 1;
  const [joined, otherJoined] = [words.join(""), others.join("")];
  if (joined === initials(others) || otherJoined === initials(words)) return 1;
  const [pairs, otherPairs] = [pairsOf(joined), pairsOf(otherJoined)];
  const shared = [...pairs].filter((pair) => otherPairs.has(pair)).length;
  return (2 * shared) / Math.max(1, pairs.size + otherPairs.size);
}

/** Words, and single characters of Chinese. */
const wordsOf = (name: string): readonly string[] =>
  name.normalize("NFKC").toLowerCase().match(/\p{Script=Han}|[^\P{L}\p{Script=Han}]+|\p{N}+/gu) ?? [];
const initials = (words: readonly string[]) => (words.length > 1 ? words.map((word) => [...word][0]).join("") : "");
const pairsOf = (text: string) => new Set([...text].slice(1).map((character, place) => [...text][place] + character));
