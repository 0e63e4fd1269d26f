import { Card } from '../ui/parts';

interface Runbook {
  readonly title: string;
  readonly url: string;
  readonly triage: readonly { readonly by: string; readonly do: string }[];
}

/** Links to runbooks with their steps of triage; nothing when there are none. */
export function Runbooks({ runbooks }: { runbooks: readonly Runbook[] }) {
  if (runbooks.length === 0) return null;
  return (
    <Card title="Runbooks">
      <ul className="stack-s" style={{ listStyle: 'none', padding: 0 }}>
        {runbooks.map((each) => (
          <li key={each.url}>
            <a href={each.url} target="_blank" rel="noreferrer noopener">
              {each.title}
            </a>
            {each.triage.length > 0 && (
              <ol className="small soft">
                {each.triage.map((step) => (
                  <li key={`${step.by} ${step.do}`}>
                    By {step.by.replaceAll('_', ' ')}: {step.do}
                  </li>
                ))}
              </ol>
            )}
          </li>
        ))}
      </ul>
    </Card>
  );
}
