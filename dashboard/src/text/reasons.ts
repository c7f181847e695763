// Sentences of the gate, which the service says in English, in Chinese. Figures stand beside them.
import { language } from "../text";

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
  source_error_not_allowed: "只有更正才能带有被更正的错误。",
};

/** What a broken rule says; of a rule that is not known here, what the service says. */
export function sentenceOf(reason: { code: string; detail: string }): string {
  return (language() === "zh" ? ZH[reason.code] : undefined) ?? reason.detail;
}
