// Package quota owns what providers say in the heads of their answers about what is left of an account (OBJ-20): learned from every
// answer in one place, kept in memory, read by strategies. It decides nothing.
package quota
