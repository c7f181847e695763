import { type Language, language, setLanguage, t } from "../text";

export function LanguageSwitch() {
  return (
    <label class="inline">
      <span class="hidden">{t("language")}</span>
      <select value={language()} onChange={(event) => setLanguage(event.currentTarget.value as Language)}>
        <option value="en" lang="en">English</option>
        <option value="zh" lang="zh-CN">中文</option>
      </select>
    </label>
  );
}
