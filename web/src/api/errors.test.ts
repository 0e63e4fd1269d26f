import { CombinedError } from '@urql/core';
import { describe, expect, it } from 'vitest';
import { needsLogin, pathSegments, placeReasons, problemOf, problemOfAnswer, problemOfSubscription } from './errors';

describe('problemOf', () => {
  it('takes code, correlation id and reasons from the envelope', () => {
    const problem = problemOf(
      new CombinedError({
        graphQLErrors: [
          {
            message: "the configuration does not fit the app's schema",
            extensions: {
              code: 'CONFIG_INVALID',
              correlation_id: 'c-1',
              retryable: false,
              reasons: [{ code: 'BAD_VALUE', message: 'must be at least 1', path: 'input.config.workers' }],
            },
          },
        ],
      }),
    );
    expect(problem).toEqual({
      code: 'CONFIG_INVALID',
      message: "The configuration does not fit the app's schema.",
      correlationId: 'c-1',
      retryable: false,
      reasons: [{ code: 'BAD_VALUE', message: 'must be at least 1', path: 'input.config.workers' }],
    });
  });

  it('reads an error without a code as INTERNAL', () => {
    expect(problemOf(new CombinedError({ graphQLErrors: [{ message: 'x' }] })).code).toBe('INTERNAL');
  });

  it('asks for a login on a bare 401 and keeps the correlation id of the header', () => {
    const response = new Response('', { status: 401, headers: { 'x-correlation-id': 'c-2' } });
    const problem = problemOf(new CombinedError({ networkError: new Error('Unauthorized'), response }));
    expect(needsLogin(problem)).toBe(true);
    expect(problem.correlationId).toBe('c-2');
  });

  it('is retryable when the platform cannot be reached', () => {
    const problem = problemOf(new CombinedError({ networkError: new TypeError('Failed to fetch') }));
    expect([problem.code, problem.retryable]).toEqual(['NETWORK', true]);
  });
});

describe('problemOfSubscription', () => {
  it('reads a list of GraphQL errors', () => {
    expect(problemOfSubscription([{ message: 'too old', extensions: { code: 'CURSOR_EXPIRED' } }]).code).toBe(
      'CURSOR_EXPIRED',
    );
  });

  it.each([4401, 4403])('asks for a login on close code %d', (code) => {
    expect(needsLogin(problemOfSubscription({ code, reason: '' }))).toBe(true);
  });

  it('takes any other close as a lost connection', () => {
    expect(problemOfSubscription({ code: 1006, reason: '' }).code).toBe('NETWORK');
  });
});

describe('problemOfAnswer', () => {
  const envelope = (code: string, message: string) =>
    JSON.stringify({
      errors: [{ message, extensions: { code, correlation_id: 'c-3', retryable: true, reasons: [] } }],
    });

  it('says what to do about a code that is no good', () => {
    const problem = problemOfAnswer(401, envelope('UNAUTHENTICATED', 'no such login'));
    expect([problem.message, problem.correlationId]).toEqual([
      'This code is unknown, was already used, or has expired. Ask for a new login link.',
      'c-3',
    ]);
  });

  it('keeps the message of any other refusal', () => {
    expect(problemOfAnswer(429, envelope('RATE_LIMITED', 'too many logins failed from this address')).message).toBe(
      'Too many logins failed from this address.',
    );
  });

  it.each(['<html>bad gateway</html>', '{}', ''])('reads %j as a platform that is not there', (body) => {
    expect(problemOfAnswer(502, body)).toMatchObject({ code: 'UNAVAILABLE', retryable: true });
  });
});

describe('pathSegments', () => {
  it.each([
    ['input.config.a[0].b', ['input', 'config', 'a', '0', 'b']],
    ['/config/a~1b/0', ['config', 'a/b', '0']],
    ['', []],
  ])('reads %s', (path, segments) => expect(pathSegments(path)).toEqual(segments));
});

describe('placeReasons', () => {
  const known = (path: string) => ['name', 'config.workers', 'config.tags'].includes(path);
  const reason = (path: string, message = 'is wrong') => ({ code: 'BAD_VALUE', message, path });

  it('places a reason on its field and joins several', () => {
    const placed = placeReasons([reason('input.name', 'too short'), reason('name', 'taken')], known);
    expect(placed.fields.get('name')).toBe('Too short. Taken.');
    expect(placed.rest).toEqual([]);
  });

  it('shows a complaint about an element at its list', () => {
    expect([...placeReasons([reason('input.config.tags[2]')], known).fields.keys()]).toEqual(['config.tags']);
  });

  it('keeps what belongs to no field', () => {
    expect(placeReasons([reason('input.allocationIds'), reason('')], known).rest).toHaveLength(2);
  });
});
