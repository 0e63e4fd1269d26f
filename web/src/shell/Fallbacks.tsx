// What is shown where there is no page, or where a page failed.
import { Button } from '@mantine/core';
import { Link } from '@tanstack/react-router';
import { pageClass, placeAt } from '../lib/places';
import { Empty, Loading, PageHead } from '../ui/parts';
import { NotLoaded } from './chunk';

/** A path without a page. */
export function MissingPage() {
  return (
    <main className="main">
      <div className="page">
        <div className="card">
          <Empty
            icon="search"
            title="This page does not exist"
            action={<Link to="/workloads">Go to the workloads</Link>}
          >
            <code className="wrap-any">{location.pathname}</code> is not a page of the console.
          </Empty>
        </div>
      </div>
    </main>
  );
}

/** The console itself failed: not even its frame can be drawn. */
export function BrokenPage({ error }: { error: unknown }) {
  return (
    <main className="main">
      <FailedPage error={error} />
    </main>
  );
}

/** A page that could not be loaded, or that threw an error: a bug of the console itself. */
export function FailedPage({ error }: { error: unknown }) {
  return (
    <div className="page">
      <div className="card">
        <Empty
          icon="warn"
          title={error instanceof NotLoaded ? 'This page could not be loaded' : 'This page of the console failed'}
          action={
            <Button variant="default" onClick={() => location.reload()}>
              Load the page again
            </Button>
          }
        >
          {error instanceof NotLoaded
            ? 'The console may have a new version, or its server cannot be reached. '
            : 'Nothing on the platform is affected. '}
          <code className="wrap-any">{error instanceof Error ? error.message : String(error)}</code>
        </Empty>
      </div>
    </div>
  );
}

/** The place of a page while its chunk is loaded, with its head if the navigation leads to it. */
export function LoadingPage() {
  const place = placeAt(location.pathname);
  return (
    <div className={pageClass(place)}>
      {place !== undefined && <PageHead title={place.title} lede={place.lede} />}
      <div className="card">
        <Loading lines={6} />
      </div>
    </div>
  );
}
