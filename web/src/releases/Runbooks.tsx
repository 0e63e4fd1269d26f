import { Card } from '../ui/parts';

/** Links to runbooks; nothing when there are none. */
export function Runbooks({ runbooks }: { runbooks: readonly { readonly title: string; readonly url: string }[] }) {
  if (runbooks.length === 0) return null;
  return (
    <Card title="Runbooks">
      <ul className="stack-s" style={{ listStyle: 'none', padding: 0 }}>
        {runbooks.map((each) => (
          <li key={each.url}>
            <a href={each.url} target="_blank" rel="noreferrer noopener">
              {each.title}
            </a>
          </li>
        ))}
      </ul>
    </Card>
  );
}
