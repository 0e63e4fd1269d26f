// @vitest-environment happy-dom
import { expect, it } from 'vitest';
import { upgradeProblems, versions } from './UpgradeDialog';
import { addProblems } from './InstanceDialogs';
import { directionOf, scaleProblems } from './ScaleDialog';
import { firstPlace, intentOf, placeProblem } from './fields';
import { deadlineWord, lostWord, needsReason, needsSure, planWord } from '../changes/flow';
import { labelText, readLabels } from './labels';
import { instanceKey, mayScale, memberKey, offered } from './rules';
import { ageWord, isUnderWay, moneyWord, outcomeWord, untilWord } from '../changes/words';

const anyone = () => true;
const failing = { onDeadline: 'FAIL', workAtRiskTotal: null } as const;

it.each([
  ['ACTIVE', false, ['drain', 'cordon', 'label', 'replace', 'remove']],
  ['ACTIVE', true, ['drain', 'uncordon', 'label', 'replace', 'remove']],
  ['DRAINED', false, ['uncordon', 'label', 'replace', 'remove']],
  ['FAILED', false, ['label', 'recover', 'replace', 'remove']],
  ['REMOVING', false, []],
  ['REMOVED', false, []],
] as const)('offers for a member that is %s, cordoned %s: %j', (status, cordoned, acts) => {
  expect(offered({ status, cordoned }, 'apps', anyone)).toEqual(acts);
});

it('offers only what the keys allow', () => {
  expect(
    offered({ status: 'ACTIVE', cordoned: false }, 'scheduler', (key) => key === 'scheduler.member.remove'),
  ).toEqual(['remove']);
  expect([
    memberKey('apps', 'label'),
    memberKey('apps', 'recover'),
    instanceKey('apps', 'add'),
    instanceKey('apps', 'rollback'),
    instanceKey('apps', 'decommission'),
  ]).toEqual([
    'apps.node.operate',
    'apps.member.recover',
    'apps.member.add',
    'apps.instance.update',
    'apps.instance.delete',
  ]);
});

it('needs a reason for force, at once or at the deadline, and where the kind says so', () => {
  expect([{}, { force: true }, { onDeadline: 'FORCE' as const }, { always: true }].map(needsReason)).toEqual([
    false,
    true,
    true,
    true,
  ]);
});

it('never reads what nobody can tell as harmless', () => {
  expect(lostWord({ workLost: [], workLostTotal: null })).toContain('It is unknown');
  expect(needsSure({ reversible: true, workLostTotal: null, ...failing })).toBe(true);
  expect(needsSure({ reversible: true, workLostTotal: 0, ...failing })).toBe(false);
  expect(needsSure({ reversible: true, workLostTotal: 0, onDeadline: 'FORCE', workAtRiskTotal: 1 })).toBe(true);
  expect(deadlineWord({ deadlineSeconds: 30, onDeadline: 'FORCE', workAtRiskTotal: 2, keepFailed: false })).toContain(
    '2 pieces of work would be lost',
  );
  const unknown = { source: 'ADAPTER', outcome: 'UNKNOWN', reasons: [] } as const;
  expect(planWord({ allowed: true, verdicts: [unknown], workLostTotal: 0, ...failing }).tone).toBe('warn');
  expect(planWord({ allowed: true, verdicts: [], workLostTotal: 2, ...failing }).tone).toBe('warn');
  expect(planWord({ allowed: true, verdicts: [], workLostTotal: 0, ...failing }).tone).toBe('good');
  expect(planWord({ allowed: false, verdicts: [], workLostTotal: 0, ...failing }).tone).toBe('bad');
});

it('reads labels as they are written, and says what is wrong with a line', () => {
  expect(readLabels(' zone = a \n\nrack=7')).toEqual({ labels: { zone: 'a', rack: '7' } });
  expect(labelText({ zone: 'a', rack: '7' })).toBe('rack=7\nzone=a');
  for (const text of ['zone', '=a', 'zone=', 'zo ne=a', 'zone=ä', 'zone=a\nzone=b', `${'x'.repeat(64)}=1`])
    expect(readLabels(text)).toHaveProperty('wrong');
  expect(readLabels(Array.from({ length: 33 }, (_, at) => `n${at}=1`).join('\n'))).toEqual({
    wrong: 'At most 32 labels.',
  });
});

