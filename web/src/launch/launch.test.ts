import { expect, it } from 'vitest';
import {
  furtherOf,
  furtherProblem,
  homeless,
  nameProblem,
  slotless,
  suggestName,
  usesOf,
  versionChoices,
} from './launch';

it.each(['ab', 'slurm-2x', 'a'.repeat(40)])('accepts the name %s', (name) => expect(nameProblem(name)).toBeUndefined());

it.each([
  ['a', 'Must have 2 to 40 characters.'],
  ['a'.repeat(41), 'Must have 2 to 40 characters.'],
  ['With-Caps', 'Only lower-case letters, digits and hyphens.'],
  ['1st', 'Must begin with a letter and not end with a hyphen.'],
  ['end-', 'Must begin with a letter and not end with a hyphen.'],
])('says what is wrong with %s', (name, problem) => expect(nameProblem(name)).toBe(problem));

it('suggests names that are themselves valid, however long the slug', () => {
  for (const slug of ['a', 'some-app', 'x'.repeat(40)])
    expect(nameProblem(suggestName(slug, () => 0.99))).toBeUndefined();
});

it('lists the versions of every stage, and says why one cannot be launched', () => {
  expect(
    versionChoices([
      { version: '1.2.0', stage: 'ACTIVE', reasons: [] },
      { version: '1.3.0', stage: 'CANARY', reasons: [{ message: 'the project is not part of its canary' }] },
    ]),
  ).toEqual([
    { value: '1.2.0', label: '1.2.0, active', disabled: false },
    { value: '1.3.0', label: '1.3.0, the project is not part of its canary', disabled: true },
  ]);
});

it('asks where the members of every component live once one of them says what to request', () => {
  const slice = { shape: 'GPU_SLICE', gpuCount: 1, sku: '', region: '' } as const;
  const wrong = 'State the capacity for each of its members.';
  expect([
    homeless({ chosen: 0, stated: 1, count: 1 }, undefined),
    homeless({ chosen: 0, stated: 1, count: 1 }, slice),
  ]).toEqual([wrong, undefined]);
  expect([
    homeless({ chosen: 1, stated: 1, count: 1 }, undefined),
    homeless({ chosen: 0, stated: 1, count: 0 }, undefined),
    homeless({ chosen: 0, stated: 0, count: 1 }, undefined),
  ]).toEqual([undefined, undefined, undefined]);
});

it('sends where further members live only where it is stated', () => {
  const slice = { shape: 'GPU_SLICE', gpuCount: '2', sku: ' h100 ', region: '' } as const;
  expect([furtherOf(undefined), furtherOf({ ...slice, shape: 'NONE' })]).toEqual([null, null]);
  expect(furtherOf(slice)).toEqual({ shape: 'GPU_SLICE', gpuCount: 2, sku: 'h100', region: null });
  expect(furtherOf({ ...slice, shape: 'BAREMETAL' })).toEqual({
    shape: 'BAREMETAL',
    gpuCount: null,
    sku: 'h100',
    region: null,
  });
  expect([
    furtherProblem(slice),
    furtherProblem({ ...slice, shape: 'BAREMETAL', gpuCount: '' }),
    furtherProblem({ ...slice, gpuCount: 65 }),
    furtherProblem({ ...slice, gpuCount: '' }),
  ]).toEqual([undefined, undefined, 'A slice has 1 to 64 GPUs.', 'A slice has 1 to 64 GPUs.']);
});

it('sends the volumes that are chosen, and names the slots that lack one', () => {
  const chosen = { home: 'vol_1', data: '' };
  expect(usesOf(chosen)).toEqual([{ slot: 'home', volumeId: 'vol_1' }]);
  const slots = [
    { name: 'home', required: true },
    { name: 'data', required: true },
    { name: 'other', required: false },
  ];
  expect(slotless(slots, chosen)).toEqual(['data']);
});
