package dispatch

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strings"

	"github.com/tidwall/gjson"
)

// Where a conversation's identity stands, first to last: the gateway's own sources (AFF-2), then those of known clients (INF-14). Names
// of headers are canonical.
var (
	sessionHeaders = [...]string{"X-Codex-Session-Id", "X-Session-Id", "X-Weir-Session", "X-Omniroute-Session"}
	sessionFields  = [...]string{"metadata.session_id", "metadata.sessionId", "conversation_id", "session_id", "prompt_cache_key"}
	clientHeaders  = [...]string{"X-Claude-Code-Session-Id", "Session-Id", "Thread-Id", "X-Session-Affinity"}
)

// maxConversation bounds an identity, which comes from outside.
const maxConversation = 512

// Conversation is the identity of the conversation that a call belongs to, as its client states it; empty: it states none. It is never
// logged as it is (AFF-8). Each call of it looks again.
func (c *Call) Conversation() string {
	if id := firstHeader(c.Header, sessionHeaders[:]); id != "" {
		return id
	}
	if c.Scan != nil {
		for _, path := range sessionFields {
			if id := c.text(path); id != "" {
				return id
			}
		}
	}
	if id := firstHeader(c.Header, clientHeaders[:]); id != "" {
		return id
	}
	if c.Scan == nil {
		return ""
	}
	// Claude Code packs several ids into one text of JSON.
	if user := c.text("metadata.user_id"); strings.HasPrefix(user, "{") {
		return bounded(gjson.Get(user, "session_id").Str)
	}
	return ""
}

// ConversationTag is a digest of the conversation's identity, for logs; empty: there is none.
func (c *Call) ConversationTag() string {
	id := c.Conversation()
	if id == "" {
		return ""
	}
	if c.Key != nil {
		id = c.Key.ID + "/" + id
	}
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:6])
}

func firstHeader(h http.Header, names []string) string {
	for _, name := range names {
		for _, v := range h[name] {
			if id := bounded(v); id != "" {
				return id
			}
		}
	}
	return ""
}

// text is a member of the body that is a text.
func (c *Call) text(path string) string {
	raw, ok := c.Scan.Get(path)
	if !ok || len(raw) == 0 || raw[0] != '"' {
		return ""
	}
	v := gjson.ParseBytes(raw)
	if path == "metadata.user_id" { // more than an identity
		return v.Str
	}
	return bounded(v.Str)
}

func bounded(id string) string {
	if id = strings.TrimSpace(id); len(id) > maxConversation {
		return ""
	}
	return id
}
