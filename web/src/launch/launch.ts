// Rules of the launch form that do not draw anything.
import type { CapacityIntentInput } from '../generated/graphql';
import { words } from '../lib/format';
import type { Further } from './IntentFields';

/** The deadlines to choose from, in seconds. */
export const deadlines = [
  { value: '300', label: '5 minutes' },
  { value: '900', label: '15 minutes' },
  { value: '1800', label: '30 minutes' },
  { value: '3600', label: '1 hour' },
  { value: '14400', label: '4 hours' },
];

/** The projects that a control plane can serve. */
export const planeScopes = [
  { value: 'PROJECT', label: 'This project' },
  { value: 'TENANT', label: 'The whole tenant' },
];

/** Who can run a control plane. */
export const modes = [
  { value: 'TENANT_DEDICATED', label: 'The tenant itself' },
  { value: 'PLATFORM_MANAGED', label: 'The platform, where policy allows it' },
];

/** Returns the error of a workload's name, or undefined. */
export function nameProblem(name: string): string | undefined {
  if (name.length < 2 || name.length > 40) return 'Must have 2 to 40 characters.';
  if (!/^[a-z0-9-]+$/.test(name)) return 'Only lower-case letters, digits and hyphens.';
  if (!/^[a-z]/.test(name) || name.endsWith('-')) return 'Must begin with a letter and not end with a hyphen.';
  return undefined;
}

/** Returns a suggested name: the app's slug, and a few random letters that make it unique enough. */
export function suggestName(slug: string, random: () => number = Math.random): string {
  const letters = 'bcdfghjkmnpqrstvwxz23456789';
  const tail = Array.from({ length: 4 }, () => letters.charAt(Math.floor(random() * letters.length))).join('');
  return `${slug.slice(0, 34)}-${tail}`;
}

/** A version, and the reasons why it cannot be launched. */
export interface VersionOption {
  readonly version: string;
  readonly stage: string;
  readonly reasons: readonly { readonly message: string }[];
}

/** Returns the versions to choose from; one that this project may not launch shows the reason and cannot be chosen. */
export function versionChoices(
  versions: readonly VersionOption[],
): { value: string; label: string; disabled: boolean }[] {
  return versions.map(({ version, stage, reasons }) => {
    const [first] = reasons;
    return {
      value: version,
      label: `${version}, ${first === undefined ? words(stage).toLowerCase() : first.message}`,
      disabled: first !== undefined,
    };
  });
}

/** Returns the capacity for further members as a launch sends it; null for nothing. */
export function furtherOf(further: Further | undefined): CapacityIntentInput | null {
  if (further === undefined || further.shape === 'NONE') return null;
  const text = (value: string) => (value.trim() === '' ? null : value.trim());
  return {
    shape: further.shape,
    gpuCount: further.shape === 'GPU_SLICE' ? Number(further.gpuCount) : null,
    sku: text(further.sku),
    region: text(further.region),
  };
}

/** Returns the error of a component without capacity: nothing is chosen, and others state what to request. */
export function homeless(
  launch: { readonly chosen: number; readonly stated: number; readonly count: number },
  further: Further | undefined,
): string | undefined {
  return launch.chosen === 0 && launch.stated > 0 && launch.count > 0 && furtherOf(further) === null
    ? 'State the capacity for each of its members.'
    : undefined;
}

/** Returns the error that the form itself finds in the capacity for further members. */
export function furtherProblem(further: Further | undefined): string | undefined {
  if (further?.shape !== 'GPU_SLICE') return undefined;
  const gpus = Number(further.gpuCount);
  return further.gpuCount !== '' && Number.isInteger(gpus) && gpus >= 1 && gpus <= 64
    ? undefined
    : 'A slice has 1 to 64 GPUs.';
}

/** Returns the volumes that are chosen for slots, as a launch sends them. */
export function usesOf(chosen: Readonly<Record<string, string>>): { slot: string; volumeId: string }[] {
  return Object.entries(chosen)
    .filter(([, volume]) => volume !== '')
    .map(([slot, volumeId]) => ({ slot, volumeId }));
}

/** Returns the slots that need a volume and do not have one. */
export function slotless(
  slots: readonly { readonly name: string; readonly required: boolean }[],
  chosen: Readonly<Record<string, string>>,
): string[] {
  return slots.filter((slot) => slot.required && (chosen[slot.name] ?? '') === '').map((slot) => slot.name);
}
