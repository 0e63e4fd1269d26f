// A small banner while the live connection is down; pages stay as they are and resume by themselves.
import { Loader } from '@mantine/core';
import { useEffect, useState } from 'react';
import { useLiveStatus } from '../api/hooks';
import { clockTime } from '../lib/format';

/** Milliseconds that the connection may be down before the banner is shown. */
const patience = 700;

/** The banner; empty while the connection is up. */
export function ConnectionBanner() {
  const { state, asOf } = useLiveStatus();
  const down = state === 'reconnecting';
  const [shown, setShown] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setShown(down), down ? patience : 0);
    return () => clearTimeout(timer);
  }, [down]);
  return (
    <div role="status" aria-live="polite">
      {shown && (
        <div className="banner">
          <Loader size={14} color="currentColor" />
          Offline, reconnecting…
          {asOf !== undefined && <span> What you see is as of {clockTime(new Date(asOf).toISOString())}.</span>}
        </div>
      )}
    </div>
  );
}
