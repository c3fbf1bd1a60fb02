package e2e_test

import "testing"

// SCN-4: an account-wide limit takes out all models of the account, a limit of one model only that one.
func TestScopeOfALimit(t *testing.T) {
	scenarios(t, "scn-4-account-direct", "scn-4-account-combo", "scn-4-model-direct", "scn-4-model-combo")
}
