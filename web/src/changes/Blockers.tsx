// The blockers of an operation or a workload, the one to clear first on top.
import type { ReactNode } from 'react';
import { useSession } from '../api/session';
import type { BlockerBitsFragment } from '../generated/graphql';
import { Icon } from '../ui/Icons';
import type { IconName } from '../ui/Icons';
import { Ago, Card, useNow } from '../ui/parts';
import { isUnderWay, ownerWord, untilWord } from './words';

const icons: Readonly<Record<string, IconName>> = {
  adapter: 'operations',
  platform: 'workloads',
  user: 'info',
  node: 'nodes',
};

/**
 * The card; nothing when there are no blockers. `verbs` draws what clears a blocker; `nameOf` returns the name by which
 * people know an id.
 */
export function BlockersCard({
  blockers,
  title,
  verbs = () => null,
  nameOf = () => undefined,
}: {
  blockers: readonly BlockerBitsFragment[];
  title: string;
  verbs?: (blocker: BlockerBitsFragment) => ReactNode;
  nameOf?: (id: string) => string | undefined;
}) {
  const { can } = useSession();
  const now = useNow(1_000);
  if (blockers.length === 0) return null;
  const stuck = blockers.some((each) => !isUnderWay(each.code));
  return (
    <Card title={title} pad={false} label={title} className={stuck ? 'blocker-card' : ''}>
      <ol className="blockers">
        {blockers.map((each, at) => (
          <li
            key={`${each.code} ${each.subject}`}
            className={isUnderWay(each.code) ? 'tone-busy' : at === 0 ? 'tone-warn' : 'tone-idle'}
            data-blocker={each.code}
            data-owner={each.owner}
          >
            <Icon name={icons[each.owner] ?? 'info'} size={17} />
            <div>
              <div className="said wrap-any">{withNames(each.message, nameOf)}</div>
              <div className="tail">
                <code>{each.code}</code>
                <span>{ownerWord(each.owner)}</span>
                {each.subject !== '' && <Subject id={each.subject} name={nameOf(each.subject)} />}
                <span>
                  since <Ago at={each.since} />
                </span>
                {each.nextRetryAt !== null && (
                  <span className="num">next attempt {untilWord(each.nextRetryAt, now)}</span>
                )}
                {each.permissionKey !== '' && (
                  <span>
                    can be cleared with the permission <code>{each.permissionKey}</code>, which you{' '}
                    {can(each.permissionKey) ? 'have' : 'do not have'}
                  </span>
                )}
              </div>
              {verbs(each)}
            </div>
          </li>
        ))}
      </ol>
    </Card>
  );
}

/** The object of a blocker: by its name, or else by its id. */
function Subject({ id, name }: { id: string; name: string | undefined }) {
  return name === undefined ? <span className="mono">{id}</span> : <span title={id}>{name}</span>;
}

/** Returns a text with the names of the members in it. */
export function withNames(text: string, nameOf: (id: string) => string | undefined): string {
  return text.replace(/\bmem_[0-9a-z]{26}\b/g, (id) => nameOf(id) ?? id);
}
