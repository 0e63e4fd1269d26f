// Finds the cause of an error from the error itself, in a real Chromium, and carries out the action that the report
// names:
//
//   node web/e2e/incident.mjs --base http://127.0.0.1:8080 --login-code CODE --instance ins_…
//
// A member of the instance is dead. At the events refused, found and cured the walk waits for a line on stdin.
import { ask, insist, open, readArgs, say } from './harness.mjs';
import * as steps from './steps.mjs';

const args = readArgs();
const base = args.base.replace(/\/$/, '');
const session = await open(args);
const { page, shoot, faults } = session;
const greet = { action: 'hello.say', fields: { name: 'incident' } };

/** Runs the action that fails, and follows its error to the report. */
async function fails() {
  await page.goto(`${base}/workloads/${args.instance}`);
  const item = page.locator(`[data-action="${greet.action}"]`);
  await item.locator('.action-toggle').click();
  await item.locator('[data-path="name"]').fill(greet.fields.name);
  await item.getByRole('button', { name: 'Run' }).click();
  const refused = item.locator('.notice[role="alert"]');
  await refused.locator('[data-code="ADAPTER_REJECTED"]').waitFor();
  await shoot('error');
  const link = refused.getByRole('link', { name: 'What happened' });
  const correlation = decodeURIComponent((await link.getAttribute('href')).split('/').at(-1));
  await ask('refused', { correlation });
  await link.click();
}

/** Reads the report, and does what it names. */
async function cures() {
  await page.locator('[data-triage="FAILED"]').waitFor();
  await page.locator('.notice', { hasText: 'MEMBER_FAILED' }).waitFor();
  const evidence = await page.getByRole('table', { name: 'Evidence' }).innerText();
  for (const kind of ['Task', 'Audit', 'Logs'])
    insist(evidence.includes(kind), `no evidence is a ${kind}: ${evidence}`);
  await shoot('report');
  await ask('found');
  await page.getByRole('button', { name: 'Recover the member…' }).click();
  const dialog = page.getByRole('dialog');
  await shoot('action');
  await dialog.getByRole('button', { name: 'Recover the member', exact: true }).click();
  await dialog.waitFor({ state: 'hidden' });
  await ask('cured');
}

/** Runs the action again. */
async function works() {
  await page.goto(`${base}/workloads/${args.instance}`);
  const said = await steps.action(page, greet);
  insist(said.includes(greet.fields.name), `nobody was greeted: ${said}`);
}

try {
  await steps.login(session, { ...args, base });
  await fails();
  await cures();
  await works();
  insist(faults.length === 0, `the page complained: ${[...new Set(faults)].join('; ')}`);
  say('done');
} catch (error) {
  say('failed', { message: error.message, url: page.url(), faults });
  process.exitCode = 1;
} finally {
  await session.browser.close();
  process.stdin.destroy();
}
