import { texts } from "../text";

export const t = texts({
  en: { in_conflict: "in conflict", gone: "This memory was deleted." },
  zh: { in_conflict: "有冲突", gone: "这条记忆已被删除。" },
});
