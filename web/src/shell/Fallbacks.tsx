// What is shown where there is no page, or where a page failed.
import { Button } from '@mantine/core';
import { Link } from '@tanstack/react-router';
import { Empty } from '../ui/parts';

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

/** A page that threw an error: a bug of the console itself. */
export function BrokenPage({ error }: { error: unknown }) {
  return (
    <main className="main">
      <div className="page">
        <div className="card">
          <Empty
            icon="warn"
            title="This page of the console failed"
            action={
              <Button variant="default" onClick={() => location.reload()}>
                Load the page again
              </Button>
            }
          >
            Nothing on the platform is affected.{' '}
            <code className="wrap-any">{error instanceof Error ? error.message : String(error)}</code>
          </Empty>
        </div>
      </div>
    </main>
  );
}
