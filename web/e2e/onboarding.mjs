// The part of the walk through what apps lack: a gap that a publisher raises, and that an operator decides and closes by
// a release; and the onboarding of an app.
import { insist, say } from './harness.mjs';
import { go } from './steps.mjs';

const title = `The walk misses something ${Date.now().toString(36)}`;
const evidence = 'https://example.org/walk';
const dialog = (page) => page.getByRole('dialog');
const card = (page) => page.getByRole('region', { name: 'Gap', exact: true });
const pick = (page) => page.getByRole('table', { name: 'Gaps' }).getByRole('button', { name: title }).click();

/** Raises a gap of an app, as its publisher does, who does not decide it. */
export async function raiseGap({ page }, base, app) {
  await page.goto(`${base}/gaps?app=${app}`);
  await page.getByRole('heading', { name: `Gaps of ${app}`, level: 1 }).waitFor();
  await page.getByRole('button', { name: 'Raise a gap' }).click();
  await dialog(page).getByRole('textbox', { name: 'Title' }).fill(title);
  await dialog(page).getByRole('textbox', { name: 'Description' }).fill('It was needed for the walk.');
  await dialog(page).getByRole('textbox', { name: 'Evidence' }).fill(evidence);
  insist(
    (await dialog(page).getByRole('textbox', { name: 'Reason' }).count()) === 0,
    'a reason is asked for and not kept',
  );
  await dialog(page).getByRole('button', { name: 'Raise', exact: true }).click();
  await dialog(page).waitFor({ state: 'hidden' });
  await pick(page);
  await card(page).getByText(evidence).waitFor();
  insist((await card(page).getByRole('button').count()) === 0, 'a publisher may decide a gap');
  say('gap-raised');
}

/** Finds the gap among those of all apps, accepts it, and closes it by a release, as the operator does. */
export async function closeGap({ page, shoot }) {
  await go(page, 'Gaps');
  await pick(page);
  await card(page).getByRole('button', { name: 'Decide' }).click();
  await dialog(page).getByRole('textbox', { name: 'Reason' }).fill('the walk needs it');
  await dialog(page).getByRole('button', { name: 'Decide', exact: true }).click();
  await dialog(page).waitFor({ state: 'hidden' });
  await card(page).getByRole('button', { name: 'Close by a release' }).click();
  await dialog(page).getByRole('textbox', { name: 'Release' }).fill('walk 1.0');
  await dialog(page).getByRole('textbox', { name: 'Reason' }).fill('the walk has it');
  await dialog(page).getByRole('button', { name: 'Close it', exact: true }).click();
  await dialog(page).waitFor({ state: 'hidden' });
  await card(page).getByText('walk 1.0: the walk has it').waitFor();
  await shoot('gap');
  say('gap-closed');
}

const conditions = [
  'CONTRACTS',
  'SERVICE_ACCOUNT',
  'TENANT_BOUNDARY',
  'LIFECYCLE_EVENTS',
  'ARTIFACT_SOURCES',
  'LIFECYCLE_WALKED',
  'SUPPORT_RUNBOOK',
];

/** Opens the onboarding of an app from its page; each condition has its verdict, and what it rests on. */
export async function onboarding({ page, shoot }, base, app) {
  await page.goto(`${base}/catalog/${app}`);
  await page.getByRole('link', { name: 'Onboarding', exact: true }).click();
  await page.getByRole('heading', { name: `Onboarding of ${app}`, level: 1 }).waitFor();
  for (const condition of conditions) {
    const said = await page.getByRole('region', { name: condition, exact: true }).innerText();
    insist(/Passed|Failed|Not known/.test(said), `${condition} has no verdict: ${said}`);
  }
  await page.getByRole('table', { name: 'Evidence for ARTIFACT_SOURCES' }).waitFor();
  await shoot('onboarding');
  say('onboarding');
}
