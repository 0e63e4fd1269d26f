// @vitest-environment happy-dom
import { expect, it } from 'vitest';
import { answerOf } from './Denied';

it('names the permission and who can give it', () => {
  expect(answerOf('apps.node.operate', ['Dana Admin'])).toBe(
    'You need the permission apps.node.operate. Ask Dana Admin.',
  );
  expect(answerOf('node.operate', [])).toContain('Ask the platform’s operators.');
  expect(answerOf('a', ['1', '2', '3', '4'])).toContain('Ask 1, 2, 3.');
});
