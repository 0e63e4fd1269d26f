// A walk through the console in a real browser: log in, launch an app from the catalog, watch it start, run its
// actions, add a member, drain and remove it, decommission the workload, log out; with screenshots. Run against a
// running server:
//
//   node web/e2e/main.mjs --base http://127.0.0.1:8080 --login-code CODE --app slurm --shots DIR
//
// Progress is printed as JSON lines, the last one {"event":"done"}; the exit code is 0 only then. With --restart
// the walk prints {"event":"restart"} while the launch is in progress, and continues after a line on stdin: the caller
// restarts the server in between, and the timeline must then be complete.
import { ask, insist, open, readArgs, say } from './harness.mjs';
import { scenarios } from './scenarios.mjs';
import { access } from './access.mjs';
import { changes } from './changes.mjs';
import { asOperator, costs } from './costs.mjs';
import { closeGap, onboarding, raiseGap } from './onboarding.mjs';
import { publishing } from './publishing.mjs';
import * as steps from './steps.mjs';

const args = readArgs();
const base = args.base.replace(/\/$/, '');
const scenario = scenarios[args.app] ?? {};
const session = await open(args);
const { page, shoot, faults } = session;
/** Whether prices are set, so that what costs something says so. */
const priced = scenario.costs === true;
const name = `e2e-${Date.now().toString(36)}`;

/** The login, and the pages before anything is launched. */
async function arrive() {
  await page.goto(`${base}/login`);
  await page.getByRole('heading', { name: 'Log in' }).waitFor();
  await shoot('login');
  await steps.login(session, { ...args, base });
  say('logged-in');
  await shoot('workloads');
  await steps.go(page, 'Catalog');
  await page.locator(`[data-app="${args.app}"]`).waitFor();
  await shoot('catalog');
  await steps.openApp(page, args.app);
  await shoot('app');
}

/** The launch up to a running cluster, with a restart of the server when --restart is given. */
async function comeUp() {
  const id = await steps.launch(page, { slug: args.app, name, shoot, priced });
  say('launched', { instance: id, name });
  await steps.checkTimeline(page, 'requested');
  if (args.restart) await overRestart(); // before the photographs, which take longer than a small cluster needs
  await shoot('starting');
  await steps.untilStatus(page, 'RUNNING', args.wait);
  await steps.checkTimeline(page, 'running');
  say('running', { instance: id });
  await shoot('running');
}

/** Has the server restarted; takes a screenshot of the banner, unless the restart is faster. */
async function overRestart() {
  const banner = page.locator('.banner');
  let answered = false;
  const answer = ask('restart').finally(() => {
    answered = true;
  });
  while (!answered && !(await banner.isVisible())) await page.waitForTimeout(100);
  if (!answered) await shoot('reconnecting');
  await answer;
  await banner.waitFor({ state: 'detached', timeout: args.wait });
}

/** The actions of the cluster. */
async function act() {
  if (scenario.submit === undefined) return;
  const submitted = await steps.action(page, scenario.submit);
  say('submitted', { result: submitted });
  await shoot('action-submit');
  const listed = await steps.action(page, scenario.list);
  insist(listed.includes(scenario.list.shows), `the list does not show ${scenario.list.shows}: ${listed}`);
  say('listed', { result: listed });
  await shoot('action-list');
}

/** The usage of the cluster, where there is some at once: what the tenant bears apart from what the platform does, and what was not taken. */
async function used() {
  if (scenario.usage !== true) return;
  await page.reload();
  await page.locator('[data-meter="jobs"]').waitFor();
  const table = await page.getByRole('table', { name: 'Usage', exact: true }).innerText();
  for (const text of ['1\u202f234\u202f567', 'the platform', 'Failed add', 'shown and not priced', '86\u202f400.5'])
    insist(table.includes(text), `the usage does not show ${text}: ${table}`);
  await page.getByText('the adapter did not answer within 10 s').waitFor();
  insist(
    (await page.locator('[data-refused]').getAttribute('data-refused')) === 'USAGE_ID_REUSED',
    'the quarantine is not shown',
  );
  await shoot('usage');
}

