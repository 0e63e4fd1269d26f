// Publishing an artifact from one of the registered sources.
import { Switch, TextInput } from '@mantine/core';
import { useRef, useState } from 'react';
import { useSender } from '../api/hooks';
import { useSession } from '../api/session';
import { ChangeDialog } from '../changes/ChangeDialog';
import { PublishArtifactDocument } from '../generated/graphql';

/** The dialog; `onDone` receives the artifact's id. */
export function PublishArtifactDialog({
  onClose,
  onDone,
}: {
  onClose: () => void;
  onDone: (id: string | undefined) => void;
}) {
  const { project, staff } = useSession();
  const publish = useSender(PublishArtifactDocument);
  const [name, setName] = useState('');
  const [ref, setRef] = useState('');
  const [digest, setDigest] = useState('');
  const [own, setOwn] = useState(!staff);
  const made = useRef<string>(undefined); // read when the dialog is done, before it is drawn again
  const wrong = new Map<string, string>();
  if (name.trim() === '') wrong.set('name', 'Enter a name.');
  if (ref.trim() === '') wrong.set('ref', 'Enter its address.');
  if (ref.startsWith('http') && digest.trim() === '') wrong.set('digest', 'A file needs a digest.');
  const send = async () => {
    const answer = await publish({
      name: name.trim(),
      ref: ref.trim(),
      digest: digest.trim() === '' ? null : digest.trim(),
      projectId: own ? (project?.id ?? null) : null,
    });
    made.current = answer.data?.publishArtifact.id;
    return answer;
  };
  return (
    <ChangeDialog
      onClose={onClose}
      onDone={() => onDone(made.current)}
      change={{
        title: 'Publish an artifact',
        act: 'Publish',
        fields: ['name', 'ref', 'digest', 'projectId', 'mediaType'],
        wrong,
        reasonNeeded: false,
        reasonKept: false,
        send,
        intro:
          'Every byte is read and checked against the digest, and the signature against the keys that the source trusts. A large artifact takes a while.',
        form: (errors) => (
          <div className="stack">
            <TextInput
              label="Name"
              required
              maxLength={100}
              value={name}
              onChange={(event) => setName(event.currentTarget.value)}
              error={errors.get('name')}
              data-autofocus
            />
            <TextInput
              label="Address"
              description="host/repository@sha256:…, host/repository:tag, or a file’s https address"
              required
              maxLength={1000}
              spellCheck={false}
              value={ref}
              onChange={(event) => setRef(event.currentTarget.value)}
              error={errors.get('ref')}
            />
            <TextInput
              label="Digest"
              description="sha256:…; required for a file"
              maxLength={71}
              spellCheck={false}
              value={digest}
              onChange={(event) => setDigest(event.currentTarget.value)}
              error={errors.get('digest')}
            />
            {staff && (
              <Switch
                label={`For the project ${project?.displayName ?? ''} only, not for the whole platform`}
                checked={own}
                onChange={(event) => setOwn(event.currentTarget.checked)}
              />
            )}
          </div>
        ),
      }}
    />
  );
}
