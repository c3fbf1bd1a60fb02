package main

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// A chunk's text starts with stampMark and the time it was written, in Unix nanoseconds, so
// that a client on the same machine can tell how long it was under way.
const (
	stampMark = '@'
	stampLen  = 20
)

type streamParts struct {
	head, chunk, tail []byte
	stampAt           int
}

func (m *mock) partsFor(d dialect, p plan, model string) streamParts {
	k := replyKey{d, p.chunkSize, model, p.chunks}
	if v, ok := m.streams.Load(k); ok {
		return v.(streamParts)
	}
	size := max(p.chunkSize, stampLen)
	t, total := string(stampMark)+strings.Repeat("0", stampLen-1)+text(size-stampLen), p.chunks*size/4
	var s streamParts
	switch d {
	case anthropic:
		s.head = fmt.Appendf(nil, "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"msg_mock\",\"type\":\"message\",\"role\":\"assistant\",\"model\":%q,\"content\":[],\"stop_reason\":null,\"stop_sequence\":null,\"usage\":{\"input_tokens\":10,\"output_tokens\":1}}}\n\nevent: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n", model)
		s.chunk = fmt.Appendf(nil, "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":%q}}\n\n", t)
		s.tail = fmt.Appendf(nil, "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\nevent: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\",\"stop_sequence\":null},\"usage\":{\"output_tokens\":%d}}\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n", total)
	case gemini:
		s.chunk = fmt.Appendf(nil, "data: {\"candidates\":[{\"content\":{\"role\":\"model\",\"parts\":[{\"text\":%q}]},\"index\":0}],\"modelVersion\":%q}\r\n\r\n", t, model)
		s.tail = fmt.Appendf(nil, "data: {\"candidates\":[{\"content\":{\"role\":\"model\",\"parts\":[{\"text\":\"\"}]},\"finishReason\":\"STOP\",\"index\":0}],\"usageMetadata\":{\"promptTokenCount\":10,\"candidatesTokenCount\":%d,\"totalTokenCount\":%d},\"modelVersion\":%q}\r\n\r\n", total, total+10, model)
	default:
		pre := fmt.Sprintf("data: {\"id\":\"chatcmpl-mock\",\"object\":\"chat.completion.chunk\",\"created\":1700000000,\"model\":%q,\"choices\":[{\"index\":0,\"delta\":", model)
		s.head = []byte(pre + "{\"role\":\"assistant\",\"content\":\"\"},\"finish_reason\":null}]}\n\n")
		s.chunk = []byte(pre + fmt.Sprintf("{\"content\":%q},\"finish_reason\":null}]}\n\n", t))
		s.tail = []byte(pre + "{},\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":10,\"completion_tokens\":" + strconv.Itoa(total) + ",\"total_tokens\":" + strconv.Itoa(total+10) + "}}\n\ndata: [DONE]\n\n")
	}
	s.stampAt = bytes.IndexByte(s.chunk, stampMark) + 1
	m.streams.Store(k, s)
	return s
}

func (m *mock) streamReply(w *conn, d dialect, p plan, model string) {
	s := m.partsFor(d, p, model)
	w.head(200, "text/event-stream", "Cache-Control: no-cache\r\nTransfer-Encoding: chunked\r\n\r\n")
	if len(s.head) > 0 {
		w.piece(s.head)
	}
	chunk := bytes.Clone(s.chunk)
	for i := range p.chunks {
		if p.cutAfter > 0 && i == p.cutAfter {
			w.reset()
			return
		}
		if i > 0 && p.interval > 0 {
			time.Sleep(p.interval)
		}
		strconv.AppendInt(chunk[s.stampAt:s.stampAt], time.Now().UnixNano(), 10)
		if w.piece(chunk) != nil {
			w.dead = true
			return
		}
	}
	w.piece(s.tail)
	w.piece(nil)
}
