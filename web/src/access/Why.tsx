// "Why can't I?": what grants a permission, or comes closest to granting it.
import { Modal } from '@mantine/core';
import { useRead } from '../api/hooks';
import { ExplainPermissionDocument } from '../generated/graphql';
import type { ExplainPermissionQuery, GroundBitsFragment } from '../generated/graphql';
import { fullTime, words } from '../lib/format';
import { objectOf } from './missing';
import { Icon } from '../ui/Icons';
import { Notice, ProblemNotice } from '../ui/Problem';
import { Copy, Loading } from '../ui/parts';

type Explanation = ExplainPermissionQuery['explainPermission'];

/** The dialog of the button: an explanation for each permission that was missing. */
export function WhyDialog({
  keys,
  opened,
  onClose,
}: {
  keys: readonly string[];
  opened: boolean;
  onClose: () => void;
}) {
  return (
    <Modal opened={opened} onClose={onClose} title={<b>Why can’t I?</b>} size="lg">
      <div className="stack">
        {opened &&
          keys.map((key) => (
            <Why key={key} permissionKey={key} objectId={objectOf(location.pathname)} subjectId={null} />
          ))}
      </div>
    </Modal>
  );
}

/** Whether a subject has a permission, with the grounds; without a subject, for the caller. */
export function Why({
  permissionKey,
  objectId,
  subjectId,
}: {
  permissionKey: string;
  objectId: string | null;
  subjectId: string | null;
}) {
  const { data, problem, refresh } = useRead(ExplainPermissionDocument, {
    input: { permissionKey, objectId, subjectId },
  });
  if (data === undefined)
    return problem === undefined ? <Loading lines={4} /> : <ProblemNotice problem={problem} onRetry={refresh} />;
  return <Answer explanation={data.explainPermission} />;
}

function Answer({ explanation }: { explanation: Explanation }) {
  const { allowed, because, missing, askWhom } = explanation;
  return (
    <section className="stack-s" data-why={explanation.permissionKey} data-allowed={allowed}>
      <Notice tone={allowed ? 'good' : 'warn'} icon={allowed ? 'check' : 'audit'} role="status">
        <b>
          {allowed ? 'Allowed' : 'Not allowed'}: <code>{explanation.permissionKey}</code>
        </b>
        <p>
          {explanation.description} {allowed ? 'It is granted by:' : 'These come closest to granting it:'}
        </p>
      </Notice>
      <ul className="verdicts">
        {(allowed ? because : missing).map((ground) => (
          <Ground key={ground.id} ground={ground} />
        ))}
      </ul>
      {!allowed && askWhom.length > 0 && (
        <p className="small">
          Ask {askWhom.map((actor) => (actor.name === '' ? actor.id : actor.name)).join(', ')}: they can grant it.
        </p>
      )}
      {!allowed && askWhom.length === 0 && (
        <p className="small faint">No one in this scope can grant it; ask the platform’s operators.</p>
      )}
    </section>
  );
}

function Ground({ ground }: { ground: GroundBitsFragment }) {
  return (
    <li className="tone-idle">
      <Icon name="right" size={15} />
      <span>
        <b>{ground.role === '' ? words(ground.kind) : words(ground.role)}</b>
        {ground.scope !== '' && <span className="soft"> on the {ground.scope.toLowerCase()}</span>}
        <span className="msg said">{ground.message}</span>
        {ground.breakGlass && <span className="msg">Given under break-glass</span>}
        {ground.expiresAt !== null && <span className="msg">Ends {fullTime(ground.expiresAt)}</span>}
        {ground.rowId !== '' && (
          <span className="msg small">
            <Copy value={ground.rowId} what="id" />
          </span>
        )}
      </span>
    </li>
  );
}
