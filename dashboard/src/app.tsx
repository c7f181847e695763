import type { ComponentType } from "preact";
import { useEffect, useLayoutEffect, useReducer, useRef, useState } from "preact/hooks";

import { type Access, isBound, loadAccess, may } from "./access";
import { KeyAccess } from "./components/key-access";
import { LanguageSwitch } from "./components/language-switch";
import { SignIn } from "./components/sign-in";
import { Loading } from "./components/states";
import { href, type Route, useRoute } from "./routing";
import { currentKey, onKeyChange, signInWith, signOut, takeCode } from "./session";
import { onLanguageChange, type SharedKey, t } from "./text";

/** What every page is given. */
export interface PageProps {
  /** What follows the page's name in the address. */
  path: string[];
  query: URLSearchParams;
}

type LoadPage = () => Promise<{ default: ComponentType<PageProps> }>;

const PAGES = {
  overview: () => import("./pages/overview"),
  people: () => import("./pages/people"),
  search: () => import("./pages/search"),
  conversation: () => import("./pages/conversation"),
  gate: () => import("./pages/gate"),
  jobs: () => import("./pages/jobs"),
  graph: () => import("./pages/graph"),
  forgetting: () => import("./pages/forgetting"),
  keys: () => import("./pages/keys"),
  webhooks: () => import("./pages/webhooks"),
  evaluation: () => import("./pages/evaluation"),
} satisfies Partial<Record<SharedKey, LoadPage>>;

type PageName = keyof typeof PAGES;
const NAMES = Object.keys(PAGES) as PageName[];
const isPage = (name: string): name is PageName => Object.hasOwn(PAGES, name);

export function App() {
  const [, render] = useReducer((count: number, _: void) => count + 1, 0);
  // Before the first frame: what happens until then would be lost.
  useLayoutEffect(() => onKeyChange(() => render()), []);
  useLayoutEffect(() => onLanguageChange(() => render()), []);
  const [code, setCode] = useState(takeCode);
  useLayoutEffect(() => {
    // A link opened in this tab changes the hash alone. Before useRoute, which then finds no code.
    const take = () => setCode((waiting) => takeCode() ?? waiting);
    addEventListener("hashchange", take);
    return () => removeEventListener("hashchange", take);
  }, []);
  useEffect(() => {
    if (code !== null) void signInWith(code).finally(() => setCode(null));
  }, [code]);
  const route = useRoute();
  if (code !== null) return <main><p role="status">{t("signing_in")}</p></main>;
  const key = currentKey();
  if (key === null) return <SignIn />;
  // Another key is another reader: nothing of the last one stays.
  return <Layout key={key} route={route} />;
}

function Layout({ route }: { route: Route }) {
  const name = route.page || "overview";
  const main = useRef<HTMLElement>(null);
  const seen = useRef(name);
  // Beside the module of the first page: it is there before that is.
  const [access] = useState(loadAccess);
  useEffect(() => {
    document.title = isPage(name) ? `${t(name)} · KeMem` : t("title");
  });
  useEffect(() => {
    // A screen reader goes on with the new page; the first one is read from its top.
    if (seen.current !== name) main.current?.focus();
    seen.current = name;
  }, [name]);
  return (
    <>
      <a class="skip" href="#main" onClick={(event) => { event.preventDefault(); main.current?.focus(); }}>
        {t("skip")}
      </a>
      <header class="top">
        <a class="brand" href={href("overview")}>KeMem</a>
        <Navigation current={name} />
        <div class="top-end">
          <LanguageSwitch />
          <button type="button" class="quiet" onClick={signOut}>{t("sign_out")}</button>
        </div>
      </header>
      <main id="main" tabIndex={-1} ref={main}>
        {isPage(name) ? <LoadedPage key={name} name={name} route={route} access={access} /> : <p>{t("page_missing")}</p>}
      </main>
    </>
  );
}

function Navigation({ current }: { current: string }) {
  return (
    <nav aria-label={t("navigation")}>
      <ul>
        {NAMES.map((name) => (
          <li key={name}>
            <a href={href(name)} aria-current={name === current ? "page" : undefined}>{t(name)}</a>
          </li>
        ))}
      </ul>
    </nav>
  );
}

/** What a page takes beyond reading; a key without it is told so in its place. */
const SCOPES: Partial<Record<PageName, "admin">> = { forgetting: "admin", webhooks: "admin" };

/** Why this key sees nothing of a page; null where it does. */
function lacks(name: PageName): string | null {
  if (name === "keys") return may("admin") || may("operator") ? null : t("needs_admin");
  if (!may("read")) return t("needs_read");
  const scope = SCOPES[name];
  return scope === undefined || may(scope) ? null : t(`needs_${scope}`);
}

/** Whether the service is there, of which a module did not come. */
const isAnswering = () =>
  fetch("/dashboard", { method: "HEAD", cache: "no-store", credentials: "omit" }).then(({ ok }) => ok, () => false);

function LoadedPage({ name, route, access }: { name: PageName; route: Route; access: Promise<Access | null> }) {
  const [state, setState] = useState<{ page: ComponentType<PageProps> | null; access: Access | null; failed: "unreachable" | "page_failed" | null }>({
    page: null,
    access: null,
    failed: null,
  });
  // The module and the key's access are asked for together, before the first frame.
  useLayoutEffect(() => {
    let gone = false;
    const load: LoadPage = PAGES[name];
    Promise.all([load(), access]).then(
      ([module, access]) => gone || setState({ page: module.default, access, failed: null }),
      async () => {
        const failed = await isAnswering() ? "page_failed" : "unreachable";
        return gone || setState({ page: null, access: null, failed });
      },
    );
    return () => { gone = true; };
  }, [name]);
  if (state.failed !== null) {
    // A module that did not come is not asked for again by the same document.
    return (
      <div class="note problem" role="alert">
        <p>{t(state.failed)}</p>
        <button type="button" onClick={() => location.reload()}>{t("retry")}</button>
      </div>
    );
  }
  if (state.page === null) return <Loading />;
  const Page = state.page;
  const lacking = lacks(name);
  const begins = name === "overview" && state.access !== null && (lacking !== null || isBound(state.access));
  return (
    <>
      <h1>{t(name)}</h1>
      {begins && state.access ? <KeyAccess access={state.access} />
        : lacking !== null ? <p class="note">{lacking}</p>
        : <Page path={route.path} query={route.query} />}
    </>
  );
}
