// A small word when the live connection is down; pages stay as they are and go on by themselves.
import { Loader } from '@mantine/core';
import { useEffect, useState } from 'react';
import { useLiveStatus } from '../api/hooks';

/** Milliseconds that the connection may be down before anything is said. */
const patience = 700;

/** The banner; empty while all is well. */
export function ConnectionBanner() {
  const { state } = useLiveStatus();
  const down = state === 'reconnecting';
  const [shown, setShown] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setShown(down), down ? patience : 0);
    return () => clearTimeout(timer);
  }, [down]);
  return (
    <div role="status" aria-live="polite">
      {shown && <div className="banner"><Loader size={14} color="currentColor" />Reconnecting…</div>}
    </div>
  );
}
