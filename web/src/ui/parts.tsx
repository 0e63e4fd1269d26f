// Small parts that every page uses.
import { Button, Tooltip } from '@mantine/core';
import { useEffect, useState } from 'react';
import type { CSSProperties, ReactNode } from 'react';
import { useLiveStatus } from '../api/hooks';
import { ago, fullTime } from '../lib/format';
import { Icon } from './Icons';
import type { IconName } from './Icons';

/** A page's head: breadcrumb, title and actions. It also sets the title of the browser's tab. */
export function PageHead({
  title,
  lede,
  crumbs,
  actions,
  mark,
}: {
  title: string;
  lede?: ReactNode;
  crumbs?: ReactNode;
  actions?: ReactNode;
  mark?: ReactNode;
}) {
  useEffect(() => {
    document.title = `${title} · GPUaaS`;
  }, [title]);
  return (
    <header className="page-head">
      <div className="row grow" style={{ alignItems: 'flex-start', flexWrap: 'nowrap', gap: 14 }}>
        {mark}
        <div className="grow">
          {crumbs !== undefined && (
            <nav className="crumbs" aria-label="Breadcrumb">
              {crumbs}
            </nav>
          )}
          <h1 className="wrap-any">{title}</h1>
          {lede !== undefined && <div className="lede">{lede}</div>}
        </div>
      </div>
      {actions !== undefined && <div className="page-actions">{actions}</div>}
    </header>
  );
}

/** A box with an optional head. */
export function Card({
  title,
  aside,
  children,
  pad = true,
  label,
  className = '',
}: {
  title?: ReactNode;
  aside?: ReactNode;
  children: ReactNode;
  pad?: boolean;
  label?: string;
  className?: string;
}) {
  return (
    <section className={`card ${className}`} aria-label={label}>
      {title !== undefined && (
        <div className="card-head">
          <h2>{title}</h2>
          {aside}
        </div>
      )}
      {pad ? <div className="card-body">{children}</div> : children}
    </section>
  );
}

/** The placeholder of a list or card without content. */
export function Empty({
  icon,
  title,
  children,
  action,
}: {
  icon: IconName;
  title: string;
  children?: ReactNode;
  action?: ReactNode;
}) {
  return (
    <div className="empty">
      <Icon name={icon} size={34} />
      <h2>{title}</h2>
      {children !== undefined && <p>{children}</p>}
      {action}
    </div>
  );
}

/** Grey lines while data is loading. */
export function Loading({ lines = 4 }: { lines?: number }) {
  return (
    <div className="card-body stack-s waiting" role="status" aria-label="Loading">
      {Array.from({ length: lines }, (_, line) => (
        <i key={line} />
      ))}
    </div>
  );
}

/** Returns the current time, updated every `every` milliseconds; while disconnected, the platform's last answer. */
export function useNow(every = 5_000): number {
  const { asOf } = useLiveStatus();
  const [now, setNow] = useState(() => Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), every);
    return () => clearInterval(timer);
  }, [every]);
  return asOf ?? now;
}

/** How long ago an instant was; a tooltip shows the exact time. */
export function Ago({ at }: { at: string | null }) {
  const now = useNow();
  if (at === null) return <span className="faint">—</span>;
  return (
    <Tooltip label={fullTime(at)}>
      <time dateTime={at} className="num">
        {ago(at, now)}
      </time>
    </Tooltip>
  );
}

/** A text that a click copies, such as an id. */
export function Copy({ value, shown, what }: { value: string; shown?: string; what: string }) {
  const [copied, setCopied] = useState(false);
  useEffect(() => {
    if (!copied) return undefined;
    const timer = setTimeout(() => setCopied(false), 1_600);
    return () => clearTimeout(timer);
  }, [copied]);
  return (
    <button type="button" className="copy" onClick={() => void copyText(value).then(setCopied)}>
      <span className="hidden-visually">Copy {what} </span>
      <span className="mono">{shown ?? value}</span>
      <Icon name={copied ? 'check' : 'copy'} size={13} />
      <span className="hidden-visually" role="status">
        {copied ? 'Copied' : ''}
      </span>
    </button>
  );
}

