// The step of a manifest to another stage, with its unmet requirements.
import { TextInput } from '@mantine/core';
import { useState } from 'react';
import { tell } from '../api/hooks';
import { useSession } from '../api/session';
import { ChangeDialog } from '../changes/ChangeDialog';
import { PromoteManifestDocument } from '../generated/graphql';
import type { ReasonBitsFragment, Stage } from '../generated/graphql';
import { Notice } from '../ui/Problem';
import { OverrideField, isTerm } from './OverrideField';
import { ShareField, shareProblem } from './share';
import { stepsFrom } from './stages';
import type { Step } from './stages';

/** The manifest that takes the step. */
export interface Release {
  readonly id: string;
  readonly appSlug: string;
  readonly version: string;
  readonly stage: Stage;
}

/** The dialog, open as long as it is mounted. */
export function PromoteDialog({
  release,
  step,
  lacks,
  onClose,
  onDone,
}: {
  release: Release;
  step: Step;
  lacks: readonly ReasonBitsFragment[];
  onClose: () => void;
  onDone: () => void;
}) {
  const { staff } = useSession();
  const [smoke, setSmoke] = useState('');
  const [override, setOverride] = useState('');
  const [percent, setPercent] = useState<number | string>(10);
  const staging = release.stage === 'DRAFT';
  const starting = step.to === 'CANARY';
  const onward = stepsFrom(release.stage)[0]?.to === step.to;
  const overridable = staff && onward && lacks.some(isTerm);
  const wrong = new Map<string, string>();
  if (staging && !smoke.trim().startsWith('ins_'))
    wrong.set('smokeInstanceId', 'Enter the id of the smoke instance: ins_…');
  const badShare = starting ? shareProblem(percent) : undefined;
  if (badShare !== undefined) wrong.set('canaryPercent', badShare);
  return (
    <ChangeDialog
      onClose={onClose}
      onDone={onDone}
      change={{
        title: `${step.act}: ${release.appSlug} ${release.version}`,
        act: step.act,
        danger: step.danger,
        reasonNeeded: true,
        fields: ['smokeInstanceId', 'canaryPercent', 'override'],
        wrong,
        intro: step.means,
        send: ({ reason }) =>
          tell(PromoteManifestDocument, {
            input: {
              manifestId: release.id,
              to: step.to,
              reason: reason ?? '',
              smokeInstanceId: staging ? smoke.trim() : null,
              canaryPercent: starting ? Number(percent) : null,
              override: overridable && override.trim() !== '' ? override.trim() : null,
            },
          }),
        form: (errors) => (
          <div className="stack">
            {lacks.length > 0 && onward && <Lacks lacks={lacks} />}
            {staging && (
              <TextInput
                label="Smoke instance"
                description="It ran exactly this version as a smoke launch and was decommissioned with proof"
                placeholder="ins_…"
                required
                maxLength={40}
                spellCheck={false}
                value={smoke}
                onChange={(event) => setSmoke(event.currentTarget.value)}
                error={errors.get('smokeInstanceId')}
                data-autofocus
              />
            )}
            {starting && <ShareField value={percent} onChange={setPercent} error={errors.get('canaryPercent')} />}
            {overridable && <OverrideField value={override} onChange={setOverride} error={errors.get('override')} />}
          </div>
        ),
      }}
    />
  );
}

/** The unmet requirements for a manifest's next stage. */
export function Lacks({ lacks }: { lacks: readonly ReasonBitsFragment[] }) {
  return (
    <Notice tone="warn" icon="info">
      <b>Missing for its next stage:</b>
      <ul>
        {lacks.map((reason, at) => (
          <li key={at} className="said">
            {reason.message} <code>{reason.code}</code>
          </li>
        ))}
      </ul>
    </Notice>
  );
}
