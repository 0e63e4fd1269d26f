// Package task executes node tasks in members' sandboxes: one file per family of kinds. A task has a
// kind, a specification and a bound on time; it ends in an outcome with a state and a result whose
// shape belongs to the kind.
//
//	RUN              {exitCode, stdout, stderr, truncated}
//	WRITE_FILE       {bytes}
//	START_PROCESS    {process: {name, state, pid, restarts, exitCode, startedAt, logTail}}
//	STOP_PROCESS     the same
//	INSPECT_PROCESS  the same
//	PROBE            {ok, attempts, detail}
//	FETCH_ARTIFACT   {digest, manifest, path, bytes, fetchedBytes, parts, cached}
//	CLOUD_INIT       {status, errors, stages, output}
//	RESIDUE          {residue: {sandbox, processes, mounts, files, bytes, names}}
//	TEARDOWN         {residue, logs}: residue as it is afterwards, empty when it succeeded; the last lines of processes
//
// A task that could not be done at all has {code} and a message. A specification with an unknown
// field is refused by its name, since a misspelt bound or user must not be ignored.
package task