/** A button that copies a text which is shown elsewhere. */
export function CopyButton({ value, what }: { value: string; what: string }) {
  const [copied, setCopied] = useState(false);
  useEffect(() => {
    if (!copied) return undefined;
    const timer = setTimeout(() => setCopied(false), 1_600);
    return () => clearTimeout(timer);
  }, [copied]);
  return (
    <Button size="compact-xs" variant="subtle" onClick={() => void copyText(value).then(setCopied)}>
      {copied ? 'Copied' : 'Copy'}
      <span className="hidden-visually"> {what}</span>
    </Button>
  );
}

/** Copies text and reports whether it succeeded. The clipboard API exists in secure contexts only. */
async function copyText(value: string): Promise<boolean> {
  const clipboard = (navigator as { clipboard?: Clipboard }).clipboard;
  if (clipboard !== undefined) {
    return clipboard.writeText(value).then(
      () => true,
      () => false,
    );
  }
  const area = document.createElement('textarea');
  area.value = value;
  document.body.append(area);
  area.select();
  // eslint-disable-next-line @typescript-eslint/no-deprecated -- the only way over plain HTTP
  const done = document.execCommand('copy');
  area.remove();
  return done;
}

/** A value as indented JSON. */
export function Json({ value, label }: { value: unknown; label: string }) {
  // A box that scrolls must be reachable with the keyboard.
  return (
    <pre className="json" role="region" tabIndex={0} aria-label={label}>
      {JSON.stringify(value, null, 2)}
    </pre>
  );
}

/** A term and its value in a list of facts. */
export function Fact({ term, children }: { term: string; children: ReactNode }) {
  return (
    <>
      <dt>{term}</dt>
      <dd>{children}</dd>
    </>
  );
}

/** An app's tile: its initials on a colour derived from its slug. */
export function Glyph({ slug, size = 40 }: { slug: string; size?: number }) {
  const parts = slug.split('-').filter(Boolean);
  const initials =
    parts.length > 1
      ? parts
          .slice(0, 2)
          .map((part) => part.charAt(0))
          .join('')
      : slug.slice(0, 2);
  const hue = Array.from(slug).reduce((sum, letter) => (sum * 31 + letter.charCodeAt(0)) % 360, 7);
  const style = {
    '--hue': hue,
    width: size,
    height: size,
    fontSize: size * 0.38,
    borderRadius: size * 0.24,
  } as CSSProperties;
  return (
    <span className="glyph" style={style} aria-hidden="true">
      {initials.charAt(0).toUpperCase() + initials.slice(1)}
    </span>
  );
}

/** An app's icon, or its tile when it has no icon. A publisher's icon is shown as an image, never as markup. */
export function AppIcon({ slug, icon, size = 40 }: { slug: string; icon: string; size?: number }) {
  if (!icon.startsWith('data:image/')) return <Glyph slug={slug} size={size} />;
  return (
    <img
      src={icon}
      alt=""
      width={size}
      height={size}
      style={{ borderRadius: size * 0.24, flex: 'none', objectFit: 'cover' }}
    />
  );
}

/** A column of a table: its head and how its cells are drawn. */
export interface Column<Row> {
  readonly head: string;
  readonly cell: (row: Row) => ReactNode;
  readonly right?: boolean;
}

/** Rows in columns; on a phone each row becomes a card with its heads beside the values. */
export function DataTable<Row>({
  label,
  columns,
  rows,
  keyOf,
}: {
  label: string;
  columns: readonly Column<Row>[];
  rows: readonly Row[];
  keyOf: (row: Row) => string;
}) {
  return (
    // A box that scrolls must be reachable with the keyboard.
    <div className="table-box" role="region" tabIndex={0} aria-label={label}>
      <table className="table cards" aria-label={label}>
        <thead>
          <tr>
            {columns.map((column) => (
              <th key={column.head} scope="col" className={column.right === true ? 'right' : undefined}>
                {column.head}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={keyOf(row)}>
              {columns.map((column) => (
                <td key={column.head} data-label={column.head} className={column.right === true ? 'right' : undefined}>
                  {column.cell(row)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
