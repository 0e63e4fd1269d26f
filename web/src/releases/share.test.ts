import { expect, it } from 'vitest';
import { shareProblem } from './share';

it.each([1, 20, '100'])('takes the share %s', (share) => expect(shareProblem(share)).toBeUndefined());

it.each(['', 0, 101, 2.5, 'x'])('refuses the share %s', (share) =>
  expect(shareProblem(share)).toBe('Must be 1 to 100.'),
);
