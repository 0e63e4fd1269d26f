// The part of the walk that changes members: add, show the diagram, drain, remove; each after its plan.
import { insist, say } from './harness.mjs';
import { throughPlan } from './steps.mjs';

/** The members of a component on the page that are in a state. */
const inState = (page, component, state) =>
  page.locator(`[data-member][data-state="${state}"]`, { hasText: new RegExp(`^${component} \\d`) });

/** Shows the members as a table, which equals the diagram, and returns how many of the component are active. */
async function asTable(page, component) {
  await page.getByRole('region', { name: 'Members' }).first().waitFor();
  await page.getByRole('radiogroup', { name: 'How members are shown' }).getByText('Table').click();
  await page.locator('[data-member]').first().waitFor();
  return inState(page, component, 'ACTIVE').count();
}

/** Waits until so many members of the component are in a state; the error contains what the page reports. */
async function until(page, component, state, count, wait) {
  const found = inState(page, component, state);
  await found
    .nth(count - 1)
    .waitFor({ timeout: wait })
    .catch(async () => {
      throw new Error(
        `${await found.count()} of ${count} ${component} became ${state}: ${(await page.locator('.operation-card, .blocker-card').allInnerTexts()).join(' ')}`,
      );
    });
}

/** Waits until the newest operation on the page has ended, and fails unless it succeeded. */
async function ended(page, kind, wait) {
  const card = page.locator(`.operation-card:has(h2:text-is("${kind}")) [data-operation]`);
  await card
    .and(page.locator('[data-state="SUCCEEDED"], [data-state="FAILED"], [data-state="CANCELED"]'))
    .waitFor({ timeout: wait });
  const state = await card.getAttribute('data-state');
  insist(state === 'SUCCEEDED', `${kind} ended as ${state}: ${await page.locator('.operation-card').innerText()}`);
}

/** Opens the menu of the component's newest member and chooses. */
async function choose(page, component, state, act) {
  const row = page
    .getByRole('row')
    .filter({ has: inState(page, component, state).last() })
    .last();
  await row.getByRole('button', { name: `Actions for ${component}` }).click();
  await page.getByRole('menuitem', { name: act, exact: true }).click();
}

/** Adds a member, drains it and removes it. */
export async function changes({ page, shoot }, { component, wait }) {
  await page.locator('[data-member-tile]').first().waitFor();
  await shoot('topology');
  const before = await asTable(page, component);
  insist(before > 0, `no ${component} is at work`);
  await add(page, component, shoot);
  await ended(page, 'Addition of members', wait);
  await until(page, component, 'ACTIVE', before + 1, wait);
  say('member-added', { members: before + 1 });
  await choose(page, component, 'ACTIVE', 'Drain');
  await throughPlan(page, { act: 'Drain', reason: 'the walk wants to see it drained', shoot, shot: 'drain-plan' });
  await ended(page, 'Drain', wait);
  await until(page, component, 'DRAINED', 1, wait);
  say('member-drained');
  await shoot('drained');
  await choose(page, component, 'DRAINED', 'Remove');
  const said = await throughPlan(page, {
    act: 'Remove',
    reason: 'the walk is done with it',
    shoot,
    shot: 'remove-plan',
  });
  insist(/1 member would be affected/.test(said), `the plan touches something else: ${said}`);
  await ended(page, 'Removal', wait);
  await until(page, component, 'ACTIVE', before, wait);
  insist((await inState(page, component, 'ACTIVE').count()) === before, 'another member went with it');
  say('member-removed', { members: before });
}

async function add(page, component, shoot) {
  await page.getByRole('button', { name: 'Add members' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByRole('group', { name: 'Where' }).waitFor();
  const own = dialog.getByRole('checkbox', { name: /./ }).and(dialog.locator('[data-allocation]'));
  await own.or(dialog.getByText('no allocation that is ready and free')).first().waitFor();
  if ((await own.count()) > 0) await own.last().check();
  else await dialog.getByText('New capacity').click();
  await shoot('add-members');
  await throughPlan(page, { act: 'Add members', reason: 'the walk wants one more', shoot, shot: 'add-plan' });
}
