package policy

// Access is a way by which people reach what runs.
type Access string

// The ways of access.
const (
	// AccessEndpoints is by the endpoints that manifests declare.
	AccessEndpoints Access = "ENDPOINTS"
	// AccessExec is by commands in members.
	AccessExec Access = "EXEC"
	// AccessLogs is by what members' processes print.
	AccessLogs Access = "LOGS"
)

var accessWords = []string{string(AccessEndpoints), string(AccessExec), string(AccessLogs)}

// Access checks a way of access.
func (e *Effective) Access(way Access, path string) error { return e.word(access, string(way), path) }
