package e2e_test

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/sdk/client"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// writes puts a file where the walk's commands run.
func (w *walker) writes(name, content string) {
	w.t.Helper()
	file := filepath.Join(w.dir, name)
	require.NoError(w.t, os.MkdirAll(filepath.Dir(file), 0o700))
	require.NoError(w.t, os.WriteFile(file, []byte(content), 0o600))
}

// receives puts the receiver of this machine in the place of the reader's.
func (w *walker) receives() { w.stands["https://example.com/hook"] = "http://" + hooks.host + "/hook" }

// delivered is a delivery that the receiver got, with its body and the webhook's secret in files.
func (w *walker) delivered() string {
	w.t.Helper()
	w.launches("hooked")
	var got delivery
	select {
	case got = <-hooks.got:
	case <-time.After(time.Minute):
		w.t.Fatal("nothing is delivered")
	}
	w.writes("body.json", string(got.body))
	w.writes("secret", w.saw(`whsec_\S+`))
	w.stands["1795348800"] = got.header.Get("webhook-timestamp")
	w.stands["v1,…"] = got.header.Get("webhook-signature")
	w.stands["p…"] = w.says("dana", `grep -o '"cursor": *"[^"]*"' body.json | cut -d '"' -f 4`)
	w.known["whd"] = got.header.Get("webhook-id")
	return w.known["whd"]
}

// launches makes an instance of the walk's project, on capacity of its own.
func (w *walker) launches(name string) {
	w.t.Helper()
	w.says("dana", "appctl allocations request --shape gpu-slice --gpus 1 --name "+name+"-slot")
	w.says("dana", "appctl launch hello-cluster --name "+name+" --allocation "+name+"-slot --wait -q")
}

// keepsPassword has a key and a password, as a team does.
func (w *walker) keepsPassword() {
	w.says("dana", "appctl artifact keygen release")
	w.writes("password", registryPassword+"\n")
}

// registry puts the test's registry and file server in the place of the reader's, each open to everybody below a name.
func (w *walker) registry(name string) {
	outside.opens(name, w.dir)
	w.stands["registry.example.com/team"] = outside.host + "/" + name
	w.stands["https://files.example.com/team/"] = "https://" + outside.host + "/files/" + name + "/"
	w.stands["https://files.example.com/weights/"] = "https://" + outside.host + "/files/" + name + "/"
	w.variables = append(w.variables, "APPCTL_REGISTRY_USER="+registryUser,
		"APPCTL_REGISTRY_PASSWORD="+registryPassword)
}

// builds has what is to be signed: a program and a file.
func (w *walker) builds() {
	w.registry("signing")
	w.stands["source add team "], w.stands["key add team "] = "source add signing ", "key add signing "
	w.stands["source add files "], w.stands["key add files "] = "source add signing-files ", "key add signing-files "
	w.stands["--project team"] = "--project signing"
	w.writes("bin/server", "a program of the signing guide")
	w.writes("model.bin", "a model of the signing guide")
}

// pushesModel has an image and a file in sources that accept unsigned artifacts.
func (w *walker) pushesModel() {
	w.registry("artifacts")
	w.writes("v1.bin", "weights of the artifacts' guide")
	at := w.stands["registry.example.com/team"]
	w.says("dana", "appctl source add artifacts "+at+" --signatures optional")
	w.says("dana", "appctl source add artifacts-files "+w.stands["https://files.example.com/weights/"]+
		" --kind https --signatures optional")
	w.says("dana", "appctl artifact push --file v1.bin "+at+"/model:1.2")
	w.known["sha256"] = "sha256:" + w.says("dana", "sha256sum v1.bin | cut -d ' ' -f 1")
}

// trains has the instance that the guide of secrets speaks of.
func (w *walker) trains() {
	w.launches("training")
	w.known["mem"] = w.newest("appctl members list training -q")
	w.known["sha256"] = w.says("dana", "appctl artifact list --search hello-cluster-controller -o json | "+
		`grep -o 'sha256:[0-9a-f]\{64\}' | head -n 1`)
}

