// The rules of the forms of volumes and storage classes: their texts, and errors of fields before they are sent.
import type { StorageClassBitsFragment, StorageKind } from '../generated/graphql';
import { bytes, plural } from '../lib/format';

/** From where the files of a storage can be read, in words. */
export const kinds: Readonly<Record<StorageKind, string>> = {
  SHARED: 'Shared: members on any node use it at once',
  LOCAL: 'Local: members on one node use it',
};

const namePattern = /^[a-z]([a-z0-9-]{0,38}[a-z0-9])?$/;
const largest = 1_048_576;

/** Returns what the form of a new volume itself finds wrong, by field. */
export function wrongVolume(given: { name: string; storageClass: string; sizeGiB: string }): Map<string, string> {
  const wrong = new Map<string, string>();
  if (!namePattern.test(given.name))
    wrong.set('name', 'Lower-case letters, digits and hyphens, starting with a letter and not ending with a hyphen.');
  if (given.storageClass === '') wrong.set('storageClass', 'Choose a storage class.');
  const size = wrongSize(given.sizeGiB, 1);
  if (size !== undefined) wrong.set('sizeGiB', size);
  return wrong;
}

/** Returns the error of a size in GiB, which may not be below the minimum. */
export function wrongSize(text: string, least: number): string | undefined {
  const size = Number(text);
  if (/^\d{1,7}$/.test(text.trim()) && size >= least && size <= largest) return undefined;
  return `A whole number of GiB, from ${least} to ${largest}.`;
}

/** Returns the free space of a class and the nodes that offer it, in words. */
export function offered(storageClass: StorageClassBitsFragment): string {
  const { offer } = storageClass;
  if (offer === null) return 'no node offers it now';
  return `${bytes(offer.freeBytes)} free on ${plural(offer.nodes, 'node')}`;
}

/** Returns the share of a volume that is used, 0 to 100; undefined before it was measured. */
export function usedPercent(volume: { usedBytes: number | null; sizeGiB: number }): number | undefined {
  if (volume.usedBytes === null) return undefined;
  return Math.min(100, Math.round((volume.usedBytes / (volume.sizeGiB * 2 ** 30)) * 100));
}
