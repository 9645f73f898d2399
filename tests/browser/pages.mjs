// Drives a real Chromium through the console: every page with scripts on and off, wide and as a phone,
// light and dark; what a person does there is done, and seen on a page that was open; axe-core must find
// nothing, and a word of the browser about the Content-Security-Policy or an error on a page ends it.
// Screenshots go to SHOTS.
import { readFileSync, mkdirSync } from "node:fs";
import { execFile } from "node:child_process";
import { createRequire } from "node:module";
import { join } from "node:path";

const { URL: base, PASSPHRASE, CHROMIUM, SHOTS, HOME_OF_PACKAGES, HANDOFF, PERMISSION, AGENT, CAMBIUM, CALL, TOKEN } =
  process.env;
const require = createRequire(join(HOME_OF_PACKAGES, "package.json"));
const { chromium } = require("playwright-core");
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
mkdirSync(SHOTS, { recursive: true });

const faults = [];
const browser = await chromium.launch({ executablePath: CHROMIUM, args: ["--no-sandbox"] });

/** A browser of one kind, logged in; `what` names it in faults and screenshots. */
async function person(what, options) {
  const context = await browser.newContext(options);
  context.setDefaultTimeout(30_000);
  const page = await context.newPage();
  page.on("console", (said) => {
    // A 4xx answer to a form that is meant to fail is no fault of the page.
    const loads = said.text().startsWith("Failed to load resource");
    if (said.type() === "error" && !loads) faults.push(`${what} ${page.url()}: ${said.text()}`);
  });
  page.on("pageerror", (error) => faults.push(`${what} ${page.url()}: ${error}`));
  await page.goto(`${base}/asks`);
  await look(page, what, "login");
  await page.getByLabel("Passphrase").fill(PASSPHRASE);
  await page.getByRole("button", { name: "Log in", exact: true }).click();
  await page.waitForURL(`${base}/asks`);
  return page;
}

/** A screenshot, and what axe-core finds. */
async function look(page, what, name) {
  await page.screenshot({ path: join(SHOTS, `${name}-${what}.png`), fullPage: true });
  if (what.includes("without-scripts")) return;
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
  for (const { id, help, nodes } of violations) {
    faults.push(`${what} ${name}: ${id}: ${help}: ${nodes.map((node) => node.html).slice(0, 3).join(" | ")}`);
  }
  const wide = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
  if (wide > 0) faults.push(`${what} ${name}: ${wide} pixels wider than the window`);
}

function must(holds, said) {
  if (!holds) faults.push(said);
}

const pages = (ask) => [
  ["asks", "/asks"],
  ["ask", ask],
  ["handoff", HANDOFF],
  ["permission", PERMISSION],
  ["start", "/start"],
  ["connect", `/start/${AGENT}`],
  ["agents", "/agents"],
  ["agent", `/agents/${AGENT}`],
  ["connections", "/connections"],
  ["vendors", "/connect"],
  ["add", "/connect/google-gmail"],
  ["toolbox", "/toolbox"],
  ["tool", "/toolbox/shop__create-order"],
  ["difference", "/toolbox/shop__list-orders?version=2&from=1"],
  ["runs", "/runs"],
  ["audit", "/audit"],
  ["missing", "/nowhere"],
];

/** The agent calls a tool of its own; a write is held and answers that it waits. */
function calls(...words) {
  const env = { CAMBIUM_TOKEN: TOKEN };
  return new Promise((done) => execFile(CAMBIUM, [...JSON.parse(CALL), ...words], { env }, done));
}

let ask;
const kinds = [
  ["wide", { viewport: { width: 1280, height: 900 }, colorScheme: "light" }],
  ["dark", { viewport: { width: 1280, height: 900 }, colorScheme: "dark" }],
  ["phone", { viewport: { width: 360, height: 740 }, colorScheme: "light" }],
  ["without-scripts", { viewport: { width: 1280, height: 900 }, javaScriptEnabled: false }],
];
for (const [what, options] of kinds) {
  const page = await person(what, options);
  ask ??= await page.locator("a[href^='/asks/']").first().getAttribute("href");
  for (const [name, path] of pages(ask)) {
    await page.goto(base + path);
    await look(page, what, name);
  }
  await page.context().close();
}

