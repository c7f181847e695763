// What rules of the gate are called; and its sentences, which the service says in English, in Chinese.
import { language } from "../text";

const NAMES: Record<string, { en: string; zh: string }> = {
  low_confidence: { en: "not sure enough", zh: "把握不足" },
  too_short: { en: "too short", zh: "内容太短" },
  too_long: { en: "too long", zh: "内容太长" },
  stop_word: { en: "has a forbidden word", zh: "含禁用词" },
  injection: { en: "gives orders to the model", zh: "指挥模型" },
  sensitive: { en: "sensitive content", zh: "敏感内容" },
  duplicate: { en: "known already", zh: "已经记住" },
  scope_not_allowed: { en: "scope not allowed", zh: "范围不允许" },
  evidence_missing: { en: "no message says it", zh: "没有消息依据" },
  unconfirmed: { en: "only the assistant says it", zh: "用户没有确认" },
  echo: { en: "repeats what was recalled", zh: "复述召回内容" },
  stale: { en: "not mentioned for long", zh: "久未提及" },
  not_spoken_of: { en: "nothing new speaks of it", zh: "没有新的陈述提到它" },
  protected: { en: "written by a person", zh: "由人保存" },
  unknown_memory: { en: "names an unknown memory", zh: "提到未知记忆" },
  too_few_sources: { en: "merges fewer than two", zh: "合并少于两条" },
  scope_mismatch: { en: "merges different kinds", zh: "合并的种类不同" },
  overlap: { en: "merged twice", zh: "重复合并" },
  source_changed: { en: "changed meanwhile", zh: "期间已被修改" },
  malformed: { en: "cannot be read", zh: "格式不正确" },
  nothing_found: { en: "nothing worth remembering", zh: "没有值得记住的内容" },
  not_read: { en: "not said by the user", zh: "不是用户所说" },
  removal_limit: { en: "too many removed at once", zh: "移除达到上限" },
  over_capacity: { en: "the limit of memories is reached", zh: "记忆数已达上限" },
  source_error_not_allowed: { en: "error without a correction", zh: "没有更正的错误" },
};

/** A rule in a few words; of a rule that is not known here, its code. */
export function ruleName(code: string): string {
  return NAMES[code]?.[language()] ?? code.replaceAll("_", " ");
}

const ZH: Record<string, string> = {
  low_confidence: "置信度低于下限。",
  too_short: "内容太短。",
  too_long: "内容太长；更长的文本请放入文档，那里会切分成片段。",
  stop_word: "含有不允许记住的词。",
  injection: "这段话是在指挥模型，而不是陈述事实。",
  sensitive: "含有不允许记住的敏感内容。",
  duplicate: "与同一归属的一条记忆几乎相同。",
  scope_not_allowed: "不允许写入这个范围。",
  evidence_missing: "没有消息能支持这条陈述。",
  echo: "只是复述了召回或注入的内容，用户并没有这样说。",
  stale: "很久没有再被提到，已超过预计的有效期。",
  not_spoken_of: "它不会自行结束，也没有新的陈述提到它。",
  protected: "由人保存或是更正，不会自动移除。",
  unknown_memory: "提到了一条没有展示过的记忆。",
  too_few_sources: "合并至少需要两条记忆。",
  scope_mismatch: "这些记忆的范围或类型不同。",
  overlap: "另一次合并已包含其中的记忆。",
  source_changed: "其中一条记忆已被修改或结束。",
  unconfirmed: "用户没有确认这件事。",
  malformed: "格式不正确。",
  nothing_found: "没有找到值得记住的内容。",
  not_read: "只从用户所说的话中抽取记忆。",
  removal_limit: "一次移除的数量已达上限。",
  over_capacity: "记忆数已达上限，保留了更重要的记忆。",
  source_error_not_allowed: "只有更正才能带有被更正的错误。",
};

/** What a broken rule says; of a rule that is not known here, what the service says. */
export function sentenceOf(reason: { code: string; detail: string }): string {
  return (language() === "zh" ? ZH[reason.code] : undefined) ?? reason.detail;
}
