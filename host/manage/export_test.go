package manage

// Row is a row of the table, for tests.
type Row struct {
	Method, Path string
	Writes       bool // it needs the scope that changes things
}

// Table lists the table.
func Table() []Row {
	var rows []Row
	for _, e := range endpoints() {
		rows = append(rows, Row{e.method, e.path, e.needs == write})
	}
	return rows
}
