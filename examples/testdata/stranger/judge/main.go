// Command judge uses the rule language and nothing else of Weir.
package main

import (
	"fmt"
	"log"
	"time"

	"github.com/weirgate/weir/rules"
	"github.com/weirgate/weir/sdk/wire"
)

const table = `[{"id": "quota", "status": [403], "text_contains": ["quota used up"], "then": {"reason": "quota_exhausted", "retry_after":
	{"from": "text", "match": "back in ([0-9]+) hours", "unit": "h"}}}]`

func main() {
	parsed, problems := rules.Parse([]byte(table), rules.Options{Plugin: "mine", Needs: wire.Needs{ErrorText: "full"}, Kinds: []string{wire.KindClassifier}})
	if len(problems) > 0 {
		log.Fatal(problems)
	}
	set := rules.Compile(rules.Source{Table: parsed, Plugin: "mine"})
	reply := &rules.Reply{Source: wire.SourceHTTP, Status: 403, Original: 403, Body: []byte("Quota used up, back in 5 hours"), Now: time.Now()}
	rules.Read(reply)
	verdict, _, ok := set.Match(reply).Classify(rules.Normal, 0, set.Len())
	fmt.Println(ok, verdict.Reason, verdict.RetryAfter, verdict.Evidence())
}
