// Makes, grows and deletes a volume by the console, and brings a file into another one and takes it out again, in a real
// Chromium. A request of the upload is cut on the way:
//
//   node web/e2e/files.mjs --base http://127.0.0.1:8080 --login-code CODE --volume NAME
import { createHash, randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { insist, open, readArgs, say } from './harness.mjs';
import * as steps from './steps.mjs';

const args = readArgs();
const base = args.base.replace(/\/$/, '');
const session = await open(args);
const { page, shoot, faults } = session;
/** More than two of the parts that the console sends at once. */
const content = randomBytes(17 * 2 ** 20);
/** The page reads the file for its digest first, which takes a while where much else runs. */
const patient = { timeout: 120_000 };
const digest = (bytes) => createHash('sha256').update(bytes).digest('hex');

/** A volume is made, refused a second time, grown, and deleted. Each dialog closes when it is done. */
async function live() {
  const dialog = (name) => page.getByRole('dialog', { name });
  const size = (text) => page.getByRole('row').filter({ hasText: 'drafts' }).getByText(text, { exact: true });
  const make = async () => {
    await page.getByRole('button', { name: 'Create a volume' }).first().click();
    const form = dialog('Create a volume');
    await form.getByRole('textbox', { name: 'Name' }).fill('drafts');
    await form.getByRole('combobox', { name: 'Storage class' }).click();
    await page.getByRole('option').first().click();
    await form.getByRole('textbox', { name: 'Size, GiB' }).fill('1');
    await form.getByText(/an hour|No price set/).waitFor();
    await form.getByRole('button', { name: 'Create', exact: true }).click();
    return form;
  };
  await (await make()).waitFor({ state: 'detached' });
  await size('1 GiB').waitFor();
  await shoot('volumes');
  const again = await make();
  await again.getByText('has a volume "drafts" already').first().waitFor();
  await again.getByRole('button', { name: 'Cancel' }).click();
  await page.getByRole('button', { name: 'Grow drafts' }).click();
  await dialog('Grow drafts').getByRole('textbox', { name: 'Size, GiB' }).fill('3');
  await dialog('Grow drafts').getByRole('button', { name: 'Grow', exact: true }).click();
  await dialog('Grow drafts').waitFor({ state: 'detached' });
  await size('3 GiB').waitFor();
  await page.getByRole('button', { name: 'Delete drafts' }).click();
  await dialog('Delete drafts').getByRole('textbox', { name: 'Reason' }).fill('they are done');
  await dialog('Delete drafts').getByRole('button', { name: 'Delete with all files' }).click();
  await dialog('Delete drafts').waitFor({ state: 'detached' });
  await page.getByRole('button', { name: 'Delete drafts' }).waitFor({ state: 'detached' });
  say('lived');
}

/** A folder is made and entered, and the file brought in; its second part is cut once. */
async function bring(dialog) {
  await dialog.getByText('No files here').waitFor();
  await shoot('no-files');
  await dialog.getByRole('textbox', { name: 'New folder' }).fill('sets & more');
  await dialog.getByRole('button', { name: 'Create the folder' }).click();
  await dialog.getByRole('button', { name: 'sets & more/' }).click();
  await dialog.getByText('No files here').waitFor();
  const ranges = [];
  await page.route('**/v1/volumes/**', async (route) => {
    const request = route.request();
    if (request.method() === 'PUT') ranges.push(request.headers()['content-range']);
    if (request.method() === 'PUT' && ranges.length === 2) await route.abort('connectionreset');
    else await route.continue();
  });
  await dialog
    .locator('input[type=file]')
    .setInputFiles({ name: 'large #1.bin', mimeType: 'text/html', buffer: content }, patient);
  await dialog.locator('[data-upload="uploaded"]').waitFor(patient);
  insist(
    ranges.map((each) => each.split('-')[0]).join() === 'bytes 0,bytes 8388608,bytes 8388608,bytes 16777216',
    `the parts were ${ranges.join()}`,
  );
  await dialog.getByText('17.0 MiB').or(dialog.getByText('17 MiB')).first().waitFor();
  await shoot('files');
  say('brought');
}

/** It is taken out, as a file and never as a page. */
async function take(dialog) {
  const [download] = await Promise.all([
    page.waitForEvent('download'),
    dialog.getByRole('link', { name: 'Download large #1.bin' }).click(),
  ]);
  insist(download.suggestedFilename() === 'large #1.bin', `it is called ${download.suggestedFilename()}`);
  insist(digest(await readFile(await download.path())) === digest(content), 'other bytes came out');
  say('taken');
}

/** It is deleted, and then the folder, each after a confirmation. */
async function remove(dialog) {
  await dialog.getByRole('button', { name: 'Delete large #1.bin' }).click();
  const sure = page.getByRole('dialog', { name: 'Delete large #1.bin' });
  await sure.waitFor();
  await shoot('delete-file');
  await sure.getByRole('button', { name: 'Delete the file' }).click();
  await dialog.getByText('No files here').waitFor();
  await dialog.getByRole('navigation', { name: 'Folder' }).getByRole('button', { name: args.volume }).click();
  await dialog.getByRole('button', { name: 'Delete sets & more' }).click();
  await page.getByRole('button', { name: 'Delete with all files' }).click();
  await dialog.getByText('No files here').waitFor();
  say('removed');
}

try {
  await steps.login(session, { ...args, base });
  await page.goto(`${base}/volumes`);
  await live();
  await page.getByRole('button', { name: `Files ${args.volume}` }).click();
  const dialog = page.getByRole('dialog', { name: `Files of ${args.volume}` });
  await dialog.waitFor();
  await bring(dialog);
  await take(dialog);
  await remove(dialog);
  insist(faults.length === 0, `the page complained: ${[...new Set(faults)].join('; ')}`);
  say('done');
} catch (error) {
  say('failed', { message: error.message, text: await page.innerText('body').catch(() => ''), faults });
  process.exitCode = 1;
} finally {
  await session.browser.close();
  process.stdin.destroy();
}
