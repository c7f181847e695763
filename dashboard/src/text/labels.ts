// Words of the API as people read them: in English the word itself, in Chinese a translation.
import { language } from "../text";

const ZH: Record<string, string> = {
  preference: "偏好", fact: "事实", skill: "技能", habit: "习惯", event: "事件", context: "背景",
  constraint: "限制", decision: "决定", goal: "目标", correction: "更正", knowledge: "知识", experience: "经验",
  active: "有效", archived: "已归档", superseded: "已被取代", deleted: "已删除",
  session: "对话", project: "项目", user: "用户", agent: "智能体",
  long: "长期", short: "短期",
  ai: "抽取", knowledge_base: "文档", project_resource: "项目资源", import: "导入",
  ADD: "新增", UPDATE: "修改", SUPERSEDE: "取代了旧记忆", MERGE: "合并", ARCHIVE: "归档", RESTORE: "恢复",
  DELETE: "删除", NONE: "没有新内容", REJECT: "拒绝", SKIP: "跳过", KEEP: "保留", EXTEND: "延长", REMOVE: "移除",
  SET: "设定", accepted: "接受", rejected: "拒绝",
  enabled: "启用", disabled: "停用", running: "进行中", ended: "已结束",
  assistant: "助手", system: "系统", tool: "工具",
  derived: "推导得出", attributes: "属性", sections: "概述", slots: "栏目", instructions: "用户的要求",
  username: "姓名", background: "背景", profession: "职业", characteristics: "特点",
  communication_style: "沟通风格", response_format: "回答格式", language_preference: "语言偏好",
  expertise_areas: "擅长领域", programming_languages: "编程语言", frequently_used_tools: "常用工具",
  work_context: "工作", personal_context: "个人", top_of_mind: "近期关注", recent_months: "近几个月",
  earlier_context: "更早以前", long_term_background: "长期背景",
  content: "内容", memory_type: "类型", attribute: "属性", tier: "期限", confidence: "置信度", status: "状态",
  valid_from: "生效时间", valid_to: "失效时间", expires_at: "过期时间", superseded_by: "取代者",
  conflict_ids: "矛盾", evidence: "依据", visibility: "可见范围", metadata: "元数据", scope: "范围",
  source_error: "被更正的错误", said_at: "说出时间", speaker: "说话人", reviewed_at: "复查时间",
  external_id: "外部编号", expected_valid_days: "预计有效天数", deleted_at: "删除时间",
  embedding_model: "向量模型", source_deleted_at: "来源删除时间",
  automatic: "自动", continued: "续读", explicit: "手动", end: "对话结束", infer: "保存时", rescue: "移出窗口时",
  reread: "重读", extracted: "已抽取", committed: "已写入", failed: "失败",
  sessions: "对话", messages: "消息", memories: "记忆", decisions: "判定", feedback: "反馈", history: "历史",
  profiles: "画像", profile_values: "画像内容", profile_history: "画像历史", relations: "关系", entities: "实体",
  mentions: "提及", aliases: "别名", checkpoints: "检查点", summaries: "摘要", injections: "注入记录",
  injected_contexts: "上下文记录", jobs: "任务", runs: "抽取记录", keys: "密钥", memberships: "项目成员",
  blocks: "记忆块", files: "文件", folders: "文件夹", passages: "文档片段", snapshots: "状态快照",
  states: "工作状态", buckets: "向量桶", approvals: "审批", answers: "已存回答", model_answers: "模型回答",
  manual: "手动", periodic: "定期", before_compact: "压缩前", before_restore: "恢复前",
};

/** What became of a statement: the API writes these in capitals. */
const EVENTS: Record<string, string> = {
  ADD: "added", UPDATE: "changed", SUPERSEDE: "replaced an older one", MERGE: "merged", ARCHIVE: "archived",
  RESTORE: "restored", DELETE: "deleted", NONE: "nothing new", REJECT: "refused", SKIP: "skipped", KEEP: "kept",
  EXTEND: "kept for longer", REMOVE: "removed", SET: "set", conflict_ids: "contradicts", in_conflict: "in contradiction",
};

/** What a job of each kind does. */
const KINDS: Record<string, { en: string; zh: string }> = {
  extract: { en: "read a conversation", zh: "读取对话" },
  rescue: { en: "read what left the window", zh: "读取移出窗口的消息" },
  compact: { en: "summarise a conversation", zh: "压缩对话" },
  infer: { en: "read messages of a save", zh: "读取保存的消息" },
  ingest_file: { en: "cut a file into passages", zh: "切分文件" },
  extract_file: { en: "read a file for memories", zh: "从文件抽取记忆" },
  index_messages: { en: "make messages searchable", zh: "建立消息索引" },
  profile: { en: "derive a profile", zh: "推导画像" },
  graph_tidy: { en: "update the graph", zh: "更新图谱" },
  forget: { en: "forget what is due", zh: "执行遗忘" },
  deliver: { en: "send to webhooks", zh: "发送 Webhook" },
  delete_memories: { en: "delete memories", zh: "删除记忆" },
  housekeeping: { en: "maintenance of the tenant", zh: "日常维护" },
};

/** A kind of jobs in a few words; of a kind that is not known here, its code. */
export function kindName(kind: string): string {
  return KINDS[kind]?.[language()] ?? kind.replaceAll("_", " ");
}

/** A word of the API, such as a type of memory, a state or an event. */
export function label(word: string): string {
  return { en: EVENTS, zh: ZH }[language()][word] ?? word.replaceAll("_", " ");
}
