// A hook that asks the platform for a permission; few pages do.
import { ExplainPermissionDocument } from '../generated/graphql';
import { useRead } from './hooks';

/** Reports whether the person may use a permission on an object, as the platform answers; undefined until it has. */
export function useMay(permissionKey: string, objectId: string): boolean | undefined {
  return useRead(ExplainPermissionDocument, { input: { permissionKey, objectId, subjectId: null } }).data
    ?.explainPermission.allowed;
}
