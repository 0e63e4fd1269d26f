// How an artifact's kind and the state of its signature are shown.
import type { ArtifactKind, SignatureState } from '../generated/graphql';

const states: Readonly<Record<SignatureState, string>> = {
  VERIFIED: 'ACTIVE',
  UNSIGNED: 'DRAINING',
  UNTRUSTED: 'FAILED',
  NOT_CHECKED: 'UNKNOWN',
};

/** Returns a state of ui/Status that has the tone of the signature's state. */
export function signatureState(signature: SignatureState): string {
  return states[signature];
}

const kinds: Readonly<Record<ArtifactKind, string>> = { IMAGE: 'Image', OCI_ARTIFACT: 'OCI artifact', BLOB: 'File' };

/** Returns a kind's display name. */
export function kindName(kind: ArtifactKind): string {
  return kinds[kind];
}
