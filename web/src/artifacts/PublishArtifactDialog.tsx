// Publishing an artifact from one of the registered sources.
import { Switch, TextInput } from '@mantine/core';
import { useRef, useState } from 'react';
import { useSender } from '../api/hooks';
import { useSession } from '../api/session';
import { ChangeDialog } from '../changes/ChangeDialog';
import { PublishArtifactDocument } from '../generated/graphql';

/** The dialog; `onDone` gets the artifact's id. */
export function PublishArtifactDialog({ onClose, onDone }: { onClose: () => void; onDone: (id: string | undefined) => void }) {
  const { project, staff } = useSession();
  const publish = useSender(PublishArtifactDocument);
  const [name, setName] = useState('');
  const [ref, setRef] = useState('');
  const [digest, setDigest] = useState('');
  const [own, setOwn] = useState(!staff);
  const made = useRef<string>(undefined); // read when the dialog is done, before it is drawn again
  const wrong = new Map<string, string>();
  if (name.trim() === '') wrong.set('name', 'Give it a name.');
  if (ref.trim() === '') wrong.set('ref', 'Say where it lies.');
  if (ref.startsWith('http') && digest.trim() === '') wrong.set('digest', 'A file is published by its digest.');
  const send = async () => {
    const answer = await publish({ name: name.trim(), ref: ref.trim(), digest: digest.trim() === '' ? null : digest.trim(), projectId: own ? project?.id ?? null : null });
    made.current = answer.data?.publishArtifact.id;
    return answer;
  };
  return (
    <ChangeDialog
      onClose={onClose} onDone={() => onDone(made.current)}
      change={{
        title: 'Publish an artifact', act: 'Publish', fields: ['name', 'ref', 'digest', 'projectId', 'mediaType'], wrong, reasonNeeded: false, send,
        intro: 'Every byte of it is read and held against its digest, and its signature against the keys that its source trusts. A large one takes a while.',
        form: (errors) => (
          <div className="stack">
            <TextInput label="Name" required maxLength={100} value={name} onChange={(event) => setName(event.currentTarget.value)} error={errors.get('name')} data-autofocus />
            <TextInput label="Where it lies" description="host/repository@sha256:…, host/repository:tag, or a file’s https address" required maxLength={1000} spellCheck={false} value={ref} onChange={(event) => setRef(event.currentTarget.value)} error={errors.get('ref')} />
            <TextInput label="Digest" description="sha256:…; needed for a file" maxLength={71} spellCheck={false} value={digest} onChange={(event) => setDigest(event.currentTarget.value)} error={errors.get('digest')} />
            {staff && <Switch label={`For the project ${project?.displayName ?? ''} alone, and not for the platform`} checked={own} onChange={(event) => setOwn(event.currentTarget.checked)} />}
          </div>
        ),
      }}
    />
  );
}
