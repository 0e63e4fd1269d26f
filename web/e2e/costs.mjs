// The part of the walk through costs: what the project costs, a budget that is set, changed and removed, and what the
// platform bears, for viewers that may see that.
import { insist, say } from './harness.mjs';
import { go, login, logout } from './steps.mjs';

const dialog = (page) => page.getByRole('dialog');

/** The whole part. */
export async function costs(session) {
  await project(session);
  await budget(session);
  await platform(session);
}

async function project({ page, shoot }) {
  await page
    .getByText(/\d [A-Z]{3} an hour/)
    .first()
    .waitFor(); // among the details of the workload
  await go(page, 'Costs');
  await page.locator('[data-costs]').waitFor();
  const hourly = await page.locator('[data-hourly]').getAttribute('data-hourly');
  insist(Number(hourly) > 0, `an hour of what is rented costs ${hourly}`);
  for (const title of ['By app', 'By person', 'By workload', 'By what is metered'])
    await page.getByRole('heading', { name: title, exact: true }).waitFor();
  await shoot('costs');
  say('costs', { hourly });
}

/** Sets a budget for the project, after an amount that is none; changes it; removes it. */
async function budget({ page, shoot }) {
  const shown = (amount) => page.locator(`[data-budget="${amount}"]`);
  const row = (amount) => page.getByRole('row').filter({ has: shown(amount) });
  await page.getByRole('button', { name: 'Set a budget' }).click();
  const field = dialog(page).getByRole('textbox', { name: /^Amount in/ });
  await field.fill('1,000');
  await dialog(page).getByRole('textbox', { name: 'Reason' }).fill('the walk wants a bound');
  await dialog(page).getByRole('button', { name: 'Set', exact: true }).click();
  await dialog(page).getByText('Enter an amount above 0').waitFor();
  await shoot('budget-dialog');
  await field.fill('98765.25');
  await dialog(page).getByRole('button', { name: 'Set', exact: true }).click();
  await shown('98765.25').waitFor();
  await dialog(page).waitFor({ state: 'hidden' });
  await row('98765.25')
    .getByRole('button', { name: /^Change/ })
    .click();
  await dialog(page)
    .getByRole('textbox', { name: /^Amount in/ })
    .fill('98766');
  await dialog(page).getByRole('textbox', { name: 'Reason' }).fill('a little more');
  await dialog(page).getByRole('button', { name: 'Save', exact: true }).click();
  await shown('98766').waitFor();
  await dialog(page).waitFor({ state: 'hidden' });
  await row('98766')
    .getByRole('button', { name: /^Remove/ })
    .click();
  await dialog(page).getByRole('textbox', { name: 'Reason' }).fill('the walk is over');
  await dialog(page).getByRole('button', { name: 'Remove', exact: true }).click();
  await shown('98766').waitFor({ state: 'detached' });
  await dialog(page).waitFor({ state: 'hidden' });
  say('budget');
}

const platformLink = (page) =>
  page.getByRole('navigation', { name: 'Main' }).getByRole('link', { name: 'Platform costs' });

/** The operator's page, where the viewer has it. */
async function platform({ page, shoot }) {
  if ((await platformLink(page).count()) === 0) return;
  await go(page, 'Platform costs');
  await page.getByRole('heading', { name: 'Borne by the platform' }).waitFor();
  await shoot('platform-costs');
  say('platform-costs');
}

/** Logs in as an operator by a code of theirs, sees the operator's page, does what more there is, and logs out. */
export async function asOperator(session, base, code, more) {
  await login(session, { base, 'login-code': code });
  await platformLink(session.page).waitFor();
  await platform(session);
  await more();
  await logout(session.page, base);
}
