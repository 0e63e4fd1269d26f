// The allocations for a launch: the project's free allocations, each with its verdict.
import { Button, Checkbox, Switch } from '@mantine/core';
import { useState } from 'react';
import { RequestDialog } from '../allocations/RequestDialog';
import { useSession } from '../api/session';
import { allocationName, shapeName } from '../lib/capacity';
import type { LaunchOptionsQuery } from '../generated/graphql';
import { plural } from '../lib/format';
import { Icon } from '../ui/Icons';
import { Status } from '../ui/Status';

type Verdict = LaunchOptionsQuery['launchOptions']['allocations'][number];

/** Checkboxes for the allocations; those that do not fit show the reasons. */
export function AllocationPicker({
  verdicts,
  chosen,
  onChange,
  error,
  onRequested,
}: {
  verdicts: readonly Verdict[];
  chosen: readonly string[];
  onChange: (chosen: readonly string[]) => void;
  error: string | undefined;
  onRequested: () => void;
}) {
  const { can } = useSession();
  const [together, setTogether] = useState(false);
  const [asking, setAsking] = useState(false);
  const unfit = verdicts.filter((verdict) => !verdict.compatible);
  const toggle = (id: string) => onChange(chosen.includes(id) ? chosen.filter((each) => each !== id) : [...chosen, id]);
  const sorted = [...verdicts].sort((a, b) => Number(b.compatible) - Number(a.compatible));
  return (
    <div className="stack-s" role="group" aria-label="Allocations">
      {sorted.map((verdict) => (
        <Pick
          key={verdict.allocation.id}
          verdict={verdict}
          on={chosen.includes(verdict.allocation.id)}
          enabled={verdict.compatible || together}
          toggle={() => toggle(verdict.allocation.id)}
        />
      ))}
      {verdicts.length === 0 && <p className="soft">The project has no allocation that is ready and free.</p>}
      <div className="row" style={{ justifyContent: 'space-between' }}>
        {can('allocation.create') && (
          <Button
            variant="default"
            size="compact-sm"
            leftSection={<Icon name="plus" size={14} />}
            onClick={() => setAsking(true)}
          >
            Request capacity
          </Button>
        )}
        {unfit.length > 1 && (
          <Switch
            size="xs"
            label="Also offer those that do not fit on their own"
            checked={together}
            onChange={(event) => setTogether(event.currentTarget.checked)}
          />
        )}
      </div>
      {error !== undefined && (
        <p className="small" role="alert" style={{ color: 'var(--bad)' }}>
          {error}
        </p>
      )}
      <RequestDialog opened={asking} onClose={() => setAsking(false)} onDone={onRequested} />
    </div>
  );
}

function Pick({
  verdict,
  on,
  enabled,
  toggle,
}: {
  verdict: Verdict;
  on: boolean;
  enabled: boolean;
  toggle: () => void;
}) {
  const { allocation, compatible, reasons } = verdict;
  const facts = [
    shapeName(allocation.shape),
    plural(allocation.gpuCount, 'GPU'),
    allocation.sku,
    allocation.region,
    allocation.node?.name,
  ].filter(Boolean);
  return (
    // eslint-disable-next-line jsx-a11y/click-events-have-key-events, jsx-a11y/no-static-element-interactions -- a larger target for the checkbox inside, which has the keyboard
    <div
      className={`pick${on ? ' on' : ''}${enabled ? '' : ' off'}`}
      data-allocation={allocation.id}
      data-compatible={compatible}
      onClick={enabled ? toggle : undefined}
    >
      <Checkbox
        checked={on}
        disabled={!enabled}
        onChange={toggle}
        onClick={(event) => event.stopPropagation()}
        aria-label={`${allocationName(allocation)}, ${compatible ? 'fits' : 'does not fit'}`}
        mt={2}
      />
      <div className="grow">
        <div className="row" style={{ justifyContent: 'space-between' }}>
          <span className="strong">{allocationName(allocation)}</span>
          <Status state={compatible ? 'HEALTHY' : 'FAILED'} label={compatible ? 'Fits' : 'Does not fit'} />
        </div>
        <div className="small faint">{facts.join(' · ')}</div>
        {reasons.length > 0 && (
          <ul>
            {reasons.map((reason, at) => (
              <li key={at}>
                {reason.message} <code>{reason.code}</code>
              </li>
            ))}
          </ul>
        )}
      </div>
    </div>
  );
}
