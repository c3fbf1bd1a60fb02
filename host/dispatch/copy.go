package dispatch

// maxKept is how much of a request's and of an answer's text is kept with the row, of each (OBJ-18).
const maxKept = 64 << 10

// kept are the texts of one request, while requestLog.bodies is on.
type kept struct {
	Request []byte // as it came; at most maxKept bytes
	Answer  []byte // as the client got it, without signs of life; at most maxKept bytes
	Cut     bool   // one of them was longer
}

// copying notes what an answer says on its way out.
type copying struct {
	Sink
	to *kept
}

// copies makes the sink that notes the answer, and notes the request: later its body is changed in place.
func copies(c *Call, out Sink) (*kept, Sink) {
	b := c.Body.Bytes()
	k := &kept{Request: append([]byte{}, b[:min(len(b), maxKept)]...), Cut: len(b) > maxKept}
	return k, &copying{out, k}
}

// Write passes bytes on.
func (s *copying) Write(p []byte) error {
	room := max(maxKept-len(s.to.Answer), 0)
	s.to.Answer = append(s.to.Answer, p[:min(len(p), room)]...)
	s.to.Cut = s.to.Cut || len(p) > room
	return s.Sink.Write(p)
}

// Keep notes the texts of a request whose answer did not come out of Do.
func (t *Trail) Keep(request, answer []byte) { t.Kept = &kept{Request: request, Answer: answer} }
