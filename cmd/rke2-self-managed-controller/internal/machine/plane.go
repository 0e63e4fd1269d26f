package machine

import (
	"crypto/x509"
	"encoding/pem"
	"strings"
	"time"

	"github.com/gpuaas/app-platform/sdk/adapter"
)

// certificatesMark is the line between etcd's members and the certificates in what LookAtPlane prints.
const certificatesMark = "=== certificates"

// LookAtPlane prints etcd's members, and then certificates of a server that RKE2 renews when it starts.
func LookAtPlane(on adapter.Member) adapter.RunCommand {
	const tls = `"$R` + DataPath + `/server/tls/`
	return adapter.RunCommand{Command: Shell(KubectlHead + Plain + " " + InEtcd(on) + ` member list; ` +
		`echo "` + certificatesMark + `"; cat ` + tls + `serving-kube-apiserver.crt" ` +
		tls + `client-controller.crt" ` +
		tls + `etcd/server-client.crt" 2> /dev/null; true`)}
}

// Plane is the state of the control plane.
type Plane struct {
	// Voters are the members of etcd that have started and vote, and Waiting those that do not yet.
	Voters, Waiting []Voter
	// Until is when the first of its certificates ends; zero where no end was reported.
	Until time.Time
}

// PlaneOf reads what LookAtPlane prints.
func PlaneOf(text string) (plane Plane) {
	members, certificates, _ := strings.Cut(text, certificatesMark+"\n")
	for _, one := range VotersOf(members) {
		if one.Votes {
			plane.Voters = append(plane.Voters, one)
		} else {
			plane.Waiting = append(plane.Waiting, one)
		}
	}
	for rest := []byte(certificates); ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			return plane
		}
		one, err := x509.ParseCertificate(block.Bytes)
		// An authority is good for years, and no restart renews it.
		if err == nil && !one.IsCA && (plane.Until.IsZero() || one.NotAfter.Before(plane.Until)) {
			plane.Until = one.NotAfter.UTC()
		}
	}
}

// Majority is how many of n voting members etcd needs.
func Majority(n int) int { return n/2 + 1 }
