// Verbs that the person may not use are shown disabled, with the answer: which permission is needed, and who can give it.
import { Button, Menu, Tooltip } from '@mantine/core';
import { ask } from '../api/hooks';
import { ExplainPermissionDocument } from '../generated/graphql';
import { useEffect, useState } from 'react';

/** Returns the answer to "why can't I?" on an object, as one sentence. */
export function useAnswer(permissionKey: string, objectId: string): string {
  const [whom, setWhom] = useState<readonly string[]>([]);
  useEffect(() => {
    let gone = false;
    void ask(ExplainPermissionDocument, { input: { permissionKey, objectId, subjectId: null } }).then((answer) => {
      if (!gone && answer.data !== undefined)
        setWhom(answer.data.explainPermission.askWhom.map((actor) => (actor.name === '' ? actor.id : actor.name)));
    });
    return () => {
      gone = true;
    };
  }, [permissionKey, objectId]);
  return answerOf(permissionKey, whom);
}

/** Returns the sentence; where no person can give it, it names the platform's operators. */
export function answerOf(permissionKey: string, whom: readonly string[]): string {
  const shown = whom.slice(0, 3).join(', ');
  return `You need the permission ${permissionKey}. Ask ${shown === '' ? 'the platform’s operators' : shown}.`;
}

/** A button that only states why; it can be focused, so that the keyboard finds the answer too. */
export function DeniedButton({
  label,
  permissionKey,
  objectId,
  size = 'sm',
}: {
  label: string;
  permissionKey: string;
  objectId: string;
  size?: 'compact-xs' | 'xs' | 'sm';
}) {
  const answer = useAnswer(permissionKey, objectId);
  return (
    <Tooltip label={answer} multiline maw={320} events={{ hover: true, focus: true, touch: true }}>
      <Button
        variant="default"
        size={size}
        data-disabled
        aria-disabled="true"
        data-denied={permissionKey}
        onClick={(event) => event.preventDefault()}
      >
        {label}
        <span className="hidden-visually">. {answer}</span>
      </Button>
    </Tooltip>
  );
}

/** An item of a menu that only states why. */
export function DeniedItem({
  label,
  permissionKey,
  objectId,
}: {
  label: string;
  permissionKey: string;
  objectId: string;
}) {
  const answer = useAnswer(permissionKey, objectId);
  return (
    <Menu.Item component="div" data-disabled aria-disabled="true" data-denied={permissionKey} closeMenuOnClick={false}>
      {label}
      <span className="sub" style={{ maxWidth: 260, whiteSpace: 'normal' }}>
        {answer}
      </span>
    </Menu.Item>
  );
}
