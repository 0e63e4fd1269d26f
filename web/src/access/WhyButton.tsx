// The button that asks for an explanation. It is beside every refusal, so its dialog is in a chunk of its own.
import { Button } from '@mantine/core';
import { Suspense, lazy, useState } from 'react';
import type { Problem } from '../api/errors';
import { Icon } from '../ui/Icons';
import { missingKeys } from './missing';

const WhyDialog = lazy(() => import('./Why').then((module) => ({ default: module.WhyDialog })));

/** A button beside a refusal for a missing permission; nothing beside other problems. */
export function WhyButton({ problem }: { problem: Problem }) {
  const [asked, setAsked] = useState<boolean>();
  const keys = missingKeys(problem);
  if (keys.length === 0) return null;
  return (
    <>
      <Button
        size="compact-xs"
        variant="default"
        leftSection={<Icon name="info" size={13} />}
        onClick={() => setAsked(true)}
      >
        Why can’t I?
      </Button>
      {asked !== undefined && (
        <Suspense fallback={null}>
          <WhyDialog keys={keys} opened={asked} onClose={() => setAsked(false)} />
        </Suspense>
      )}
    </>
  );
}
