"""The one-time link of the embedded service, opened in a browser."""

from urllib.parse import quote

from playwright.async_api import Browser, expect

from app.identity.tenants.sign_in_service import SignInService
from app.runtime import Runtime
from tests.support.dashboard import Watch, context_of, settled
from tests.support.tenants import Caller, tenants


def sign_ins(runtime: Runtime) -> SignInService:
    return SignInService(runtime.work, tenants(runtime), runtime.now)


async def test_link_signs_in_and_leaves_no_code_in_the_address(
    browser: Browser, address: str, runtime: Runtime, acme: Caller, watch: Watch
) -> None:
    code = await sign_ins(runtime).add_code(acme.tenant_id, ["admin"])
    async with context_of(browser, address, None, watch) as context:
        page = await context.new_page()
        await page.goto(f"/dashboard#code={code}")

        await expect(page.get_by_role("heading", level=1)).to_have_text("Overview")
        await settled(page)
        assert page.url == f"{address}/dashboard#/overview"
        key = await page.evaluate("sessionStorage.getItem('kemem.key')")
        assert (await runtime.identification.identify(key)).tenant_id == acme.tenant_id
        await page.go_back()
        assert "code" not in page.url
    watch.check()


async def test_used_link_is_explained_and_a_key_still_signs_in(
    browser: Browser, address: str, runtime: Runtime, acme: Caller, watch: Watch
) -> None:
    watch.allow_refusals(401)
    service = sign_ins(runtime)
    code = await service.add_code(acme.tenant_id, ["admin"])
    await service.sign_in(code)
    async with context_of(browser, address, None, watch) as context:
        page = await context.new_page()
        await page.goto(f"/dashboard#code={quote(code, safe='')}")

        await expect(page.get_by_role("alert")).to_contain_text("signed in a browser already")
        await page.get_by_label("Key", exact=True).fill(acme.key)
        await page.get_by_role("button", name="Sign in").click()
        await expect(page.get_by_role("heading", level=1)).to_have_text("Overview")
        await settled(page)
    watch.check()


async def test_link_replaces_the_key_of_a_tab_that_was_signed_in(
    browser: Browser, address: str, runtime: Runtime, acme: Caller, other: Caller, watch: Watch
) -> None:
    code = await sign_ins(runtime).add_code(other.tenant_id, ["admin"])
    async with context_of(browser, address, acme.key, watch) as context:
        page = await context.new_page()
        await page.goto(f"/dashboard#code={code}")
        await expect(page.get_by_role("heading", level=1)).to_have_text("Overview")
        await settled(page)
        key = await page.evaluate("sessionStorage.getItem('kemem.key')")
        assert (await runtime.identification.identify(key)).tenant_id == other.tenant_id
    watch.check()


async def test_used_link_leaves_a_tab_signed_in(
    browser: Browser, address: str, runtime: Runtime, acme: Caller, watch: Watch
) -> None:
    watch.allow_refusals(401)
    service = sign_ins(runtime)
    code = await service.add_code(acme.tenant_id, ["admin"])
    await service.sign_in(code)
    async with context_of(browser, address, acme.key, watch) as context:
        page = await context.new_page()
        await page.goto(f"/dashboard#code={code}")

        await expect(page.get_by_role("heading", level=1)).to_have_text("Overview")
        await settled(page)
        assert await page.evaluate("sessionStorage.getItem('kemem.key')") == acme.key
    watch.check()
