package neutral

// steps are the efforts with the budgets that stand for them (TR-17).
var steps = [...]struct {
	effort string
	budget int64
}{
	{"none", 0}, {"minimal", 512}, {"low", 2048}, {"medium", 8192}, {"high", 24_576}, {"xhigh", 32_768},
}

// Level is the effort in one word, empty when nothing is said: that of the client, else the nearest lower step of its budget
// (TR-17). A budget that the model chooses itself is medium.
func (r Reasoning) Level() string {
	switch {
	case r.Effort != "":
		return r.Effort
	case r.Off:
		return "none"
	case r.Budget != nil && *r.Budget >= 0:
		level := steps[0].effort
		for _, s := range steps {
			if *r.Budget >= s.budget {
				level = s.effort
			}
		}
		return level
	case r.Adaptive, r.Budget != nil:
		return "medium"
	}
	return ""
}

// Tokens is the effort as a budget of tokens: the client's own, else that of its step; max is limit, the model's limit of output,
// or the highest step when that is not known (TR-17). ok is false when nothing is said, or the model is to choose.
func (r Reasoning) Tokens(limit int64) (budget int64, ok bool) {
	switch {
	case r.Off:
		return 0, true
	case r.Budget != nil:
		return *r.Budget, *r.Budget >= 0
	case r.Effort == "max":
		if limit > 0 {
			return limit, true
		}
		return steps[len(steps)-1].budget, true
	}
	for _, s := range steps {
		if s.effort == r.Effort {
			return s.budget, true
		}
	}
	return 0, false
}