it('asks for capacity only in its own mode', () => {
  expect(intentOf(firstPlace)).toBeNull();
  expect(intentOf({ ...firstPlace, mode: 'new', gpuCount: '2', sku: ' s ' })).toEqual({
    shape: 'GPU_SLICE',
    gpuCount: 2,
    sku: 's',
    region: null,
  });
  expect(intentOf({ ...firstPlace, mode: 'new', shape: 'BAREMETAL' })).toEqual({
    shape: 'BAREMETAL',
    gpuCount: null,
    sku: null,
    region: null,
  });
  expect(placeProblem(firstPlace)).toContain('at least one');
  expect(placeProblem({ ...firstPlace, mode: 'new', gpuCount: 65 })).toContain('1 to 64');
  expect(placeProblem({ ...firstPlace, mode: 'same' })).toBeUndefined();
});

it('keeps an addition within the bounds', () => {
  expect(addProblems(2, 2, undefined).size).toBe(0);
  expect(addProblems(3, 2, undefined).get('count')).toBe('Must be 1 to 2.');
  expect(addProblems('', 2, 'Choose.')).toEqual(
    new Map([
      ['count', 'Must be 1 to 2.'],
      ['allocationIds', 'Choose.'],
    ]),
  );
  expect(addProblems(1, 0, undefined).get('count')).toContain('its maximum number of members');
});

it('keeps a scaling within the bounds, and to what the person may do', () => {
  const of = { min: 1, max: 4, now: 2 };
  const both = { up: true, down: true };
  expect([directionOf(2, 3), directionOf(2, 1), directionOf(2, 2)]).toEqual(['up', 'down', 'none']);
  expect(scaleProblems(4, of, undefined, both).size).toBe(0);
  expect(scaleProblems(1, of, 'Choose.', both).size).toBe(0); // members that leave need no place
  expect(scaleProblems(3, of, 'Choose.', both).get('allocationIds')).toBe('Choose.');
  for (const count of ['', 0, 5, 1.5])
    expect(scaleProblems(count, of, undefined, both).get('count')).toBe('Must be 1 to 4.');
  expect(scaleProblems(2, of, undefined, both).get('count')).toBe('It has 2 members already.');
  expect(scaleProblems(3, of, undefined, { up: false, down: true }).get('count')).toBe('You may not add members.');
  expect(scaleProblems(1, of, undefined, { up: true, down: false }).get('count')).toBe('You may not remove members.');
});

it('offers a scaling to whom may go one way at least', () => {
  expect(mayScale('apps', (key) => key === 'apps.member.remove')).toBe(true);
  expect(mayScale('apps', (key) => key === 'apps.member.add')).toBe(true);
  expect(mayScale('apps', (key) => key === 'scheduler.member.add')).toBe(false);
});

it('offers active versions, the canary and the present one, whatever became of it', () => {
  const choices = [
    { version: '2.0.0', stage: 'ACTIVE' },
    { version: '2.1.0', stage: 'CANARY' },
    { version: '1.5.0', stage: 'DEPRECATED' },
    { version: '1.0.0', stage: 'DEPRECATED' },
  ] as const;
  expect(versions(choices, '1.0.0').map((each) => each.value)).toEqual(['2.0.0', '2.1.0', '1.0.0']);
  expect(versions(choices, '0.9.0').map((each) => each.value)).toEqual(['2.0.0', '2.1.0', '0.9.0']);
});

it('wants something to change, and puts complaints of the config below it', () => {
  expect(upgradeProblems(false, new Map()).has('version')).toBe(true);
  expect([
    ...upgradeProblems(
      true,
      new Map([
        ['', 'Wrong.'],
        ['a.b', 'Too long.'],
      ]),
    ),
  ]).toEqual([
    ['config', 'Wrong.'],
    ['config.a.b', 'Too long.'],
  ]);
});

it('takes a blocker that it does not know for a real one', () => {
  expect(['ADAPTER_WORKING', 'WORK_RUNNING', 'SOMETHING_NEW'].map(isUnderWay)).toEqual([true, false, false]);
});

it('says when something is tried, how old it is, what it costs and how it ended', () => {
  expect([
    untilWord('2026-01-01T00:01:00Z', Date.parse('2026-01-01T00:00:00Z')),
    untilWord('2026-01-01T00:00:00Z', Date.parse('2026-01-01T00:01:00Z')),
  ]).toEqual(['in 1 min 0 s', 'now']);
  expect([ageWord(59), ageWord(90_000)]).toEqual(['59 s', '1 d 1 h']);
  expect([moneyWord(null), moneyWord({ amount: '0.000001', currency: 'EUR' })]).toEqual(['—', '0.000001 EUR']);
  expect([
    outcomeWord(null),
    outcomeWord('NORMAL'),
    outcomeWord('UNVERIFIED')?.title,
    outcomeWord('FORCED')?.title,
  ]).toEqual([undefined, undefined, 'Done, but not proved', 'Done by force']);
});
