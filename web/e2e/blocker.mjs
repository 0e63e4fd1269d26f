// Clears a blocker as a person does, in a real Chromium: a drain that waits for a job ends when the job is canceled at
// the blocker, in two clicks and without its number being typed:
//
//   node web/e2e/blocker.mjs --base http://127.0.0.1:8080 --login-code CODE --instance ins_… --work "job 4"
import { insist, open, readArgs, say } from './harness.mjs';
import * as steps from './steps.mjs';

const args = readArgs();
const base = args.base.replace(/\/$/, '');
const session = await open(args);
const { page, shoot, faults } = session;

/** The two clicks, at a blocker that names the member as people do. */
async function cleared() {
  await page.goto(`${base}/workloads/${args.instance}`);
  const blocker = page.locator('[data-blocker="WORK_RUNNING"]');
  await blocker.waitFor();
  const text = await blocker.innerText();
  insist(!/mem_[0-9a-z]{26}/.test(text), `the blocker names a member by its id: ${text}`);
  insist(/worker \d/.test(text), `the blocker names no member: ${text}`);
  await blocker.getByRole('button', { name: 'Cancel the drain' }).waitFor();
  await shoot('blocker');
  await blocker.getByRole('button', { name: `Cancel ${args.work}` }).click();
  const dialog = page.getByRole('dialog');
  await shoot('cancel-work');
  await dialog.getByRole('button', { name: `Cancel ${args.work}`, exact: true }).click();
  await dialog.waitFor({ state: 'hidden' });
  await blocker.waitFor({ state: 'detached', timeout: args.wait });
  say('cleared');
}

try {
  await steps.login(session, { ...args, base });
  await cleared();
  insist(faults.length === 0, `the page complained: ${[...new Set(faults)].join('; ')}`);
  say('done');
} catch (error) {
  say('failed', { message: error.message, url: page.url(), faults });
  process.exitCode = 1;
} finally {
  await session.browser.close();
  process.stdin.destroy();
}
