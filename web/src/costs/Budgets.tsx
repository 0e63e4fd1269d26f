// The budgets of a project: what may be spent, what is spent, what happens at the limit; set, changed and removed here.
import { Button } from '@mantine/core';
import { useState } from 'react';
import { tell } from '../api/hooks';
import { useSession } from '../api/session';
import { AskDialog } from '../changes/AskDialog';
import { RemoveBudgetDocument } from '../generated/graphql';
import type { BudgetBitsFragment } from '../generated/graphql';
import { words } from '../lib/format';
import { amount } from '../lib/money';
import { Icon } from '../ui/Icons';
import { DataTable } from '../ui/parts';
import { BudgetDialog } from './BudgetDialog';
import { outcomes } from './budget';

type Asked = { what: 'set'; row: BudgetBitsFragment | undefined } | { what: 'remove'; row: BudgetBitsFragment };

/** The card of a project's budgets. */
export function Budgets({
  budgets,
  currency,
  refresh,
}: {
  budgets: readonly BudgetBitsFragment[];
  currency: string;
  refresh: () => void;
}) {
  const { can } = useSession();
  const [asked, setAsked] = useState<Asked>();
  const manage = can('budget.manage');
  const close = () => setAsked(undefined);
  const actions = {
    head: '',
    right: true,
    cell: (row: BudgetBitsFragment) => (
      <span className="row" style={{ justifyContent: 'flex-end' }}>
        <Button size="compact-xs" variant="default" onClick={() => setAsked({ what: 'set', row })}>
          Change
        </Button>
        <Button size="compact-xs" variant="default" onClick={() => setAsked({ what: 'remove', row })}>
          Remove
        </Button>
      </span>
    ),
  };
  return (
    <section className="card" aria-label="Budgets">
      <header className="card-head">
        <h2>Budgets</h2>
        {manage && (
          <Button
            size="compact-sm"
            variant="default"
            leftSection={<Icon name="plus" size={14} />}
            onClick={() => setAsked({ what: 'set', row: undefined })}
          >
            Set a budget
          </Button>
        )}
      </header>
      {budgets.length === 0 ? (
        <div className="card-body soft">No budget is set: nothing limits what may be spent.</div>
      ) : (
        <DataTable
          label="Budgets"
          columns={manage ? [...budgetColumns, actions] : budgetColumns}
          rows={[...budgets]}
          keyOf={(row) => row.id}
        />
      )}
      {asked?.what === 'set' && (
        <BudgetDialog budget={asked.row} currency={currency} onClose={close} onDone={refresh} />
      )}
      {asked?.what === 'remove' && (
        <AskDialog
          title="Remove the budget"
          act="Remove"
          danger
          reasonNeeded
          send={(reason) => tell(RemoveBudgetDocument, { budgetId: asked.row.id, reason: reason ?? '' })}
          onClose={close}
          onDone={refresh}
        >
          This budget then no longer limits what may be spent.
        </AskDialog>
      )}
    </section>
  );
}

const budgetColumns = [
  {
    head: 'For',
    cell: (row: BudgetBitsFragment) => (
      <span>
        <span className="strong">{words(row.scope)}</span>
        <span className="sub mono">{row.targetId}</span>
      </span>
    ),
  },
  {
    head: 'Budget',
    cell: (row: BudgetBitsFragment) => (
      <span data-budget={row.amount}>
        {amount(row.amount, row.currency)}
        <span className="sub">{row.span === 'MONTH' ? 'a month' : 'in total'}</span>
      </span>
    ),
  },
  {
    head: 'Spent',
    cell: (row: BudgetBitsFragment) => (
      <span>
        {amount(row.spent, row.currency)}
        <span className="sub">{amount(row.held, row.currency)} reserved</span>
      </span>
    ),
  },
  { head: 'Left', cell: (row: BudgetBitsFragment) => amount(row.left, row.currency) },
  {
    head: 'At the limit',
    cell: (row: BudgetBitsFragment) => (
      <span>
        {outcomes[row.atLimit]}
        <span className="sub">
          {row.largestOvershoot === null
            ? 'what runs continues'
            : `exceeded by at most ${amount(row.largestOvershoot, row.currency)}`}
          {row.trouble !== '' && `; ${row.trouble}`}
        </span>
      </span>
    ),
  },
];
