// Package schema checks documents against the JSON Schemas of an app.
package schema
