// The blockers of an operation or a workload, the one to clear first on top.
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

/** The card; nothing when there are no blockers. */
export function BlockersCard({ blockers, title }: { blockers: readonly BlockerBitsFragment[]; title: string }) {
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
              <div className="said wrap-any">{each.message}</div>
              <div className="tail">
                <code>{each.code}</code>
                <span>{ownerWord(each.owner)}</span>
                {each.subject !== '' && <span className="mono">{each.subject}</span>}
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
            </div>
          </li>
        ))}
      </ol>
    </Card>
  );
}
