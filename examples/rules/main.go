// Command rules uses the rule language alone: it reads a table and says what an upstream's error means.
package main

import (
	"fmt"
	"log"
	"time"

	"github.com/weirgate/weir/rules"
	"github.com/weirgate/weir/sdk/wire"
)

const table = `[
  {"id": "quota-as-403", "status": [403], "text_contains": ["quota used up"], "then": {"restate_status": 429}},
  {"id": "quota", "status": [429], "text_contains": ["quota used up"], "then": {"reason": "quota_exhausted",
   "retry_after": {"from": "text", "match": "back in ([0-9]+) hours", "unit": "h"}}}
]`

func main() {
	text, err := judge(403, `{"error":{"message":"Monthly quota used up, back in 5 hours"}}`)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(text)
}

func judge(status int, body string) (string, error) {
	parsed, problems := rules.Parse([]byte(table), rules.Options{
		Plugin: "mine", Needs: wire.Needs{ErrorText: "full"}, Kinds: []string{wire.KindRestatement, wire.KindClassifier},
	})
	if len(problems) > 0 {
		return "", problems[0]
	}
	set := rules.Compile(rules.Source{Table: parsed, Plugin: "mine"})
	reply := &rules.Reply{Source: wire.SourceHTTP, Status: status, Original: status, Body: []byte(body), Now: time.Now()}
	rules.Read(reply)
	if re, _, ok := set.Match(reply).Restate(0, set.Len()); ok {
		reply.Status, reply.Restated = re.Status, re.Rule
	}
	verdict, _, ok := set.Match(reply).Classify(rules.Normal, 0, set.Len())
	if !ok {
		verdict = rules.ByStatus(reply)
	}
	return fmt.Sprintf("%d is %d: %s, scope %s, back in %s, says %s", status, reply.Status, verdict.Reason, verdict.Scope,
		verdict.RetryAfter, verdict.Evidence()), nil
}
