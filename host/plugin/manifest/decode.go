package manifest

import (
	"strings"

	"github.com/weirgate/weir/host/document"
	"github.com/weirgate/weir/sdk/wire"
)

// decode fills a Manifest from the document. A name that the host does not know is a warning, since both sides ignore
// unknown fields (ABI-1); every other fault is a problem.
func (c *checker) decode(n *document.Node) *Manifest {
	if n == nil || n.Kind != document.Map {
		c.bad("", "a manifest is an object with a name, a version and kinds")
		return nil
	}
	m := &Manifest{}
	for _, f := range n.Decode(&m.Manifest, document.Short[wire.Model]("id")) {
		p := Problem{Field: f.Path, Code: Invalid, Message: f.Message, Line: f.Line, Column: f.Column}
		if strings.HasPrefix(f.Message, "is not known here") {
			p.Code = Warning
			c.warnings = append(c.warnings, p)
			continue
		}
		c.problems = append(c.problems, p)
	}
	return m
}

// place gives the problems their places in the source.
func place(n *document.Node, list []Problem) {
	for i := range list {
		if list[i].Line == 0 {
			list[i].Line, list[i].Column = n.Position(list[i].Field)
		}
	}
}
