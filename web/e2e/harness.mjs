// What the walk needs: arguments, a browser that reports its own faults, progress as JSON lines, screenshots.
import { mkdir, readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { parseArgs } from 'node:util';
import { chromium } from 'playwright-core';

const options = {
  base: { type: 'string' },
  'login-code': { type: 'string' },
  'operator-code': { type: 'string' },
  publishes: { type: 'string' },
  instance: { type: 'string' },
  caller: { type: 'string' },
  work: { type: 'string' },
  member: { type: 'string' },
  volume: { type: 'string' },
  shots: { type: 'string' },
  app: { type: 'string', default: 'slurm' },
  restart: { type: 'boolean', default: false },
  brief: { type: 'boolean', default: false },
  chromium: { type: 'string', default: '/usr/bin/chromium' },
  'wait-seconds': { type: 'string', default: '240' },
};

/** Sizes and schemes of every screenshot. */
const variants = [
  { tag: 'desktop-light', width: 1440, height: 900, scheme: 'light' },
  { tag: 'desktop-dark', width: 1440, height: 900, scheme: 'dark' },
  { tag: 'phone-light', width: 390, height: 844, scheme: 'light' },
  { tag: 'phone-dark', width: 390, height: 844, scheme: 'dark' },
];

/** With --brief, for a walk over pages that another walk judges, what is the app's or this walk's own in every variant, and the rest in the first. */
const own = ['app', 'launch-form', 'reconnecting', 'action-submit', 'action-list'];

/** Reads the command line; ends with a message when something is missing. */
export function readArgs() {
  const { values } = parseArgs({ options });
  for (const needed of ['base', 'login-code']) {
    if (values[needed] === undefined) {
      console.error(
        `usage: node web/e2e/main.mjs --base URL --login-code CODE [--operator-code CODE] [--publishes SLUG] [--app SLUG] [--restart] [--brief] [--shots DIR] [--chromium PATH] [--wait-seconds N]\nmissing: --${needed}`,
      );
      process.exit(2);
    }
  }
  return { ...values, wait: Number(values['wait-seconds']) * 1000 };
}

/** One line of progress. */
export function say(event, detail = {}) {
  console.log(JSON.stringify({ event, at: new Date().toISOString(), ...detail }));
}

const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();

/** Prints a request to the caller of the walk and waits for one line on stdin. */
export async function ask(event, detail = {}) {
  say(event, detail);
  const { done } = await lines.next();
  if (done) throw new Error(`stdin ended while waiting for an answer to ${event}`);
}

/** Starts the browser; faults collects the errors that the page itself reports. */
export async function open(args) {
  const browser = await chromium.launch({ executablePath: args.chromium, headless: true, args: ['--no-sandbox'] });
  const context = await browser.newContext({
    viewport: { width: 1440, height: 900 },
    colorScheme: 'light',
    reducedMotion: 'reduce',
    locale: 'en-GB',
  });
  const page = await context.newPage();
  page.setDefaultTimeout(20_000);
  const faults = [];
  page.on('pageerror', (error) => faults.push(`uncaught: ${error.message}`));
  page.on('console', (message) => {
    if (/Content Security Policy|Warning: |Each child in a list|Maximum update depth/.test(message.text()))
      faults.push(message.text());
  });
  return { browser, context, page, faults, shoot: shooter(page, args, faults) };
}

const axe = await readFile(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** Waits until the page has applied the scheme and only endless animations move. A page that does not says what it shows. */
async function settled(page, scheme) {
  await page
    .locator(`html[data-mantine-color-scheme="${scheme}"]`)
    .waitFor({ state: 'attached' })
    .catch(async (error) => {
      const shown = page.evaluate(() => [
        window.matchMedia('(prefers-color-scheme: dark)').matches,
        document.readyState,
        document.body.innerText.slice(0, 400),
      ]);
      const state = await Promise.race([
        shown,
        new Promise((resolve) => setTimeout(resolve, 5000, ['the page does not answer'])),
      ]);
      throw new Error(`${error.message}; the page: ${JSON.stringify(state)}`);
    });
  await page.evaluate(() =>
    Promise.allSettled(
      document
        .getAnimations()
        .filter((each) => each.effect?.getTiming().iterations !== Infinity)
        .map((each) => each.finished),
    ),
  );
}

/** What axe judges: everything in a light page; in the same page in the dark what its colours decide. */
const judged = {
  light: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa'],
  dark: { type: 'rule', values: ['color-contrast', 'link-in-text-block'] },
};

/** Returns what axe finds inaccessible on the page without sight, mouse or full contrast. */
async function inaccessible(page, scheme) {
  // Its half a megabyte takes as long to compile as a page to judge; it is there until the page is loaded again.
  if (!(await page.evaluate(() => 'axe' in window))) await page.evaluate(axe);
  const found = await page.evaluate(async (runOnly) => {
    const { violations } = await window.axe.run(document, { runOnly, resultTypes: ['violations'] });
    return violations.flatMap(({ id, nodes }) =>
      nodes.map(({ html, any }) => `${id}: ${html.slice(0, 140)} ${any[0]?.message ?? ''}`),
    );
  }, judged[scheme]);
  return found.slice(0, 5);
}

/** Returns a function that takes screenshots in every variant and records where the page is too wide or inaccessible. */
function shooter(page, { shots: dir, brief }, faults) {
  let count = 0;
  return async (name) => {
    count += 1;
    for (const { tag, width, height, scheme } of brief && !own.includes(name) ? variants.slice(0, 1) : variants) {
      await page.setViewportSize({ width, height });
      await page.emulateMedia({ colorScheme: scheme });
      await settled(page, scheme);
      const over = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
      if (over > 1) faults.push(`${name} at ${tag} is ${over} pixels wider than the window`);
      faults.push(...(await inaccessible(page, scheme)).map((fault) => `${name} at ${tag}: ${fault}`));
      if (dir === undefined) continue;
      await mkdir(dir, { recursive: true });
      await page.screenshot({
        path: join(dir, `${String(count).padStart(2, '0')}-${name}-${tag}.png`),
        animations: 'disabled',
        fullPage: true,
      });
    }
    await page.setViewportSize({ width: 1440, height: 900 });
    await page.emulateMedia({ colorScheme: 'light' });
  };
}

/** Fails with a message unless the condition holds. */
export function insist(condition, message) {
  if (!condition) throw new Error(message);
}
