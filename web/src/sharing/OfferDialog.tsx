// Offering a control plane to another project of the tenant.
import { Select, TextInput } from '@mantine/core';
import { useState } from 'react';
import { useRead, useSender } from '../api/hooks';
import { useProjectId, useSession } from '../api/session';
import { ChangeDialog } from '../changes/ChangeDialog';
import { OfferControlPlaneDocument, SharedInstancesDocument } from '../generated/graphql';
import { ImpactPanel } from './ImpactPanel';

/** The dialog; only workloads whose control plane serves the tenant can be offered. */
export function OfferDialog({ onClose, onDone }: { onClose: () => void; onDone: () => void }) {
  const projectId = useProjectId();
  const { projects, project } = useSession();
  const { data } = useRead(SharedInstancesDocument, { projectId });
  const send = useSender(OfferControlPlaneDocument);
  const [instanceId, setInstance] = useState('');
  const [to, setTo] = useState('');
  const shared = (data?.instances.edges ?? [])
    .map((edge) => edge.node)
    .filter((each) => each.controlPlaneScope === 'TENANT' && (each.status === 'RUNNING' || each.status === 'STARTING'));
  const others = projects.filter((each) => each.id !== projectId && each.tenantId === project?.tenantId);
  const wrong = new Map<string, string>();
  if (instanceId === '') wrong.set('instanceId', 'Choose a workload.');
  if (to === '') wrong.set('projectId', 'Choose a project.');
  return (
    <ChangeDialog
      onClose={onClose}
      onDone={onDone}
      change={{
        title: 'Offer a control plane',
        act: 'Offer',
        fields: ['instanceId', 'projectId'],
        wrong,
        reasonNeeded: true,
        intro: 'The other project decides whether it attaches. You can withdraw it at any time.',
        send: ({ reason }) => send({ instanceId, projectId: to, reason: reason ?? '' }),
        form: (errors) => (
          <div className="stack">
            <Select
              label="Workload"
              description={
                shared.length === 0
                  ? 'No workload of this project was launched for the whole tenant'
                  : 'Launched for the whole tenant'
              }
              required
              data={shared.map((each) => ({ value: each.id, label: each.name }))}
              value={instanceId}
              onChange={(next) => setInstance(next ?? '')}
              error={errors.get('instanceId')}
            />
            {others.length > 0 ? (
              <Select
                label="To project"
                required
                searchable
                data={others.map((each) => ({ value: each.id, label: each.displayName }))}
                value={to}
                onChange={(next) => setTo(next ?? '')}
                error={errors.get('projectId')}
              />
            ) : (
              <TextInput
                label="To project"
                description="Its id"
                required
                maxLength={40}
                value={to}
                onChange={(event) => setTo(event.currentTarget.value.trim())}
                error={errors.get('projectId')}
              />
            )}
            {instanceId !== '' && <ImpactPanel instanceId={instanceId} />}
          </div>
        ),
      }}
    />
  );
}