// What a person does, with scripts off: nothing may need one.
const page = await person("doing-without-scripts", { javaScriptEnabled: false });
const click = (name) => page.getByRole("button", { name }).first().click();

await page.goto(base + HANDOFF);
await page.getByLabel("Token").fill("secret-of-the-bank");
await page.getByLabel("Look twice").fill("wrong.example");
await page.getByLabel("This is the service I mean").check();
await click("Connect");
await page.getByRole("alert").waitFor();
must((await page.getByLabel("Token").inputValue()) === "", "the secret was shown again");
must(await page.getByLabel("This is the service I mean").isChecked(), "a tick was lost");
await look(page, "doing-without-scripts", "handoff-slip");
await page.getByLabel("Token").fill("secret-of-the-bank");
await page.getByLabel("Look twice").fill("files.elsewhere.example");
await click("Connect");
await page.waitForURL(`${base}/connections`);
must((await page.content()).includes("api.bank.example"), "the connection is not there");

await page.goto(base + PERMISSION);
await click("Allow it");
await page.goto(`${base}/agents/${AGENT}`);
must((await page.content()).includes("docs.bank.example"), "what was allowed is not on the agent's page");
await look(page, "doing-without-scripts", "allowed");
await click("Take back");
must(!(await page.content()).includes("docs.bank.example"), "what was allowed stands still");

await page.goto(base + ask);
await click("Deny");
await page.goto(`${base}/agents/${AGENT}`);
must((await page.content()).includes("denied"), "the denial is not on the agent's page");
await click("Withdraw");
must(!(await page.content()).includes("denied"), "the denial still stands");

await page.goto(`${base}/agents`);
await page.getByLabel("Name").fill("phone");
await page.getByLabel("Cap").fill("501");
await click("Create");
await page.getByRole("alert").waitFor();
await page.getByLabel("Cap").fill("5");
await click("Create");
must((await page.content()).includes("cambium_"), "the token is not shown");
await look(page, "doing-without-scripts", "token");
const token = (await page.locator("p code.foreign").first().textContent()).trim();
await page.getByRole("link", { name: "see whether it has called" }).click();
must((await page.content()).includes("has not called"), "nobody has called with that token");
await look(page, "doing-without-scripts", "waiting");
const hello = { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "test", version: "1" } };
await fetch(`${base}/mcp`, {
  method: "POST",
  headers: {
    authorization: `Bearer ${token}`,
    "content-type": "application/json",
    accept: "application/json, text/event-stream",
  },
  body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "initialize", params: hello }),
});
await click("Look again");
must((await page.content()).includes("Connected: its harness called last"), "the call was not seen");
await look(page, "doing-without-scripts", "connected");

await page.goto(`${base}/toolbox/shop__list-orders`);
await page.getByLabel("Input").fill("{}");
await click("Dry-run");
must((await page.content()).includes("dry_run"), "the dry run has no answer");
await look(page, "doing-without-scripts", "dry-run");

await page.goto(`${base}/connect/stripe`);
await page.getByLabel("Key").or(page.getByLabel("Token")).fill("secret-of-stripe");
await page.getByLabel("Every agent of mine").check();
await click("Connect");
await page.waitForURL(`${base}/connections`);
must((await page.content()).includes("api.stripe.com"), "what was connected on its page is not there");

await page.goto(`${base}/connections`);
await page.getByRole("button", { name: "Save who may use it of shop" }).click();
await page.getByRole("button", { name: "Revoke shop" }).click();
await page.getByRole("button", { name: "Reconnect shop" }).click();
await page.getByRole("button", { name: "Revoke shop" }).waitFor();

