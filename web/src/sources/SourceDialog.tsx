// Adding or changing an artifact source.
import { Select, Switch, TextInput } from '@mantine/core';
import { useState } from 'react';
import { tell, useSender } from '../api/hooks';
import { useSession } from '../api/session';
import { ChangeDialog } from '../changes/ChangeDialog';
import { CreateSourceDocument, UpdateSourceDocument } from '../generated/graphql';
import type { SignaturePolicy, SourceBitsFragment, SourceKind } from '../generated/graphql';

const kinds: readonly { readonly value: SourceKind; readonly label: string; readonly hint: string }[] = [
  { value: 'OCI', label: 'OCI registry', hint: 'host or host/path, such as registry.example.com/team' },
  { value: 'HTTPS', label: 'HTTPS server', hint: 'An https address that ends with a slash' },
  { value: 'S3', label: 'S3-compatible store', hint: 'https://endpoint/bucket/ or https://endpoint/bucket/prefix/' },
];

const policies: readonly { readonly value: SignaturePolicy; readonly label: string }[] = [
  { value: 'REQUIRED', label: 'Refuse' },
  { value: 'QUARANTINE', label: 'Quarantine' },
  { value: 'OPTIONAL', label: 'Accept artifacts without a signature' },
];

/** The dialog; `platform` offers to add the source for the whole platform. */
export function SourceDialog({
  source,
  platform,
  onClose,
  onDone,
}: {
  source: SourceBitsFragment | undefined;
  platform: boolean;
  onClose: () => void;
  onDone: () => void;
}) {
  const { project } = useSession();
  const create = useSender(CreateSourceDocument);
  const [name, setName] = useState(source?.name ?? '');
  const [kind, setKind] = useState<SourceKind>(source?.kind ?? 'OCI');
  const [location, setLocation] = useState(source?.location ?? '');
  const [region, setRegion] = useState(source?.region ?? '');
  const [policy, setPolicy] = useState<SignaturePolicy>(source?.signaturePolicy ?? 'REQUIRED');
  const [everybody, setEverybody] = useState(platform);
  const wrong = new Map<string, string>();
  if (name.trim() === '') wrong.set('name', 'Enter a name.');
  if (location.trim() === '') wrong.set('location', 'Enter its address.');
  const send = ({ reason }: { reason: string | null }) =>
    source === undefined
      ? create({
          tenantId: everybody ? null : (project?.tenantId ?? null),
          name: name.trim(),
          kind,
          location: location.trim(),
          region: region.trim() === '' ? null : region.trim(),
          signaturePolicy: policy,
        })
      : tell(UpdateSourceDocument, {
          input: { sourceId: source.id, name: name.trim(), signaturePolicy: policy, reason },
        });
  return (
    <ChangeDialog
      onClose={onClose}
      onDone={onDone}
      change={{
        title: source === undefined ? 'Add a source' : `Change ${source.name}`,
        act: source === undefined ? 'Add' : 'Save',
        fields: ['name', 'kind', 'location', 'region', 'signaturePolicy', 'tenantId'],
        wrong,
        reasonNeeded: false,
        intro: 'What it covers cannot be changed later.',
        send,
        form: (errors) => (
          <div className="stack">
            <TextInput
              label="Name"
              description="2 to 40 lower-case letters, digits and hyphens"
              required
              maxLength={40}
              value={name}
              onChange={(event) => setName(event.currentTarget.value)}
              error={errors.get('name')}
              data-autofocus
            />
            {source === undefined && (
              <Select
                label="Kind"
                allowDeselect={false}
                data={kinds}
                value={kind}
                onChange={(next) => setKind(kinds.find((each) => each.value === next)?.value ?? 'OCI')}
                error={errors.get('kind')}
              />
            )}
            {source === undefined && (
              <TextInput
                label="What it covers"
                description={kinds.find((each) => each.value === kind)?.hint}
                required
                maxLength={400}
                spellCheck={false}
                value={location}
                onChange={(event) => setLocation(event.currentTarget.value)}
                error={errors.get('location')}
              />
            )}
            {source === undefined && kind === 'S3' && (
              <TextInput
                label="Region"
                description="us-east-1 when left out"
                maxLength={40}
                value={region}
                onChange={(event) => setRegion(event.currentTarget.value)}
                error={errors.get('region')}
              />
            )}
            <Select
              label="Artifacts that no trusted key has signed"
              allowDeselect={false}
              data={policies}
              value={policy}
              onChange={(next) => setPolicy(policies.find((each) => each.value === next)?.value ?? 'REQUIRED')}
              error={errors.get('signaturePolicy')}
            />
            {source === undefined && platform && (
              <Switch
                label="For everyone on the platform"
                checked={everybody}
                onChange={(event) => setEverybody(event.currentTarget.checked)}
              />
            )}
          </div>
        ),
      }}
    />
  );
}
