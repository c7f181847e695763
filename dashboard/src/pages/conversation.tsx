import type { PageProps } from "../app";
import { ConversationList } from "./conversation/list";
import { Conversation } from "./conversation/session";

/** `#/conversation`, and `#/conversation/SESSION?message=ID` at one message. */
export default function Conversations({ path, query }: PageProps) {
  const [session] = path;
  if (session) return <Conversation key={session} id={session} query={query} />;
  return <ConversationList query={query} />;
}
