package layout

import (
	"embed"
	"fmt"
	"strings"
	"text/template"
)

// SlurmConfPath is the path of slurm.conf on the controller.
const SlurmConfPath = "/etc/slurm/slurm.conf"

// TaskPrologPath is the path on workers of what slurmd runs before each task.
const TaskPrologPath = "/etc/slurm/task-prolog"

//go:embed templates
var templates embed.FS

// RenderSlurmConf returns slurm.conf. Equal clusters give equal bytes.
func RenderSlurmConf(cluster Cluster) (string, error) {
	return render("slurm.conf.tmpl", cluster)
}

// RenderSlurmdbdConf returns slurmdbd.conf, which holds the database's password.
func RenderSlurmdbdConf(cluster Cluster, password string) (string, error) {
	return render("slurmdbd.conf.tmpl", struct {
		Cluster
		Password string
	}{cluster, password})
}

// render executes one of the templates.
func render(name string, data any) (string, error) {
	functions := template.FuncMap{
		"workerPort": WorkerPort, "accountingPort": accountingPort, "gresLine": gresLine, "prologLine": prologLine,
		"join": func(list []string) string { return strings.Join(list, ",") },
	}
	parsed, err := template.New(name).Funcs(functions).ParseFS(templates, "templates/"+name)
	if err != nil {
		return "", fmt.Errorf("render %s: %w", name, err)
	}
	var out strings.Builder
	if err := parsed.Execute(&out, data); err != nil {
		return "", fmt.Errorf("render %s: %w", name, err)
	}
	return out.String(), nil
}

// RenderCgroupConf returns cgroup.conf.
func RenderCgroupConf() (string, error) {
	raw, err := templates.ReadFile("templates/cgroup.conf")
	if err != nil {
		return "", fmt.Errorf("render cgroup.conf: %w", err)
	}
	return string(raw), nil
}
