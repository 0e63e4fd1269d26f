import { describe, expect, it } from 'vitest';
import type { Problem } from '../api/errors';
import { rememberProject } from '../lib/chosen';
import { missingKeys, objectOf } from './missing';

const refused = (code: string, ...keys: string[]): Problem => ({
  code,
  message: 'The permission is needed',
  correlationId: '',
  retryable: false,
  reasons: keys.map((key) => ({ code: 'PERMISSION_MISSING', message: key, path: '' })),
});

describe('what a refusal leaves to be asked', () => {
  it('is every key that is missing, once and not too many', () => {
    expect(missingKeys(refused('FORBIDDEN', 'a.read', 'a.read', 'b.read'))).toEqual(['a.read', 'b.read']);
    expect(missingKeys(refused('FORBIDDEN', 'a', 'b', 'c', 'd', 'e'))).toHaveLength(4);
  });

  it('is nothing for refusals of another sort', () => {
    expect(missingKeys(refused('NOT_FOUND', 'a.read'))).toEqual([]);
    expect(missingKeys(refused('FORBIDDEN'))).toEqual([]);
  });

  it('is about the object of the page, or the chosen project', () => {
    expect(objectOf('/workloads/ins_01h455vb4pex5vsknk084sn02q', 'prj_x')).toBe('ins_01h455vb4pex5vsknk084sn02q');
    expect(objectOf('/workloads', 'prj_x')).toBe('prj_x');
    expect(objectOf('/workloads/ins_short', null)).toBeNull();
  });

  it('is about the project that the console shows, also for a person who never chose one', () => {
    rememberProject('prj_current');
    expect(objectOf('/launch/slurm')).toBe('prj_current');
  });
});
