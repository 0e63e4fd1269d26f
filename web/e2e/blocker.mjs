// Works with a running cluster as a person does, in a real Chromium: reads a job's output while it runs, cancels it at
// the blocker of a drain, in two clicks and without its number being typed, and types a command in a terminal:
//
//   node web/e2e/blocker.mjs --base http://127.0.0.1:8080 --login-code CODE --instance ins_… --work "job 4" --member mem_…
//
// The job must print "line 1", "line 2" and so on, one a second.
import { insist, open, readArgs, say } from './harness.mjs';
import * as steps from './steps.mjs';

const args = readArgs();
const base = args.base.replace(/\/$/, '');
const session = await open(args);
const { page, shoot, faults } = session;

/** The tab of the app's work: the output of a row that runs grows while it is read. */
async function watched() {
  await page.goto(`${base}/workloads/${args.instance}`);
  await page.getByRole('tab', { name: 'Jobs' }).click();
  const row = page.locator(`[data-work-id="${args.work.split(' ')[1]}"][data-state="RUNNING"]`);
  await row.getByRole('button', { name: `Output of ${args.work}` }).click();
  const output = page.getByRole('log', { name: `Output of ${args.work}` });
  await output.getByText('line 1').waitFor();
  const lines = (await output.innerText()).split('\n').filter((line) => line.startsWith('line')).length;
  await output.getByText(`line ${lines + 1}`).waitFor();
  insist((await row.count()) === 1, 'the job did not run while its output was read');
  await shoot('work');
  say('watched', { lines });
}

/** The tab of the terminal: a command in the member, typed and answered. */
async function typed() {
  await page.goto(`${base}/workloads/${args.instance}?tab=terminal&of=${args.member}`);
  await page.getByRole('textbox', { name: 'Reason' }).fill('end-to-end test');
  await page.getByRole('button', { name: 'Open a terminal' }).click();
  await page.locator('[data-terminal="open"]').waitFor();
  await page.locator('.xterm-helper-textarea').focus();
  await page.keyboard.type('echo answer $((6 * 7))\n');
  await page.locator('.xterm-rows', { hasText: 'answer 42' }).waitFor();
  await shoot('terminal');
  await page.keyboard.type('exit 3\n');
  await page.locator('[data-exit="3"]').waitFor();
  say('typed');
}

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
  await watched();
  await cleared();
  await typed();
  insist(faults.length === 0, `the page complained: ${[...new Set(faults)].join('; ')}`);
  say('done');
} catch (error) {
  say('failed', { message: error.message, url: page.url(), faults });
  process.exitCode = 1;
} finally {
  await session.browser.close();
  process.stdin.destroy();
}
