// Setting a budget, or changing one: its owner, its amount, and what happens when it is spent.
import { Select, TagsInput, TextInput } from '@mantine/core';
import { useState } from 'react';
import { tell, useRead } from '../api/hooks';
import { useProjectId, useSession } from '../api/session';
import { ChangeDialog } from '../changes/ChangeDialog';
import { BudgetAccountsDocument, BudgetInstancesDocument, SetBudgetDocument } from '../generated/graphql';
import type { BudgetBitsFragment, BudgetOutcome, BudgetScope, BudgetSpan } from '../generated/graphql';
import { outcomes, scopes, spans, wrongBudget } from './budget';

type Targets = readonly { value: string; label: string }[];

/** The dialog; a budget that is changed keeps its owner. */
export function BudgetDialog({
  budget,
  currency,
  onClose,
  onDone,
}: {
  budget: BudgetBitsFragment | undefined;
  currency: string;
  onClose: () => void;
  onDone: () => void;
}) {
  const [scope, setScope] = useState<BudgetScope>(budget?.scope ?? 'PROJECT');
  const [chosen, setChosen] = useState('');
  const [amount, setAmount] = useState(budget === undefined ? '' : plain(budget.amount));
  const [span, setSpan] = useState<BudgetSpan>(budget?.span ?? 'MONTH');
  const [atLimit, setAtLimit] = useState<BudgetOutcome>(budget?.atLimit ?? 'REFUSE');
  const [thresholds, setThresholds] = useState<string[]>((budget?.thresholds ?? [50, 80, 100]).map(String));
  const targets = useTargets(scope);
  const known = targets?.length === 1 ? targets[0] : targets?.find((each) => each.value === chosen);
  const whose = budget?.targetId ?? known?.value ?? '';
  return (
    <ChangeDialog
      onClose={onClose}
      onDone={onDone}
      change={{
        title: budget === undefined ? 'Set a budget' : 'Change the budget',
        act: budget === undefined ? 'Set' : 'Save',
        fields: ['scope', 'targetId', 'amount', 'currency', 'span', 'atLimit', 'thresholds'],
        reasonNeeded: true,
        wrong: wrongBudget({ scope, targetId: whose, amount, thresholds }),
        intro: 'It limits what may be spent from now on. The price of an hour of what is rented is reserved from it.',
        send: ({ reason }) =>
          tell(SetBudgetDocument, {
            input: {
              scope,
              targetId: whose,
              currency,
              amount: amount.trim(),
              span,
              atLimit,
              thresholds: thresholds.map(Number),
              reason: reason ?? '',
              ...(budget === undefined ? {} : { horizonSeconds: budget.horizonSeconds }),
            },
          }),
        form: (errors) => (
          <div className="stack">
            <div className="form-grid">
              <Select
                label="For"
                data={entries(scopes)}
                value={scope}
                disabled={budget !== undefined}
                allowDeselect={false}
                onChange={(next) => setScope(next ?? scope)}
                error={errors.get('scope')}
              />
              {budget === undefined && (scope === 'INSTANCE' || scope === 'SERVICE_ACCOUNT') && (
                <Select
                  label="Which"
                  searchable
                  required
                  data={targets ?? []}
                  value={whose === '' ? null : whose}
                  onChange={(next) => setChosen(next ?? '')}
                  error={errors.get('targetId')}
                />
              )}
            </div>
            <div className="form-grid">
              <TextInput
                label={`Amount in ${currency}`}
                required
                inputMode="decimal"
                maxLength={26}
                value={amount}
                onChange={(event) => setAmount(event.currentTarget.value)}
                error={errors.get('amount') ?? errors.get('currency')}
                data-autofocus
              />
              <Select
                label="Period"
                data={entries(spans)}
                value={span}
                allowDeselect={false}
                onChange={(next) => setSpan(next ?? span)}
                error={errors.get('span')}
              />
              <Select
                label="When it is spent"
                data={entries(outcomes)}
                value={atLimit}
                allowDeselect={false}
                onChange={(next) => setAtLimit(next ?? atLimit)}
                error={errors.get('atLimit')}
              />
            </div>
            <TagsInput
              label="Reported at these percentages"
              description="At each, the project gets an event, which its webhooks can deliver"
              value={thresholds}
              onChange={setThresholds}
              maxTags={10}
              error={errors.get('thresholds')}
            />
          </div>
        ),
      }}
    />
  );
}

/** What a budget of a scope may be for; undefined until it is known. */
function useTargets(scope: BudgetScope): Targets | undefined {
  const projectId = useProjectId();
  const { project } = useSession();
  const instances = useRead(BudgetInstancesDocument, { projectId }, scope !== 'INSTANCE');
  const accounts = useRead(BudgetAccountsDocument, { projectId }, scope !== 'SERVICE_ACCOUNT');
  if (scope === 'PROJECT') return [{ value: projectId, label: project?.displayName ?? projectId }];
  if (scope === 'TENANT') return project === undefined ? [] : [{ value: project.tenantId, label: project.tenantId }];
  const found = scope === 'INSTANCE' ? instances.data?.instances : accounts.data?.serviceAccounts;
  return found?.edges.map(({ node }) => ({ value: node.id, label: node.name }));
}

function entries<Key extends string>(words: Readonly<Record<Key, string>>): { value: Key; label: string }[] {
  return (Object.keys(words) as Key[]).map((value) => ({ value, label: words[value] }));
}

/** An amount without trailing zeros that the person did not type. */
function plain(text: string): string {
  return text.includes('.') ? text.replace(/\.?0+$/, '') : text;
}
