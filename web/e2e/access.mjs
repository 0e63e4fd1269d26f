// The part of the walk through access: roles, a service account with a key, the explanation of a permission, a policy
// that is previewed, saved and removed, a webhook, a search of the audit log, the viewer's sessions.
import { insist, say } from './harness.mjs';
import { go } from './steps.mjs';

/** Opens a tab of the page. */
const tab = (page, name) => page.getByRole('tab', { name }).click();

/** Waits until the content of a card is loaded. */
const shown = (page) => page.locator('table, .empty').first().waitFor();

/** The dialog that is open. */
const dialog = (page) => page.getByRole('dialog');

/** The whole part. */
export async function access(session) {
  for (const part of [people, automation, explained, policy, webhooks, sharing, search, sessions]) await part(session);
}

async function people({ page, shoot }) {
  await go(page, 'Access');
  await shown(page);
  await shoot('access-roles');
  await tab(page, 'Entitlements');
  await shown(page);
  await shoot('access-entitlements');
}

/** Creates a service account with limits and a key, rotates the key, and deletes the account. */
async function automation({ page, shoot }) {
  const name = `walk-${Date.now().toString(36)}`;
  await tab(page, 'Service accounts');
  await shown(page);
  await page.getByRole('button', { name: 'Create one' }).click();
  await dialog(page).getByRole('textbox', { name: 'Name' }).fill(name);
  const keys = dialog(page)
    .getByRole('textbox', { name: 'What it may do' })
    .or(dialog(page).getByRole('combobox', { name: 'What it may do' }))
    .first();
  await keys.fill('apps.instance.read');
  await page.getByRole('option', { name: 'apps.instance.read', exact: true }).click();
  await keys.press('Escape');
  await dialog(page).getByRole('textbox', { name: 'Operations per hour' }).fill('5');
  await shoot('service-account');
  await dialog(page).getByRole('button', { name: 'Create' }).click();
  const row = page.getByRole('row').filter({ hasText: name });
  await row.getByText('5 operations per hour').waitFor();
  await row.getByRole('button', { name: 'Keys' }).click();
  for (const act of ['Create a key', 'Rotate']) {
    await page.getByRole('button', { name: act, exact: true }).click();
    const secret = await page.locator('[data-secret]').innerText();
    insist(secret.includes('gpu_sa_'), `${act} shows no key: ${secret}`);
    await page.getByRole('button', { name: 'I have copied it' }).click();
    await page.locator('[data-secret]').waitFor({ state: 'hidden' });
  }
  await page.getByText('Rotated, expires').waitFor();
  await shoot('service-account-keys');
  await page.keyboard.press('Escape');
  await row.getByRole('button', { name: `More for ${name}` }).click();
  await page.getByRole('menuitem', { name: 'Delete' }).click();
  await dialog(page).getByRole('button', { name: 'Delete', exact: true }).click();
  await row.waitFor({ state: 'detached' });
  say('service-account', { name });
}

/** Checks a permission that the viewer has. */
async function explained({ page, shoot }) {
  await tab(page, 'Check a permission');
  await page.getByRole('button', { name: 'Check', exact: true }).click();
  await page.locator('[data-why="apps.instance.create"]').waitFor();
  await shoot('permission-explained');
  say('explained', { allowed: await page.locator('[data-why]').first().getAttribute('data-allowed') });
}

/** Denies a region that does not exist in the project's policy, and removes the rule again. */
async function policy({ page, shoot }) {
  await go(page, 'Policy');
  await page.getByRole('textbox', { name: 'Rules' }).waitFor();
  await write(page, '{"regions": {"deny": ["nowhere-1"]}, "maxMembersPerInstance": 900}', shoot, 'policy-preview');
  await page.getByRole('table', { name: 'Rules' }).getByText('nowhere-1').first().waitFor();
  await shoot('policy');
  await write(page, '{}');
  await page.getByRole('table', { name: 'Rules' }).getByText('nowhere-1').first().waitFor({ state: 'detached' });
  say('policy');
}

async function write(page, document, shoot, shot) {
  await page.getByRole('textbox', { name: 'Rules' }).fill(document);
  await page.getByRole('button', { name: 'See what it would deny' }).click();
  await page.locator('[data-denied]').waitFor();
  if (shoot !== undefined) await shoot(shot);
  await page.getByRole('button', { name: 'Save', exact: true }).click();
  await dialog(page).getByRole('textbox', { name: 'Reason' }).fill('the walk wants to see what policy does');
  await dialog(page).getByRole('button', { name: 'Save', exact: true }).click();
  await dialog(page).waitFor({ state: 'hidden' });
}

async function webhooks({ page, shoot }) {
  await go(page, 'Webhooks');
  await shown(page);
  await page.getByRole('button', { name: 'Create a webhook' }).click();
  await dialog(page).getByRole('textbox', { name: 'Where events are sent' }).fill('https://hooks.example.org/walk');
  await dialog(page).getByRole('button', { name: 'Create' }).click();
  const secret = await page.locator('[data-secret]').innerText();
  insist(secret.includes('whsec_'), `a new webhook shows no secret: ${secret}`);
  await page.getByRole('button', { name: 'I have copied it' }).click();
  const row = page.getByRole('row').filter({ hasText: 'hooks.example.org/walk' });
  await row.waitFor();
  await shoot('webhooks');
  await row.getByRole('button', { name: 'More for https://hooks.example.org/walk' }).click();
  await page.getByRole('menuitem', { name: 'Delete' }).click();
  await dialog(page).getByRole('button', { name: 'Delete', exact: true }).click();
  await row.waitFor({ state: 'detached' });
  say('webhook');
}

async function sharing({ page, shoot }) {
  await go(page, 'Sharing');
  await shown(page);
  await shoot('sharing');
}

/** Finds in the audit log what the walk itself did. */
async function search({ page, shoot }) {
  await go(page, 'Audit');
  await page.getByRole('textbox', { name: 'Permission key' }).fill('policy.manage');
  await page.getByRole('button', { name: 'Search' }).click();
  await page.getByText('the walk wants to see what policy does').first().waitFor();
  await shoot('audit-search');
  say('audit');
}

async function sessions({ page, shoot }) {
  await page.getByRole('button', { name: /^Account of/ }).click();
  await page.getByRole('menuitem', { name: 'Your sessions' }).click();
  await dialog(page).getByText('this session').waitFor();
  await page.getByRole('menu').waitFor({ state: 'hidden' });
  await shoot('sessions');
  await page.keyboard.press('Escape');
  await dialog(page).waitFor({ state: 'hidden' });
}
