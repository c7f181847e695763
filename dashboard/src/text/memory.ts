import { texts } from "../text";

export const t = texts({
  en: { in_conflict: "in contradiction", gone: "This memory was deleted." },
  zh: { in_conflict: "存在矛盾", gone: "这条记忆已被删除。" },
});
