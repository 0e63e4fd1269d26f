// The dialogs of the gap log: raise, decide, and close by a release.
import { Select, Textarea, TextInput } from '@mantine/core';
import { useState } from 'react';
import { tell } from '../api/hooks';
import { ChangeDialog } from '../changes/ChangeDialog';
import { CloseGapDocument, DecideGapDocument, RaiseGapDocument } from '../generated/graphql';
import type { GapBitsFragment, GapKind, GapState } from '../generated/graphql';
import { words } from '../lib/format';
import { newKey } from '../lib/idempotency';
import { decisionsFrom, kinds } from './words';

interface Dialog {
  readonly onClose: () => void;
  readonly onDone: () => void;
}

/** Raises a gap; app is the app's short name as far as it is known. */
export function RaiseGapDialog({ app, onClose, onDone }: Dialog & { app: string }) {
  const [key] = useState(newKey);
  const [appSlug, setApp] = useState(app);
  const [kind, setKind] = useState<GapKind>('MISSING_PRIMITIVE');
  const [title, setTitle] = useState('');
  const [description, setDescription] = useState('');
  const [instance, setInstance] = useState('');
  const [evidence, setEvidence] = useState('');
  const wrong = new Map<string, string>();
  if (appSlug.trim() === '') wrong.set('appSlug', 'Name the app.');
  if (title.trim() === '') wrong.set('title', 'State in a line what is missing.');
  if (description.trim() === '') wrong.set('description', 'State what it was needed for.');
  return (
    <ChangeDialog
      onClose={onClose}
      onDone={onDone}
      change={{
        title: 'Raise a gap',
        act: 'Raise',
        fields: ['appSlug', 'kind', 'title', 'description', 'instanceId', 'evidence'],
        wrong,
        reasonKept: false,
        reasonNeeded: false,
        intro: 'What the platform lacks for an app. The platform’s operators decide it.',
        send: () =>
          tell(RaiseGapDocument, {
            input: {
              appSlug: appSlug.trim(),
              version: '',
              kind,
              title: title.trim(),
              description: description.trim(),
              instanceId: instance.trim() === '' ? null : instance.trim(),
              evidence: evidence.split(/\s+/).filter((each) => each !== ''),
              idempotencyKey: key,
            },
          }),
        form: (errors) => (
          <div className="stack">
            <TextInput
              label="App"
              description="Its short name"
              required
              value={appSlug}
              onChange={(event) => setApp(event.currentTarget.value)}
              error={errors.get('appSlug')}
            />
            <Select
              label="What is missing"
              allowDeselect={false}
              data={Object.entries(kinds).map(([value, label]) => ({ value, label }))}
              value={kind}
              onChange={(next) => next !== null && setKind(next as GapKind)}
              error={errors.get('kind')}
            />
            <TextInput
              label="Title"
              required
              maxLength={200}
              value={title}
              onChange={(event) => setTitle(event.currentTarget.value)}
              error={errors.get('title')}
            />
            <Textarea
              label="Description"
              description="What is missing, and what it was needed for"
              required
              autosize
              minRows={3}
              maxLength={4000}
              value={description}
              onChange={(event) => setDescription(event.currentTarget.value)}
              error={errors.get('description')}
            />
            <TextInput
              label="Workload"
              description="Its id, if the gap was found with one"
              value={instance}
              onChange={(event) => setInstance(event.currentTarget.value)}
              error={errors.get('instanceId')}
            />
            <Textarea
              label="Evidence"
              description="Ids and links, one per line"
              autosize
              value={evidence}
              onChange={(event) => setEvidence(event.currentTarget.value)}
              error={errors.get('evidence')}
            />
          </div>
        ),
      }}
    />
  );
}

/** Decides a gap. */
export function DecideGapDialog({ gap, onClose, onDone }: Dialog & { gap: GapBitsFragment }) {
  const possible = decisionsFrom(gap.state);
  const [to, setTo] = useState<GapState>(possible[0] ?? 'ACCEPTED');
  return (
    <ChangeDialog
      onClose={onClose}
      onDone={onDone}
      change={{
        title: 'Decide a gap',
        act: 'Decide',
        fields: ['to'],
        reasonNeeded: true,
        intro: gap.title,
        send: ({ reason }) => tell(DecideGapDocument, { input: { gapId: gap.id, to, reason: reason ?? '' } }),
        form: (errors) => (
          <Select
            label="Decision"
            allowDeselect={false}
            data={possible.map((value) => ({ value, label: words(value) }))}
            value={to}
            onChange={(next) => next !== null && setTo(next)}
            error={errors.get('to')}
          />
        ),
      }}
    />
  );
}

/** Closes an accepted gap by a release. */
export function CloseGapDialog({ gap, onClose, onDone }: Dialog & { gap: GapBitsFragment }) {
  const [release, setRelease] = useState('');
  const [manifest, setManifest] = useState('');
  const wrong = new Map<string, string>();
  if (release.trim() === '') wrong.set('release', 'Name the release.');
  return (
    <ChangeDialog
      onClose={onClose}
      onDone={onDone}
      change={{
        title: 'Close a gap by a release',
        act: 'Close it',
        dismiss: 'Back',
        fields: ['release', 'manifestId'],
        wrong,
        reasonNeeded: true,
        intro: gap.title,
        send: ({ reason }) =>
          tell(CloseGapDocument, {
            input: {
              gapId: gap.id,
              release: release.trim(),
              manifestId: manifest.trim() === '' ? null : manifest.trim(),
              reason: reason ?? '',
            },
          }),
        form: (errors) => (
          <div className="stack">
            <TextInput
              label="Release"
              description="Of the platform, or an address"
              required
              maxLength={300}
              value={release}
              onChange={(event) => setRelease(event.currentTarget.value)}
              error={errors.get('release')}
            />
            <TextInput
              label="Version of the app"
              description="Its id, if a version has what was missing"
              value={manifest}
              onChange={(event) => setManifest(event.currentTarget.value)}
              error={errors.get('manifestId')}
            />
          </div>
        ),
      }}
    />
  );
}
