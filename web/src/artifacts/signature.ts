// How an artifact's kind and its signature's state are told.
import type { ArtifactKind, SignatureState } from '../generated/graphql';

const states: Readonly<Record<SignatureState, string>> = { VERIFIED: 'ACTIVE', UNSIGNED: 'DRAINING', UNTRUSTED: 'FAILED', NOT_CHECKED: 'UNKNOWN' };

/** A state of the console's palette that has the tone of the signature's. */
export function signatureState(signature: SignatureState): string {
  return states[signature];
}

const kinds: Readonly<Record<ArtifactKind, string>> = { IMAGE: 'Image', OCI_ARTIFACT: 'OCI artifact', BLOB: 'File' };

/** A kind's name for people. */
export function kindName(kind: ArtifactKind): string {
  return kinds[kind];
}
