// Checking whether a subject has a permission in this project.
import { Button, Select, TextInput } from '@mantine/core';
import { useState } from 'react';
import type { SyntheticEvent } from 'react';
import { useRead } from '../api/hooks';
import { useProjectId, useSession } from '../api/session';
import { RolesDocument } from '../generated/graphql';
import { Card } from '../ui/parts';
import { Why } from './Why';
import { usePeople } from './usePeople';

interface Question {
  key: string;
  subjectId: string | null;
  objectId: string;
}

/** The form, and below it the answer with its grounds. */
export function CheckTab() {
  const projectId = useProjectId();
  const { viewer } = useSession();
  const { data } = useRead(RolesDocument, {});
  const people = usePeople();
  const [draft, setDraft] = useState<Question>({ key: 'apps.instance.create', subjectId: null, objectId: '' });
  const [asked, setAsked] = useState<Question>();
  const send = (event: SyntheticEvent) => {
    event.preventDefault();
    setAsked(draft);
  };
  const subjects = [
    { value: '', label: `${viewer.actor.name} (you)` },
    ...people.list
      .filter((each) => each.id !== viewer.actor.id)
      .map((each) => ({ value: each.id, label: each.displayName })),
  ];
  return (
    <Card title="Check a permission">
      <form className="stack" onSubmit={send}>
        <div className="form-grid">
          <Select
            label="Who"
            data={subjects}
            value={draft.subjectId ?? ''}
            onChange={(next) => setDraft({ ...draft, subjectId: next === null || next === '' ? null : next })}
            allowDeselect={false}
            searchable
          />
          <Select
            label="Permission key"
            data={(data?.permissionKeys ?? []).map((each) => ({ value: each.name, label: each.name }))}
            value={draft.key}
            onChange={(next) => setDraft({ ...draft, key: next ?? draft.key })}
            searchable
            allowDeselect={false}
            description={data?.permissionKeys.find((each) => each.name === draft.key)?.description}
          />
          <TextInput
            label="On which object"
            description="The id of an object; leave empty for this project"
            placeholder={projectId}
            maxLength={40}
            value={draft.objectId}
            onChange={(event) => setDraft({ ...draft, objectId: event.currentTarget.value })}
          />
        </div>
        <div className="row" style={{ justifyContent: 'flex-end' }}>
          <Button type="submit">Check</Button>
        </div>
        {asked !== undefined && (
          <Why
            permissionKey={asked.key}
            subjectId={asked.subjectId}
            objectId={asked.objectId.trim() === '' ? projectId : asked.objectId.trim()}
          />
        )}
      </form>
    </Card>
  );
}
