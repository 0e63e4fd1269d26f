// What the budget form knows: the choices, and what is wrong with its fields before they are sent.
import type { BudgetOutcome, BudgetScope, BudgetSpan } from '../generated/graphql';

/** What happens at the limit, in words. */
export const outcomes: Readonly<Record<BudgetOutcome, string>> = {
  TELL: 'it is only reported',
  REFUSE: 'new costs are refused',
  DRAIN: 'members are drained',
  DECOMMISSION: 'capacity is released',
};

/** What an amount is for, in words. */
export const spans: Readonly<Record<BudgetSpan, string>> = { MONTH: 'A month, in UTC', TOTAL: 'All from now on' };

/** The owner of a budget, in words. */
export const scopes: Readonly<Record<BudgetScope, string>> = {
  PROJECT: 'This project',
  INSTANCE: 'A workload',
  SERVICE_ACCOUNT: 'An automation account',
  TENANT: 'The whole tenant',
};

/** The fields of the form. */
export interface Given {
  readonly scope: BudgetScope;
  readonly targetId: string;
  readonly amount: string;
  readonly thresholds: readonly string[];
}

/** Returns what the form itself finds wrong, by field. */
export function wrongBudget(given: Given): Map<string, string> {
  const wrong = new Map<string, string>();
  if (given.targetId === '') wrong.set('targetId', 'Choose whose budget it is.');
  if (!/^\d{1,18}(\.\d{1,6})?$/.test(given.amount.trim()) || /^[0.]*$/.test(given.amount.trim()))
    wrong.set('amount', 'Enter an amount above 0, such as 250 or 99.50.');
  if (
    given.thresholds.length > 10 ||
    given.thresholds.some((each) => !/^\d{1,4}$/.test(each) || !inRange(Number(each)))
  )
    wrong.set('thresholds', 'Enter at most ten whole percentages, each from 1 to 1000.');
  return wrong;
}

function inRange(percent: number): boolean {
  return percent >= 1 && percent <= 1_000;
}
