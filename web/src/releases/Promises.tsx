// What a version's publisher promises about its upgrade, rollback and deletion.
import { words } from '../lib/format';
import { atKey } from '../lib/schema';
import { Card, Fact } from '../ui/parts';

const parts = ['upgrade', 'rollback', 'delete'] as const;

/** The card; empty when nothing is promised. */
export function Promises({ lifecycle }: { lifecycle: unknown }) {
  if (lifecycle === null || lifecycle === undefined) return null;
  return (
    <Card title="What its publisher promises">
      <dl className="facts">
        {parts.map((part) => (
          <Fact key={part} term={words(part)}>
            <Behaviour value={atKey(lifecycle, part)} />
          </Fact>
        ))}
      </dl>
    </Card>
  );
}

function Behaviour({ value }: { value: unknown }) {
  const mode = atKey(value, 'mode');
  const notes = atKey(value, 'notes');
  const from = atKey(value, 'from');
  if (typeof mode !== 'string') return <span className="faint">—</span>;
  return (
    <>
      {words(mode)}
      <span className="faint">, work {atKey(value, 'keepsWork') === true ? 'continues' : 'ends'}</span>
      {Array.isArray(from) && from.length > 0 && (
        <div className="small">
          from{' '}
          {from
            .filter((each) => typeof each === 'string')
            .map((each) => (
              <code key={each} style={{ marginRight: 6 }}>
                {each}
              </code>
            ))}
        </div>
      )}
      {typeof notes === 'string' && notes !== '' && <div className="small soft">{notes}</div>}
    </>
  );
}
