// The part of the walk through publishing: releases on their board, artifacts with their parts, sources and their keys.
import { insist, say } from './harness.mjs';
import { go } from './steps.mjs';

const shown = (page) => page.locator('table, .empty').first().waitFor();
const dialog = (page) => page.getByRole('dialog');

/** A public key for the walk; no one has its private half. */
const publicKey = `-----BEGIN PUBLIC KEY-----
MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEeR0+5dYJ9XbKgFWKqHAfuiAhIPBO
FC4NOyz7I6iDXnE2DE+R9FnvSz2j1rc/swxHWr3ncm4klGKtjPZsXsLYHQ==
-----END PUBLIC KEY-----
`;

/** The whole part. */
export async function publishing(session, app) {
  await releases(session, app);
  await artifacts(session);
  await sources(session);
}

async function releases({ page, shoot }, app) {
  await go(page, 'Releases');
  const card = page.locator('[data-stage="ACTIVE"] [data-release]').filter({ hasText: app }).first();
  await card.waitFor();
  await page.getByRole('region', { name: 'Runners' }).locator('table, .empty').first().waitFor();
  await shoot('releases');
  await card.getByRole('link').first().click();
  await page.getByRole('heading', { name: 'Evidence' }).waitFor();
  await page.locator('[data-step="ACTIVE"]').first().waitFor();
  await shoot('release');
  say('releases');
}

async function artifacts({ page, shoot }) {
  await go(page, 'Artifacts');
  await shown(page);
  await shoot('artifacts');
  await page.getByRole('table', { name: 'Artifacts' }).getByRole('button').first().click();
  await page.getByRole('table', { name: 'Parts' }).waitFor();
  insist((await page.getByRole('table', { name: 'Parts' }).getByRole('row').count()) > 1, 'the artifact has no parts');
  await shoot('artifact');
  await page.keyboard.press('Escape');
  await dialog(page).waitFor({ state: 'hidden' });
  say('artifacts');
}

/** Adds a source of the tenant's own, trusts a key there, revokes it, and switches the source off. */
async function sources({ page, shoot }) {
  const name = `walk-${Date.now().toString(36)}`;
  await go(page, 'Sources');
  await shown(page);
  await page.getByRole('button', { name: 'Add a source' }).click();
  await dialog(page).getByRole('textbox', { name: 'Name' }).fill(name);
  await dialog(page).getByRole('textbox', { name: 'What it covers' }).fill(`registry.example.org/${name}`);
  await dialog(page).getByRole('button', { name: 'Add', exact: true }).click();
  const row = page.getByRole('row').filter({ hasText: `registry.example.org/${name}` });
  await row.waitFor();
  const more = async (item) => {
    await row.getByRole('button', { name: `More for ${name}` }).click();
    await page.getByRole('menuitem', { name: item }).click();
  };
  await more('Trust a key');
  await dialog(page).getByRole('textbox', { name: 'Name' }).fill('walk');
  await dialog(page).getByRole('textbox', { name: 'Public key' }).fill(publicKey);
  await dialog(page).getByRole('button', { name: 'Trust', exact: true }).click();
  await row.getByRole('button', { name: 'Revoke walk' }).waitFor();
  await shoot('sources');
  await row.getByRole('button', { name: 'Revoke walk' }).click();
  await dialog(page).getByRole('textbox', { name: 'Reason' }).fill('the walk is over');
  await dialog(page).getByRole('button', { name: 'Revoke', exact: true }).click();
  await row.getByText('revoked').waitFor();
  await more('Switch off');
  await dialog(page).getByRole('button', { name: 'Switch off' }).click();
  await row.getByText('Switched off').waitFor();
  say('sources', { name });
}