// shares has capacity and the project that a control plane is offered to.
func (w *walker) shares() {
	w.t.Helper()
	for _, name := range []string{"big-1", "big-2"} {
		w.says("dana", "appctl allocations request --shape gpu-slice --gpus 1 --name "+name)
	}
	other, err := gql.CreateProject(w.ctx, shared.Operator, gql.CreateProjectInput{TenantId: shared.Demo.TenantID,
		Slug: "other", DisplayName: "Other", IdempotencyKey: client.NewKey()})
	require.NoError(w.t, err)
	w.known["prj"] = other.CreateProject.Id
	_, err = gql.GrantRole(w.ctx, shared.Operator, gql.GrantRoleInput{SubjectId: shared.Demo.AdminID,
		Role: "project_admin", ProjectId: other.CreateProject.Id, Reason: "end-to-end test"})
	require.NoError(w.t, err)
	_, err = gql.GrantEntitlement(w.ctx, shared.Operator, other.CreateProject.Id, "hello-cluster", nil, nil, "")
	require.NoError(w.t, err)
	w.writes("job.json", `{"name": "Ada"}`)
}

// hasBooks waits until the billing role has looked at the tenant for the first time.
func (w *walker) hasBooks() {
	w.t.Helper()
	w.launches("billed")
	w.known["sa"] = w.says("dana", "appctl admin service-account create pipeline --permission project.read -q")
	require.Eventually(w.t, func() bool {
		w.known["brn"] = strings.TrimSpace(w.says("staff", "appctl billing runs "+w.known["ten"]+" -q | tail -n 1"))
		return w.known["brn"] != ""
	}, 3*time.Minute, time.Second)
	w.known["bpr"] = w.says("staff", "appctl billing periods "+w.known["ten"]+" -q | tail -n 1")
}

// hasProvider has a database and an address for a further server, as an installation of its own, and a person with two
// sessions, who loses one and ends all. The project ends with the guide.
func (w *walker) hasProvider() {
	w.t.Helper()
	address := freeAddress(w.t)
	w.stands["--public-url https://gpu.example.com"] = "--public-url http://" + address + " --listen " + address
	w.stands["https://gpu.example.com"] = "http://" + address
	w.stands["https://id.example.com"] = "http://" + freeAddress(w.t) // the server starts without an answer too
	w.stands["--database-url …"] = "--database-url '" + w.database("walk_identity") + "'"
	w.writes("oidc", "a shared secret")
	w.stands["/run/secrets/oidc"] = filepath.Join(w.dir, "oidc")
	w.stands["--project demo"] = "--project identity"
	w.gone = true
	made, err := gql.CreateUser(w.ctx, shared.Operator, gql.CreateUserInput{TenantId: shared.Demo.TenantID,
		Email: "lee@demo.local", DisplayName: "Lee", IdempotencyKey: client.NewKey()})
	require.NoError(w.t, err)
	w.people["lee"] = made.CreateUser.Id
	_, err = shared.As(w.ctx, w.people["lee"])
	require.NoError(w.t, err)
	ids := strings.Fields(w.says("lee", "appctl sessions list -q"))
	require.Len(w.t, ids, 2)
	w.known["ses"] = ids[1] // the older: Lee's own is the newest
}

// database makes a database of the walk's own, which its programs use in place of the installation's.
func (w *walker) database(name string) (url string) {
	w.t.Helper()
	connection, err := pgx.Connect(w.ctx, shared.AdminDSN())
	require.NoError(w.t, err)
	defer func() { _ = connection.Close(w.ctx) }()
	_, err = connection.Exec(w.ctx, "CREATE DATABASE "+pgx.Identifier{name}.Sanitize())
	require.NoError(w.t, err)
	url = strings.Replace(shared.AdminDSN(), "/app_platform?", "/"+name+"?", 1)
	require.NotEqual(w.t, shared.AdminDSN(), url)
	w.variables = append(w.variables, "DATABASE_URL="+url)
	w.says("newcomer", "app-platform migrate")
	return url
}

// freeAddress returns an address of this machine where nothing listens.
func freeAddress(t require.TestingT) string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = listener.Close() }()
	return listener.Addr().String()
}
