// What the walk stands on: arguments, a browser that reports its own faults, progress as JSON lines, screenshots.
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { parseArgs } from 'node:util';
import { chromium } from 'playwright-core';

const options = {
  base: { type: 'string' }, 'login-code': { type: 'string' }, shots: { type: 'string' }, app: { type: 'string', default: 'slurm' },
  restart: { type: 'boolean', default: false }, chromium: { type: 'string', default: '/usr/bin/chromium' }, 'wait-seconds': { type: 'string', default: '240' },
};

/** Sizes and schemes that every moment is photographed in. */
const variants = [
  { tag: 'desktop-light', width: 1440, height: 900, scheme: 'light' },
  { tag: 'desktop-dark', width: 1440, height: 900, scheme: 'dark' },
  { tag: 'phone-light', width: 390, height: 844, scheme: 'light' },
  { tag: 'phone-dark', width: 390, height: 844, scheme: 'dark' },
];

/** Reads the command line; ends with a message when something is missing. */
export function readArgs() {
  const { values } = parseArgs({ options });
  for (const needed of ['base', 'login-code']) {
    if (values[needed] === undefined) {
      console.error(`usage: node web/e2e/main.mjs --base URL --login-code CODE [--app SLUG] [--restart] [--shots DIR] [--chromium PATH] [--wait-seconds N]\nmissing: --${needed}`);
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

/** Asks whoever runs the walk for something and waits for one line on stdin. */
export async function ask(event) {
  say(event);
  const { done } = await lines.next();
  if (done) throw new Error(`stdin ended while waiting for an answer to ${event}`);
}

/** Starts the browser; faults gathers what the page itself complained about. */
export async function open(args) {
  const browser = await chromium.launch({ executablePath: args.chromium, headless: true, args: ['--no-sandbox'] });
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, colorScheme: 'light', locale: 'en-GB' });
  const page = await context.newPage();
  page.setDefaultTimeout(20_000);
  const faults = [];
  page.on('pageerror', (error) => faults.push(`uncaught: ${error.message}`));
  page.on('console', (message) => {
    if (/Content Security Policy|Warning: |Each child in a list|Maximum update depth/.test(message.text())) faults.push(message.text());
  });
  return { browser, context, page, faults, shoot: shooter(page, args.shots, faults) };
}

/** A function that photographs the page in every variant, and notes a page that is wider than its window. */
function shooter(page, dir, faults) {
  let count = 0;
  return async (name) => {
    count += 1;
    for (const { tag, width, height, scheme } of variants) {
      await page.setViewportSize({ width, height });
      await page.emulateMedia({ colorScheme: scheme });
      const over = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
      if (over > 1) faults.push(`${name} at ${tag} is ${over} pixels wider than the window`);
      if (dir === undefined) continue;
      await mkdir(dir, { recursive: true });
      await page.screenshot({ path: join(dir, `${String(count).padStart(2, '0')}-${name}-${tag}.png`), animations: 'disabled', fullPage: true });
    }
    await page.setViewportSize({ width: 1440, height: 900 });
    await page.emulateMedia({ colorScheme: 'light' });
  };
}

/** Fails with a message unless the condition holds. */
export function insist(condition, message) {
  if (!condition) throw new Error(message);
}
