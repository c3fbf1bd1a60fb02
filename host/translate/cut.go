package translate

import (
	"strings"

	"github.com/weirgate/weir/host/translate/neutral"
)

// cutter ends an answer at a stop sequence where the upstream's dialect has no word for one (TR-9): the text before it is told, what comes
// behind it is left out. It holds back no more than may still become a sequence.
type cutter struct {
	stops   []string
	inText  bool
	pending string
	told    strings.Builder // of the open part
	hit     string          // the sequence that ended the answer
}

func newCutter(stops []string) *cutter {
	var some []string
	for _, s := range stops {
		if s != "" {
			some = append(some, s)
		}
	}
	if len(some) == 0 {
		return nil
	}
	return &cutter{stops: some}
}

// take handles an event, and says whether it is over with it. emit tells what the client may see by now; a nil cutter does nothing.
func (c *cutter) take(e *neutral.Event, emit func(*neutral.Event)) (done bool) {
	if c == nil {
		return false
	}
	switch e.Kind {
	case neutral.Open:
		if c.hit != "" {
			return true
		}
		c.inText, c.pending = e.Part.Kind == neutral.Text, ""
		c.told.Reset()
	case neutral.Delta:
		if c.hit != "" {
			return true
		}
		if c.inText {
			return c.say(e, c.add(e.Text), emit)
		}
	case neutral.Sign:
		return c.hit != "" && !c.inText
	case neutral.Close:
		if !c.inText {
			return c.hit != ""
		}
		rest := c.pending
		if c.hit == "" && rest != "" {
			delta := neutral.Event{Kind: neutral.Delta, Index: e.Index, Text: rest}
			c.say(&delta, rest, emit)
		}
		c.inText, c.pending = false, ""
		e.Part.Text = c.told.String()
	case neutral.Finished:
		if c.hit != "" {
			e.Stop, e.StopText = neutral.StopSequence, c.hit
		}
	default:
	}
	return false
}

func (c *cutter) say(e *neutral.Event, text string, emit func(*neutral.Event)) bool {
	if text != "" {
		c.told.WriteString(text)
		e.Text = text
		emit(e)
	}
	return true
}

// add is what of the text may be told now.
func (c *cutter) add(text string) string {
	c.pending += text
	at, hit := -1, ""
	for _, s := range c.stops {
		if i := strings.Index(c.pending, s); i >= 0 && (at < 0 || i < at) {
			at, hit = i, s
		}
	}
	if at >= 0 {
		safe := c.pending[:at]
		c.hit, c.pending = hit, ""
		return safe
	}
	safe := c.pending[:len(c.pending)-c.open()]
	c.pending = c.pending[len(safe):]
	return safe
}

// open is how much of the pending text's end may be the beginning of a sequence.
func (c *cutter) open() (longest int) {
	for _, s := range c.stops {
		for n := min(len(s)-1, len(c.pending)); n > longest; n-- {
			if strings.HasSuffix(c.pending, s[:n]) {
				longest = n
				break
			}
		}
	}
	return longest
}