// With scripts on, a page that is open follows what happens, and is never loaded again for it.
const open = await person("live", { viewport: { width: 1280, height: 900 } });
const order = JSON.stringify({ item: "a live chair", quantity: 2 });
const stays = () => open.evaluate(() => (window.stays = true));
const stayed = async (where) => must(await open.evaluate(() => window.stays === true), `${where} was loaded anew`);
const says = (text) => open.getByText(text).waitFor();

await says("Waiting for you: 0");
await stays();
await calls("create-order", "--input", order);
await says("Waiting for you: 1");
await open.getByRole("link", { name: "Asks (1)" }).waitFor();
must((await open.title()).startsWith("Asks (1)"), "the title is of before");
const row = open.locator("#asks a").first();
must((await row.textContent()).includes("POST"), "the ask is not listed");
await look(open, "live", "asks-appeared");
await stayed("asks");

// Two look at it; what one types stays while the other answers.
const asked = base + (await row.getAttribute("href"));
await open.goto(asked);
await stays();
const field = open.getByLabel("Passphrase");
await field.fill("half a pass");
await page.goto(asked);
await click("Deny");
await says("This ask is denied");
must((await field.inputValue()) === "half a pass", "what was typed is gone");
must(await field.evaluate((it) => it === document.activeElement), "the focus is gone");
must(await open.locator("#live-held").isVisible(), "nothing says that the page has changed");
await look(open, "live", "ask-held");
await field.fill("");
await open.getByRole("heading", { name: "Who asks" }).click();
await field.waitFor({ state: "detached" });
must(!(await open.locator("#live-held").isVisible()), "the notice stays");
await stayed("the ask");

await open.goto(`${base}/runs`);
await stays();
const before = await open.locator("#runs table").last().locator("tbody tr").count();
await calls("list-orders");
await open.locator("#runs table").last().locator("tbody tr").nth(before).waitFor();
await look(open, "live", "runs-appeared");
await stayed("runs");

await open.goto(`${base}/agents`);
await stays();
await open.getByLabel("Name").fill("typed here");
await page.goto(`${base}/agents`);
await page.getByLabel("Name").fill("tablet");
await click("Create");
await open.getByRole("link", { name: "tablet", exact: true }).waitFor();
must((await open.getByLabel("Name").inputValue()) === "typed here", "a name that was typed is gone");
await stayed("agents");

// What was typed wrongly is said, and the form kept, whatever happens meanwhile.
await open.getByLabel("Cap").fill("501");
await open.getByRole("button", { name: "Create" }).click();
await open.getByRole("alert").waitFor();
await page.goto(`${base}/agents`);
await page.getByLabel("Name").fill("desk");
await click("Create");
await open.locator("#live-held").waitFor({ state: "visible" });
must(await open.getByRole("alert").isVisible(), "the slip is gone");
must((await open.getByLabel("Cap").inputValue()) === "501", "what was typed wrongly is gone");

await open.goto(`${base}/agents/${AGENT}`);
await stays();
await page.goto(`${base}/agents/${AGENT}`);
await click("Withdraw");
await says("No answer of yours stands");
await stayed("the agent");

// Out in another window: the page says that it follows no longer.
const second = await open.context().newPage();
await second.goto(`${base}/asks`);
await second.getByRole("button", { name: "Log out" }).click();
await second.waitForURL(`${base}/login`);
await open.bringToFront();
await open.locator("#live-ended").waitFor({ state: "visible" });
await look(open, "live", "ended");
await open.context().close();

await page.goto(`${base}/asks`);
await click("Log out");
await page.waitForURL(`${base}/login`);

await browser.close();
for (const fault of faults) console.error(fault);
console.log(`${kinds.length * pages(ask).length} pages looked at, ${faults.length} faults`);
process.exit(faults.length === 0 ? 0 : 1);
