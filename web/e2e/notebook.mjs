// Opens a running notebook from the console as a person does, in one click, and runs a cell in it, in a real Chromium:
//
//   node web/e2e/notebook.mjs --base http://127.0.0.1:8080 --login-code CODE --instance ins_… --caller "Dana Admin"
//
// The notebook must be at an origin of its own, know who opened it, and have nothing of the console.
import { insist, open, readArgs, say } from './harness.mjs';
import * as steps from './steps.mjs';

const args = readArgs();
const base = args.base.replace(/\/$/, '');
const session = await open(args);
const { context, page, shoot, faults } = session;

/** The click, and the tab that it opens. */
async function opened() {
  await page.goto(`${base}/workloads/${args.instance}`);
  const row = page.locator('[data-endpoint="notebook"]');
  await row.waitFor();
  await shoot('connect');
  const [tab] = await Promise.all([
    context.waitForEvent('page'),
    row.getByRole('button', { name: 'Open Notebook in a new tab' }).click(),
  ]);
  await tab.waitForURL((url) => url.hostname.endsWith('.apps.localhost') && url.pathname === '/');
  say('opened', { origin: new URL(tab.url()).origin });
  return tab;
}

/** A cell is run, with the caller's name over it. */
async function runs(tab) {
  await tab.getByText(`You are ${args.caller}, as the platform has signed.`).waitFor();
  await tab.getByRole('textbox', { name: 'Cell 1' }).fill('rows = 6\nrows * 7');
  await tab.getByRole('button', { name: 'Run' }).click();
  await tab.locator('[data-cell="1"] output', { hasText: /^42$/ }).waitFor();
  if (args.shots !== undefined) await tab.screenshot({ path: `${args.shots}/notebook.png` });
  say('ran');
}

/** The tab cannot reach the console: not its window, not its cookie, not its API. */
async function apart(tab) {
  const { origin, hostname } = new URL(tab.url());
  insist(origin !== base, 'the notebook has the origin of the console');
  insist(await tab.evaluate(() => window.opener === null), 'the notebook can reach the window of the console');
  const names = (await context.cookies(origin)).map((cookie) => `${cookie.domain} ${cookie.name}`);
  insist(names.length === 1 && names[0].startsWith(hostname), `the notebook's cookies are ${names.join(', ')}`);
  insist((await tab.evaluate(() => document.cookie)) === '', 'the notebook can read its cookie');
  say('apart');
}

try {
  await steps.login(session, { ...args, base });
  const tab = await opened();
  await runs(tab);
  await apart(tab);
  insist(faults.length === 0, `the page complained: ${[...new Set(faults)].join('; ')}`);
  say('done');
} catch (error) {
  say('failed', { message: error.message, pages: context.pages().map((each) => each.url()), faults });
  process.exitCode = 1;
} finally {
  await session.browser.close();
  process.stdin.destroy();
}
