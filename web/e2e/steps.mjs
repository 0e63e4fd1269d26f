// The steps of the walk, each as a person would do it.
import { insist, say } from './harness.mjs';

/** Opens the login link; the address must not contain the code afterwards. */
export async function login({ page }, { base, 'login-code': code }) {
  await page.goto(`${base}/login#code=${encodeURIComponent(code)}`);
  await page.waitForURL('**/workloads');
  insist(!page.url().includes('code='), 'the login code is still in the address');
  await page.getByRole('heading', { name: 'Workloads', level: 1 }).waitFor();
  const script = await page.evaluate(() => document.cookie);
  insist(!script.includes('gpuaas_session'), 'the session cookie can be read by scripts');
}

/** Goes to a page by the navigation. */
export async function go(page, name) {
  await page.getByRole('navigation', { name: 'Main' }).getByRole('link', { name, exact: true }).click();
  await page.getByRole('heading', { name, level: 1, exact: true }).waitFor();
}

/** Finds the app in the catalog and opens its page. */
export async function openApp(page, slug) {
  await page.getByRole('searchbox', { name: 'Search apps' }).fill(slug);
  const card = page.locator(`[data-app="${slug}"]`);
  await card.waitFor();
  await card.getByRole('heading').getByRole('link').click();
  await page.waitForURL(`**/catalog/${slug}`);
  await page.getByRole('heading', { name: 'Versions' }).waitFor();
}

/** Fills the launch form, requesting capacity where none fits, and sends it; returns the workload's id. Where it is priced the form says what it costs. */
export async function launch(page, { slug, name, shoot, priced }) {
  await page.locator('.page-actions').getByRole('link', { name: 'Launch' }).click();
  await page.waitForURL(`**/launch/${slug}**`);
  await page.getByRole('textbox', { name: 'Name', exact: true }).fill('No Capitals');
  await page.locator('form').getByRole('button', { name: 'Launch' }).click();
  await page.getByText('Only lower-case letters, digits and hyphens.').waitFor();
  await page.getByRole('textbox', { name: 'Name', exact: true }).fill(name);
  await chooseAllocation(page);
  if (priced) await page.locator('form [data-cost]', { hasText: costsSomething }).waitFor();
  await shoot('launch-form');
  await page.locator('form').getByRole('button', { name: 'Launch' }).click();
  await page.waitForURL('**/workloads/*');
  return page.url().split('/').at(-1);
}

/** What a cost says that knows a price. */
const costsSomething = /\d [A-Z]{3} an hour/;

async function chooseAllocation(page) {
  const fitting = page.locator('[data-compatible="true"]');
  await page.getByRole('group', { name: 'Allocations' }).waitFor();
  if ((await fitting.count()) === 0) {
    await page.getByRole('button', { name: 'Request capacity' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Request', exact: true }).click();
    await fitting.first().waitFor();
  }
  const box = fitting.first().getByRole('checkbox');
  if (!(await box.isChecked())) await box.check();
}

/** Waits until the open workload has the status; ends early when it failed instead. */
export async function untilStatus(page, status, wait) {
  await page
    .locator(`[data-workload][data-status="${status}"], [data-workload][data-status="FAILED"]`)
    .waitFor({ timeout: wait });
  const now = await page.locator('[data-workload]').getAttribute('data-status');
  insist(now === status, `the workload became ${now}, not ${status}: ${await page.locator('.notice').allInnerTexts()}`);
}

/** Checks that the timeline on the page has every number from 1 once, and waits for a type of event. */
export async function checkTimeline(page, type) {
  await page.locator(`.tl li[data-type$=".${type}"]`).first().waitFor();
  const seqs = await page.locator('.tl li').evaluateAll((rows) => rows.map((row) => Number(row.dataset.seq)));
  const missing = await page.locator('.tl').getAttribute('data-missing');
  insist(missing === '0', `the timeline misses ${missing} events`);
  seqs.forEach((seq, at) => insist(seq === seqs[0] + at, `after event ${seqs[at - 1]} comes ${seq}`));
  insist(seqs[0] === 1 || seqs.length >= 200, `the timeline begins with ${seqs[0]}`);
  say('timeline', { events: seqs.length, last: seqs.at(-1) });
  return seqs.at(-1);
}

/** Runs an action of the open workload and answers with the result's text. */
export async function action(page, { action: name, fields = {}, optional = {} }) {
  const item = page.locator(`[data-action="${name}"]`);
  await item.locator('.action-toggle').click();
  for (const [path, value] of Object.entries(fields)) await item.locator(`[data-path="${path}"]`).fill(value);
  for (const [path, value] of Object.entries(optional)) {
    const field = item.locator(`[data-path="${path}"]`);
    if ((await field.count()) > 0) await field.fill(value);
  }
  await item.getByRole('button', { name: /^(Run|Read)$/ }).click();
  const result = item.locator('[data-result]');
  const refused = item.locator('.notice[role="alert"]');
  await result.or(refused).first().waitFor();
  insist((await refused.count()) === 0, `the action ${name} was refused: ${(await refused.allInnerTexts()).join(' ')}`);
  return result.innerText();
}

/** Decommissions the open workload with a reason, once the plan says that it can be. */
export async function decommission(page, { shoot, priced }) {
  await page.getByRole('button', { name: 'Decommission' }).click();
  const said = await throughPlan(page, {
    act: 'Decommission',
    reason: 'the walk through the console is over',
    shoot,
    shot: 'decommission-dialog',
  });
  insist(!priced || costsSomething.test(said), `the plan shows no price: ${said}`);
}

/** Shows the plan of the open dialog and confirms it; returns the plan's text. */
export async function throughPlan(page, { act, reason, shoot, shot }) {
  const dialog = page.getByRole('dialog');
  await dialog.getByRole('button', { name: 'See the plan' }).click();
  const plan = dialog.locator('[data-plan]');
  const refused = dialog.locator('.notice[role="alert"]');
  await plan.or(refused).first().waitFor();
  insist((await refused.count()) === 0, `there is no plan: ${(await refused.allInnerTexts()).join(' ')}`);
  const said = await plan.innerText();
  insist((await plan.getAttribute('data-allowed')) === 'true', `the plan says no: ${said}`);
  await dialog.getByRole('textbox', { name: 'Reason' }).fill(reason);
  const sure = dialog.getByRole('checkbox');
  if ((await sure.count()) > 0) await sure.check();
  await shoot(shot);
  await dialog.getByRole('button', { name: act, exact: true }).click();
  await dialog.waitFor({ state: 'hidden' });
  return said;
}

/** Logs out; a page that needs a session must then lead to the login. */
export async function logout(page, base) {
  await page.getByRole('button', { name: /^Account of/ }).click();
  await page.getByRole('menuitem', { name: 'Log out' }).click();
  await page.waitForURL('**/login**');
  await page.getByText('You are logged out.').waitFor();
  await page.goto(`${base}/workloads`);
  await page.waitForURL('**/login**');
}
