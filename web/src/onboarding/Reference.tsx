// A link to a row by its id, or to a page by its address.
import { Link } from '@tanstack/react-router';

/** The link; an id without a page of its own is shown as text. */
export function Reference({ id, url = '' }: { id: string | null; url?: string }) {
  if (id === null || id === '')
    return url === '' ? (
      ''
    ) : (
      <a href={url} rel="noreferrer" target="_blank">
        {url}
      </a>
    );
  const shown = <span className="mono small">{id}</span>;
  if (id.startsWith('https://'))
    return (
      <a href={id} rel="noreferrer" target="_blank">
        {id}
      </a>
    );
  switch (id.split('_')[0]) {
    case 'ins':
      return (
        <Link to="/workloads/$id" params={{ id }}>
          {shown}
        </Link>
      );
    case 'op':
      return (
        <Link to="/operations/$id" params={{ id }}>
          {shown}
        </Link>
      );
    case 'man':
      return (
        <Link to="/releases/$id" params={{ id }}>
          {shown}
        </Link>
      );
    case 'art':
      return (
        <Link to="/artifacts" search={{ id }}>
          {shown}
        </Link>
      );
    case 'gap':
      return (
        <Link to="/gaps" search={{ id }}>
          {shown}
        </Link>
      );
  }
  return shown;
}
