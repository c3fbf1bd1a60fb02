package fuel
import "testing"
import "os"
import "sort"
var depths = map[string]map[int]int{}
func TestDepth(t *testing.T) {
	b, _ := os.ReadFile("../../../plugins/demo/demo.wasm")
	m := &module{}
	if err := guarded(func() {
	m.split(b); m.parse()
	w := &walker{m: m, report: &Report{}, meter: newMeter(len(m.globals))}
	r := *m.parts[secCode]
	n := r.count(maxFunctions, TooMany, "x")
	type row struct{ blocks, loops, ifs, total, size, fn int }
	var rows []row
	for k := range n {
		at := r.at
		MaxB, MaxL, MaxI, MaxT = 0, 0, 0, 0
		w.function(nil, &r, m.importedFuncs+k)
		rows = append(rows, row{MaxB, MaxL, MaxI, MaxT, r.at-at, k+m.importedFuncs})
	}
	sort.Slice(rows, func(i, j int) bool { return rows[i].total > rows[j].total })
	t.Logf("%+v", rows[:12])
	sort.Slice(rows, func(i, j int) bool { return rows[i].loops+rows[i].ifs > rows[j].loops+rows[j].ifs })
	t.Logf("%+v", rows[:5])
	sort.Slice(rows, func(i, j int) bool { return rows[i].size > rows[j].size })
	t.Logf("%+v", rows[:5])
	t.Log(len(m.types), len(m.globals), m.data, len(m.exports), len(m.elements), m.tables, m.memories, m.names!=nil)
	}); err != nil { t.Fatal(err) }
}
