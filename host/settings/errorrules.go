package settings

import (
	"github.com/weirgate/weir/host/document"
	"github.com/weirgate/weir/rules/operator"
)

// errorRules says what is wrong with providerErrorRules, by rule and field (RUL-30 to RUL-35).
func errorRules(n *document.Node, path string) []document.Fault {
	_, faults := operator.ParseRules(n.JSON())
	return placed(n, path, faults)
}

// errorDefaults says what is wrong with providerErrorDefaults (RUL-40).
func errorDefaults(n *document.Node, path string) []document.Fault {
	_, faults := operator.ParseDefaults(n.JSON())
	return placed(n, path, faults)
}

// placed says where in the document the faults are.
func placed(n *document.Node, path string, faults []operator.Fault) []document.Fault {
	var all []document.Fault
	for _, f := range faults {
		full := path
		if f.Path != "" {
			full += "." + f.Path
		}
		line, column := n.Position(f.Path)
		all = append(all, document.Fault{File: n.File, Path: full, Message: f.Message, Line: line, Column: column})
	}
	return all
}
