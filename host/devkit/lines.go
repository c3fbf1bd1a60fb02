package devkit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// MaxLine is the longest line of a file of cases or answers, in bytes.
const MaxLine = 4 << 20

// LineFault is a line of a file that cannot be read.
type LineFault struct {
	File    string
	Line    int
	Message string
}

// Error is file:line: message.
func (f LineFault) Error() string { return fmt.Sprintf("%s:%d: %s", f.File, f.Line, f.Message) }

// lines calls each for the lines of JSON Lines, empty ones left out, and returns the faults of those that each refused.
func lines(name string, r io.Reader, each func(line int, b []byte) error) ([]LineFault, error) {
	all, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("%s cannot be read (%w)", name, reason(err))
	}
	var faults []LineFault
	n := 0
	for line := range bytes.Lines(bytes.TrimPrefix(all, []byte("\xef\xbb\xbf"))) {
		n++
		line = bytes.TrimSpace(line)
		if len(line) == 0 {
			continue
		}
		err := error(nil)
		if len(line) > MaxLine {
			err = fmt.Errorf("the line has %d bytes, at most %d are allowed; cut its body", len(line), MaxLine)
		} else {
			err = each(n, line)
		}
		if err != nil {
			faults = append(faults, LineFault{name, n, err.Error()})
		}
	}
	return faults, nil
}

// decode reads one line, and says in words what is wrong with it.
func decode(b []byte, dst any) error {
	err := json.Unmarshal(b, dst)
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return fmt.Errorf("%s is a %s where a %s is needed", orLine(wrong.Field), wrong.Value, wrong.Type)
	}
	if err != nil {
		return fmt.Errorf("the line is not one JSON object: %w", err)
	}
	return nil
}

func orLine(field string) string {
	if field == "" {
		return "the line"
	}
	return field
}
