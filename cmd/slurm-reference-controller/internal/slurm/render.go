package slurm

import (
	"embed"
	"fmt"
	"strings"
	"text/template"
)

//go:embed templates
var templates embed.FS

// renderSlurmConf writes slurm.conf. Equal clusters give equal bytes.
func renderSlurmConf(cluster Cluster) (string, error) {
	return render("slurm.conf.tmpl", cluster)
}

// renderSlurmdbdConf writes slurmdbd.conf, which holds the database's password.
func renderSlurmdbdConf(cluster Cluster, password string) (string, error) {
	return render("slurmdbd.conf.tmpl", struct {
		Cluster
		Password string
	}{cluster, password})
}

func render(name string, data any) (string, error) {
	functions := template.FuncMap{
		"workerPort": workerPort, "accountingPort": accountingPort,
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

// renderCgroupConf returns cgroup.conf.
func renderCgroupConf() (string, error) {
	raw, err := templates.ReadFile("templates/cgroup.conf")
	if err != nil {
		return "", fmt.Errorf("render cgroup.conf: %w", err)
	}
	return string(raw), nil
}
