import type { PageProps } from "../app";
import { MemoryView } from "./people/memory";
import { Person } from "./people/person";
import { UserList } from "./people/users";

/** `#/people`, `#/people/USER`, and `#/people/USER/MEMORY`, with `-` for a memory of no user. */
export default function People({ path, query }: PageProps) {
  const [user, memory] = path;
  if (memory) return <MemoryView key={memory} id={memory} />;
  if (user) return <Person key={user} id={user} query={query} />;
  return <UserList query={query} />;
}
