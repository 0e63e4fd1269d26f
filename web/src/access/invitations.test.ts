import { describe, expect, it } from 'vitest';
import { stateOf } from './invitations';

const at = '2026-11-22T22:00:00Z';
const person = { disabledAt: null, invitedAt: null, acceptedAt: null, lastLoginAt: null };

describe('the state of a person', () => {
  it('waits for the acceptance of an invitation alone', () => {
    expect(stateOf(person)).toBe('active');
    expect(stateOf({ ...person, invitedAt: at })).toBe('waiting');
    expect(stateOf({ ...person, invitedAt: at, acceptedAt: at })).toBe('active');
    expect(stateOf({ ...person, invitedAt: at, lastLoginAt: at })).toBe('active');
    expect(stateOf({ ...person, invitedAt: at, disabledAt: at })).toBe('disabled');
  });
});
