package toollimit

import (
	"strconv"
	"strings"
)

// phrases say that a request has too many tools (OTH-21). The last ones are further words for it.
var phrases = [...]string{
	"maximum number of tools", "too many tools", "tools limit", "maximum number of items",
	"number of tools", "too many function", "number of function", "tools': array too long", "tools: array too long",
}

// unspecific is the one phrase that may be about another list of the request.
const unspecific = "maximum number of items"

// otherLists are lists of a request that have limits of their own.
var otherLists = [...]string{"messages", "stop", "input", "contents", "metadata", "image", "document", "logit_bias", "modalities", "choices"}

// maxTools is the largest number that is believed (OTH-21).
const maxTools = 10_000

// farthest is how far from the phrase its number may stand.
const farthest = 200

// Read finds in the text of a refusal of a request with sent tools how many the provider takes: the number beside a phrase that says
// there are too many, from 1 to 10000 and below sent, since a limit that was kept is not what was refused. Without such a number it
// is Default. False: the text says nothing of the kind.
func Read(text string, sent int) (tools int, ok bool) {
	text = strings.ToLower(text)
	for _, phrase := range phrases {
		at := strings.Index(text, phrase)
		if at < 0 || phrase == unspecific && !aboutTools(text) {
			continue
		}
		end := at + len(phrase)
		if n, found := first(text[end:min(len(text), end+farthest)], sent); found {
			return n, true
		}
		if n, found := last(text[max(0, at-farthest):at], sent); found {
			return n, true
		}
		return Default, Default < sent
	}
	return 0, false
}

// aboutTools says whether a text about the items of a list is about the tools: it names them, or no other list.
func aboutTools(text string) bool {
	if strings.Contains(text, "tool") || strings.Contains(text, "function") {
		return true
	}
	for _, name := range otherLists {
		if strings.Contains(text, name) {
			return false
		}
	}
	return true
}

// first is the first number of text that may be a limit: not what was sent, and where two are compared, the second.
func first(text string, sent int) (limit int, ok bool) {
	compared := false
	numbers(text, func(n, start, end int) bool {
		switch {
		case n >= sent || n < 1 || n > maxTools || counted(text[:start]):
			return true
		case !ok || compared:
			limit, ok = n, true
			rest := strings.TrimLeft(text[end:], " ")
			compared = strings.HasPrefix(rest, ">")
			return compared
		}
		return false
	})
	return limit, ok
}

// last is the last number of text that may be a limit.
func last(text string, sent int) (limit int, ok bool) {
	numbers(text, func(n, start, _ int) bool {
		if n >= 1 && n <= maxTools && n < sent && !counted(text[:start]) {
			limit, ok = n, true
		}
		return true
	})
	return limit, ok
}

// counted says whether the number behind before is how many were sent, by the word in front of it.
func counted(before string) bool {
	words := strings.FieldsFunc(before, func(r rune) bool { return (r < 'a' || r > 'z') && r != '\'' })
	if len(words) == 0 {
		return false
	}
	switch words[len(words)-1] {
	case "got", "received", "given", "provided", "sent", "found", "has", "have", "had", "contains", "status", "code", "error", "not":
		return true
	}
	return false
}

// numbers yields the whole numbers of text that stand by themselves, with their places: no parts of names, versions or indices. A
// comma may part thousands.
func numbers(text string, yield func(n, start, end int) bool) {
	for i := 0; i < len(text); {
		if !digit(text[i]) {
			i++
			continue
		}
		start := i
		for i < len(text) && (digit(text[i]) || text[i] == ',' && thousands(text[i+1:])) {
			i++
		}
		alone := (start == 0 || !joins(text[start-1])) && (i == len(text) || !follows(text[i:]))
		n, err := strconv.Atoi(strings.ReplaceAll(text[start:i], ",", ""))
		if alone && err == nil && !yield(n, start, i) {
			return
		}
	}
}

func digit(c byte) bool { return c >= '0' && c <= '9' }

// thousands says whether three digits, and no fourth, come next.
func thousands(rest string) bool {
	return len(rest) >= 3 && digit(rest[0]) && digit(rest[1]) && digit(rest[2]) && (len(rest) == 3 || !digit(rest[3]))
}

// joins says whether a number behind c is a part of something.
func joins(c byte) bool {
	return c >= 'a' && c <= 'z' || c == '_' || c == '.' || c == '-' || c == '[' || c >= 0x80
}

// follows says whether a number in front of rest is a part of something.
func follows(rest string) bool {
	c := rest[0]
	return c >= 'a' && c <= 'z' || c == '_' || c == '-' || c == ']' || c == '%' || c == '.' && len(rest) > 1 && digit(rest[1])
}
