// Why the terms of a step are overridden: a field for the platform's staff alone, and only where a term is not met.
import { TextInput } from '@mantine/core';
import type { ReasonBitsFragment } from '../generated/graphql';

/** Whether a reason is a term of a step, which can be overridden, and not evidence, which cannot. */
export function isTerm(reason: ReasonBitsFragment): boolean {
  return reason.code === 'EVIDENCE_MISSING' && reason.path === 'input.to';
}

/** The field. */
export function OverrideField({
  value,
  onChange,
  error,
}: {
  value: string;
  onChange: (value: string) => void;
  error: string | undefined;
}) {
  return (
    <TextInput
      label="Set the terms aside, because"
      description="If empty, the terms apply to the step. The history and the audit log keep what you write"
      maxLength={500}
      value={value}
      onChange={(event) => onChange(event.currentTarget.value)}
      error={error}
    />
  );
}
