import { texts } from "../text";

export const t = texts({
  en: {
    call: "Call of {name}",
    result_of: "Result of the call {id}",
    part: "Not text: {type}",
    whole: "Show all {count} {count|character|characters}",
    gone: "This message was deleted.",
    in_conversation: "Open in its conversation",
    around: "Show what was said around it",
    hide: "Hide",
    empty_text: "(no text)",
  },
  zh: {
    call: "调用 {name}",
    result_of: "调用 {id} 的结果",
    part: "非文本内容：{type}",
    whole: "显示全部 {count} 个字符",
    gone: "这条消息已被删除。",
    in_conversation: "在对话中打开",
    around: "显示前后对话",
    hide: "收起",
    empty_text: "（无文本）",
  },
});
