package body

import (
	"encoding/binary"
	"math/bits"
)

func skipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\r' || b[i] == '\t') {
		i++
	}
	return i
}

// skipValue returns the end of the value that starts at i and, for an object or array, the number of its direct members
// or items. depth is the number of containers already open around it. It keeps no stack but one bit per level.
func skipValue(b []byte, i, depth int) (end, items int, err error) {
	if i >= len(b) {
		return i, 0, &SyntaxError{i, "a value is expected"}
	}
	if b[i] != '{' && b[i] != '[' {
		end, err = skipScalar(b, i)
		return end, 0, err
	}
	var objects [MaxDepth / 64]uint64 // bit set: that level is an object
	level := -1                       // containers open inside this value, less one
	for {
		// A value starts at i.
		switch c := b[i]; c {
		case '{', '[':
			level++
			if level+depth >= MaxDepth {
				return i, 0, &SyntaxError{i, "too many nested objects and arrays"}
			}
			object := c == '{'
			if object {
				objects[level/64] |= 1 << (level % 64)
			} else {
				objects[level/64] &^= 1 << (level % 64)
			}
			i = skipSpace(b, i+1)
			if i >= len(b) {
				return i, 0, &SyntaxError{i, "an object or array does not end"}
			}
			if b[i] == c+2 { // '}' and ']' stand two after their openers
				i++
				level--
				break
			}
			if level == 0 {
				items = 1
			}
			if object {
				if i, err = skipKey(b, i); err != nil {
					return i, 0, err
				}
			}
			continue
		default:
			if i, err = skipScalar(b, i); err != nil {
				return i, 0, err
			}
		}
		// A value ended before i: close what closes, go on to the next value.
		for {
			if level < 0 {
				return i, items, nil
			}
			i = skipSpace(b, i)
			if i >= len(b) {
				return i, 0, &SyntaxError{i, "an object or array does not end"}
			}
			object := objects[level/64]&(1<<(level%64)) != 0
			c := b[i]
			if c == ',' {
				if level == 0 {
					items++
				}
				i = skipSpace(b, i+1)
				if object {
					if i, err = skipKey(b, i); err != nil {
						return i, 0, err
					}
				} else if i >= len(b) {
					return i, 0, &SyntaxError{i, "a value is expected"}
				}
				break
			}
			if (object && c != '}') || (!object && c != ']') {
				return i, 0, &SyntaxError{i, "a comma or a closing bracket is expected"}
			}
			i++
			level--
		}
	}
}

// skipKey passes a key and its colon and returns where the value starts, which is inside b.
func skipKey(b []byte, i int) (int, error) {
	if i >= len(b) || b[i] != '"' {
		return i, &SyntaxError{i, "a key in quotes is expected"}
	}
	i, _, err := skipString(b, i)
	if err != nil {
		return i, err
	}
	if i = skipSpace(b, i); i >= len(b) || b[i] != ':' {
		return i, &SyntaxError{i, "a colon after the key is expected"}
	}
	if i = skipSpace(b, i+1); i >= len(b) {
		return i, &SyntaxError{i, "a value is expected"}
	}
	return i, nil
}

func skipScalar(b []byte, i int) (int, error) {
	switch b[i] {
	case '"':
		end, _, err := skipString(b, i)
		return end, err
	case 't':
		return skipWord(b, i, "true")
	case 'f':
		return skipWord(b, i, "false")
	case 'n':
		return skipWord(b, i, "null")
	}
	return skipNumber(b, i)
}

func skipWord(b []byte, i int, word string) (int, error) {
	if end := i + len(word); end <= len(b) && string(b[i:end]) == word {
		return end, nil
	}
	return i, &SyntaxError{i, "a value is expected"}
}

func skipNumber(b []byte, i int) (int, error) {
	start := i
	if i < len(b) && b[i] == '-' {
		i++
	}
	switch {
	case i < len(b) && b[i] == '0':
		i++
	case i < len(b) && b[i] >= '1' && b[i] <= '9':
		i = skipDigits(b, i)
	default:
		return start, &SyntaxError{start, "a value is expected"}
	}
	if i < len(b) && b[i] == '.' {
		end := skipDigits(b, i+1)
		if end == i+1 {
			return start, &SyntaxError{i, "a digit after the decimal point is expected"}
		}
		i = end
	}
	if i < len(b) && (b[i] == 'e' || b[i] == 'E') {
		i++
		if i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		end := skipDigits(b, i)
		if end == i {
			return start, &SyntaxError{i, "a digit in the exponent is expected"}
		}
		i = end
	}
	return i, nil
}

func skipDigits(b []byte, i int) int {
	for i < len(b) && b[i] >= '0' && b[i] <= '9' {
		i++
	}
	return i
}

// skipString returns the end of the string whose opening quote stands at i, and whether it holds escapes. It looks at
// eight bytes at a time: prompts with code in them have an escape every twenty bytes, too many for bytes.IndexByte.
func skipString(b []byte, i int) (end int, escaped bool, err error) {
	start := i
	for i++; ; {
		for i+8 <= len(b) {
			m := special(binary.LittleEndian.Uint64(b[i:]))
			if m != 0 {
				i += bits.TrailingZeros64(m) / 8
				break
			}
			i += 8
		}
		if i >= len(b) {
			return start, false, &SyntaxError{start, "a string does not end"}
		}
		switch c := b[i]; {
		case c == '"':
			return i + 1, escaped, nil
		case c == '\\':
			escaped = true
			if i, err = skipEscape(b, i); err != nil {
				return start, false, err
			}
		case c < 0x20:
			return start, false, &SyntaxError{i, "a control character stands in a string"}
		default:
			i++ // in the last seven bytes
		}
	}
}

// special marks the high bit of each byte that is a quote, a backslash or a control character. Marks above the lowest
// one may be false, since the subtractions borrow.
func special(v uint64) uint64 {
	const (
		ones    = 0x0101010101010101
		high    = 0x80 * ones
		quotes  = '"' * ones
		slashes = '\\' * ones
		blanks  = ' ' * ones
	)
	return ((v - blanks) | ((v ^ quotes) - ones) | ((v ^ slashes) - ones)) &^ v & high
}

// skipEscape returns where the text goes on after the escape whose backslash stands at i.
func skipEscape(b []byte, i int) (int, error) {
	if i+1 >= len(b) {
		return i, &SyntaxError{i, "a string does not end"}
	}
	switch b[i+1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return i + 2, nil
	case 'u':
		if i+6 <= len(b) && isHex(b[i+2]) && isHex(b[i+3]) && isHex(b[i+4]) && isHex(b[i+5]) {
			return i + 6, nil
		}
	}
	return i, &SyntaxError{i, "an unknown escape stands in a string"}
}

func isHex(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}
