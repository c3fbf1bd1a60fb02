// Package settings owns every setting once: its name, default, bounds, environment name and meaning. API, file,
// documentation and source follow from the table. To add a setting, add one row and read the value somewhere.
package settings
