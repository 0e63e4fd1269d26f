import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { decisionsFrom } from './words';

describe('decisions on a gap', () => {
  it('are the moves of the platform’s own table, but for the end that a release makes', () => {
    const table = readFileSync(new URL('../../../domain/lifecycle/testdata/machines.golden', import.meta.url), 'utf8');
    const moves = table
      .slice(table.indexOf('gap, begins as'))
      .split('\n')
      .slice(1)
      .map((line) => /^ {2}(\w+) +→ (\w+)/.exec(line))
      .flatMap((found) => (found === null ? [] : [`${found[1] ?? ''} ${found[2] ?? ''}`]))
      .filter((move) => !move.endsWith('CLOSED'));
    const offered = (['OPEN', 'ACCEPTED', 'DEFERRED', 'DECLINED', 'CLOSED'] as const).flatMap((from) =>
      decisionsFrom(from).map((to) => `${from} ${to}`),
    );
    expect(offered.toSorted()).toEqual(moves.toSorted());
  });
});
