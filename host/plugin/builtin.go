package plugin

import (
	"cmp"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// Packs makes built-in plugins of the YAML files that match pattern, by name: NAME/plugin.yaml and NAME.yaml are both NAME.
// Order is that of the names.
func Packs(files fs.FS, pattern string) ([]Builtin, error) {
	names, err := fs.Glob(files, pattern)
	if err != nil {
		return nil, fmt.Errorf("built-in packs: %w", err)
	}
	list := make([]Builtin, 0, len(names))
	for _, file := range names {
		b, err := fs.ReadFile(files, file)
		if err != nil {
			return nil, fmt.Errorf("built-in packs: %w", err)
		}
		name := strings.TrimSuffix(path.Base(file), ".yaml")
		if dir := path.Dir(file); dir != "." {
			name = path.Base(dir)
		}
		list = append(list, Builtin{Name: name, YAML: b})
	}
	slices.SortFunc(list, func(a, b Builtin) int { return cmp.Compare(a.Name, b.Name) })
	return list, nil
}
