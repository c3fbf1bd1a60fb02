// Package manage owns the management API: one table of endpoints (endpoints.go) from which routes, access and the OpenAPI
// description come, and typed functions beside it. It keeps no state of its own: what it needs it asks of its Ports.
//
// To add an endpoint, add one row to the table and a function that answers it.
package manage
