package rules

// CreditSignals returns the texts, in lower case, that say in any body that an account has no money left (COOL-55).
func CreditSignals() []string {
	return []string{
		"insufficient_quota", "billing_hard_limit_reached", "exceeded your current quota",
		"exceeded your current usage quota", "credit_balance_too_low", "your credit balance is too low",
		"credits exhausted", "out of credits", "payment required", "free tier of the model has been exhausted",
		"insufficient balance", "insufficient_balance", "insufficient account balance",
	}
}

// BanSignals returns the texts, in lower case, that say in any body that an account was banned (COOL-60).
func BanSignals() []string {
	return []string{
		"account_deactivated", "account has been deactivated", "account has been disabled",
		"your account has been suspended", "this account is deactivated", "verify your account to continue",
		"this service has been disabled in this account for violation",
		"this service has been disabled in this account",
	}
}
