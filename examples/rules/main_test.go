package main

import "testing"

func TestJudge(t *testing.T) {
	got, err := judge(403, `{"error":{"message":"Monthly quota used up, back in 5 hours"}}`)
	if want := "403 is 429: quota_exhausted, scope connection, back in 5h0m0s, says mine/quota"; err != nil || got != want {
		t.Errorf("%q, %v", got, err)
	}
	if got, _ := judge(401, `{"error":{"message":"bad key"}}`); got != "401 is 401: auth_error, scope connection, back in 0s, says " {
		t.Errorf("%q", got)
	}
}
