// @vitest-environment happy-dom
import { MantineProvider } from '@mantine/core';
import { act } from 'react';
import { createRoot } from 'react-dom/client';
import { expect, it, vi } from 'vitest';
import { plain } from '../api/errors';
import type { Problem } from '../api/errors';
import { ProblemExtra, ProblemNotice } from '../ui/Problem';
import { WhyButton } from './WhyButton';

vi.stubGlobal('IS_REACT_ACT_ENVIRONMENT', true);
Object.defineProperty(document, 'fonts', { value: new EventTarget() }); // which this environment lacks

const missing: Problem = {
  ...plain('FORBIDDEN', 'No.', 'c-1'),
  reasons: [{ code: 'PERMISSION_MISSING', message: 'apps.instance.read', path: '' }],
};

/** Returns the text of a problem, drawn with the button that the console's root provides. */
function drawn(problem: Problem): string {
  const box = document.createElement('div');
  const root = createRoot(box);
  act(() =>
    root.render(
      <MantineProvider>
        <ProblemExtra value={(given) => <WhyButton problem={given} />}>
          <ProblemNotice problem={problem} />
        </ProblemExtra>
      </MantineProvider>,
    ),
  );
  const text = box.textContent;
  act(() => root.unmount());
  return text;
}

it('explains a missing permission beside the problem, and no other problem', () => {
  expect(drawn(missing)).toContain('Why can’t I?');
  expect(drawn(plain('FORBIDDEN', 'No.', ''))).not.toContain('Why');
});
