import { labelsOf } from '../lifecycle/labels';

/** A member's labels as tags; empty without labels. */
export function Labels({ value }: { value: unknown }) {
  const labels = Object.entries(labelsOf(value)).sort(([a], [b]) => a.localeCompare(b));
  if (labels.length === 0) return null;
  return (
    <span className="labels">
      {labels.map(([name, text]) => (
        <span key={name} className="tag mono">
          {name}={text}
        </span>
      ))}
    </span>
  );
}
