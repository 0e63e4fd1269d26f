// The step of an artifact to another stage. A platform's artifact needs a smoke test of its kind before it is active.
import { useState } from 'react';
import { tell } from '../api/hooks';
import { useSession } from '../api/session';
import { ChangeDialog } from '../changes/ChangeDialog';
import { PromoteArtifactDocument } from '../generated/graphql';
import type { ArtifactDetailQuery } from '../generated/graphql';
import { words } from '../lib/format';
import { OverrideField } from '../releases/OverrideField';
import type { Step } from '../releases/stages';
import { Notice } from '../ui/Problem';

type Artifact = Extract<ArtifactDetailQuery['node'], { __typename: 'Artifact' }>;

/** The dialog, open as long as it is mounted. */
export function PromoteArtifactDialog({
  artifact,
  step,
  onClose,
  onDone,
}: {
  artifact: Artifact;
  step: Step;
  onClose: () => void;
  onDone: () => void;
}) {
  const { staff } = useSession();
  const [override, setOverride] = useState('');
  const unsmoked = step.to === 'ACTIVE' && artifact.tenantId === null && !artifact.smoked;
  return (
    <ChangeDialog
      onClose={onClose}
      onDone={onDone}
      change={{
        title: `Move ${artifact.name} to ${words(step.to).toLowerCase()}`,
        act: words(step.to),
        danger: step.danger,
        fields: ['override'],
        reasonNeeded: true,
        intro: 'Its signature is verified again; its bytes are verified again where the step requires it.',
        send: ({ reason }) =>
          tell(PromoteArtifactDocument, {
            input: {
              artifactId: artifact.id,
              to: step.to,
              reason: reason ?? '',
              override: unsmoked && override.trim() !== '' ? override.trim() : null,
            },
          }),
        form: (errors) =>
          unsmoked && (
            <div className="stack">
              <Notice tone="warn" icon="info">
                <b>It has no valid smoke report.</b> Every tenant may pin it, so a registered runner must run{' '}
                <code>appctl artifact smoke</code> first.
              </Notice>
              {staff && <OverrideField value={override} onChange={setOverride} error={errors.get('override')} />}
            </div>
          ),
      }}
    />
  );
}
