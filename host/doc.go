// Package host is the gateway as a value: New wires it, Start serves, Reload changes the configuration or leaves it as it
// was, Stop finishes what is running. It owns the life of every part and decides nothing about requests. Several hosts may
// run in one process.
package host
