package e2e_test

import "testing"

// SCN-1: the later reset is the deadline, probing starts at the ceiling, and one good probe clears the account (COOL-24).
func TestALongResetIsProbed(t *testing.T) { scenarios(t, "scn-1", "scn-1-combo") }

// SCN-2: the breaker opens at its threshold, lets exactly one probe through, and closes with it.
func TestBreakerOpensAndCloses(t *testing.T) { scenarios(t, "scn-2-direct", "scn-2-combo") }

// SCN-3: all requests are answered while the primary is down, and it is used again soon after.
func TestOutageOfThePrimary(t *testing.T) { scenarios(t, "scn-3") }

// SCN-4: an account-wide limit takes out all models of the account, a limit of one model only that one.
func TestScopeOfALimit(t *testing.T) {
	scenarios(t, "scn-4-account-direct", "scn-4-account-combo", "scn-4-model-direct", "scn-4-model-combo")
}

// SCN-5: a target without credit is parked with a re-check time (COOL-59), a target's own dialect is not the caller's fault.
func TestTargetsThatCannot(t *testing.T) { scenarios(t, "scn-5") }

// SCN-6: a wait within the budget is waited for, one beyond it is named at once (COOL-70, COOL-72).
func TestWaitBudget(t *testing.T) {
	scenarios(t, "scn-6-budget-5", "scn-6-budget-1", "scn-6-budget-5-combo", "scn-6-budget-1-combo")
}

// SCN-7: bad keys are passed over without using the retry budget, and keep their reasons (COOL-73, INF-38).
func TestBadKeys(t *testing.T) {
	scenarios(t, "scn-7-direct", "scn-7-combo", "scn-7-bad-direct", "scn-7-bad-combo")
}

// OBJ-22, OBJ-23, OV-5, BRK-40, LOCK-30, OBJ-25: breaker, lockout, cooldown and terminal state survive a restart, with their
// remaining times and their evidence.
func TestRestartKeepsTheRest(t *testing.T) { scenarios(t, "restart") }

// BRK-29, API-73, BRK-23, OV-26: a passed test ends a degraded breaker, a change of its hints resets it, at once.
func TestDegradedBreaker(t *testing.T) { scenarios(t, "degraded") }

// SCN-9: a 400 may be the account's limit, the caller's mistake, a prompt that is too long, or a refusal.
func TestFourKindsOfBadRequest(t *testing.T) { scenarios(t, "scn-9") }
