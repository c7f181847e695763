"""The one-time link of the embedded service, opened in a browser."""

from urllib.parse import quote

import pytest
from playwright.async_api import Browser, Page, expect

from app.identity.tenants.errors import RevokedKeyError
from app.identity.tenants.sign_in_service import SignInService
from app.runtime import Runtime
from tests.support.dashboard import Watch, context_of, effective, open_page, settled
from tests.support.tenants import Caller, tenants


def sign_ins(runtime: Runtime) -> SignInService:
    return SignInService(runtime.work, tenants(runtime), runtime.now)


async def overview(page: Page) -> None:
    """Wait for the page that a tab begins with when it is signed in."""
    await expect(page.get_by_role("heading", level=1)).to_have_text("Overview")
    await settled(page)


async def paste(page: Page, key: str) -> None:
    await page.get_by_label("Key", exact=True).fill(key)
    await page.get_by_role("button", name="Sign in").click()
    await overview(page)


async def key_of(page: Page) -> str:
    return await page.evaluate("sessionStorage.getItem('kemem.key')")


async def tenant_of(runtime: Runtime, page: Page) -> str:
    """Whose the key is that the tab has."""
    return (await runtime.identification.identify(await key_of(page))).tenant_id


async def test_link_signs_in_and_leaves_no_code_in_the_address(
    browser: Browser, address: str, runtime: Runtime, acme: Caller, watch: Watch
) -> None:
    code = await sign_ins(runtime).add_code(acme.tenant_id, ["admin"])
    async with context_of(browser, address, None, watch) as context:
        page = await context.new_page()
        await page.goto(f"/dashboard#code={code}")

        await overview(page)
        assert page.url == f"{address}/dashboard#/overview"
        assert await tenant_of(runtime, page) == acme.tenant_id
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
        await paste(page, acme.key)
    watch.check()


async def test_link_replaces_the_key_of_a_tab_that_was_signed_in(
    browser: Browser, address: str, runtime: Runtime, acme: Caller, other: Caller, watch: Watch
) -> None:
    code = await sign_ins(runtime).add_code(other.tenant_id, ["admin"])
    async with context_of(browser, address, acme.key, watch) as context:
        page = await context.new_page()
        await page.goto(f"/dashboard#code={code}")
        await overview(page)
        assert await tenant_of(runtime, page) == other.tenant_id
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

        await overview(page)
        assert await key_of(page) == acme.key
    watch.check()


async def go_to_link(page: Page, code: str) -> None:
    """As the address bar does in a tab that shows the dashboard: nothing but the hash changes."""
    await page.evaluate("(code) => { location.hash = `code=${code}` }", code)


async def test_link_opened_in_a_tab_with_the_dashboard_signs_in(
    browser: Browser, address: str, runtime: Runtime, acme: Caller, other: Caller, watch: Watch
) -> None:
    code = await sign_ins(runtime).add_code(other.tenant_id, ["admin"])
    async with context_of(browser, address, acme.key, watch) as context:
        page = await context.new_page()
        await open_page(page, "#/keys")
        await go_to_link(page, code)

        await overview(page)
        assert page.url == f"{address}/dashboard#/overview"
        assert await tenant_of(runtime, page) == other.tenant_id
        await page.go_back()
        assert "code" not in page.url
    watch.check()


@pytest.mark.parametrize("opened", ["", "#/keys"])
async def test_malformed_link_is_explained(
    browser: Browser, address: str, watch: Watch, opened: str
) -> None:
    watch.allow_refusals(401)
    async with context_of(browser, address, None, watch) as context:
        page = await context.new_page()
        if opened:
            await page.goto(f"/dashboard{opened}")
            await effective(page)
            await go_to_link(page, "%")
        else:
            await page.goto("/dashboard#code=%")

        await expect(page.get_by_role("alert")).to_contain_text("unknown_sign_in_code")
        assert "code" not in page.url
    watch.check()


async def test_signing_out_revokes_a_key_that_came_by_a_link(
    browser: Browser, address: str, runtime: Runtime, acme: Caller, watch: Watch
) -> None:
    code = await sign_ins(runtime).add_code(acme.tenant_id, ["admin"])
    async with context_of(browser, address, None, watch) as context:
        page = await context.new_page()
        await page.goto(f"/dashboard#code={code}")
        await overview(page)
        key = await key_of(page)
        async with page.expect_response(lambda answer: answer.request.method == "DELETE"):
            await page.get_by_role("button", name="Sign out").click()

        await expect(page.get_by_role("button", name="Sign in")).to_be_visible()
        assert await page.evaluate("sessionStorage.getItem('kemem.key_id')") is None
        with pytest.raises(RevokedKeyError):
            await runtime.identification.identify(key)
    watch.check()


async def test_signing_out_leaves_a_pasted_key_alive(
    browser: Browser, address: str, runtime: Runtime, acme: Caller, watch: Watch
) -> None:
    """Also in a tab that a link signed in before; the link's key ends when another replaces it."""
    code = await sign_ins(runtime).add_code(acme.tenant_id, ["admin"])
    async with context_of(browser, address, None, watch) as context:
        page = await context.new_page()
        sent: list[str] = []
        context.on("request", lambda request: sent.append(request.method))
        await page.goto(f"/dashboard#code={code}")
        await overview(page)
        for _ in range(2):
            await page.get_by_role("button", name="Sign out").click()
            await paste(page, acme.key)
        assert sent.count("DELETE") == 1
        assert (await runtime.identification.identify(acme.key)).tenant_id == acme.tenant_id
    watch.check()


async def test_second_link_revokes_the_key_of_the_first(
    browser: Browser, address: str, runtime: Runtime, acme: Caller, watch: Watch
) -> None:
    service = sign_ins(runtime)
    codes = [await service.add_code(acme.tenant_id, ["admin"]) for _ in range(2)]
    async with context_of(browser, address, None, watch) as context:
        page = await context.new_page()
        await page.goto(f"/dashboard#code={codes[0]}")
        await overview(page)
        first = await key_of(page)
        async with page.expect_response(lambda answer: answer.request.method == "DELETE"):
            await go_to_link(page, codes[1])
        await settled(page)

        with pytest.raises(RevokedKeyError):
            await runtime.identification.identify(first)
        assert await tenant_of(runtime, page) == acme.tenant_id
    watch.check()
