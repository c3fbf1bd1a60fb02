package errorlog

import (
	"regexp"
	"strings"
)

const redacted = "[redacted]"

// Texts that are secrets or name people, whoever they belong to. What a rule looks for is words, and words are left alone: each
// pattern asks for a length, a digit or a shape that no sentence has.
var (
	prefixedKey = regexp.MustCompile(`\b(?:sk|pk|rk|gsk|csk|xai|hf|r8|pplx|nvapi|fw|tgp|tgr|ghp|gho|ghs|glpat|key|weir|dapi|jina|voyage|tvly|vck|fal|rpa|aa|or)[-_][A-Za-z0-9_*-]{12,}`)
	shapedKey   = regexp.MustCompile(`\bAIza[0-9A-Za-z_-]{20,}|\b(?:AKIA|ASIA)[0-9A-Z]{12,}\b|\bya29\.[0-9A-Za-z_-]{16,}|\bgithub_pat_[0-9A-Za-z_]{16,}|` +
		`\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?`)
	hexKey  = regexp.MustCompile(`\b[0-9a-fA-F]{32,}\b`)
	domain  = regexp.MustCompile(`^[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*\.[A-Za-z]{2,}`)
	bearer  = regexp.MustCompile(`(?i)\b(bearer|basic)(\s+|%20)([A-Za-z0-9._~+/=*-]{8,})`)
	labeled = regexp.MustCompile(`(?i)((?:api[_-]?key|access[_-]?token|refresh[_-]?token|id[_-]?token|auth[_-]?token|client[_-]?secret|secret|password|authorization)` +
		`\\?["']?\s*[:=]\s*\\?["']?)([A-Za-z0-9._~+/=*-]{8,})`)
	digit = regexp.MustCompile(`[0-9*]`)
)

// shortestKey is a length below which nothing looks like a key or an address.
const shortestKey = 6

// longToken is a length that no word has.
const longToken = 24

// Clean takes known secrets out of a text, then what looks like a key, a bearer token or an e-mail address.
func Clean(s string, known func(string) string) string { return redact(s, known) }

// redact takes known secrets out of a text, then what looks like a key, a bearer token or an e-mail address.
func redact(s string, known func(string) string) string {
	s = known(s)
	if len(s) < shortestKey {
		return s
	}
	s = after(bearer, s, 3)
	s = after(labeled, s, 2)
	s = shapedKey.ReplaceAllLiteralString(s, redacted)
	s = hexKey.ReplaceAllLiteralString(s, redacted)
	for _, at := range []string{"@", "%40", `\u0040`} {
		s = emails(s, at)
	}
	return prefixedKey.ReplaceAllStringFunc(s, func(found string) string {
		if secretive(found) {
			return redacted
		}
		return found
	})
}

// emails replaces e-mail addresses whose @ is written as at.
func emails(s, at string) string {
	var b strings.Builder
	done := 0
	for from := 0; ; {
		i := strings.Index(s[from:], at)
		if i < 0 {
			break
		}
		i += from
		from = i + len(at)
		start := i
		for start > done && i-start < maxLocal && local(s[start-1]) {
			start--
		}
		end := from + len(domain.FindString(s[from:min(len(s), from+maxDomain)]))
		if start == i || end == from {
			continue
		}
		b.WriteString(s[done:start])
		b.WriteString(redacted)
		from, done = end, end
	}
	if done == 0 {
		return s
	}
	b.WriteString(s[done:])
	return b.String()
}

// The longest parts of an e-mail address.
const (
	maxLocal  = 64
	maxDomain = 255
)

func local(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("._%+-", c) >= 0
}

// after replaces the n-th group of what matches, which is the last one, when it looks like a secret.
func after(p *regexp.Regexp, s string, n int) string {
	var b strings.Builder
	done := 0
	for _, m := range p.FindAllStringSubmatchIndex(s, -1) {
		if from, to := m[2*n], m[2*n+1]; secretive(s[from:to]) {
			b.WriteString(s[done:from])
			b.WriteString(redacted)
			done = to
		}
	}
	if done == 0 {
		return s
	}
	b.WriteString(s[done:])
	return b.String()
}

// secretive says whether a token is no word: "bearer authentication" is a sentence.
func secretive(token string) bool { return len(token) >= longToken || digit.MatchString(token) }

// maxTail is how much of the end of a text that was cut may be a part of a secret.
const maxTail = 512

// whole drops the token at the end of a text that was cut: half a key is not known as one.
func whole(s string) string {
	from := max(0, len(s)-maxTail)
	if i := strings.LastIndexAny(s[from:], " \t\r\n\"',:;<>{}[]()"); i >= 0 {
		return s[:from+i+1]
	}
	return strings.ToValidUTF8(s[:from], "")
}