/** Adds and removes a member, where the scenario has a component that can grow. */
async function change() {
  if (scenario.grow === undefined) return;
  await changes(session, { component: scenario.grow, wait: args.wait });
}

/** The decommission of the cluster, with proof. */
async function goDown() {
  await steps.decommission(page, { shoot, priced });
  say('decommissioning');
  await shoot('stopping');
  await steps.untilStatus(page, 'STOPPED', args.wait);
  await steps.checkTimeline(page, 'deleted');
  say('stopped');
  await shoot('stopped');
}

/** The pages of costs and budgets, where the tenant is billed. */
async function spent() {
  if (!priced) return;
  const workload = page.url();
  await costs(session);
  await page.goto(workload);
}

/** The pages of access and publishing; one of the walks is enough. */
async function govern() {
  if (scenario.govern !== true) return;
  const workload = page.url();
  await access(session);
  await publishing(session, args.app);
  if (args.publishes !== undefined) await raiseGap(session, base, args.publishes);
  await page.goto(workload);
}

/** The operator's pages of what apps lack. */
async function operate() {
  if (args.publishes !== undefined) await closeGap(session);
  await onboarding(session, base, args.app);
}

/** The report of an operation, and what would be in its support bundle. */
async function triage(operation) {
  await page.goto(`${base}/triage/${operation}`);
  await page.getByRole('heading', { name: /^Triage: / }).waitFor();
  await page.getByRole('table', { name: 'Evidence' }).waitFor();
  await shoot('triage');
  await page.getByRole('button', { name: 'See what is in it' }).click();
  await page.getByRole('dialog').getByRole('table', { name: 'Not in it' }).waitFor();
  await shoot('support-bundle');
  await page.getByRole('dialog').getByRole('button', { name: 'Close' }).last().click();
}

/** The other pages, and the logout. */
async function tour() {
  await page
    .getByRole('region', { name: 'Operations' })
    .or(page.locator('section', { hasText: 'Operations' }))
    .first()
    .getByRole('link')
    .first()
    .click();
  await page.getByRole('heading', { name: 'Steps' }).waitFor();
  await shoot('operation');
  await triage(page.url().split('/').pop());
  for (const each of ['Workloads', 'Allocations', 'Operations', 'Orphans', 'Audit', 'Nodes']) {
    if ((await page.getByRole('navigation', { name: 'Main' }).getByRole('link', { name: each }).count()) === 0)
      continue;
    await steps.go(page, each);
    await page.locator('table, .empty').first().waitFor();
    if (priced && each === 'Allocations') await page.locator('[data-hourly]').first().waitFor();
    await shoot(each.toLowerCase());
  }
  await page.goto(`${base}/workloads/ins_00000000000000000000000000`);
  await page.getByRole('heading', { name: 'Not found' }).waitFor();
  await shoot('not-found');
  await page.goto(`${base}/no/such/page`);
  await page.getByRole('heading', { name: 'This page does not exist' }).waitFor();
  await page.goto(`${base}/workloads`);
  await steps.logout(page, base);
  say('logged-out');
  if (args['operator-code'] !== undefined) await asOperator(session, base, args['operator-code'], operate);
}

try {
  for (const part of [arrive, comeUp, act, used, spent, change, goDown, govern, tour]) await part();
  insist(faults.length === 0, `the page complained: ${[...new Set(faults)].join('; ')}`);
  say('done');
} catch (error) {
  say('failed', { message: error.message, url: page.url(), faults });
  if (args.shots !== undefined)
    await page.screenshot({ path: `${args.shots}/failed.png`, fullPage: true }).catch(() => undefined);
  process.exitCode = 1;
} finally {
  await session.browser.close();
  process.stdin.destroy();
}
