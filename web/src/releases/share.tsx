// The share of the projects that a canary includes, as both dialogs request it.
import { NumberInput } from '@mantine/core';

/** Returns the error of a share as typed, or undefined. */
export function shareProblem(typed: number | string): string | undefined {
  const share = Number(typed);
  return typed === '' || !Number.isInteger(share) || share < 1 || share > 100 ? 'Must be 1 to 100.' : undefined;
}

/** The field. */
export function ShareField({
  value,
  onChange,
  error,
}: {
  value: number | string;
  onChange: (value: number | string) => void;
  error: string | undefined;
}) {
  return (
    <NumberInput
      label="Share of the projects"
      description="A project that is included stays included when the share grows"
      suffix=" %"
      min={1}
      max={100}
      required
      value={value}
      onChange={onChange}
      error={error}
      data-autofocus
    />
  );
}
