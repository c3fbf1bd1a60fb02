// Package gateway owns HTTP from clients: their keys, the reading of their requests, the answers and errors in their dialect.
// It decides nothing about providers; dispatch does.
package gateway
