package rules_test

import (
	"fmt"

	"github.com/weirgate/weir/rules"
	"github.com/weirgate/weir/sdk/wire"
)

// A relay that answers a quota that refills with 403: one rule corrects the status, one says what it means.
func Example() {
	table, problems := rules.Parse([]byte(`[
	  {"id": "quota-as-403", "status": [403], "text_contains": ["quota"], "text_none": ["no access"],
	   "then": {"restate_status": 429, "retry_after": "60s"}},
	  {"id": "quota", "status": [429], "text_contains": ["quota"],
	   "then": {"reason": "quota_exhausted", "retry_after": {"from": "text", "match": "in ([0-9]+) min", "unit": "m"}}}]`),
		rules.Options{Plugin: "acme", Needs: wire.Needs{ErrorText: "full"}})
	for _, p := range problems {
		fmt.Println(p)
	}
	set := rules.Compile(rules.Source{Table: table, Plugin: "acme", Matches: []wire.Match{{Providers: []string{"acme"}}}})

	reply := &rules.Reply{Provider: "acme", Source: wire.SourceHTTP, Status: 403, Original: 403,
		Body: []byte(`{"error": {"message": "Quota used up, more in 5 min"}}`), Now: now}
	rules.Read(reply)
	match := set.Match(reply)
	if re, _, ok := match.Restate(0, set.Len()); ok {
		reply.Status, reply.Restated = re.Status, re.Rule
	}
	v, _, _ := match.Classify(rules.Normal, 0, set.Len())
	fmt.Println(reply.Status, "by", reply.Restated)
	fmt.Println(v.Reason, v.Scope, v.RetryAfter, "by", v.Evidence())
	// Output:
	// 429 by quota-as-403
	// quota_exhausted connection 5m0s by acme/quota
}
