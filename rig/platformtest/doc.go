// Package platformtest is the test kit of everything above the database: a migrated database of the
// test's own, opened as the platform opens it, with fixtures written past the verbs by a superuser,
// so that a test of one verb does not lean on another.
//
//	kit := platformtest.New(t)
//	tenant := kit.Tenant()
//	project := kit.Project(tenant)
//	admin := kit.As(kit.User(tenant, platformtest.In(authz.ProjectAdmin, project)))
//	// admin is a context that carries a live session: pass it to the verb under test
package platformtest
