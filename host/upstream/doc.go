// Package upstream owns HTTP towards providers: a plan made ready for one connection, secrets placed into headers, transports
// and the addresses they may dial, and the reading of answers and event streams. It decides nothing about failures.
package upstream
