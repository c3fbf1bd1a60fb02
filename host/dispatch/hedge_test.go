package dispatch_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/weirgate/weir/sdk/wire"
)

// CMB-16: the end of the slower target does not end the stream of the quicker one, however long that goes on.
func TestHedgingLeavesTheWinnerAlone(t *testing.T) {
	inLab(t, func(t *testing.T, l *lab) {
		p, q := l.provider("acme", "a"), l.provider("other", "b")
		l.says("a", ok().slowly(10*time.Second))
		l.guest.respond = func(ctx context.Context, f wire.RequestFacts) (*wire.Answer, error) {
			if f.Connection.ID == "a" {
				return l.answer(ctx, f)
			}
			return &wire.Answer{Status: 200, Events: []wire.AnswerEvent{
				{Data: `{"choices":[{"delta":{"content":"hello"}}]}`, DelayMS: 1000}, {Data: `{"choices":[{"delta":{"content":" there"}}]}`, DelayMS: 5000},
				{Data: `{"choices":[{"delta":{},"finish_reason":"stop"}]}`}, {Data: "[DONE]"},
			}}, nil
		}
		rt := combo("priority", p, q)
		rt.Config.Hedging = some(true)
		c, trail := l.do(rt, true)
		if !strings.Contains(c.body.String(), " there") || !strings.Contains(c.body.String(), "[DONE]") || trail.Cancelled || trail.Cut || trail.Failure != nil {
			t.Errorf("%s %+v", c.body.String(), trail.Failure)
		}
	})
}
