package rules

import "regexp/syntax"

// What regular expressions may cost. The time of a match grows with the length of the text times the size of the expression's
// program, and a few bytes declare a large program: without bounds a table of 190 KB took minutes for one answer of 64 KiB.
const (
	maxProgram  = 2_000      // instructions of one expression
	maxPrograms = 50_000     // of all expressions of a table
	maxWork     = 32_000_000 // bytes times instructions, of one plugin for one answer; beyond it nothing matches any more
	maxSubject  = 1 << 10    // bytes of a header or JSON value that an expression sees
)

// programSize is the number of instructions that a regular expression has, 0 for none.
func programSize(expr string) int {
	re, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		return 0
	}
	prog, err := syntax.Compile(re.Simplify())
	if err != nil {
		return 0
	}
	return len(prog.Inst)
}

// affords takes the work of matching text with p from what the plugin of a source has left for this answer.
func (m *Match) affords(source int, p *pattern, text string) bool {
	if m.work == nil {
		m.work = make([]int, len(m.open))
	}
	m.work[source] += (len(text) + 1) * p.size
	return m.work[source] <= maxWork
}

// subject is the part of a value that an expression sees.
func subject(v string) string { return v[:min(len(v), maxSubject)] }
