// Package change holds what the verbs on instances and their members have in common: the request, the rules of its
// kind, and the facts that it rests on. A launch is a change whose instance does not exist yet.
//
// Each step takes the result of the one before it, so that none can be left out or swapped:
//
//	Request ── Locate ──▶ Subject ── Lock ──▶ Locked ── Load ──▶ Facts       this package
//	                │         (claim)                              │
//	                │                                          Evaluate      package verdict
//	                │                                              ▼
//	                │                        Plan ◀── preview ── Verdicts    package engine
//	                │                                              │
//	                │                              enforce (hash, first refusal, reason)
//	                ▼                                              ▼
//	        NOT_FOUND, FORBIDDEN            refused ◀────────── commit ──▶ Outcome
//
// A plan goes as far as Verdicts, locks no row, asks the adapter after its transaction and takes the transaction back.
// A mutation goes the whole way in one transaction; with a plan's hash it makes a preview first, for the adapter's
// answer must not be awaited under locks. A repeat under the same idempotency key ends at the claim and reads the
// Outcome back.
//
// Rows are locked in the order policy, project, instance, operation, member, allocation, node. An instance that exists
// is locked before the key is claimed; a launch claims first, and locks policy, project and allocations as its rules
// come to them.
//
// The rules of an existing instance answer by source (state, compatibility, quota, policy), for a plan shows every
// source; those of a launch answer in the order in which a person would mend things, up to the first refusal, and its
// plan shows as many. What a change makes of the price of an hour is reckoned last: it is in the plan and in its hash.
package change
