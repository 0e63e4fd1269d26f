// The steps of an artifact or a version from stage to stage.
import type { StepBitsOfStageFragment } from '../generated/graphql';
import { Status } from '../ui/Status';
import { Ago, Card, Empty } from '../ui/parts';

/** The card, newest first. */
export function HistoryCard({ history }: { history: readonly StepBitsOfStageFragment[] }) {
  return (
    <Card title="History" label="History">
      {history.length === 0 && <Empty icon="clock" title="No steps yet" />}
      <ol className="stack-s" style={{ listStyle: 'none', padding: 0 }}>
        {history.map((each) => (
          <li key={each.id} data-step={each.to}>
            <div className="row">
              <Status state={each.from} bare />→<Status state={each.to} />
              {each.canaryPercent !== null && <span className="tag">{each.canaryPercent} %</span>}
              <span className="small faint">
                <Ago at={each.createdAt} />
              </span>
            </div>
            <div className="small soft">
              {each.actor.name === '' ? each.actor.id : each.actor.name}
              {each.reason !== '' && <>: {each.reason}</>}
            </div>
            {each.override !== '' && <div className="small soft">Terms set aside: {each.override}</div>}
          </li>
        ))}
      </ol>
    </Card>
  );
}
